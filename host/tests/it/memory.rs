//! What a container allows, by real control groups.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::{Place, component};

/// A control group of its own with a limit on its memory; gone when dropped.
struct Group(PathBuf);

impl Group {
    /// None where this process may not make one.
    fn with_limit(bytes: u64) -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let of = |line: &str| -> Option<(PathBuf, &'static str)> {
            let mut parts = line.splitn(3, ':').skip(1);
            let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
            match controllers {
                "memory" => Some((Path::new("/sys/fs/cgroup/memory").join(path), "memory.limit_in_bytes")),
                "" => Some((Path::new("/sys/fs/cgroup").join(path), "memory.max")),
                _ => None,
            }
        };
        let made = groups.lines().filter_map(of).find_map(|(parent, limit)| {
            let folder = parent.join(format!("steadfast-test-{}-{bytes}", std::process::id()));
            fs::create_dir(&folder).ok()?;
            let group = Self(folder);
            fs::write(group.0.join(limit), bytes.to_string()).ok().map(|()| group)
        });
        if made.is_none() {
            println!("SKIPPED memory: no control group can be made here");
        }
        made
    }

    /// Runs a job in the group to its end.
    fn run(&self, place: &Place, options: &[&str]) -> Output {
        // The shell enters the group and becomes the program.
        let enter = r#"echo $$ > "$0/cgroup.procs" && exec "$@""#;
        let mut command = Command::new("sh");
        command.args(["-c", enter]).arg(&self.0).arg(env!("CARGO_BIN_EXE_steadfast")).arg("run");
        command.arg(component("stochastic")).args(["--config", r#"{"steps": 3}"#]).args(options);
        command.arg("--volume").arg(place.volume()).arg("--scratch").arg(place.path()).env("STEADFAST_CACHE", "");
        command.output().unwrap()
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_container_that_allows_less_than_guest_and_save_need_is_refused_with_figures() {
    let Some(group) = Group::with_limit(256 << 20) else { return };
    let place = Place::new();
    let output = group.run(&place, &["--memory-limit", "1GiB"]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.starts_with("steadfast: this container allows 256.0 MiB of memory, and this attempt may need 2.1 GiB: 1.0 GiB for the guest (--memory-limit)"), "{said}");
    assert!(said.contains("hint: allow the container 21"), "{said}");
    assert_eq!(fs::read_dir(place.volume()).unwrap().count(), 0, "nothing is written");
}

#[test]
fn without_a_limit_of_its_own_the_guest_gets_what_fits() {
    let Some(group) = Group::with_limit(512 << 20) else { return };
    let output = group.run(&Place::new(), &[]);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains(" MiB, of what is allowed here"), "{said}");
}
