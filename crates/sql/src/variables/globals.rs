//! The global values.

use super::command_line::{self, OptionError, OptionSet};
use super::{Setting, Variable, all, find, structured};
use crate::SqlError;
use base::sync::{Mutex, RwLock};
use engine::{DEFAULT_CACHE, Database};
use std::sync::{Arc, OnceLock};

base::latch_class!(pub VariablesLatch, "global variables");

/// A value for every variable, shared until changed.
#[derive(Clone, Debug)]
pub struct Values(Arc<Vec<Setting>>);

impl Values {
    pub fn get(&self, variable: Variable) -> &Setting {
        &self.0[variable.index()]
    }

    pub(super) fn set(&mut self, variable: Variable, setting: Setting) {
        Arc::make_mut(&mut self.0)[variable.index()] = setting;
    }

    fn named(&self, name: &'static str) -> &Setting {
        match find(name) {
            Some(variable) => self.get(variable),
            None => panic!("no variable is called {name}: the caller's name is misspelt"),
        }
    }

    /// The value of a whole-number variable; `name` is one of the table's.
    pub fn unsigned(&self, name: &'static str) -> u64 {
        match self.named(name) {
            Setting::Unsigned(value) => *value,
            other => panic!("{name} is not an unsigned number but {other:?}"),
        }
    }

    pub fn signed(&self, name: &'static str) -> i64 {
        match self.named(name) {
            Setting::Signed(value) => *value,
            other => panic!("{name} is not a number but {other:?}"),
        }
    }

    pub fn double(&self, name: &'static str) -> f64 {
        match self.named(name) {
            Setting::Double(value) => *value,
            other => panic!("{name} is not a number with a fraction but {other:?}"),
        }
    }

    pub fn boolean(&self, name: &'static str) -> bool {
        match self.named(name) {
            Setting::Boolean(on) => *on,
            other => panic!("{name} is not a switch but {other:?}"),
        }
    }

    /// The value as text, whatever its type.
    pub fn text(&self, name: &'static str) -> String {
        match find(name) {
            Some(variable) => self.get(variable).text(variable.definition()).into_owned(),
            None => panic!("no variable is called {name}: the caller's name is misspelt"),
        }
    }
}

/// What happens when a global variable with effect changes.
pub(crate) trait Effects: Send + Sync {
    /// `after` has the new value already. On an error the variable keeps its old value.
    fn apply(&self, changed: Variable, after: &Values) -> Result<(), SqlError>;
}

/// The values that new sessions start from, and those of global variables.
pub struct Globals {
    values: RwLock<Values, VariablesLatch>,
    /// Makes check, effect and store one step.
    changing: Mutex<()>,
    effects: OnceLock<Box<dyn Effects>>,
    segments_default: u64,
    /// What the command line said of key caches by name, in its order.
    caches: Mutex<Vec<(String, Variable, Setting)>>,
}

impl std::fmt::Debug for Globals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Globals").finish_non_exhaustive()
    }
}

impl Default for Globals {
    fn default() -> Globals {
        Globals::new()
    }
}

impl Globals {
    /// The compiled defaults; `key_cache_segments` by the number of processors.
    pub fn new() -> Globals {
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
        let segments_default = super::segments_default(processors);
        let settings = all().iter().map(|named| named.variable.definition().default()).collect();
        let mut values = Values(Arc::new(settings));
        if let Some(segments) = find("key_cache_segments") {
            values.set(segments, Setting::Unsigned(segments_default));
        }
        Globals {
            values: RwLock::of_class(values),
            changing: Mutex::new(()),
            effects: OnceLock::new(),
            segments_default,
            caches: Mutex::new(Vec::new()),
        }
    }

    /// The same with its latch made anew: the first was made before the option that says of what.
    pub fn with_latch_as_chosen(self) -> Globals {
        Globals { values: RwLock::of_class(self.values()), ..self }
    }

    /// What later changes do, beyond being remembered. Once, when the server is assembled.
    pub(crate) fn on_change(&self, effects: Box<dyn Effects>) {
        // A second call would mean two servers on one set of variables; the first one stays.
        let _ = self.effects.set(effects);
    }

    /// All values as of now. Cheap.
    pub fn values(&self) -> Values {
        self.values.read().clone()
    }

    pub fn get(&self, variable: Variable) -> Setting {
        self.values.read().get(variable).clone()
    }

    /// The compiled default, or what the machine's size makes of it.
    pub(crate) fn default_of(&self, variable: Variable) -> Setting {
        if variable.definition().name == "key_cache_segments" {
            Setting::Unsigned(self.segments_default)
        } else {
            variable.definition().default()
        }
    }

    /// Stores a checked value and lets it take effect.
    pub fn set(&self, variable: Variable, setting: Setting) -> Result<(), SqlError> {
        let _one_at_a_time = self.changing.lock();
        let mut after = self.values();
        after.set(variable, setting);
        if let Some(effects) = self.effects.get() {
            effects.apply(variable, &after)?;
        }
        *self.values.write() = after;
        Ok(())
    }

    /// Stores a value that the server itself found out (`datadir`, `hostname`); takes no effect.
    /// `name` is one of the table's.
    pub fn describe(&self, name: &'static str, text: &str) {
        if let Some(variable) = find(name) {
            self.values.write().set(variable, Setting::Text(text.into()));
        }
    }

    /// As [`Globals::describe`], a number.
    pub fn describe_number(&self, name: &'static str, number: u64) {
        if let Some(variable) = find(name) {
            self.values.write().set(variable, Setting::Unsigned(number));
        }
    }

    /// Reads one option of the command line, `name` as written after the dashes, and stores it.
    /// The sentences that it gives are for the log. An unknown option after `loose-` is remarked upon only.
    pub fn set_option(&self, name: &str, value: Option<&str>) -> Result<Vec<String>, OptionError> {
        let Some(OptionSet { cache, variable, setting, mut remarks }) = command_line::parse(name, value)?
        else {
            return Ok(vec![format!("option '--{name}' is not known and was marked loose: ignored")]);
        };
        if let Some(cache) = cache {
            self.caches.lock().push((cache, variable, setting));
            return Ok(remarks);
        }
        let setting = match (variable.definition().name, setting) {
            ("key_buffer_size", Setting::Unsigned(0)) => {
                remarks.push(
                    "option '--key_buffer_size=0': the default key cache cannot be dropped, \
                     it gets the smallest size that works"
                        .to_owned(),
                );
                Setting::Unsigned(4096)
            }
            (_, setting) => setting,
        };
        self.values.write().set(variable, setting);
        Ok(remarks)
    }

    /// Gives the default key cache what the engine's options do not have, and makes those that the command
    /// line named, which inherit its settings.
    ///
    /// # Errors
    /// 1231 for settings that cannot be met.
    pub fn make_caches(&self, database: &Database) -> Result<(), SqlError> {
        for name in ["key_cache_block_size", "key_cache_file_hash_size"] {
            if let Some(variable) = find(name) {
                structured::apply(database, DEFAULT_CACHE, variable, &self.get(variable))?;
            }
        }
        let caches = std::mem::take(&mut *self.caches.lock());
        caches
            .iter()
            .try_for_each(|(cache, variable, setting)| structured::apply(database, cache, *variable, setting))
    }
}
