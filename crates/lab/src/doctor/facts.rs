//! Facts about the machine, for the checks.

use std::fs;
use std::path::{Path, PathBuf};

/// The needs of the planned run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub threads_max: u32,
    /// Memory for caches and data of all targets that run at the same time, in bytes.
    pub memory_bytes: u64,
    pub disk_bytes: u64,
    /// The folder for the data.
    pub scratch: PathBuf,
}

/// The machine as found. `None` = the kernel does not tell.
#[derive(Clone, Default, PartialEq, Debug)]
pub(crate) struct Facts {
    pub open_files_max: Option<u64>,
    pub open_files_hard_max: Option<u64>,
    pub processors: u64,
    /// Processors that a control group grants, if it limits them.
    pub processors_granted: Option<f64>,
    pub memory_available_bytes: Option<u64>,
    pub memory_limit_bytes: Option<u64>,
    pub disk_free_bytes: Option<u64>,
    pub filesystem: Option<String>,
    /// The scratch folder's device and its schedulers, the active one in brackets.
    pub io_scheduler: Option<(String, String)>,
    pub governors: Vec<String>,
    pub turbo_off: Option<bool>,
    /// `always [madvise] never`.
    pub huge_pages: Option<String>,
    pub huge_pages_defrag: Option<String>,
    pub swap_total_bytes: Option<u64>,
    pub swap_used_bytes: Option<u64>,
    pub swappiness: Option<u32>,
    pub clock_source: Option<String>,
    pub clock_sources: Option<String>,
    /// Runnable and waiting threads on the machine over the last minute.
    pub load_one_minute: Option<f64>,
    /// The share of all processors that is busy right now, 0 to 1.
    pub busy_share: Option<f64>,
    /// The share of time that the hypervisor gave to other machines, 0 to 1.
    pub stolen_share: Option<f64>,
    /// The busiest programs: name and processors used.
    pub busiest: Vec<(String, f64)>,
    pub virtual_machine: bool,
    pub debug_build: bool,
}

impl Facts {
    pub(crate) fn gather(plan: &Plan) -> Facts {
        let files = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let folder = existing_ancestor(&plan.scratch);
        let filesystem = rustix::fs::statvfs(&folder).ok();
        let load = super::machine::load_now();
        let swap = |field| meminfo_bytes(&memory, field);
        Facts {
            // `None` from the kernel means unlimited.
            open_files_max: Some(files.current.unwrap_or(u64::MAX)),
            open_files_hard_max: Some(files.maximum.unwrap_or(u64::MAX)),
            processors: super::machine::processors(),
            processors_granted: cgroup_processors(),
            memory_available_bytes: meminfo_bytes(&memory, "MemAvailable"),
            memory_limit_bytes: cgroup_memory(),
            disk_free_bytes: filesystem.map(|filesystem| filesystem.f_bavail * filesystem.f_frsize),
            filesystem: filesystem_name(&folder),
            io_scheduler: io_scheduler(&folder),
            governors: governors(),
            turbo_off: word("/sys/devices/system/cpu/intel_pstate/no_turbo").map(|value| value == "1"),
            huge_pages: word("/sys/kernel/mm/transparent_hugepage/enabled"),
            huge_pages_defrag: word("/sys/kernel/mm/transparent_hugepage/defrag"),
            swap_total_bytes: swap("SwapTotal"),
            swap_used_bytes: swap("SwapTotal")
                .zip(swap("SwapFree"))
                .map(|(total, free)| total.saturating_sub(free)),
            swappiness: word("/proc/sys/vm/swappiness").and_then(|value| value.parse().ok()),
            clock_source: word("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            clock_sources: word("/sys/devices/system/clocksource/clocksource0/available_clocksource"),
            load_one_minute: word("/proc/loadavg")
                .and_then(|line| line.split(' ').next().and_then(|value| value.parse().ok())),
            busy_share: load.as_ref().map(|load| load.busy_share),
            stolen_share: load.as_ref().map(|load| load.stolen_share),
            busiest: load.map(|load| load.busiest).unwrap_or_default(),
            virtual_machine: fs::read_to_string("/proc/cpuinfo").is_ok_and(|text| {
                text.lines().any(|line| line.starts_with("flags") && line.contains(" hypervisor"))
            }),
            debug_build: cfg!(debug_assertions),
        }
    }
}

/// The first line of a file of the kernel's.
pub(super) fn word(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.lines().next()?.trim().to_string()).filter(|line| !line.is_empty())
}

pub(super) fn meminfo_bytes(meminfo: &str, field: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.split(':').next() == Some(field))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kibibytes| kibibytes * 1024)
}

/// `path` itself or the nearest folder above it that is there.
fn existing_ancestor(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    absolute.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/")).to_path_buf()
}

pub(super) fn cgroup_processors() -> Option<f64> {
    let line = word("/sys/fs/cgroup/cpu.max")?;
    let (quota, period) = line.split_once(' ')?;
    Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
}

pub(super) fn cgroup_memory() -> Option<u64> {
    word("/sys/fs/cgroup/memory.max")?.parse().ok()
}

fn governors() -> Vec<String> {
    let mut governors: Vec<String> = (0..)
        .map_while(|cpu| word(&format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor")))
        .collect();
    governors.sort();
    governors.dedup();
    governors
}

/// The mount point that `folder` lies under, with its device and type.
fn mount_of(folder: &Path) -> Option<(String, String)> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ');
            let (device, point, kind) = (fields.next()?, fields.next()?, fields.next()?);
            folder.starts_with(point).then(|| (point.len(), device.to_string(), kind.to_string()))
        })
        // A later mount hides an earlier one at the same point.
        .max_by_key(|(len, ..)| *len)
        .map(|(_, device, kind)| (device, kind))
}

fn filesystem_name(folder: &Path) -> Option<String> {
    mount_of(folder).map(|(device, kind)| format!("{kind} on {device}"))
}

fn io_scheduler(folder: &Path) -> Option<(String, String)> {
    let (device, _) = mount_of(folder)?;
    let device = fs::canonicalize(&device).ok()?;
    let name = device.file_name()?.to_str()?.to_string();
    // A partition uses the queue of its disk.
    let class = fs::canonicalize(format!("/sys/class/block/{name}")).ok()?;
    let disk = if class.join("partition").exists() { class.parent()?.to_path_buf() } else { class };
    let schedulers = word(disk.join("queue/scheduler").to_str()?)?;
    Some((disk.file_name()?.to_str()?.to_string(), schedulers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_this_machine_can_be_gathered() {
        let scratch = PathBuf::from("/nonexistent/folder");
        let facts = Facts::gather(&Plan { threads_max: 1, memory_bytes: 0, disk_bytes: 0, scratch });
        assert!(facts.processors > 0);
        assert!(facts.open_files_max.is_some());
        assert!(facts.memory_available_bytes.is_some());
        assert!(facts.disk_free_bytes.is_some());
    }

    #[test]
    fn a_field_of_meminfo_is_matched_whole() {
        let text = "MemTotal: 10 kB\nSwapTotal:       3 kB\nSwapTotalX: 9 kB\n";
        assert_eq!(meminfo_bytes(text, "SwapTotal"), Some(3 * 1024));
        assert_eq!(meminfo_bytes(text, "Swap"), None);
    }
}
