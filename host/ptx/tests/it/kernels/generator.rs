//! Draws random kernels: free of data races, and with results that do not depend on who goes first.
//!
//! Each thread writes its own memory only. Shared memory is written before a barrier and read after it; accumulators take one operation each,
//! and all of those commute. Lanes meet under masks that were counted when they parted, and what a shuffle brings from a lane outside its mask
//! is thrown away. Barriers stand where all threads of the block come by.

use super::program::{ACCUMULATORS, DEEPEST, Depth, Masks, POOLS, Program, Statement};
use crate::random::{Random, edges};
use steadfast_ptx::module::Type;

/// One instruction. A letter after `$` is replaced: `r d f g h p` by a register of that kind; `i` by an integer immediate of 32 bits, `j` by one of
/// 64, `k` by a small number, `o` by a register or an immediate; `e` and `w` by immediates of the types `f32` and `f64`.
const INSTRUCTIONS: &[&str] = &[
    "add.u32 $r, $r, $o;",
    "sub.s32 $r, $r, $o;",
    "mul.lo.u32 $r, $r, $o;",
    "mul.hi.s32 $r, $r, $o;",
    "mul.wide.u32 $d, $r, $o;",
    "mad.lo.s32 $r, $r, $o, $r;",
    "mad.hi.u32 $r, $r, $r, $o;",
    "mad.wide.s32 $d, $r, $r, $d;",
    "add.sat.s32 $r, $r, $o;",
    "sad.u32 $r, $r, $r, $r;",
    "div.s32 $r, $r, $r;",
    "rem.u32 $r, $r, $o;",
    "min.s32 $r, $r, $o;",
    "max.u32 $r, $r, $o;",
    "abs.s32 $r, $r;",
    "neg.s32 $r, $r;",
    "and.b32 $r, $r, $o;",
    "or.b32 $r, $r, $r;",
    "xor.b32 $r, $r, $o;",
    "not.b32 $r, $r;",
    "shl.b32 $r, $r, $k;",
    "shl.b32 $r, $r, $r;",
    "shr.s32 $r, $r, $k;",
    "shr.u32 $r, $r, $r;",
    "shf.l.wrap.b32 $r, $r, $r, $k;",
    "shf.r.clamp.b32 $r, $r, $r, $r;",
    "bfe.u32 $r, $r, $k, $k;",
    "bfe.s32 $r, $r, $r, $k;",
    "bfi.b32 $r, $r, $r, $k, $k;",
    "popc.b32 $r, $r;",
    "clz.b64 $r, $d;",
    "bfind.s32 $r, $r;",
    "brev.b32 $r, $r;",
    "prmt.b32 $r, $r, $r, $i;",
    "lop3.b32 $r, $r, $r, $r, 0x96;",
    "dp4a.s32.u32 $r, $r, $r, $r;",
    "lop3.and.b32 $r|$p, $r, $r, $r, 0xCA, $p;",
    "add.u16x2 $r, $r, $r;",
    "max.relu.s16x2 $r, $r, $r;",
    "add.u64 $d, $d, $d;",
    "sub.s64 $d, $d, $j;",
    "mul.lo.u64 $d, $d, $d;",
    "mul.hi.u64 $d, $d, $d;",
    "div.u64 $d, $d, $d;",
    "rem.s64 $d, $d, $d;",
    "min.s64 $d, $d, $d;",
    "xor.b64 $d, $d, $j;",
    "shl.b64 $d, $d, $k;",
    "shr.s64 $d, $d, $r;",
    "add.u16 $h, $h, $h;",
    "mul.lo.u16 $h, $h, $h;",
    "mul.wide.s16 $r, $h, $h;",
    "shr.s16 $h, $h, $k;",
    "min.u16 $h, $h, $h;",
    "add.f32 $f, $f, $f;",
    "sub.rz.f32 $f, $f, $e;",
    "mul.f32 $f, $f, $f;",
    "fma.rn.f32 $f, $f, $f, $f;",
    "fma.rn.ftz.f32 $f, $f, $e, $f;",
    "div.rn.f32 $f, $f, $f;",
    "sqrt.rn.f32 $f, $f;",
    "rcp.rn.f32 $f, $f;",
    "min.f32 $f, $f, $f;",
    "max.f32 $f, $f, $e;",
    "add.sat.f32 $f, $f, $f;",
    "abs.f32 $f, $f;",
    "neg.f32 $f, $f;",
    "copysign.f32 $f, $f, $f;",
    "add.f64 $g, $g, $w;",
    "mul.f64 $g, $g, $g;",
    "fma.rn.f64 $g, $g, $g, $g;",
    "sub.f64 $g, $g, $g;",
    "add.f16 $h, $h, $h;",
    "fma.rn.f16 $h, $h, $h, $h;",
    "mul.f16x2 $r, $r, $r;",
    "fma.rn.bf16x2 $r, $r, $r, $r;",
    "cvt.rn.f32.s32 $f, $r;",
    "cvt.rzi.s32.f32 $r, $f;",
    "cvt.rni.u32.f32 $r, $f;",
    "cvt.f64.f32 $g, $f;",
    "cvt.rn.f32.f64 $f, $g;",
    "cvt.rn.f16.f32 $h, $f;",
    "cvt.rna.tf32.f32 $r, $f;",
    "cvt.f32.f16 $f, $h;",
    "cvt.s64.s32 $d, $r;",
    "cvt.u32.u64 $r, $d;",
    "cvt.u32.u16 $r, $h;",
    "cvt.s32.s8 $r, $r;",
    "cvt.u16.u32 $h, $r;",
    "cvt.sat.u8.s32 $r, $r;",
    "cvt.rzi.s64.f64 $d, $g;",
    "cvt.rn.f64.u64 $g, $d;",
    "mov.b32 $r, $f;",
    "mov.b32 $f, $r;",
    "mov.b64 $d, $g;",
    "mov.b64 $g, $d;",
    "mov.u32 $r, $i;",
    "mov.u32 $r, %laneid;",
    "mov.u32 $r, %tid.x;",
    "mov.u32 $r, %ctaid.x;",
    "mov.b64 $d, {$r, $r};",
    "mov.b64 {$r, $r}, $d;",
    "mov.b32 $r, {$h, $h};",
    "mov.b32 {$h, _}, $r;",
    "setp.lt.s32 $p, $r, $o;",
    "setp.ge.u32 $p, $r, $r;",
    "setp.eq.b64 $p, $d, $d;",
    "setp.gtu.f32 $p, $f, $f;",
    "setp.lt.f64 $p, $g, $g;",
    "setp.ne.and.u32 $p, $r, $o, $p;",
    "setp.gt.xor.f32 $p, $f, $e, !$p;",
    "set.le.u32.f32 $r, $f, $f;",
    "selp.b32 $r, $r, $r, $p;",
    "selp.f64 $g, $g, $g, $p;",
    "slct.s32.f32 $r, $r, $r, $f;",
    "and.pred $p, $p, $p;",
    "xor.pred $p, $p, $p;",
    "not.pred $p, $p;",
    "ld.const.b32 $r, [table+12];",
];

