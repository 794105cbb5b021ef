//! A real Slurm on this machine, of one node: started for the proofs, and gone after them.
//!
//! ```text
//! target/slurm/  slurm.conf   munge/  state/  spool/   what the daemons keep
//!                log/NAME     pids/NAME                of munged, slurmctld and slurmd
//!                work/        the jobs' folders
//! ```
//!
//! The daemons are children of this program. Their process ids lie in files besides, so that a run that was killed before it
//! could stop them is cleared away by the next one; no process is ever looked for by its name.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use super::client::Client;
use super::config::Config;
use crate::rack::wait::{Patience, until};
use crate::step;

/// Beyond this a daemon has a fault, or the machine no time at all.
const DAEMON: Patience = Patience { limit: Duration::from_secs(60), every: Duration::from_millis(50) };

/// A running cluster. Dropping it stops what it started.
pub(super) struct Cluster {
    folder: PathBuf,
    pub(super) config: Config,
    pub(super) client: Client,
    daemons: Vec<Daemon>,
}

struct Daemon {
    name: &'static str,
    child: Child,
}

impl Cluster {
    /// Starts one below `folder`, which is cleared first, and waits until its node takes jobs.
    pub(super) fn start(folder: &Path) -> Result<Self> {
        stop_leftovers(folder)?;
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot clear `{}`", folder.display()));
            }
            _ => {}
        }
        for name in ["log", "munge", "pids", "state", "spool", "work"] {
            fs::create_dir_all(folder.join(name))?;
        }
        let config = Config::new(folder, &user()?)?;
        config.write()?;
        let client = Client::new(config.path());
        let mut cluster = Self { folder: folder.to_owned(), config, client, daemons: Vec::new() };
        cluster.start_daemons()?;
        println!("   a node of Slurm is idle below {}", step::short(folder).display());
        Ok(cluster)
    }

    /// The folder for the jobs of one scenario.
    pub(super) fn work(&self, scenario: &str) -> PathBuf {
        self.folder.join("work").join(scenario)
    }

    /// Changes which exit codes put a job back into the queue, as an administrator would.
    pub(super) fn requeue_by_exit_code(&mut self, codes: Option<&'static str>) -> Result<()> {
        self.config.requeue_exit = codes;
        self.config.write()?;
        self.client.output("scontrol", &["reconfigure"])?;
        let now = codes.unwrap_or("(null)");
        until("the controller does not take its new configuration", DAEMON, || {
            let config = self.client.output("scontrol", &["show", "config"])?;
            let line = config.lines().find_map(|line| line.strip_prefix("RequeueExit "));
            Ok(line.is_some_and(|line| line.trim_start_matches([' ', '=']).trim() == now).then_some(()))
        })
    }

    fn start_daemons(&mut self) -> Result<()> {
        let config = self.config.path();
        let munge = self.folder.join("munge");
        write_key(&munge.join("key"))?;
        // `--force` because the folders above may be closed to others, which is no fault where there is one user.
        let mut munged = Command::new(program("munged"));
        munged.args(["--foreground", "--force", "--num-threads=2"]);
        for (option, name) in [("key", "key"), ("pid", "pid"), ("seed", "seed"), ("log", "log")] {
            munged.arg(format!("--{option}-file={}", munge.join(name).display()));
        }
        munged.arg(format!("--socket={}", self.config.socket().display()));
        self.daemon("munged", munged)?;
        until("munged does not listen", DAEMON, || Ok(self.config.socket().exists().then_some(())))?;

        let mut controller = Command::new(program("slurmctld"));
        controller.args(["-D", "-i", "-f"]).arg(&config);
        self.daemon("slurmctld", controller)?;
        let mut node = Command::new(program("slurmd"));
        node.arg("-D").arg("-f").arg(&config);
        self.daemon("slurmd", node)?;
        until("the node is not idle", DAEMON, || {
            self.still_run()?;
            let states = self.client.output("sinfo", &["--noheader", "--format=%T"]).unwrap_or_default();
            Ok((!states.is_empty() && states.lines().all(|state| state == "idle")).then_some(()))
        })
    }

    /// Starts a daemon, and writes down its process id.
    fn daemon(&mut self, name: &'static str, mut command: Command) -> Result<()> {
        let log = File::create(self.folder.join("log").join(name))?;
        let child = command
            .env("SLURM_CONF", self.config.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", step::text(&command)))?;
        let id = child.id().to_string();
        // First of all to be known: if its id cannot be written, it is stopped like the others.
        self.daemons.push(Daemon { name, child });
        fs::write(self.folder.join("pids").join(name), id).context("cannot write down the id of a daemon")
    }

    fn still_run(&mut self) -> Result<()> {
        for daemon in &mut self.daemons {
            if let Some(status) = daemon.child.try_wait()? {
                let log = self.folder.join("log").join(daemon.name);
                let said = fs::read_to_string(&log).unwrap_or_default();
                let last: Vec<&str> = said.lines().rev().take(5).collect();
                let last = last.into_iter().rev().collect::<Vec<_>>().join("\n");
                return Err(anyhow!("{} ended with {status}; its log `{}` ends:\n{last}", daemon.name, log.display()));
            }
        }
        Ok(())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // With their node's daemon gone nobody would end the jobs.
        if self.daemons.len() == 3
            && let Err(error) = self.client.cancel_all(DAEMON)
        {
            println!("WARNING: {error:#}");
        }
        for daemon in self.daemons.iter_mut().rev() {
            stop(daemon);
            let _ = fs::remove_file(self.folder.join("pids").join(daemon.name));
        }
    }
}

