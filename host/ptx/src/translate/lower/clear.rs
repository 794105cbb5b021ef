//! Clears a block's memory before its threads begin: what a kernel reads before it wrote there is 0, and not what an earlier block of the same instance left,
//! which would depend on how many instances there are.

use wasm_encoder::{BlockType, InstructionSink, MemArg, ValType};

use super::module::Parts;
use super::unit::{Code, DEVICE, PRIVATE};
use crate::kernel::Launch;

/// Bytes that one store clears at most.
const PIECE: u64 = 16;
/// Stores in one turn of a loop, as long as there is so much.
const STORES: u64 = 8;

/// Clears shared memory, and local memory if the kernel has any.
pub fn clear(code: &mut Code, parts: &Parts<'_>) {
    let (at, end) = (code.local(ValType::I64), code.local(ValType::I64));
    span(code, parts, at, end, Launch::SHARED, Launch::SHARED_END);
    if parts.local_bytes > 0 {
        span(code, parts, at, end, Launch::LOCAL, Launch::LOCAL_END);
    }
    code.release(at);
    code.release(end);
}

/// Clears from one address of the launch record to another: many pieces at once, then piece by piece, then what is left byte by byte.
fn span(code: &mut Code, parts: &Parts<'_>, at: u32, end: u32, from: u32, to: u32) {
    let record = |offset: u32| MemArg { offset: u64::from(offset), align: 3, memory_index: PRIVATE };
    let mut sink = code.sink();
    sink.i32_const(0).i64_load(record(from)).local_set(at);
    for bytes in [PIECE * STORES, PIECE, 1] {
        // Up to the last whole turn.
        sink.local_get(at).i32_const(0).i64_load(record(to)).local_get(at).i64_sub();
        sink.i64_const(-(bytes as i64)).i64_and().i64_add().local_set(end);
        turns(&mut sink, parts.wide, at, end, bytes);
    }
}

/// Clears from `at` to `end`, which is so many bytes further or a multiple of that, or the same.
fn turns(sink: &mut InstructionSink<'_>, wide: bool, at: u32, end: u32, bytes: u64) {
    let device = |offset: u64, align: u32| MemArg { offset, align, memory_index: DEVICE };
    sink.local_get(at).local_get(end).i64_lt_u().if_(BlockType::Empty).loop_(BlockType::Empty);
    let index = |sink: &mut InstructionSink<'_>| {
        sink.local_get(at);
        if !wide {
            sink.i32_wrap_i64();
        }
    };
    if bytes < PIECE {
        index(sink);
        sink.i32_const(0).i32_store8(device(0, 0));
    }
    for piece in 0..bytes / PIECE {
        index(sink);
        sink.v128_const(0).v128_store(device(piece * PIECE, 4));
    }
    sink.local_get(at).i64_const(bytes as i64).i64_add().local_tee(at).local_get(end).i64_lt_u().br_if(0).end().end();
}
