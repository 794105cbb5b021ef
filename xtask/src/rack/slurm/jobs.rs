//! Arrays of `digits`, submitted by the scripts of the README: where they are, what they said, and what came out.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::client::{self, JOBS, JobState};
use super::cluster::Cluster;
use crate::documents::{self, Block};
use crate::rack::wait::until;
use crate::{host, plugins, step};

/// As many as the script of the README says.
pub(super) const TASKS: u32 = 3;

/// What every job begins with.
const JOB: &str = r#"plugin = "digits.wasm"
input = "data"
volume = "checkpoints"
every = "1s"

[config]
"#;

/// Some seconds of work on one core, however fast it is (18 at 80 µs a step): long enough to be interrupted when the first second is saved, by an engine
/// that takes some seconds to do so.
pub(super) const EPOCHS: &str = "epochs = 5000\n";

/// The scripts that the README shows.
pub(super) struct Scripts {
    /// The host in the place of the shell, for sites that requeue by exit code.
    pub(super) exec: String,
    /// The shell stays and requeues by itself.
    pub(super) stays: String,
}

/// Files of one task by name.
pub(super) type Outputs = BTreeMap<OsString, Vec<u8>>;

/// A submitted job, of one task or an array of them.
pub(super) struct Job<'a> {
    cluster: &'a Cluster,
    folder: PathBuf,
    /// Slurm's number for it.
    pub(super) id: String,
}

impl Scripts {
    /// Takes them from the README, where nobody would notice that they do not work.
    pub(super) fn from_readme() -> Result<Self> {
        let readme = documents::readme()?;
        let blocks = documents::blocks(&readme);
        let bash = |word: &str| {
            let found = blocks.iter().find(|block: &&Block| block.language == "bash" && block.text.contains(word));
            found.map(|block| block.text.clone()).with_context(|| format!("README.md has no bash block with `{word}`"))
        };
        let exec = bash("#SBATCH")?;
        let ending = bash("srun steadfast")?;
        let Some(begin) = exec.strip_suffix(&format!("{LAST_LINE}\n")) else {
            bail!("the script in README.md does not end with `{LAST_LINE}`");
        };
        let stays = begin.replace("--signal=B:TERM", "--signal=TERM") + &ending;
        Ok(Self { exec, stays })
    }
}

const LAST_LINE: &str = "exec steadfast run job.toml";

/// Makes the folder of a job as the README describes it.
pub(super) fn prepare(cluster: &Cluster, name: &str) -> Result<PathBuf> {
    let folder = cluster.work(name);
    fs::create_dir_all(folder.join("checkpoints"))?;
    symlink(plugins::component("digits"), folder.join("digits.wasm"))?;
    symlink(step::root().join("plugins/digits/data"), folder.join("data"))?;
    fs::write(folder.join("job.toml"), format!("{JOB}{EPOCHS}"))?;
    Ok(folder)
}

impl<'a> Job<'a> {
    /// Submits a script from a folder. Options win over what the script says.
    pub(super) fn submit(cluster: &'a Cluster, folder: &Path, script: &str, options: &[&str]) -> Result<Self> {
        fs::write(folder.join("job.sh"), script)?;
        let binaries = host::binary().parent().map(Path::to_owned).unwrap_or_default();
        let paths = env::var_os("PATH").unwrap_or_default();
        let paths = env::join_paths([binaries].into_iter().chain(env::split_paths(&paths)))?;
        let mut sbatch = cluster.client.command("sbatch", &["--parsable"]);
        sbatch.args(options).arg("job.sh").current_dir(folder).env("PATH", paths);
        // Set for a rehearsal, and not for a real cluster.
        sbatch.env_remove("STEADFAST_REHEARSAL").env_remove("STEADFAST_VOLUME");
        let id = client::output(&mut sbatch)?;
        Ok(Self { cluster, folder: folder.to_owned(), id })
    }

    /// Slurm's name for one task of the array.
    pub(super) fn task(&self, task: u32) -> String {
        format!("{}_{task}", self.id)
    }

    /// What a task has said, in all its attempts.
    pub(super) fn log(&self, task: u32) -> String {
        fs::read_to_string(self.folder.join(format!("digits-{task}.log"))).unwrap_or_default()
    }

    /// Waits until a task has a checkpoint beyond its start.
    pub(super) fn saved(&self, task: u32) -> Result<()> {
        until(&format!("task {task} saved nothing"), JOBS, || {
            let log = self.log(task);
            if numbers(&log, "Saved step ").any(|step| step > 0) {
                return Ok(Some(()));
            }
            self.still_wanted(&self.task(task), "before it saved anything", &log)
        })
    }

