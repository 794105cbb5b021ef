//! A launch, checked against the entry that it names before any device hears of it.
//!
//! Limits are those of every GPU since compute capability 3.0, so that a launch means the same on every device.

use steadfast_ptx::module::{Function, Module, Parameter, Space, Type};

use super::{BufferId, DeviceError, ModuleId, Result};

/// The most blocks by axis.
pub const MOST_BLOCKS: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
/// The most threads in a block by axis.
pub const MOST_THREADS: [u32; 3] = [1024, 1024, 64];
/// The most threads in a block.
pub const MOST_THREADS_IN_BLOCK: u32 = steadfast_ptx::kernel::MOST_THREADS;
/// The most bytes of shared memory that a block may have, static and dynamic.
pub const MOST_SHARED_BYTES: u32 = 48 << 10;

const AXES: [&str; 3] = ["x", "y", "z"];

/// What to run.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// The name of an entry of the module.
    pub entry: &'a str,
    /// Blocks by axis.
    pub grid: [u32; 3],
    /// Threads in a block, by axis.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared_bytes: u32,
    /// One for each parameter, in order.
    pub arguments: &'a [Argument<'a>],
}

/// What a parameter is given.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(missing_docs, reason = "named like the type that they hold")]
pub enum Argument<'a> {
    /// The address of a byte of a buffer; its end is fine too. For a parameter of 64 bits.
    Buffer(BufferId, u64),
    Int32(i32),
    Uint32(u32),
    Int64(i64),
    Uint64(u64),
    Float32(f32),
    Float64(f64),
    /// The bytes of a structure passed by value, or of a value of any type.
    Bytes(&'a [u8]),
}

impl Argument<'_> {
    fn bytes(&self) -> usize {
        match self {
            Self::Int32(_) | Self::Uint32(_) | Self::Float32(_) => 4,
            Self::Buffer(..) | Self::Int64(_) | Self::Uint64(_) | Self::Float64(_) => 8,
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    /// Writes the value to `block`; of a buffer, nothing: its address is for the device to know.
    fn encode(&self, block: &mut [u8]) {
        match self {
            Self::Buffer(..) => {}
            Self::Int32(value) => block.copy_from_slice(&value.to_le_bytes()),
            Self::Uint32(value) => block.copy_from_slice(&value.to_le_bytes()),
            Self::Int64(value) => block.copy_from_slice(&value.to_le_bytes()),
            Self::Uint64(value) => block.copy_from_slice(&value.to_le_bytes()),
            Self::Float32(value) => block.copy_from_slice(&value.to_le_bytes()),
            Self::Float64(value) => block.copy_from_slice(&value.to_le_bytes()),
            Self::Bytes(bytes) => block.copy_from_slice(bytes),
        }
    }

    fn fits(&self, parameter: &Parameter) -> bool {
        if let Self::Bytes(bytes) = self {
            return bytes.len() == parameter.bytes as usize;
        }
        !parameter.array
            && match self {
                Self::Buffer(..) | Self::Int64(_) | Self::Uint64(_) => {
                    matches!(parameter.element, Type::U64 | Type::S64 | Type::B64)
                }
                Self::Int32(_) | Self::Uint32(_) => matches!(parameter.element, Type::U32 | Type::S32 | Type::B32),
                Self::Float32(_) => matches!(parameter.element, Type::F32 | Type::B32),
                Self::Float64(_) => matches!(parameter.element, Type::F64 | Type::B64),
                Self::Bytes(_) => false,
            }
    }

    fn describe(&self) -> String {
        match self {
            Self::Buffer(..) => "a buffer".into(),
            Self::Int32(_) => "an int32".into(),
            Self::Uint32(_) => "a uint32".into(),
            Self::Int64(_) => "an int64".into(),
            Self::Uint64(_) => "a uint64".into(),
            Self::Float32(_) => "a float32".into(),
            Self::Float64(_) => "a float64".into(),
            Self::Bytes(bytes) => format!("{} bytes", bytes.len()),
        }
    }
}

/// Where a buffer's address belongs in the parameter block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferArgument {
    /// Offset of its 8 bytes in the block.
    pub at: u32,
    /// The buffer: alive, and until the launch is done.
    pub buffer: BufferId,
    /// Added to its address; at most its size.
    pub offset: u64,
}

/// A launch that a device can carry out without looking at it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidatedLaunch {
    module: ModuleId,
    entry: String,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    offsets: Vec<u32>,
    parameters: Vec<u8>,
    buffers: Vec<BufferArgument>,
}

