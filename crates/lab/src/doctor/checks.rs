//! The checks, each from facts to a finding.

use super::machine::bytes;
use super::{Facts, Finding, Plan, Verdict};

/// Descriptors that a server needs beside those of its connections and its open tables, about.
const OPEN_FILES_BESIDE: u64 = 600;
/// If more than this share of the machine is busy before the run starts, the figures suffer.
const BUSY_SHARE_MAX: f64 = 0.05;
const STOLEN_SHARE_MAX: f64 = 0.01;

pub(crate) fn all(facts: &Facts, plan: &Plan) -> Vec<Finding> {
    [
        Some(build(facts)),
        open_files(facts, plan),
        memory(facts, plan),
        disk(facts, plan),
        io_scheduler(facts),
        Some(governor(facts)),
        huge_pages(facts),
        swap(facts),
        clock_source(facts),
        other_load(facts),
        stolen(facts),
        processors(facts),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn build(facts: &Facts) -> Finding {
    const CHECK: &str = "build";
    if facts.debug_build {
        return Finding::with(
            CHECK,
            Verdict::Warning,
            "this is a debug build",
            "measure a release build: cargo run --release -- lab run ...",
        );
    }
    Finding::good(CHECK, "release")
}

fn open_files(facts: &Facts, plan: &Plan) -> Option<Finding> {
    const CHECK: &str = "open files";
    let limit = facts.open_files_max?;
    // If client and server share a process, both ends of a connection count against its limit.
    let needed = u64::from(plan.threads_max) * 2 + OPEN_FILES_BESIDE;
    let shown = if limit == u64::MAX { "unlimited".to_string() } else { limit.to_string() };
    let found = format!("limit {shown}, {needed} needed for {} threads", plan.threads_max);
    if limit >= needed {
        return Some(Finding::good(CHECK, found));
    }
    let advice = if facts.open_files_hard_max.is_some_and(|hard| hard >= needed) {
        format!("ulimit -n {needed}")
    } else {
        format!(
            "raise the hard limit: `nofile` in /etc/security/limits.conf, or LimitNOFILE={needed} of the service"
        )
    };
    let verdict =
        if limit < u64::from(plan.threads_max) * 2 + 50 { Verdict::Problem } else { Verdict::Warning };
    Some(Finding::with(CHECK, verdict, found, advice))
}

fn memory(facts: &Facts, plan: &Plan) -> Option<Finding> {
    const CHECK: &str = "memory";
    let available = facts.memory_available_bytes?.min(facts.memory_limit_bytes.unwrap_or(u64::MAX));
    let found = format!("{} available, about {} needed", bytes(available), bytes(plan.memory_bytes));
    if available >= plan.memory_bytes {
        return Some(Finding::good(CHECK, found));
    }
    let advice = "fewer --rows, a smaller --cache-size or fewer targets; otherwise the device is measured, not the cache";
    Some(Finding::with(CHECK, Verdict::Warning, found, advice))
}

fn disk(facts: &Facts, plan: &Plan) -> Option<Finding> {
    const CHECK: &str = "disk";
    let free = facts.disk_free_bytes?;
    let place = facts.filesystem.as_deref().unwrap_or("unknown file system");
    let found = format!(
        "{} free in {} ({place}), about {} needed",
        bytes(free),
        plan.scratch.display(),
        bytes(plan.disk_bytes)
    );
    if free >= plan.disk_bytes {
        return Some(Finding::good(CHECK, found));
    }
    Some(Finding::with(CHECK, Verdict::Problem, found, "fewer --rows, or --scratch FOLDER on a larger disk"))
}

fn io_scheduler(facts: &Facts) -> Option<Finding> {
    const CHECK: &str = "I/O scheduler";
    let (device, schedulers) = facts.io_scheduler.as_ref()?;
    let found = format!("{device}: {schedulers}");
    let active = chosen(schedulers);
    if matches!(active, "none" | "noop" | "mq-deadline" | "deadline" | "kyber") {
        return Some(Finding::good(CHECK, found));
    }
    let better = if schedulers.contains("mq-deadline") { "mq-deadline" } else { "none" };
    let advice = format!("echo {better} > /sys/block/{device}/queue/scheduler");
    Some(Finding::with(CHECK, Verdict::Warning, found, advice))
}

fn governor(facts: &Facts) -> Finding {
    const CHECK: &str = "CPU governor";
    if facts.turbo_off == Some(true) {
        return Finding::note(CHECK, format!("{}, turbo off", facts.governors.join(", ")));
    }
    match facts.governors.as_slice() {
        [] => Finding::note(CHECK, "not visible (a virtual machine, or no frequency scaling)"),
        [only] if only == "performance" => Finding::good(CHECK, only.as_str()),
        governors => Finding::with(
            CHECK,
            Verdict::Warning,
            governors.join(", "),
            "cpupower frequency-set --governor performance",
        ),
    }
}

fn huge_pages(facts: &Facts) -> Option<Finding> {
    const CHECK: &str = "transparent huge pages";
    let enabled = facts.huge_pages.as_ref()?;
    let defrag = facts.huge_pages_defrag.as_deref().map(chosen).unwrap_or("unknown");
    let found = format!("{enabled}, defrag {defrag}");
    match chosen(enabled) {
        "never" => Some(Finding::with(
            CHECK,
            Verdict::Warning,
            found,
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled: page caches ask for huge pages and are faster with them",
        )),
        "always" if defrag == "always" => Some(Finding::with(
            CHECK,
            Verdict::Warning,
            found,
            "echo madvise > /sys/kernel/mm/transparent_hugepage/defrag: else any thread may have to wait until the kernel has made room",
        )),
        _ => Some(Finding::good(CHECK, found)),
    }
}

fn swap(facts: &Facts) -> Option<Finding> {
    const CHECK: &str = "swap";
    let total = facts.swap_total_bytes?;
    if total == 0 {
        return Some(Finding::good(CHECK, "none"));
    }
    let used = facts.swap_used_bytes.unwrap_or(0);
    let swappiness = facts.swappiness.unwrap_or(60);
    let found = format!("{} of {} used, swappiness {swappiness}", bytes(used), bytes(total));
    if used > total / 20 {
        return Some(Finding::with(
            CHECK,
            Verdict::Warning,
            found,
            "free memory, then swapoff -a && swapon -a",
        ));
    }
    if swappiness > 10 {
        return Some(Finding::with(
            CHECK,
            Verdict::Note,
            found,
            "sysctl vm.swappiness=1 keeps caches in memory",
        ));
    }
    Some(Finding::good(CHECK, found))
}

fn clock_source(facts: &Facts) -> Option<Finding> {
    const CHECK: &str = "clock source";
    let current = facts.clock_source.as_ref()?;
    if matches!(current.as_str(), "tsc" | "kvm-clock" | "arch_sys_counter" | "hyperv_clocksource_tsc_page") {
        return Some(Finding::good(CHECK, current.as_str()));
    }
    let advice = if facts.clock_sources.as_ref().is_some_and(|known| known.contains("tsc")) {
        "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource".to_string()
    } else {
        "reading the time costs a system call here; latencies of single queries include it".to_string()
    };
    Some(Finding::with(CHECK, Verdict::Warning, format!("{current} (slow)"), advice))
}

fn other_load(facts: &Facts) -> Option<Finding> {
    const CHECK: &str = "other load";
    let busy = facts.busy_share?;
    let mut found = format!("{:.0} % of the processors busy", busy * 100.0);
    if let Some(load) = facts.load_one_minute {
        found.push_str(&format!(", load average {load}"));
    }
    if busy <= BUSY_SHARE_MAX {
        return Some(Finding::good(CHECK, found));
    }
    if !facts.busiest.is_empty() {
        let names: Vec<String> =
            facts.busiest.iter().map(|(name, used)| format!("{name} {used:.1}")).collect();
        found.push_str(&format!(" (processors: {})", names.join(", ")));
    }
    Some(Finding::with(
        CHECK,
        Verdict::Warning,
        found,
        "stop other programs; the interleaved rounds only reduce the effect",
    ))
}

fn stolen(facts: &Facts) -> Option<Finding> {
    const CHECK: &str = "stolen time";
    let stolen = facts.stolen_share?;
    if stolen > STOLEN_SHARE_MAX {
        let found = format!("{:.1} % of the processors' time went to other virtual machines", stolen * 100.0);
        let advice = "measure on a machine that you do not share, or take more --samples";
        return Some(Finding::with(CHECK, Verdict::Warning, found, advice));
    }
    facts.virtual_machine.then(|| {
        Finding::note(CHECK, "none now, but this is a virtual machine: compare figures of one run only")
    })
}

fn processors(facts: &Facts) -> Option<Finding> {
    const CHECK: &str = "processors";
    if let Some(granted) = facts.processors_granted
        && granted < facts.processors as f64
    {
        return Some(Finding::with(
            CHECK,
            Verdict::Warning,
            format!("{} visible, but the control group grants {granted:.1}", facts.processors),
            "lift cpu.max of the control group (docker: --cpus), else threads are stopped while they hold latches",
        ));
    }
    if facts.processors < 4 {
        return Some(Finding::note(
            CHECK,
            format!("{}: latches are contended far less than on a machine with many", facts.processors),
        ));
    }
    Some(Finding::good(CHECK, facts.processors.to_string()))
}

/// The word in brackets, which is how the kernel shows a choice. The whole line if there are no brackets.
fn chosen(line: &str) -> &str {
    match (line.find('['), line.find(']')) {
        (Some(open), Some(close)) if open < close => &line[open + 1..close],
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn plan() -> Plan {
        Plan { threads_max: 128, memory_bytes: 1 << 30, disk_bytes: 1 << 30, scratch: PathBuf::from("/tmp") }
    }

    fn sound_machine() -> Facts {
        Facts {
            open_files_max: Some(1 << 20),
            open_files_hard_max: Some(1 << 20),
            processors: 24,
            memory_available_bytes: Some(8 << 30),
            disk_free_bytes: Some(100 << 30),
            io_scheduler: Some(("sda".to_string(), "[mq-deadline] none".to_string())),
            governors: vec!["performance".to_string()],
            huge_pages: Some("always [madvise] never".to_string()),
            swap_total_bytes: Some(0),
            clock_source: Some("tsc".to_string()),
            busy_share: Some(0.01),
            stolen_share: Some(0.0),
            ..Facts::default()
        }
    }

    fn verdict(facts: &Facts, check: &str) -> Verdict {
        all(facts, &plan()).iter().find(|finding| finding.check == check).unwrap().verdict
    }

    #[test]
    fn a_sound_machine_has_nothing_to_change() {
        let findings = all(&sound_machine(), &plan());
        assert!(findings.iter().all(|finding| finding.verdict == Verdict::Good), "{findings:?}");
        assert!(findings.len() >= 10);
    }

    #[test]
    fn too_few_open_files_for_the_threads_is_told_with_the_command_that_helps() {
        let facts = Facts { open_files_max: Some(256), ..sound_machine() };
        let findings = all(&facts, &plan());
        let finding = findings.iter().find(|finding| finding.check == "open files").unwrap();
        assert_eq!(finding.verdict, Verdict::Problem);
        assert_eq!(finding.advice.as_deref(), Some("ulimit -n 856"));
        let facts = Facts { open_files_hard_max: Some(256), ..facts };
        let findings = all(&facts, &plan());
        let finding = findings.iter().find(|finding| finding.check == "open files").unwrap();
        assert!(finding.advice.as_deref().unwrap().contains("limits.conf"));
    }

    #[test]
    fn every_unsound_fact_is_found() {
        let sound = sound_machine;
        let unsound = [
            ("memory", Facts { memory_available_bytes: Some(1 << 20), ..sound() }, Verdict::Warning),
            ("memory", Facts { memory_limit_bytes: Some(1 << 20), ..sound() }, Verdict::Warning),
            ("disk", Facts { disk_free_bytes: Some(1 << 20), ..sound() }, Verdict::Problem),
            (
                "I/O scheduler",
                Facts { io_scheduler: Some(("sda".to_string(), "none [bfq]".to_string())), ..sound() },
                Verdict::Warning,
            ),
            ("CPU governor", Facts { governors: vec!["powersave".to_string()], ..sound() }, Verdict::Warning),
            (
                "transparent huge pages",
                Facts { huge_pages: Some("always madvise [never]".to_string()), ..sound() },
                Verdict::Warning,
            ),
            (
                "swap",
                Facts { swap_total_bytes: Some(100), swap_used_bytes: Some(50), ..sound() },
                Verdict::Warning,
            ),
            ("clock source", Facts { clock_source: Some("hpet".to_string()), ..sound() }, Verdict::Warning),
            ("other load", Facts { busy_share: Some(0.4), ..sound() }, Verdict::Warning),
            ("stolen time", Facts { stolen_share: Some(0.2), ..sound() }, Verdict::Warning),
            ("processors", Facts { processors_granted: Some(1.5), ..sound() }, Verdict::Warning),
            ("build", Facts { debug_build: true, ..sound() }, Verdict::Warning),
        ];
        for (check, facts, expected) in unsound {
            assert_eq!(verdict(&facts, check), expected, "{check}");
            let finding = all(&facts, &plan()).into_iter().find(|finding| finding.check == check).unwrap();
            assert!(finding.advice.is_some(), "{check}");
        }
    }
}
