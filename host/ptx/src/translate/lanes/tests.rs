//! Shapes of what real instructions become.

use super::{Shape, shapes};
use crate::kernel::{Obstacle, Options};
use crate::module::FunctionId;
use crate::translate::build::program::Workshop;
use crate::translate::graph::Graph;
use crate::translate::ir::{Function, Inst, Terminator, Value};
use crate::translate::uniform::uniform;

struct Found {
    function: Function,
    shapes: Result<Vec<Shape>, Obstacle>,
}

/// A kernel with a pointer `%d0`, a number `%r0` and the thread's place `%r1`, which does this.
fn of(code: &str) -> Found {
    let text = format!(
        ".version 8.2\n.target sm_75\n.address_size 64\n.entry k(.param .u64 p, .param .u32 n) {{\n.reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<9>; .reg .pred %p<9>;\n\
         ld.param.u64 %d0, [p]; ld.param.u32 %r0, [n]; mov.u32 %r1, %tid.x;\n{code}\nret; }}\n"
    );
    let module = crate::parse::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let options = Options { memory_bytes: 1 << 20, wide: false, canonical_nans: false, vectors: true };
    let built = Workshop::build(&module, FunctionId(0), &options).unwrap_or_else(|error| panic!("{error}"));
    let function = built.program.body;
    let pure: Vec<bool> = built.program.functions.iter().map(|function| function.pure).collect();
    let uniform = uniform(&function, |_| false);
    let shapes = shapes(&function, &Graph::of(&function), &uniform, &pure).map(|found| found.shapes);
    Found { function, shapes }
}

impl Found {
    /// The shapes of the address and the value of each store, in order.
    fn stores(&self) -> Vec<(Shape, Shape)> {
        let shapes = self.shapes.as_ref().unwrap_or_else(|obstacle| panic!("{obstacle:?}"));
        let shape = |value: Value| shapes[value.0 as usize];
        let insts = self.function.blocks.iter().flat_map(|block| &block.insts);
        let stores = insts.filter_map(|value| match self.function.inst(*value) {
            Inst::Store(_, address, stored) => Some((shape(*address), shape(*stored))),
            _ => None,
        });
        stores.collect()
    }

    /// Those of the conditions of branches.
    fn conditions(&self) -> Vec<Shape> {
        let shapes = self.shapes.as_ref().unwrap_or_else(|obstacle| panic!("{obstacle:?}"));
        let conditions = self.function.blocks.iter().filter_map(|block| match &block.terminator {
            Terminator::Branch(condition, ..) => Some(shapes[condition.0 as usize]),
            _ => None,
        });
        conditions.collect()
    }
}

/// The address of the thread's element of four bytes in `%d1`.
const ELEMENT: &str = "mad.lo.s32 %r2, %r0, 8, %r1; mul.wide.s32 %d1, %r2, 4; add.s64 %d1, %d0, %d1;";

#[test]
fn elements_are_lines() {
    let code = format!("{ELEMENT} ld.global.f32 %f0, [%d0]; st.global.f32 [%d1], %f0; st.global.f32 [%d1+4], %f1;");
    assert_eq!(of(&code).stores(), [(Shape::Line(4), Shape::SAME), (Shape::Line(4), Shape::SAME)]);
    let backwards = "mul.lo.s32 %r2, %r1, -2; shl.b32 %r2, %r2, 1; sub.s32 %r2, %r0, %r2; st.global.u32 [%d0], %r2;";
    assert_eq!(of(backwards).stores(), [(Shape::SAME, Shape::Line(4))]);
    let narrow =
        "cvt.u64.u32 %d1, %r1; mul.lo.s64 %d1, %d1, 0x100000001; cvt.u32.u64 %r2, %d1; st.global.u32 [%d0], %r2;";
    assert_eq!(of(narrow).stores(), [(Shape::SAME, Shape::Line(1))]);
}

#[test]
fn what_is_no_line_is_held_by_its_width() {
    let code = "mul.lo.s32 %r2, %r1, %r0; mul.wide.s32 %d1, %r2, 4; add.s64 %d1, %d0, %d1; st.global.u32 [%d1], %r2;";
    assert_eq!(of(code).stores(), [(Shape::Pair, Shape::Words)]);
    let loaded = format!("{ELEMENT} ld.global.u32 %r3, [%d1]; and.b32 %r3, %r3, 7; st.global.u32 [%d0], %r3;");
    assert_eq!(of(&loaded).stores(), [(Shape::SAME, Shape::Words)]);
}

