//! What runs kernels: memory, modules, launches and library operations, behind one trait.
//!
//! ```text
//!  imports of a guest ──► Context ──────────► dyn Device ──┬─► cpu    PTX → WebAssembly → all cores
//!  checkpoints        ──►  every argument     proven       └─► cuda   NVIDIA's driver, a GPU
//!                          is checked here    arguments
//! ```
//!
//! | module | what it is for |
//! |---|---|
//! | [`context`] | [`Context`]: what the host uses; handles, checks, the order of errors |
//! | [`content`] | bytes of a buffer, here or on their way |
//! | [`cpu`] | the device on any machine |
//! | [`cuda`] | a GPU |
//! | [`launch`] | a launch, checked against the entry that it names |
//! | [`gemm`] | matrix products, checked against the buffers that they touch |
//! | [`random`] | the numbers of a random fill, the same on every device |
//! | [`profile`] | where a device's time goes, for whoever asks |
//! | [`stop`] | ending the device's work from another thread |
//! | [`error`] | why something was not done |
//!
//! A [`Device`] carries out operations in the order in which they were given, later than the call if it likes: an operation that returns no data may
//! report its failure at the next one that does, or at [`synchronize`](Device::synchronize). A fault is final. [`Context`] makes both rules the same for
//! every device, so that a plugin sees no difference: see there.
//!
//! Deliberately absent: names of persistent buffers, files and checkpoints (the job's business), streams and events (there is one order), and
//! device addresses, which no caller ever sees.

pub mod content;
pub mod context;
pub mod cpu;
pub mod cuda;
pub mod error;
pub mod gemm;
pub mod launch;
pub mod profile;
pub mod random;
pub mod stop;

use std::sync::Arc;

use steadfast_ptx::kernel::Form;

pub use content::{Content, Download};
pub use context::Context;
pub use error::DeviceError;
pub use gemm::{Gemm, Matrix, ValidatedGemm};
pub use launch::{Argument, Launch, ValidatedLaunch};
pub use profile::Profile;
pub use random::{Distribution, RandomFill};
pub use stop::Stopper;

/// The result of a device operation.
pub type Result<T, E = DeviceError> = std::result::Result<T, E>;

/// What the device is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// Its kind.
    pub backend: Backend,
    /// Its name, for people.
    pub name: String,
    /// Bytes that buffers may have together.
    pub memory_bytes: u64,
}

/// A kind of device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Backend {
    /// The processor's cores, on PTX translated to WebAssembly.
    Cpu,
    /// A GPU, through NVIDIA's driver.
    Cuda,
}

/// What the numbers in a buffer are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Element {
    /// Bytes of no particular meaning.
    Byte,
    /// Whole numbers of 32 bits.
    Int32,
    /// Whole numbers of 64 bits.
    Int64,
    /// IEEE binary16.
    Float16,
    /// The upper half of a binary32.
    Bfloat16,
    /// IEEE binary32.
    Float32,
    /// IEEE binary64.
    Float64,
}

impl Element {
    /// Bytes of one.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Byte => 1,
            Self::Float16 | Self::Bfloat16 => 2,
            Self::Int32 | Self::Float32 => 4,
            Self::Int64 | Self::Float64 => 8,
        }
    }
}

/// A buffer of a [`Context`]. Never given twice in a process, so a stale one is always noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(u64);

/// A module of a [`Context`]. Never given twice in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ModuleId(u64);

/// A range of a live buffer, proven to lie in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    buffer: BufferId,
    offset: u64,
    bytes: u64,
}

impl Span {
    /// The buffer.
    pub fn buffer(&self) -> BufferId {
        self.buffer
    }

    /// Where the range begins in it.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Its length.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// A range of a module's variable, proven to lie in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VariableSpan {
    module: ModuleId,
    variable: usize,
    offset: u64,
}

impl VariableSpan {
    /// The module.
    pub fn module(&self) -> ModuleId {
        self.module
    }

    /// The variable, by its index in [`steadfast_ptx::module::Module::variables`].
    pub fn variable(&self) -> usize {
        self.variable
    }

    /// Where the range begins in it.
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

/// The text of a module.
#[derive(Debug, Clone)]
pub enum Source<'a> {
    /// PTX that our parser knows, with what it read.
    Parsed {
        /// The text.
        text: &'a str,
        /// What it says.
        module: Arc<steadfast_ptx::module::Module>,
    },
    /// PTX that the device [knows](Device::known), with what it declares.
    Known {
        /// The text.
        text: &'a str,
        /// What is known of it.
        known: Known,
    },
    /// PTX for the driver's eyes only. Free of NUL.
    CudaOnly {
        /// The text.
        text: &'a str,
    },
}

