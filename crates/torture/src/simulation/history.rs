//! One history: steps, faults of the device, restarts, and cuts anywhere.

use super::contents::{Contents, Trouble};
use super::model::State;
use super::schema::IDS;
use super::world::{Client, Outcome, Settings, World, Wrong, closest};
use base::random::Random;
use base::sync::Arc;
use engine::{Database, Error};
use std::panic::{AssertUnwindSafe, catch_unwind};
use vfs::SimVfs;
use vfs::sim::{Crashed, Cut, Dirty, FailedSync, Plan};

/// Steps that a fault tells of.
const STORY: usize = 12;

/// What a history is drawn from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct History {
    pub seed: u64,
    pub steps: u32,
    /// Events of the device from one cut to the next, on the average.
    pub gap: u64,
}

/// What was tried.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tally {
    /// Crashes whose image was recovered and compared.
    pub cuts: u64,
    /// Crashes within a recovery, whose images were recovered in their turn.
    pub cuts_of_recoveries: u64,
    /// Errors of the device and full disks that the history met.
    pub device_errors: u64,
    pub restarts: u64,
    pub steps: u64,
    /// Events of the device.
    pub events: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.cuts += other.cuts;
        self.cuts_of_recoveries += other.cuts_of_recoveries;
        self.device_errors += other.device_errors;
        self.restarts += other.restarts;
        self.steps += other.steps;
        self.events += other.events;
    }
}

/// Something was lost, wrong, or ended the engine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    pub seed: u64,
    pub what: String,
    /// The last steps before it.
    pub story: Vec<String>,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "seed {}: {}", self.seed, self.what)?;
        self.story.iter().try_for_each(|step| writeln!(f, "    {step}"))
    }
}

impl History {
    /// Runs it. The tally tells how far it came, also if there is a fault.
    ///
    /// # Errors
    /// The first fault, which ends the history.
    pub fn run(&self) -> (Tally, Result<(), Fault>) {
        let mut run = None;
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let run = run.insert(Run::new(*self)?);
            run.run()
        }));
        let (tally, story) = match &mut run {
            Some(run) => (run.tally, std::mem::take(&mut run.world.story)),
            None => (Tally::default(), Vec::new()),
        };
        // After a panic nothing of the engine can be trusted, its destructors included.
        let outcome = caught.unwrap_or_else(|panic| {
            std::mem::forget(run.take());
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word");
            Err(format!("panic: {text}"))
        });
        let mut story = story;
        if story.len() > STORY + 1 {
            // The first line has the settings.
            story.drain(1..story.len() - STORY);
        }
        (tally, outcome.map_err(|what| Fault { seed: self.seed, what, story }))
    }
}

struct Run {
    history: History,
    settings: Settings,
    vfs: SimVfs,
    world: World,
    /// What a crash may leave.
    promised: Vec<State>,
    /// What may be wrong with the device now.
    armed: Armed,
    tally: Tally,
}

/// The fault of the device that is armed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Armed {
    Nothing,
    Operation,
    Sync(Dirty),
    /// For so many steps more.
    Full(u32),
}

/// How the engine comes to an end before it is opened again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Close,
    /// The process is killed; the operating system keeps what it has.
    Kill,
    Crash,
}

impl Run {
    fn new(history: History) -> Result<Run, Wrong> {
        let mut random = Random::new(history.seed, 0);
        let settings = Settings::random(&mut random);
        let vfs = SimVfs::new();
        let database = settings.open(&vfs).map_err(|error| format!("the first start: {error}"))?;
        vfs.crash_at_random(Some(history.gap), random.next_u64());
        let world = World {
            clients: (0..4).map(|_| Client::new(&database)).collect(),
            database,
            ids: IDS[random.index(2)],
            random,
            committed: State::default(),
            passed: Vec::new(),
            next_identity: 0,
            is_faulty: false,
            has_ghosts: false,
            story: vec![format!("{settings:?}")],
        };
        let promised = vec![State::default()];
        Ok(Run { history, settings, vfs, world, promised, armed: Armed::Nothing, tally: Tally::default() })
    }

    fn run(&mut self) -> Result<(), Wrong> {
        for _ in 0..self.history.steps {
            self.step()?;
            self.tally.steps += 1;
        }
        let end = [End::Close, End::Kill, End::Crash][self.world.random.index(3)];
        self.disarm();
        self.restart(end)
    }

