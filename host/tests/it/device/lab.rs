//! A device with what tests do to it.

use std::rc::Rc;

use steadfast::device::{
    Argument, BufferId, Context, Device, DeviceError, Distribution, Launch, ModuleId, RandomFill, Result,
};

/// What a test needs of a device.
pub struct Lab {
    pub context: Context,
    open: Rc<dyn Fn() -> Box<dyn Device>>,
    seed: u64,
    drawn: u64,
}

impl Lab {
    /// With inputs that no run had before; a failing test shows the seed.
    pub fn new(open: impl Fn() -> Box<dyn Device> + 'static) -> Self {
        Self::of(Rc::new(open))
    }

    /// Another device of the same kind, for cases that lose theirs.
    pub fn fresh(&self) -> Self {
        Self::of(self.open.clone())
    }

    fn of(open: Rc<dyn Fn() -> Box<dyn Device>>) -> Self {
        let mut seed = [0; 8];
        rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty()).unwrap();
        let seed = u64::from_le_bytes(seed);
        println!("inputs from seed {seed}");
        Self { context: Context::new(open()), open, seed, drawn: 0 }
    }

    /// A buffer with these numbers.
    pub fn upload<T: Plain>(&mut self, numbers: &[T]) -> BufferId {
        let bytes = to_bytes(numbers);
        let buffer = self.context.allocate(bytes.len() as u64).unwrap();
        self.context.write(buffer, 0, &bytes).unwrap();
        buffer
    }

    /// A buffer for results, full of NaNs or the most impossible of integers.
    pub fn poisoned<T: Plain>(&mut self, count: usize) -> BufferId {
        self.upload(&from_bytes::<T>(&vec![0xff; count * size_of::<T>()]))
    }

    /// All numbers in a buffer.
    pub fn download<T: Plain>(&mut self, buffer: BufferId) -> Vec<T> {
        from_bytes(&self.bytes(buffer))
    }

    /// All bytes of a buffer.
    pub fn bytes(&mut self, buffer: BufferId) -> Vec<u8> {
        let mut bytes = vec![0; self.context.size(buffer).unwrap() as usize];
        self.context.read(buffer, 0, &mut bytes).unwrap();
        bytes
    }

    /// So many numbers of mean 0 and variance 1.
    pub fn normal(&mut self, count: usize) -> Vec<f32> {
        self.draw(Distribution::Normal, count)
    }

    /// So many numbers in (0, 1].
    pub fn uniform(&mut self, count: usize) -> Vec<f32> {
        self.draw(Distribution::Uniform, count)
    }

    /// So many whole numbers below `limit`.
    pub fn below(&mut self, limit: u32, count: usize) -> Vec<u32> {
        self.uniform(count).into_iter().map(|number| (f64::from(number) * f64::from(limit)).ceil() as u32 - 1).collect()
    }

    fn draw(&mut self, distribution: Distribution, count: usize) -> Vec<f32> {
        let mut bytes = vec![0; count * 4];
        let fill = RandomFill { distribution, seed: self.seed, position: self.drawn, count: count as u64 };
        fill.write(0, &mut bytes);
        self.drawn += count as u64;
        from_bytes(&bytes)
    }

    /// A module with this body, after the usual directives.
    pub fn module(&mut self, body: &str) -> ModuleId {
        self.context.load(&ptx(body)).unwrap()
    }

    /// Runs a kernel in `blocks` blocks of `threads` threads.
    pub fn launch(
        &mut self,
        module: ModuleId,
        entry: &str,
        blocks: u32,
        threads: u32,
        arguments: &[Argument<'_>],
    ) -> Result<()> {
        let (grid, block) = ([blocks, 1, 1], [threads, 1, 1]);
        self.context.launch(module, &Launch { entry, grid, block, shared_bytes: 0, arguments })
    }
}

/// A module's text.
pub fn ptx(body: &str) -> String {
    format!(".version 8.2\n.target sm_75\n.address_size 64\n{body}")
}

/// The text of a refusal.
pub fn refused<T: std::fmt::Debug>(answer: Result<T>) -> String {
    match answer {
        Err(DeviceError::InvalidArgument(text) | DeviceError::InvalidModule(text)) => text,
        other => panic!("not refused: {other:?}"),
    }
}

/// The text of a fault.
pub fn lost<T: std::fmt::Debug>(answer: Result<T>) -> String {
    match answer {
        Err(DeviceError::Lost(text)) => text,
        other => panic!("not lost: {other:?}"),
    }
}

/// The text of a want of memory.
pub fn out_of_memory<T: std::fmt::Debug>(answer: Result<T>) -> String {
    match answer {
        Err(DeviceError::OutOfMemory(text)) => text,
        other => panic!("there is memory: {other:?}"),
    }
}

/// Asserts that each number is within `tolerance(index)` of its reference; a NaN is within nothing.
pub fn assert_near(found: &[f32], expected: &[f64], tolerance: impl Fn(usize) -> f64) {
    assert_eq!(found.len(), expected.len());
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        let (off, most) = ((f64::from(*found) - expected).abs(), tolerance(index));
        assert!(off <= most, "number {index}: {found}, not {expected}: off by {off:e}, and {most:e} is allowed");
    }
}

/// Numbers as they lie in device memory.
pub trait Plain: Copy {
    fn push(self, bytes: &mut Vec<u8>);
    fn of(bytes: &[u8]) -> Self;
}

macro_rules! plain {
    ($($number:ty),+) => {
        $(impl Plain for $number {
            fn push(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn of(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().unwrap())
            }
        })+
    };
}
plain!(u8, u16, u32, i32, u64, f32, f64);

pub fn to_bytes<T: Plain>(numbers: &[T]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of_val(numbers));
    numbers.iter().for_each(|number| number.push(&mut bytes));
    bytes
}

pub fn from_bytes<T: Plain>(bytes: &[u8]) -> Vec<T> {
    bytes.chunks_exact(size_of::<T>()).map(T::of).collect()
}
