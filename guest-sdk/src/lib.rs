//! What a plugin for Steadfast is written against: a job that may be stopped at any moment, and goes on.
//!
//! ```
//! use serde::{Deserialize, Serialize};
//! use steadfast_guest::{Job, Outcome, Plugin, Result, plugin};
//!
//! #[derive(Deserialize)]
//! struct Config {
//!     steps: u64,
//! }
//!
//! #[derive(Serialize, Deserialize)]
//! struct Countdown {
//!     left: u64,
//!     total: u64,
//! }
//!
//! impl Plugin for Countdown {
//!     type Config = Config;
//!
//!     fn start(_job: &Job, config: Config) -> Result<Self> {
//!         Ok(Self { left: config.steps, total: config.steps })
//!     }
//!
//!     fn step(&mut self) -> Result<Outcome> {
//!         if self.left == 0 {
//!             return Ok(Outcome::done("lift-off"));
//!         }
//!         println!("{} to go", self.left);
//!         self.left -= 1;
//!         Ok(Outcome::progress(self.total - self.left, self.total))
//!     }
//! }
//!
//! plugin!(Countdown);
//! # steadfast_guest::testing::assert_resumes::<Countdown>(r#"{"steps": 5}"#);
//! ```
//!
//! In a crate with `crate-type = ["cdylib"]`, `cargo build --release --target wasm32-wasip2` makes the component that
//! `steadfast run` takes.
//!
//! # The struct is the state
//!
//! The type that implements [`Plugin`] is all that survives. Between steps the host may take a snapshot of it, and another
//! attempt, on another machine perhaps, goes on from there as if nothing had happened. So keep in it whatever later steps
//! depend on: the position in the data, the generator of random numbers, the optimizer. What can be had again (the data
//! itself, a table) doesn't belong in it: mark the field `#[serde(skip)]` and fill it in [`Plugin::start`] and
//! [`Plugin::resumed`]. Statics are not part of the state, and neither is anything in a `thread_local!`.
//!
//! State is encoded with postcard: small and fast, but it says nothing about itself. `#[serde(flatten)]`,
//! `#[serde(untagged)]` and `#[serde(skip_serializing_if)]` don't work in it.
//!
//! # When the struct changes
//!
//! A changed struct needs a new [`Plugin::STATE_VERSION`]. If checkpoints of before shall go on, keep the struct of that time in a
//! module named after its version, list the version in [`Plugin::READS`], and convert in [`Plugin::migrate`]:
//!
//! ```
//! # use serde::{Deserialize, Serialize};
//! # use steadfast_guest::{Error, Job, NoConfig, Outcome, Plugin, Result, decode, plugin};
//! mod version_1 {
//!     /// The struct as it was; never changed again.
//!     #[derive(serde::Deserialize)]
//!     pub(super) struct Counter {
//!         pub(super) count: u32,
//!     }
//! }
//!
//! #[derive(Serialize, Deserialize)]
//! struct Counter {
//!     count: u64,
//!     stride: u64,
//! }
//!
//! impl Plugin for Counter {
//!     type Config = NoConfig;
//!     const STATE_VERSION: u32 = 2;
//!     const READS: &'static [u32] = &[1, 2];
//!
//!     fn migrate(version: u32, bytes: &[u8]) -> Result<Self> {
//!         match version {
//!             // What is new gets the value with which the old program's steps go on unchanged.
//!             1 => decode::<version_1::Counter>(bytes).map(|old| Self { count: old.count.into(), stride: 1 }),
//!             other => Err(Error::incompatible_state(format!("the saved state is of version {other}"))),
//!         }
//!     }
//! #   fn start(_job: &Job, _config: NoConfig) -> Result<Self> {
//! #       Ok(Self { count: 0, stride: 1 })
//! #   }
//! #   fn step(&mut self) -> Result<Outcome> {
//! #       self.count += self.stride;
//! #       Ok(if self.count < 5 { Outcome::progress(self.count, 5) } else { Outcome::done("five") })
//! #   }
//! }
//!
//! plugin!(Counter);
//! # steadfast_guest::testing::assert_resumes::<Counter>("{}");
//! ```
//!
//! `plugin!` writes both constants into the component, so that `steadfast plugin inspect` tells which states it goes on from before
//! anything is run, and `steadfast plugin try` runs it against a checkpoint that is there. Keep a state of each version as a file,
//! and a test that migrates it: the old program is not there any more to make one.
//!
//! # What the standard library gives
//!
//! - **Printing.** Lines of `println!` and `eprintln!`, and the message of a panic, reach the job's log.
//! - **Files.** `/input` can be read, `/output` can be written, and there is nothing else. Both look as they did when the
//!   snapshot was taken. An open `File` is not state: open it where it is used, or again in [`Plugin::resumed`]. Appending
//!   to a file in `/output` is safe: after a resume, lines written since the snapshot are gone and are written again.
//! - **`HashMap`.** Its order depends on keys that are the same in every run of a job, but also on how many maps were made
//!   before it in this attempt. A map that lives across a resume may iterate in another order afterwards, so let no result
//!   depend on it: sort, or use a `BTreeMap`.
//! - **Random bytes** of WASI come from a generator that the host seeds with the job's seed and whose position is in the
//!   checkpoint, so even they repeat. Still, prefer a generator of your own in the state, seeded from [`Job::seed`]: then the
//!   results don't depend on who else draws.
//! - **Clocks** are real. An `Instant` means nothing in another attempt, and what depends on a clock doesn't repeat. Measure
//!   with them, decide nothing by them.
//! - No environment, no arguments, no network, no threads.
//!
//! # The device
//!
//! [`device`] has buffers, kernels and products of matrices, on a GPU or on the CPU. A [`device::Buffer`] in the struct comes back with it.
//!
//! # Without a host
//!
//! Everything here compiles natively too, where [`testing`] runs a plugin in `cargo test` and resumes it before every step.