/// Instructions that belong together. `%t0` to `%t3`, `%t`, `%q`, `%a0` to `%a3` and `%e0` to `%e3` are theirs.
const SEQUENCES: &[&[&str]] = &[
    &["add.cc.u32 $r, $r, $r;", "addc.cc.u32 $r, $r, $r;", "addc.u32 $r, $r, 0;"],
    &["sub.cc.u64 $d, $d, $d;", "subc.u64 $d, $d, $d;"],
    &["mad.lo.cc.u32 $r, $r, $r, $r;", "madc.hi.u32 $r, $r, $r, $r;"],
    // Constants by a computed address.
    &[
        "mov.u64 %a0, table;",
        "and.b32 %t0, $r, 7;",
        "mul.wide.u32 %a1, %t0, 4;",
        "add.u64 %a0, %a0, %a1;",
        "ld.const.u32 $r, [%a0];",
    ],
    // An array of the thread.
    &[
        "mov.u64 %a0, array;",
        "and.b32 %t0, $r, 15;",
        "mul.wide.u32 %a1, %t0, 4;",
        "add.u64 %a0, %a0, %a1;",
        "st.local.u32 [%a0], $r;",
    ],
    &[
        "mov.u64 %a0, array;",
        "and.b32 %t0, $r, 15;",
        "mul.wide.u32 %a1, %t0, 4;",
        "add.u64 %a0, %a0, %a1;",
        "ld.local.u32 $r, [%a0];",
    ],
    &["mov.u64 %a0, array;", "cvta.local.u64 %a0, %a0;", "st.v2.f32 [%a0+8], {$f, $f};", "ld.s16 $r, [%a0+10];"],
    &["mov.u64 %a0, array;", "ld.local.v4.u32 {$r, %t0, %t1, $r}, [%a0+16];", "xor.b32 $r, %t0, %t1;"],
    // A branch over an instruction.
    &["@$p bra SKIP;", "add.u32 $r, $r, $o;", "@!$p bra SKIP;", "mov.b32 $f, $r;", "SKIP:"],
];

