//! The machine that a result was measured on, and how busy it is.

use super::facts::{cgroup_memory, cgroup_processors, meminfo_bytes, word};
use std::collections::HashMap;
use std::fs;
use std::time::Duration;

/// How long the load is watched.
const WATCH: Duration = Duration::from_millis(300);

/// How busy the machine is without the lab.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Load {
    /// 0 to 1, over all processors.
    pub busy_share: f64,
    pub stolen_share: f64,
    /// Names and processors used, the busiest first.
    pub busiest: Vec<(String, f64)>,
}

pub(crate) fn processors() -> u64 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u64)
}

/// Name and value pairs, for the result.
pub(crate) fn describe() -> Vec<(String, String)> {
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let facts = [
        ("processor", processor_model()),
        ("processors", Some(processors().to_string())),
        ("cores", Some(cores().to_string())),
        ("processors granted (cgroup)", cgroup_processors().map(|count| format!("{count:.2}"))),
        ("memory", meminfo_bytes(&memory, "MemTotal").map(bytes)),
        ("memory available", meminfo_bytes(&memory, "MemAvailable").map(bytes)),
        ("memory limit (cgroup)", cgroup_memory().map(bytes)),
        ("kernel", Some(kernel())),
        ("governor", word("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        ("transparent huge pages", word("/sys/kernel/mm/transparent_hugepage/enabled")),
        ("clock source", word("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
        ("load averages", word("/proc/loadavg")),
        ("mitigations", mitigations()),
        ("latchwork", Some(version())),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?))).collect()
}

/// The version, and the commit if the build knew it.
pub(crate) fn version() -> String {
    let build = if cfg!(debug_assertions) { "debug build" } else { "release build" };
    match option_env!("LATCHWORK_COMMIT").filter(|commit| !commit.is_empty()) {
        Some(commit) => format!("{} (commit {commit}, {build})", env!("CARGO_PKG_VERSION")),
        None => format!("{} ({build})", env!("CARGO_PKG_VERSION")),
    }
}

fn processor_model() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name") || line.starts_with("Model"))?;
    Some(line.split_once(':')?.1.trim().to_string())
}

/// Physical cores: distinct pairs of package and core among the processors.
fn cores() -> usize {
    let topology =
        |cpu: u32, field: &str| word(&format!("/sys/devices/system/cpu/cpu{cpu}/topology/{field}"));
    let mut cores: Vec<(String, String)> = (0..)
        .map_while(|cpu| Some((topology(cpu, "physical_package_id")?, topology(cpu, "core_id")?)))
        .collect();
    cores.sort();
    cores.dedup();
    cores.len().max(1)
}

fn kernel() -> String {
    let names = rustix::system::uname();
    format!(
        "{} {} {}",
        names.sysname().to_string_lossy(),
        names.release().to_string_lossy(),
        names.machine().to_string_lossy()
    )
}

/// The processor flaws that the kernel works around. The workarounds make system calls slower.
fn mitigations() -> Option<String> {
    let folder = fs::read_dir("/sys/devices/system/cpu/vulnerabilities").ok()?;
    let mut mitigated: Vec<String> = folder
        .flatten()
        .filter(|entry| {
            word(&entry.path().to_string_lossy()).is_some_and(|line| line.starts_with("Mitigation"))
        })
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    mitigated.sort();
    Some(if mitigated.is_empty() { "none".to_string() } else { mitigated.join(", ") })
}

/// Watches the machine for a moment.
pub(crate) fn load_now() -> Option<Load> {
    let (before, processes_before) = (ticks()?, process_ticks());
    std::thread::sleep(WATCH);
    let (after, processes_after) = (ticks()?, process_ticks());
    let total = after.total.saturating_sub(before.total).max(1) as f64;
    let share = |after: u64, before: u64| after.saturating_sub(before) as f64 / total;
    let own = std::process::id();
    let mut busiest: Vec<(String, f64)> = processes_after
        .into_iter()
        .filter(|(pid, _)| *pid != own)
        .filter_map(|(pid, (name, ticks))| {
            let (_, ticks_before) = processes_before.get(&pid)?;
            let used = share(ticks, *ticks_before) * processors() as f64;
            (used >= 0.05).then_some((name, used))
        })
        .collect();
    busiest.sort_by(|left, right| right.1.total_cmp(&left.1));
    busiest.truncate(4);
    Some(Load {
        busy_share: 1.0 - share(after.idle, before.idle),
        stolen_share: share(after.stolen, before.stolen),
        busiest,
    })
}

struct Ticks {
    total: u64,
    idle: u64,
    stolen: u64,
}

fn ticks() -> Option<Ticks> {
    parse_ticks(&fs::read_to_string("/proc/stat").ok()?)
}

/// `cpu user nice system idle iowait irq softirq steal guest guest_nice`; guests are in user already.
fn parse_ticks(stat: &str) -> Option<Ticks> {
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let fields: Vec<u64> = line.split_whitespace().filter_map(|field| field.parse().ok()).collect();
    if fields.len() < 8 {
        return None;
    }
    Some(Ticks { total: fields[..8].iter().sum(), idle: fields[3] + fields[4], stolen: fields[7] })
}

/// The names and ticks of all processes.
fn process_ticks() -> HashMap<u32, (String, u64)> {
    let Ok(folder) = fs::read_dir("/proc") else {
        return HashMap::new();
    };
    folder
        .flatten()
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let (open, close) = (stat.find('(')?, stat.rfind(')')?);
            let mut fields = stat.get(close + 1..)?.split_whitespace().skip(11);
            let user: u64 = fields.next()?.parse().ok()?;
            let system: u64 = fields.next()?.parse().ok()?;
            Some((pid, (stat.get(open + 1..close)?.to_string(), user + system)))
        })
        .collect()
}

/// `512 MiB`, `1.5 GiB`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 || (value - value.round()).abs() < 0.05 {
        format!("{value:.0} {}", UNITS[unit])
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// Memory that programs which are started now may take; 0 if the kernel does not tell.
pub(crate) fn memory_available_bytes() -> u64 {
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let available = meminfo_bytes(&memory, "MemAvailable").unwrap_or(0);
    cgroup_memory().map_or(available, |limit| limit.min(available))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_a_kernel_and_memory() {
        assert!(memory_available_bytes() > 0);
        let machine = describe();
        for name in ["kernel", "memory", "processors", "latchwork"] {
            assert!(machine.iter().any(|(known, value)| known == name && !value.is_empty()), "{name}");
        }
        assert!(load_now().is_some());
    }

    #[test]
    fn waiting_for_a_device_is_idle_and_stolen_time_is_not() {
        let ticks = parse_ticks("cpu  100 0 50 800 40 0 5 5 0 0\ncpu0 1 2\n").unwrap();
        assert_eq!((ticks.total, ticks.idle, ticks.stolen), (1_000, 840, 5));
        assert!(parse_ticks("cpu 1 2").is_none());
    }

    #[test]
    fn bytes_are_told_in_binary_units() {
        assert_eq!(bytes(900), "900 bytes");
        assert_eq!(bytes(512 << 20), "512 MiB");
        assert_eq!(bytes(3 << 29), "1.5 GiB");
    }
}
