//! Another plugin in the place of the one that runs, between two steps.
//!
//! ```text
//!   snapshot ──► saved in the background, as any checkpoint
//!       │
//!       ▼
//!   the old guest ends · the new one is restored from that snapshot · its next step is run, on probation
//!                        │ anything fails                               │ the step is done
//!                        ▼                                              ▼
//!        back to that checkpoint under the old plugin,        the job goes on under the new one
//!        by the same way as any attempt goes on
//! ```
//!
//! The old guest ends before the new one begins, since the memory that a container allows was counted for one (a small one may end beside it). The old code
//! is asked for nothing but its snapshot; should that fail, the new plugin begins from the last checkpoint on the volume.
//!
//! While saves fail, the old plugin goes on and the new one waits for a save that succeeds: there would be no checkpoint to go
//! back to. Should the first that fails be the change's own, a plugin that fits goes on all the same, and one that does not
//! leaves the steps since the last checkpoint to be run again.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::{Ending, Onward, Steps};
use crate::checkpoint::store::Call;
use crate::device::Device;
use crate::job::RunError;
use crate::job::begin::{fingerprint, settings};
use crate::job::error::{call_name, in_words};
use crate::job::journal::Journal;
use crate::job::offers::Offer;
use crate::job::run::Context;
use crate::job::source;
use crate::plugin::{CallError, Guest, Interruption, OpenDevice, Plugin, PluginError, Snapshot};

/// Without a limit of its own a step on probation has to end within this, or within so many times what steps usually take.
const PATIENCE: Duration = Duration::from_secs(60);
const PATIENCE_FACTOR: u32 = 20;
/// Bytes that an old guest may still hold while the new one begins: the host's own share of the memory that is allowed has room for them.
const LITTLE: u64 = 32 << 20;

/// A plugin that has yet to run a step.
pub(in crate::job) struct Probation {
    /// The plugin to go back to.
    pub old: Plugin,
    /// The step before which the job was stopped.
    pub step: u64,
    /// When the job was stopped for the change.
    pub since: Instant,
}

/// Why a plugin does not come out of its probation.
#[derive(Debug, thiserror::Error)]
pub(in crate::job) enum Unfit {
    /// It cannot be started.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// It fails.
    #[error("it fails in {}: {cause}", call_name(*call))]
    Call { call: Call, cause: CallError },
}