/// Instructions on global memory: input, and what belongs to the thread. Only where its address is known.
const GLOBAL: &[&[&str]] = &[
    &["and.b32 %t0, $r, 1016;", "cvt.u64.u32 %a0, %t0;", "add.u64 %a0, %in, %a0;", "ld.global.v2.b32 {$r, $r}, [%a0];"],
    &["and.b32 %t0, $r, 4095;", "cvt.u64.u32 %a0, %t0;", "add.u64 %a0, %in, %a0;", "ld.global.nc.s8 $r, [%a0];"],
    &["and.b32 %t0, $r, 4088;", "cvt.u64.u32 %a0, %t0;", "add.u64 %a0, %in, %a0;", "ld.f64 $g, [%a0];"],
    &["st.global.v2.b32 [%own], {$r, $r};", "ld.global.b64 $d, [%own];"],
    &["st.global.f32 [%own+8], $f;", "ld.global.u16 $r, [%own+10];"],
    &["and.b32 %t0, $r, 15;", "mul.wide.u32 %a0, %t0, 4;", "add.u64 %a0, %own, %a0;", "st.u32 [%a0], $r;"],
    &["and.b32 %t0, $r, 15;", "mul.wide.u32 %a0, %t0, 4;", "add.u64 %a0, %own, %a0;", "ld.u32 $r, [%a0];"],
    &["st.global.u8 [%own+3], $r;", "st.global.u16 [%own+6], $h;"],
    // To the thread's own slot in shared memory, which others read between barriers only.
    &[
        "and.b32 %t0, $r, 4088;",
        "cvt.u64.u32 %a0, %t0;",
        "add.u64 %a0, %in, %a0;",
        "mov.u64 %a1, slots;",
        "mul.wide.u32 %a2, %id, 8;",
        "add.u64 %a1, %a1, %a2;",
        "@$p cp.async.ca.shared.global [%a1], [%a0], 8;",
        "and.b32 %t1, $r, 3;",
        "cp.async.ca.shared.global [%a1+4], [%a0+8], 4, %t1;",
        "@$p cp.async.ca.shared.global [%a1], [%a0+16], 4, $p;",
        "cp.async.commit_group;",
        "cp.async.wait_group 0;",
        "ld.shared.b64 $d, [%a1];",
    ],
    &["@$p st.global.v4.f32 [%own+16], {$f, $f, $f, $f};", "@!$p ld.global.v2.f32 {$f, $f}, [%own+24];"],
    &["atom.global.add.u32 $r, [%own+32], $r;"],
    &["atom.global.cas.b32 $r, [%own+36], $r, $r;"],
    &["atom.global.exch.b64 $d, [%own+40], $d;"],
    &["atom.max.s32 $r, [%own+48], $r;", "@$p atom.global.inc.u32 $r, [%own+52], $o;"],
];

/// How many of [`GLOBAL`], from the first, read the input only.
const INPUTS: usize = 3;
/// How many, from the first, need nothing else but memory that belongs to the thread.
const OWN_ONLY: usize = 8;
/// How many of [`SEQUENCES`], from the first, do without the thread's array.
const WITHOUT_ARRAY: usize = 4;

/// The operation of each accumulator.
const SUMS: [&str; ACCUMULATORS as usize] =
    ["add.u32", "xor.b32", "min.u32", "and.b32", "add.s32", "max.u32", "or.b32", "add.u32"];

