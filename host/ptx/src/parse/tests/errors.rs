//! What is said about texts that are wrong.

use super::form::{kernel, read};
use crate::parse::parse;

/// Instructions in the kernel of `form`, where they stand in line 26.
#[test]
fn instructions() {
    let cases = [
        (
            "wgmma.fence.sync.aligned",
            "line 26, column 1: `wgmma.fence.sync.aligned` is not an instruction that can be translated; a module that only a GPU's driver has to understand can be given to `module.cuda-only`",
        ),
        (
            "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [table, {%f1, %f2}]",
            "line 26, column 1: `tex.2d.v4.f32.f32` is not an instruction that can be translated; a module that only a GPU's driver has to understand can be given to `module.cuda-only`",
        ),
        (
            "frobnicate %r1",
            "line 26, column 1: `frobnicate` is not an instruction that can be translated; a module that only a GPU's driver has to understand can be given to `module.cuda-only`",
        ),
        (
            "sub.u16x2 %r1, %r2, %r3",
            "line 26, column 1: `sub.u16x2` has no form for the type `.u16x2`; a module that only a GPU's driver has to understand can be given to `module.cuda-only`",
        ),
        (
            "add.u8 %h1, %h2, %h3",
            "line 26, column 1: `add.u8` has no form for the type `.u8`; a module that only a GPU's driver has to understand can be given to `module.cuda-only`",
        ),
        ("add %r1, %r2, %r3", "line 26, column 1: `add` needs a type"),
        (
            "add.s32.frob %r1, %r2, %r3",
            "line 26, column 1: `add.s32.frob` cannot be translated: `.frob` is unknown or out of place in it; a module that only a GPU's driver has to understand can be given to `module.cuda-only`",
        ),
        (
            "add.rn.s32 %r1, %r2, %r3",
            "line 26, column 1: `add.rn.s32` cannot be translated: `.rn` is unknown or out of place in it; a module that only a GPU's driver has to understand can be given to `module.cuda-only`",
        ),
        (
            "add.sat.u32 %r1, %r2, %r3",
            "line 26, column 1: `add.sat.u32` cannot be translated: `.sat` is unknown or out of place in it; a module that only a GPU's driver has to understand can be given to `module.cuda-only`",
        ),
        (
            "min.xorsign.abs.f32 %f1, %f2, %f3",
            "line 26, column 1: `min.xorsign.abs.f32` cannot be translated: `.xorsign` is unknown or out of place in it; a module that only a GPU's driver has to understand can be given to `module.cuda-only`",
        ),
        ("mul.s32 %r1, %r2, %r3", "line 26, column 1: `mul.s32` needs `.lo`, `.hi` or `.wide`"),
        (
            "mul.wide.u64 %d1, %d2, %d3",
            "line 26, column 1: `mul.wide.u64` has no form for the type `.u64`; a module that only a GPU's driver has to understand can be given to `module.cuda-only`",
        ),
        ("mad.wide.cc.u32 %d1, %r1, %r2, %d2", "line 26, column 1: `mad.wide.cc.u32` has no carry in its form `.wide`"),
        ("fma.f32 %f1, %f2, %f3, %f4", "line 26, column 1: `fma.f32` needs a rounding such as `.rn`"),
        ("div.f32 %f1, %f2, %f3", "line 26, column 1: `div.f32` needs a rounding such as `.rn`"),
        ("sqrt.approx.f64 %g1, %g2", "line 26, column 1: `sqrt.approx.f64` needs a rounding such as `.rn` for `.f64`"),
        (
            "add.f32 %f1, %f2, 1",
            "line 26, column 19: an `.f32` is written with a decimal point or as its bits, `0f3F800000`",
        ),
        ("add.f16 %h1, %h2, 1.0", "line 26, column 19: a 16-bit float is written as its bits, `0x3C00`"),
        ("add.s32 %r1, %r2, 1.5", "line 26, column 19: a floating-point number has no meaning for this type"),
        ("add.s32 %r1, %r2", "line 26, column 1: `add.s32` lacks an operand: a value"),
        ("add.s32 %r1, %r2, %r3, %r4", "line 26, column 24: `add.s32` has more operands than it takes"),
        ("add.s32 %r1, %d2, %r3", "line 26, column 14: `%d2` is `.b64`, where `add.s32` needs `.s32`"),
        ("add.s32 %f1, %r2, %r3", "line 26, column 9: `%f1` is `.f32`, where `add.s32` needs `.s32`"),
        ("add.f32 %f1, %f2, %g1", "line 26, column 19: `%g1` is `.f64`, where `add.f32` needs `.f32`"),
        ("add.s32 %r9, %r2, %r3", "line 26, column 9: `%r9` is not declared here"),
        ("add.s32 %r01, %r2, %r3", "line 26, column 9: `%r01` is not declared here"),
        ("add.s32 5, %r2, %r3", "line 26, column 9: the result has to go to a register"),
        ("add.s32 _, %r2, %r3", "line 26, column 9: the result has to go to a register here, not `_`"),
        ("add.s32 %r1, !%p, %r3", "line 26, column 14: `!` has no meaning for this operand"),
        ("add.s32 %r1, [%r2], %r3", "line 26, column 14: a register or a number is needed"),
        ("add.s32 %r1, %p, 1", "line 26, column 14: `%p` is `.pred`, where `add.s32` needs `.s32`"),
        ("add.s32 %r1, %r2+4, 1", "line 26, column 14: an offset can be added to a variable, not to a register"),
        (
            "add.s32 %r1, %tid.w, 1",
            "line 26, column 14: `%tid.w` is not declared here, and no special register that is supported",
        ),
        (
            "add.s32 %r1, %envreg3, 1",
            "line 26, column 14: `%envreg3` is not declared here, and no special register that is supported",
        ),
        ("add.u64 %d1, %tid.x, 1", "line 26, column 14: `%tid` is `.u32`, where `add.u64` needs `.u64`"),
        ("add.s16 %h1, table, 1", "line 26, column 14: the address of `table` does not fit in `.s16`"),
        ("mov.u16 %h1, 99999999999999999999", "line 26, column 14: `99999999999999999999` does not fit in 64 bits"),
        ("mov.u32 %r1, 0x", "line 26, column 14: `0x` is not an integer of base 16"),
        ("mov.u32 %r1, 0xFFg", "line 26, column 14: `0xFFg` is not an integer of base 16"),
        ("mov.u32 %r1, 089", "line 26, column 14: `089` is not an integer of base 8"),
        ("mov.f32 %f1, 0f3F80000", "line 26, column 14: `0f3F80000` needs exactly 8 hexadecimal digits after its `0f`"),
        ("mov.f64 %g1, 0d3FF", "line 26, column 14: `0d3FF` needs exactly 16 hexadecimal digits after its `0d`"),
        ("mov.b32 {%h1, %h2, %h3}, %r1", "line 26, column 1: `mov.b32` cannot be split into 3 parts"),
        ("mov.b64 {%r1, %h1}, %d1", "line 26, column 15: `%h1` is `.b16`, where `mov.b64` needs `.b32`"),
        ("mov.b32 %r1, {%h1, _}", "line 26, column 20: `_` has no value"),
        ("mov.u32 %r1, targets", "line 26, column 14: `targets` is a list, not a value"),
        (
            "setp.lt.b32 %p, %r1, %r2",
            "line 26, column 1: `setp.lt.b32` needs a comparison that its type has, such as `.eq`",
        ),
        (
            "setp.ltu.s32 %p, %r1, %r2",
            "line 26, column 1: `setp.ltu.s32` needs a comparison that its type has, such as `.eq`",
        ),
        ("setp.lt.s32 %r1, %r1, %r2", "line 26, column 13: `%r1` is `.b32`, where `setp.lt.s32` needs `.pred`"),
        ("selp.b32 %r1, %r2, %r3, %r4", "line 26, column 25: `%r4` is `.b32`, where `selp.b32` needs `.pred`"),
        ("set.u16.eq.f32 %h1, %f1, %f2", "line 26, column 1: `set.u16.eq.f32` combines types that do not go together"),
        ("cvt.s32.f32 %r1, %f1", "line 26, column 1: `cvt.s32.f32` needs a rounding to an integer such as `.rzi`"),
        (
            "cvt.rn.s32.f32 %r1, %f1",
            "line 26, column 1: `cvt.rn.s32.f32` needs a rounding to an integer such as `.rzi`",
        ),
        ("cvt.f32.s32 %f1, %r1", "line 26, column 1: `cvt.f32.s32` needs a rounding such as `.rn`"),
        ("cvt.f16.f32 %h1, %f1", "line 26, column 1: `cvt.f16.f32` needs a rounding such as `.rn`"),
        (
            "cvt.rn.f64.f32 %g1, %f1",
            "line 26, column 1: `cvt.rn.f64.f32` cannot be translated: `.rn` is unknown or out of place in it; a module that only a GPU's driver has to understand can be given to `module.cuda-only`",
        ),
        (
            "cvt.rn.satfinite.e4m3x2.f32 %h1, %f1, %f2",
            "line 26, column 1: `cvt.rn.satfinite.e4m3x2.f32` cannot be translated: `.e4m3x2` is unknown or out of place in it; a module that only a GPU's driver has to understand can be given to `module.cuda-only`",
        ),
        ("cvt.rm.tf32.f32 %r1, %f1", "line 26, column 1: `cvt.rm.tf32.f32` needs `.rna`, `.rn` or `.rz`"),
        ("cvt.rna.tf32.f32 %f1, %f2", "line 26, column 18: `%f1` is `.f32`, where `cvt.rna.tf32.f32` needs `.tf32`"),
        (
            "cvt.rna.relu.tf32.f32 %r1, %f1",
            "line 26, column 1: `cvt.rna.relu.tf32.f32` cannot be translated: `.relu` is unknown or out of place in it; a module that only a GPU's driver has to understand can be given to `module.cuda-only`",
        ),
        (
            "cvt.rn.tf32.f64 %r1, %g1",
            "line 26, column 1: `cvt.rn.tf32.f64` is not an instruction that can be translated; a module that only a GPU's driver has to understand can be given to `module.cuda-only`",
        ),
        ("ld.global.u32 %h1, [%d1]", "line 26, column 15: `%h1` is `.b16`, where `ld.global.u32` needs `.u32`"),
        ("ld.global.f32 %f1, %d1", "line 26, column 20: an address in brackets is needed"),
        ("ld.global.f32 %f1, [%h1]", "line 26, column 20: `%h1` is `.b16`, where `ld.global.f32` needs `.u64`"),
        (
            "ld.global.f32 %f1, [tile]",
            "line 26, column 20: this variable lies in another space than `ld.global.f32` says",
        ),
        ("ld.global.f32 %f1, [helper]", "line 26, column 20: a function is not data"),
        ("ld.global.f32 %f1, [nowhere]", "line 26, column 20: `nowhere` is not declared here"),
        ("ld.global.f32 %f1, [%d1+1.0]", "line 26, column 25: an offset is an integer"),
        (
            "ld.global.v4.f64 {%g1, %g2, %g3, %g4}, [%d1]",
            "line 26, column 1: `ld.global.v4.f64` moves more than 16 bytes",
        ),
        ("ld.global.v2.f32 {%f1, %f2, %f3}, [%d1]", "line 26, column 18: 2 elements are needed, not 3"),
        ("ld.global.v2.f32 %f1, [%d1]", "line 26, column 18: a vector of 2 elements in braces is needed"),
        (
            "ld.shared::cluster.u32 %r1, [%r2]",
            "line 26, column 1: `ld.shared::cluster.u32` cannot be translated: `.shared::cluster` is unknown or out of place in it; a module that only a GPU's driver has to understand can be given to `module.cuda-only`",
        ),
        ("st.const.f32 [constant], %f1", "line 26, column 1: `st.const.f32` writes to memory that can only be read"),
        ("st.param.u64 [input], %d1", "line 26, column 1: `st.param.u64` writes to memory that can only be read"),
        (
            "atom.global.and.u32 %r1, [%d1], 1",
            "line 26, column 1: `atom.global.and.u32` has no form for the type `.u32`; a module that only a GPU's driver has to understand can be given to `module.cuda-only`",
        ),
        (
            "atom.local.add.u32 %r1, [depot], 1",
            "line 26, column 1: `atom.local.add.u32` works on global and shared memory only",
        ),
        ("atom.global.cas.b32 %r1, [%d1], 1", "line 26, column 1: `atom.global.cas.b32` lacks an operand: a value"),
        (
            "red.global.exch.b32 [%d1], %r1",
            "line 26, column 1: `red.global.exch.b32` throws away what it is for: use `atom`",
        ),
        ("bar.sync 16", "line 26, column 10: a block has the barriers 0 to 15, and no number 16"),
        ("bar.sync 0, 33", "line 26, column 13: the number of threads at a barrier is a multiple of 32, not 33"),
        ("bar.red.popc.u32 %r1, 0, %r2", "line 26, column 26: `%r2` is `.b32`, where `bar.red.popc.u32` needs `.pred`"),
        (
            "vote.sync.ballot.pred %p, %q, -1",
            "line 26, column 1: `vote.sync.ballot.pred` has no form for the type `.pred`; a module that only a GPU's driver has to understand can be given to `module.cuda-only`",
        ),
        (
            "match.any.sync.b32 %r1|%p, %r2, -1",
            "line 26, column 1: `match.any.sync.b32` gives no predicate: only `match.all` does",
        ),
        (
            "shfl.sync.bfly.f32 %f1, %f2, 1, 31, -1",
            "line 26, column 1: `shfl.sync.bfly.f32` has no form for the type `.f32`; a module that only a GPU's driver has to understand can be given to `module.cuda-only`",
        ),
        ("lop3.b32 %r1, %r2, %r3, %r4, 256", "line 26, column 30: the truth table is a number from 0 to 255"),
        ("bra nowhere", "line 26, column 5: the label `nowhere` does not stand in this block or one around it"),
        ("bra 5", "line 26, column 5: a label is needed"),
        ("bra %r1", "line 26, column 5: the label `%r1` does not stand in this block or one around it"),
        ("brx.idx %r1, begin", "line 26, column 14: `begin` is not a list of `.branchtargets`"),
        ("call kernel, (%d1)", "line 26, column 6: `kernel` is an entry, which only the host can launch"),
        ("call (result), helper, (argument)", "line 26, column 16: the function takes 2 values, not 1"),
        ("call (result), helper, (result, 1)", "line 26, column 25: `result` is not a `.param` of 8 bytes"),
        ("call (result), helper, (depot, 1)", "line 26, column 25: `depot` is not a `.param` of 8 bytes"),
        ("call (result), helper, (argument, %d1)", "line 26, column 35: `%d1` is `.b64`, where `call` needs `.b32`"),
        ("call (result), missing, (argument, 1)", "line 26, column 16: `missing` is not declared here"),
        (
            "call (result), %r1, (argument, 1), prototype",
            "line 26, column 16: `%r1` does not hold the 64-bit address of a function",
        ),
        (
            "call (result), %d1, (argument, 1), begin",
            "line 26, column 36: `begin` is neither a `.callprototype` nor a list of `.calltargets`",
        ),
        ("@%r1 bra end", "line 26, column 2: `%r1` is not a predicate"),
        ("@%p5 bra end", "line 26, column 2: `%p5` is not declared here"),
        (
            "@%p end:",
            "line 26, column 5: `end` is not an instruction that can be translated; a module that only a GPU's driver has to understand can be given to `module.cuda-only`",
        ),
        (
            "{ bra inner; } { inner: }",
            "line 26, column 7: the label `inner` does not stand in this block or one around it",
        ),
        ("{ begin: } begin: exit", "line 26, column 12: the label `begin` stands twice in this block"),
        (".reg .b32 %r<4>", "line 26, column 11: `%r` is declared twice in this block"),
        (".reg .f32 %r3", "line 26, column 11: `%r3` is declared twice in this block"),
        (".reg .b3 x", "line 26, column 6: `.b3` is no type that a register can have"),
        (".reg .b32 %x<5000000000>", "line 26, column 14: the number of registers is too large: 5000000000"),
        (".local .pred x", "line 26, column 8: a predicate has no place in memory"),
        (".local .align 3 .b32 x", "line 26, column 15: an alignment is a power of two up to 256, not 3"),
        (".local .b8 x[1152921504606846976]", "line 26, column 12: `x` is larger than 1099511627776 bytes"),
        (".local .b8 x[]", "line 26, column 12: `x` needs a length"),
        (
            ".shared .b32 x = 5",
            "line 26, column 16: only `.global` and `.const` variables of the module can be initialised",
        ),
        (".shared .texref x", "line 26, column 9: `.texref` is not supported in a declaration"),
        (".global .b32 x", "line 26, column 1: `.global` is not supported inside a function"),
        (".loc 1 2", "line 26, column 9: expected a column, but `;` stands there"),
        (".frob", "line 26, column 1: `.frob` is not supported inside a function"),
        ("add.s32 %r1, %r2 %r3", "line 26, column 18: expected `;`, but `%r3` stands there"),
        ("add.s32 %r1 %r2", "line 26, column 13: expected `;`, but `%r2` stands there"),
        ("ld.global.u32 %r1, [%d1", "line 26, column 24: expected `]`, but `;` stands there"),
        ("add.s32 %r1, é, 1", "line 26, column 14: the character 'é' has no meaning in PTX outside comments"),
        ("add.s32 %r1, #, 1", "line 26, column 14: expected an operand, but `#` stands there"),
        ("add.a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q %r1", "line 26, column 1: no instruction has more than 16 modifiers"),
    ];
    for (text, expected) in cases {
        let error = read(text).err().unwrap_or_else(|| panic!("accepted: {text}"));
        assert_eq!(error.to_string(), expected, "{text}");
    }
    assert_eq!(kernel("here").lines().position(|line| line == "here;"), Some(25));
}

