//! Folders and names: as the process sees them, as the device has them, and the changes between.

use super::content::Content;
use super::dice::{Dice, Luck};
use base::sync::{Arc, Mutex};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path};

/// Folders are numbered and not named by their path: a folder that is removed and made again is another one.
pub(super) type FolderId = u64;
const ROOT: FolderId = 0;

#[derive(Clone, Debug)]
pub(super) enum Node {
    File(Arc<Mutex<Content>>),
    Folder(FolderId),
}

/// A place in a folder, taken or not.
pub(super) type Name = (FolderId, OsString);

type Entries = BTreeMap<Name, Node>;

#[derive(Debug, Default)]
pub(super) struct Names {
    live: Entries,
    durable: Entries,
    /// Changes that are not durable yet, oldest first.
    pending: Vec<Change>,
    last_folder: FolderId,
}

/// One atomic change of names: a creation, a removal, or a rename with its two sides.
#[derive(Debug)]
struct Change {
    sets: Vec<(Name, Option<Node>)>,
    /// Folders that must still be synced before the change is durable.
    unsynced: BTreeSet<FolderId>,
    /// The folder that this change removes: it was empty, so that whatever emptied it came first.
    empties: Option<FolderId>,
}

impl Change {
    /// Whether this change cannot have reached the device without an earlier one: they touch the same name.
    fn needs(&self, earlier: &Change) -> bool {
        earlier.sets.iter().any(|(name, _)| {
            self.empties == Some(name.0) || self.sets.iter().any(|(own_name, _)| own_name == name)
        })
    }

    fn apply(&self, entries: &mut Entries) {
        for (name, node) in &self.sets {
            match node {
                Some(node) => entries.insert(name.clone(), node.clone()),
                None => entries.remove(name),
            };
        }
    }
}

/// The path's parts. The root and the working folder are the same folder.
fn parts(path: &Path) -> impl Iterator<Item = &OsStr> {
    path.components()
        .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir))
        .map(Component::as_os_str)
}

pub(super) fn missing(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{}: no such file or folder", path.display()))
}

fn children(entries: &Entries, folder: FolderId) -> impl Iterator<Item = (&Name, &Node)> {
    entries.range((folder, OsString::new())..).take_while(move |((parent, _), _)| *parent == folder)
}

impl Names {
    pub(super) fn folder(&self, path: &Path) -> io::Result<FolderId> {
        let mut folder = ROOT;
        for part in parts(path) {
            match self.live.get(&(folder, part.to_os_string())) {
                Some(Node::Folder(id)) => folder = *id,
                Some(Node::File(_)) => return Err(io::ErrorKind::NotADirectory.into()),
                None => return Err(missing(path)),
            }
        }
        Ok(folder)
    }

    /// The place that `path` names, in a folder that exists.
    pub(super) fn name(&self, path: &Path) -> io::Result<Name> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = path.parent().unwrap_or(Path::new(""));
        Ok((self.folder(parent)?, name.to_os_string()))
    }

    pub(super) fn get(&self, name: &Name) -> Option<&Node> {
        self.live.get(name)
    }

    /// The names in a folder, sorted.
    pub(super) fn list(&self, folder: FolderId) -> impl Iterator<Item = &OsString> {
        children(&self.live, folder).map(|((_, name), _)| name)
    }

    /// Every file that has a name.
    pub(super) fn files(&self) -> impl Iterator<Item = &Arc<Mutex<Content>>> {
        self.live.values().filter_map(|node| match node {
            Node::File(content) => Some(content),
            Node::Folder(_) => None,
        })
    }

    pub(super) fn create(&mut self, name: Name) -> Arc<Mutex<Content>> {
        let content = Arc::new(Mutex::new(Content::default()));
        self.change(vec![(name, Some(Node::File(content.clone())))], None);
        content
    }

    pub(super) fn create_folder(&mut self, name: Name) {
        self.last_folder += 1;
        self.change(vec![(name, Some(Node::Folder(self.last_folder)))], None);
    }

    pub(super) fn remove(&mut self, name: Name) {
        let empties = match self.live.get(&name) {
            Some(Node::Folder(id)) => Some(*id),
            _ => None,
        };
        self.change(vec![(name, None)], empties);
    }

    pub(super) fn rename(&mut self, from: Name, to: Name, node: Node) {
        self.change(vec![(from, None), (to, Some(node))], None);
    }

    fn change(&mut self, sets: Vec<(Name, Option<Node>)>, empties: Option<FolderId>) {
        let unsynced = sets.iter().map(|(name, _)| name.0).collect();
        let change = Change { sets, unsynced, empties };
        change.apply(&mut self.live);
        self.pending.push(change);
    }

    /// Makes the changes in the folder durable, and what came before them on the same names. A rename between
    /// two folders is durable when both have been synced.
    pub(super) fn sync(&mut self, folder: FolderId) {
        for change in &mut self.pending {
            change.unsynced.remove(&folder);
        }
        let mut due: Vec<bool> = self.pending.iter().map(|change| change.unsynced.is_empty()).collect();
        for later in (0..due.len()).rev() {
            for earlier in 0..later {
                due[earlier] |= due[later] && self.pending[later].needs(&self.pending[earlier]);
            }
        }
        let mut due = due.into_iter();
        let durable = &mut self.durable;
        self.pending.retain(|change| {
            let is_due = due.next() == Some(true);
            if is_due {
                change.apply(durable);
            }
            !is_due
        });
    }

    /// The tree as a crash now leaves it: each pending change there or not, but none without those that it
    /// needs; then what can be reached from the root, each file as its own crash leaves it.
    pub(super) fn crash(&self, luck: Luck, dice: &mut Dice) -> Names {
        let odds = dice.odds(luck);
        let mut stored = self.durable.clone();
        let mut arrived = Vec::with_capacity(self.pending.len());
        for (at, change) in self.pending.iter().enumerate() {
            let chosen = dice.chance(odds);
            let possible =
                || (0..at).all(|earlier| arrived[earlier] || !change.needs(&self.pending[earlier]));
            let arrives = chosen && possible();
            if arrives {
                change.apply(&mut stored);
            }
            arrived.push(arrives);
        }
        let mut reached = Entries::new();
        let mut folders = vec![ROOT];
        while let Some(folder) = folders.pop() {
            for (name, node) in children(&stored, folder) {
                let node = match node {
                    Node::Folder(id) => {
                        folders.push(*id);
                        Node::Folder(*id)
                    }
                    Node::File(content) => {
                        let left = content.lock().crash(luck, dice);
                        Node::File(Arc::new(Mutex::new(left)))
                    }
                };
                reached.insert(name.clone(), node);
            }
        }
        Names { live: reached.clone(), durable: reached, pending: Vec::new(), last_folder: self.last_folder }
    }
}
