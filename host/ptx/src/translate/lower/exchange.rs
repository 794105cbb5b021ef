//! What the lanes of a whole warp exchange, eight groups side by side: shuffles whose sources are known beforehand, and votes.
//!
//! When all 32 lanes of a warp have come to such a place as groups, nothing need be looked up: a shuffle moves vectors between locals. What follows up to the next such
//! place (a warp's sum is five of them, with an addition between each two) is done here too, so that nothing goes through the frames.
//!
//! ```text
//! exchange(base: linear index of the warp's first thread)
//!   what is the same for all threads
//!   the groups' words, out of their frames
//!   for each place: what each group gets; for each group: what follows
//!   what each group got last and what is needed later, into their frames
//! ```

use std::collections::{HashMap, HashSet};

use wasm_encoder::ValType;

use super::frames::{Frames, place};
use super::lockstep::vector_at;
use super::module::{Functions, Parts};
use super::plan::Plan;
use super::unit::{Code, Locals, Unit};
use super::vector::Lanes;
use crate::kernel::{MOST_THREADS, WARP};
use crate::translate::frame;
use crate::translate::graph::Graph;
use crate::translate::ir::{Binary, Edge, Function, Input, Inst, Suspension, Terminator, Unary, Value};
use crate::translate::lanes::{LANES, Shape};
use crate::translate::liveness::reads;
use crate::translate::meeting;
use crate::translate::parting::Lockstep;

/// Groups of a warp.
const GROUPS: u32 = WARP / LANES;
/// Instructions of a block between two exchanges, at most: each group has a copy.
const MOST_INSTRUCTIONS: usize = 24;
/// Values that are computed to find the sources of a shuffle, at most.
const MOST_STEPS: u32 = 64 * MOST_THREADS;
/// Exchanges of one function, at most.
const MOST_LINKS: usize = 8;

/// What is exchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exchange {
    /// By lane, whose word it gets.
    Shuffle([u8; WARP as usize]),
    /// All get the lanes whose word is not 0.
    Vote,
}

/// Locals with what a group gets: the result, and who took part.
pub type Received = [Option<u32>; 2];

impl Exchange {
    /// From locals with the words of a warp's groups to such with what these get.
    pub fn add(&self, code: &mut Code, words: &[u32]) -> Vec<Received> {
        match self {
            Self::Shuffle(sources) => {
                (0..GROUPS).map(|group| [Some(shuffled(code, words, sources, group)), None]).collect()
            }
            Self::Vote => vec![voted(code, words); GROUPS as usize],
        }
    }
}

/// A local with the words that a group gets.
fn shuffled(code: &mut Code, words: &[u32], sources: &[u8; WARP as usize], group: u32) -> u32 {
    let own = &sources[(group * LANES) as usize..][..LANES as usize];
    let result = code.local(ValType::V128);
    let from = |lane: usize| u32::from(own[lane]) / LANES;
    let within = |lane: usize| u32::from(own[lane]) % LANES;
    let first = from(0);
    let mut others: Vec<u32> = (1..LANES as usize).map(from).filter(|other| *other != first).collect();
    others.dedup();
    if others.is_empty() {
        others.push(first);
    }
    let mut sink = code.sink();
    sink.local_get(words[first as usize]);
    for (turn, other) in others.iter().enumerate() {
        let mut bytes = [0; 16];
        for lane in 0..LANES as usize {
            // The lanes of `other` come now; what came before stays, or in the first turn is put in its place.
            let word = match (from(lane) == *other && *other != first, turn) {
                (true, _) => LANES + within(lane),
                (false, 0) => within(lane),
                (false, _) => lane as u32,
            };
            (0..4).for_each(|byte| bytes[4 * lane + byte] = (4 * word) as u8 + byte as u8);
        }
        sink.local_get(words[*other as usize]).i8x16_shuffle(bytes);
    }
    sink.local_set(result);
    result
}

