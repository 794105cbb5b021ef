//! Copies, barriers in memory, and what whole warps do with matrices.

use super::form::{check, read};

/// An address in a register, as it is shown.
fn at(register: &str) -> String {
    format!("Address {{ base: {register}, offset: 0 }}")
}

#[track_caller]
fn check_with_addresses(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let expected = expected.replace("@1", &at("%d1")).replace("@2", &at("%d2")).replace("@3", &at("%r3"));
        check(&[(text, &expected)]);
    }
}

#[test]
fn copies() {
    check_with_addresses(&[
        ("cp.async.ca.shared.global [%d1], [%d2], 8", "AsyncCopy { bytes: 8, to: @1, from: @2 }"),
        (
            "cp.async.cg.shared::cta.global.L2::128B [%r3], [%d2], 16, %r1",
            "AsyncCopy { bytes: 16, to: @3, from: @2, given: %r1 }",
        ),
        (
            "cp.async.ca.shared.global.L2::cache_hint [%d1], [%d2], 4, 2, %d3",
            "AsyncCopy { bytes: 4, to: @1, from: @2, given: Some(Immediate(2)) }",
        ),
        (
            "cp.async.cg.shared.global [%d1], [%d2], 16, %p",
            "AsyncCopy { bytes: 16, to: @1, from: @2, ignored: Some(Predicate { register: %p, negated: false }) }",
        ),
        ("cp.async.cg.shared.global.L2::cache_hint [%d1], [%d2], 16, %d3", "AsyncCopy { bytes: 16, to: @1, from: @2 }"),
        ("cp.async.commit_group", "Hint"),
        ("cp.async.wait_group 2", "Hint"),
        ("cp.async.wait_all", "Hint"),
        ("cp.async.mbarrier.arrive.shared.b64 [%d1]", "Hint"),
        (
            "cp.async.mbarrier.arrive.noinc.b64 [%d1]",
            "MbarrierArrive { space: Generic, address: @1, state: None, count: Immediate(1), drops: false }",
        ),
    ]);
}

#[test]
fn barriers() {
    check_with_addresses(&[
        ("mbarrier.init.shared.b64 [%d1], %r1", "MbarrierInit { space: Shared, address: @1, count: %r1 }"),
        ("mbarrier.inval.b64 [%d1]", "Hint"),
        (
            "mbarrier.arrive.shared::cta.b64 %d3, [%d1]",
            "MbarrierArrive { space: Shared, address: @1, state: %d3, count: Immediate(1), drops: false }",
        ),
        (
            "mbarrier.arrive.noComplete.release.cta.shared.b64 _, [%d1], %r1",
            "MbarrierArrive { space: Shared, address: @1, state: None, count: %r1, drops: false }",
        ),
        (
            "mbarrier.arrive_drop.b64 %d3, [%r3], 7",
            "MbarrierArrive { space: Generic, address: @3, state: %d3, count: Immediate(7), drops: true }",
        ),
        (
            "mbarrier.test_wait.shared.b64 %p, [%d1], %d3",
            "MbarrierTest { space: Shared, address: @1, dst: %p, parity: false, phase: %d3 }",
        ),
        (
            "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p, [%d1], 1, 1000",
            "MbarrierTest { space: Shared, address: @1, dst: %p, parity: true, phase: Immediate(1) }",
        ),
        ("mbarrier.pending_count.b64 %r1, %d3", "MbarrierPending { dst: %r1, state: %d3 }"),
        ("fence.mbarrier_init.release.cluster", "Fence"),
        ("fence.proxy.async.shared::cta", "Fence"),
        ("fence.proxy.async", "Fence"),
        ("membar.proxy.alias", "Fence"),
        ("fence.acquire.cluster", "Fence"),
        ("fence.cta", "Fence"),
        ("elect.sync %r1|%p, -1", "Elect { dst: %r1, leads: %p, mask: Immediate(4294967295) }"),
        ("elect.sync _|%p, %r2", "Elect { dst: None, leads: %p, mask: %r2 }"),
    ]);
}

#[test]
fn matrices() {
    check_with_addresses(&[
        (
            "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r1, %r2}, {%r3, %r4}, {%r5}, {%r6, %r7}",
            "Product { shape: MatrixShape { rows: 16, depth: 8 }, factors: [F16, F16], sum: F16, dst: [%r1, %r2], a: [%r3, %r4], b: [%r5], c: [%r6, %r7] }",
        ),
        (
            "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, {%f1, %f2, 0f00000000, %f4}",
            "Product { shape: MatrixShape { rows: 16, depth: 8 }, factors: [Tf32, Tf32], sum: F32, dst: [%f1, %f2, %f3, %f4], a: [%r1, %r2, %r3, %r4], b: [%r5, %r6], c: [%f1, %f2, Immediate(0), %f4] }",
        ),
        (
            "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64.rn {%g1, %g2}, {%g3}, %g4, {%g1, %g2}",
            "Product { shape: MatrixShape { rows: 8, depth: 4 }, factors: [F64, F64], sum: F64, dst: [%g1, %g2], a: [%g3], b: [%g4], c: [%g1, %g2] }",
        ),
        (
            "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r1, %r2}, [%d1]",
            "LoadMatrices { space: Shared, transposed: true, dst: [%r1, %r2], address: @1 }",
        ),
        (
            "ldmatrix.sync.aligned.m8n8.x1.b16 %r1, [%r3]",
            "LoadMatrices { space: Generic, transposed: false, dst: [%r1], address: @3 }",
        ),
        (
            "stmatrix.sync.aligned.m8n8.x2.shared::cta.b16 [%d1], {%r1, %r2}",
            "StoreMatrices { space: Shared, transposed: false, address: @1, src: [%r1, %r2] }",
        ),
        ("movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2", "TransposeMatrix { dst: %r1, a: %r2 }"),
    ]);
}

