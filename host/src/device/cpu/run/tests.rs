//! Kernels written by hand: the contract of generated code, without a translation.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::num::NonZeroUsize;
use std::thread;

use steadfast_ptx::kernel::{Form, Kernel, Obstacle};
use steadfast_ptx::module::Position;

use super::*;
use crate::device::cpu::arena::Reach;
use crate::device::cpu::{ADDRESSES, CpuDevice, Settings};

const PAGE: u64 = 4096;

/// A device, and a kernel whose body may use `$first`, `$last` and `$block`, and finds an address behind the launch record.
struct Bench {
    device: CpuDevice,
    buffer: u64,
    compiled: Compiled,
}

impl Bench {
    fn new(cores: usize, body: &str) -> Self {
        let cores = NonZeroUsize::new(cores).unwrap();
        let settings = Settings { memory_bytes: 1 << 24, cores, cache: None, canonical_nans: false, vectors: true };
        let mut device = CpuDevice::open(&settings).unwrap();
        let buffer = device.arena.allocate(PAGE).unwrap();
        let module = wasmtime::Module::new(&device.seats.engine, wat::parse_str(text(body)).unwrap()).unwrap();
        let kernel = Kernel {
            name: "by_hand".into(),
            wasm: Vec::new(),
            parameters: Vec::new(),
            parameter_bytes: 8,
            max_threads: None,
            required_threads: None,
            static_shared: 0,
            local_bytes: 0,
            frame_base: 264,
            frame_bytes: 0,
            sequential: false,
            form: Form::Scalar(Obstacle::Disabled),
            places: vec![(0, Position { line: 3, column: 4 })],
        };
        Self {
            device,
            buffer,
            compiled: Compiled { id: 0, reach: Reach::All, pace: AtomicU64::new(0), kernel, module },
        }
    }

    fn run(&mut self, blocks: u32, block: [u32; 3]) -> Result<()> {
        let launch = Launch { grid: [blocks, 1, 1], block, ..Launch::default() };
        let parameters = self.buffer.to_le_bytes();
        let scratch = vec![Scratch::default(); self.device.crew.seats()];
        let given = [Given { argument: 1, start: self.buffer, bytes: PAGE }];
        let job = Job { compiled: &self.compiled, launch, parameters: &parameters, scratch: &scratch, given: &given };
        self.device.seats.run(&self.device.crew, &job, self.device.arena.memory.lend())
    }

    fn lost(&mut self, blocks: u32) -> String {
        match self.run(blocks, [1; 3]) {
            Err(DeviceError::Lost(text)) => text,
            other => panic!("not lost: {other:?}"),
        }
    }

    fn words(&self) -> Vec<u32> {
        let bytes = self.device.arena.memory.bytes(self.buffer..self.buffer + PAGE);
        bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
    }
}

fn text(body: &str) -> String {
    let pages = ADDRESSES / WASM_PAGE;
    format!(
        r#"(module
            (import "device" "memory" (memory $device i64 {pages} {pages}))
            (memory $private (export "private") 1)
            (global (export "trap") (mut i32) (i32.const 1))
            (func $address (result i64) (i64.load $private (i32.const 256)))
            (func (export "run") (param $first i64) (param $last i64) (local $block i64)
                (local.set $block (local.get $first))
                (loop $blocks
                    (i32.store $private (i32.const 64) (i32.wrap_i64 (local.get $block)))
                    {body}
                    (local.set $block (i64.add (local.get $block) (i64.const 1)))
                    (br_if $blocks (i64.lt_u (local.get $block) (local.get $last))))))"#
    )
}

/// Adds 1 to the word of the block.
const COUNT: &str = "(drop (i32.atomic.rmw.add $device
    (i64.add (call $address) (i64.mul (i64.const 4) (local.get $block))) (i32.const 1)))";

/// Stores at an address.
fn store(address: &str) -> String {
    format!("(i32.store $device {address} (i32.const 7))")
}

#[test]
fn every_block_runs_once_on_any_number_of_cores() {
    for cores in [1, 2, 3, 8] {
        let mut bench = Bench::new(cores, COUNT);
        for blocks in [1, 2, 3, 17, 1000] {
            let before = bench.words();
            bench.run(blocks, [1; 3]).unwrap();
            let added = bench.words().iter().zip(before).map(|(after, before)| after - before).collect::<Vec<_>>();
            let expected = (0..1024).map(|block| u32::from(block < blocks)).collect::<Vec<_>>();
            assert!(added == expected, "{cores} cores, {blocks} blocks");
        }
    }
}

#[test]
fn what_lies_in_no_buffer_is_a_trap() {
    let behind = format!("byte 8 behind the end of argument 1, a buffer of {PAGE} bytes");
    let before = format!("byte 4 before the beginning of argument 1, a buffer of {PAGE} bytes");
    for (address, words) in [
        ("(i64.const 0)", "address 0, a null pointer"),
        ("(i64.const 65532)", "address 65532, a null pointer"),
        (&format!("(i64.add (call $address) (i64.const {}))", PAGE + 8), behind.as_str()),
        ("(i64.sub (call $address) (i64.const 4))", before.as_str()),
        ("(i64.const 0x1000000000)", "an address in no buffer"),
        ("(i64.const -4)", "an address in no buffer"),
        ("offset=16777216 (i64.const 0xfffffffff)", "an address in no buffer"),
    ] {
        let text = Bench::new(2, &store(address)).lost(1);
        let expected = "kernel `by_hand` failed at line 3, column 4 of its PTX, in block (0, 0, 0): it reached for ";
        assert_eq!(text, format!("{expected}{words}"), "{address}");
    }
}

