//! Lets lanes of a warp meet: shuffles, votes, matches, reductions.
//!
//! Lanes belong together that came for the same purpose with the same mask. When all living lanes of the mask have come, each gets its result and is ready again.

use wasm_encoder::{BlockType, InstructionSink, ValType};

use super::frames::place;
use super::module::{Functions, Parts};
use super::region::at;
use super::schedule::at_8;
use super::unit::Code;
use crate::kernel::WARP;
use crate::translate::{frame, meeting};

/// Locals of the function.
struct Locals {
    /// Offset of the frame of the warp's first thread from that of the block's first.
    base: u32,
    record: u32,
    /// Lanes that wait and have not been looked at.
    rest: u32,
    released: u32,
    purpose: u32,
    mask: u32,
    /// Lanes of the meeting.
    group: u32,
    /// Lanes of the group still to be visited, the lane being visited, and its frame.
    left: u32,
    lane: u32,
    frame: u32,
    /// For results: a sum of whatever kind.
    sum: u32,
    /// For matches: the lanes of an inner loop.
    others: u32,
    other: u32,
    other_frame: u32,
    value: u32,
}

/// Adds the function.
pub fn add(functions: &mut Functions, parts: &Parts<'_>) {
    let mut code = Code::new(1);
    let mut local = || code.local(ValType::I32);
    let mut locals = Locals {
        base: local(),
        record: local(),
        rest: local(),
        released: local(),
        purpose: local(),
        mask: local(),
        group: local(),
        left: local(),
        lane: local(),
        frame: local(),
        sum: local(),
        others: local(),
        other: local(),
        other_frame: local(),
        value: 0,
    };
    locals.value = code.local(ValType::I64);
    let l = &locals;
    let of_warp = |offset: u32| at(parts.layout.warps + offset);
    let of_frame = |offset: u32| at(parts.layout.frames + parts.frames.offset(offset));
    let mut sink = code.sink();
    let sink = &mut sink;
    sink.local_get(0).i32_const(4).i32_shl().local_set(l.record);
    sink.local_get(0).i32_const((WARP * parts.frames.bytes) as i32).i32_mul().local_set(l.base);
    sink.local_get(l.record).i32_load(of_warp(frame::MEETING)).local_set(l.rest);
    sink.block(BlockType::Empty).loop_(BlockType::Empty);
    sink.local_get(l.rest).i32_eqz().br_if(1);
    // The first lane says for what and whom.
    frame_of(sink, parts, l, l.rest);
    sink.local_get(l.frame).i32_load(of_frame(frame::PURPOSE)).local_set(l.purpose);
    sink.local_get(l.frame).i32_load(of_frame(frame::MASK)).local_set(l.mask);
    sink.local_get(l.record).i32_load(of_warp(frame::ALIKE)).local_get(l.rest).i32_eq().if_(BlockType::Empty);
    sink.local_get(l.rest).local_set(l.group);
    sink.else_();
    sink.i32_const(0).local_set(l.group).local_get(l.rest).local_set(l.left);
    each(sink, parts, l, l.left, |sink| {
        sink.local_get(l.frame).i32_load(of_frame(frame::PURPOSE)).local_get(l.purpose).i32_eq();
        sink.local_get(l.frame).i32_load(of_frame(frame::MASK)).local_get(l.mask).i32_eq().i32_and();
        sink.local_get(l.lane).i32_shl().local_get(l.group).i32_or().local_set(l.group);
    });
    sink.end();
    sink.local_get(l.rest).local_get(l.group).i32_const(-1).i32_xor().i32_and().local_set(l.rest);
    // Somebody is missing: they go on waiting. Who comes for the active mask waits for nobody.
    sink.local_get(l.purpose).i32_const(meeting::ACTIVE as i32).i32_ne();
    sink.local_get(l.mask).local_get(l.record).i32_load(of_warp(frame::EXITED));
    if !parts.program.collectives.is_empty() {
        // A routine for whole warps waits for all lanes.
        sink.i32_const(0).local_get(l.purpose).i32_const(meeting::COLLECTIVE as i32).i32_lt_u().select();
    }
    sink.local_get(l.group).i32_or();
    sink.i32_const(-1).i32_xor().i32_and().i32_const(0).i32_ne().i32_and().br_if(0);
    exchange(sink, parts, l);
    sink.local_get(l.released).local_get(l.group).i32_or().local_set(l.released);
    sink.br(0).end().end();
    sink.local_get(l.record).local_get(l.record).i32_load(of_warp(frame::MEETING));
    sink.local_get(l.released).i32_const(-1).i32_xor().i32_and().i32_store(of_warp(frame::MEETING));
    sink.local_get(l.record).local_get(l.record).i32_load(of_warp(frame::READY));
    sink.local_get(l.released).i32_or().i32_store(of_warp(frame::READY));
    sink.local_get(l.released);
    functions.add(&[ValType::I32], &[ValType::I32], code);
}

