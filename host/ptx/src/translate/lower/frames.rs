//! What threads keep in their frames while they wait, and where.

use std::collections::{HashMap, HashSet};

use wasm_encoder::InstructionSink;

use crate::translate::frame::{self, Frames as Layout};
use crate::translate::graph::Graph;
use crate::translate::ir::{Access, Function, Kind, Memory, Value};
use crate::translate::lanes::LANES;
use crate::translate::liveness::live_in;
use crate::translate::regions::Regions;

/// Which values threads keep while they wait, and where in their frames.
pub struct Frames {
    /// How they lie.
    pub layout: Layout,
    /// By block, for heads of regions: the values that are needed from there on, parameters included.
    pub needed: HashMap<u32, Vec<Value>>,
    offsets: HashMap<Value, u32>,
}

impl Frames {
    /// Values that are never needed at the same head may lie at the same place.
    pub fn new(body: &Function, exchange: u32, regions: &Regions, uniform: &[bool], grouped: bool) -> Self {
        let whole = Graph::of(body);
        let live = live_in(body, &whole, |value| !uniform[value.0 as usize]);
        let mut needed = HashMap::new();
        let mut heads_of: HashMap<Value, Vec<u32>> = HashMap::new();
        for region in &regions.regions {
            let parameters = &body.blocks[region.head as usize].parameters;
            let values: Vec<Value> = live[region.head as usize].iter().chain(parameters).copied().collect();
            for value in &values {
                heads_of.entry(*value).or_default().push(region.head);
            }
            needed.insert(region.head, values);
        }
        let mut values: Vec<Value> = heads_of.keys().copied().collect();
        // Those of 8 bytes first, so that all lie at multiples of their size.
        values.sort_unstable_by_key(|value| (std::cmp::Reverse(body.kind(*value).bytes()), *value));
        let mut taken: HashMap<u32, HashSet<u32>> = HashMap::new();
        let mut offsets = HashMap::new();
        let mut start = (call_area(exchange) + body.call_area).next_multiple_of(8);
        let mut end = start;
        let mut bytes_before = 8;
        for value in values {
            let bytes = body.kind(value).bytes();
            if grouped && bytes < bytes_before {
                // Neighbours at different places of the body have different values: words of one must not lie across the eight bytes of another.
                start = end;
            }
            bytes_before = bytes;
            let free = |offset: u32| {
                let words = [offset, offset + bytes - 4];
                heads_of[&value]
                    .iter()
                    .all(|head| taken.get(head).is_none_or(|taken| words.iter().all(|word| !taken.contains(word))))
            };
            let mut offset = start;
            while !free(offset) {
                offset += bytes;
            }
            for head in &heads_of[&value] {
                taken.entry(*head).or_default().extend([offset, offset + bytes - 4]);
            }
            end = end.max(offset + bytes);
            offsets.insert(value, offset);
        }
        Self { layout: Layout { bytes: end.next_multiple_of(16), grouped }, needed, offsets }
    }

    /// How a value is read from its place and written to it.
    pub fn access(&self, value: Value, kind: Kind) -> Access {
        let offset = self.offsets.get(&value).copied().unwrap_or(frame::VALUE);
        let offset = u64::from(self.layout.offset(offset));
        Access {
            memory: Memory::Private,
            bytes: kind.bytes(),
            signed: false,
            offset,
            atomic: false,
            exclusive: false,
            constant: false,
        }
    }
}

/// Where in a frame the call area begins.
pub fn call_area(exchange: u32) -> u32 {
    (frame::EXCHANGE + exchange).next_multiple_of(16)
}

/// Puts the place of a thread's frame on the stack, without where the frames begin; `linear` is a local with its index.
pub fn place(sink: &mut InstructionSink<'_>, layout: Layout, linear: u32) {
    sink.local_get(linear);
    if !layout.grouped {
        sink.i32_const(layout.bytes as i32).i32_mul();
        return;
    }
    sink.i32_const(LANES.trailing_zeros() as i32).i32_shr_u().i32_const(layout.group_bytes() as i32).i32_mul();
    sink.local_get(linear).i32_const(LANES as i32 - 1).i32_and().i32_const(2).i32_shl().i32_add();
}