/// What is known where a statement stands.
#[derive(Clone, Copy)]
struct Place {
    depth: Depth,
    /// Whether all threads of the block that still run come by.
    uniform: bool,
    /// The depth whose mask names the lanes that are here.
    mask: Option<Depth>,
    /// Whether it is in the entry, which knows its buffers.
    entry: bool,
}

pub(super) struct Generator {
    random: Random,
    /// Statements that may still be drawn.
    left: u64,
    functions: u64,
    /// Threads know nothing of one another, and have no memory but what they read and, some of them, what is theirs.
    alone: bool,
    /// Neither functions nor arrays: what can run as the lanes of vectors.
    plain: bool,
    /// How many of [`GLOBAL`], from the first, are drawn from.
    globals: usize,
    /// Whether accumulators are used.
    accumulates: bool,
}

impl Generator {
    pub(super) fn program(seed: u64) -> Program {
        let mut random = Random::new(seed);
        let functions = random.below(3);
        let left = random.between(8, 45);
        let mut generator =
            Self { random, left, functions: 0, alone: false, plain: false, globals: GLOBAL.len(), accumulates: true };
        let mut bodies = Vec::new();
        for _ in 0..functions {
            let place = Place { depth: 0, uniform: false, mask: Some(0), entry: false };
            let count = generator.random.between(1, 5);
            bodies.push(generator.statements(place, count));
            generator.functions += 1;
        }
        let place = Place { depth: 0, uniform: true, mask: Some(0), entry: true };
        let mut body = Vec::new();
        while generator.left > 0 {
            body.extend(generator.statements(place, 4));
            if generator.random.chance(6) {
                let predicate = generator.fill("$p");
                body.push(Statement::Leave { predicate });
            }
        }
        Program { functions: bodies, body, alone: false }
    }

    /// A kernel whose threads wait and can run as the lanes of vectors.
    pub(super) fn together(seed: u64) -> Program {
        let mut random = Random::new(seed);
        let left = random.between(8, 45);
        let atomic = random.chance(25);
        let globals = if atomic { GLOBAL.len() } else { OWN_ONLY };
        let mut generator =
            Self { random, left, functions: 0, alone: false, plain: true, globals, accumulates: atomic };
        let place = Place { depth: 0, uniform: true, mask: Some(0), entry: true };
        let mut body = Vec::new();
        while generator.left > 0 {
            body.extend(generator.statements(place, 4));
            if generator.random.chance(4) {
                let predicate = generator.fill("$p");
                body.push(Statement::Leave { predicate });
            }
        }
        Program { functions: Vec::new(), body, alone: false }
    }

    /// A kernel that can run as the lanes of vectors: of threads that know nothing of one another. Some store something before their end.
    pub(super) fn alone(seed: u64) -> Program {
        let mut random = Random::new(seed);
        let left = random.between(8, 60);
        let globals = if random.chance(50) { OWN_ONLY } else { INPUTS };
        let mut generator = Self { random, left, functions: 0, alone: true, plain: true, globals, accumulates: false };
        let place = Place { depth: 0, uniform: false, mask: None, entry: true };
        let mut body = Vec::new();
        while generator.left > 0 {
            body.extend(generator.statements(place, 4));
            if generator.random.chance(10) {
                let predicate = generator.fill("$p");
                body.push(Statement::Leave { predicate });
            }
        }
        if generator.random.chance(30) {
            body.push(
                generator
                    .lines(&["st.global.v2.b32 [%own], {$r, $r};", "ld.global.b64 $d, [%own];"].map(str::to_owned)),
            );
            body.extend(generator.statements(Place { depth: DEEPEST, ..place }, 3));
        }
        if generator.random.chance(10) {
            body.push(generator.count());
        }
        Program { functions: Vec::new(), body, alone: true }
    }

    fn statements(&mut self, place: Place, count: u64) -> Vec<Statement> {
        (0..count).map(|_| self.statement(place)).collect()
    }

