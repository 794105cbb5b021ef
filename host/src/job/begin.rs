//! From the claim to a guest that is ready for its next step: decide which checkpoint counts, tidy up, restore.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use serde::Deserialize;

use super::changes::{self, Change, Now};
use super::choice::{Chosen, choose};
use super::events::Events;
use super::journal::Journal;
use super::marks::Phase;
use super::run::Context;
use super::saver::keep_plugin;
use super::scene::Scene;
use super::source;
use super::spec::{Changeable, JobSpec};
use super::steps::{Finished, Onward, Probation, Running, Unfit, go_back, guest_failed, keep_metrics, patience};
use super::{RunError, opening, state};
use crate::checkpoint::format::FormatError;
use crate::checkpoint::metadata::{Metadata, Progress};
use crate::checkpoint::outputs::{self, RebuildError, Scratch, Segments, Tracker};
use crate::checkpoint::store::{AttemptRecord, Call, Decision, History, LoadError, Loaded, SaveFigures, Session};
use crate::platform::StopReason;
use crate::plugin::{CallError, Guest, GuestSettings, Interruption, JobInfo, Plugin, RandomPosition, Snapshot};

/// What an attempt runs from here on: at its start, and again after each change of plugin that is not made in passing.
pub(super) struct Turn {
    plugin: Plugin,
    /// Which plugin to go back to, where this one has yet to prove that it fits.
    probation: Option<Probation>,
    /// The segment that the attempt named last.
    pub last_segment: u32,
    /// Whether the attempt has run before.
    again: bool,
    /// Whether the plugin is another than the checkpoint's, and meant to be.
    changed: bool,
}

impl Turn {
    /// An attempt's start.
    pub fn first(plugin: Plugin) -> Self {
        Self { plugin, probation: None, last_segment: 0, again: false, changed: false }
    }

    /// The same with the plugin that the job is to go on under.
    fn chosen(self, context: &Context<'_>, session: &Session, history: &History) -> Result<Self, RunError> {
        match session.peek() {
            Some((name, metadata)) => self.chosen_for(context, session, history, (name, metadata)),
            None => Ok(self),
        }
    }

    /// The same, should the checkpoint that counts be another than the newest, and another plugin's.
    fn checked(
        self,
        context: &Context<'_>,
        session: &Session,
        history: &History,
        loaded: &Loaded,
    ) -> Result<Self, RunError> {
        let (name, made_by) = (loaded.origin.name.as_str(), &loaded.metadata.plugin);
        if self.changed || self.plugin.digest() == made_by.digest || self.plugin.reads(made_by.state_version) {
            return Ok(self);
        }
        self.chosen_for(context, session, history, (name, &loaded.metadata))
    }

    fn chosen_for(
        self,
        context: &Context<'_>,
        session: &Session,
        history: &History,
        checkpoint: (&str, &Metadata),
    ) -> Result<Self, RunError> {
        let Chosen { plugin, probation, changed } = choose(context, session, history, checkpoint, self.plugin)?;
        Ok(Self { plugin, probation, changed, ..self })
    }

    /// After a change of plugin.
    pub fn again(onward: Onward, last_segment: u32) -> Self {
        Self { plugin: onward.plugin, probation: onward.probation, last_segment, again: true, changed: true }
    }
}

/// What an attempt begins with.
pub(super) enum Beginning {
    /// A guest ready for its next step.
    Running(Box<Running>),
    /// All steps were done before; only the outputs are left.
    Finished(Box<Finished>),
    /// A stop was requested on the way.
    Stopped(StopReason),
    /// The plugin does not fit, and there is one to go back to.
    Onward(Onward),
}

/// The record as it is before anything is decided.
pub(super) fn first_record(
    session: &Session,
    plugin: &Plugin,
    job: &JobInfo,
    scene: &Scene,
    spec: &JobSpec,
) -> AttemptRecord {
    let now = jiff::Timestamp::now().to_string();
    AttemptRecord {
        tenure: session.tenure(),
        lineage: session.lineage(),
        attempt: job.attempt,
        started: now.clone(),
        heartbeat: now,
        fingerprint: fingerprint(plugin, scene, spec),
        plugin: plugin.digest().to_owned(),
        artifact: source::facts(plugin),
        device: scene.device_of(plugin).into(),
        from: None,
        first_step: 0,
        next_step: 0,
        safe_step: None,
        saves: SaveFigures::default(),
        failure: None,
        unreadable: BTreeSet::new(),
        ended: None,
        other_plugins: Vec::new(),
        profile: Vec::new(),
    }
}