/// Locals with the lanes whose word is not 0, and with all lanes.
fn voted(code: &mut Code, words: &[u32]) -> Received {
    let [result, all] = [0; 2].map(|_| code.local(ValType::V128));
    let mut sink = code.sink();
    for (group, word) in (0..).zip(words) {
        sink.local_get(*word).v128_const(0).i32x4_ne().i32x4_bitmask().i32_const(group * LANES as i32).i32_shl();
        if group > 0 {
            sink.i32_or();
        }
    }
    sink.i32x4_splat().local_set(result).v128_const(-1).local_set(all);
    [Some(result), Some(all)]
}

/// One exchange, and the block that follows it.
struct Link {
    exchange: Exchange,
    value: Value,
    next: u32,
}

/// Exchanges that follow each other.
pub struct Chain {
    links: Vec<Link>,
}

impl Chain {
    /// Where the threads go on after the first exchange if they are not a whole warp: the chain belongs to the suspension that leads there.
    pub fn start(&self) -> u32 {
        self.links[0].next
    }

    /// Blocks that a whole warp does not go on at.
    pub fn passed(&self) -> impl Iterator<Item = u32> {
        self.links[..self.links.len() - 1].iter().map(|link| link.next)
    }
}

/// All chains of a body.
pub fn chains(lockstep: &Lockstep, graph: &Graph, uniform: &[bool]) -> Vec<Chain> {
    let body = &lockstep.body;
    let mut links: HashMap<u32, Link> = HashMap::new();
    for block in &graph.order {
        if let Terminator::Suspend(_, edge) = &body.blocks[*block as usize].terminator
            && let Some((exchange, value)) = whole(body, graph, *block)
        {
            links.insert(*block, Link { exchange, value, next: edge.block });
        }
    }
    let within: HashSet<u32> = links.keys().copied().filter(|block| short(lockstep, *block, uniform)).collect();
    let follows: HashSet<u32> = links.values().map(|link| link.next).filter(|next| within.contains(next)).collect();
    let mut starts: Vec<u32> = links.keys().copied().filter(|block| !follows.contains(block)).collect();
    starts.sort_unstable();
    let mut chains = Vec::new();
    while let Some(start) = starts.pop() {
        let mut chain = Chain { links: Vec::new() };
        let mut at = Some(start);
        while let Some(link) = at.and_then(|block| links.remove(&block)) {
            at = within.contains(&link.next).then_some(link.next);
            chain.links.push(link);
            if chain.links.len() == MOST_LINKS {
                starts.extend(at.take());
            }
        }
        if !chain.links.is_empty() {
            chains.push(chain);
        }
    }
    chains
}

/// How many groups of a warp run side by side: all, where the warp exchanges something; else half of them, since rows of so many threads are common.
pub fn groups_side_by_side(body: &Function) -> u32 {
    let graph = Graph::of(body);
    if graph.order.iter().any(|block| whole(body, &graph, *block).is_some()) { GROUPS } else { GROUPS / 2 }
}

/// What is exchanged at the end of a block, if a whole warp can do it and go on at once.
pub fn whole(body: &Function, graph: &Graph, block: u32) -> Option<(Exchange, Value)> {
    let Terminator::Suspend(suspension, edge) = &body.blocks[block as usize].terminator else { return None };
    let alone = edge.arguments.is_empty() && entered_once(body, graph, edge.block);
    if alone { known(body, suspension) } else { None }
}

fn entered_once(body: &Function, graph: &Graph, block: u32) -> bool {
    let edges =
        |from: &u32| body.blocks[*from as usize].terminator.edges().filter(|edge: &&Edge| edge.block == block).count();
    graph.predecessors[block as usize].iter().map(edges).sum::<usize>() == 1
        && body.blocks[block as usize].parameters.is_empty()
}