impl Steps<'_> {
    /// Puts a plugin that is offered in the place of the one that runs.
    #[cold]
    pub(super) fn swap_if_offered(&mut self) -> Result<Option<Ending>, RunError> {
        // The checkpoint to go back to must be of this very step, so one that is being saved comes first.
        if self.saver.is_busy() || self.probation.is_some() {
            return Ok(None);
        }
        if self.failures > 0 {
            if !self.waiting_told {
                self.waiting_told = true;
                tracing::warn!(
                    "Another plugin waits for a save that succeeds: now there is no checkpoint to go back to"
                );
            }
            return Ok(None);
        }
        self.waiting_told = false;
        match self.context.offers.take() {
            Some(offer) if offer.plugin.digest() != self.running.plugin.digest() => self.swap(offer),
            Some(offer) => {
                tracing::info!("The plugin {} is the one that runs", offer.plugin.short());
                Ok(None)
            }
            None => Ok(None),
        }
    }

    fn swap(&mut self, offer: Offer) -> Result<Option<Ending>, RunError> {
        let Offer { plugin: new, device } = offer;
        let (step, since) = (self.running.next_step, self.now);
        let old = self.running.plugin.clone();
        tracing::info!(step, "Changing the plugin at step {step}, from {} to {}", old.short(), new.short());
        let probation = Probation { old, step, since };
        let state = match self.snapshot() {
            Ok(snapshot) => Arc::new(snapshot),
            Err(cause) if is_stop(&cause) => return Err(self.failed(Call::Snapshot, cause)),
            // The old code has failed; what it did since the last checkpoint is done again by the new.
            Err(cause) => {
                let safe = self.journal.record().safe_step.unwrap_or(0);
                let lost = step.saturating_sub(safe);
                tracing::warn!(
                    lost,
                    "The old plugin cannot save its state ({cause}): the new one goes on from the checkpoint of step {safe}, and {lost} steps are run again"
                );
                return Ok(Some(Ending::Onward(Onward { plugin: new, probation: Some(probation) })));
            }
        };
        if self.saved_step != Some(step) {
            self.hand_over(Arc::clone(&state), None)?;
        }
        self.probation = Some(probation);
        match self.restore_into(&new, device, &state) {
            Ok(()) => Ok(None),
            Err(Unfit::Call { call, cause }) if is_stop(&cause) => Err(self.failed(call, cause)),
            Err(unfit) => self.back(&unfit),
        }
    }

    fn restore_into(
        &mut self,
        new: &Plugin,
        device: Option<Box<dyn Device>>,
        state: &Arc<Snapshot>,
    ) -> Result<(), Unfit> {
        let running = &mut self.running;
        let old = running.guest.take();
        super::say_dropped(old.as_ref());
        let random = old.as_ref().map(Guest::random_position).unwrap_or_default();
        close(old);
        running.plugin = new.clone();
        self.context.watch.guest(new.interrupter());
        self.context.watch.patience(Some(patience(self.context, self.pace.usual_step())));
        let running = &mut self.running;
        let mut settings = settings(self.context, &running.scratch, &running.job, &running.events);
        settings.device = settings.device.map(|open| readily(device, open));
        let mut guest = new.instantiate(settings)?;
        let restore = || guest.restore(&running.job, &self.context.spec.config, state);
        let restored = self.context.watch.during(Call::Restore, Instant::now(), restore);
        guest.flush_output();
        restored.map_err(|cause| Unfit::Call { call: Call::Restore, cause })?;
        guest.set_random_position(random);
        // As in any attempt that goes on: what `restore` reports belongs to no step.
        drop(running.events.take_metrics());
        running.guest = Some(guest);
        self.now = Instant::now();
        Ok(())
    }

    /// The new plugin has run a step.
    #[cold]
    pub(super) fn passed(&mut self) {
        let Some(probation) = self.probation.take() else { return };
        let plugin = &self.running.plugin;
        let (step, took) = (self.running.next_step, probation.since.elapsed());
        tracing::info!(
            step,
            us = took.as_micros() as u64,
            "The plugin {} has run step {}, and the job goes on under it; the change took {}",
            plugin.short(),
            step.saturating_sub(1),
            in_words(took)
        );
        self.journal.record().goes_on_under(
            plugin.digest(),
            source::facts(plugin),
            fingerprint(plugin, self.context.scene, self.context.spec),
        );
        self.context.watch.patience(None);
    }

    /// The new plugin is of no use; none if it was not new. What it wrote to `/output` goes with it.
    pub(super) fn back(&mut self, unfit: &Unfit) -> Result<Option<Ending>, RunError> {
        let Some(probation) = self.probation.take() else { return Ok(None) };
        // What there is to go back to is known once that is saved.
        self.wait_for_save()?;
        let (step, safe) = (probation.step, self.journal.record().safe_step.unwrap_or(0));
        let onward = go_back(self.context, self.journal, &self.running.plugin, probation, unfit);
        let lost = step.saturating_sub(safe);
        if lost > 0 {
            tracing::warn!(lost, "The step where it was changed could not be saved: {lost} steps are run again");
        }
        Ok(Some(Ending::Onward(onward)))
    }
}

/// Ends the old guest: its memory is given back before the new one asks for its own. Where that is a little, the job does not wait for it.
fn close(old: Option<Guest>) {
    let Some(old) = old else { return };
    if old.memory_used() + old.device_used() > LITTLE {
        drop(old);
    } else {
        // Without a thread it is dropped here.
        let _ = thread::Builder::new().name("close".into()).spawn(move || drop(old));
    }
}

/// Opens a device: the one that is open already, if there is one.
fn readily(device: Option<Box<dyn Device>>, open: OpenDevice) -> OpenDevice {
    let ready = Mutex::new(device);
    Arc::new(move || ready.lock().unwrap_or_else(PoisonError::into_inner).take().map_or_else(|| open(), Ok))
}

/// How long a call of a new plugin may take, where steps usually take so long.
pub(in crate::job) fn patience(context: &Context<'_>, usual: Option<Duration>) -> Duration {
    let usual = usual.map_or(Duration::ZERO, |usual| usual * PATIENCE_FACTOR);
    context.spec.step_timeout.unwrap_or_else(|| usual.max(PATIENCE))
}

/// One line about a plugin that is not used, and the way back.
pub(in crate::job) fn go_back(
    context: &Context<'_>,
    journal: &Journal,
    unfit_plugin: &Plugin,
    probation: Probation,
    unfit: &dyn std::fmt::Display,
) -> Onward {
    let (new, old) = (unfit_plugin.short(), probation.old.short());
    tracing::warn!("Going back to {old}; the plugin {new} is not used: {unfit}");
    journal.record().tried(unfit_plugin.digest());
    context.watch.patience(None);
    Onward { plugin: probation.old, probation: None }
}

fn is_stop(cause: &CallError) -> bool {
    *cause == CallError::Interrupted(Interruption::GraceEnds)
}