    fn step(&mut self) -> Result<(), Wrong> {
        self.arm();
        let outcome = self.act();
        self.check_cuts(outcome.as_ref().ok())?;
        if let Some(state) = self.world.passed.pop() {
            // Each of them was acknowledged: the last counts.
            self.promised = vec![state];
            self.world.passed.clear();
        }
        match outcome? {
            Outcome::Same => {}
            Outcome::Committed(state) => {
                self.world.committed = state.clone();
                self.promised = vec![state];
            }
            Outcome::Failed(error, after) => self.device_failed(error, after)?,
        }
        if let Armed::Full(left) = self.armed {
            self.armed = Armed::Full(left.saturating_sub(1));
            if left == 0 {
                self.world.tell("the disk has room again".to_string());
                self.disarm();
                self.restart_somehow(false)?;
            }
        } else if self.world.random.below(90) == 0 {
            self.disarm();
            self.restart_somehow(false)?;
        }
        Ok(())
    }

    fn act(&mut self) -> Result<Outcome, Wrong> {
        let world = &mut self.world;
        let client = world.random.index(world.clients.len());
        let draw = world.random.below(100);
        match draw {
            0..=8 if !matches!(self.armed, Armed::Full(_)) => world.define(),
            9..=23 => world.transaction(client),
            24..=33 => world.read(client),
            34..=36 => world.read_locking(client),
            37..=40 => world.lock(client),
            41..=44 => {
                world.tell("a checkpoint".to_string());
                match world.database.checkpoint() {
                    Ok(()) => Ok(Outcome::Same),
                    Err(error) => world.unexpected("a checkpoint", error, world.committed.clone()),
                }
            }
            45..=50 => {
                world.tell("purge".to_string());
                world.database.purge();
                Ok(Outcome::Same)
            }
            _ if world.committed.tables.is_empty() => world.define(),
            _ => world.change(client),
        }
    }

    /// Now and then something is going to be wrong with the device.
    fn arm(&mut self) {
        if self.armed != Armed::Nothing {
            return;
        }
        let random = &mut self.world.random;
        let (armed, plan) = match random.below(150) {
            0 => {
                let failed_operation = Some(1 + random.below_u64(60));
                (Armed::Operation, Plan { failed_operation, ..Plan::default() })
            }
            1 => {
                let dirty = match random.below(2) {
                    0 => Dirty::Kept,
                    _ => Dirty::Forgotten { seed: random.next_u64() },
                };
                let failed_sync = Some(FailedSync { nth: 1 + random.below_u64(8), dirty });
                (Armed::Sync(dirty), Plan { failed_sync, ..Plan::default() })
            }
            2 => {
                let free_bytes = Some(random.below_u64(40_000));
                (Armed::Full(random.below(30)), Plan { free_bytes, ..Plan::default() })
            }
            _ => return,
        };
        self.world.tell(format!("the device: {armed:?}, {plan:?}"));
        self.set_plan(plan);
        self.armed = armed;
        self.world.is_faulty = true;
    }

    fn set_plan(&mut self, plan: Plan) {
        self.tally.events += self.vfs.events();
        self.vfs.set_plan(plan);
    }

    fn disarm(&mut self) {
        self.set_plan(Plan::default());
        self.armed = Armed::Nothing;
    }

    /// Recovers what the crashes of this step have left, and compares.
    fn check_cuts(&mut self, outcome: Option<&Outcome>) -> Result<(), Wrong> {
        let mut accepted: Vec<&State> = self.promised.iter().collect();
        accepted.extend(&self.world.passed);
        accepted.push(&self.world.committed);
        match outcome {
            Some(Outcome::Committed(after) | Outcome::Failed(_, after)) => accepted.push(after),
            Some(Outcome::Same) | None => {}
        }
        let mut cuts = Cuts { settings: &self.settings, tally: &mut self.tally };
        for crashed in self.vfs.take_crashes() {
            cuts.check(crashed, &accepted)?;
        }
        Ok(())
    }

    /// The device has refused something. What is there now has to be what was committed, before or after.
    fn device_failed(&mut self, error: Error, after: State) -> Result<(), Wrong> {
        self.tally.device_errors += 1;
        self.world.tell(format!("error: {error}"));
        if matches!(self.armed, Armed::Full(_)) && matches!(error, Error::Full) {
            // It goes on with a full disk; all that failed was taken back, or will be.
            self.world.has_ghosts = true;
            self.world.clients.iter_mut().for_each(|client| {
                let _ = client.session.roll_back();
                client.ended();
            });
            let before = self.world.committed.clone();
            self.world.compare_live(&[&before])?;
            self.promised.push(after);
            return Ok(());
        }
        let was = self.armed;
        if was != Armed::Nothing {
            self.disarm();
        }
        self.world.clients.clear();
        let before = self.world.committed.clone();
        let at =
            self.world.compare_live(&[&before, &after]).map_err(|what| format!("after {error}: {what}"))?;
        if at == Some(1) {
            self.world.committed = after.clone();
        }
        self.promised.extend([before, after]);
        self.restart_somehow(matches!(was, Armed::Sync(Dirty::Forgotten { .. })))
    }