/// What is exchanged, if that is known and all lanes take part.
fn known(body: &Function, suspension: &Suspension) -> Option<(Exchange, Value)> {
    let Suspension::Meeting { purpose, mask: Some(mask), value: Some(value), source } = suspension else { return None };
    let all = matches!(body.inst(*mask), Inst::Const(bits) if *bits as u32 == u32::MAX);
    if !all || body.kind(*value).bytes() != 4 {
        return None;
    }
    match (*purpose, source) {
        (meeting::VOTE, None) => Some((Exchange::Vote, *value)),
        (meeting::SHUFFLE, Some(source)) => Some((Exchange::Shuffle(sources(body, *source)?), *value)),
        _ => None,
    }
}

/// By lane, the source, where it depends on the lane alone: in every warp it is the same.
fn sources(body: &Function, source: Value) -> Option<[u8; WARP as usize]> {
    let mut lanes = [0; WARP as usize];
    let mut steps = MOST_STEPS;
    for linear in 0..MOST_THREADS {
        let source = u8::try_from(evaluated(body, source, linear, &mut steps)?)
            .ok()
            .filter(|source| u32::from(*source) < WARP)?;
        let lane = (linear % WARP) as usize;
        if linear >= WARP && lanes[lane] != source {
            return None;
        }
        lanes[lane] = source;
    }
    Some(lanes)
}

/// A value in the thread with this index, if so many steps suffice.
fn evaluated(body: &Function, value: Value, linear: u32, steps: &mut u32) -> Option<u32> {
    *steps = steps.checked_sub(1)?;
    let mut of = |value: &Value| evaluated(body, *value, linear, steps);
    Some(match body.inst(value) {
        Inst::Const(bits) => *bits as u32,
        Inst::Input(Input::Linear) => linear,
        Inst::Unary(Unary::IsZero, a) => u32::from(of(a)? == 0),
        Inst::Select(condition, yes, no) => {
            if of(condition)? != 0 {
                of(yes)?
            } else {
                of(no)?
            }
        }
        Inst::Binary(op, a, b) => {
            let (a, b) = (of(a)?, of(b)?);
            match op {
                Binary::Add => a.wrapping_add(b),
                Binary::Sub => a.wrapping_sub(b),
                Binary::And => a & b,
                Binary::Or => a | b,
                Binary::Xor => a ^ b,
                Binary::LeS => u32::from(a as i32 <= b as i32),
                Binary::LtS => u32::from((a as i32) < b as i32),
                Binary::LeU => u32::from(a <= b),
                Binary::LtU => u32::from(a < b),
                _ => return None,
            }
        }
        _ => return None,
    })
}

/// Whether a block between two exchanges does nothing but compute with what it has and gets. Lines that come from the frames would have to be compared with what all
/// threads kept (see `lockstep`), so it has none.
fn short(lockstep: &Lockstep, block: u32, uniform: &[bool]) -> bool {
    let body = &lockstep.body;
    let data = &body.blocks[block as usize];
    let comes = |value: &Value| {
        let nowhere = uniform[value.0 as usize] || matches!(body.inst(*value), Inst::Const(_) | Inst::Input(_));
        !nowhere && !data.insts.contains(value)
    };
    let line = |value: Value| comes(&value) && matches!(lockstep.found.shapes[value.0 as usize], Shape::Line(_));
    let computes = |value: &Value| match body.inst(*value) {
        Inst::Const(_) | Inst::Unary(..) | Inst::Binary(..) | Inst::Fma(..) | Inst::Select(..) => true,
        Inst::Load(access, address) => access.constant || matches!(body.inst(*address), Inst::Input(Input::Frame)),
        _ => false,
    };
    data.insts.len() <= MOST_INSTRUCTIONS
        && data.insts.iter().all(computes)
        && !reads(body, block).into_iter().any(line)
        && lockstep.partings.iter().all(|parting| parting.block != block)
}

