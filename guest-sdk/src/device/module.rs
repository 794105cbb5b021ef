//! Kernels and their launches.

use super::buffer::{Buffer, View};
use super::element::{Bf16, Element, F16};
use super::error::{self, Error, Result};
use crate::bindings::steadfast::job::device as wit;

/// Kernels from a text in PTX, and the variables that they share.
///
/// A module is no part of the state: give its field `#[serde(skip)]`, and make it in [`Plugin::start`](crate::Plugin::start) and
/// again in [`Plugin::resumed`](crate::Plugin::resumed). Until then it is closed, as `Module::default()` is. Variables in `.global` space that its
/// kernels change are kept by every checkpoint: a module of the same text finds them as they were.
#[derive(Debug, Default)]
pub struct Module {
    open: Option<wit::Module>,
}

impl Module {
    /// From PTX that every device understands: `Module::from_ptx(include_str!("saxpy.ptx"))`.
    pub fn from_ptx(text: &str) -> Result<Self> {
        error::needs_host("a module")?;
        Ok(Self { open: Some(wit::Module::from_ptx(text)?) })
    }

    /// From PTX for NVIDIA's driver alone, with instructions that no other device has. The CPU refuses it.
    pub fn cuda_only(text: &str) -> Result<Self> {
        error::needs_host("a module")?;
        Ok(Self { open: Some(wit::Module::cuda_only(text)?) })
    }

    /// A launch of this kernel: one block of one thread, unless more is asked for.
    pub fn kernel<'a>(&'a self, entry: &'a str) -> Launch<'a> {
        Launch { module: self, entry, grid: [1; 3], block: [1; 3], shared_bytes: 0, arguments: Vec::new() }
    }
}

/// A kernel about to be launched.
#[derive(Debug)]
#[must_use = "nothing runs before `launch`"]
pub struct Launch<'a> {
    module: &'a Module,
    entry: &'a str,
    grid: [u64; 3],
    block: [u64; 3],
    shared_bytes: u32,
    arguments: Vec<Argument<'a>>,
}

impl<'a> Launch<'a> {
    /// How many blocks: a number, or two or three along the axes. `n.div_ceil(256)` blocks of 256 threads are enough for `n` threads.
    pub fn grid(mut self, blocks: impl Dimensions) -> Self {
        self.grid = blocks.dimensions();
        self
    }

    /// How many threads a block has, 1024 at most: a number, or two or three along the axes.
    pub fn block(mut self, threads: impl Dimensions) -> Self {
        self.block = threads.dimensions();
        self
    }

    /// Bytes of dynamic shared memory for each block.
    pub fn shared_bytes(mut self, bytes: u32) -> Self {
        self.shared_bytes = bytes;
        self
    }

    /// The next argument: a buffer, a part of one, or a number. A number's type must be as wide as the parameter's: `2.0` is an `f64`.
    pub fn arg(mut self, argument: impl Into<Argument<'a>>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Runs it, after all operations before it. Does not wait for it.
    pub fn launch(self) -> Result<()> {
        let Self { module, entry, grid, block, shared_bytes, arguments } = self;
        let within = |error: Error| error.within(&format!("kernel `{entry}`"));
        let module = module.open.as_ref().ok_or_else(|| {
            within(Error::invalid("its module is closed: make it in `start`, and again in `resumed`"))
        })?;
        let dimensions = |what: &str, [x, y, z]: [u64; 3]| match (x.try_into(), y.try_into(), z.try_into()) {
            (Ok(x), Ok(y), Ok(z)) => Ok(wit::Dimensions { x, y, z }),
            _ => Err(within(Error::invalid(format!("a {what} of {x} × {y} × {z} is larger than any device takes")))),
        };
        let (grid, block) = (dimensions("grid", grid)?, dimensions("block", block)?);
        let mut lowered = Vec::with_capacity(arguments.len());
        for (index, argument) in arguments.iter().enumerate() {
            lowered.push(argument.lower().map_err(|error| within(error.within(&format!("argument {}", index + 1))))?);
        }
        // The host names the kernel and the argument.
        Ok(module.launch(entry, grid, block, shared_bytes, &lowered)?)
    }
}

/// One argument of a kernel.
#[derive(Debug)]
pub struct Argument<'a>(Kind<'a>);

#[derive(Debug)]
enum Kind<'a> {
    Buffer(Result<(&'a wit::Buffer, u64)>),
    Int32(i32),
    Uint32(u32),
    Int64(i64),
    Uint64(u64),
    Float32(f32),
    Float64(f64),
    Bytes(Vec<u8>),
}

impl<'a> Argument<'a> {
    /// A structure that is passed by value: its bytes, little-endian, laid out as the kernel declares it.
    pub fn bytes(bytes: &[u8]) -> Self {
        Self(Kind::Bytes(bytes.to_owned()))
    }

    fn lower(&self) -> Result<wit::Argument<'a>> {
        Ok(match &self.0 {
            Kind::Buffer(place) => wit::Argument::Buffer(place.clone()?),
            Kind::Int32(value) => wit::Argument::Int32(*value),
            Kind::Uint32(value) => wit::Argument::Uint32(*value),
            Kind::Int64(value) => wit::Argument::Int64(*value),
            Kind::Uint64(value) => wit::Argument::Uint64(*value),
            Kind::Float32(value) => wit::Argument::Float32(*value),
            Kind::Float64(value) => wit::Argument::Float64(*value),
            Kind::Bytes(bytes) => wit::Argument::Bytes(bytes.clone()),
        })
    }
}

impl<'a, T: Element> From<&'a Buffer<T>> for Argument<'a> {
    fn from(buffer: &'a Buffer<T>) -> Self {
        buffer.at(0).into()
    }
}

impl<'a, T: Element> From<View<'a, T>> for Argument<'a> {
    fn from(view: View<'a, T>) -> Self {
        Self(Kind::Buffer(view.place()))
    }
}

macro_rules! numbers {
    ($($type:ty, $kind:ident;)*) => { $(
        impl From<$type> for Argument<'_> {
            fn from(value: $type) -> Self {
                Self(Kind::$kind(value))
            }
        }
    )* };
}

numbers! { i32, Int32; u32, Uint32; i64, Int64; u64, Uint64; f32, Float32; f64, Float64; }

macro_rules! small_numbers {
    ($($type:ty)*) => { $(
        impl From<$type> for Argument<'_> {
            fn from(value: $type) -> Self {
                Self(Kind::Bytes(value.to_le_bytes().into()))
            }
        }
    )* };
}

small_numbers! { i8 u8 i16 u16 F16 Bf16 }

/// A number along one axis, or along two or three.
pub trait Dimensions {
    /// Along x, y and z.
    fn dimensions(self) -> [u64; 3];
}

macro_rules! counts {
    ($($type:ty)*) => { $(
        impl Dimensions for $type {
            fn dimensions(self) -> [u64; 3] {
                // Less than nothing is refused like nothing.
                [u64::try_from(self).unwrap_or(0), 1, 1]
            }
        }
    )* };
}

counts! { i32 u32 u64 usize }

impl<X: Dimensions, Y: Dimensions> Dimensions for (X, Y) {
    fn dimensions(self) -> [u64; 3] {
        [self.0.dimensions()[0], self.1.dimensions()[0], 1]
    }
}

impl<X: Dimensions, Y: Dimensions, Z: Dimensions> Dimensions for (X, Y, Z) {
    fn dimensions(self) -> [u64; 3] {
        [self.0.dimensions()[0], self.1.dimensions()[0], self.2.dimensions()[0]]
    }
}
