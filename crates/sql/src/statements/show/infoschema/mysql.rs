//! The tables of `mysql` that are computed: `user`, the names of time zones, and those of the list, which are
//! empty.

use super::{Definition, privileges};

pub(super) fn definitions() -> Vec<Definition> {
    vec![privileges::user_table()]
}