/// A digest of all that a failure of the guest depends on.
pub(super) fn fingerprint(plugin: &Plugin, scene: &Scene, spec: &JobSpec) -> String {
    let input = scene.input.as_ref().map_or("", |input| input.digest.as_str());
    // A plugin without a device is the same under every one.
    let device = plugin.uses_device().then(|| (scene.device.name(), scene.memory.device));
    let text = serde_json::json!([
        plugin.digest(),
        spec.config,
        input,
        spec.seed,
        scene.memory.guest,
        scene.memory.state,
        spec.step_timeout.map(|limit| limit.as_millis()),
        device
    ]);
    blake3::hash(text.to_string().as_bytes()).to_hex().to_string()
}

/// Tells what an attempt would begin with, for `--dry-run`. Writes nothing.
pub(super) fn preview(
    context: &Context<'_>,
    session: &mut Session,
    plugin: &Plugin,
    job: &JobInfo,
) -> Result<(), RunError> {
    let history = context.scene.store.history(session.survey(), session.lineage());
    let turn = Turn::first(plugin.clone()).chosen(context, session, &history)?;
    let fingerprint = fingerprint(&turn.plugin, context.scene, context.spec);
    let now = now(context.spec, context.scene, turn.plugin.digest(), job);
    let decision = decide(context, session, &history, &fingerprint, now, &mut BTreeSet::new())?;
    if let Some(loaded) = &decision.loaded {
        turn.checked(context, session, &history, loaded)?;
    }
    context.reporter.block(&[("start", opening::start(decision.loaded.as_ref()))]);
    tracing::info!("Dry run: nothing was written");
    Ok(())
}

/// Brings a guest to the point from which its task goes on.
pub(super) fn begin(
    context: &Context<'_>,
    session: &mut Session,
    turn: Turn,
    job: &JobInfo,
    journal: &Journal,
) -> Result<Beginning, RunError> {
    let scene = context.scene;
    if turn.again {
        session.look_again()?;
    }
    let history = scene.store.history(session.survey(), session.lineage());
    let turn = if turn.again { turn } else { turn.chosen(context, session, &history)? };
    let fingerprint = note_plugin(context, journal, &turn.plugin);
    if let Some(why) = history.hopeless(&fingerprint, context.spec.max_stalled.get()) {
        return Err(RunError::Hopeless(why));
    }
    context.marks.at(Phase::Restore, 0);
    let mut unreadable = BTreeSet::new();
    let now = now(context.spec, context.scene, turn.plugin.digest(), job);
    let decided = decide(context, session, &history, &fingerprint, now, &mut unreadable);
    journal.record().unreadable = unreadable;
    let Decision { loaded, damaged, strange, passed_over } = decided?;
    if let Some(stop) = context.stops.requested() {
        return Ok(Beginning::Stopped(stop));
    }
    let turn = match &loaded {
        Some(loaded) => turn.checked(context, session, &history, loaded)?,
        None => turn,
    };
    note_plugin(context, journal, &turn.plugin);

    for bad in &damaged {
        tracing::warn!(checkpoint = bad.name, "Checkpoint {} is damaged ({}); it is set aside", bad.name, bad.what);
    }
    for bad in &strange {
        tracing::warn!(checkpoint = bad.name, "Checkpoint {} is passed over: {}", bad.name, bad.what);
    }
    for name in &passed_over {
        tracing::warn!(
            checkpoint = name,
            "Checkpoint {name} is passed over: earlier attempts could not read it or go on from it"
        );
    }
    session.settle(&damaged).iter().for_each(|warning| tracing::warn!("{warning}"));
    context.reporter.block(&[("start", opening::start(loaded.as_ref()))]);
    note_start(journal, loaded.as_ref(), turn.again);
    journal.write();
    keep_plugin(session, &turn.plugin);
    bring_up(context, session, turn, job, journal, &history, loaded)
}

/// Writes down which plugin it is now, and answers what its failures are known by.
fn note_plugin(context: &Context<'_>, journal: &Journal, plugin: &Plugin) -> String {
    let fingerprint = fingerprint(plugin, context.scene, context.spec);
    journal.record().begins_under(plugin.digest(), source::facts(plugin), fingerprint.clone());
    fingerprint
}

/// What this attempt would run with.
fn now<'a>(spec: &'a JobSpec, scene: &'a Scene, plugin: &'a str, job: &JobInfo) -> Now<'a> {
    Now { plugin, config: &spec.config, input: scene.input.as_ref(), seed: job.seed, task_count: job.task_count }
}

fn decide(
    context: &Context<'_>,
    session: &mut Session,
    history: &History,
    fingerprint: &str,
    now: Now<'_>,
    unreadable: &mut BTreeSet<String>,
) -> Result<Decision, RunError> {
    let decision = session.load(history, fingerprint, unreadable)?;
    let mut accepted = context.spec.accept_changed.clone();
    // Whether another plugin may go on is the choice's affair.
    accepted.insert(Changeable::Plugin);
    if let Some(loaded) = &decision.loaded {
        let changes = refuse_changes(&accepted, &loaded.origin.name, &loaded.metadata, now)?;
        let by_word = |change: &&Change| context.spec.accept_changed.contains(&change.kind);
        for change in changes.iter().filter(by_word) {
            tracing::info!("Accepted change: {}", change.text);
        }
    }
    Ok(decision)
}