/// Adds the function of a chain.
pub fn add<'a>(
    functions: &mut Functions,
    parts: &'a Parts<'a>,
    frames: &'a Frames,
    lockstep: &'a Lockstep,
    chain: &'a Chain,
) {
    let body = &lockstep.body;
    let (first, end) = (chain.links[0].next, chain.links[chain.links.len() - 1].next);
    let following: HashMap<u32, u32> =
        chain.links.windows(2).map(|links| (links[0].next, links[1].next)).filter(|(_, next)| *next != end).collect();
    let blocks: Vec<u32> = chain.passed().collect();
    let graph = Graph::new(body.blocks.len(), first, |block| following.get(&block).copied().into_iter().collect());
    let defined: HashSet<Value> =
        blocks.iter().flat_map(|block| &body.blocks[*block as usize].insts).copied().collect();
    let saved: Vec<Value> = frames.needed[&end].iter().copied().filter(|value| defined.contains(value)).collect();
    let read: HashSet<Value> = blocks.iter().flat_map(|block| reads(body, *block)).collect();
    let loaded: Vec<Value> =
        frames.needed[&first].iter().copied().filter(|value| read.contains(value) && !blocks.is_empty()).collect();
    let empty = Graph { order: Vec::new(), ..graph.clone() };
    let plan =
        Plan::for_lockstep(body, if blocks.is_empty() { &empty } else { &graph }, parts.uniform, [&loaded, &saved]);
    let mut code = Code::new(1);
    let [frame, linear, packed] = [0; 3].map(|_| code.fresh(ValType::I32));
    let mut unit = Unit::new(body, plan, code, parts);
    unit.thread.linear = linear;
    unit.thread.packed = Some(packed);
    unit.thread.frame = Some(frame);
    unit.lanes = Some(Lanes::new(&lockstep.found));
    unit.preamble();
    let mut sink = unit.sink();
    place(&mut sink, parts.frames, BASE);
    sink.i32_const(parts.layout.frames as i32).i32_add().local_set(frame);
    let mut warp = Warp { unit, frames, frame, groups: Vec::new(), words: Vec::new(), received: Vec::new() };
    warp.begin(&loaded);
    for (index, link) in chain.links.iter().enumerate() {
        warp.exchange(&link.exchange);
        if index + 1 < chain.links.len() {
            warp.follow(link.next, chain.links[index + 1].value);
        }
    }
    warp.end(&saved, parts.regions.number[end as usize].unwrap_or(0));
    functions.add(&[ValType::I32], &[], warp.unit.code);
}

/// The function's parameter.
const BASE: u32 = 0;

/// The locals of a group's values, and the second ones of pairs.
type Both = (Locals, Locals);

/// A warp's groups while code for them is written.
struct Warp<'a> {
    unit: Unit<'a>,
    frames: &'a Frames,
    /// Local with the address of the first group's frame.
    frame: u32,
    groups: Vec<Both>,
    /// By group, the local with what it brings.
    words: Vec<u32>,
    /// The same with what it gets.
    received: Vec<Received>,
}