#[test]
fn the_first_block_that_fails_is_told() {
    // Blocks 300, 301 and from 900 on fail.
    let body = "(if (i64.eq (i64.and (local.get $block) (i64.const -2)) (i64.const 300)) (then unreachable))
        (if (i64.ge_u (local.get $block) (i64.const 900)) (then unreachable))";
    for cores in [1, 2, 3, 8] {
        let text = Bench::new(cores, body).lost(1000);
        assert!(text.contains("in block (300, 0, 0)"), "{text}");
    }
}

#[test]
fn a_failed_kernel_runs_again() {
    // Fails where the buffer's first word is 0.
    let mut bench = Bench::new(2, "(if (i32.eqz (i32.load $device (call $address))) (then unreachable))");
    bench.lost(10);
    let range = bench.buffer..bench.buffer + 1;
    bench.device.arena.memory.bytes_mut(range).fill(1);
    bench.run(10, [1; 3]).unwrap();
}

#[test]
fn an_endless_kernel_ends_when_it_is_told_to() {
    let mut bench = Bench::new(2, "(loop $again (br $again))");
    let stopper = bench.device.stopper.clone();
    let (blocks, block) = (3, [1; 3]);
    thread::scope(|scope| {
        scope.spawn(|| stopper.stop());
        assert_eq!(bench.run(blocks, block), Err(DeviceError::Stopped));
    });
    assert_eq!(bench.run(blocks, block), Err(DeviceError::Stopped));
}

#[test]
fn stopping_and_taking_it_back_leaves_no_trace() {
    let mut bench = Bench::new(2, COUNT);
    bench.run(100, [1; 3]).unwrap();
    bench.device.stopper.stop();
    bench.device.stopper.clear();
    bench.run(100, [1; 3]).unwrap();
    assert_eq!(bench.words()[99], 2);
}

#[test]
fn frames_of_threads_have_their_room() {
    let last =
        "(i32.store8 $private (i32.sub (i32.mul (memory.size $private) (i32.const 65536)) (i32.const 1)) (i32.const 1))
        (if (i32.lt_u (memory.size $private) (i32.const 100)) (then unreachable))";
    let mut bench = Bench::new(1, last);
    bench.compiled.kernel.frame_bytes = 100 * 64;
    bench.run(1, [1024, 1, 1]).unwrap();
    bench.compiled.kernel.frame_bytes = 1 << 20;
    let Err(DeviceError::OutOfMemory(text)) = bench.run(1, [1024, 1, 1]) else { panic!("there is room") };
    assert!(text.contains("512.0 MiB is the most"), "{text}");
}

#[test]
fn no_seat_keeps_more_instances_than_there_are_addresses_for() {
    let mut bench = Bench::new(2, COUNT);
    for id in 0..200 {
        bench.compiled.id = id;
        bench.run(4, [1; 3]).unwrap();
    }
    for seat in &bench.device.seats.seats {
        assert!(seat.lock().unwrap().len() <= MOST_INSTANCES);
    }
    assert_eq!(bench.words()[..5], [200, 200, 200, 200, 0]);
}

#[test]
fn a_kernel_that_is_forgotten_leaves_no_instance_behind() {
    let mut bench = Bench::new(2, "(nop)");
    bench.run(1000, [1; 3]).unwrap();
    let kept =
        |bench: &Bench| -> usize { bench.device.seats.seats.iter().map(|seat| seat.lock().unwrap().len()).sum() };
    assert!(kept(&bench) > 0);
    bench.device.seats.forget(bench.compiled.id);
    assert_eq!(kept(&bench), 0);
    bench.run(10, [1; 3]).unwrap();
}

#[test]
fn what_waiting_threads_keep_is_of_the_devices_memory() {
    let mut bench = Bench::new(1, "");
    bench.compiled.kernel.frame_bytes = 64 << 10;
    for id in 0..3 {
        bench.compiled.id = id;
        bench.run(1, [32, 1, 1]).unwrap();
    }
    let device = &mut bench.device;
    assert_eq!(device.seats.frame_bytes(), 3 * (2 << 20), "each of three kernels keeps 2 MiB for its next launch");
    // 16 MiB are there, and 1 page is taken: what is kept makes way for a buffer.
    let section = device.section_of(12 << 20).unwrap();
    assert_eq!(device.seats.frame_bytes(), 0);
    let DeviceError::OutOfMemory(text) = device.room_for_frames(&bench.compiled, 64, 1).unwrap_err() else {
        panic!("another error")
    };
    assert!(text.contains("kernel `by_hand` need 4.0 MiB"), "{text}");
    device.arena.free(section.start);
    device.room_for_frames(&bench.compiled, 64, 1).unwrap();
}