/// Answers the changes since a checkpoint, if all of them are meant.
fn refuse_changes(
    accepted: &BTreeSet<Changeable>,
    checkpoint: &str,
    metadata: &Metadata,
    now: Now<'_>,
) -> Result<Vec<Change>, RunError> {
    let changes = changes::since(metadata, now);
    match changes::not_meant(&changes, accepted) {
        unmeant if unmeant.is_empty() => Ok(changes),
        unmeant => Err(RunError::Changed { checkpoint: checkpoint.to_owned(), changes: unmeant }),
    }
}

/// Refuses what is not the job that the volume holds before its task is claimed: a claim ends the attempt that is at work, and
/// a mistyped command must not.
pub(super) fn refuse_early(
    spec: &JobSpec,
    scene: &Scene,
    session: &Session,
    plugin: &str,
    job: &JobInfo,
) -> Result<(), RunError> {
    let Some((name, metadata)) = session.peek() else { return Ok(()) };
    let mut accepted = spec.accept_changed.clone();
    // Which version of a plugin goes on is chosen later, by what the file and the volume hold.
    if spec.plugin_from.is_some() || spec.plugin_name() == metadata.plugin.name {
        accepted.insert(Changeable::Plugin);
    }
    refuse_changes(&accepted, name, metadata, now(spec, scene, plugin, job)).map(drop)
}

fn note_start(journal: &Journal, loaded: Option<&Loaded>, again: bool) {
    let mut record = journal.record();
    match loaded {
        None => tracing::info!("No checkpoint found, starting at step 0"),
        Some(loaded) => {
            let step = loaded.metadata.next_step;
            tracing::info!(step, checkpoint = loaded.origin.name, "Resuming from checkpointed step {step}");
            record.safe_step = Some(step);
            // What the attempt has come to under another plugin stays its own.
            if !again {
                record.from = Some(loaded.origin.name.clone());
                record.first_step = step;
                record.next_step = step;
            }
        }
    }
}

fn bring_up(
    context: &Context<'_>,
    session: &Session,
    turn: Turn,
    job: &JobInfo,
    journal: &Journal,
    history: &History,
    loaded: Option<Loaded>,
) -> Result<Beginning, RunError> {
    let Turn { plugin, mut probation, last_segment, .. } = turn;
    let parent = Scene::scratch(context.spec);
    let scratch_failed = |cause| RunError::Scratch { path: parent.clone(), cause };
    let random = match &loaded {
        Some(loaded) => random_position(&loaded.origin.name, &loaded.metadata.random)?,
        None => RandomPosition::default(),
    };
    let mut scratch = Scratch::make(&parent).map_err(scratch_failed)?;
    if let Some(loaded) = &loaded {
        rebuild(context, loaded, &scratch)?;
        if loaded.metadata.finished.is_some() {
            return Ok(Beginning::Finished(Box::new(Finished { metadata: loaded.metadata.clone(), scratch })));
        }
    }

    let events = Events::new(context.reporter.clone());
    context.watch.guest(plugin.interrupter());
    if probation.is_some() {
        context.watch.patience(Some(patience(context, None)));
    }
    let mut guest = match (plugin.instantiate(settings(context, &scratch, job, &events)), probation) {
        (Ok(guest), still) => {
            probation = still;
            guest
        }
        (Err(error), None) => return Err(error.into()),
        (Err(error), Some(probation)) => {
            return Ok(Beginning::Onward(go_back(context, journal, &plugin, probation, &error)));
        }
    };

    // Ranges of another folder's segments mean nothing in ours: what came from there is published anew.
    let own = loaded.as_ref().filter(|loaded| loaded.origin.folder == session.store().folder());
    let manifest = own.map(|loaded| loaded.metadata.outputs.clone()).unwrap_or_default();
    let tracker = Tracker::new(scratch.output(), scratch.metrics(), session.tenure(), &manifest).after(last_segment);
    let next_step = loaded.as_ref().map_or(0, |loaded| loaded.metadata.next_step);
    let from_checkpoint = loaded.is_some();
    let started = match loaded {
        None => start(context, &mut guest, job),
        Some(loaded) => restore(context, &mut guest, job, loaded, random),
    };
    let Started { buffers, progress, elapsed_ms, state_bytes } = match started {
        Ok(started) => started,
        Err((_, CallError::Interrupted(Interruption::GraceEnds))) if let Some(stop) = context.stops.requested() => {
            return Ok(Beginning::Stopped(stop));
        }
        Err((call, cause)) => {
            guest.flush_output();
            if let Some(probation) = probation {
                let unfit = Unfit::Call { call, cause };
                return Ok(Beginning::Onward(go_back(context, journal, &plugin, probation, &unfit)));
            }
            return Err(guest_failed(context, journal, history, call, next_step, cause));
        }
    };
    guest.flush_output();
    if from_checkpoint {
        // Attempts come and go: what `restore` reports belongs to no step.
        drop(events.take_metrics());
    } else {
        keep_metrics(&events, &mut scratch, next_step);
    }
    Ok(Beginning::Running(Box::new(Running {
        guest: Some(guest),
        events,
        scratch,
        tracker,
        history: history.clone(),
        buffers,
        progress,
        next_step,
        from_checkpoint,
        elapsed_ms,
        state_bytes,
        plugin,
        probation,
        job: job.clone(),
    })))
}

