//! Guests that misbehave, or are awkward in a way that matters, for the host's tests and the rehearsal's.
//!
//! Each example is one component: `cargo build --release --target wasm32-wasip2 -p test-guests --examples` leaves them in
//! `target/wasm32-wasip2/release/examples`. All are deterministic unless their name says otherwise, count their steps (`steps`
//! in the configuration, 20 by default) and write to `/output`, so that a comparison has something to compare.
//!
//! | guests | what they are for |
//! |---|---|
//! | `forgets_generator` `applies_twice` `forgets_cursor` `buffers_output` `snapshot_changes` | wrong after a resume: the rehearsal must say so |
//! | `unrepeatable` | differs between two undisturbed runs, which is another thing |
//! | `stochastic` `outputs` `every_byte` `strange_sections` `keeps_nothing` `reports` | right, and hard on the host: must come out equal |
//! | `launches` | right, and launches a kernel that does nothing, again and again |
//! | `keeps_buffers` | right, and its state is on the device |
//! | `gpt_slopes` | compares the gradient of `gpt` with differences of its loss |
//! | `bad_kernel` | a kernel that does what it must not, or never ends |
//! | `big_state` `sleeps` `floods` `idles` | right, and large, slow, loud or empty |
//! | `traps` `endless` `hungry` `exits` `refuses` | one [`Trouble`] at a chosen place and step |
//! | `escapes` `races` | try all doors; one of them while others swap it |
//! | `writes_version` `reads_version` `refuses_version` | state of version 1; version 2 that migrates it; version 2 that does not |
//! | `swap_good_a` `swap_good_b` `swap_good_c` | releases that go on from one another's state: see [`swapping`] |
//! | `swap_traps_in_restore` `swap_refuses` `swap_hungry` | releases that say that they would, and don't |
//! | `swap_traps_in_step` `swap_endless` `swap_scribbles` `swap_snapshot_fails` | releases that do, and fail soon after |
//! | `training_good_a` … | releases of `digits`, good and bad: see [`training`] |
//! | `wants_more` `command` | components that are no plugins |

pub mod swapping;
// The source that it includes has its tests where it stands.
#[cfg(not(test))]
pub mod training;

use std::fs::OpenOptions;
use std::io::Write;
use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use steadfast_guest::{Job, Outcome, Plugin, Result, Writer, metric, output};

/// The configuration of a guest that only counts.
#[derive(Clone, Copy, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Steps {
    /// How many steps there are.
    pub steps: u64,
}

impl Default for Steps {
    fn default() -> Self {
        Self { steps: 20 }
    }
}

/// What a step answers that has just counted up to `step`: the last one is done.
pub fn counted(step: u64, steps: u64) -> Outcome {
    if step >= steps { Outcome::done(format!("{step} steps")) } else { Outcome::progress(step, steps) }
}

/// Appends a line to a file in `/output`.
pub fn append(file: &str, line: &str) -> Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(output(file))?;
    Ok(writeln!(file, "{line}")?)
}

/// Pseudo-random bytes that depend on nothing but the seed: SplitMix64, eight at a time.
pub fn fill(bytes: &mut [u8], mut seed: u64) {
    for piece in bytes.chunks_mut(8) {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        piece.copy_from_slice(&(mixed ^ (mixed >> 31)).to_le_bytes()[..piece.len()]);
    }
}

/// What goes wrong in a [`Troubled`] guest.
pub trait Trouble: 'static {
    /// What else the configuration says.
    type Options: DeserializeOwned;

    /// Lets it go wrong. If it comes back with `Ok`, it has not.
    fn strike(options: &Self::Options) -> Result<()>;
}

/// One of the four calls.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// In `start`.
    Start,
    /// In `restore`, once the state was read.
    Restore,
    /// At the begin of `step`.
    #[default]
    Step,
    /// At the begin of `snapshot`.
    Snapshot,
}

/// When and where: `{"in": "step", "at": 7, "only_before_attempt": 2}`, beside the trouble's own options.
#[derive(Deserialize)]
pub struct TroubleConfig<O> {
    #[serde(default = "twenty")]
    steps: u64,
    #[serde(default)]
    r#in: Place,
    /// The next step to run at that moment; any if not given.
    at: Option<u64>,
    /// From this attempt on nothing goes wrong any more. A guest has no other way to do a thing once.
    only_before_attempt: Option<u32>,
    #[serde(flatten)]
    options: O,
}

/// A guest that counts, writes a line a step to `/output/steps.log`, and meets its trouble.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Troubled<T: Trouble> {
    step: u64,
    #[serde(skip)]
    attempt: u32,
    /// None only between decoding and `resumed`.
    #[serde(skip)]
    config: Option<TroubleConfig<T::Options>>,
    #[serde(skip)]
    trouble: PhantomData<T>,
}

fn twenty() -> u64 {
    Steps::default().steps
}

impl<T: Trouble> Troubled<T> {
    fn meet(&self, place: Place) -> Result<()> {
        let Some(config) = &self.config else { return Ok(()) };
        let due = config.r#in == place
            && config.at.is_none_or(|at| at == self.step)
            && config.only_before_attempt.is_none_or(|attempt| self.attempt < attempt);
        if due { T::strike(&config.options) } else { Ok(()) }
    }
}

impl<T: Trouble> Plugin for Troubled<T> {
    type Config = TroubleConfig<T::Options>;

    fn start(job: &Job, config: Self::Config) -> Result<Self> {
        let guest = Self { step: 0, attempt: job.attempt, config: Some(config), trouble: PhantomData };
        guest.meet(Place::Start)?;
        Ok(guest)
    }

    fn step(&mut self) -> Result<Outcome> {
        self.meet(Place::Step)?;
        append("steps.log", &format!("step {}", self.step))?;
        metric("step", self.step as f64);
        self.step += 1;
        Ok(counted(self.step, self.config.as_ref().map_or(0, |config| config.steps)))
    }

    fn snapshot(&self, into: &mut Writer<'_>) -> Result<()> {
        self.meet(Place::Snapshot)?;
        into.encode(steadfast_guest::STATE_SECTION, self)
    }

    fn resumed(&mut self, job: &Job, config: Self::Config) -> Result<()> {
        self.attempt = job.attempt;
        self.config = Some(config);
        self.meet(Place::Restore)
    }
}
