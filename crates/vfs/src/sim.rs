//! A file system that crashes: for tests that stop a machine anywhere and look at what it left.
//!
//! [`SimVfs`] has two states in memory: what the process sees, and what is on the device. A sync takes one
//! file's bytes, or one folder's names, from the first to the second. [`SimVfs::crash`] gives one of the file
//! systems that could be found after a power failure, chosen by a seed. It forgets all that POSIX allows a
//! file system on an honest device to forget, also what real file systems would save. The README of this
//! crate has the table of what survives what.
//!
//! A file is replaced safely if it is written beside the old one, synced, renamed, and if its folder is
//! synced at last. Each crash leaves the old or the new content, and the new one if the replacement was
//! reported as done:
//!
//! ```
//! use latchwork_vfs::sim::{Points, SimVfs, every_cut};
//! use latchwork_vfs::{Create, Vfs};
//! use std::path::Path;
//!
//! fn replace(vfs: &SimVfs, content: &[u8]) -> std::io::Result<()> {
//!     let file = vfs.open(Path::new("new"), Create::IfMissing)?;
//!     file.set_len(0)?;
//!     file.write_at(content, 0)?;
//!     file.sync()?;
//!     vfs.rename(Path::new("new"), Path::new("settings"))?;
//!     vfs.sync_dir(Path::new(""))
//! }
//!
//! fn workload(vfs: &SimVfs) -> Option<&'static str> {
//!     replace(vfs, b"first").ok()?;
//!     Some(if replace(vfs, b"second").is_ok() { "second" } else { "first" })
//! }
//!
//! every_cut(Points::Events, 0..20, workload, |done, left| {
//!     let mut content = String::new();
//!     if let Ok(file) = left.open(Path::new("settings"), Create::Never) {
//!         let mut bytes = vec![0; file.len().unwrap() as usize];
//!         file.read_at(&mut bytes, 0).unwrap();
//!         content = String::from_utf8(bytes).unwrap();
//!     }
//!     match done {
//!         None => assert!(["", "first"].contains(&&*content)),
//!         Some("first") => assert!(["first", "second"].contains(&&*content)),
//!         Some(_) => assert_eq!(content, "second"),
//!     }
//! });
//! ```
//!
//! Errors of single operations, of all kinds, come from a [`FaultyVfs`](crate::FaultyVfs) around a `SimVfs`.

mod content;
mod dice;
mod driver;
mod file;
mod names;
mod plan;

use crate::{Create, File, Vfs};
use base::random::Random;
use base::sync::{Arc, Mutex};
use content::Content;
pub use content::SECTOR;
use dice::Dice;
pub use driver::{Points, every_cut};
use file::SimFile;
use names::{Names, Node, missing};
use plan::Progress;
pub use plan::{Cut, Dirty, Event, EventKind, FailedSync, Plan};
use std::io;
use std::path::{Path, PathBuf};

/// A file tree in memory that forgets what was not synced. Clones share the tree.
///
/// One latch guards everything, so an operation happens at one moment, and a crash falls between two.
#[derive(Clone, Debug, Default)]
pub struct SimVfs {
    disk: Arc<Mutex<Disk>>,
}

#[derive(Debug, Default)]
struct Disk {
    names: Names,
    progress: Progress,
    /// Bytes that all files together may have.
    capacity: Option<u64>,
    handles: u64,
    crashes: Option<Crashes>,
}

/// Crashes that are drawn while the machine goes on.
#[derive(Debug)]
struct Crashes {
    random: Random,
    gap: u64,
    /// So many more events happen before the next crash.
    left: u64,
    drawn: Vec<Crashed>,
}

/// What a crash in the middle of a history has left.
#[derive(Debug)]
pub struct Crashed {
    /// The first event that did not happen any more.
    pub before: Event,
    /// What was drawn with: [`SimVfs::crash`].
    pub seed: u64,
    pub left: SimVfs,
}