/// What a guest gets for its lifetime.
pub(super) fn settings(context: &Context<'_>, scratch: &Scratch, job: &JobInfo, events: &Arc<Events>) -> GuestSettings {
    GuestSettings {
        input: context.spec.input.clone(),
        output: scratch.output(),
        memory_limit: context.scene.memory.guest,
        state_limit: context.scene.memory.state,
        device: Some(Arc::clone(&context.open_device)),
        device_memory: context.scene.memory.device,
        seed: job.seed,
        events: Arc::clone(events) as Arc<dyn crate::plugin::GuestEvents>,
    }
}

struct Started {
    buffers: Snapshot,
    progress: Progress,
    elapsed_ms: u64,
    state_bytes: u64,
}

fn start(context: &Context<'_>, guest: &mut Guest, job: &JobInfo) -> Result<Started, (Call, CallError)> {
    context.marks.at(Phase::Start, 0);
    context
        .watch
        .during(Call::Start, Instant::now(), || guest.start(job, &context.spec.config))
        .map_err(|error| (Call::Start, error))?;
    Ok(Started { buffers: Snapshot::default(), progress: Progress::default(), elapsed_ms: 0, state_bytes: 0 })
}

fn restore(
    context: &Context<'_>,
    guest: &mut Guest,
    job: &JobInfo,
    loaded: Loaded,
    random: RandomPosition,
) -> Result<Started, (Call, CallError)> {
    let Loaded { metadata, sections, .. } = loaded;
    let state = Arc::new(state::from_sections(metadata.plugin.state_version, sections));
    let state_bytes = state.bytes();
    let restored =
        context.watch.during(Call::Restore, Instant::now(), || guest.restore(job, &context.spec.config, &state));
    restored.map_err(|error| (Call::Restore, error))?;
    let buffers = Arc::try_unwrap(state).unwrap_or_default();
    // After `restore`, which may have used random bytes itself: the next step sees what it would have seen uninterrupted.
    guest.set_random_position(random);
    Ok(Started { buffers, progress: metadata.progress, elapsed_ms: metadata.elapsed_ms, state_bytes })
}

/// Where the checkpoint says that the random streams were. One that cannot be understood is no position: beginning at the seed
/// again would change results without a word.
fn random_position(checkpoint: &str, random: &serde_json::Value) -> Result<RandomPosition, RunError> {
    RandomPosition::deserialize(random).map_err(|cause| RunError::Random { checkpoint: checkpoint.to_owned(), cause })
}

fn rebuild(context: &Context<'_>, loaded: &Loaded, scratch: &Scratch) -> Result<(), RunError> {
    let volume = context.scene.store.volume();
    let mut segments = Segments::new(&**volume, loaded.origin.folder.clone());
    let name = loaded.origin.name.clone();
    outputs::rebuild(&loaded.metadata.outputs, &mut segments, &scratch.output(), &scratch.metrics()).map_err(|error| {
        match error {
            RebuildError::Scratch { path, cause } => RunError::Scratch { path, cause },
            RebuildError::Segment(FormatError::Io(cause)) => LoadError::Unreadable { name, cause }.into(),
            // It was whole when the checkpoint was chosen.
            RebuildError::Segment(damage) => LoadError::Unreadable { name, cause: io::Error::other(damage) }.into(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_that_does_not_say_where_its_random_numbers_were_is_refused() {
        let said = serde_json::json!({"secure": {"words": 7}, "insecure": {"words": 0}});
        assert!(random_position("c", &said).is_ok_and(|position| position.secure.words == 7));
        for unclear in [serde_json::Value::Null, serde_json::json!({}), serde_json::json!({"secure": 7})] {
            let refusal = random_position("c", &unclear).err().map(|error| error.exit_code());
            assert_eq!(refusal, Some(super::super::ExitCode::Refused));
        }
    }
}
