//! The join methods that the planner may use.

/// The methods that `optimizer_switch` turns off, by any of `nested_loop_join=off`, `merge_join=off` and
/// `hash_join=off`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct JoinMethods {
    off: u8,
}

impl JoinMethods {
    pub(crate) const NESTED_LOOP: u8 = 1;
    pub(crate) const MERGE: u8 = 2;
    pub(crate) const HASH: u8 = 4;

    /// Reads the value of `optimizer_switch`. Other switches have no effect.
    pub fn read(switches: &str) -> JoinMethods {
        let bit = |switch: &str| match switch.trim().to_ascii_lowercase().as_str() {
            "nested_loop_join=off" => JoinMethods::NESTED_LOOP,
            "merge_join=off" => JoinMethods::MERGE,
            "hash_join=off" => JoinMethods::HASH,
            _ => 0,
        };
        JoinMethods { off: switches.split(',').map(bit).fold(0, |off, bit| off | bit) }
    }

    pub fn has(self, method: u8) -> bool {
        self.off & method == 0
    }

    /// A number for this choice of methods. A plan is made for one choice, so the number is part of its key.
    pub fn key(self) -> u8 {
        self.off
    }
}
