//! A container that is too small: the kernel would kill it at some step, with an exit code that says nothing; the host has to tell
//! at the start.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::container::{Ended, Launch};
use super::life::{attempt, volume};
use super::room::Room;
use crate::rack::ledger::Ledger;

const MIB: u64 = 1 << 20;

pub(super) fn check(room: &Room, image: &str, ledger: &mut Ledger) {
    let limited = ledger.check("a container with enough memory", || {
        let limit = with_enough(room, image)?;
        ensure!(limit == 512 * MIB, "MEMORY LIMITS CANNOT BE SET ON THIS MACHINE: the kernel's is {limit} bytes");
        Ok(format!("runs with a limit of {} MiB", limit / MIB))
    });
    if !limited {
        println!("!!!! Whether a container that is too small is refused was NOT checked");
        return;
    }
    ledger.check("too little memory is refused at the start", || {
        let ended = of_size(attempt(room, image, &volume(room, image, "small")?, 0), "256m", "2GiB").end()?;
        refused(&ended)
    });
}

fn of_size<'a>(launch: Launch<'a>, container: &str, guest: &str) -> Launch<'a> {
    let launch = launch.option("--memory", container).option("--memory-swap", container);
    launch.arguments(["--memory-limit", guest])
}

/// Lets a job run for some steps; answers the limit that the kernel has for it.
fn with_enough(room: &Room, image: &str) -> Result<u64> {
    let mut container = of_size(attempt(room, image, &volume(room, image, "small")?, 0), "512m", "64MiB").start()?;
    container.says("epoch 1:")?;
    let limit = limit_of(container.process()?)?;
    container.terminate()?;
    container.end()?.code(143)?;
    Ok(limit)
}

/// The refusal names figures and what to do; and it is not the exit code of a kill for memory.
fn refused(ended: &Ended) -> Result<String> {
    let code = ended.code;
    ensure!(code != 0 && code != 137, "exit code {code}: it was started all the same");
    ended.said("hint:")?;
    let said = ended.said("steadfast: ")?;
    ensure!(said.contains("memory") && said.contains(|c: char| c.is_ascii_digit()), "exit code {code}: {said}");
    Ok(format!("exit code {code}: {said}"))
}

/// The memory limit of a process's control group, of either version.
fn limit_of(process: u32) -> Result<u64> {
    let groups = fs::read_to_string(format!("/proc/{process}/cgroup"))?;
    let file = groups.lines().filter_map(limit_file).find(|file| file.is_file());
    let file = file.with_context(|| format!("no control group of process {process} limits memory: {groups}"))?;
    let limit = fs::read_to_string(&file)?;
    limit.trim().parse().with_context(|| format!("`{}` says `{}`", file.display(), limit.trim()))
}

/// Where the limit stands that belongs to a line of `/proc/PID/cgroup`: `0::/group`, or `4:memory:/group` in the first version.
fn limit_file(line: &str) -> Option<PathBuf> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (controllers, group) = (fields.next()?, fields.next()?.trim_start_matches('/'));
    let root = Path::new("/sys/fs/cgroup");
    match controllers {
        "" => Some(root.join(group).join("memory.max")),
        _ if controllers.split(',').any(|name| name == "memory") => {
            Some(root.join("memory").join(group).join("memory.limit_in_bytes"))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_where_the_kernel_puts_them() {
        let file = |line| limit_file(line).map(|file| file.display().to_string());
        assert_eq!(file("0::/a/b").as_deref(), Some("/sys/fs/cgroup/a/b/memory.max"));
        assert_eq!(file("5:memory:/a").as_deref(), Some("/sys/fs/cgroup/memory/a/memory.limit_in_bytes"));
        assert_eq!(file("4:cpu,cpuacct:/a"), None);
    }

    #[test]
    fn a_refusal_is_told_from_a_kill_and_from_another_failure() {
        let ended = |code, lines: &[&str]| Ended { code, log: lines.iter().map(|line| (*line).to_owned()).collect() };
        let told = ["steadfast: the guest may take 2 GiB of memory, and there are 256 MiB", "hint: give it more"];
        assert!(refused(&ended(2, &told)).is_ok());
        assert!(refused(&ended(137, &told)).is_err());
        assert!(refused(&ended(0, &told)).is_err());
        assert!(refused(&ended(2, &["steadfast: no such file", "hint: look again"])).is_err());
    }
}
