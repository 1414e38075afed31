//! Limits processes and threads to some of the machine's processors, as the multi-core study did.

use crate::error::{Error, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// While this exists, the calling thread may use the first few of its processors only. Processes and threads
/// that it starts meanwhile inherit the limit and keep it.
#[derive(Debug)]
pub(crate) struct Bound {
    before: CpuSet,
}

impl Bound {
    pub(crate) fn to_first(cores: u32) -> Result<Bound> {
        let cannot = || Error::io(format!("cannot keep to {cores} processors"));
        let before = sched_getaffinity(None).map_err(|error| cannot()(error.into()))?;
        let mut few = CpuSet::new();
        let allowed = (0..CpuSet::MAX_CPU).filter(|&cpu| before.is_set(cpu));
        allowed.take(cores as usize).for_each(|cpu| few.set(cpu));
        sched_setaffinity(None, &few).map_err(|error| cannot()(error.into()))?;
        Ok(Bound { before })
    }
}

impl Drop for Bound {
    fn drop(&mut self) {
        // The thread had these processors before, so setting them again does not fail.
        let _ = sched_setaffinity(None, &self.before);
    }
}

/// Processors that the calling thread may use.
pub(crate) fn available() -> u32 {
    sched_getaffinity(None).map_or(1, |set| set.count())
}

/// The processors that a process may use, as the kernel lists them: `0-3,8`.
pub(crate) fn allowed(pid: u32) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(list.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_thread_and_its_children_have_fewer_processors_and_get_them_back() {
        let all = available();
        let bound = Bound::to_first(1).unwrap();
        assert_eq!(available(), 1);
        assert_eq!(std::thread::spawn(available).join().unwrap(), 1);
        let nproc = std::process::Command::new("nproc").output().unwrap();
        assert_eq!(String::from_utf8_lossy(&nproc.stdout).trim(), "1");
        drop(bound);
        assert_eq!(available(), all);
    }
}