/// The lowest lane of a mask and its frame.
fn frame_of(sink: &mut InstructionSink<'_>, parts: &Parts<'_>, l: &Locals, mask: u32) {
    sink.local_get(mask).i32_ctz().local_set(l.lane);
    place(sink, parts.frames, l.lane);
    sink.local_get(l.base).i32_add().local_set(l.frame);
}

/// Does something for each lane of a mask, which is used up.
fn each(
    sink: &mut InstructionSink<'_>,
    parts: &Parts<'_>,
    l: &Locals,
    mask: u32,
    visit: impl FnOnce(&mut InstructionSink<'_>),
) {
    sink.loop_(BlockType::Empty);
    frame_of(sink, parts, l, mask);
    visit(sink);
    sink.local_get(mask).local_get(mask).i32_const(1).i32_sub().i32_and().local_tee(mask).br_if(0).end();
}

/// Gives every lane of the group its result.
fn exchange(sink: &mut InstructionSink<'_>, parts: &Parts<'_>, l: &Locals) {
    let of_frame = |offset: u32| at(parts.layout.frames + parts.frames.offset(offset));
    let group = |sink: &mut InstructionSink<'_>| {
        sink.local_get(l.group).local_set(l.left);
    };
    let is = |sink: &mut InstructionSink<'_>, purpose: u32| {
        sink.local_get(l.purpose).i32_const(purpose as i32).i32_eq().if_(BlockType::Empty);
    };
    sink.block(BlockType::Empty);
    is(sink, meeting::SYNC);
    sink.br(1).end();
    is(sink, meeting::SHUFFLE);
    group(sink);
    each(sink, parts, l, l.left, |sink| {
        // A source outside of the group gives nothing: the lane keeps its own.
        sink.local_get(l.frame);
        sink.local_get(l.frame).i32_load(of_frame(frame::SOURCE)).local_get(l.lane);
        sink.local_get(l.group)
            .local_get(l.frame)
            .i32_load(of_frame(frame::SOURCE))
            .i32_shr_u()
            .i32_const(1)
            .i32_and()
            .select()
            .local_set(l.others);
        place(sink, parts.frames, l.others);
        sink.local_get(l.base).i32_add();
        sink.i32_load(of_frame(frame::VALUE)).i32_store(of_frame(frame::RESULT));
    });
    sink.br(1).end();
    for (number, routine) in (0..).zip(&parts.program.collectives) {
        is(sink, meeting::COLLECTIVE + number);
        sink.local_get(l.base).i32_const((parts.layout.frames + frame::EXCHANGE) as i32).i32_add();
        sink.i32_const(parts.frames.bytes as i32).call(parts.first_routine + routine.0).br(1).end();
    }
    is(sink, meeting::MATCH);
    matches(sink, parts, l);
    sink.br(1).end();
    // All others give every lane the same.
    group(sink);
    sink.i32_const(0).local_set(l.sum);
    is(sink, meeting::VOTE);
    each(sink, parts, l, l.left, |sink| {
        sink.local_get(l.frame).i32_load(of_frame(frame::VALUE)).i32_const(0).i32_ne().local_get(l.lane).i32_shl();
        sink.local_get(l.sum).i32_or().local_set(l.sum);
    });
    sink.else_().local_get(l.purpose).i32_const(meeting::ACTIVE as i32).i32_eq().if_(BlockType::Empty);
    sink.local_get(l.group).local_set(l.sum);
    sink.else_();
    reduce(sink, parts, l);
    sink.end().end();
    group(sink);
    each(sink, parts, l, l.left, |sink| {
        sink.local_get(l.frame).local_get(l.sum).i32_store(of_frame(frame::RESULT));
        sink.local_get(l.frame).local_get(l.group).i32_store(of_frame(frame::RESULT + 4));
    });
    sink.end();
}

