//! Moves, addresses, memory, calls, and what threads do together.

use super::form::check;

#[test]
fn forms() {
    check(&[
        ("mov.u32 %r1, %laneid", "Mov { ty: U32, dst: %r1, src: Special(Lane) }"),
        ("mov.u32 %r1, WARP_SZ", "Mov { ty: U32, dst: %r1, src: Immediate(32) }"),
        ("mov.u64 %d1, %clock64", "Mov { ty: U64, dst: %d1, src: Special(Clock) }"),
        ("mov.b32 %r1, %f1", "Mov { ty: B32, dst: %r1, src: %f1 }"),
        ("mov.f32 %f1, %r1", "Mov { ty: F32, dst: %f1, src: %r1 }"),
        ("mov.pred %p, %q", "Mov { ty: Pred, dst: %p, src: %q }"),
        ("mov.u64 %d1, table+8", "Mov { ty: U64, dst: %d1, src: Address(Module(0), 8) }"),
        ("mov.u32 %r1, tile", "Mov { ty: U32, dst: %r1, src: Address(Module(2), 0) }"),
        ("mov.b64 %d1, input", "Mov { ty: B64, dst: %d1, src: Address(Parameter(0), 0) }"),
        ("mov.u64 %d1, helper", "Mov { ty: U64, dst: %d1, src: Address(Code(FunctionId(0)), 0) }"),
        ("mov.b32 %r1, {%h1, 7}", "Pack { ty: B32, dst: %r1, parts: [%h1, Immediate(7)] }"),
        ("mov.b64 {%r1, _}, %d1", "Unpack { ty: B64, dst: [%r1, None], src: %d1 }"),
        ("mov.b64 {%h1, %h2, %h3, %h4}, %g1", "Unpack { ty: B64, dst: [%h1, %h2, %h3, %h4], src: %g1 }"),
        ("cvta.to.global.u64 %d1, %d2", "FromGeneric { space: Global, ty: U64, dst: %d1, src: %d2 }"),
        ("cvta.shared.u64 %d1, tile", "ToGeneric { space: Shared, ty: U64, dst: %d1, src: Address(Module(2), 0) }"),
        ("cvta.param.u64 %d1, input", "ToGeneric { space: Param, ty: U64, dst: %d1, src: Address(Parameter(0), 0) }"),
        ("isspacep.shared %p, %d1", "IsSpace { space: Shared, dst: %p, src: %d1 }"),
        ("ld.u8 %d1, [%d2]", "Load { space: Generic, ty: U8, dst: [%d1], address: Address { base: %d2, offset: 0 } }"),
        (
            "ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%f1, _, %f2, %f3}, [%d1+-16]",
            "Load { space: Global, ty: F32, dst: [%f1, None, %f2, %f3], address: Address { base: %d1, offset: -16 } }",
        ),
        (
            "ld.volatile.shared.s16 %r1, [tile+2]",
            "Load { space: Shared, order: Strong, ty: S16, dst: [%r1], address: Address { base: Address(Module(2), 0), offset: 2 } }",
        ),
        (
            "ld.acquire.gpu.global.u32 %r1, [%d1]",
            "Load { space: Global, order: Strong, ty: U32, dst: [%r1], address: Address { base: %d1, offset: 0 } }",
        ),
        (
            "ld.const.f32 %f1, [%d1+4]",
            "Load { space: Const, ty: F32, dst: [%f1], address: Address { base: %d1, offset: 4 } }",
        ),
        (
            "ld.param.u64 %d1, [input]",
            "Load { space: Param, ty: U64, dst: [%d1], address: Address { base: Address(Parameter(0), 0), offset: 0 } }",
        ),
        (
            "ld.param.f32 %f1, [input+4]",
            "Load { space: Param, ty: F32, dst: [%f1], address: Address { base: Address(Parameter(0), 0), offset: 4 } }",
        ),
        (
            "ld.local.b64 %d1, [depot+8]",
            "Load { space: Local, ty: B64, dst: [%d1], address: Address { base: Address(Function(0), 0), offset: 8 } }",
        ),
        (
            "ld.u32 %r1, [table]",
            "Load { space: Global, ty: U32, dst: [%r1], address: Address { base: Address(Module(0), 0), offset: 0 } }",
        ),
        (
            "ld.shared.u32 %r1, [%r2]",
            "Load { space: Shared, ty: U32, dst: [%r1], address: Address { base: %r2, offset: 0 } }",
        ),
        (
            "ld.global.cs.u32 %r1, [4096]",
            "Load { space: Global, ty: U32, dst: [%r1], address: Address { base: Immediate(4096), offset: 0 } }",
        ),
        (
            "ld.global.L2::cache_hint.b32 %r1, [%d1], %d2",
            "Load { space: Global, ty: B32, dst: [%r1], address: Address { base: %d1, offset: 0 } }",
        ),
        (
            "ldu.global.v2.u64 {%d1, %d2}, [%d3]",
            "Load { space: Global, ty: U64, dst: [%d1, %d2], address: Address { base: %d3, offset: 0 } }",
        ),
        (
            "st.global.wt.u8 [%d1], %r1",
            "Store { space: Global, ty: U8, address: Address { base: %d1, offset: 0 }, src: [%r1] }",
        ),
        (
            "st.relaxed.sys.global.v2.f64 [%d1+8], {%g1, 0d0000000000000000}",
            "Store { space: Global, order: Strong, ty: F64, address: Address { base: %d1, offset: 8 }, src: [%g1, Immediate(0)] }",
        ),
        (
            "st.shared.b32 [%r1-4], %f1",
            "Store { space: Shared, ty: B32, address: Address { base: %r1, offset: -4 }, src: [%f1] }",
        ),
        (
            "st.param.b32 [argument], 5",
            "Store { space: Param, ty: B32, address: Address { base: Address(Function(1), 0), offset: 0 }, src: [Immediate(5)] }",
        ),
        (
            "atom.global.add.u32 %r1, [%d1], 1",
            "Atomic { op: Add, space: Global, ty: U32, dst: %r1, address: Address { base: %d1, offset: 0 }, b: Immediate(1), c: None }",
        ),
        (
            "atom.acq_rel.gpu.shared.cas.b64 %d1, [tile], %d2, %d3",
            "Atomic { op: Cas, space: Shared, ty: B64, dst: %d1, address: Address { base: Address(Module(2), 0), offset: 0 }, b: %d2, c: %d3 }",
        ),
        (
            "atom.add.noftz.f16x2 %r1, [%d1], %r2",
            "Atomic { op: Add, space: Generic, ty: F16x2, dst: %r1, address: Address { base: %d1, offset: 0 }, b: %r2, c: None }",
        ),
        (
            "atom.shared::cta.inc.u32 _, [%r1], 9",
            "Atomic { op: Inc, space: Shared, ty: U32, dst: None, address: Address { base: %r1, offset: 0 }, b: Immediate(9), c: None }",
        ),
        (
            "atom.global.exch.b32 %f1, [%d1+4], %f2",
            "Atomic { op: Exch, space: Global, ty: B32, dst: %f1, address: Address { base: %d1, offset: 4 }, b: %f2, c: None }",
        ),
        (
            "red.global.max.s64 [%d1], -1",
            "Atomic { op: Max, space: Global, ty: S64, dst: None, address: Address { base: %d1, offset: 0 }, b: Immediate(18446744073709551615), c: None }",
        ),
        (
            "red.relaxed.cta.global.add.f64 [table], %g1",
            "Atomic { op: Add, space: Global, ty: F64, dst: None, address: Address { base: Address(Module(0), 0), offset: 0 }, b: %g1, c: None }",
        ),
        ("fence.sc.cta", "Fence"),
        ("fence.acq_rel.gpu", "Fence"),
        ("membar.gl", "Fence"),
        ("prefetch.global.L2 [%d1]", "Hint"),
        ("discard.global.L2 [%d1], 128", "Hint"),
        ("createpolicy.fractional.L2::evict_last.b64 %d1, 1.0", "Mov { ty: B64, dst: %d1, src: Immediate(0) }"),
        ("bra end", "Branch { target: LabelId(1), uniform: false }"),
        ("bra.uni end", "Branch { target: LabelId(1), uniform: true }"),
        ("brx.idx %r1, targets", "BranchTable { index: %r1, targets: [LabelId(0), LabelId(1)] }"),
        (
            "call (result), helper, (argument, %r1)",
            "Call { callee: Direct(FunctionId(0)), returns: [Address(Function(2), 0)], arguments: [Address(Function(1), 0), %r1] }",
        ),
        (
            "call.uni (result), %d1, (argument, 3), prototype",
            "Call { callee: Indirect { target: %d1, candidates: [FunctionId(0)] }, returns: [Address(Function(2), 0)], arguments: [Address(Function(1), 0), Immediate(3)] }",
        ),
        (
            "call (result), %d1, (argument, 3), callees",
            "Call { callee: Indirect { target: %d1, candidates: [FunctionId(0)] }, returns: [Address(Function(2), 0)], arguments: [Address(Function(1), 0), Immediate(3)] }",
        ),
        ("ret.uni", "Return"),
        ("exit", "Exit"),
        ("trap", "Trap"),
        ("nanosleep.u32 100", "Yield"),
        ("griddepcontrol.wait", "Hint"),
        ("bar.sync 0", "Barrier { barrier: Immediate(0), threads: None, reduction: None }"),
        ("bar.sync %r1, 64", "Barrier { barrier: %r1, threads: Some(Immediate(64)), reduction: None }"),
        ("barrier.sync.aligned 1", "Barrier { barrier: Immediate(1), threads: None, reduction: None }"),
        ("barrier.cta.sync 3, %r1", "Barrier { barrier: Immediate(3), threads: %r1, reduction: None }"),
        ("bar.arrive 2, 96", "BarrierArrive { barrier: Immediate(2), threads: Immediate(96) }"),
        (
            "bar.red.popc.u32 %r1, 0, !%p",
            "Barrier { barrier: Immediate(0), threads: None, reduction: Some((Count, %r1, Predicate { register: %p, negated: true })) }",
        ),
        (
            "bar.red.and.pred %p, 1, 64, %q",
            "Barrier { barrier: Immediate(1), threads: Some(Immediate(64)), reduction: Some((All, %p, Predicate { register: %q, negated: false })) }",
        ),
        ("bar.warp.sync 0xffffffff", "WarpBarrier { mask: Immediate(4294967295) }"),
        (
            "shfl.sync.bfly.b32 %r1|%p, %r2, 16, 31, -1",
            "Shuffle { mode: Bfly, dst: %r1, valid: %p, a: %r2, b: Immediate(16), c: Immediate(31), mask: Immediate(4294967295) }",
        ),
        (
            "shfl.sync.down.b32 %f1, %f2, %r1, 0x1f, %r2",
            "Shuffle { mode: Down, dst: %f1, valid: None, a: %f2, b: %r1, c: Immediate(31), mask: %r2 }",
        ),
        (
            "shfl.idx.b32 %r1, %r2, 0, 31",
            "Shuffle { mode: Idx, dst: %r1, valid: None, a: %r2, b: Immediate(0), c: Immediate(31), mask: Immediate(4294967295) }",
        ),
        (
            "vote.sync.ballot.b32 %r1, %p, 0xffffffff",
            "Vote { vote: Ballot, dst: %r1, predicate: Predicate { register: %p, negated: false }, mask: Immediate(4294967295) }",
        ),
        (
            "vote.sync.any.pred %p, !%q, %r1",
            "Vote { vote: Any, dst: %p, predicate: Predicate { register: %q, negated: true }, mask: %r1 }",
        ),
        (
            "vote.all.pred %p, %q",
            "Vote { vote: All, dst: %p, predicate: Predicate { register: %q, negated: false }, mask: Immediate(4294967295) }",
        ),
        ("match.any.sync.b64 %r1, %d1, %r2", "Match { all: false, ty: B64, dst: %r1, valid: None, a: %d1, mask: %r2 }"),
        (
            "match.all.sync.b32 %r1|%p, %r2, -1",
            "Match { all: true, ty: B32, dst: %r1, valid: %p, a: %r2, mask: Immediate(4294967295) }",
        ),
        (
            "redux.sync.add.s32 %r1, %r2, -1",
            "Redux { op: Add, ty: S32, dst: %r1, a: %r2, mask: Immediate(4294967295) }",
        ),
        ("redux.sync.xor.b32 %r1, %r2, %r3", "Redux { op: Xor, ty: B32, dst: %r1, a: %r2, mask: %r3 }"),
        ("activemask.b32 %r1", "ActiveMask { dst: %r1 }"),
        (
            "@!%p st.global.f32 [%d1], %f1",
            "Store { space: Global, ty: F32, address: Address { base: %d1, offset: 0 }, src: [%f1] } if Predicate { register: %p, negated: true }",
        ),
    ]);
}
