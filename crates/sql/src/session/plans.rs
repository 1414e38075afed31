//! Plans by the shape of their statement.
//!
//! Each session keeps the plans that it used last; behind them all sessions share a larger store. A hit in
//! the session's own writes to no memory that others read, and takes no latch.

use crate::expr::Slots;
use crate::plan::plan::StatementPlan;
use crate::{ResultSink, Session, SqlError};
use base::sync::{Arc, RwLock};
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

base::latch_class!(pub PlansLatch, "statement plans");

/// How many plans a session keeps.
const SESSION_PLANS_MAX: usize = 128;
/// How many plans all sessions share.
const SHARED_PLANS_MAX: usize = 2048;
/// Longer shapes are planned each time: they are generated and will not come again.
const KEY_BYTES_MAX: usize = 16 << 10;

/// A statement ready to run.
#[derive(Debug)]
pub(crate) enum Plan {
    Query(StatementPlan),
    Change(Box<dyn ChangePlan>),
}

/// An INSERT, UPDATE or DELETE ready to run.
pub(crate) trait ChangePlan: Send + Sync + std::fmt::Debug {
    /// False once a table that the plan stands on has changed.
    fn is_current(&self) -> bool;

    /// Runs the statement with these values in its slots, up to the end that the client sees.
    ///
    /// # Errors
    /// The statement's own; then nothing of it is done.
    fn run(&self, session: &mut Session, slots: Slots<'_>, sink: &mut dyn ResultSink)
    -> Result<(), SqlError>;
}

impl Plan {
    pub(crate) fn is_current(&self) -> bool {
        match self {
            Plan::Query(plan) => plan.is_current(),
            Plan::Change(plan) => plan.is_current(),
        }
    }

    fn is_cacheable(&self) -> bool {
        match self {
            Plan::Query(plan) => plan.cacheable,
            Plan::Change(_) => true,
        }
    }
}

/// A session's plans.
#[derive(Debug, Default)]
pub(crate) struct SessionPlans {
    plans: HashMap<Box<[u8]>, CachedPlan, KeyHash>,
    /// Grows with every use.
    clock: u64,
}

#[derive(Debug)]
struct CachedPlan {
    plan: Arc<Plan>,
    used: u64,
}

impl SessionPlans {
    /// The plan of a shape, if it is still good.
    #[inline]
    pub(crate) fn find(&mut self, key: &[u8]) -> Option<&Arc<Plan>> {
        self.clock += 1;
        let cached = self.plans.get_mut(key)?;
        cached.used = self.clock;
        cached.plan.is_current().then_some(&cached.plan)
    }

    /// The plan of a shape from the shared store, or a new one.
    ///
    /// # Errors
    /// Those of planning.
    pub(crate) fn make(
        &mut self,
        key: &[u8],
        shared: &SharedPlans,
        plan: impl FnOnce() -> Result<Plan, SqlError>,
    ) -> Result<Arc<Plan>, SqlError> {
        let plan = match shared.find(key) {
            Some(plan) => plan,
            None => {
                let plan = Arc::new(plan()?);
                if !plan.is_cacheable() || key.len() > KEY_BYTES_MAX {
                    return Ok(plan);
                }
                shared.keep(key, &plan);
                plan
            }
        };
        if self.plans.len() >= SESSION_PLANS_MAX && !self.plans.contains_key(key) {
            self.evict();
        }
        self.plans.insert(Box::from(key), CachedPlan { plan: plan.clone(), used: self.clock });
        Ok(plan)
    }

    /// Throws the less recently used half away.
    fn evict(&mut self) {
        let mut uses: Vec<u64> = self.plans.values().map(|cached| cached.used).collect();
        let middle = uses.len() / 2;
        let (_, median, _) = uses.select_nth_unstable(middle);
        let median = *median;
        self.plans.retain(|_, cached| cached.used >= median);
    }

    /// How many plans are kept.
    pub(crate) fn len(&self) -> usize {
        self.plans.len()
    }
}

/// The plans that all sessions share.
#[derive(Debug, Default)]
pub(crate) struct SharedPlans(RwLock<PlansByKey, PlansLatch>);

type PlansByKey = HashMap<Box<[u8]>, Arc<Plan>, KeyHash>;

impl SharedPlans {
    fn find(&self, key: &[u8]) -> Option<Arc<Plan>> {
        self.0.read().get(key).filter(|plan| plan.is_current()).cloned()
    }

    fn keep(&self, key: &[u8], plan: &Arc<Plan>) {
        let mut plans = self.0.write();
        if plans.len() >= SHARED_PLANS_MAX {
            // Stale plans hold on to tables that are gone; then any half will do.
            plans.retain(|_, plan| plan.is_current());
            let mut nth = 0;
            if plans.len() >= SHARED_PLANS_MAX {
                plans.retain(|_, _| {
                    nth += 1;
                    nth % 2 == 0
                });
            }
        }
        plans.insert(Box::from(key), plan.clone());
    }
}

/// Hashes shapes: eight bytes a step, multiplied and folded. Not for keys of strangers that must not collide:
/// the number of plans is small and a collision costs one comparison.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyHash;

impl BuildHasher for KeyHash {
    type Hasher = KeyHasher;
    fn build_hasher(&self) -> KeyHasher {
        KeyHasher(0x243f_6a88_85a3_08d3)
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyHasher(u64);

impl KeyHasher {
    #[inline]
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}

impl Hasher for KeyHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            let mut word = [0; 8];
            word.copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
        let rest = chunks.remainder();
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        self.mix(u64::from_le_bytes(word) ^ (bytes.len() as u64) << 56);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