impl SimVfs {
    /// An empty file system on which nothing goes wrong.
    pub fn new() -> SimVfs {
        SimVfs::default()
    }

    pub fn with_plan(plan: Plan) -> SimVfs {
        let vfs = SimVfs::new();
        vfs.set_plan(plan);
        vfs
    }

    /// Replaces the plan and begins to count anew. A machine that has stopped runs again, with nothing lost.
    /// For what a crash leaves, see [`SimVfs::crash`].
    pub fn set_plan(&self, plan: Plan) {
        let mut disk = self.disk.lock();
        let used = disk.used();
        disk.capacity = plan.free_bytes.map(|free| used.saturating_add(free));
        disk.progress = Progress::new(plan);
    }

    /// The file system after a power failure at this moment: a new one, on which nothing goes wrong and
    /// nobody holds a lock; everything on it is durable. This one is not changed, so that one history can be
    /// crashed with many seeds.
    pub fn crash(&self, seed: u64) -> SimVfs {
        self.disk.lock().crash(seed)
    }

    /// From now on, draws what crashes at random moments would leave, while the machine goes on: one history
    /// is cut at many events for the price of one run. Between two crashes lie `gap` events on the average;
    /// `None` ends it. [`SimVfs::take_crashes`] hands them out.
    pub fn crash_at_random(&self, gap: Option<u64>, seed: u64) {
        let mut random = Random::new(seed, 0);
        self.disk.lock().crashes = gap.map(|gap| Crashes {
            left: random.below_u64(2 * gap.max(1)),
            random,
            gap: gap.max(1),
            drawn: Vec::new(),
        });
    }

    /// The crashes drawn since the last call, in the order of their events.
    pub fn take_crashes(&self) -> Vec<Crashed> {
        self.disk.lock().crashes.as_mut().map_or_else(Vec::new, |crashes| std::mem::take(&mut crashes.drawn))
    }

    /// How many events there were since the plan was set.
    pub fn events(&self) -> u64 {
        self.disk.lock().progress.events
    }

    /// How many operations there were since the plan was set, reads among them.
    pub fn operations(&self) -> u64 {
        self.disk.lock().progress.operations
    }

    /// How many of the events were syncs, of files or of folders.
    pub fn syncs(&self) -> u64 {
        self.disk.lock().progress.syncs
    }

    /// The latest event.
    pub fn last_event(&self) -> Option<Event> {
        self.disk.lock().progress.last.clone()
    }

    /// Whether the plan's cut was reached.
    pub fn stopped(&self) -> bool {
        self.disk.lock().progress.stopped()
    }
}

impl Disk {
    fn crash(&self, seed: u64) -> SimVfs {
        let mut dice = Dice::new(seed);
        let luck = dice.luck();
        let names = self.names.crash(luck, &mut dice);
        SimVfs { disk: Arc::new(Mutex::new(Disk { names, ..Disk::default() })) }
    }

    /// An event is about to happen. Nobody holds the latch of a file's content.
    fn event(&mut self, kind: EventKind, path: &Path) -> io::Result<()> {
        self.progress.event(kind, path)?;
        self.draw_crash();
        Ok(())
    }

    /// A sync is about to happen; says whether it is to fail. As [`Disk::event`].
    fn sync_event(&mut self, kind: EventKind, path: &Path) -> io::Result<Option<Dirty>> {
        let failure = self.progress.sync(kind, path)?;
        self.draw_crash();
        Ok(failure)
    }

    fn draw_crash(&mut self) {
        let (Some(crashes), Some(before)) = (&mut self.crashes, &self.progress.last) else { return };
        if crashes.left > 0 {
            crashes.left -= 1;
            return;
        }
        let (seed, before) = (crashes.random.next_u64(), before.clone());
        crashes.left = crashes.random.below_u64(2 * crashes.gap);
        let left = self.crash(seed);
        if let Some(crashes) = &mut self.crashes {
            crashes.drawn.push(Crashed { before, seed, left });
        }
    }