impl ValidatedLaunch {
    /// Where the entry is.
    pub fn module(&self) -> ModuleId {
        self.module
    }

    /// The entry's name. Of a module that was parsed, it is one of its entries; of another, it has no NUL.
    pub fn entry(&self) -> &str {
        &self.entry
    }

    /// Blocks by axis; none is 0.
    pub fn grid(&self) -> [u32; 3] {
        self.grid
    }

    /// Threads in a block by axis; none is 0.
    pub fn block(&self) -> [u32; 3] {
        self.block
    }

    /// Bytes of dynamic shared memory.
    pub fn shared_bytes(&self) -> u32 {
        self.shared_bytes
    }

    /// Where each parameter begins in [`parameters`](Self::parameters).
    pub fn offsets(&self) -> &[u32] {
        &self.offsets
    }

    /// The parameter block, with 0 where addresses belong.
    pub fn parameters(&self) -> &[u8] {
        &self.parameters
    }

    /// Which addresses belong into the block.
    pub fn buffers(&self) -> &[BufferArgument] {
        &self.buffers
    }

    /// Checks `launch`. `function` is the entry where the module was parsed; `size` answers the size of a live buffer.
    ///
    /// A launch of no blocks or no threads is refused, as the driver does.
    pub(super) fn new(
        module: ModuleId,
        function: Option<&EntryFacts>,
        launch: &Launch<'_>,
        size: impl Fn(BufferId) -> Option<u64>,
    ) -> Result<Self> {
        check_shape(launch)?;
        let mut validated = Self {
            module,
            entry: launch.entry.to_owned(),
            grid: launch.grid,
            block: launch.block,
            shared_bytes: launch.shared_bytes,
            offsets: Vec::with_capacity(launch.arguments.len()),
            parameters: Vec::new(),
            buffers: Vec::new(),
        };
        match function {
            Some(function) => {
                check_block(function, launch)?;
                check_shared(function, launch)?;
                check_arguments(function, launch)?;
                validated.offsets.extend(function.parameters.iter().map(|parameter| parameter.offset));
                validated.parameters.resize(function.parameter_bytes(), 0);
            }
            None => validated.lay_out(launch.arguments),
        }
        validated.fill(launch, size)?;
        Ok(validated)
    }

    /// Each argument at the next multiple of its size, structures at multiples of 8: nothing better is known without the entry's text.
    fn lay_out(&mut self, arguments: &[Argument<'_>]) {
        let mut end = 0_usize;
        for argument in arguments {
            let align = if matches!(argument, Argument::Bytes(_)) { 8 } else { argument.bytes() };
            let offset = end.next_multiple_of(align);
            self.offsets.push(u32::try_from(offset).unwrap_or(u32::MAX));
            end = offset + argument.bytes();
        }
        self.parameters.resize(end, 0);
    }

    fn fill(&mut self, launch: &Launch<'_>, size: impl Fn(BufferId) -> Option<u64>) -> Result<()> {
        for (index, (argument, at)) in launch.arguments.iter().zip(&self.offsets).enumerate() {
            let start = *at as usize;
            argument.encode(&mut self.parameters[start..start + argument.bytes()]);
            if let Argument::Buffer(buffer, offset) = argument {
                let which = || format!("argument {} of `{}`", index + 1, launch.entry);
                let size = size(*buffer)
                    .ok_or_else(|| DeviceError::argument(format!("{} is a buffer that was dropped", which())))?;
                if *offset > size {
                    let text = format!("{} is offset {offset} of a buffer of {size} bytes", which());
                    return Err(DeviceError::InvalidArgument(text));
                }
                self.buffers.push(BufferArgument { at: *at, buffer: *buffer, offset: *offset });
            }
        }
        Ok(())
    }
}

/// What a launch of an entry is checked against.
#[derive(Debug, Clone, PartialEq)]
pub struct EntryFacts {
    /// In order.
    pub parameters: Vec<Parameter>,
    /// Bytes of static shared memory at most: the module's and the entry's.
    pub static_shared: u32,
    /// `.maxntid`, by axis.
    pub max_threads: Option<[u32; 3]>,
    /// `.reqntid`, by axis.
    pub required_threads: Option<[u32; 3]>,
}

impl EntryFacts {
    /// Of an entry of a module. For shared memory an upper bound: which variables of the module and its functions an entry reaches, only a
    /// translation knows.
    pub(super) fn of(module: &Module, entry: &Function) -> Self {
        let functions = module.functions.iter().filter(|function| !function.entry || function.name == entry.name);
        let variables = module.variables.iter().chain(functions.flat_map(|function| &function.variables));
        let shared = variables.filter(|variable| variable.space == Space::Shared && !variable.external);
        let static_shared = shared.fold(0_u64, |end, variable| {
            end.next_multiple_of(u64::from(variable.align.max(1))).saturating_add(variable.bytes)
        });
        Self {
            parameters: entry.parameters.clone(),
            static_shared: u32::try_from(static_shared).unwrap_or(u32::MAX),
            max_threads: entry.max_threads,
            required_threads: entry.required_threads,
        }
    }

