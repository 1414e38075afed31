//! Limits on the block device under a folder, for servers: the kernel's block throttle, through a control
//! group.

use crate::error::{Error, Result};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A control group whose processes may do a limited number of operations a second on a device. It is removed
/// when dropped; processes that are left go back to the root group.
#[derive(Debug)]
pub(crate) struct DeviceLimit {
    group: PathBuf,
    kind: Kind,
    /// `8:0`.
    device: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// The blkio controller of cgroup v1.
    Blkio,
    /// The io controller of cgroup v2.
    Unified,
}

const BLKIO: &str = "/sys/fs/cgroup/blkio";
const UNIFIED: &str = "/sys/fs/cgroup";

impl DeviceLimit {
    /// Makes a group for the device under `folder`, without limits yet. The error is a sentence that says why
    /// there is no group.
    pub(crate) fn new(folder: &Path, name: &str) -> Result<DeviceLimit, String> {
        let device = device_of(folder)?;
        DeviceLimit::within(Path::new(BLKIO), Path::new(UNIFIED), name, device)
    }

    fn within(blkio: &Path, unified: &Path, name: &str, device: String) -> Result<DeviceLimit, String> {
        let controllers = fs::read_to_string(unified.join("cgroup.controllers")).unwrap_or_default();
        let (kind, root) = if blkio.join("blkio.throttle.read_iops_device").exists() {
            (Kind::Blkio, blkio)
        } else if controllers.split_whitespace().any(|controller| controller == "io") {
            let enable = unified.join("cgroup.subtree_control");
            fs::write(&enable, "+io")
                .map_err(|error| format!("cannot write {}: {error}", enable.display()))?;
            (Kind::Unified, unified)
        } else {
            return Err(
                "the kernel has no block throttle here: neither cgroup v1's blkio nor v2's io".to_string()
            );
        };
        let group = root.join(format!("latchwork-lab-{}-{name}", std::process::id()));
        fs::create_dir(&group)
            .map_err(|error| format!("cannot make the control group {}: {error}", group.display()))?;
        Ok(DeviceLimit { group, kind, device })
    }

    /// Adds a process, with all its present and future threads.
    pub(crate) fn add(&self, pid: u32) -> Result<()> {
        self.write("cgroup.procs", &pid.to_string())
    }

    /// Limits reads and writes to this number a second each, from now on. `None` removes the limit.
    pub(crate) fn set(&self, operations_per_second: Option<u32>) -> Result<()> {
        let device = &self.device;
        match self.kind {
            Kind::Blkio => {
                let limit = operations_per_second.unwrap_or(0);
                self.write("blkio.throttle.read_iops_device", &format!("{device} {limit}"))?;
                self.write("blkio.throttle.write_iops_device", &format!("{device} {limit}"))
            }
            Kind::Unified => {
                let limit = operations_per_second.map_or("max".to_string(), |limit| limit.to_string());
                self.write("io.max", &format!("{device} riops={limit} wiops={limit}"))
            }
        }
    }

    /// How many read operations the group's processes have done on the device so far.
    pub(crate) fn reads(&self) -> Option<u64> {
        match self.kind {
            Kind::Blkio => {
                let text = fs::read_to_string(self.group.join("blkio.throttle.io_serviced")).ok()?;
                parse_serviced(&text, &self.device)
            }
            Kind::Unified => parse_stat(&fs::read_to_string(self.group.join("io.stat")).ok()?, &self.device),
        }
    }

    /// For reports: `blkio throttle of cgroup v1 on device 8:0`.
    pub(crate) fn describe(&self) -> String {
        match self.kind {
            Kind::Blkio => format!("blkio throttle of cgroup v1 on device {}", self.device),
            Kind::Unified => format!("io.max of cgroup v2 on device {}", self.device),
        }
    }

    fn write(&self, name: &str, value: &str) -> Result<()> {
        let path = self.group.join(name);
        fs::write(&path, value).map_err(Error::path("write", &path))
    }
}