/// For each lane, who brings the same.
fn matches(sink: &mut InstructionSink<'_>, parts: &Parts<'_>, l: &Locals) {
    let of_frame = |offset: u32| at(parts.layout.frames + parts.frames.offset(offset));
    // Where frames are grouped, the halves of the value lie apart.
    let value = |sink: &mut InstructionSink<'_>| {
        if parts.frames.grouped {
            sink.local_set(l.other_frame).local_get(l.other_frame).i64_load32_u(of_frame(frame::VALUE));
            sink.local_get(l.other_frame).i64_load32_u(of_frame(frame::VALUE + 4)).i64_const(32).i64_shl().i64_or();
        } else {
            sink.i64_load(at_8(parts.layout.frames + frame::VALUE));
        }
    };
    sink.local_get(l.group).local_set(l.left);
    each(sink, parts, l, l.left, |sink| {
        sink.local_get(l.frame);
        value(sink);
        sink.local_set(l.value);
        sink.i32_const(0).local_set(l.sum).local_get(l.group).local_set(l.others);
        sink.loop_(BlockType::Empty);
        sink.local_get(l.others).i32_ctz().local_set(l.other);
        place(sink, parts.frames, l.other);
        sink.local_get(l.base).i32_add();
        value(sink);
        sink.local_get(l.value).i64_eq().local_get(l.others).i32_ctz().i32_shl();
        sink.local_get(l.sum).i32_or().local_set(l.sum);
        sink.local_get(l.others)
            .local_get(l.others)
            .i32_const(1)
            .i32_sub()
            .i32_and()
            .local_tee(l.others)
            .br_if(0)
            .end();
        sink.local_get(l.frame).local_get(l.sum).i32_store(of_frame(frame::RESULT));
        sink.local_get(l.frame).local_get(l.group).i32_store(of_frame(frame::RESULT + 4));
    });
}

/// Writes one instruction.
type Write = fn(&mut InstructionSink<'_>);

/// One number from those of all lanes.
fn reduce(sink: &mut InstructionSink<'_>, parts: &Parts<'_>, l: &Locals) {
    let value = at(parts.layout.frames + parts.frames.offset(frame::VALUE));
    // The first lane's, then each other's.
    frame_of(sink, parts, l, l.left);
    sink.local_get(l.frame).i32_load(value).local_set(l.sum);
    sink.local_get(l.left).local_get(l.left).i32_const(1).i32_sub().i32_and().local_tee(l.left).if_(BlockType::Empty);
    each(sink, parts, l, l.left, |sink| {
        sink.local_get(l.frame).i32_load(value).local_set(l.others);
        let operations: [(u32, Write); 4] = [
            (meeting::ADD, |sink| {
                sink.i32_add();
            }),
            (meeting::AND, |sink| {
                sink.i32_and();
            }),
            (meeting::OR, |sink| {
                sink.i32_or();
            }),
            (meeting::XOR, |sink| {
                sink.i32_xor();
            }),
        ];
        for (purpose, operation) in operations {
            sink.local_get(l.purpose).i32_const(purpose as i32).i32_eq().if_(BlockType::Empty);
            sink.local_get(l.sum).local_get(l.others);
            operation(sink);
            sink.local_set(l.sum).end();
        }
        let extremes: [(u32, Write); 4] = [
            (meeting::MIN, |sink| {
                sink.i32_lt_u();
            }),
            (meeting::MAX, |sink| {
                sink.i32_gt_u();
            }),
            (meeting::MIN_SIGNED, |sink| {
                sink.i32_lt_s();
            }),
            (meeting::MAX_SIGNED, |sink| {
                sink.i32_gt_s();
            }),
        ];
        for (purpose, compare) in extremes {
            sink.local_get(l.purpose).i32_const(purpose as i32).i32_eq().if_(BlockType::Empty);
            sink.local_get(l.sum).local_get(l.others).local_get(l.sum).local_get(l.others);
            compare(sink);
            sink.select().local_set(l.sum).end();
        }
    });
    sink.end();
}
