//! A kernel of `tests/kernels` as a caller sees it: arguments in order, buffers with gaps between them, results read back.
//!
//! Every launch also runs with its blocks divided among two and three instances, and nothing but the buffers handed over as writable may change.

use std::ops::Range;

use steadfast_ptx::module::Parameter;

use crate::random::Random;
use crate::rig::{BUFFERS, Kernel, Run, SHARED, Start};

/// Between buffers, and in results before the launch.
const POISON: u8 = 0xcb;
/// Bytes that stay as they are around each buffer.
const GAP: u64 = 256;

/// A kernel, parsed and translated once for all its launches.
pub(super) struct Subject {
    kernel: Kernel,
}

/// A buffer of a launch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer {
    address: u64,
    bytes: usize,
}

/// A launch in preparation.
pub(super) struct Call<'a> {
    subject: &'a Subject,
    start: Start,
    end: u64,
    parameters: Vec<u8>,
    given: usize,
    writable: Vec<Range<usize>>,
}

/// What is in memory after a launch.
pub(super) struct Outcome {
    pub(super) memory: Vec<u8>,
}

/// A number as bytes.
pub(super) trait Element: Copy {
    fn bytes(self) -> Vec<u8>;
    fn from_bytes(bytes: &[u8]) -> Self;
}

macro_rules! elements {
    ($($ty:ty),*) => {
        $(impl Element for $ty {
            fn bytes(self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }

            fn from_bytes(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().unwrap())
            }
        })*
    };
}

elements!(u8, u16, u32, i32, u64, i64, f32, f64);

impl Subject {
    pub(super) fn new(file: &str, entry: &str) -> Self {
        Self { kernel: Kernel::new(&text(file), entry).unwrap() }
    }

    pub(super) fn call(&self) -> Call<'_> {
        let mut start = Start::of(&self.kernel, BUFFERS + GAP);
        start.memory[BUFFERS as usize..].fill(POISON);
        let parameters = vec![0; self.kernel.translation.parameter_bytes as usize];
        Call { subject: self, start, end: BUFFERS + GAP, parameters, given: 0, writable: Vec::new() }
    }

    /// Whether its blocks must run in order.
    pub(super) fn is_sequential(&self) -> bool {
        self.kernel.translation.sequential
    }
}

/// One of the files in `tests/kernels`.
pub(super) fn text(file: &str) -> String {
    let path = format!("{}/tests/kernels/{file}.ptx", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

impl Call<'_> {
    fn parameter(&mut self) -> Parameter {
        let parameter = self.subject.kernel.translation.parameters[self.given].clone();
        self.given += 1;
        parameter
    }

    /// A scalar argument, or a structure as its bytes.
    pub(super) fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        let parameter = self.parameter();
        assert_eq!(parameter.bytes as usize, bytes.len(), "{}", parameter.name);
        self.parameters[parameter.offset as usize..][..bytes.len()].copy_from_slice(bytes);
        self
    }

    pub(super) fn value<T: Element>(&mut self, value: T) -> &mut Self {
        self.bytes(&value.bytes())
    }

    fn place(&mut self, bytes: &[u8]) -> Buffer {
        let buffer = Buffer { address: self.end, bytes: bytes.len() };
        self.start.memory.extend_from_slice(bytes);
        self.end = (self.end + bytes.len() as u64 + GAP).next_multiple_of(GAP);
        assert!(self.end <= SHARED, "there is no room for the buffers");
        self.start.memory.resize(self.end as usize, POISON);
        self.value(buffer.address);
        buffer
    }

    /// A buffer that the kernel may read only.
    pub(super) fn input<T: Element>(&mut self, values: &[T]) -> Buffer {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.bytes()).collect();
        self.place(&bytes)
    }

    /// A buffer that it reads and writes.
    pub(super) fn inout<T: Element>(&mut self, values: &[T]) -> Buffer {
        let buffer = self.input(values);
        self.writable.push(buffer.range());
        buffer
    }

    /// A poisoned buffer that it writes.
    pub(super) fn output<T: Element>(&mut self, count: usize) -> Buffer {
        let bytes = vec![POISON; count * size_of::<T>()];
        let buffer = self.place(&bytes);
        self.writable.push(buffer.range());
        buffer
    }

    /// Bytes outside the buffers that it may change.
    pub(super) fn also_writes(&mut self, address: u64, bytes: usize) -> &mut Self {
        self.writable.push(address as usize..address as usize + bytes);
        self
    }

    pub(super) fn run(&self, grid: [u32; 3], block: [u32; 3], dynamic_shared: u32) -> Outcome {
        let kernel = &self.subject.kernel;
        assert_eq!(self.given, kernel.translation.parameters.len(), "arguments of {}", kernel.translation.name);
        let run = Run { grid, block, dynamic_shared, parameters: self.parameters.clone() };
        let memory = kernel.translation(&run, &self.start).unwrap();
        if !self.subject.is_sequential() {
            for instances in [2, 3] {
                let other = kernel.split(&run, &self.start, instances).unwrap();
                assert!(memory == other, "{instances} instances give something else than one");
            }
        }
        let mut unchanged = self.start.memory[..memory.len()].to_vec();
        for range in &self.writable {
            unchanged[range.clone()].copy_from_slice(&memory[range.clone()]);
        }
        let changed = memory.iter().zip(&unchanged).skip(BUFFERS as usize).position(|(now, before)| now != before);
        assert_eq!(changed, None, "a byte that belongs to no writable buffer has changed");
        Outcome { memory }
    }
}

