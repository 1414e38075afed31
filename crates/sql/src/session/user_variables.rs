//! The values of `@name`.

use crate::SqlError;
use crate::memory::{Account, Charge};
use base::sync::Arc;
use std::collections::HashMap;
use types::Value;

/// Values by name, the name in lower case. They count in the session's account.
#[derive(Default, Debug)]
pub(crate) struct UserVariables {
    values: HashMap<String, Value>,
    bytes: usize,
    charge: Charge,
}

/// What a value takes with its name, in bytes.
fn size(name: &str, value: &Value) -> usize {
    size_of::<(String, Value)>() + name.len() + value.as_ref().as_bytes().map_or(0, <[u8]>::len)
}

impl UserVariables {
    /// Names and values, sorted by name.
    pub(crate) fn all(&self) -> Vec<(&str, &Value)> {
        let mut all: Vec<(&str, &Value)> =
            self.values.iter().map(|(name, value)| (name.as_str(), value)).collect();
        all.sort_by_key(|(name, _)| *name);
        all
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name)
    }

    /// # Errors
    /// 1290 and 1041 if the session has no memory for the value. Then the variable stays as it was.
    pub(crate) fn insert(
        &mut self,
        name: String,
        value: Value,
        account: &Arc<Account>,
    ) -> Result<(), SqlError> {
        let old = self.values.get(&name).map_or(0, |old| size(&name, old));
        let bytes = self.bytes - old + size(&name, &value);
        self.charge.follow(bytes, account)?;
        self.bytes = bytes;
        self.values.insert(name, value);
        Ok(())
    }
}
