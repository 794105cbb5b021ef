//! Who runs next: `run` for kernels whose threads wait.
//!
//! ```text
//! run:      for each block: until all threads have ended: run each warp (at first all in one call, where all go on as they should); let go whom a barrier held that is
//!           complete. Nobody could go on: a deadlock.
//! warp:     until no lane is ready: run each ready lane once, those in the same region together; let lanes that wait for each other meet.
//!           A lane that only let others run ends this, so that other warps come to run.
//! arrive:   counts a thread at a barrier.
//! release:  lets go whom a barrier holds, if it is complete.
//! ```

use std::collections::BTreeSet;

use wasm_encoder::{BlockType, InstructionSink, MemArg, ValType};

use super::clear;
use super::frames::place;
use super::module::{
    Functions, GROUPED, MORE_WARPS, Parts, SIDE_BY_SIDE, YIELDED, block_index, next_block_index, prologue, trap,
};
use super::region::at;
use super::unit::{Code, PRIVATE};
use crate::kernel::{Launch, trap as reason};
use crate::translate::frame;
use crate::translate::ir::{Inst, Suspension, Terminator};
use crate::translate::lanes::LANES;

/// Index of the function that counts a thread at a barrier.
pub const ARRIVE: u32 = 2;
const WARP: u32 = 1;
const RELEASE: u32 = 3;
/// Index of the function that lets lanes meet.
pub const MEET: u32 = 4;
/// Functions of the scheduler.
pub const FUNCTIONS: u32 = 5;

/// Adds all but the last.
pub fn add(functions: &mut Functions, parts: &Parts<'_>) {
    run(functions, parts);
    warp(functions, parts);
    arrive(functions, parts);
    release(functions, parts);
}

/// `(first, last)`.
fn run(functions: &mut Functions, parts: &Parts<'_>) {
    let (first, last) = (0, 1);
    let region = region_type(functions);
    let mut code = Code::new(2);
    let mut local = || code.local(ValType::I32);
    let (threads, width, height) = (local(), local(), local());
    let (x, y, z, index, frame) = (local(), local(), local(), local(), local());
    let (progress, alive, warps) = (local(), local(), local());
    prologue(&mut code, parts);
    let mut sink = code.sink();
    let size = |axis: u32| at(Launch::BLOCK + 4 * axis);
    sink.i32_const(0).i32_load(size(0)).local_tee(width);
    sink.i32_const(0).i32_load(size(1)).local_tee(height).i32_mul();
    sink.i32_const(0).i32_load(size(2)).i32_mul().local_tee(threads);
    sink.i32_const(31).i32_add().i32_const(5).i32_shr_u().local_set(warps);
    if parts.frames.grouped {
        // What runs at once lies in one row: all rows are of whole groups, or there is one row only.
        let groups = parts.side_by_side.map(|groups| (groups, SIDE_BY_SIDE));
        for (groups, global) in [(1, GROUPED)].into_iter().chain(groups) {
            sink.local_get(width).i32_const((groups * LANES) as i32 - 1).i32_and().i32_eqz();
            sink.local_get(width).local_get(threads).i32_eq().i32_or().global_set(global);
        }
    }
    // Each thread's place, once for all blocks.
    each_frame(&mut sink, parts, index, frame, threads, |sink| {
        sink.local_get(frame);
        sink.local_get(x).local_get(y).i32_const(10).i32_shl().i32_or();
        sink.local_get(z).i32_const(20).i32_shl().i32_or().i32_store(at(parts.frames.offset(frame::PLACE)));
        sink.local_get(x).i32_const(1).i32_add().local_tee(x).local_get(width).i32_eq().if_(BlockType::Empty);
        sink.i32_const(0).local_set(x);
        sink.local_get(y).i32_const(1).i32_add().local_tee(y).local_get(height).i32_eq().if_(BlockType::Empty);
        sink.i32_const(0).local_set(y).local_get(z).i32_const(1).i32_add().local_set(z).end().end();
    });
    block_index(&mut code, first);
    let mut sink = code.sink();
    sink.block(BlockType::Empty).loop_(BlockType::Empty);
    sink.local_get(first).local_get(last).i64_ge_u().br_if(1);
    clear::clear(&mut code, parts);
    let mut sink = code.sink();
    begin_frames(&mut sink, parts, index, frame, threads);
    for barrier in barriers(parts) {
        clear_barrier(&mut sink, |sink| {
            sink.i32_const((parts.layout.barriers + barrier * frame::BARRIER_BYTES) as i32);
        });
    }
    start_warps(&mut sink, parts, index, warps, threads);
    // Rounds, until all have ended.
    sink.block(BlockType::Empty).loop_(BlockType::Empty);
    sink.i32_const(0).local_tee(progress).local_set(alive);
    if parts.warp_after_warp != 0 {
        whole_block(&mut sink, parts, region, [index, frame, warps, threads, progress]);
    }
    sink.i32_const(0).local_set(index).loop_(BlockType::Empty);
    // Nobody of a warp that is done or waits.
    let record = |sink: &mut InstructionSink<'_>, offset: u32| {
        sink.local_get(index).i32_const(4).i32_shl().i32_load(at(parts.layout.warps + offset));
    };
    record(&mut sink, frame::READY);
    record(&mut sink, frame::MEETING);
    sink.i32_or().if_(BlockType::Empty);
    sink.local_get(index).call(WARP).local_get(progress).i32_or().local_set(progress).end();
    sink.local_get(index)
        .i32_const(4)
        .i32_shl()
        .i32_load(at(parts.layout.warps + frame::EXITED))
        .i32_const(-1)
        .i32_xor();
    sink.local_get(alive).i32_or().local_set(alive);
    next(&mut sink, index, warps);
    sink.end();
    sink.local_get(alive).i32_eqz().br_if(1);
    for barrier in barriers(parts) {
        sink.i32_const(barrier as i32).local_get(warps).call(RELEASE);
        sink.local_get(progress).i32_or().local_set(progress);
    }
    sink.local_get(progress).br_if(0);
    trap(&mut code, reason::DEADLOCK);
    code.sink().end().end();
    next_block_index(&mut code);
    let mut sink = code.sink();
    sink.local_get(first).i64_const(1).i64_add().local_set(first).br(0).end().end();
    functions.add(&[ValType::I64, ValType::I64], &[], code);
}

