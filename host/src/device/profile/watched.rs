//! The device round a device, which notes each operation and its time.

use std::sync::Arc;
use std::time::{Duration, Instant};

use steadfast_ptx::parse::parse;

use super::{Figures, Path, Profile, Work};
use crate::device::launch::EntryFacts;
use crate::device::{
    Backend, BufferId, Code, Content, Device, DeviceError, Facts, Known, Launch, ModuleId, Purpose, RandomFill, Result,
    Source, Span, Stopper, ValidatedGemm, ValidatedLaunch, VariableSpan,
};

/// A kernel that does nothing.
const NOTHING: &str = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry nothing()\n{\n    ret;\n}\n";
/// A module of no context's: those count from 1 on.
const OURS: ModuleId = ModuleId(u64::MAX);
/// Launches of it, of which the one in the middle counts.
const EMPTY_LAUNCHES: usize = 65;

/// The device.
pub(super) struct Watched {
    device: Box<dyn Device>,
    profile: Profile,
    /// Whether the device goes on after a call has returned.
    goes_on: bool,
    /// Whether a kernel was launched.
    launched: bool,
    purpose: Purpose,
    /// Since when it is that, and the bytes moved for it.
    since: (Instant, u64),
}

impl Watched {
    pub(super) fn new(device: Box<dyn Device>, profile: Profile) -> Self {
        let goes_on = device.facts().backend == Backend::Cuda;
        Self { device, profile, goes_on, launched: false, purpose: Purpose::Guest, since: (Instant::now(), 0) }
    }

    /// Does it, to its end, and says how long that took.
    fn timed<T>(&mut self, operation: impl FnOnce(&mut dyn Device) -> Result<T>) -> (Result<T>, Duration) {
        let began = Instant::now();
        let mut outcome = operation(&mut *self.device);
        if self.goes_on && outcome.is_ok() {
            outcome = self.device.synchronize().and(outcome);
        }
        (outcome, began.elapsed())
    }

    fn noted<T>(&mut self, work: Work, bytes: u64, operation: impl FnOnce(&mut dyn Device) -> Result<T>) -> Result<T> {
        if self.purpose != Purpose::Guest {
            self.since.1 += bytes;
            return operation(&mut *self.device);
        }
        let (outcome, time) = self.timed(operation);
        self.profile.note(work, Figures { calls: 1, bytes, time, ..Figures::default() });
        outcome
    }

    /// What a launch takes that does nothing.
    fn empty_launch(&mut self) -> Result<Duration> {
        let module = parse(NOTHING).map_err(|error| DeviceError::InvalidModule(error.to_string()))?;
        let module = Arc::new(module);
        let facts = module.functions.first().map(|entry| EntryFacts::of(&module, entry));
        let launch = Launch { entry: "nothing", grid: [1; 3], block: [1; 3], shared_bytes: 0, arguments: &[] };
        let launch = ValidatedLaunch::new(OURS, facts.as_ref(), &launch, |_| None)?;
        self.device.load(OURS, Source::Parsed { text: NOTHING, module })?;
        let mut run = || -> Result<Duration> {
            self.device.prepare(OURS, launch.entry())?;
            let mut times = (0..EMPTY_LAUNCHES)
                .map(|_| {
                    let (outcome, time) = self.timed(|device| device.launch(&launch));
                    outcome.map(|()| time)
                })
                .collect::<Result<Vec<_>>>()?;
            times.sort_unstable();
            Ok(times[EMPTY_LAUNCHES / 2])
        };
        let time = run();
        self.device.unload(OURS);
        time
    }

    /// Before the first launch, if no other guest of the attempt had one. A device that refuses to do nothing says nothing; one that is lost is.
    fn before_the_first_launch(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.launched, true) || self.profile.empty_launch().is_some() {
            return Ok(());
        }
        match self.empty_launch() {
            Err(error @ (DeviceError::Lost(_) | DeviceError::Stopped)) => return Err(error),
            time => self.profile.lock().empty_launch = time.ok(),
        }
        Ok(())
    }
}

impl Device for Watched {
    fn facts(&self) -> &Facts {
        self.device.facts()
    }

    fn stopper(&self) -> Stopper {
        self.device.stopper()
    }