const HINT: &str = "; a module that only a GPU's driver has to understand can be given to `module.cuda-only`";

#[test]
fn what_is_wrong() {
    let cases = [
        ("cp.async.ca.shared.global [%d1], [%d2], 12", "column 41: 4, 8 or 16 bytes can be copied so, not 12"),
        ("cp.async.cg.shared.global [%d1], [%d2], 8", "column 41: 16 bytes can be copied so, not 8"),
        ("cp.async.cg.shared.global [%d1], [%d2], %r1", "column 41: the number of bytes is a number from 4 to 16"),
        (
            "cp.async.ca.global.shared [%d1]",
            "column 1: `cp.async.ca.global.shared` lacks an operand: an address in brackets",
        ),
        ("cp.async.shared.global [%d1], [%d2], 8", "column 1: `cp.async.shared.global` needs `.ca` or `.cg`"),
        (
            "cp.async.ca.shared.global [table], [%d2], 8",
            "column 27: this variable lies in another space than `cp.async.ca.shared.global` says",
        ),
        (
            "cp.async.bulk.commit_group",
            "column 1: `cp.async.bulk.commit_group` is not an instruction that can be translated#",
        ),
        ("mbarrier.b64 [%d1]", "column 1: `mbarrier.b64` needs what is done, such as `.arrive`"),
        ("mbarrier.init.shared.b64 [%d1], 0", "column 33: a phase takes 1 to 1048575 arrivals, not 0"),
        (
            "mbarrier.arrive.expect_tx.shared.b64 %d3, [%d1], 8",
            "column 1: `mbarrier.arrive.expect_tx.shared.b64` cannot be translated: `.expect_tx` is unknown or out of place in it#",
        ),
        (
            "mbarrier.complete_tx.shared.b64 [%d1], 8",
            "column 1: `mbarrier.complete_tx.shared.b64` needs what is done, such as `.arrive`",
        ),
        (
            "mbarrier.arrive.shared::cluster.b64 _, [%d1]",
            "column 1: `mbarrier.arrive.shared::cluster.b64` cannot be translated: `.shared::cluster` is unknown or out of place in it#",
        ),
        ("elect.sync %r1, -1", "column 1: `elect.sync` needs a predicate behind `|`, which is what it is for"),
        ("fence.proxy.tensormap", "column 1: `fence.proxy.tensormap` needs `.alias` or `.async`"),
        (
            "mma.sync.m16n8k8.row.col.f16.f16.f16.f16 {%r1, %r2}, {%r3, %r4}, {%r5}, {%r6, %r7}",
            "column 1: `mma.sync.m16n8k8.row.col.f16.f16.f16.f16` needs `.sync.aligned`",
        ),
        (
            "mma.sync.aligned.m16n16k16.row.col.f16.f16 {%r1}",
            "column 1: `mma.sync.aligned.m16n16k16.row.col.f16.f16` needs a shape that can be translated, such as `.m16n8k16`",
        ),
        (
            "mma.sync.aligned.m16n8k8.col.col.f16.f16.f16.f16 {%r1, %r2}, {%r3, %r4}, {%r5}, {%r6, %r7}",
            "column 1: `mma.sync.aligned.m16n8k8.col.col.f16.f16.f16.f16` needs `.row.col`",
        ),
        (
            "mma.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32 {%f1}",
            "column 1: `mma.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32` combines a shape and types that do not go together",
        ),
        (
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2}, {%r1}, {%r3}, {%r4}",
            "column 51: 4 elements are needed, not 2",
        ),
        (
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %g1}, {%r1}, {%r3}, {%r4}",
            "column 67: `%g1` is `.f64`, where",
        ),
        (
            "ldmatrix.sync.aligned.m8n8.x3.b16 {%r1}, [%d1]",
            "column 1: `ldmatrix.sync.aligned.m8n8.x3.b16` needs `.x1`, `.x2` or `.x4`",
        ),
        (
            "ldmatrix.sync.aligned.m16n16.x1.trans.b8 {%r1, %r2}, [%d1]",
            "column 1: `ldmatrix.sync.aligned.m16n16.x1.trans.b8` needs `.m8n8`",
        ),
        (
            "lop3.or.b32 %r1, %r2, %r3, %r4, 1, %p",
            "column 1: `lop3.or.b32` needs a predicate behind `|`, which its operation is for",
        ),
        (".reg .u16x2 %s", "column 6: `.u16x2` is no type that a register can have"),
    ];
    for (text, expected) in cases {
        let message = read(text).err().map_or_else(|| panic!("{text}: accepted"), |error| error.to_string());
        let expected = format!("line 26, {}", expected.replace('#', HINT));
        assert!(message.starts_with(&expected), "{text}\n  {message}\n  {expected}");
    }
}