    fn statement(&mut self, place: Place) -> Statement {
        self.left = self.left.saturating_sub(1);
        let nests = place.depth < DEEPEST && self.left > 0;
        match self.random.below(100) {
            0..=9 if nests => self.branch(place),
            10..=15 if nests => self.repeat(place),
            16..=18 if nests && !self.alone => {
                let inside = Place { depth: place.depth + 1, uniform: false, mask: None, ..place };
                let arms = (0..self.random.between(1, 4)).map(|_| self.some(inside)).collect();
                Statement::Switch { depth: inside.depth, index: self.fill("$r"), arms }
            }
            19..=20 if nests => {
                let inside = Place { depth: place.depth + 1, uniform: false, mask: None, ..place };
                let (first, second) = (self.some(inside), self.some(inside));
                Statement::Tangle {
                    depth: inside.depth,
                    entry: self.fill("$r"),
                    rounds: self.fill("$r"),
                    first,
                    second,
                }
            }
            21..=27 if place.uniform => self.exchange(),
            28..=31 if place.uniform && place.mask.is_some() => self.sum_of_warp(place.mask.unwrap_or_default()),
            28..=41 if place.mask.is_some() => self.meeting(place.mask.unwrap_or_default(), place.uniform),
            42..=46 if self.accumulates => self.accumulate(place),
            47..=55 if place.entry => self.sequence(&GLOBAL[..self.globals]),
            56..=63 if !self.plain => self.sequence(SEQUENCES),
            56..=63 => self.sequence(&SEQUENCES[..WITHOUT_ARRAY]),
            64..=67 if self.functions > 0 => self.call(place),
            _ => {
                let count = self.random.between(1, 4);
                Statement::Lines((0..count).map(|_| self.instruction()).collect())
            }
        }
    }

    fn some(&mut self, place: Place) -> Vec<Statement> {
        let count = self.random.between(1, 3);
        self.statements(place, count)
    }

    /// How the lanes of a place know one another behind a branch at it, and what is known there.
    fn masks(&mut self, place: Place) -> (Masks, Place) {
        let depth = place.depth + 1;
        match place.mask {
            Some(above) if place.uniform && self.random.chance(35) => {
                (Masks::Uniform(above), Place { depth, mask: Some(depth), ..place })
            }
            Some(above) if self.random.chance(70) => {
                (Masks::Tracked(above), Place { depth, uniform: false, mask: Some(depth), ..place })
            }
            _ => (Masks::Unknown, Place { depth, uniform: false, mask: None, ..place }),
        }
    }

    fn branch(&mut self, place: Place) -> Statement {
        let (masks, inside) = self.masks(place);
        let depth = inside.depth;
        let condition = match masks {
            Masks::Uniform(_) => self.fill(&format!("setp.ge.s32 %c{depth}, %u0, 1;")),
            _ if self.alone && self.random.chance(40) => self.fill(&format!("setp.ge.s32 %c{depth}, %u0, 1;")),
            _ if self.random.chance(30) => self.fill(&format!("setp.lt.u32 %c{depth}, %lane, $k;")),
            _ => {
                let conditions = [
                    "setp.lt.s32 %c#, $r, $o;",
                    "and.pred %c#, $p, $p;",
                    "setp.geu.f32 %c#, $f, $e;",
                    "setp.ne.b64 %c#, $d, $d;",
                ];
                let condition = self.random.pick(&conditions).replace('#', &depth.to_string());
                self.fill(&condition)
            }
        };
        let then = self.some(inside);
        let otherwise = if self.random.chance(50) { self.some(inside) } else { Vec::new() };
        Statement::If { depth, condition, masks, then, otherwise }
    }

    fn repeat(&mut self, place: Place) -> Statement {
        let (masks, inside) = self.masks(place);
        let depth = inside.depth;
        let count = match masks {
            Masks::Uniform(_) => format!("and.b32 %n{depth}, %u1, {};", self.random.between(1, 3)),
            _ if self.alone && self.random.chance(60) => {
                format!("and.b32 %n{depth}, %u1, {};", self.random.between(1, 3))
            }
            _ => self.fill(&format!("and.b32 %n{depth}, $r, 3;")),
        };
        let body = self.some(inside);
        Statement::Loop { depth, count, masks, body }
    }