/// If all warps are whole and the first threads of all go on in one region that may run so: runs it for all of them, one after the other, in one call. What is found out once for each call then is
/// so once for all warps. Jumps to the label round it where all of them can go on at once.
fn whole_block(sink: &mut InstructionSink<'_>, parts: &Parts<'_>, region: u32, locals: [u32; 5]) {
    let [index, number, warps, threads, progress] = locals;
    let goes_on = |sink: &mut InstructionSink<'_>, offset: u32| {
        place(sink, parts.frames, offset);
        sink.i32_load(at(parts.layout.frames + parts.frames.offset(frame::RESUME)));
        sink.i32_const(frame::NUMBER as i32).i32_and();
    };
    sink.block(BlockType::Empty);
    sink.global_get(SIDE_BY_SIDE).local_get(threads).i32_const(31).i32_and().i32_eqz().i32_and();
    sink.local_get(warps).i32_const(1).i32_gt_u().i32_and().i32_eqz().br_if(0);
    sink.i32_const(0).local_set(index);
    goes_on(sink, index);
    sink.local_tee(number).i32_const(63).i32_gt_u().br_if(0);
    sink.i64_const(parts.warp_after_warp as i64).local_get(number).i64_extend_i32_u().i64_shr_u();
    sink.i32_wrap_i64().i32_const(1).i32_and().i32_eqz().br_if(0);
    sink.local_get(warps).local_set(index).loop_(BlockType::Empty);
    sink.local_get(index).i32_const(1).i32_sub().local_tee(index);
    sink.i32_const(4).i32_shl().i32_load(at(parts.layout.warps + frame::READY)).i32_const(-1).i32_ne().br_if(1);
    sink.local_get(index).i32_const(5).i32_shl().local_set(index);
    goes_on(sink, index);
    sink.local_get(number).i32_ne().br_if(1);
    sink.local_get(index).i32_const(5).i32_shr_u().local_tee(index).br_if(0).end();
    sink.local_get(warps).i32_const(1).i32_sub().global_set(MORE_WARPS);
    sink.i32_const(0).i32_const(-1).local_get(number).call_indirect(0, region);
    // They have all come to a barrier and go on behind it.
    sink.i32_eqz().br_if(1);
    sink.i32_const(1).local_set(progress).end();
}