impl Drop for DeviceLimit {
    fn drop(&mut self) {
        // A process that is left in the group would keep it from being removed.
        let root = self.group.parent().map(|root| root.join("cgroup.procs"));
        for pid in fs::read_to_string(self.group.join("cgroup.procs")).unwrap_or_default().lines() {
            let _ = root.as_ref().map(|root| fs::write(root, pid));
        }
        if let Err(error) = fs::remove_dir(&self.group) {
            eprintln!("cannot remove {}: {error}", self.group.display());
        }
    }
}

/// `254:0 Read 1000`, a line an operation; no lines before the first.
fn parse_serviced(text: &str, device: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(device)?.trim().strip_prefix("Read"));
    line.map_or(Some(0), |count| count.trim().parse().ok())
}

/// `254:0 rbytes=1 wbytes=2 rios=3 wios=4 ...`, a line a device; none before the first.
fn parse_stat(text: &str, device: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(device)?.strip_prefix(' '));
    line.map_or(Some(0), |line| {
        line.split_whitespace().find_map(|field| field.strip_prefix("rios=")?.parse().ok())
    })
}

/// The whole device under a folder. The kernel throttles disks, not partitions.
fn device_of(folder: &Path) -> Result<String, String> {
    let metadata = fs::metadata(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let (major, minor) = (rustix::fs::major(metadata.dev()), rustix::fs::minor(metadata.dev()));
    let known = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}"))
        .map_err(|_| format!("{} is on no block device ({major}:{minor})", folder.display()))?;
    if !known.join("partition").exists() {
        return Ok(format!("{major}:{minor}"));
    }
    let disk = known.parent().map(|disk| disk.join("dev")).unwrap_or_default();
    let text = fs::read_to_string(&disk).map_err(|error| format!("{}: {error}", disk.display()))?;
    Ok(text.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_groups_are_written_as_the_kernel_reads_them() {
        let folder = tempfile::tempdir().unwrap();
        let (blkio, unified) = (folder.path().join("blkio"), folder.path().join("unified"));
        fs::create_dir(&blkio).unwrap();
        fs::create_dir(&unified).unwrap();
        let none = DeviceLimit::within(&blkio, &unified, "x", "8:0".to_string()).unwrap_err();
        assert!(none.contains("no block throttle"), "{none}");

        fs::write(unified.join("cgroup.controllers"), "cpu io memory\n").unwrap();
        let limit = DeviceLimit::within(&blkio, &unified, "x", "8:0".to_string()).unwrap();
        limit.set(Some(500)).unwrap();
        let written = |name: &str| fs::read_to_string(limit.group.join(name)).unwrap();
        assert_eq!(written("io.max"), "8:0 riops=500 wiops=500");
        limit.set(None).unwrap();
        assert_eq!(written("io.max"), "8:0 riops=max wiops=max");
        fs::remove_dir_all(&limit.group).unwrap();
        std::mem::forget(limit);

        fs::write(blkio.join("blkio.throttle.read_iops_device"), "").unwrap();
        let limit = DeviceLimit::within(&blkio, &unified, "x", "8:0".to_string()).unwrap();
        limit.set(Some(500)).unwrap();
        limit.add(42).unwrap();
        let written = |name: &str| fs::read_to_string(limit.group.join(name)).unwrap();
        assert_eq!(written("blkio.throttle.read_iops_device"), "8:0 500");
        assert_eq!(written("blkio.throttle.write_iops_device"), "8:0 500");
        assert_eq!(written("cgroup.procs"), "42");
        fs::remove_dir_all(&limit.group).unwrap();
        std::mem::forget(limit);
    }

    #[test]
    fn reads_are_found_among_what_the_kernel_counts() {
        let serviced = "8:0 Read 7\n254:0 Read 1000\n254:0 Write 3\nTotal 1010\n";
        assert_eq!(parse_serviced(serviced, "254:0"), Some(1000));
        assert_eq!(parse_serviced("Total 0\n", "254:0"), Some(0));
        let stat = "8:0 rbytes=1 wbytes=2 rios=3 wios=4\n254:0 rbytes=9 rios=8 wios=7\n";
        assert_eq!(parse_stat(stat, "254:0"), Some(8));
        assert_eq!(parse_stat("", "254:0"), Some(0));
    }
}