mod answer;
#[doc(hidden)]
pub mod bindings;
mod config;
pub mod device;
#[doc(hidden)]
pub mod export;
mod state;
mod telemetry;
#[cfg(not(target_family = "wasm"))]
pub mod testing;

use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;

pub use answer::{Error, Outcome, Result};
pub use bindings::steadfast::job::types::Job;
pub use config::{NoConfig, check_config};
pub use state::{Reader, STATE_SECTION, Writer, decode};
pub use telemetry::{log, metric};

/// A job in steps, whose implementing type is its state. Exported with [`plugin!`].
pub trait Plugin: Serialize + DeserializeOwned + 'static {
    /// The configuration, from the job's JSON; [`NoConfig`] if there is none. A value that doesn't fit ends the job as
    /// [`Error::Invalid`], with the path of the field.
    type Config: DeserializeOwned;

    /// The version of the state's layout. Raise it with every change that makes old state unreadable.
    const STATE_VERSION: u32 = 1;

    /// The state versions that [`Plugin::restore`] can read, this one included: the others are what [`Plugin::migrate`] handles.
    /// A version that is not among them is refused, and the checkpoints stay as they are.
    const READS: &'static [u32] = &[Self::STATE_VERSION];

    /// Begins at step 0.
    fn start(job: &Job, config: Self::Config) -> Result<Self>;

    /// One unit of work. The host saves and stops only between steps, so keep one under a few seconds.
    fn step(&mut self) -> Result<Outcome>;

    /// Called after the state was read back, to fill in what is not part of it.
    fn resumed(&mut self, _job: &Job, _config: Self::Config) -> Result<()> {
        Ok(())
    }

    /// Makes today's state of one that an older version of this plugin saved: match the version, [`decode`] the struct of
    /// that time, convert it. Called for the versions in [`Plugin::READS`] but the present one; by default all are refused.
    fn migrate(version: u32, _bytes: &[u8]) -> Result<Self> {
        Err(unreadable(version, &[Self::STATE_VERSION]))
    }

    /// Writes all that [`Plugin::restore`] needs. Override both for sections of your own.
    fn snapshot(&self, into: &mut Writer<'_>) -> Result<()> {
        into.encode(STATE_SECTION, self)
    }

    /// Goes on from a snapshot. The version and the sections are checked by whoever overrides this.
    fn restore(job: &Job, config: Self::Config, from: &Reader<'_>) -> Result<Self> {
        let version = from.version();
        if !Self::READS.contains(&version) {
            return Err(unreadable(version, Self::READS));
        }
        let bytes = from.bytes(STATE_SECTION)?;
        let mut plugin: Self =
            if version == Self::STATE_VERSION { decode(&bytes)? } else { Self::migrate(version, &bytes)? };
        drop(bytes);
        plugin.resumed(job, config)?;
        Ok(plugin)
    }
}