/// What a device knows of a text without reading it.
#[derive(Debug, Clone)]
pub struct Known {
    /// What the text declares, without the functions' bodies.
    pub outline: Arc<steadfast_ptx::module::Module>,
    /// BLAKE3 of the text.
    pub hash: blake3::Hash,
}

/// What the next operations are for. A device does the same whatever it is told; a profile takes them together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The guest asked for each of them.
    Guest,
    /// They are one transfer from a file.
    Load,
    /// They are one transfer to a file.
    Store,
    /// A checkpoint is taken.
    Save,
    /// A checkpoint comes back.
    Restore,
}

/// What a kernel became where it is translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// How many threads run at a time.
    pub form: Form,
    /// Whether blocks run in order, on one core.
    pub one_core: bool,
}

/// A device, as its implementations see themselves: handles are chosen by the caller, and every argument was checked by [`Context`].
///
/// Only `OutOfMemory`, `InvalidModule` (from `load`), `Lost` and `Stopped` are answers of a device. After `Lost` or `Stopped` nothing but
/// [`facts`](Self::facts) and [`stopper`](Self::stopper) is called any more.
pub trait Device: Send {
    /// What it is.
    fn facts(&self) -> &Facts;

    /// What ends its work, from another thread.
    fn stopper(&self) -> Stopper;

    /// Makes a buffer of so many bytes, all 0. 0 bytes are fine.
    fn allocate(&mut self, buffer: BufferId, bytes: u64) -> Result<()>;

    /// Gives a buffer's memory back, once what was ordered before is done.
    fn free(&mut self, buffer: BufferId);

    /// Writes `bytes`, which are as long as `to`.
    fn write(&mut self, to: Span, bytes: &[u8]) -> Result<()>;

    /// Reads into `bytes`, which are as long as `from`, after all that was ordered before.
    fn read(&mut self, from: Span, bytes: &mut [u8]) -> Result<()>;

    /// Reads, or begins to: what is ordered later does not change what arrives. Where the device fails on the way, the content says so. The memory of
    /// `spare`, an earlier content's, is used again.
    fn begin_read(&mut self, from: Span, spare: Vec<Vec<u8>>) -> Result<Content> {
        let mut memory = content::memory(spare.into_iter().next(), from.bytes())?;
        self.read(from, &mut memory)?;
        Ok(memory.into())
    }

    /// Repeats the four bytes of `pattern`, little-endian; offset and length are multiples of 4.
    fn fill(&mut self, span: Span, pattern: u32) -> Result<()>;

    /// Copies between spans of the same length, which may overlap: the source's bytes as they were before.
    fn copy(&mut self, to: Span, from: Span) -> Result<()>;

    /// Writes random `f32`s as [`random`] defines them; the span holds exactly `fill.count` of them.
    fn fill_random(&mut self, to: Span, fill: &RandomFill) -> Result<()>;

    /// What this very text declares, if the device remembers from an earlier attempt that it can make a module of it; then nobody parses it again.
    fn known(&self, _text: &str) -> Option<Known> {
        None
    }

    /// Makes a module ready. Its variables hold what the text says.
    fn load(&mut self, module: ModuleId, source: Source<'_>) -> Result<()>;

    /// Gives a module back, once what was ordered before is done.
    fn unload(&mut self, module: ModuleId);

    /// Writes a module's variable.
    fn write_variable(&mut self, to: VariableSpan, bytes: &[u8]) -> Result<()>;

    /// Reads a module's variable, after all that was ordered before.
    fn read_variable(&mut self, from: VariableSpan, bytes: &mut [u8]) -> Result<()>;

    /// Makes a kernel ready to be launched, if there is something to do for it before its first launch; whether there was.
    fn prepare(&mut self, _module: ModuleId, _entry: &str) -> Result<bool> {
        Ok(false)
    }

    /// What a kernel that is ready became, if this device translates kernels.
    fn code(&self, _module: ModuleId, _entry: &str) -> Option<Code> {
        None
    }

    /// Says what the next operations are for.
    fn serve(&mut self, _purpose: Purpose) {}

    /// Runs a kernel.
    fn launch(&mut self, launch: &ValidatedLaunch) -> Result<()>;

    /// Multiplies matrices.
    fn gemm(&mut self, gemm: &ValidatedGemm) -> Result<()>;

    /// Returns when all that was ordered is done.
    fn synchronize(&mut self) -> Result<()>;
}