    /// Through shared memory: to another thread of the block, or as a reduction at a barrier.
    fn exchange(&mut self) -> Statement {
        let [factor, shift] = [self.random.between(1, 7), self.random.below(40)];
        let lines: Vec<String> = match self.random.below(6) {
            5 => self.matrices(),
            0 => vec![
                "barrier.sync 0;".into(),
                "mov.u64 %a0, sums;".into(),
                "ld.shared.v2.u32 {$r, $r}, [%a0+8];".into(),
                "bar.sync 0;".into(),
            ],
            1 => vec!["bar.red.popc.u32 $r, 0, $p;".into()],
            2 => vec!["bar.red.and.pred $p, 1, $p;".into(), "bar.red.or.pred $p, 1, !$p;".into()],
            _ => vec![
                "mov.u64 %a0, slots;".into(),
                "mul.wide.u32 %a1, %id, 8;".into(),
                "add.u64 %a1, %a0, %a1;".into(),
                "st.shared.b64 [%a1], $d;".into(),
                "bar.sync 0;".into(),
                format!("mad.lo.u32 %t0, %id, {factor}, {shift};"),
                "rem.u32 %t0, %t0, %size;".into(),
                "mul.wide.u32 %a1, %t0, 8;".into(),
                "add.u64 %a1, %a0, %a1;".into(),
                "ld.shared.b64 $d, [%a1];".into(),
                "bar.sync 0;".into(),
            ],
        };
        self.lines(&lines)
    }

    /// Matrices out of the slots of all threads, where a warp is whole.
    fn matrices(&mut self) -> Vec<String> {
        let trans = self.random.pick(&["", ".trans"]);
        vec![
            "mov.u64 %a0, slots;".into(),
            "mul.wide.u32 %a1, %id, 8;".into(),
            "add.u64 %a1, %a0, %a1;".into(),
            "st.shared.b64 [%a1], $d;".into(),
            "bar.sync 0;".into(),
            "shr.u32 %t0, %size, 1;".into(),
            "rem.u32 %t0, $r, %t0;".into(),
            "mul.wide.u32 %a1, %t0, 16;".into(),
            "add.u64 %a1, %a0, %a1;".into(),
            "setp.ne.u32 %q, %m0, -1;".into(),
            "@%q bra SKIP;".into(),
            format!("ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {{%t0, %t1, %t2, %t3}}, [%a1];"),
            "xor.b32 $r, %t0, %t1;".into(),
            "add.u32 $r, %t2, %t3;".into(),
            "SKIP:".into(),
            "bar.sync 0;".into(),
        ]
    }

    /// A product of what the lanes have in their registers, where the mask is all of a warp.
    fn product(&mut self, mask: &str) -> Vec<String> {
        let products: [&[&str]; 5] = [
            &[
                "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%e0, %e1, %e2, %e3}, {$r, $r, $r, $r}, {$r, $r}, {$f, $f, $f, $f};",
                "add.f32 $f, %e0, %e1;",
                "sub.f32 $f, %e2, %e3;",
            ],
            &[
                "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%e0, %e1, %e2, %e3}, {$r, $r, $r, $r}, {$r, $r}, {$f, $f, $f, $f};",
                "mov.b32 $f, %e1;",
                "add.f32 $f, %e0, %e2;",
            ],
            &[
                "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%t0, %t1}, {$r, $r}, {$r}, {$r, $r};",
                "add.u32 $r, %t0, %t1;",
            ],
            &[
                "mma.sync.aligned.m16n8k16.row.col.s32.s8.u8.s32 {%t0, %t1, %t2, %t3}, {$r, $r}, {$r}, {$r, $r, $r, $r};",
                "xor.b32 $r, %t0, %t3;",
                "sub.u32 $r, %t1, %t2;",
            ],
            &["movmatrix.sync.aligned.m8n8.trans.b16 $r, $r;"],
        ];
        let lines = products[self.random.below(products.len() as u64) as usize].iter().map(|line| (*line).to_owned());
        let head = [format!("setp.ne.u32 %q, {mask}, -1;"), "@%q bra SKIP;".to_owned()];
        head.into_iter().chain(lines).chain(["SKIP:".to_owned()]).collect()
    }