#[test]
fn a_line_is_extended_before_the_first_store_only() {
    let extended = "cvt.s64.s32 %d1, %r1; st.global.u64 [%d0], %d1; cvt.u64.u32 %d2, %r1; st.global.u64 [%d0], %d2;";
    assert_eq!(of(extended).stores(), [(Shape::SAME, Shape::Line(1)), (Shape::SAME, Shape::Pair)]);
}

#[test]
fn counters_of_loops_are_the_same_and_sums_vary() {
    let code = format!(
        "{ELEMENT} mov.u32 %r3, 0; mov.f32 %f0, 0f00000000;\nAGAIN: ld.global.f32 %f1, [%d1]; add.f32 %f0, %f0, %f1; add.s64 %d1, %d1, 4096;\n\
         add.u32 %r3, %r3, 1; setp.lt.u32 %p0, %r3, %r0; @%p0 bra AGAIN;\nst.global.f32 [%d1], %f0;"
    );
    let found = of(&code);
    assert_eq!(found.conditions(), [Shape::SAME]);
    assert_eq!(found.stores(), [(Shape::Line(4), Shape::Words)]);
}

#[test]
fn logic_of_comparisons_is_a_mask() {
    let code = "setp.ge.s32 %p0, %r1, %r0; setp.eq.u32 %p1, %r0, 7; or.pred %p2, %p0, %p1; not.pred %p3, %p2; @%p3 bra END; st.global.u32 [%d0], 1;\nEND:";
    assert!(of(code).conditions().contains(&Shape::Mask));
}

#[test]
fn a_group_begins_at_a_multiple_of_four() {
    let stored = |code: &str| of(&format!("{ELEMENT} {code} st.global.u32 [%d1], %r3;")).stores()[0].1;
    for line in [
        "and.b32 %r3, %r1, 31;",
        "and.b32 %r3, %r1, 7; add.u32 %r3, %r3, 5;",
        "shl.b32 %r3, %r1, 2; and.b32 %r3, %r3, 60;",
    ] {
        assert!(matches!(stored(line), Shape::Line(stride) if stride > 0), "{line}");
    }
    for same in [
        "shr.u32 %r3, %r1, 5;",
        "shr.s32 %r3, %r1, 2;",
        "and.b32 %r3, %r1, -4;",
        "add.u32 %r3, %r1, 32; shr.u32 %r3, %r3, 2;",
    ] {
        assert_eq!(stored(same), Shape::SAME, "{same}");
    }
    for words in [
        "and.b32 %r3, %r1, 1;",
        "shr.u32 %r3, %r1, 1;",
        "add.u32 %r3, %r1, 1; and.b32 %r3, %r3, 31;",
        "add.u32 %r3, %r1, %r0; shr.u32 %r3, %r3, 5;",
    ] {
        assert_eq!(stored(words), Shape::Words, "{words}");
    }
}

#[test]
fn obstacles_are_told() {
    let obstacle = |code: &str| of(code).shapes.err();
    let line = |obstacle: Option<Obstacle>| obstacle.and_then(|obstacle| obstacle.place()).map(|place| place.line);
    let store = "st.global.u32 [%d0], 1;";
    let branch = "setp.lt.u32 %p0, %r1, 3;\n@%p0 bra END;\nst.global.u32 [%d0], 2;\nEND:";
    assert_eq!(obstacle(branch), None);
    let diverges = obstacle(&format!("{store}\n{branch}"));
    assert!(matches!(diverges, Some(Obstacle::Diverges(_))), "{diverges:?}");
    assert_eq!(line(diverges), Some(9));
    // A loop comes by its stores again.
    let looped = format!("AGAIN: add.u32 %r1, %r1, 32; {store} setp.lt.u32 %p0, %r1, %r0; @%p0 bra AGAIN;");
    assert!(matches!(obstacle(&looped), Some(Obstacle::Diverges(_))));
    let adds = obstacle(&format!("{store}\natom.global.add.u32 %r2, [%d0], 1;"));
    assert!(matches!(adds, Some(Obstacle::Atomics(_))) && line(adds) == Some(8), "{adds:?}");
    let waits = obstacle(&format!("{store}\n{store}\nbar.sync 0;"));
    assert!(matches!(waits, Some(Obstacle::Waits(_))) && line(waits) == Some(9), "{waits:?}");
    assert_eq!(obstacle(&"add.u32 %r0, %r0, %r1; st.global.u32 [%d0], %r0;".repeat(1000)), Some(Obstacle::TooLarge));
}