impl Warp<'_> {
    /// An immediate for a field of a group's frame, or for a value's place.
    fn of_group(&self, group: u32, offset: u32) -> wasm_encoder::MemArg {
        vector_at(u64::from(group * self.frames.layout.group_bytes() + offset))
    }

    fn header(&self, group: u32, field: u32) -> wasm_encoder::MemArg {
        self.of_group(group, self.frames.layout.offset(field))
    }

    fn place_of(&self, group: u32, value: Value) -> wasm_encoder::MemArg {
        let kind = self.unit.function.kind(value);
        self.of_group(group, self.frames.access(value, kind).offset as u32)
    }

    fn begin(&mut self, loaded: &[Value]) {
        let common = self.unit.swap_locals((HashMap::new(), HashMap::new()));
        for group in 0..GROUPS {
            self.unit.swap_locals(common.clone());
            for value in loaded {
                self.load(group, *value);
            }
            let word = self.unit.code.local(ValType::V128);
            let (at, frame) = (self.header(group, frame::VALUE), self.frame);
            self.unit.sink().local_get(frame).v128_load(at).local_set(word);
            self.words.push(word);
            self.received.push([None; 2]);
            let own = self.unit.swap_locals((HashMap::new(), HashMap::new()));
            self.groups.push(own);
        }
    }

    fn load(&mut self, group: u32, value: Value) {
        let (at, frame) = (self.place_of(group, value), self.frame);
        let shape = self.unit.shape(value);
        let local = self.unit.local_of(value);
        let second = (shape == Shape::Pair).then(|| self.unit.second_of(value));
        let mut sink = self.unit.sink();
        sink.local_get(frame).v128_load(at);
        if shape == Shape::Mask {
            sink.i32x4_neg();
        }
        sink.local_set(local);
        if let Some(second) = second {
            let at = wasm_encoder::MemArg { offset: at.offset + 16, ..at };
            sink.local_get(frame).v128_load(at).local_set(second);
        }
    }

    /// From what the groups bring to what they get.
    fn exchange(&mut self, exchange: &Exchange) {
        let words = std::mem::take(&mut self.words);
        self.received = exchange.add(&mut self.unit.code, &words);
        words.into_iter().for_each(|word| self.unit.code.release(word));
    }

    /// The block behind an exchange, for each group, up to what it brings to the next.
    fn follow(&mut self, block: u32, value: Value) {
        let inputs = reads(self.unit.function, block).into_iter().any(|value| {
            matches!(self.unit.function.inst(value), Inst::Input(Input::Linear | Input::Packed | Input::Thread(_)))
        });
        for group in 0..GROUPS {
            let own = std::mem::take(&mut self.groups[group as usize]);
            self.unit.swap_locals(own);
            if inputs {
                let at = self.header(group, frame::PLACE);
                let (linear, packed) = (self.unit.thread.linear, self.unit.thread.packed.unwrap_or(0));
                let frame = self.frame;
                let mut sink = self.unit.sink();
                sink.local_get(BASE).i32_const((group * LANES) as i32).i32_add().local_set(linear);
                sink.local_get(frame).i32_load(wasm_encoder::MemArg { align: 2, ..at }).local_set(packed);
            }
            if let Some(lanes) = &mut self.unit.lanes {
                lanes.received = vec![self.received[group as usize]];
            }
            let uniform = self.unit.parts.uniform;
            self.unit.block(block, uniform, 0);
            let word = self.unit.code.local(ValType::V128);
            self.unit.words(value);
            self.unit.sink().local_set(word);
            self.words.push(word);
            self.unit.after_block(block);
            self.groups[group as usize] = self.unit.swap_locals((HashMap::new(), HashMap::new()));
        }
        let used: HashSet<u32> = self.received.iter().flatten().flatten().copied().collect();
        let mut used: Vec<u32> = used.into_iter().collect();
        used.sort_unstable();
        used.into_iter().for_each(|local| self.unit.code.release(local));
    }

    /// Leaves everything in the frames.
    fn end(&mut self, saved: &[Value], number: u32) {
        let together = number | frame::TOGETHER;
        let splat = (0..LANES).fold(0_u128, |bits, lane| bits | u128::from(together) << (32 * lane)) as i128;
        for group in 0..GROUPS {
            let own = std::mem::take(&mut self.groups[group as usize]);
            self.unit.swap_locals(own);
            let frame = self.frame;
            for value in saved {
                let at = self.place_of(group, *value);
                if self.unit.function.kind(*value).bytes() == 4 {
                    self.unit.sink().local_get(frame);
                    self.unit.words(*value);
                    self.unit.sink().v128_store(at);
                    continue;
                }
                for half in 0..2 {
                    self.unit.sink().local_get(frame);
                    self.unit.half(*value, half);
                    let at = wasm_encoder::MemArg { offset: at.offset + 16 * u64::from(half), ..at };
                    self.unit.sink().v128_store(at);
                }
            }
            let resume = self.header(group, frame::RESUME);
            self.unit.sink().local_get(frame).v128_const(splat).v128_store(resume);
            for (field, received) in [frame::RESULT, frame::RESULT + 4].into_iter().zip(self.received[group as usize]) {
                let Some(received) = received else { continue };
                let at = self.header(group, field);
                self.unit.sink().local_get(frame).local_get(received).v128_store(at);
            }
        }
    }
}