    fn used(&self) -> u64 {
        self.names.files().map(|content| content.lock().live().len() as u64).sum()
    }

    /// How many of `growth` bytes there is room for.
    fn room(&self, growth: u64) -> u64 {
        self.capacity.map_or(growth, |capacity| growth.min(capacity.saturating_sub(self.used())))
    }

    fn open(&mut self, path: &Path, create: Create) -> io::Result<Arc<Mutex<Content>>> {
        self.progress.operation()?;
        let name = self.names.name(path)?;
        match (self.names.get(&name), create) {
            (Some(_), Create::New) => Err(io::ErrorKind::AlreadyExists.into()),
            (Some(Node::Folder(_)), _) => Err(io::ErrorKind::IsADirectory.into()),
            (Some(Node::File(content)), _) => Ok(content.clone()),
            (None, Create::Never) => Err(missing(path)),
            (None, Create::IfMissing | Create::New) => {
                self.event(EventKind::Create, path)?;
                Ok(self.names.create(name))
            }
        }
    }
}

impl Vfs for SimVfs {
    fn open(&self, path: &Path, create: Create) -> io::Result<Arc<dyn File>> {
        let mut disk = self.disk.lock();
        let content = disk.open(path, create)?;
        disk.handles += 1;
        let handle = disk.handles;
        Ok(Arc::new(SimFile::new(self.disk.clone(), content, path, handle)))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        let mut disk = self.disk.lock();
        disk.progress.operation()?;
        let is_file = disk.names.name(path).is_ok_and(|name| disk.names.get(&name).is_some());
        Ok(is_file || disk.names.folder(path).is_ok())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.progress.operation()?;
        let name = disk.names.name(path)?;
        match disk.names.get(&name) {
            None => Err(missing(path)),
            Some(Node::Folder(_)) => Err(io::ErrorKind::IsADirectory.into()),
            Some(Node::File(_)) => {
                disk.event(EventKind::Remove, path)?;
                disk.names.remove(name);
                Ok(())
            }
        }
    }

    /// Files only: moving a folder is `Unsupported`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.progress.operation()?;
        let (old, new) = (disk.names.name(from)?, disk.names.name(to)?);
        let node = disk.names.get(&old).ok_or_else(|| missing(from))?.clone();
        if matches!(node, Node::Folder(_)) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        if matches!(disk.names.get(&new), Some(Node::Folder(_))) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        disk.event(EventKind::Rename, from)?;
        if old != new {
            disk.names.rename(old, new, node);
        }
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<PathBuf>> {
        let mut disk = self.disk.lock();
        disk.progress.operation()?;
        let folder = disk.names.folder(dir)?;
        Ok(disk.names.list(folder).map(PathBuf::from).collect())
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.progress.operation()?;
        let ancestors: Vec<&Path> = dir.ancestors().filter(|path| path.file_name().is_some()).collect();
        for path in ancestors.into_iter().rev() {
            let name = disk.names.name(path)?;
            match disk.names.get(&name) {
                Some(Node::Folder(_)) => {}
                Some(Node::File(_)) => return Err(io::ErrorKind::AlreadyExists.into()),
                None => {
                    disk.event(EventKind::CreateDir, path)?;
                    disk.names.create_folder(name);
                }
            }
        }
        Ok(())
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.progress.operation()?;
        let folder = disk.names.folder(dir)?;
        if disk.names.list(folder).next().is_some() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        let name = disk.names.name(dir)?;
        disk.event(EventKind::RemoveDir, dir)?;
        disk.names.remove(name);
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut disk = self.disk.lock();
        disk.progress.operation()?;
        let folder = disk.names.folder(dir)?;
        if disk.sync_event(EventKind::SyncDir, dir)?.is_some() {
            return Err(failed_sync());
        }
        disk.names.sync(folder);
        Ok(())
    }
}

fn failed_sync() -> io::Error {
    io::Error::other("the simulated device failed to write")
}
