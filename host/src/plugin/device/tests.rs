//! What a guest holds of a device, on the plainest device that there could be.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::failure::Failure;
use super::{DeviceKind, DeviceSection, Holdings, OpenDevice};
use crate::device::{
    Backend, BufferId, Device, DeviceError, Facts, ModuleId, RandomFill, Result, Source, Span, Stopper, ValidatedGemm,
    ValidatedLaunch, VariableSpan,
};
use crate::plugin::bindings::steadfast::job::device::Element;
use crate::plugin::{Interrupter, Interruption};

/// Buffers in the host's memory, and nothing else.
struct Plain {
    facts: Facts,
    stopper: Stopper,
    buffers: HashMap<BufferId, Vec<u8>>,
    alive: Arc<AtomicUsize>,
}

impl Drop for Plain {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

fn range(span: Span) -> std::ops::Range<usize> {
    span.offset() as usize..(span.offset() + span.bytes()) as usize
}

impl Device for Plain {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    fn allocate(&mut self, buffer: BufferId, bytes: u64) -> Result<()> {
        self.buffers.insert(buffer, vec![0; bytes as usize]);
        Ok(())
    }

    fn free(&mut self, buffer: BufferId) {
        self.buffers.remove(&buffer);
    }

    fn write(&mut self, to: Span, bytes: &[u8]) -> Result<()> {
        if self.stopper.is_stopped() {
            return Err(DeviceError::Stopped);
        }
        self.buffers.get_mut(&to.buffer()).unwrap()[range(to)].copy_from_slice(bytes);
        Ok(())
    }

    fn read(&mut self, from: Span, bytes: &mut [u8]) -> Result<()> {
        bytes.copy_from_slice(&self.buffers[&from.buffer()][range(from)]);
        Ok(())
    }

    fn fill(&mut self, span: Span, _: u32) -> Result<()> {
        Err(DeviceError::Lost(format!("filling {span:?} failed")))
    }

    fn copy(&mut self, _: Span, _: Span) -> Result<()> {
        unreachable!("no test copies")
    }

    fn fill_random(&mut self, _: Span, _: &RandomFill) -> Result<()> {
        unreachable!("no test draws numbers")
    }

    fn load(&mut self, _: ModuleId, _: Source<'_>) -> Result<()> {
        unreachable!("no test has a module")
    }

    fn unload(&mut self, _: ModuleId) {}

    fn write_variable(&mut self, _: VariableSpan, _: &[u8]) -> Result<()> {
        unreachable!("no test has a variable")
    }

    fn read_variable(&mut self, _: VariableSpan, _: &mut [u8]) -> Result<()> {
        unreachable!("no test has a variable")
    }

    fn launch(&mut self, _: &ValidatedLaunch) -> Result<()> {
        unreachable!("no test has a kernel")
    }

    fn gemm(&mut self, _: &ValidatedGemm) -> Result<()> {
        unreachable!("no test multiplies")
    }

    fn synchronize(&mut self) -> Result<()> {
        Ok(())
    }
}

struct Bench {
    open: OpenDevice,
    interrupter: Interrupter,
    alive: Arc<AtomicUsize>,
}

impl Bench {
    fn new() -> Self {
        let alive = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&alive);
        let open: OpenDevice = Arc::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok(Box::new(Plain {
                facts: Facts { backend: Backend::Cuda, name: "plain".into(), memory_bytes: 1 << 40 },
                stopper: Stopper::new(|| {}),
                buffers: HashMap::new(),
                alive: Arc::clone(&counted),
            }))
        });
        Self { open, interrupter: Interrupter::new(&wasmtime::Engine::default()), alive }
    }

    fn holdings(&self) -> Holdings {
        Holdings::new(Some(Arc::clone(&self.open)), 1000, self.interrupter.clone())
    }

    fn alive(&self) -> usize {
        self.alive.load(Ordering::SeqCst)
    }
}

fn said<T: std::fmt::Debug>(outcome: std::result::Result<T, Failure>) -> String {
    match outcome.unwrap_err() {
        Failure::Device(error) => error.to_string(),
        other => format!("{other:?}"),
    }
}

fn buffer(name: &str, bytes: &[u8]) -> DeviceSection {
    DeviceSection { kind: DeviceKind::Buffer, name: name.to_owned(), content: bytes.to_owned().into() }
}

#[test]
fn persistent_buffers_come_back_with_their_content_and_say_so() {
    let bench = Bench::new();
    let mut holdings = bench.holdings();
    assert_eq!(bench.alive(), 0, "a device is opened when it is needed");
    let weights = holdings.persistent("weights", Element::Float32, 8).unwrap();
    assert!(!weights.restored);
    holdings.context().unwrap().write(weights.id, 0, &[7; 8]).unwrap();
    holdings.scratch(4).unwrap();
    let frozen = holdings.freeze(Vec::new()).unwrap();
    assert_eq!(frozen, [buffer("float32:weights", &[7; 8])]);
    drop(holdings);
    assert_eq!(bench.alive(), 0, "and closed with its guest");

    let mut holdings = bench.holdings();
    holdings.thaw(&frozen).unwrap();
    let again = holdings.persistent("weights", Element::Float32, 8).unwrap();
    assert!(again.restored);
    let mut content = [0; 8];
    holdings.context().unwrap().read(again.id, 0, &mut content).unwrap();
    assert_eq!(content, [7; 8]);
}