    fn parameter_bytes(&self) -> usize {
        self.parameters.last().map_or(0, |last| last.offset as usize + last.bytes as usize)
    }
}

fn refuse<T>(launch: &Launch<'_>, text: &str) -> Result<T> {
    Err(DeviceError::InvalidArgument(format!("launch of `{}`: {text}", launch.entry)))
}

fn check_shape(launch: &Launch<'_>) -> Result<()> {
    for (what, counts, most) in [("grid", launch.grid, MOST_BLOCKS), ("block", launch.block, MOST_THREADS)] {
        for axis in 0..3 {
            let (count, most, name) = (counts[axis], most[axis], AXES[axis]);
            if count == 0 {
                return refuse(launch, &format!("{what}.{name} is 0; launch nothing instead"));
            }
            if count > most {
                return refuse(launch, &format!("{what}.{name} is {count}, and {most} is the most"));
            }
        }
    }
    let threads: u32 = launch.block.iter().product();
    if threads > MOST_THREADS_IN_BLOCK {
        let [x, y, z] = launch.block;
        let text = format!("a block of {x} × {y} × {z} has {threads} threads, and {MOST_THREADS_IN_BLOCK} is the most");
        return refuse(launch, &text);
    }
    Ok(())
}

fn check_block(function: &EntryFacts, launch: &Launch<'_>) -> Result<()> {
    let [x, y, z] = launch.block;
    if let Some(required @ [rx, ry, rz]) = function.required_threads
        && required != launch.block
    {
        return refuse(launch, &format!("the block is {x} × {y} × {z}, and the kernel says .reqntid {rx}, {ry}, {rz}"));
    }
    // `.maxntid` limits the threads of the block, however they are spread over the axes.
    if let Some(max @ [mx, my, mz]) = function.max_threads {
        let most = max.iter().fold(1_u64, |product, count| product.saturating_mul(u64::from(*count)));
        if launch.block.iter().map(|count| u64::from(*count)).product::<u64>() > most {
            return refuse(
                launch,
                &format!("the block is {x} × {y} × {z}, and the kernel says .maxntid {mx}, {my}, {mz}"),
            );
        }
    }
    Ok(())
}

fn check_shared(function: &EntryFacts, launch: &Launch<'_>) -> Result<()> {
    let (fixed, dynamic) = (function.static_shared, launch.shared_bytes);
    let start = if dynamic == 0 { u64::from(fixed) } else { u64::from(fixed).next_multiple_of(16) };
    if start + u64::from(dynamic) > u64::from(MOST_SHARED_BYTES) {
        let text = format!(
            "{fixed} bytes of static and {dynamic} of dynamic shared memory are more than the {MOST_SHARED_BYTES} that a block may have"
        );
        return refuse(launch, &text);
    }
    Ok(())
}

fn check_arguments(function: &EntryFacts, launch: &Launch<'_>) -> Result<()> {
    let (given, taken) = (launch.arguments.len(), function.parameters.len());
    if given != taken {
        let plural = |count, word: &str| if count == 1 { format!("1 {word}") } else { format!("{count} {word}s") };
        let text = format!(
            "`{}` takes {}, and {} given",
            launch.entry,
            plural(taken, "argument"),
            if given == 1 { "1 was".into() } else { format!("{given} were") }
        );
        return Err(DeviceError::InvalidArgument(text));
    }
    for (index, (argument, parameter)) in launch.arguments.iter().zip(&function.parameters).enumerate() {
        if !argument.fits(parameter) {
            let (number, is, takes) = (index + 1, argument.describe(), describe(parameter));
            let text = format!("argument {number} of `{}` is {is}, but the kernel takes {takes}", launch.entry);
            return Err(DeviceError::InvalidArgument(text));
        }
    }
    Ok(())
}

fn describe(parameter: &Parameter) -> String {
    if parameter.array {
        return format!("a structure of {} bytes", parameter.bytes);
    }
    format!(".{}", format!("{:?}", parameter.element).to_lowercase())
}

#[cfg(test)]
mod tests;