/// Asks a daemon to end, and ends it if it does not.
fn stop(daemon: &mut Daemon) {
    signal("TERM", daemon.child.id());
    let ended = until("it does not end", DAEMON, || Ok(daemon.child.try_wait()?));
    if ended.is_err() {
        println!("WARNING: {} does not end when asked to, and is killed", daemon.name);
        let _ = daemon.child.kill();
        let _ = daemon.child.wait();
    }
}

/// Stops the daemons, and first the jobs, of a run that could not do it: those whose ids it wrote down, if they are still
/// daemons of this folder.
fn stop_leftovers(folder: &Path) -> Result<()> {
    let Ok(files) = fs::read_dir(folder.join("pids")) else { return Ok(()) };
    let mut left = Vec::new();
    for file in files {
        let id = fs::read_to_string(file?.path()).ok().and_then(|id| id.trim().parse::<u32>().ok());
        left.extend(id.filter(|id| is_of(*id, folder)));
    }
    if left.is_empty() {
        return Ok(());
    }
    println!("   the Slurm of an earlier run is stopped");
    if let Err(error) = Client::new(folder.join("slurm.conf")).cancel_all(DAEMON) {
        println!("WARNING: its jobs may go on: {error:#}");
    }
    for id in left {
        signal("TERM", id);
        if until("it does not end", DAEMON, || Ok((!is_of(id, folder)).then_some(()))).is_err() {
            signal("KILL", id);
        }
    }
    Ok(())
}

/// Whether a process was started with something of this folder. Ids are used again: without this a stranger could be hit.
fn is_of(id: u32, folder: &Path) -> bool {
    let words = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).contains(&*folder.to_string_lossy())
}

fn signal(name: &str, id: u32) {
    let _ = Command::new("kill").arg(format!("-{name}")).arg(id.to_string()).status();
}

/// What signs messages between the daemons.
fn write_key(path: &Path) -> Result<()> {
    let mut key = Vec::new();
    std::io::Read::read_to_end(&mut std::io::Read::take(File::open("/dev/urandom")?, 128), &mut key)?;
    fs::write(path, key)?;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o600))?)
}

/// Distributions put daemons where only root looks for programs.
pub(super) fn program(name: &str) -> PathBuf {
    let folders = ["/usr/sbin", "/usr/local/sbin", "/sbin"].map(|folder| Path::new(folder).join(name));
    folders.into_iter().find(|path| path.is_file()).unwrap_or_else(|| name.into())
}

fn user() -> Result<String> {
    let output = Command::new("id").arg("-un").output().context("cannot ask `id` who runs this")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stranger_is_not_taken_for_a_daemon() {
        assert!(!is_of(std::process::id(), Path::new("/no/folder/of/this/process")));
        assert!(!is_of(u32::MAX, Path::new("/")));
    }
}
