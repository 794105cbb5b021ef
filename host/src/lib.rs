//! Steadfast runs long GPU batch jobs whose logic is a WebAssembly component, and carries them through preemption: the
//! process may be told to go at any moment (SIGTERM, ten seconds, SIGKILL), and the next attempt goes on from the last
//! checkpoint as if nothing had happened.
//!
//! ```text
//!  command line ──► JobSpec ──► job loop ──┬─► plugin      start · step · snapshot · restore   (wasmtime)
//!  platform env ──►                        ├─► device      buffers · kernels · gemm            (the CPU, a GPU)
//!                                          ├─► checkpoint  save · latest · verify · prune      (zstd, one volume)
//!  signals ───────► stop request ─────────►└─► report      log · progress · metrics
//!                                               └──────────► exit code
//! ```
//!
//! Data flows one way. [`job`], and [`trial`], which only reads, are the modules that know plugin, device and checkpoint; those, and
//! [`registry`], never import one another, but that the imports of a guest stand on the device's [`Context`](device::Context). Start reading at
//! `job/run.rs`.
//!
//! | module | what it is for |
//! |---|---|
//! | [`cli`] | one file a command: arguments to a validated specification |
//! | [`job`] | the specification, the loop, when to save, the outcome and its exit code |
//! | [`plugin`] | engine, limits, typed calls, the imports that a guest sees |
//! | [`registry`] | plugins by reference: pulled, pushed, kept by digest |
//! | [`checkpoint`] | the file format, the volume, which checkpoint counts, outputs across attempts |
//! | [`compiled`] | machine code kept between attempts, outside the volume |
//! | [`device`] | buffers, kernels and library operations, behind one trait |
//! | [`doctor`] | what a machine has of what jobs need; how a plugin's kernels run on the CPU |
//! | [`platform`] | who am I (job, task, attempt), how will I be stopped, does the volume last |
//! | [`report`] | log lines, progress, the opening block |
//! | [`supervise`] | rehearsals: attempts as child processes, preempted on purpose |
//! | [`trial`] | a new plugin on a job's checkpoints, before it is swapped in; writes nothing |
//!
//! # Invariants
//!
//! Each holds everywhere.
//!
//! 1. A checkpoint file is never changed after its final name exists, and a final name is never reused.
//! 2. A checkpoint proves itself: it is trusted only after its hashes match; a pointer or a listing order is only a hint.
//! 3. "Nothing there", "valid" and "there but not usable" are three outcomes. Only the first starts from step 0 (a damaged
//!    checkpoint of step 0 holds no work, and counts as nothing), and deciding writes nothing but the claim.
//! 4. The step counter means the next step to run. It is in the same record as the state it counts.
//! 5. Exit code 0 means: the guest said done, and its outputs are assembled on the volume. A partial result never exits 0.
//! 6. The guest sees no host path, clock or network that it was not given; device addresses don't survive a resume, so nothing may depend on
//!    them.
//! 7. A guest trap, an endless step, a hostile kernel, a malformed component or file is an error message and an exit code, never a host panic.
//!    No `unwrap` on anything that came from outside.
//! 8. Errors in secondary work (metrics, progress, pruning) are warnings. Errors in checkpointing are loud, counted and,
//!    past a limit, fatal.
//! 9. What an attempt writes carries its epoch and nonce in the name; no correctness rests on a lock, a listing's freshness,
//!    a modification time or a rename.
//!
//! # Deliberately absent
//!
//! A pointer to the latest checkpoint (there is none to miss), a daemon, a log to replay, and a clock in any decision about which
//! checkpoint counts.

pub mod checkpoint;
pub mod cli;
pub mod compiled;
pub mod device;
pub mod doctor;
pub mod job;
pub mod platform;
pub mod plugin;
pub mod registry;
pub mod report;
pub mod supervise;
pub mod trial;