impl Buffer {
    fn range(self) -> Range<usize> {
        self.address as usize..self.address as usize + self.bytes
    }
}

impl Outcome {
    pub(super) fn read<T: Element>(&self, buffer: Buffer) -> Vec<T> {
        self.memory[buffer.range()].chunks(size_of::<T>()).map(T::from_bytes).collect()
    }
}

/// Inputs for one test: other ones each time, from a seed that a failure shows.
pub(super) struct Inputs {
    random: Random,
}

impl Inputs {
    /// From `STEADFAST_PTX_SEED` or the clock.
    pub(super) fn fresh() -> Self {
        let seed = match std::env::var("STEADFAST_PTX_SEED") {
            Ok(seed) => seed.parse().unwrap(),
            Err(_) => {
                let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
                time.as_nanos() as u64
            }
        };
        println!("STEADFAST_PTX_SEED={seed}");
        Self { random: Random::new(seed) }
    }

    pub(super) fn floats(&mut self, count: usize, least: f64, most: f64) -> Vec<f32> {
        (0..count).map(|_| self.random.uniform(least, most) as f32).collect()
    }

    pub(super) fn doubles(&mut self, count: usize, least: f64, most: f64) -> Vec<f64> {
        (0..count).map(|_| self.random.uniform(least, most)).collect()
    }

    /// From `least` to `most`, both included.
    pub(super) fn integers(&mut self, count: usize, least: i32, most: i32) -> Vec<i32> {
        let span = (i64::from(most) - i64::from(least)) as u64;
        (0..count).map(|_| (i64::from(least) + self.random.between(0, span) as i64) as i32).collect()
    }

    pub(super) fn float(&mut self, least: f64, most: f64) -> f32 {
        self.random.uniform(least, most) as f32
    }

    pub(super) fn bits(&mut self) -> u64 {
        self.random.next()
    }
}

/// Each result is near what the reference has: within `relative` of it or of `floor`, whichever is greater.
pub(super) fn assert_near(got: &[f32], expected: &[f64], relative: f64, floor: f64) {
    let got: Vec<f64> = got.iter().map(|x| f64::from(*x)).collect();
    assert_near_f64(&got, expected, relative, floor);
}

pub(super) fn assert_near_f64(got: &[f64], expected: &[f64], relative: f64, floor: f64) {
    assert_eq!(got.len(), expected.len());
    for (index, (got, expected)) in got.iter().zip(expected).enumerate() {
        let bound = relative * expected.abs().max(floor);
        assert!((got - expected).abs() <= bound, "element {index}: {got:e} and not {expected:e} ± {bound:e}");
    }
}
