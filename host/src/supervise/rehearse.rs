//! The way into a rehearsal: where it works, what it starts, and that none of its attempts outlives it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tempfile::TempDir;

use super::play::Play;
use super::report::{RehearsalReport, Verdict};
use super::run::Theatre;
use super::spec::{Progress, RehearsalError, RehearsalSpec};
use crate::job::spec::JobName;

/// Grace time of the platform that is played, where the job names none.
const CLOUD_RUN_GRACE: Duration = Duration::from_secs(10);

/// Told how far a rehearsal is, from any thread.
pub type Observer<'a> = &'a (dyn Fn(&Progress) + Sync);

/// Plays the platform against a job and compares what comes out with undisturbed runs.
pub fn rehearse(spec: &RehearsalSpec, progress: Observer<'_>) -> Result<RehearsalReport, RehearsalError> {
    let interruption = Interruption::listen()?;
    let work = temporary(spec)?;
    let sockets = tempfile::Builder::new().prefix("sf").tempdir().map_err(RehearsalError::Child)?;
    let program = match &spec.program {
        Some(program) => program.clone(),
        None => std::env::current_exe().map_err(RehearsalError::Child)?,
    };
    let theatre = Theatre {
        spec,
        program,
        name: filed_under(spec),
        work: work.path().to_owned(),
        sockets: sockets.path().to_owned(),
        grace: spec.job.grace.unwrap_or(CLOUD_RUN_GRACE),
        interrupted: &interruption.flag,
    };
    let play = Play { theatre, progress, numbers: AtomicUsize::new(3) };
    let result = play.perform();
    match result {
        Ok(mut report) => {
            if !matches!(report.verdict, Verdict::Same) {
                report.kept = Some(work.keep());
            }
            Ok(report)
        }
        Err(error) => {
            // Its message names a log in there.
            if matches!(error, RehearsalError::Undisturbed { .. }) {
                let _ = work.keep();
            }
            Err(error)
        }
    }
}

/// The name under which the children will file their checkpoints: they are told it as the platform's job name.
fn filed_under(spec: &RehearsalSpec) -> String {
    let named = spec.job.run_id.as_ref().or(spec.job.name.as_ref()).map(JobName::to_string);
    let plugins = || JobName::new(spec.job.plugin_name()).ok().map(|name| name.to_string());
    named.or_else(plugins).unwrap_or_else(|| "rehearsal".to_owned())
}

fn temporary(spec: &RehearsalSpec) -> Result<TempDir, RehearsalError> {
    let parent = spec.work.clone().unwrap_or_else(std::env::temp_dir);
    let made = std::fs::create_dir_all(&parent)
        .and_then(|()| tempfile::Builder::new().prefix("steadfast-rehearsal-").tempdir_in(&parent));
    made.map_err(|cause| RehearsalError::Files { operation: "create a folder in", path: parent, cause })
}

/// Notes that the rehearsal itself is told to stop, so that no attempt outlives it.
struct Interruption {
    flag: Arc<AtomicBool>,
    registered: Vec<signal_hook::SigId>,
}

impl Interruption {
    fn listen() -> Result<Self, RehearsalError> {
        let mut this = Self { flag: Arc::default(), registered: Vec::new() };
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let registered = signal_hook::flag::register(signal, Arc::clone(&this.flag));
            this.registered.push(registered.map_err(RehearsalError::Child)?);
        }
        Ok(this)
    }
}

impl Drop for Interruption {
    fn drop(&mut self) {
        self.registered.drain(..).for_each(|id| {
            signal_hook::low_level::unregister(id);
        });
    }
}
