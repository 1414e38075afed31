//! The times that `query_phases` counts. A thread keeps them and hands them to the session whose commands it
//! ran.

use crate::status::{Counter, SessionCounters};
use base::phases;

pub(super) use base::phases::is_on;

/// In the order of [`phases::Phase`].
const COUNTERS: [Counter; phases::PHASES] = [
    Counter::PhaseIdle,
    Counter::PhaseNetwork,
    Counter::PhaseParse,
    Counter::PhasePlan,
    Counter::PhaseIndex,
    Counter::PhaseRow,
    Counter::PhaseLog,
    Counter::PhaseLatchWait,
    Counter::PhaseLockWait,
    Counter::PhaseRest,
];

/// Takes the times of this thread. If it keeps none yet, it begins with the next command.
#[cold]
pub(super) fn settle(counters: &SessionCounters) {
    if phases::begin() {
        return;
    }
    let Some(spent) = phases::take() else { return };
    for (counter, nanoseconds) in COUNTERS.into_iter().zip(spent.nanoseconds) {
        counters.add(counter, nanoseconds);
    }
    counters.add(Counter::PhaseClockReadings, spent.readings);
    counters.add(Counter::PhaseCommands, 1);
}
