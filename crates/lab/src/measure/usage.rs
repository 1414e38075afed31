//! The processor time and the context switches of processes, summed over their threads.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Whose threads to sum up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Process {
    /// The process of a server on this machine.
    Other(u32),
    /// The lab itself, without threads whose name starts with this.
    OwnExcept(&'static str),
    /// The lab's own threads whose name starts with this.
    OwnNamed(&'static str),
    /// The whole lab.
    Own,
}

/// A reading of a process's counters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Usage {
    pub at: Instant,
    pub cpu: Duration,
    pub context_switches: u64,
}

/// What was spent between two readings.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Spent {
    pub cpus: f64,
    pub context_switches_per_s: f64,
}

impl Usage {
    /// Reads the counters; `None` if the process is gone or the counters cannot be read.
    pub(crate) fn of(process: &Process) -> Option<Usage> {
        let at = Instant::now();
        let named = |name: &str, prefix: &str| name.starts_with(prefix);
        let (cpu, context_switches) = match process {
            Process::Own => tasks("/proc/self/task", |_| true)?,
            Process::Other(pid) => tasks(&format!("/proc/{pid}/task"), |_| true)?,
            Process::OwnNamed(prefix) => tasks("/proc/self/task", |name| named(name, prefix))?,
            Process::OwnExcept(prefix) => tasks("/proc/self/task", |name| !named(name, prefix))?,
        };
        Some(Usage { at, cpu, context_switches })
    }

    /// What was spent from `self` to `later`. If threads ended in between, sums may shrink: then the result
    /// is 0.
    pub(crate) fn until(&self, later: &Usage) -> Option<Spent> {
        let seconds = later.at.saturating_duration_since(self.at).as_secs_f64();
        if seconds <= 0.0 {
            return None;
        }
        let switches = later.context_switches.saturating_sub(self.context_switches);
        Some(Spent {
            cpus: later.cpu.saturating_sub(self.cpu).as_secs_f64() / seconds,
            context_switches_per_s: switches as f64 / seconds,
        })
    }
}

/// The name of [`resident_mib`] among a sample's extras.
pub(crate) const MEMORY: &str = "resident memory, MiB";

/// Resident memory of a whole process, in MiB. For threads of the lab it is the lab's.
pub(crate) fn resident_mib(process: &Process) -> Option<f64> {
    let path = match process {
        Process::Other(pid) => format!("/proc/{pid}/status"),
        Process::Own | Process::OwnNamed(_) | Process::OwnExcept(_) => "/proc/self/status".to_string(),
    };
    let status = fs::read_to_string(path).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.trim().split(' ').next()?.parse().ok()?;
    Some(kib / 1024.0)
}

/// The sums over those threads of a task folder whose names `wanted` accepts.
fn tasks(folder: &str, wanted: impl Fn(&str) -> bool) -> Option<(Duration, u64)> {
    let mut cpu = Duration::ZERO;
    let mut switches = 0;
    let mut any = false;
    for entry in fs::read_dir(folder).ok()?.flatten() {
        let task = entry.path();
        let Ok(status) = fs::read_to_string(task.join("status")) else {
            continue; // It ended just now.
        };
        let (name, task_switches) = parse_status(&status);
        if !wanted(name) {
            continue;
        }
        any = true;
        switches += task_switches;
        cpu += cpu_of(&task).unwrap_or_default();
    }
    any.then_some((cpu, switches))
}

/// The time on a processor, in nanoseconds where the kernel keeps scheduler statistics, else in ticks.
fn cpu_of(task: &Path) -> Option<Duration> {
    if let Ok(statistics) = fs::read_to_string(task.join("schedstat"))
        && let Some(nanoseconds) = statistics.split_whitespace().next().and_then(|field| field.parse().ok())
    {
        return Some(Duration::from_nanos(nanoseconds));
    }
    parse_stat(&fs::read_to_string(task.join("stat")).ok()?, rustix::param::clock_ticks_per_second())
}

/// A thread's name and its context switches, from `/proc/PID/task/TID/status`.
fn parse_status(status: &str) -> (&str, u64) {
    let mut name = "";
    let mut switches = 0;
    for line in status.lines() {
        if let Some(value) = line.strip_prefix("Name:") {
            name = value.trim();
        } else if let Some((_, value)) = line.split_once("voluntary_ctxt_switches:") {
            switches += value.trim().parse::<u64>().unwrap_or(0);
        }
    }
    (name, switches)
}

/// User and system time from `/proc/PID/stat`, whose second field is a name that may hold anything.
fn parse_stat(stat: &str, ticks_per_second: u64) -> Option<Duration> {
    let after_name = &stat[stat.rfind(')')? + 1..];
    let mut fields = after_name.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(Duration::from_secs_f64((user + system) as f64 / ticks_per_second.max(1) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_memory_as_long_as_it_lives() {
        assert!(resident_mib(&Process::Own).unwrap() > 1.0);
        assert!(resident_mib(&Process::Other(std::process::id())).unwrap() > 1.0);
        assert_eq!(resident_mib(&Process::Other(u32::MAX)), None);
    }

    #[test]
    fn both_kinds_of_context_switches_count() {
        let status = "Name:\tnull-server 3\nState:\tR\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t7\n";
        assert_eq!(parse_status(status), ("null-server 3", 157));
    }

    #[test]
    fn a_name_with_spaces_and_brackets_does_not_shift_the_fields() {
        let stat = "42 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0 1 0 100 1 1";
        assert_eq!(parse_stat(stat, 100), Some(Duration::from_secs(3)));
        assert_eq!(parse_stat("nonsense", 100), None);
    }

    #[test]
    fn work_shows_in_the_usage_of_the_process_that_did_it() {
        let processes = [Process::Own, Process::Other(std::process::id()), Process::OwnExcept("nobody")];
        for process in processes {
            let before = Usage::of(&process).unwrap();
            let mut sum = 0u64;
            while Usage::of(&process).unwrap().cpu < before.cpu + Duration::from_millis(20) {
                sum = std::hint::black_box(sum + 1);
            }
            let spent = before.until(&Usage::of(&process).unwrap()).unwrap();
            assert!(spent.cpus > 0.0);
        }
        assert_eq!(Usage::of(&Process::OwnNamed("no such thread")), None);
        assert_eq!(Usage::of(&Process::Other(u32::MAX)), None);
    }
}
