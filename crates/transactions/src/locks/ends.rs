//! Which transactions wait for which transaction to end.

use super::PARTITIONS;
use super::waiter::Waiter;
use base::hash::HashMap;
use base::sync::{Arc, CachePadded, Mutex};

base::latch_class!(pub EndsLatch, "ends of transactions");

/// The waiting transactions, by the one that they wait for.
pub type Partition = HashMap<u64, Vec<(u64, Arc<Waiter>)>>;

/// Partitioned by id, so that transactions that nobody waits for end without meeting each other here.
#[derive(Debug)]
pub struct Ends {
    partitions: Box<[CachePadded<Mutex<Partition, EndsLatch>>]>,
}

impl Ends {
    pub fn new() -> Ends {
        Ends { partitions: (0..PARTITIONS).map(|_| CachePadded::default()).collect() }
    }

    pub fn partition(&self, id: u64) -> &Mutex<Partition, EndsLatch> {
        &self.partitions[id as usize % self.partitions.len()]
    }

    pub fn len(&self) -> usize {
        self.partitions.iter().map(|partition| partition.lock().len()).sum()
    }
}

/// `owner` no longer waits for `blocker`.
pub fn leave(partition: &mut Partition, blocker: u64, owner: u64) {
    if let Some(waiters) = partition.get_mut(&blocker) {
        waiters.retain(|(waiting, _)| *waiting != owner);
        if waiters.is_empty() {
            partition.remove(&blocker);
        }
    }
}