/// Of the functions of regions.
fn region_type(functions: &mut Functions) -> u32 {
    functions.ty(&[ValType::I32, ValType::I32], &[ValType::I32])
}

/// `index += 1`, and again if that is below `limit`.
fn next(sink: &mut InstructionSink<'_>, index: u32, limit: u32) {
    sink.local_get(index).i32_const(1).i32_add().local_tee(index).local_get(limit).i32_lt_u().br_if(0);
}

/// The barriers that the kernel may use: those that it names, or all.
fn barriers(parts: &Parts<'_>) -> Vec<u32> {
    let body = &parts.program.body;
    let mut named = BTreeSet::new();
    for block in &body.blocks {
        let Terminator::Suspend(Suspension::Barrier { barrier, .. } | Suspension::Arrival { barrier, .. }, _) =
            &block.terminator
        else {
            continue;
        };
        match body.inst(*barrier) {
            Inst::Const(number) => named.insert(*number as u32),
            _ => return (0..frame::BARRIERS).collect(),
        };
    }
    // One with another number traps when it is reached.
    named.into_iter().filter(|barrier| *barrier < frame::BARRIERS).collect()
}

/// Does something for each thread, with the address of its frame.
fn each_frame(
    sink: &mut InstructionSink<'_>,
    parts: &Parts<'_>,
    index: u32,
    frame: u32,
    threads: u32,
    each: impl FnOnce(&mut InstructionSink<'_>),
) {
    sink.i32_const(0).local_set(index).loop_(BlockType::Empty);
    place(sink, parts.frames, index);
    sink.i32_const(parts.layout.frames as i32).i32_add().local_set(frame);
    each(sink);
    next(sink, index, threads);
    sink.end();
}

/// All threads begin in the first region.
fn begin_frames(sink: &mut InstructionSink<'_>, parts: &Parts<'_>, index: u32, frame: u32, threads: u32) {
    let step = if parts.frames.grouped { LANES } else { 1 };
    sink.i32_const(0).local_set(index).i32_const(parts.layout.frames as i32).local_set(frame).loop_(BlockType::Empty);
    sink.local_get(frame);
    if parts.frames.grouped {
        let together = (frame::TOGETHER | frame::SIDE_BY_SIDE) as i32;
        sink.i32_const(together).i32x4_splat();
        sink.v128_store(MemArg { align: 4, ..at(parts.frames.offset(frame::RESUME)) });
    } else {
        sink.i32_const(0).i32_store(at(frame::RESUME));
    }
    sink.local_get(frame).i32_const(parts.frames.group_bytes() as i32).i32_add().local_set(frame);
    sink.local_get(index).i32_const(step as i32).i32_add().local_tee(index).local_get(threads).i32_lt_u().br_if(0);
    sink.end();
}

/// Writes zeros to the record of a barrier. (`memory.fill` is an instruction that the device's engine does without.)
fn clear_barrier(sink: &mut InstructionSink<'_>, record: impl Fn(&mut InstructionSink<'_>)) {
    for offset in (0..frame::BARRIER_BYTES).step_by(16) {
        record(sink);
        sink.v128_const(0).v128_store(MemArg { align: 4, ..at(offset) });
    }
}

/// All threads are ready; lanes that the last warp lacks have ended.
fn start_warps(sink: &mut InstructionSink<'_>, parts: &Parts<'_>, index: u32, warps: u32, threads: u32) {
    let record = |offset: u32| at(parts.layout.warps + offset);
    let at_record = |sink: &mut InstructionSink<'_>| {
        sink.local_get(index).i32_const(4).i32_shl();
    };
    sink.i32_const(0).local_set(index).loop_(BlockType::Empty);
    at_record(sink);
    sink.i32_const(-1).i32_store(record(frame::READY));
    at_record(sink);
    sink.i32_const(0).i32_store(record(frame::EXITED));
    at_record(sink);
    sink.i32_const(0).i32_store(record(frame::MEETING));
    next(sink, index, warps);
    sink.end();
    // index is `warps` now; the last warp's lanes from the remainder on do not exist.
    sink.local_get(threads).i32_const(31).i32_and().if_(BlockType::Empty);
    sink.local_get(warps).i32_const(1).i32_sub().i32_const(4).i32_shl().local_tee(index);
    sink.i32_const(-1).local_get(threads).i32_const(31).i32_and().i32_shl().i32_store(record(frame::EXITED));
    sink.local_get(index);
    sink.i32_const(-1)
        .local_get(threads)
        .i32_const(31)
        .i32_and()
        .i32_shl()
        .i32_const(-1)
        .i32_xor()
        .i32_store(record(frame::READY));
    sink.end();
}