    /// Waits until a task, or the job where it is no array, was put back into the queue that often.
    pub(super) fn restarted(&self, id: &str, times: u32) -> Result<()> {
        until(&format!("job {id} is not requeued"), JOBS, || {
            if self.cluster.client.job(id)?.restarts >= times {
                return Ok(Some(()));
            }
            self.still_wanted(id, "instead of being requeued", "")
        })
    }

    /// Nothing is to be waited for where a job has ended.
    fn still_wanted<T>(&self, id: &str, when: &str, log: &str) -> Result<Option<T>> {
        let job = self.cluster.client.job(id)?;
        if job.has_ended() {
            bail!("job {id} is {} with exit code {} {when}: {}", job.state, job.exit, last_line(log));
        }
        Ok(None)
    }

    /// Waits until a job has ended for good; not for one that is requeued more often than anything should be.
    pub(super) fn ended(&self, id: &str, most_restarts: u32) -> Result<JobState> {
        until(&format!("job {id} does not end"), JOBS, || {
            let job = self.cluster.client.job(id)?;
            if job.restarts > most_restarts {
                bail!("job {id} was requeued {} times, the last time with exit code {}", job.restarts, job.exit);
            }
            Ok(job.has_ended().then_some(job))
        })
    }

    /// Waits until every task is done, as tasks are that cost nobody any attention.
    pub(super) fn completed(&self) -> Result<Vec<JobState>> {
        let completed = |task| {
            let job = self.ended(&self.task(task), 9)?;
            if (job.state.as_str(), job.exit) != ("COMPLETED", 0) {
                bail!("task {task} is {} with exit code {}: {}", job.state, job.exit, last_line(&self.log(task)));
            }
            Ok(job)
        };
        (0..TASKS).map(completed).collect()
    }

    /// The steps from which a task was resumed.
    pub(super) fn resumes(&self, task: u32) -> Vec<u64> {
        numbers(&self.log(task), "Resuming from checkpointed step ").filter(|step| *step > 0).collect()
    }

    /// What a task left on the volume. It must have been finished once, and nobody else may have written to its folder.
    pub(super) fn outputs(&self, task: u32) -> Result<Outputs> {
        let folder = self.folder.join(format!("checkpoints/digits/task-{task:05}-of-{TASKS:05}"));
        let (mut outputs, mut done) = (Vec::new(), 0);
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot list `{}`", folder.display()))? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            done += u32::from(name.ends_with(".done.json"));
            if name.starts_with("output-") {
                outputs.push(entry.path());
            }
        }
        match (outputs.as_slice(), done) {
            ([folder], 1) => files(folder),
            _ => bail!("`{}` has {} folders of outputs and {done} done records", folder.display(), outputs.len()),
        }
    }
}

fn files(folder: &Path) -> Result<Outputs> {
    let mut files = Outputs::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        files.insert(entry.file_name(), fs::read(entry.path())?);
    }
    if files.is_empty() {
        bail!("`{}` is empty", folder.display());
    }
    Ok(files)
}

/// The numbers that follow a phrase in the messages of a log.
fn numbers<'a>(log: &'a str, phrase: &'a str) -> impl Iterator<Item = u64> + 'a {
    log.split(phrase).skip(1).filter_map(|rest| {
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok()
    })
}

fn last_line(log: &str) -> &str {
    log.lines().last().unwrap_or("its log is empty")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_has_both_scripts() {
        let scripts = Scripts::from_readme().map_err(|error| error.to_string());
        let Ok(scripts) = scripts else { panic!("{:?}", scripts.err()) };
        assert!(scripts.exec.starts_with("#!/bin/bash\n") && scripts.exec.contains("--signal=B:TERM@"));
        assert!(scripts.exec.contains(&format!("--array=0-{} ", TASKS - 1)), "{}", scripts.exec);
        assert!(scripts.stays.starts_with("#!/bin/bash\n") && scripts.stays.contains("scontrol requeue"));
        assert!(!scripts.stays.contains("B:TERM") && !scripts.stays.contains("exec "), "{}", scripts.stays);
    }

    #[test]
    fn steps_are_read_from_a_log() {
        let log = "{\"message\":\"Saved step 0 in 1 ms\"}\n{\"message\":\"Saved step 45 in 2 ms (21 KiB)\"}\n";
        assert_eq!(numbers(log, "Saved step ").collect::<Vec<_>>(), [0, 45]);
        assert_eq!(numbers(log, "Resuming from checkpointed step ").count(), 0);
    }
}