    /// What all lanes of a warp have, added up by shuffles that follow each other; lanes that are missing count as a constant.
    fn sum_of_warp(&mut self, mask: Depth) -> Statement {
        let register = self.fill("$r");
        let mode = self.random.pick(&["bfly", "down"]);
        let source = if mode == "bfly" { "xor.b32" } else { "add.u32" };
        let mut lines = Vec::new();
        for distance in [16, 8, 4, 2, 1].into_iter().take(self.random.between(2, 5) as usize) {
            lines.extend([
                format!("{source} %t0, %lane, {distance};"),
                format!("shfl.sync.{mode}.b32 %t1|%q, {register}, {distance}, 31, -1;"),
                "min.u32 %t0, %t0, 31;".to_owned(),
                format!("shr.u32 %t0, %m{mask}, %t0;"),
                "selp.b32 %t0, %t0, 0, %q;".to_owned(),
                "and.b32 %t0, %t0, 1;".to_owned(),
                "setp.eq.u32 %q, %t0, 1;".to_owned(),
                "selp.b32 %t1, %t1, 77, %q;".to_owned(),
                format!("mad.lo.u32 {register}, {register}, 3, %t1;"),
            ]);
        }
        self.lines(&lines)
    }

    /// The lanes of a mask: a shuffle, a vote, a match, a reduction, or through shared memory.
    fn meeting(&mut self, mask: Depth, uniform: bool) -> Statement {
        let mask = format!("%m{mask}");
        // Where all come by, the mask may as well name all.
        let named = if uniform && self.random.chance(50) { "-1" } else { &mask };
        let lines: Vec<String> = match self.random.below(10) {
            0..=2 => self.shuffle(&mask, named),
            7 if !self.plain => self.product(&mask),
            8 => vec![format!("elect.sync $r|$p, {mask};")],
            3 => {
                let vote = self.random.pick(&["all", "any", "uni"]);
                vec![
                    format!("vote.sync.{vote}.pred $p, $p, {named};"),
                    format!("vote.sync.ballot.b32 $r, !$p, {named};"),
                ]
            }
            4 => vec!["and.b32 %t0, $r, 3;".into(), format!("match.any.sync.b32 $r, %t0, {mask};")],
            5 => vec![format!("match.all.sync.b64 $r|$p, $d, {mask};")],
            6 => {
                let op =
                    self.random.pick(&["add.u32", "min.s32", "max.u32", "xor.b32", "and.b32", "or.b32", "add.s32"]);
                vec![format!("redux.sync.{op} $r, $r, {mask};")]
            }
            _ => vec![
                "mov.u64 %a0, slots;".into(),
                "mul.wide.u32 %a1, %id, 8;".into(),
                "add.u64 %a1, %a0, %a1;".into(),
                format!("bar.warp.sync {mask};"),
                "st.shared.u32 [%a1], $r;".into(),
                format!("bar.warp.sync {mask};"),
                format!("brev.b32 %t0, {mask};"),
                "clz.b32 %t0, %t0;".into(),
                "sub.u32 %t1, %id, %lane;".into(),
                "add.u32 %t0, %t0, %t1;".into(),
                "mul.wide.u32 %a1, %t0, 8;".into(),
                "add.u64 %a1, %a0, %a1;".into(),
                "ld.shared.u32 $r, [%a1];".into(),
                format!("bar.warp.sync {mask};"),
            ],
        };
        self.lines(&lines)
    }

    /// The lane that is read is worked out beside it; where it is not in the mask, a constant is taken.
    fn shuffle(&mut self, mask: &str, named: &str) -> Vec<String> {
        let distance = if self.random.chance(50) { "%t2".to_owned() } else { self.random.below(32).to_string() };
        let (mode, clamp, source) = match self.random.below(6) {
            0 => ("up", 0, "sub.s32 %t0, %lane, %t2;"),
            1 => ("down", 31, "add.s32 %t0, %lane, %t2;"),
            2 => ("bfly", 31, "xor.b32 %t0, %lane, %t2;"),
            3 => ("bfly", 0x181f, "xor.b32 %t0, %lane, %t2;"),
            4 => ("idx", 0x1807, "and.b32 %t0, %t2, 7;\nand.b32 %t3, %lane, 24;\nor.b32 %t0, %t0, %t3;"),
            _ => ("idx", 31, "mov.b32 %t0, %t2;"),
        };
        let set =
            if distance == "%t2" { "and.b32 %t2, $r, 31;".to_owned() } else { format!("mov.b32 %t2, {distance};") };
        vec![
            set,
            source.to_owned(),
            format!("shfl.sync.{mode}.b32 %t1|$p, $r, {distance}, {clamp}, {named};"),
            format!("shr.u32 %t0, {mask}, %t0;"),
            "and.b32 %t0, %t0, 1;".to_owned(),
            "setp.eq.u32 %q, %t0, 1;".to_owned(),
            "selp.b32 $r, %t1, 12345, %q;".to_owned(),
        ]
    }