/// `(warp) -> whether a lane ran`.
fn warp(functions: &mut Functions, parts: &Parts<'_>) {
    let warp = 0;
    let region = region_type(functions);
    let mut code = Code::new(1);
    let mut local = || code.local(ValType::I32);
    let (record, pass, ran, first) = (local(), local(), local(), local());
    let of_warp = |offset: u32| at(parts.layout.warps + offset);
    let mut sink = code.sink();
    sink.local_get(warp).i32_const(4).i32_shl().local_set(record);
    sink.i32_const(0).global_set(YIELDED);
    sink.block(BlockType::Empty).loop_(BlockType::Empty);
    sink.local_get(record).i32_load(of_warp(frame::READY)).local_tee(pass).if_(BlockType::Empty);
    sink.i32_const(1).local_set(ran);
    // Each ready lane once: the region of the first one runs all that go on there.
    sink.loop_(BlockType::Empty);
    sink.local_get(pass);
    sink.local_get(warp).i32_const(5).i32_shl().local_get(pass);
    sink.local_get(warp).i32_const(5).i32_shl().local_get(pass).i32_ctz().i32_add().local_set(first);
    place(&mut sink, parts.frames, first);
    sink.i32_load(at(parts.layout.frames + parts.frames.offset(frame::RESUME)));
    sink.i32_const(frame::NUMBER as i32).i32_and();
    sink.call_indirect(0, region).i32_const(-1).i32_xor().i32_and().local_tee(pass).br_if(0).end();
    sink.end();
    sink.local_get(record).i32_load(of_warp(frame::MEETING)).if_(BlockType::Empty);
    sink.local_get(warp).call(MEET).drop().end();
    sink.global_get(YIELDED).br_if(1);
    sink.local_get(record).i32_load(of_warp(frame::READY)).br_if(0).end().end();
    sink.local_get(ran);
    functions.add(&[ValType::I32], &[ValType::I32], code);
}

/// What the last argument of `arrive` says: they wait; they bring a predicate; it holds.
pub const WAITS: u32 = 1;
pub const REDUCES: u32 = 2;
pub const HOLDS: u32 = 4;

/// `(warp, lanes, barrier, threads and, from bit 16 on, what is said of them)`. No more arguments: they would not be passed in registers.
fn arrive(functions: &mut Functions, parts: &Parts<'_>) {
    let (warp, lanes, barrier, threads) = (0, 1, 2, 3);
    let mut code = Code::new(4);
    let (record, said) = (code.local(ValType::I32), code.local(ValType::I32));
    code.sink().local_get(barrier).i32_const(frame::BARRIERS as i32).i32_ge_u().if_(BlockType::Empty);
    trap(&mut code, reason::BARRIER);
    let mut sink = code.sink();
    sink.end();
    let of_barrier = |offset: u32| at(parts.layout.barriers + offset);
    sink.local_get(threads).i32_const(16).i32_shr_u().local_set(said);
    sink.local_get(barrier).i32_const(frame::BARRIER_BYTES as i32).i32_mul().local_tee(record);
    sink.local_get(threads).i32_const(0xffff).i32_and().i32_store(of_barrier(frame::THREADS));
    sink.local_get(record).local_get(record).i32_load(of_barrier(frame::REDUCES));
    sink.local_get(said).i32_const(REDUCES as i32).i32_and().i32_or().i32_store(of_barrier(frame::REDUCES));
    // The masks of this warp.
    sink.local_get(record).local_get(warp).i32_const(2).i32_shl().i32_add().local_set(record);
    let mut add = |offset: u32, condition: Option<u32>| {
        sink.local_get(record).local_get(record).i32_load(of_barrier(offset)).local_get(lanes);
        if let Some(condition) = condition {
            sink.i32_const(0).local_get(said).i32_const(condition as i32).i32_and().select();
        }
        sink.i32_or().i32_store(of_barrier(offset));
    };
    add(frame::ARRIVED, None);
    add(frame::WAITING, Some(WAITS));
    add(frame::PREDICATES, Some(HOLDS));
    functions.add(&[ValType::I32; 4], &[], code);
}

