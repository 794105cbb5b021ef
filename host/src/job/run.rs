//! One attempt, from its first look at the volume to its exit code.

use std::sync::Arc;
use std::thread;
use std::time::Instant;

use super::begin::{self, Beginning, Turn};
use super::journal::Journal;
use super::loading::{self, Loading};
use super::marks::{Marks, Phase};
use super::offers::Offers;
use super::scene::{Scene, wish};
use super::spec::{IfDone, JobSpec};
use super::steps::{self, End};
use super::watch::{Watch, stop_code};
use super::{ExitCode, RunError, opening, profile, wanted};
use crate::checkpoint::outputs;
use crate::checkpoint::store::{DoneRecord, Ended, Session, Why};
use crate::device::Profile;
use crate::platform::{self, Placement, StopReason, StopRequests, process_environment};
use crate::plugin::{OpenDevice, Plugin, PluginError, Runtime};
use crate::report::Reporter;

/// What every part of an attempt needs.
pub(super) struct Context<'a> {
    pub spec: &'a JobSpec,
    pub scene: &'a Scene,
    pub stops: &'a StopRequests,
    pub reporter: &'a Reporter,
    pub marks: &'a Marks,
    pub watch: &'a Watch,
    pub offers: &'a Offers,
    pub runtime: &'a Runtime,
    pub open_device: OpenDevice,
    /// Where the device's time goes, if that was asked for.
    pub profile: Option<Profile>,
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
    // Claimed before the plugin is compiled, but not for a file that is none.
    let claim = |plugin: &str| {
        refuse_other_plugin(spec, plugin)?;
        if spec.dry_run {
            return Ok(());
        }
        begin::refuse_early(spec, &scene, &session, plugin, &job)?;
        Ok(session.begin()?)
    };
    let wanted = wanted::wanted(spec, &scene, &session)?;
    let (plugin, runtime) = match loading::load(spec, wanted, stops, claim)? {
        Loading::Loaded(plugin, runtime) => (plugin, runtime),
        Loading::Stopped(stop) => {
            tracing::info!("Stopped before the first step; nothing was lost");
            return Ok(stop_code(&stop));
        }
    };
    reporter.block(&opening::rows(spec, &scene, &plugin, attempt, job.seed));
    let profile = spec.profile.then(Profile::default);
    let open_device = open_device(&scene, profile.as_ref());
    let ahead = (!scene.device.takes_memory_when_idle()).then(|| Arc::clone(&open_device));
    let offers = Offers::watch(spec, stops, runtime.clone(), &plugin, ahead).map_err(RunError::Thread)?;
    let context = Context {
        spec,
        scene: &scene,
        stops,
        reporter,
        marks: &marks,
        watch: &watch,
        offers: &offers,
        runtime: &runtime,
        open_device,
        profile,
        began,
    };
    if spec.dry_run {
        return begin::preview(&context, &mut session, &plugin, &job).map(|()| ExitCode::Done);
    }
    let record = begin::first_record(&session, &plugin, &job, &scene, spec);
    let journal = Arc::new(Journal::new(scene.store.clone(), record));
    start_deadline(&context, &journal)?;
    let outcome = live(&context, session, &plugin, &job, &journal);
    if let Some(profile) = &context.profile {
        journal.record().profile = profile::figures(profile);
    }
    let outcome = close(&journal, outcome);
    if let Some(profile) = &context.profile {
        reporter.table(&profile::table(profile, began.elapsed()));
    }
    marks.at(Phase::End, 0);
    outcome
}

/// What opens a device for a guest.
fn open_device(scene: &Scene, profile: Option<&Profile>) -> OpenDevice {
    let open = scene.device.opener(scene.memory.device);
    match profile {
        Some(profile) => profile::watched(profile, open),
        None => open,
    }
}

/// How an attempt came to a good end.
enum Outcome {
    Done(Box<steps::Finished>),
    Stopped(StopReason),
}

/// The attempt's life once it holds its task.
fn live(
    context: &Context<'_>,
    mut session: Session,
    plugin: &Plugin,
    job: &crate::plugin::JobInfo,
    journal: &Arc<Journal>,
) -> Result<Outcome, RunError> {
    let mut turn = Turn::first(plugin.clone());
    loop {
        let named = turn.last_segment;
        let (onward, last_segment) = match begin::begin(context, &mut session, turn, job, journal)? {
            Beginning::Stopped(stop) => {
                tracing::info!("Stopped before the first step; nothing was lost");
                return Ok(Outcome::Stopped(stop));
            }
            Beginning::Finished(finished) => return finish(context, &mut session, finished),
            Beginning::Onward(onward) => (onward, named),
            Beginning::Running(running) => {
                let end;
                (session, end) = steps::run(context, session, *running, journal)?;
                match end {
                    End::Done(finished) => return finish(context, &mut session, finished),
                    End::Stopped(stop) => return Ok(Outcome::Stopped(stop)),
                    End::Onward { how, last_segment } => (how, last_segment),
                }
            }
        };
        turn = Turn::again(onward, last_segment);
    }
}

/// Assembles the outputs; the done record is the last thing on the volume, the copy for the user comes after it.
fn finish(context: &Context<'_>, session: &mut Session, finished: Box<steps::Finished>) -> Result<Outcome, RunError> {
    let steps::Finished { metadata, scratch } = &*finished;
    context.marks.at(Phase::FinalWrite, metadata.next_step);
    let (done, warnings) = session.finish(metadata, &scratch.output(), &scratch.metrics())?;
    warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    export(context.spec, context.scene, &done)?;
    tracing::info!(steps = done.steps, "Done: {}", done.message);
    Ok(Outcome::Done(finished))
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

/// Before anything is written: the file holds another plugin than the one that is asked for.
fn refuse_other_plugin(spec: &JobSpec, found: &str) -> Result<(), RunError> {
    match &spec.plugin_digest {
        Some(wanted) if wanted != found => {
            let (path, wanted, found) = (spec.plugin.label().to_owned(), wanted.clone(), found.to_owned());
            Err(PluginError::Pinned { path, wanted, found }.into())
        }
        _ => Ok(()),
    }
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
fn close(journal: &Journal, outcome: Result<Outcome, RunError>) -> Result<ExitCode, RunError> {
    let (code, why, message) = match &outcome {
        Ok(Outcome::Done(finished)) => {
            (ExitCode::Done, Why::Done, finished.metadata.finished.clone().unwrap_or_default())
        }
        Ok(Outcome::Stopped(stop)) if stop.name == DEADLINE => (stop_code(stop), Why::Deadline, stop.name.to_owned()),
        Ok(Outcome::Stopped(stop)) => (stop_code(stop), Why::Stopped, stop.name.to_owned()),
        Err(error) => (error.exit_code(), error.why(), error.to_string()),
    };
    journal.record().ended = Some(ended(code.code(), why, message));
    journal.write();
    outcome.map(|_| code)
}
