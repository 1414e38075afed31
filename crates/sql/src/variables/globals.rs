//! The global values of variables.

use super::command_line::{self, OptionError, OptionSet};
use super::{Setting, Variable, all, find, structured};
use crate::SqlError;
use base::sync::atomic::{AtomicBool, Ordering};
use base::sync::{Mutex, RwLock};
use engine::{DEFAULT_CACHE, Database};
use std::sync::{Arc, OnceLock};

base::latch_class!(pub VariablesLatch, "global variables");

/// A value for every variable. Copies share their memory until one is changed.
#[derive(Clone, Debug)]
pub struct Values(Arc<Vec<Setting>>);

impl Values {
    pub fn get(&self, variable: Variable) -> &Setting {
        &self.0[variable.index()]
    }

    pub(crate) fn set(&mut self, variable: Variable, setting: Setting) {
        Arc::make_mut(&mut self.0)[variable.index()] = setting;
    }

    fn named(&self, name: &'static str) -> &Setting {
        match find(name) {
            Some(variable) => self.get(variable),
            None => panic!("no variable is called {name}: the caller's name is misspelt"),
        }
    }

    /// The value of a whole-number variable. `name` must be in the table of variables.
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

    /// The value as text, for any type of variable.
    pub fn text(&self, name: &'static str) -> String {
        match find(name) {
            Some(variable) => self.get(variable).text(variable.definition()).into_owned(),
            None => panic!("no variable is called {name}: the caller's name is misspelt"),
        }
    }
}

/// Makes changes of global variables take effect.
pub(crate) trait Effects: Send + Sync {
    /// `after` already contains the new value, and may be changed further. On an error the variables keep
    /// their old values.
    ///
    /// # Errors
    /// If the change cannot take effect.
    fn apply(&self, changed: Variable, after: &mut Values) -> Result<(), SqlError>;
}

/// The values of global variables, from which new sessions start.
pub struct Globals {
    values: RwLock<Values, VariablesLatch>,
    /// The value of `read_only`, which changes of rows look at without the latch.
    read_only: AtomicBool,
    /// Held so that checking, taking effect and storing are one step.
    changing: Mutex<()>,
    effects: OnceLock<Box<dyn Effects>>,
    segments_default: u64,
    /// The options of the command line about key caches other than the default one, in their order.
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
    /// The compiled defaults. `key_cache_segments` depends on the number of processors.
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
            read_only: AtomicBool::new(false),
            changing: Mutex::new(()),
            effects: OnceLock::new(),
            segments_default,
            caches: Mutex::new(Vec::new()),
        }
    }

    /// The same values with a new latch. The first latch was made before the option was read that chooses its
    /// kind.
    pub fn with_latch_as_chosen(self) -> Globals {
        Globals { values: RwLock::of_class(self.values()), ..self }
    }

    /// Sets what later changes do besides being stored. Called once, when the server is assembled.
    pub(crate) fn on_change(&self, effects: Box<dyn Effects>) {
        // A second call would mean two servers with one set of variables. The first one stays.
        let _ = self.effects.set(effects);
    }

    /// A copy of all current values. It is cheap.
    pub fn values(&self) -> Values {
        self.values.read().clone()
    }

    pub fn get(&self, variable: Variable) -> Setting {
        self.values.read().get(variable).clone()
    }

    /// The compiled default, or the default that depends on the machine's size.
    pub(crate) fn default_of(&self, variable: Variable) -> Setting {
        match variable.definition().name {
            "key_cache_segments" => Setting::Unsigned(self.segments_default),
            // As the server's start names it.
            "log_slow_query_file" => {
                let host = self.values().text("hostname");
                let host = if host.is_empty() { "latchwork" } else { host.as_str() };
                Setting::Text(format!("{host}-slow.log").into())
            }
            _ => variable.definition().default(),
        }
    }

    /// Stores a checked value and makes it take effect.
    ///
    /// # Errors
    /// If the change cannot take effect. Then nothing is stored.
    pub fn set(&self, variable: Variable, setting: Setting) -> Result<(), SqlError> {
        let _one_at_a_time = self.changing.lock();
        let mut after = self.values();
        after.set(variable, setting);
        if let Some(effects) = self.effects.get() {
            effects.apply(variable, &mut after)?;
        }
        *self.values.write() = after;
        self.note_read_only();
        Ok(())
    }

    fn note_read_only(&self) {
        // ORDER: nothing else is published with it. A statement that runs beside the change may see either.
        self.read_only.store(self.values().boolean("read_only"), Ordering::Relaxed);
    }

    /// `read_only`.
    #[inline]
    pub(crate) fn is_read_only(&self) -> bool {
        // ORDER: see `note_read_only`.
        self.read_only.load(Ordering::Relaxed)
    }

    /// Stores a value that the server found out itself (`datadir`, `hostname`). It has no effect. `name` must
    /// be in the table of variables.
    pub fn describe(&self, name: &'static str, text: &str) {
        if let Some(variable) = find(name) {
            self.values.write().set(variable, Setting::Text(text.into()));
        }
    }

    /// As [`Globals::describe`], for a number.
    pub fn describe_number(&self, name: &'static str, number: u64) {
        if let Some(variable) = find(name) {
            self.values.write().set(variable, Setting::Unsigned(number));
        }
    }

    /// Reads one option of the command line, with `name` as written after the dashes, and stores its value.
    /// Returns sentences for the log. An unknown option after `loose-` only gives such a sentence.
    ///
    /// # Errors
    /// If the option is unknown or its value cannot be read. Then nothing is stored.
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
        self.note_read_only();
        Ok(remarks)
    }

    /// Gives the default key cache the settings that are not among the engine's options. Creates the key
    /// caches that the command line named; they take their other settings from the default cache.
    ///
    /// # Errors
    /// 1231 for settings that are not possible.
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