fn unreadable(version: u32, reads: &[u32]) -> Error {
    let reads = match reads {
        [one] => format!("version {one}"),
        many => format!("versions {}", many.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")),
    };
    Error::incompatible_state(format!("the saved state is of version {version}; this plugin reads {reads}"))
}

/// The path of a file in the job's input folder, which is `/input`; in tests, the folder given to
/// `testing::set_folders`.
pub fn input(name: &str) -> PathBuf {
    #[cfg(target_family = "wasm")]
    let folder = PathBuf::from("/input");
    #[cfg(not(target_family = "wasm"))]
    let (folder, _) = testing::folders();
    folder.join(name)
}

/// The path of a file in the job's output folder, which is `/output`; in tests, the folder given to
/// `testing::set_folders`.
pub fn output(name: &str) -> PathBuf {
    #[cfg(target_family = "wasm")]
    let folder = PathBuf::from("/output");
    #[cfg(not(target_family = "wasm"))]
    let (_, folder) = testing::folders();
    folder.join(name)
}

/// Exports a type that implements [`Plugin`] as the component's one plugin. Does nothing in a native build.
#[macro_export]
macro_rules! plugin {
    ($plugin:ty) => {
        const _: () = {
            // Natively, this is all: a clear error where `Plugin` is not implemented.
            const fn implements_plugin<P: $crate::Plugin>() {}
            implements_plugin::<$plugin>();
            assert!(
                $crate::export::reads_its_own::<$plugin>(),
                "READS has to contain STATE_VERSION: a plugin goes on from what it saved itself"
            );
        };

        // For whoever wants to know without running it: see `steadfast.wit`.
        #[cfg(target_family = "wasm")]
        const _: () = {
            #[used]
            #[unsafe(link_section = "steadfast:state-versions")]
            static STATE_VERSIONS: [u8; $crate::export::state_versions_len::<$plugin>()] =
                $crate::export::state_versions::<$plugin, { $crate::export::state_versions_len::<$plugin>() }>();
        };

        #[cfg(target_family = "wasm")]
        const _: () = {
            ::std::thread_local! {
                static PLUGIN: $crate::export::Slot<$plugin> = const { ::std::cell::RefCell::new(None) };
            }

            struct Component;

            use $crate::bindings::exports::steadfast::job::workload as exported;

            impl exported::Guest for Component {
                fn start(
                    job: exported::Job,
                    config: ::std::string::String,
                ) -> ::std::result::Result<(), exported::Error> {
                    PLUGIN.with(|slot| $crate::export::start(slot, &job, &config))
                }

                fn step() -> ::std::result::Result<exported::Outcome, exported::Error> {
                    PLUGIN.with(|slot| $crate::export::step(slot))
                }

                fn snapshot(into: &exported::Writer) -> ::std::result::Result<u32, exported::Error> {
                    PLUGIN.with(|slot| $crate::export::snapshot(slot, into))
                }

                fn restore(
                    job: exported::Job,
                    config: ::std::string::String,
                    from: &exported::Reader,
                ) -> ::std::result::Result<(), exported::Error> {
                    PLUGIN.with(|slot| $crate::export::restore(slot, &job, &config, from))
                }
            }

    $crate::bindings::export_plugin!(Component with_types_in $crate::bindings);
        };
    };
}

/// The plugin in the README is compiled, too.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