#[test]
fn what_nobody_asks_for_is_kept_and_what_is_dropped_is_gone() {
    let bench = Bench::new();
    let mut holdings = bench.holdings();
    let frozen = [
        buffer("byte:a", b"a"),
        buffer("byte:b", b"b"),
        DeviceSection { kind: DeviceKind::Variable, name: "0f:counter".into(), content: b"four".to_vec().into() },
    ];
    holdings.thaw(&frozen).unwrap();
    assert_eq!(holdings.freeze(Vec::new()).unwrap(), frozen);
    assert_eq!(holdings.state_bytes(), 6 + 3 * 512);
    let a = holdings.persistent("a", Element::Byte, 1).unwrap();
    holdings.drop_buffer(a);
    assert_eq!(holdings.freeze(Vec::new()).unwrap(), frozen[1..]);
    // The name is free, and what it names now is new.
    assert!(!holdings.persistent("a", Element::Byte, 3).unwrap().restored);
}

#[test]
fn names_are_unique_and_what_they_name_keeps_its_size_and_kind() {
    let bench = Bench::new();
    let mut holdings = bench.holdings();
    holdings.thaw(&[buffer("int32:w", &[0; 8])]).unwrap();
    insta::assert_snapshot!(
        said(holdings.persistent("w", Element::Float32, 8)),
        @"the buffer `w`: the checkpoint has it as 8 bytes of int32, and 8 bytes of float32 are asked for"
    );
    insta::assert_snapshot!(
        said(holdings.persistent("w", Element::Int32, 12)),
        @"the buffer `w`: the checkpoint has it as 8 bytes of int32, and 12 bytes of int32 are asked for"
    );
    holdings.persistent("w", Element::Int32, 8).unwrap();
    insta::assert_snapshot!(
        said(holdings.persistent("w", Element::Int32, 8)),
        @"the buffer `w`: it is open already; drop it first, or use that one"
    );
    insta::assert_snapshot!(
        said(holdings.persistent("", Element::Int32, 8)),
        @"the name of a persistent buffer is 0 bytes long; it must be 1 to 255"
    );
}

#[test]
fn buffers_have_a_budget_together() {
    let bench = Bench::new();
    let mut holdings = bench.holdings();
    assert_eq!(holdings.facts().unwrap().memory_bytes, 1000);
    let first = holdings.scratch(600).unwrap();
    insta::assert_snapshot!(
        said(holdings.persistent("w", Element::Byte, 401)),
        @"the buffer `w`: 401 B are wanted, and of the 1000 B that --device-memory allows 600 B are in use"
    );
    assert!(said(holdings.scratch(u64::MAX)).starts_with("a scratch buffer: 16.0 EiB are wanted"));
    holdings.persistent("w", Element::Byte, 400).unwrap();
    holdings.drop_buffer(first);
    holdings.scratch(600).unwrap();
    let mut small = bench.holdings();
    let error = small.thaw(&[buffer("byte:large", &[0; 1001])]).unwrap_err();
    assert!(matches!(&error, DeviceError::OutOfMemory(text) if text.contains("`large`")), "{error}");
    let twice = bench.holdings().thaw(&[buffer("byte:w", b"1"), buffer("int16:w", b"12")]).unwrap_err();
    assert!(twice.to_string().contains("two buffers that are called `w`"), "{twice}");
    assert!(small.thaw(&[buffer("large", &[0; 1])]).unwrap_err().to_string().contains("no known kind, `large`"));
}

#[test]
fn memory_of_an_earlier_snapshot_is_used_again() {
    let bench = Bench::new();
    let mut holdings = bench.holdings();
    let weights = holdings.persistent("weights", Element::Byte, 100).unwrap();
    let first = holdings.freeze(Vec::new()).unwrap();
    let address = first[0].content.whole().unwrap().as_ptr();
    holdings.context().unwrap().write(weights.id, 0, &[1; 100]).unwrap();
    let second = holdings.freeze(first).unwrap();
    let bytes = second[0].content.whole().unwrap();
    assert_eq!((bytes.as_ptr(), &bytes[..]), (address, &[1; 100][..]));
}

#[test]
fn an_interruption_reaches_the_device_and_no_later_one() {
    let bench = Bench::new();
    let mut holdings = bench.holdings();
    let scratch = holdings.scratch(1).unwrap();
    bench.interrupter.interrupt(Interruption::StepTimeout);
    assert_eq!(holdings.context().unwrap().write(scratch.id, 0, &[1]), Err(DeviceError::Stopped));
    bench.interrupter.clear();
    let mut next = bench.holdings();
    let scratch = next.scratch(1).unwrap();
    next.context().unwrap().write(scratch.id, 0, &[1]).unwrap();
    // One that came before the device was opened counts too.
    bench.interrupter.interrupt(Interruption::GraceEnds);
    let mut late = bench.holdings();
    let scratch = late.scratch(1).unwrap();
    assert_eq!(late.context().unwrap().write(scratch.id, 0, &[1]), Err(DeviceError::Stopped));
}

#[test]
fn what_the_device_did_wrong_is_said_when_it_is_finished() {
    let bench = Bench::new();
    let mut holdings = bench.holdings();
    assert_eq!(holdings.finish(), Ok(()), "there is none yet");
    let scratch = holdings.scratch(4).unwrap();
    holdings.context().unwrap().fill(scratch.id, 0, 4, 0).unwrap();
    assert!(matches!(holdings.finish(), Err(DeviceError::Lost(why)) if why.starts_with("filling")));
    let mut without = Holdings::new(None, 1000, bench.interrupter.clone());
    assert!(said(without.scratch(1)).contains("there is no device here"));
}