    fn accumulate(&mut self, place: Place) -> Statement {
        let slot = self.random.below(ACCUMULATORS) as usize;
        let (op, at) = (SUMS[slot], 4 * slot);
        let line = if place.entry && self.random.chance(50) {
            format!("red.global.{op} [%acc+{at}], $r;")
        } else if self.random.chance(50) {
            format!("red.shared.{op} [sums+{at}], $r;")
        } else {
            format!("@$p atom.shared.{op} %t0, [sums+{at}], $r;")
        };
        self.lines(&[line])
    }

    /// At one place for all threads, by operations that read and write in two instructions, and come to the same in any order.
    fn count(&mut self) -> Statement {
        let at = 4 * ACCUMULATORS;
        let counts = [
            format!("red.global.inc.u32 [%acc+{at}], 0x7FFFFFFF;"),
            format!("red.global.add.f32 [%acc+{}], 0f3F800000;", at + 4),
            format!("@$p red.global.add.f64 [%acc+{}], 0d3FF0000000000000;", at + 8),
        ];
        let line = counts[self.random.below(counts.len() as u64) as usize].clone();
        self.lines(&[line])
    }

    fn call(&mut self, place: Place) -> Statement {
        let function = self.random.below(self.functions);
        // A function needs a mask of its own callers.
        let Some(mask) = place.mask else {
            let line = self.instruction();
            return Statement::Lines(vec![line]);
        };
        let line = format!(
            "{{\n.param .b32 result;\n.param .b32 mask;\n.param .b32 x;\n.param .b64 y;\n.param .f32 z;\nst.param.b32 [mask], %m{mask};\n\
             st.param.b32 [x], $r;\nst.param.b64 [y], $d;\nst.param.f32 [z], $f;\ncall (result), function{function}, (mask, x, y, z);\n\
             ld.param.b32 $r, [result];\n}}"
        );
        self.lines(&[line])
    }

    fn sequence(&mut self, from: &[&[&str]]) -> Statement {
        let sequence = from[self.random.below(from.len() as u64) as usize];
        let lines: Vec<String> = sequence.iter().map(|line| (*line).to_owned()).collect();
        self.lines(&lines)
    }

    fn instruction(&mut self) -> String {
        let template = self.random.pick(INSTRUCTIONS);
        match self.random.below(100) {
            0..=9 => self.fill(&format!("@$p {template}")),
            10..=14 => self.fill(&format!("@!$p {template}")),
            _ => self.fill(template),
        }
    }

    fn lines(&mut self, templates: &[String]) -> Statement {
        Statement::Lines(templates.iter().map(|template| self.fill(template)).collect())
    }

    fn fill(&mut self, template: &str) -> String {
        let mut text = String::new();
        let mut letters = template.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '$' => text.push_str(&self.operand(letters.next().unwrap_or('r'))),
                letter => text.push(letter),
            }
        }
        text
    }

    fn operand(&mut self, kind: char) -> String {
        let edge = |random: &mut Random, ty| {
            let edges = edges(ty);
            edges[random.below(edges.len() as u64) as usize]
        };
        match kind {
            'o' if self.random.chance(60) => self.operand('r'),
            'o' | 'i' => (edge(&mut self.random, Type::S32) as u32 as i32).to_string(),
            'j' => format!("{:#x}", edge(&mut self.random, Type::U64)),
            'k' => self.random.below(40).to_string(),
            'e' => format!("0f{:08X}", edge(&mut self.random, Type::F32)),
            'w' => format!("0d{:016X}", edge(&mut self.random, Type::F64)),
            register => {
                let (name, count, _) = POOLS.iter().find(|(name, ..)| *name == register).unwrap();
                format!("%{name}{}", self.random.below(*count as u64))
            }
        }
    }
}
