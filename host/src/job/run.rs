//! One attempt, from its first look at the volume to its exit code.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;

use super::begin::{self, Beginning};
use super::journal::Journal;
use super::marks::{Marks, Phase};
use super::scene::{Scene, wish};
use super::spec::{IfDone, JobSpec};
use super::steps::{self, End};
use super::watch::{Watch, stop_code};
use super::{ExitCode, RunError, opening};
use crate::checkpoint::outputs;
use crate::checkpoint::store::{DoneRecord, Ended, Session, Why};
use crate::platform::{self, Placement, StopReason, StopRequests, process_environment};
use crate::plugin::{Nans, Plugin, PluginError, Runtime, default_cache_folder};
use crate::report::Reporter;

/// What every part of an attempt needs.
pub(super) struct Context<'a> {
    pub spec: &'a JobSpec,
    pub scene: &'a Scene,
    pub stops: &'a StopRequests,
    pub reporter: &'a Reporter,
    pub marks: &'a Marks,
    pub watch: &'a Watch,
    pub began: Instant,
}

/// Runs one attempt of the job.
///
/// The answer is the exit code of an attempt that came to a good end: done, or stopped as it was asked to.
pub fn run(spec: &JobSpec, stops: &StopRequests, reporter: &Reporter) -> Result<ExitCode, RunError> {
    let began = Instant::now();
    let marks = Marks::from_environment(stops);
    marks.at(Phase::StartUp, 0);
    let placement = platform::detect(&process_environment, spec)?;
    refuse_short_deadline(spec, &placement)?;
    // Before anything that may take long, such as a digest of the input; and told of a stop before the log, which may be deaf.
    let watch = Watch::start(stops, placement.grace.time, spec.step_timeout).map_err(RunError::Thread)?;
    stops.subscribe(|reason| tracing::info!(signal = reason.name, "Received {}", reason.name));
    let scene = Scene::find(spec, placement)?;

    refuse_unwritable(spec)?;
    let survey = scene.survey(spec)?;
    scene.refuse_wrong_volume(spec, &survey)?;
    let (choice, done) = scene.store.choose(&survey, wish(spec), scene.placement.execution.as_deref())?;
    if let Some(done) = done {
        return already_done(spec, &scene, &done);
    }

    let attempt = scene.attempt_number(&survey, &choice);
    let job = scene.job_info(spec, attempt);
    let request = scene.claim_request(spec, &survey);
    let mut session = scene.store.prepare(survey, choice, &request)?;

    marks.at(Phase::Compilation, 0);
    // Claimed before the plugin is compiled, but not for a file that is none: an attempt that is killed from here on leaves a
    // trace of the job on the volume, without which the next one would take it for the wrong volume.
    let claim = |plugin: &str| {
        if spec.dry_run {
            return Ok(());
        }
        begin::refuse_early(spec, &scene, &session, plugin, &job)?;
        Ok(session.begin()?)
    };
    let plugin = match load_plugin(spec, stops, claim)? {
        Loading::Loaded(plugin) => plugin,
        Loading::Stopped(stop) => return Ok(stopped_early(spec, &session, &stop)),
    };
    reporter.block(&opening::rows(spec, &scene, &plugin, attempt, job.seed));
    let context = Context { spec, scene: &scene, stops, reporter, marks: &marks, watch: &watch, began };
    if spec.dry_run {
        return begin::preview(&context, &mut session, &plugin, &job).map(|()| ExitCode::Done);
    }
    let record = begin::first_record(&session, &plugin, &job, &scene, spec);
    let journal = Arc::new(Journal::new(scene.store.clone(), record));
    start_deadline(&context, &journal)?;
    let outcome = close(&journal, live(&context, session, &plugin, &job, &journal));
    marks.at(Phase::End, 0);
    outcome
}

/// The attempt's life once it holds its task.
fn live(
    context: &Context<'_>,
    mut session: Session,
    plugin: &Plugin,
    job: &crate::plugin::JobInfo,
    journal: &Arc<Journal>,
) -> Result<End, RunError> {
    let (mut session, end) = match begin::begin(context, &mut session, plugin, job, journal)? {
        Beginning::Stopped(stop) => {
            tracing::info!("Stopped before the first step; nothing was lost");
            return Ok(End::Stopped(stop));
        }
        Beginning::Finished(finished) => (session, End::Done(finished)),
        Beginning::Running(running) => steps::run(context, session, *running, journal)?,
    };
    match end {
        End::Done(finished) => finish(context, &mut session, finished),
        End::Stopped(stop) => Ok(End::Stopped(stop)),
    }
}

/// Assembles the outputs; the done record is the last thing on the volume, the copy for the user comes after it.
fn finish(context: &Context<'_>, session: &mut Session, finished: Box<steps::Finished>) -> Result<End, RunError> {
    let steps::Finished { metadata, scratch } = &*finished;
    context.marks.at(Phase::FinalWrite, metadata.next_step);
    let (done, warnings) = session.finish(metadata, &scratch.output(), &scratch.metrics())?;
    warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    export(context.spec, context.scene, &done)?;
    tracing::info!(steps = done.steps, "Done: {}", done.message);
    Ok(End::Done(finished))
}

fn export(spec: &JobSpec, scene: &Scene, done: &DoneRecord) -> Result<(), RunError> {
    let Some(target) = &spec.output else { return Ok(()) };
    let folder = scene.store.folder().join(&done.folder);
    Ok(outputs::export(&**scene.store.volume(), &folder, &done.outputs, target)?)
}

