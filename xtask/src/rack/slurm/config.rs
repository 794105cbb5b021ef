//! What the Slurm of the proofs is told: everything below one folder, on ports that nobody else uses.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use anyhow::{Context, Result, bail};

/// Exit codes of Steadfast after which another attempt makes sense.
pub(super) const RETRIED: &str = "75,143";

/// Longest path of a socket that the kernel takes, without the zero at its end.
const LONGEST_SOCKET: usize = 107;

/// One machine that plays a cluster.
pub(super) struct Config {
    folder: PathBuf,
    /// Its short name. The controller refuses to run under any other.
    pub(super) machine: String,
    user: String,
    ports: [u16; 2],
    /// Exit codes that put a job back into the queue, where the administrator has set any.
    pub(super) requeue_exit: Option<&'static str>,
}

impl Config {
    /// For a cluster below `folder`, run by `user`.
    pub(super) fn new(folder: &Path, user: &str) -> Result<Self> {
        let longest = folder.join("spool/machine_4294967295.4294967295");
        if longest.as_os_str().len() > LONGEST_SOCKET {
            bail!(
                "`{}` is too long a path for the sockets in it; hint: set CARGO_TARGET_DIR to a shorter one",
                folder.display()
            );
        }
        let name = fs::read_to_string("/proc/sys/kernel/hostname").context("cannot read this machine's name")?;
        let machine = name.trim().split('.').next().unwrap_or_default().to_owned();
        let ports = free_ports()?;
        Ok(Self { folder: folder.to_owned(), machine, user: user.to_owned(), ports, requeue_exit: Some(RETRIED) })
    }

    /// Writes it to where [`Config::path`] says.
    pub(super) fn write(&self) -> Result<()> {
        fs::write(self.path(), self.to_string()).with_context(|| format!("cannot write `{}`", self.path().display()))
    }

    /// The file that `SLURM_CONF` names.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.join("slurm.conf")
    }

    /// Where the daemon that signs messages listens.
    pub(super) fn socket(&self) -> PathBuf {
        self.folder.join("munge/socket")
    }
}

/// Two ports that nobody listens on. Held at once, so that they differ.
fn free_ports() -> Result<[u16; 2]> {
    let listen = || TcpListener::bind(("127.0.0.1", 0));
    let (one, other) = (listen()?, listen()?);
    Ok([one.local_addr()?.port(), other.local_addr()?.port()])
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { machine, user, ports: [controller, node], .. } = self;
        let folder = self.folder.display();
        let socket = self.socket();
        let socket = socket.display();
        let requeue_exit = self.requeue_exit.map(|codes| format!("RequeueExit={codes}")).unwrap_or_default();
        // Jobs of an earlier run that nobody could stop must not be mistaken for ours, so numbers begin elsewhere in each run.
        let first_job = std::process::id().saturating_mul(10);
        // A requeued job waits until its credential has expired: 120 s unless it is told otherwise. The node need not have
        // the cores that are written down here (`config_overrides`). `preempt_send_user_signal` lets `--signal` come when a
        // job is preempted, and not only before its time limit.
        write!(
            f,
            "\
ClusterName=rack
SlurmctldHost={machine}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={socket},cred_expire=5
CredType=cred/munge
SlurmctldPort={controller}
SlurmdPort={node}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldParameters=preempt_send_user_signal
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MailProg=/bin/true
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
FirstJobId={first_job}
{requeue_exit}
KillWait=30
MinJobAge=86400
NodeName={machine} NodeAddr=127.0.0.1 CPUs=2 Sockets=1 CoresPerSocket=2 ThreadsPerCore=1 State=UNKNOWN
PartitionName=low Nodes={machine} Default=YES MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE
PartitionName=graced Nodes={machine} MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE GraceTime=120
PartitionName=high Nodes={machine} MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_keeps_to_its_folder_and_to_ports_of_its_own() {
        let Ok(mut config) = Config::new(Path::new("/here"), "me") else { panic!("no configuration") };
        let text = config.to_string();
        let [one, other] = config.ports;
        assert!(one != other && text.contains(&format!("SlurmctldPort={one}\nSlurmdPort={other}\n")), "{text}");
        assert!(text.contains("\nRequeueExit=75,143\n") && text.contains("\nSlurmdSpoolDir=/here/spool\n"), "{text}");
        config.requeue_exit = None;
        assert!(!config.to_string().contains("RequeueExit"));
    }

    #[test]
    fn a_folder_too_deep_for_sockets_is_refused() {
        let deep = PathBuf::from("/".to_owned() + &"deep/".repeat(20));
        let refusal = Config::new(&deep, "me").err().map(|error| error.to_string());
        assert!(refusal.is_some_and(|text| text.contains("CARGO_TARGET_DIR")));
    }
}
