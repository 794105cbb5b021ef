//! Ending between two steps, or in the middle of one.

use super::{Ending, Steps};
use crate::checkpoint::metadata::Progress;
use crate::checkpoint::store::Call;
use crate::job::RunError;
use crate::job::error::in_words;
use crate::job::watch::margin;
use crate::platform::StopReason;

impl Steps<'_> {
    /// A stop was requested, between two steps: a running save is finished, then what is new is saved if that is predicted to
    /// fit into what is left of the grace time.
    pub(super) fn stop(&mut self, stop: StopReason) -> Result<Ending, RunError> {
        self.wait_for_save()?;
        let step = self.running.next_step;
        while self.saved_step != Some(step) {
            let grace = self.context.scene.placement.grace.time;
            let left = grace.saturating_sub(margin(grace)).saturating_sub(stop.at.elapsed());
            let needed = self.pace.predicted_save();
            if needed > left {
                tracing::warn!(
                    "Not saving step {step}: that is predicted to take {}, and {} of the grace time are left",
                    in_words(needed),
                    in_words(left)
                );
                break;
            }
            self.save(None)?;
            self.wait_for_save()?;
        }
        self.say_safe();
        Ok(Ending::Stopped(stop))
    }

    /// The guest was interrupted in mid-call: there is nothing new to save.
    pub(super) fn broken_off(&mut self, call: Call, stop: StopReason) -> Ending {
        let step = self.running.next_step;
        let what = match call {
            Call::Step => "Step",
            Call::Snapshot => "The snapshot at step",
            Call::Start | Call::Restore => "Going on with another plugin at step",
        };
        tracing::warn!("{what} {step} did not end within the grace time; the last checkpoint stands");
        self.say_safe();
        Ending::Stopped(stop)
    }

    fn say_safe(&self) {
        let safe = self.journal.record().safe_step.unwrap_or(0);
        let Progress { total, .. } = self.running.progress;
        let lost = self.running.next_step.saturating_sub(safe);
        let losing = if lost > 0 { format!(", {lost} will be run again") } else { String::new() };
        tracing::info!(
            safe,
            lost,
            total,
            "Stopped: {safe} steps are safe{losing}; the same command goes on from there"
        );
    }
}
