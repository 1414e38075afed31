//! System variables: one table of definitions, the global values, and each session's copy.
//!
//! [`find`] gives the [`Variable`] of a name or an alias. [`Globals`] holds the values of the server,
//! [`SessionVariables`] those of one client. A value comes from the command line ([`Globals::set_option`]) or
//! from SET ([`assign::check`]). Both round and limit as MariaDB does. Ranges, steps and messages were taken
//! from a running MariaDB 10.11.

pub mod assign;
mod command_line;
pub mod definition;
mod effects;
mod globals;
pub mod join_methods;
mod networks;
mod passwords;
mod read;
mod session;
mod setting;
pub mod structured;
mod table;
#[cfg(test)]
mod tests;
pub(crate) mod time_zones;

pub use assign::Assigned;
pub use command_line::OptionError;
pub use definition::{Definition, Kind, Scope};
pub(crate) use effects::EngineEffects;
pub use effects::{
    flush_log, flush_method, flush_method_name, io_options, latch_implementation, row_tier_bytes,
    version_bytes,
};
pub(crate) use globals::Effects;
pub use globals::{Globals, Values};
pub use networks::Networks;
pub(crate) use passwords::PasswordPolicy;
pub(crate) use read::unknown;
pub use session::{
    Asked, Common, Completes, Live, MemoryLimits, SessionVariables, SqlMode, TransactionInfo, is_number,
};
pub use setting::Setting;
pub(crate) use table::{AUDIT_EVENTS, segments_default};
pub use table::{Named, Variable, all, find, listed};
pub use time_zones::Zone;

/// The version in the handshake and in `@@version`. It begins with the version of MariaDB whose answers are
/// given here, and names it, so that programs send the SQL and ask for the tables that they keep for MariaDB
/// (see docs/drivers.md).
pub const VERSION: &str = "10.11.19-MariaDB-Latchwork-0.1.0";