fn already_done(spec: &JobSpec, scene: &Scene, done: &DoneRecord) -> Result<ExitCode, RunError> {
    if spec.if_done == IfDone::Fail {
        return Err(RunError::AlreadyDone(done.message.clone()));
    }
    tracing::info!(steps = done.steps, "Already done: {}", done.message);
    if !spec.dry_run {
        // The attempt that finished the task may have been killed before the copy was complete.
        export(spec, scene, done)?;
    }
    Ok(ExitCode::Done)
}

enum Loading {
    Loaded(Plugin),
    Stopped(StopReason),
}

/// Loads the plugin on another thread, so that a request to stop is not kept waiting by the compiler. Calls `claim` once it is
/// sure that the file is a plugin, with its digest.
fn load_plugin(
    spec: &JobSpec,
    stops: &StopRequests,
    claim: impl FnOnce(&str) -> Result<(), RunError>,
) -> Result<Loading, RunError> {
    enum Event {
        Compiling(String),
        Loaded(Result<Plugin, PluginError>),
        Stop(StopReason),
    }
    let (sender, events) = channel();
    let on_stop = sender.clone();
    let file = spec.plugin.clone();
    let nans = if spec.canonical_nans { Nans::Canonical } else { Nans::AsComputed };
    let load = move || {
        let compiling = |digest: &str| drop(sender.send(Event::Compiling(digest.to_owned())));
        let plugin = Runtime::with(nans, default_cache_folder(&process_environment))
            .and_then(|runtime| runtime.load(&file, &compiling));
        let _ = sender.send(Event::Loaded(plugin));
    };
    thread::Builder::new().name("compile".into()).spawn(load).map_err(RunError::Thread)?;
    stops.subscribe(move |stop| {
        let _ = on_stop.send(Event::Stop(stop.clone()));
    });
    let mut claim = Some(claim);
    loop {
        let event =
            events.recv().map_err(|_| RunError::Thread(std::io::Error::other("the compiling thread is gone")))?;
        let (digest, loaded) = match event {
            Event::Stop(stop) => return Ok(Loading::Stopped(stop)),
            Event::Compiling(digest) => (digest, None),
            Event::Loaded(plugin) => plugin.map(|plugin| (plugin.digest().to_owned(), Some(plugin)))?,
        };
        claim.take().map_or(Ok(()), |claim| claim(&digest))?;
        if let Some(plugin) = loaded {
            return Ok(Loading::Loaded(plugin));
        }
    }
}

fn stopped_early(spec: &JobSpec, session: &Session, stop: &StopReason) -> ExitCode {
    // The platform counts what follows as a retry, and a retry refuses a volume that has never seen its job.
    if !spec.dry_run
        && let Err(error) = session.leave_trace()
    {
        tracing::warn!("Cannot leave a trace of the job on the volume: {error}");
    }
    tracing::info!("Stopped before the first step; nothing was lost");
    stop_code(stop)
}

/// Where the attempt will write beside the volume is looked at before the first step, and not hours later.
fn refuse_unwritable(spec: &JobSpec) -> Result<(), RunError> {
    let scratch = Scene::scratch(spec);
    let folders = [("scratch space", Some(&scratch)), ("the folder of --output", spec.output.as_ref())];
    for (what, path) in folders.into_iter().filter_map(|(what, path)| Some((what, path?))) {
        outputs::may_write(path).map_err(|cause| RunError::Unwritable { what, path: path.clone(), cause })?;
    }
    Ok(())
}

/// An attempt that is stopped the grace time before its deadline needs a deadline beyond it to do anything at all.
fn refuse_short_deadline(spec: &JobSpec, placement: &Placement) -> Result<(), RunError> {
    let grace = placement.grace.time;
    match spec.attempt_deadline {
        Some(deadline) if deadline <= grace => Err(RunError::ShortDeadline { deadline, grace }),
        _ => Ok(()),
    }
}

/// The attempt's own deadline asks for a stop so early that the grace time is over by then. That is written down at once: a
/// guest that cannot be interrupted would leave no word of it, and its attempts would not be counted.
fn start_deadline(context: &Context<'_>, journal: &Arc<Journal>) -> Result<(), RunError> {
    let Some(deadline) = context.spec.attempt_deadline else { return Ok(()) };
    let at = context.began + deadline.saturating_sub(context.scene.placement.grace.time);
    let (stops, journal) = (context.stops.clone(), Arc::clone(journal));
    let wait = move || {
        if stops.wait_timeout(at.saturating_duration_since(Instant::now())).is_none() {
            let code = ExitCode::Preempted.code();
            journal.is_about_to_end(ended(code, Why::Deadline, DEADLINE.to_owned()));
            stops.request(DEADLINE);
            journal.write();
        }
    };
    thread::Builder::new().name("deadline".into()).spawn(wait).map(drop).map_err(RunError::Thread)
}

/// The name of the stop that an attempt asks of itself.
pub(super) const DEADLINE: &str = "the attempt's deadline";

fn ended(exit: u8, why: Why, message: String) -> Ended {
    Ended { at: jiff::Timestamp::now().to_string(), exit, why, message }
}

/// The record's last word, and the exit code.
fn close(journal: &Journal, outcome: Result<End, RunError>) -> Result<ExitCode, RunError> {
    let (code, why, message) = match &outcome {
        Ok(End::Done(finished)) => (ExitCode::Done, Why::Done, finished.metadata.finished.clone().unwrap_or_default()),
        Ok(End::Stopped(stop)) if stop.name == DEADLINE => (stop_code(stop), Why::Deadline, stop.name.to_owned()),
        Ok(End::Stopped(stop)) => (stop_code(stop), Why::Stopped, stop.name.to_owned()),
        Err(error) => (error.exit_code(), error.why(), error.to_string()),
    };
    journal.record().ended = Some(ended(code.code(), why, message));
    journal.write();
    outcome.map(|_| code)
}