/// `(barrier, warps) -> whether someone was let go`. A warp all of whose living lanes have arrived counts as 32 threads, so that lanes which have
/// ended keep nobody waiting.
fn release(functions: &mut Functions, parts: &Parts<'_>) {
    let (barrier, warps) = (0, 1);
    let mut code = Code::new(2);
    let mut local = || code.local(ValType::I32);
    let (record, index, arrived, here, missing, counted, of, holds, released, lane, frame) =
        (local(), local(), local(), local(), local(), local(), local(), local(), local(), local(), local());
    let of_barrier = |offset: u32| at(parts.layout.barriers + offset);
    let mask = |sink: &mut InstructionSink<'_>, offset: u32| {
        sink.local_get(record).local_get(index).i32_const(2).i32_shl().i32_add().i32_load(of_barrier(offset));
    };
    let of_warp = |sink: &mut InstructionSink<'_>, offset: u32| {
        sink.local_get(index).i32_const(4).i32_shl().i32_load(at(parts.layout.warps + offset));
    };
    let mut sink = code.sink();
    sink.local_get(barrier).i32_const(frame::BARRIER_BYTES as i32).i32_mul().local_set(record);
    // Who has arrived, and whether a living thread is missing.
    sink.loop_(BlockType::Empty);
    mask(&mut sink, frame::ARRIVED);
    sink.local_set(here);
    of_warp(&mut sink, frame::EXITED);
    sink.local_get(here).i32_or().i32_const(-1).i32_ne().if_(BlockType::Empty);
    sink.i32_const(1).local_set(missing);
    sink.local_get(arrived).local_get(here).i32_popcnt().i32_add().local_set(arrived);
    sink.else_();
    sink.i32_const(32).i32_const(0).local_get(here).select().local_get(arrived).i32_add().local_set(arrived);
    sink.end();
    sink.local_get(of).local_get(here).i32_popcnt().i32_add().local_set(of);
    mask(&mut sink, frame::PREDICATES);
    sink.i32_popcnt().local_get(holds).i32_add().local_set(holds);
    next(&mut sink, index, warps);
    sink.end();
    sink.local_get(of).i32_eqz().if_(BlockType::Empty).i32_const(0).return_().end();
    // For a number of threads, so many; else all that live.
    sink.local_get(record).i32_load(of_barrier(frame::THREADS)).local_tee(counted);
    sink.if_(BlockType::Result(ValType::I32))
        .local_get(arrived)
        .local_get(counted)
        .i32_lt_u()
        .else_()
        .local_get(missing)
        .end();
    sink.if_(BlockType::Empty).i32_const(0).return_().end();
    sink.i32_const(0).local_set(index).loop_(BlockType::Empty);
    mask(&mut sink, frame::WAITING);
    sink.local_tee(here).if_(BlockType::Empty);
    sink.i32_const(1).local_set(released);
    sink.local_get(index).i32_const(4).i32_shl();
    of_warp(&mut sink, frame::READY);
    sink.local_get(here).i32_or().i32_store(at(parts.layout.warps + frame::READY));
    sink.local_get(record).i32_load(of_barrier(frame::REDUCES)).if_(BlockType::Empty);
    sink.loop_(BlockType::Empty);
    sink.local_get(here).i32_ctz().local_set(lane);
    sink.local_get(index).i32_const(5).i32_shl().local_get(lane).i32_add().local_set(lane);
    place(&mut sink, parts.frames, lane);
    let of_frame = |offset: u32| at(parts.layout.frames + parts.frames.offset(offset));
    sink.local_tee(frame).local_get(holds).i32_store(of_frame(frame::RESULT));
    sink.local_get(frame).local_get(of).i32_store(of_frame(frame::RESULT + 4));
    sink.local_get(here).local_get(here).i32_const(1).i32_sub().i32_and().local_tee(here).br_if(0).end();
    sink.end();
    sink.end();
    next(&mut sink, index, warps);
    sink.end();
    clear_barrier(&mut sink, |sink| {
        sink.local_get(record).i32_const(parts.layout.barriers as i32).i32_add();
    });
    sink.local_get(released);
    functions.add(&[ValType::I32; 2], &[ValType::I32], code);
}

/// An immediate for 8 bytes in the private memory.
pub fn at_8(offset: u32) -> MemArg {
    MemArg { offset: u64::from(offset), align: 3, memory_index: PRIVATE }
}