    fn restart_somehow(&mut self, only_crash: bool) -> Result<(), Wrong> {
        let end = [End::Close, End::Kill, End::Crash][self.world.random.index(3)];
        self.restart(if only_crash { End::Crash } else { end })
    }

    /// Ends the engine, opens it again, and goes on with what is found, which has to have been promised.
    fn restart(&mut self, end: End) -> Result<(), Wrong> {
        self.tally.restarts += 1;
        self.world.tell(format!("restart: {end:?}"));
        self.world.clients.clear();
        // A sync that failed may have forgotten what this process still sees.
        let mut crashes = end == End::Crash || end == End::Kill && self.world.is_faulty;
        if end == End::Close
            && let Err(error) = self.world.database.close()
        {
            if !self.world.is_of_device(&error) {
                return Err(format!("it does not close: {error}"));
            }
            crashes = true;
        }
        if crashes {
            let left = self.vfs.crash(self.world.random.next_u64());
            self.check_cuts(None)?;
            self.tally.events += self.vfs.events();
            self.vfs = left;
            let seed = self.world.random.next_u64();
            self.vfs.crash_at_random(Some(self.history.gap), seed);
        }
        self.world.has_ghosts = self.settings.is_taken_back_behind();
        // The directory's lock goes with the last handle.
        let spare = self.settings.open(&SimVfs::new()).map_err(|error| error.to_string())?;
        drop(std::mem::replace(&mut self.world.database, spare));
        self.world.database = open(&self.settings, &self.vfs)?;
        self.world.is_faulty = false;
        let mut accepted: Vec<&State> = self.promised.iter().collect();
        accepted.push(&self.world.committed);
        let at = self.world.compare_live(&accepted).map_err(|what| format!("after {end:?}: {what}"))?;
        let found = at.map(|at| accepted[at].clone()).ok_or("it cannot be read after a start")?;
        self.check_cuts(None)?;
        self.world.committed = found.clone();
        self.promised = vec![found];
        let report = self.world.database.check().map_err(|error| format!("check: {error}"))?;
        if !report.is_clean() && !self.settings.is_taken_back_behind() {
            return Err(format!("after {end:?}: {report}"));
        }
        self.world.clients = (0..4).map(|_| Client::new(&self.world.database)).collect();
        Ok(())
    }
}

/// What crashes leave, each recovered in its turn.
struct Cuts<'r> {
    settings: &'r Settings,
    tally: &'r mut Tally,
}

impl Cuts<'_> {
    /// A start finds one of the accepted states, and everything in order.
    fn check(&mut self, crashed: Crashed, accepted: &[&State]) -> Result<(), Wrong> {
        self.tally.cuts += 1;
        let place = format!("cut {} before {}", crashed.seed, crashed.before);
        self.recover(crashed, accepted).map_err(|what| format!("{place}: {what}"))
    }

    fn recover(&mut self, crashed: Crashed, accepted: &[&State]) -> Result<(), Wrong> {
        let mut random = Random::new(crashed.seed, 1);
        let mut left = crashed.left;
        let mut recoveries = 0;
        while random.below(4) == 0 {
            // The recovery is cut as well.
            self.tally.cuts_of_recoveries += 1;
            recoveries += 1;
            left.set_plan(Plan { cut: Some(Cut::AfterEvent(random.below_u64(80))), ..Plan::default() });
            drop(self.settings.open(&left));
            left = left.crash(random.next_u64());
        }
        self.look(&left, accepted).map_err(|what| format!("{recoveries} cuts in recoveries: {what}"))
    }

    fn look(&self, left: &SimVfs, accepted: &[&State]) -> Result<(), Wrong> {
        let mut database = open(self.settings, left)?;
        let state = compare(&database, accepted)?;
        if self.settings.is_taken_back_behind() {
            // What it takes back behind its clients, another start takes back first: then all pages are
            // known.
            database.close().map_err(|error| format!("it does not close: {error}"))?;
            drop(database);
            database = open(&self.settings.at_once(), left)?;
            compare(&database, &[state])?;
        }
        // What nobody sees any more is removed, and nothing else.
        database.purge();
        let report = database.check().map_err(|error| format!("check: {error}"))?;
        if !report.is_clean() {
            return Err(report.to_string());
        }
        compare(&database, &[state]).map(drop)
    }
}

fn open(settings: &Settings, vfs: &SimVfs) -> Result<Arc<Database>, Wrong> {
    settings.open(vfs).map_err(|error| format!("it does not open: {error}"))
}

/// Which of the states a database is in.
fn compare<'s>(database: &Database, accepted: &[&'s State]) -> Result<&'s State, Wrong> {
    let contents = Contents::read(database).map_err(|trouble: Trouble| trouble.to_string())?;
    Ok(accepted[closest(&contents, accepted)?])
}