    fn serve(&mut self, purpose: Purpose) {
        let work = match self.purpose {
            Purpose::Guest => None,
            Purpose::Load => Some(Work::Load),
            Purpose::Store => Some(Work::Store),
            Purpose::Save => Some(Work::Save),
            Purpose::Restore => Some(Work::Restore),
        };
        let (began, bytes) = self.since;
        if let Some(work) = work {
            self.profile.note(work, Figures { calls: 1, bytes, time: began.elapsed(), ..Figures::default() });
        }
        self.purpose = purpose;
        self.since = (Instant::now(), 0);
        self.device.serve(purpose);
    }

    fn allocate(&mut self, buffer: BufferId, bytes: u64) -> Result<()> {
        self.noted(Work::Allocate, bytes, |device| device.allocate(buffer, bytes))
    }

    fn free(&mut self, buffer: BufferId) {
        self.device.free(buffer);
    }

    fn write(&mut self, to: Span, bytes: &[u8]) -> Result<()> {
        self.noted(Work::Write, to.bytes(), |device| device.write(to, bytes))
    }

    fn read(&mut self, from: Span, bytes: &mut [u8]) -> Result<()> {
        self.noted(Work::Read, from.bytes(), |device| device.read(from, bytes))
    }

    fn begin_read(&mut self, from: Span, spare: Vec<Vec<u8>>) -> Result<Content> {
        self.noted(Work::Read, from.bytes(), |device| device.begin_read(from, spare))
    }

    fn fill(&mut self, span: Span, pattern: u32) -> Result<()> {
        self.noted(Work::Fill, span.bytes(), |device| device.fill(span, pattern))
    }

    fn copy(&mut self, to: Span, from: Span) -> Result<()> {
        self.noted(Work::Copy, to.bytes(), |device| device.copy(to, from))
    }

    fn fill_random(&mut self, to: Span, fill: &RandomFill) -> Result<()> {
        self.noted(Work::Random, to.bytes(), |device| device.fill_random(to, fill))
    }

    fn known(&self, text: &str) -> Option<Known> {
        self.device.known(text)
    }

    fn load(&mut self, module: ModuleId, source: Source<'_>) -> Result<()> {
        self.noted(Work::Make, 0, |device| device.load(module, source))
    }

    fn unload(&mut self, module: ModuleId) {
        self.device.unload(module);
    }

    fn write_variable(&mut self, to: VariableSpan, bytes: &[u8]) -> Result<()> {
        self.noted(Work::Write, bytes.len() as u64, |device| device.write_variable(to, bytes))
    }

    fn read_variable(&mut self, from: VariableSpan, bytes: &mut [u8]) -> Result<()> {
        self.noted(Work::Read, bytes.len() as u64, |device| device.read_variable(from, bytes))
    }

    fn prepare(&mut self, module: ModuleId, entry: &str) -> Result<bool> {
        self.device.prepare(module, entry)
    }

    fn code(&self, module: ModuleId, entry: &str) -> Option<Code> {
        self.device.code(module, entry)
    }

    fn launch(&mut self, launch: &ValidatedLaunch) -> Result<()> {
        self.before_the_first_launch()?;
        let (module, entry) = (launch.module(), launch.entry());
        // The first launch of a kernel compiles it, which is no time of the kernel's.
        let began = Instant::now();
        if self.device.prepare(module, entry)? {
            self.profile.note(Work::Make, Figures { calls: 1, time: began.elapsed(), ..Figures::default() });
        }
        let path = Path::of(self.device.code(module, entry), launch.block()[0]);
        let (outcome, time) = self.timed(|device| device.launch(launch));
        let count = |axes: [u32; 3]| axes.iter().fold(1_u64, |product, axis| product.saturating_mul(u64::from(*axis)));
        let (blocks, block) = (count(launch.grid()), count(launch.block()));
        let threads = blocks.saturating_mul(block);
        // A guest may ask for names without end that nothing is called by.
        if outcome.is_ok() {
            self.profile.note_launch(entry, path, Figures { calls: 1, blocks, threads, bytes: 0, time });
        }
        outcome
    }

    fn gemm(&mut self, gemm: &ValidatedGemm) -> Result<()> {
        self.noted(Work::Products(gemm.element), 0, |device| device.gemm(gemm))
    }

    fn synchronize(&mut self) -> Result<()> {
        self.noted(Work::Settle, 0, |device| device.synchronize())
    }
}
