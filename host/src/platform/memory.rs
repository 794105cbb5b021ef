//! How much memory this attempt may use: the least of its control groups' limits and what the machine has.

use std::path::{Path, PathBuf};

/// How much memory may be used, and what happens beyond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// The limit.
    pub bytes: u64,
    /// Who sets it.
    pub by: Allower,
}

/// Who limits memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allower {
    /// A control group, which ends by SIGKILL whoever goes beyond.
    Container,
    /// The machine has no more, not counting swap space.
    Machine,
}

/// The limit, if anything can be found out.
#[must_use]
pub fn memory_allowed() -> Option<Allowed> {
    allowed(&|path| std::fs::read_to_string(path).ok())
}

fn allowed(read: &dyn Fn(&Path) -> Option<String>) -> Option<Allowed> {
    let machine = read(Path::new("/proc/meminfo")).and_then(|text| machine_total(&text));
    let groups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    let container = groups.lines().filter_map(|line| group_limit(line, read)).min();
    match (container, machine) {
        // Without a limit, groups of the first version say a number that no machine has.
        (Some(bytes), machine) if machine.is_none_or(|machine| bytes < machine) => {
            Some(Allowed { bytes, by: Allower::Container })
        }
        (_, machine) => machine.map(|bytes| Allowed { bytes, by: Allower::Machine }),
    }
}

/// `MemTotal:       16314604 kB`
fn machine_total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.starts_with("MemTotal:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok()?.checked_mul(1024)
}

/// The least limit on the way from a group to the root. A line is `0::/path` (version 2) or `5:memory:/path` (version 1).
/// Inside a container the path often isn't there, since the container's own group is mounted as the root.
fn group_limit(line: &str, read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (controllers, group) = (parts.next()?, parts.next()?);
    let (mount, file) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max"),
        controllers if controllers.split(',').any(|name| name == "memory") => {
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return None,
    };
    let group = PathBuf::from(mount).join(group.trim_start_matches('/'));
    // `max` (version 2) is no number, and no limit.
    let limit = |folder: &Path| read(&folder.join(file))?.trim().parse::<u64>().ok();
    group.ancestors().take_while(|folder| folder.starts_with(mount)).filter_map(limit).min()
}

#[cfg(test)]
mod tests {
    use super::Allower::{Container, Machine};
    use super::*;

    fn with(files: &[(&str, &str)]) -> Option<(u64, Allower)> {
        let read =
            |path: &Path| files.iter().find(|(name, _)| Path::new(name) == path).map(|(_, text)| (*text).to_owned());
        allowed(&read).map(|allowed| (allowed.bytes, allowed.by))
    }

    const MACHINE: (&str, &str) = ("/proc/meminfo", "MemTotal:       1000 kB\nMemFree:  1 kB\n");

    #[test]
    fn the_machine_is_the_limit_where_no_group_is() {
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[MACHINE]), Some((1_024_000, Machine)));
        let max = ("/sys/fs/cgroup/a/memory.max", "max\n");
        assert_eq!(with(&[MACHINE, ("/proc/self/cgroup", "0::/a\n"), max]), Some((1_024_000, Machine)));
    }

    #[test]
    fn the_least_limit_on_the_way_to_the_root_counts() {
        let groups = ("/proc/self/cgroup", "0::/a/b\n");
        let (outer, inner) = (("/sys/fs/cgroup/a/memory.max", "500\n"), ("/sys/fs/cgroup/a/b/memory.max", "700\n"));
        assert_eq!(with(&[MACHINE, groups, outer, inner]), Some((500, Container)));
        assert_eq!(with(&[MACHINE, groups, ("/sys/fs/cgroup/memory.max", "300\n"), outer]), Some((300, Container)));
    }

    #[test]
    fn groups_of_the_first_version_are_read() {
        let groups = ("/proc/self/cgroup", "4:cpu,cpuacct:/x\n5:hugetlb,memory:/docker/1\n");
        let limit = ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "4096\n");
        assert_eq!(with(&[MACHINE, groups, limit]), Some((4096, Container)));
        let none = ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(with(&[MACHINE, groups, none]), Some((1_024_000, Machine)));
    }
}