/// Whole texts.
#[test]
fn modules() {
    let cases = [
        ("", "line 1, column 1: expected `.version`, with which PTX begins, but the text ends"),
        (".target sm_75", "line 1, column 1: expected `.version`, with which PTX begins, but `.target` stands there"),
        (".version 9.0", "line 1, column 10: PTX of version 9.0 is not supported: 2.0 to 8.x are"),
        (".version 1.4", "line 1, column 10: PTX of version 1.4 is not supported: 2.0 to 8.x are"),
        (".version 8", "line 1, column 10: expected a version such as 8.2, but `8` stands there"),
        (".version x", "line 1, column 10: expected a version such as 8.2, but `x` stands there"),
        (".version 8.2\n.address_size 64", "line 2, column 1: expected `.target`, but `.address_size` stands there"),
        (".version 8.2\n.target compute_75", "line 2, column 9: `compute_75` is not a target such as sm_75"),
        (".version 8.2\n.target sm_", "line 2, column 9: `sm_` is not a target such as sm_75"),
        (
            ".version 8.2\n.target sm_75\n.address_size 32",
            "line 3, column 15: addresses of 32 bits are not supported: compile for 64",
        ),
        (".version 8.2\n.target sm_75\n.frob", "line 3, column 1: `.frob` is not supported outside functions"),
        (
            ".version 8.2\n.target sm_75\nret;",
            "line 3, column 1: expected a directive such as `.visible .entry`, but `ret` stands there",
        ),
        (
            ".version 8.2\n.target sm_75\n.visible .reg .b32 x;",
            "line 3, column 10: expected `.entry`, `.func`, `.global`, `.const` or `.shared`, but `.reg` stands there",
        ),
        (".version 8.2\n.target sm_75\n.global .b32 x", "line 3, column 15: expected `;`, but the text ends"),
        (
            ".version 8.2\n.target sm_75\n.global x;",
            "line 3, column 9: expected a type such as `.b32`, but `x` stands there",
        ),
        (".version 8.2\n.target sm_75\n.global .b32 x, x;", "line 3, column 17: `x` is declared twice in this block"),
        (
            ".version 8.2\n.target sm_75\n.extern .global .b32 x;",
            "line 3, column 22: `x` is `.extern` and not defined here: modules are not linked",
        ),
        (
            ".version 8.2\n.target sm_75\n.extern .global .b32 x = 1;",
            "line 3, column 24: only `.global` and `.const` variables that are defined here can be initialised",
        ),
        (".version 8.2\n.target sm_75\n.global .b32 x[];", "line 3, column 14: `x` needs a length"),
        (".version 8.2\n.target sm_75\n.global .b32 x[0];", "line 3, column 16: an array has at least one element"),
        (
            ".version 8.2\n.target sm_75\n.global .b32 x[2] = {1, 2, 3};",
            "line 3, column 28: there are more than 2 elements",
        ),
        (
            ".version 8.2\n.target sm_75\n.global .b32 x[] = {};",
            "line 3, column 22: the length of the array follows from its elements, and there are none",
        ),
        (
            ".version 8.2\n.target sm_75\n.global .b32 x[2][2] = {1, 2};",
            "line 3, column 25: expected `{`, but `1` stands there",
        ),
        (".version 8.2\n.target sm_75\n.global .b32 x = 1.5x;", "line 3, column 18: `1.5x` is not a number"),
        (
            ".version 8.2\n.target sm_75\n.global .u16 x = 1.5;",
            "line 3, column 18: this value cannot be `.u16`: a floating-point number has no meaning for this type",
        ),
        (
            ".version 8.2\n.target sm_75\n.global .b64 x = y;",
            "line 3, column 18: `y` is not a variable that is declared before",
        ),
        (
            ".version 8.2\n.target sm_75\n.global .b16 x; .global .b16 y = x;",
            "line 3, column 34: this value cannot be `.b16`: an address needs 4 or 8 bytes",
        ),
        (
            ".version 8.2\n.target sm_75\n.global .b8 x; .global .b8 y[2] = {0xFF(x), 0xFF0000(x)};",
            "line 3, column 45: the bytes of an address are written in order: `0xFF(x), 0xFF00(x), …`",
        ),
        (
            ".version 8.2\n.target sm_75\n.global .b8 x; .global .b8 y[2] = {0xFF(x), 0xFF00(x)};",
            "line 3, column 36: 4 or 8 bytes of an address are needed, not 2",
        ),
        (
            ".version 8.2\n.target sm_75\n.global .b8 x; .global .b8 y[2][3] = {{0xFF(x), 0xFF00(x)}, {0xFF0000(x), 0xFF000000(x)}};",
            "line 3, column 62: the bytes of an address are written in order: `0xFF(x), 0xFF00(x), …`",
        ),
        (
            ".version 8.2\n.target sm_75\n.global .b64 x[2][1000000000] = {{1}, {2}};",
            "line 3, column 40: the initial data is far larger than its text: leave out what is zero, or fill it in a kernel",
        ),
        (
            ".version 8.2\n.target sm_75\n.func f(); .global .b64 x = f;",
            "line 3, column 29: `f` is a function: a variable cannot begin with its address",
        ),
        (
            ".version 8.2\n.target sm_75\n.global .b8 x[1152921504606846976];",
            "line 3, column 13: `x` is larger than 1099511627776 bytes",
        ),
        (
            ".version 8.2\n.target sm_75\n.global .align 512 .b8 x;",
            "line 3, column 16: an alignment is a power of two up to 256, not 512",
        ),
        (
            ".version 8.2\n.target sm_75\n.global .attribute(.managed) .b8 x;",
            "line 3, column 9: `.attribute` is not supported in a declaration",
        ),
        (
            ".version 8.2\n.target sm_75\n.entry f(.param .b8 x[40000]) { ret; }",
            "line 3, column 21: the parameters are larger than 32764 bytes",
        ),
        (
            ".version 8.2\n.target sm_75\n.entry f(.param .b8 x[]) { ret; }",
            "line 3, column 21: the array needs a length: variable argument lists are not supported",
        ),
        (
            ".version 8.2\n.target sm_75\n.entry f(.b8 x) { ret; }",
            "line 3, column 10: expected `.param`, but `.b8` stands there",
        ),
        (
            ".version 8.2\n.target sm_75\n.entry f(.param .b8 x, .param .b8 x) { ret; }",
            "line 3, column 35: `x` is declared twice in this block",
        ),
        (
            ".version 8.2\n.target sm_75\n.entry f() { ret; } .entry f() { ret; }",
            "line 3, column 28: `f` has two bodies",
        ),
        (
            ".version 8.2\n.target sm_75\n.func f(.param .b32 x); .func f(.param .b64 x) { ret; }",
            "line 3, column 31: `f` was declared otherwise before",
        ),
        (
            ".version 8.2\n.target sm_75\n.global .b32 f; .entry f() { ret; }",
            "line 3, column 24: `f` is declared twice in this block",
        ),
        (
            ".version 8.2\n.target sm_75\n.extern .func f() { ret; }",
            "line 3, column 15: `f` is `.extern` and has a body",
        ),
        (
            ".version 8.2\n.target sm_75\n.entry f() .frob { ret; }",
            "line 3, column 12: `.frob` is not supported for a function",
        ),
        (
            ".version 8.2\n.target sm_75\n.entry f() .maxntid 0 { ret; }",
            "line 3, column 21: a block has at least one thread along each axis",
        ),
        (
            ".version 8.2\n.target sm_75\n.entry f() ret;",
            "line 3, column 12: expected `{`, `;` or a directive such as `.maxntid`, but `ret` stands there",
        ),
        (".version 8.2\n.target sm_75\n.entry f() {", "line 3, column 13: the body of `f` has no closing `}`"),
        (".version 8.2\n.target sm_75\n.entry f() { { ret; }", "line 3, column 22: the body of `f` has no closing `}`"),
        (".version 8.2\n.target sm_75\n.entry f() { ret", "line 3, column 17: expected an operand, but the text ends"),
        (
            ".version 8.2\n.target sm_75\n.entry f() { bra x; }",
            "line 3, column 18: the label `x` does not stand in this block or one around it",
        ),
        (".version 8.2\n.target sm_75\n.section .debug {{}", "line 3, column 10: this `.section` has no closing `}`"),
        (".version 8.2\n.target sm_75\n.file 1 x", "line 3, column 10: the name of the file is missing"),
        (".version 8.2\n.target sm_75\n/* never closed", "line 3, column 1: this comment has no closing `*/`"),
        (
            ".version 8.2\n.target sm_75\n.file 1 \"never closed\n",
            "line 3, column 9: this string has no closing `\"` on its line",
        ),
        (".version 8.2\n.target sm_75\n. x", "line 3, column 1: a name is missing after `.`"),
        (
            ".version 8.2\n.target sm_75\n// é\n.entry é",
            "line 4, column 8: the character 'é' has no meaning in PTX outside comments",
        ),
    ];
    for (text, expected) in cases {
        let error = parse(text).err().unwrap_or_else(|| panic!("accepted: {text}"));
        assert_eq!(error.to_string(), expected, "{text}");
    }
}
