//! How much memory and address space the process may use, and how many descriptors.

/// Bytes of memory that the process may use: the machine's, or less if a control group allows less; a guess
/// if they cannot be read. It stays the same as long as the process runs.
#[cfg(not(any(feature = "shuttle", miri)))]
pub fn memory_bytes() -> usize {
    static BYTES: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *BYTES.get_or_init(|| {
        let read = |path: &str| std::fs::read_to_string(path).ok();
        let groups = read("/proc/self/cgroup").unwrap_or_default();
        let machine = read("/proc/meminfo").and_then(|text| memory_of(&text)).unwrap_or(16 << 30);
        group_limit(&groups, read).map_or(machine, |limit| machine.min(limit))
    })
}

#[cfg(any(feature = "shuttle", miri))]
pub fn memory_bytes() -> usize {
    0
}

/// Bytes of address space to reserve for something that may grow to what [`memory_bytes`] says. If the
/// process has a limit (`ulimit -v`, `ulimit -d`), it is a quarter of what is left of it, so that what comes
/// later gets some as well: threads, the heap, another such reservation.
pub fn room_bytes() -> usize {
    memory_bytes().min(address_space_left() / 4)
}

/// Bytes of address space that the process may still take; the largest number if there is no limit.
#[cfg(not(any(feature = "shuttle", miri)))]
fn address_space_left() -> usize {
    use rustix::process::{Resource, getrlimit};
    // Each limit with the field that counts against it, in pages. The second one is a little more than that.
    let limits = [(Resource::As, 0), (Resource::Data, 5)];
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let left = limits.map(|(resource, field)| {
        let Some(limit) = getrlimit(resource).current else { return usize::MAX };
        let pages = text.split_whitespace().nth(field).and_then(|pages| pages.parse().ok()).unwrap_or(0);
        usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(pages * rustix::param::page_size())
    });
    left[0].min(left[1])
}

#[cfg(any(feature = "shuttle", miri))]
fn address_space_left() -> usize {
    usize::MAX
}

/// How many descriptors the process may have at a time; the largest number if there is no limit.
#[cfg(not(any(feature = "shuttle", miri)))]
pub fn descriptors() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

#[cfg(any(feature = "shuttle", miri))]
pub fn descriptors() -> usize {
    usize::MAX
}

/// What `/proc/meminfo` says.
#[cfg(not(feature = "shuttle"))]
#[cfg_attr(miri, allow(dead_code, reason = "there only its test calls it"))]
fn memory_of(meminfo: &str) -> Option<usize> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.trim().trim_end_matches("kB").trim().parse::<usize>().ok()? << 10)
}

/// The lowest limit of memory among the control groups that the process is in and those above them, of either
/// version. `groups` is `/proc/self/cgroup`, and `read` gives the text of a file.
///
/// In a container the paths may be those outside of it, which are not there. Then the limit is that of the
/// topmost group that can be seen.
#[cfg(not(feature = "shuttle"))]
#[cfg_attr(miri, allow(dead_code, reason = "there only its test calls it"))]
fn group_limit(groups: &str, read: impl Fn(&str) -> Option<String>) -> Option<usize> {
    let mut lowest: Option<usize> = None;
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let (top, name) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let mut path = path.trim_end_matches('/');
        loop {
            // The second version writes "max" where there is no limit, the first one a number beyond any
            // memory.
            let limit = read(&format!("{top}{path}/{name}")).and_then(|text| text.trim().parse().ok());
            lowest = [lowest, limit].into_iter().flatten().min();
            let Some((above, _)) = path.rsplit_once('/') else { break };
            path = above;
        }
    }
    lowest
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    fn limit(groups: &str, files: &[(&str, &str)]) -> Option<usize> {
        group_limit(groups, |path| {
            files.iter().find(|(name, _)| *name == path).map(|(_, text)| text.to_string())
        })
    }

    #[test]
    fn the_lowest_limit_of_the_groups_above_counts() {
        let files = [
            ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/memory.max", "536870912\n"),
            ("/sys/fs/cgroup/memory.max", "1073741824\n"),
        ];
        assert_eq!(limit("0::/a/b\n", &files), Some(512 << 20));
        assert_eq!(limit("0::/\n", &files), Some(1 << 30), "in a container, which sees its own as the top");
        assert_eq!(limit("0::/elsewhere\n", &files), Some(1 << 30));
        assert_eq!(limit("0::/\n", &[("/sys/fs/cgroup/memory.max", "max\n")]), None);
        assert_eq!(limit("", &files), None);
    }

    #[test]
    fn groups_of_the_first_version_count_as_well() {
        let files = [
            ("/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "268435456\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
        ];
        let groups = "5:cpu,cpuacct:/docker/1\n4:memory:/docker/1\n0::/\n";
        assert_eq!(limit(groups, &files), Some(256 << 20));
        assert_eq!(limit("4:cpu:/docker/1\n", &files), None);
        assert_eq!(limit("4:memory:/gone\n", &files), Some(9223372036854771712));
    }

    #[test]
    fn the_machines_memory_is_read_in_bytes() {
        assert_eq!(memory_of("MemFree: 1 kB\nMemTotal:       16384 kB\n"), Some(16 << 20));
        assert_eq!(memory_of(""), None);
        #[cfg(not(miri))]
        assert!(memory_bytes() > 1 << 20 && room_bytes() <= memory_bytes());
    }
}
