//! What becomes of branches.

use super::{convert_one, join_chains};
use crate::kernel::Options;
use crate::module::FunctionId;
use crate::translate::build::program::Workshop;
use crate::translate::graph::Graph;
use crate::translate::ir::{Inst, Terminator};

/// How many branches and selections are left of a kernel with a number `%r0` and the thread's place `%r1`.
fn left(code: &str) -> (usize, usize) {
    let text = format!(
        ".version 8.2\n.target sm_75\n.address_size 64\n.entry k(.param .u32 n) {{\n.reg .b32 %r<9>; .reg .f32 %f<9>; .reg .pred %p<9>;\n\
         ld.param.u32 %r0, [n]; mov.u32 %r1, %tid.x; setp.lt.u32 %p0, %r1, %r0; setp.lt.u32 %p1, %r1, 9;\n{code}\nst.global.u32 [64], %r2; ret; }}\n"
    );
    let module = crate::parse::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    let options = Options { memory_bytes: 1 << 20, wide: false, canonical_nans: false, vectors: true };
    let built = Workshop::build(&module, FunctionId(0), &options).unwrap_or_else(|error| panic!("{error}"));
    let mut function = built.program.body;
    loop {
        join_chains(&mut function);
        let graph = Graph::of(&function);
        if !convert_one(&mut function, &graph, |_| true) {
            let blocks = || graph.order.iter().map(|block| &function.blocks[*block as usize]);
            let branches = blocks().filter(|block| matches!(block.terminator, Terminator::Branch(..))).count();
            let insts = blocks().flat_map(|block| &block.insts);
            return (branches, insts.filter(|value| matches!(function.inst(**value), Inst::Select(..))).count());
        }
    }
}

#[test]
fn both_sides_or_one() {
    assert_eq!(left("@%p0 bra YES; mov.u32 %r2, 1; bra END;\nYES: add.u32 %r2, %r1, 5;\nEND:"), (0, 1));
    assert_eq!(
        left("mov.u32 %r2, 1; @%p0 bra END; add.u32 %r2, %r1, 5; add.u32 %r3, %r2, 5;\nEND: add.u32 %r2, %r2, %r3;"),
        (0, 2)
    );
}

#[test]
fn one_inside_the_other() {
    let code = "mov.u32 %r2, 1; @%p0 bra END; mov.u32 %r2, %r1; @%p1 bra INNER; add.u32 %r2, %r1, 5;\nINNER: add.u32 %r2, %r2, 7;\nEND:";
    assert_eq!(left(code), (0, 2));
}

#[test]
fn what_may_be_noticed_stays_behind_its_branch() {
    for code in ["ld.global.u32 %r2, [64];", "st.global.u32 [64], 1;", "div.u32 %r2, %r1, %r0;", "trap;"] {
        assert!(left(&format!("@%p0 bra END; {code}\nEND:")).0 > 0, "{code}");
    }
    let long = "mad.lo.u32 %r2, %r2, %r1, 5;".repeat(80);
    assert_eq!(left(&format!("@%p0 bra END; {long}\nEND:")).0, 1);
}

#[test]
fn loops_stay() {
    assert_eq!(left("AGAIN: add.u32 %r2, %r2, 3; setp.lt.u32 %p2, %r2, %r0; @%p2 bra AGAIN;").0, 1);
}
