//! Which forms there are.

use steadfast_ptx::module::Type;

use super::form::{Form, Tolerance};

const INTEGERS: [&str; 6] = ["u16", "s16", "u32", "s32", "u64", "s64"];
const BITS: [&str; 3] = ["b16", "b32", "b64"];
const ROUNDINGS: [&str; 4] = [".rn", ".rz", ".rm", ".rp"];
const WHOLE: [&str; 4] = [".rni", ".rzi", ".rmi", ".rpi"];
const ORDERED: [&str; 6] = ["eq", "ne", "lt", "le", "gt", "ge"];
const UNORDERED: [&str; 8] = ["equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"];

/// `pattern` with each of `words` in the place of `$`, in the code and in the types.
fn each(words: &[&str], pattern: &str, results: &str, operands: &str) -> Vec<Form> {
    words
        .iter()
        .map(|word| {
            let [code, results, operands] = [pattern, results, operands].map(|text| text.replace('$', word));
            Form::new(&code, &results, &operands)
        })
        .collect()
}

/// Each name with each type: two operands, one result.
fn binary(names: &[&str], types: &[&str]) -> Vec<Form> {
    let of = |name: &&str| each(types, &format!("{name}.$ %d, %a, %b;"), "d:$", "a:$ b:$");
    names.iter().flat_map(of).collect()
}

fn unary(names: &[&str], types: &[&str]) -> Vec<Form> {
    names.iter().flat_map(|name| each(types, &format!("{name}.$ %d, %a;"), "d:$", "a:$")).collect()
}

fn ternary(names: &[&str], types: &[&str]) -> Vec<Form> {
    let of = |name: &&str| each(types, &format!("{name}.$ %d, %a, %b, %c;"), "d:$", "a:$ b:$ c:$");
    names.iter().flat_map(of).collect()
}

/// The type with twice the width.
fn wide(ty: &str) -> &str {
    match ty {
        "u16" => "u32",
        "s16" => "s32",
        "u32" => "u64",
        _ => "s64",
    }
}

pub(super) fn integer_arithmetic() -> Vec<Form> {
    let mut forms = binary(&["add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max"], &INTEGERS);
    forms.extend(binary(&["add.sat", "sub.sat"], &["s32"]));
    forms.extend(binary(&["add", "min", "max"], &["u16x2", "s16x2"]));
    forms.extend(binary(&["min.relu", "max.relu"], &["s16x2", "s32"]));
    forms.extend(binary(&["mul24.lo", "mul24.hi"], &["u32", "s32"]));
    forms.extend(ternary(&["mad.lo", "mad.hi", "sad"], &INTEGERS));
    forms.extend(ternary(&["mad24.lo", "mad24.hi"], &["u32", "s32"]));
    forms.extend(ternary(&["mad.hi.sat", "mad24.hi.sat"], &["s32"]));
    forms.extend(unary(&["abs", "neg"], &["s16", "s32", "s64"]));
    for ty in ["u16", "s16", "u32", "s32"] {
        let wide = wide(ty);
        forms.push(Form::new(&format!("mul.wide.{ty} %d, %a, %b;"), &format!("d:{wide}"), &format!("a:{ty} b:{ty}")));
        forms.push(Form::new(
            &format!("mad.wide.{ty} %d, %a, %b, %c;"),
            &format!("d:{wide}"),
            &format!("a:{ty} b:{ty} c:{wide}"),
        ));
    }
    forms
}

pub(super) fn carry_chains() -> Vec<Form> {
    let types = ["u32", "s32", "u64", "s64"];
    let pair = "a:$ b:$ c:$";
    [
        "add.cc.$ %d, %a, %b;\naddc.$ %e, %c, 0;",
        "sub.cc.$ %d, %a, %b;\nsubc.$ %e, %c, 0;",
        "add.cc.$ %d, %a, %b;\naddc.cc.$ %e, %b, %c;\naddc.$ %e, %e, 0;",
        "sub.cc.$ %d, %a, %b;\nsubc.cc.$ %e, %b, %c;\nsubc.$ %e, %e, %c;",
        "mad.lo.cc.$ %d, %a, %b, %c;\nmadc.hi.$ %e, %a, %b, 0;",
        "mad.hi.cc.$ %d, %a, %b, %c;\naddc.$ %e, 0, 0;",
        "mad.lo.cc.$ %d, %a, %b, %c;\nmadc.hi.cc.$ %e, %a, %b, %c;\naddc.$ %e, %e, %e;",
        "mad.lo.cc.$ %d, %a, %b, %c;\nmadc.lo.cc.$ %d, %d, %b, %c;\naddc.$ %e, 7, 0;",
        // Nothing between a `.cc` and its reader touches the flag but another `.cc`.
        "add.cc.$ %d, %a, %b;\nadd.$ %d, %d, %c;\nmul.lo.$ %d, %d, %a;\naddc.$ %e, 0, 0;",
    ]
    .iter()
    .flat_map(|code| each(&types, code, "d:$ e:$", pair))
    .collect()
}

pub(super) fn bits() -> Vec<Form> {
    let mut forms = binary(&["and", "or", "xor"], &["b16", "b32", "b64", "pred"]);
    forms.extend(unary(&["not"], &["b16", "b32", "b64", "pred"]));
    forms.extend(unary(&["cnot"], &BITS));
    forms.extend(unary(&["brev"], &["b32", "b64"]));
    forms.extend(each(&["b32", "b64"], "popc.$ %d, %a;", "d:u32", "a:$"));
    forms.extend(each(&["b32", "b64"], "clz.$ %d, %a;", "d:u32", "a:$"));
    for name in ["bfind", "bfind.shiftamt"] {
        forms.extend(each(&INTEGERS[2..], &format!("{name}.$ %d, %a;"), "d:u32", "a:$"));
    }
    forms.extend(each(&BITS, "shl.$ %d, %a, %b;", "d:$", "a:$ b:count"));
    forms.extend(each(&BITS, "shr.$ %d, %a, %b;", "d:$", "a:$ b:count"));
    forms.extend(each(&INTEGERS, "shr.$ %d, %a, %b;", "d:$", "a:$ b:count"));
    for mode in ["l.clamp", "l.wrap", "r.clamp", "r.wrap"] {
        forms.push(Form::new(&format!("shf.{mode}.b32 %d, %a, %b, %c;"), "d:b32", "a:b32 b:b32 c:count"));
    }
    forms.extend(each(&INTEGERS[2..], "bfe.$ %d, %a, %b, %c;", "d:$", "a:$ b:count c:count"));
    forms.extend(each(&["b32", "b64"], "bfi.$ %d, %a, %b, %c, %e;", "d:$", "a:$ b:$ c:count e:count"));
    for mode in ["clamp", "wrap"] {
        forms.push(Form::new(&format!("bmsk.{mode}.b32 %d, %a, %b;"), "d:b32", "a:count b:count"));
        forms.extend(each(&["u32", "s32"], &format!("szext.{mode}.$ %d, %a, %b;"), "d:$", "a:$ b:count"));
    }
    forms.push(Form::new("fns.b32 %d, %a, %b, %c;", "d:b32", "a:b32 b:lane c:s32"));
    for mode in ["", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"] {
        forms.push(Form::new(&format!("prmt.b32{mode} %d, %a, %b, %c;"), "d:b32", "a:b32 b:b32 c:b32"));
    }
    for table in [0x00, 0x01, 0x80, 0x96, 0xe8, 0xca, 0x1e, 0xfe, 0xff] {
        forms.push(Form::new(&format!("lop3.b32 %d, %a, %b, %c, {table};"), "d:b32", "a:b32 b:b32 c:b32"));
    }
    for (logic, with) in [("and", "%p"), ("or", "%p"), ("and", "!%p"), ("or", "!%p")] {
        for (table, dst) in [(0x96, "%d"), (0x80, "%d"), (0x40, "_")] {
            let code = format!("mov.b32 %d, 0;\nlop3.{logic}.b32 {dst}|%q, %a, %b, %c, {table}, {with};");
            forms.push(Form::new(&code, "d:b32 q:pred", "a:b32 b:b32 c:b32 p:pred"));
        }
    }
    for (a, b) in [("u32", "u32"), ("u32", "s32"), ("s32", "u32"), ("s32", "s32")] {
        for name in ["dp4a", "dp2a.lo", "dp2a.hi"] {
            forms.push(Form::new(&format!("{name}.{a}.{b} %d, %a, %b, %c;"), "d:b32", "a:b32 b:b32 c:b32"));
        }
    }
    forms
}

pub(super) fn single_precision() -> Vec<Form> {
    let mut forms = Vec::new();
    for rounding in ["", ".rn", ".rz", ".rm", ".rp"] {
        for modifiers in ["", ".ftz", ".sat", ".ftz.sat"] {
            let names = ["add", "sub", "mul"].map(|name| format!("{name}{rounding}{modifiers}"));
            forms.extend(binary(&names.each_ref().map(String::as_str), &["f32"]));
            if !rounding.is_empty() {
                forms.extend(ternary(&[&format!("fma{rounding}{modifiers}")], &["f32"]));
            }
        }
    }
    for rounding in ROUNDINGS {
        for flush in ["", ".ftz"] {
            forms.extend(binary(&[&format!("div{rounding}{flush}")], &["f32"]));
            forms.extend(unary(
                &["rcp", "sqrt"].map(|name| format!("{name}{rounding}{flush}")).each_ref().map(|s| &**s),
                &["f32"],
            ));
        }
    }
    for (y, z) in [(252.0, 12_582_913.0), (1000.3, 8_388_608.0), (252.0, 4_194_304.0), (8.0, 16_777_208.0)] {
        forms.extend([".rm", ".rz", ".rp", ".rm.ftz"].map(|rounding| counted(rounding, y, z)));
    }
    forms.extend(ternary(&["mad.rn", "mad.rz.sat"], &["f32"]));
    forms.extend(unary(&["neg", "abs", "neg.ftz", "abs.ftz"], &["f32"]));
    forms.extend(binary(&["copysign"], &["f32"]));
    for name in ["min", "max"] {
        for modifiers in ["", ".ftz", ".NaN", ".ftz.NaN"] {
            forms.extend(binary(&[&format!("{name}{modifiers}")], &["f32"]));
        }
    }
    forms.extend(tests("f32"));
    forms
}

/// A part of something, counted in whole numbers as NVCC's `expf` does it: `y` of them, in the last bits of `z`.
fn counted(rounding: &str, y: f32, z: f32) -> Form {
    let code =
        format!("cvt.sat.f32.f32 %d, %a; fma{rounding}.f32 %d, %d, 0f{:08X}, 0f{:08X};", y.to_bits(), z.to_bits());
    let form = Form::new(&code, "d:f32", "a:f32");
    let next_to = |whole: u32| {
        let part = (f64::from(whole) / f64::from(y)) as f32;
        [part.to_bits().saturating_sub(1), part.to_bits(), part.to_bits() + 1]
    };
    let rows = (0..=y as u32).flat_map(next_to).map(|bits| vec![u64::from(bits)]);
    let rows = form.rows.iter().cloned().chain(rows).collect();
    form.on(rows)
}

pub(super) fn double_precision() -> Vec<Form> {
    let mut forms = Vec::new();
    for rounding in ROUNDINGS {
        let names = ["add", "sub", "mul", "div"].map(|name| format!("{name}{rounding}"));
        forms.extend(binary(&names.each_ref().map(|s| &**s), &["f64"]));
        forms
            .extend(unary(&["rcp", "sqrt"].map(|name| format!("{name}{rounding}")).each_ref().map(|s| &**s), &["f64"]));
        forms.extend(ternary(&[&format!("fma{rounding}"), &format!("mad{rounding}")], &["f64"]));
    }
    forms.extend(binary(&["add", "sub", "mul", "min", "max", "copysign"], &["f64"]));
    forms.extend(unary(&["neg", "abs"], &["f64"]));
    forms.extend(tests("f64"));
    forms
}

fn tests(ty: &str) -> Vec<Form> {
    let tests = ["finite", "infinite", "number", "notanumber", "normal", "subnormal"];
    each(&tests, &format!("testp.$.{ty} %p, %a;"), "p:pred", &format!("a:{ty}"))
}

pub(super) fn half_precision() -> Vec<Form> {
    let mut forms = Vec::new();
    let (halves, brains) = (["f16", "f16x2"], ["bf16", "bf16x2"]);
    forms.extend(binary(
        &["add", "sub", "mul", "add.rn", "add.sat", "sub.sat", "mul.sat", "add.ftz", "mul.ftz.sat"],
        &halves,
    ));
    forms.extend(binary(&["add", "sub", "mul", "add.rn"], &brains));
    forms.extend(ternary(&["fma.rn", "fma.rn.sat", "fma.rn.relu", "fma.rn.ftz", "fma.rn.ftz.relu"], &halves));
    forms.extend(ternary(&["fma.rn", "fma.rn.relu"], &brains));
    for types in [halves, brains] {
        forms.extend(unary(&["neg", "abs"], &types));
        forms.extend(binary(&["min", "max", "min.NaN", "max.NaN"], &types));
    }
    forms.extend(unary(&["neg.ftz", "abs.ftz"], &halves));
    forms.extend(binary(&["min.ftz", "max.ftz.NaN"], &halves));
    forms
}

pub(super) fn comparisons() -> Vec<Form> {
    let mut forms = Vec::new();
    let both = "%p|%q";
    for ty in INTEGERS.iter().chain(&BITS) {
        let comparisons: &[&str] = if ty.starts_with('b') { &ORDERED[..2] } else { &ORDERED };
        let operands = format!("a:{ty} b:{ty}");
        forms.extend(each(comparisons, &format!("setp.$.{ty} {both}, %a, %b;"), "p:pred q:pred", &operands));
    }
    for ty in ["u16", "u32", "u64"] {
        let operands = format!("a:{ty} b:{ty}");
        forms.extend(each(&["lo", "ls", "hi", "hs"], &format!("setp.$.{ty} %p, %a, %b;"), "p:pred", &operands));
    }
    for ty in ["f32", "f64", "f16", "bf16"] {
        let all: Vec<&str> = ORDERED.into_iter().chain(UNORDERED).collect();
        let operands = format!("a:{ty} b:{ty}");
        forms.extend(each(&all, &format!("setp.$.{ty} {both}, %a, %b;"), "p:pred q:pred", &operands));
        if ty == "f32" {
            forms.extend(each(&all, "setp.$.ftz.f32 %p|%q, %a, %b;", "p:pred q:pred", &operands));
        }
    }
    for ty in ["f16x2", "bf16x2"] {
        forms.extend(each(
            &["eq", "lt", "geu", "nan"],
            &format!("setp.$.{ty} {both}, %a, %b;"),
            "p:pred q:pred",
            &format!("a:{ty} b:{ty}"),
        ));
    }
    for (logic, third) in [("and", "%c"), ("or", "%c"), ("xor", "%c"), ("and", "!%c"), ("or", "!%c"), ("xor", "!%c")] {
        forms.push(Form::new(
            &format!("setp.lt.{logic}.s32 {both}, %a, %b, {third};"),
            "p:pred q:pred",
            "a:s32 b:s32 c:pred",
        ));
        forms.push(Form::new(
            &format!("setp.ltu.{logic}.f32 {both}, %a, %b, {third};"),
            "p:pred q:pred",
            "a:f32 b:f32 c:pred",
        ));
        forms.push(Form::new(&format!("set.ge.{logic}.u32.f32 %d, %a, %b, {third};"), "d:u32", "a:f32 b:f32 c:pred"));
    }
    for ty in ["u16", "s16", "u32", "s32", "u64", "s64", "f32", "f64"] {
        for to in ["u32", "s32", "f32"] {
            let operands = format!("a:{ty} b:{ty}");
            forms.extend(each(&["eq", "gt"], &format!("set.$.{to}.{ty} %d, %a, %b;"), &format!("d:{to}"), &operands));
        }
    }
    forms
}

pub(super) fn selections() -> Vec<Form> {
    let types = ["b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64"];
    let mut forms = each(&types, "selp.$ %d, %a, %b, %p;", "d:$", "a:$ b:$ p:pred");
    for ty in types {
        for by in ["s32", "f32"] {
            forms.push(Form::new(
                &format!("slct.{ty}.{by} %d, %a, %b, %c;"),
                &format!("d:{ty}"),
                &format!("a:{ty} b:{ty} c:{by}"),
            ));
        }
    }
    forms.push(Form::new("slct.ftz.u32.f32 %d, %a, %b, %c;", "d:u32", "a:u32 b:u32 c:f32"));
    forms
}

/// The register that holds a value of the type: bytes are in 32 bits, for the extension to be seen.
fn holder(ty: &str) -> &str {
    match ty {
        "u8" | "s8" => "b32",
        other => other,
    }
}

fn conversion(modifiers: &str, to: &str, from: &str) -> Form {
    let (d, a) = (holder(to), holder(from));
    Form::new(&format!("cvt{modifiers}.{to}.{from} %d, %a;"), &format!("d:{d}"), &format!("a:{a}"))
}

pub(super) fn conversions() -> Vec<Form> {
    let integers = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"];
    let floats = ["f16", "bf16", "f32", "f64"];
    let mut forms = Vec::new();
    for to in integers {
        for from in integers {
            forms.push(conversion("", to, from));
            forms.push(conversion(".sat", to, from));
        }
        for float in floats {
            forms.extend(WHOLE.iter().map(|rounding| conversion(rounding, to, float)));
            forms.push(conversion(".rni.sat", to, float));
            forms.extend(ROUNDINGS.iter().map(|rounding| conversion(rounding, float, to)));
        }
        for rounding in WHOLE {
            forms.push(conversion(&format!("{rounding}.ftz"), to, "f32"));
        }
        forms.push(conversion(".rn.sat", "f32", to));
    }
    for ty in floats {
        for rounding in WHOLE {
            forms.push(conversion(rounding, ty, ty));
        }
    }
    for (to, from) in [("f16", "f32"), ("f16", "f64"), ("f32", "f64"), ("bf16", "f32"), ("bf16", "f64")] {
        for rounding in ROUNDINGS {
            forms.push(conversion(rounding, to, from));
        }
    }
    for modifiers in [".rna", ".rn", ".rz", ".rn.relu", ".rz.relu"] {
        forms.push(Form::new(&format!("cvt{modifiers}.tf32.f32 %d, %a;"), "d:b32", "a:f32"));
    }
    for (to, from) in [("f32", "f16"), ("f64", "f16"), ("f32", "bf16"), ("f64", "f32"), ("f64", "bf16")] {
        forms.push(conversion("", to, from));
    }
    for (modifiers, to, from) in [
        (".sat", "f32", "f32"),
        (".ftz", "f32", "f32"),
        (".ftz.sat", "f32", "f32"),
        (".rni.ftz.sat", "f32", "f32"),
        (".sat", "f64", "f64"),
        (".rn.ftz", "f32", "f64"),
        (".rn.sat", "f32", "f64"),
        (".rz.ftz.sat", "f32", "f64"),
        (".ftz", "f64", "f32"),
        (".sat", "f64", "f32"),
        (".ftz", "f32", "f16"),
        (".sat", "f32", "f16"),
        (".rn.ftz", "f16", "f32"),
        (".rn.sat", "f16", "f32"),
        (".rn.relu", "f16", "f32"),
        (".rz.relu", "bf16", "f32"),
    ] {
        forms.push(conversion(modifiers, to, from));
    }
    forms
}

pub(super) fn packing() -> Vec<Form> {
    let mut forms = Vec::new();
    for ty in ["f16x2", "bf16x2"] {
        for modifiers in [".rn", ".rz", ".rn.relu", ".rz.relu"] {
            forms.push(Form::new(&format!("cvt{modifiers}.{ty}.f32 %d, %a, %b;"), "d:b32", "a:f32 b:f32"));
        }
    }
    for to in ["u16", "s16"] {
        forms.push(Form::new(&format!("cvt.pack.sat.{to}.s32 %d, %a, %b;"), "d:b32", "a:s32 b:s32"));
    }
    for to in ["u8", "s8"] {
        forms.push(Form::new(&format!("cvt.pack.sat.{to}.s32.b32 %d, %a, %b, %c;"), "d:b32", "a:s32 b:s32 c:b32"));
    }
    forms.extend([
        Form::new("mov.b32 %d, {%a, %b};", "d:b32", "a:b16 b:b16"),
        Form::new("mov.b64 %d, {%a, %b};", "d:b64", "a:b32 b:b32"),
        Form::new("mov.b64 %d, {%a, %b, %a, %b};", "d:b64", "a:b16 b:b16"),
        Form::new("mov.b32 {%d, %e}, %a;", "d:b16 e:b16", "a:b32"),
        Form::new("mov.b64 {%d, %e}, %a;", "d:b32 e:b32", "a:b64"),
        Form::new("mov.b64 {_, %e}, %a;", "e:b32", "a:b64"),
        Form::new("mov.b64 {%d, %e, %f, %g}, %a;", "d:b16 e:b16 f:b16 g:b16", "a:b64"),
        Form::new("mov.b64 {%d, %e}, %a;", "d:f32 e:f32", "a:f64"),
        Form::new("mov.b32 %d, %a;", "d:b32", "a:f32"),
        Form::new("mov.b64 %d, %a;", "d:f64", "a:b64"),
        Form::new(
            "mov.f32 %d, 0f7F800001;\nmov.f64 %e, 0dFFF0000000000001;\nmov.f32 %f, %a;",
            "d:f32 e:f64 f:f32",
            "a:f32",
        ),
    ]);
    forms
}

/// Loads and stores of a row's own bytes.
pub(super) fn memory() -> Vec<Form> {
    let mut forms = Vec::new();
    for (ty, holder) in [
        ("u8", "b16"),
        ("s8", "b16"),
        ("u8", "b32"),
        ("s8", "b32"),
        ("b8", "b32"),
        ("u8", "b64"),
        ("s8", "b64"),
        ("u16", "b16"),
        ("u16", "b32"),
        ("s16", "b32"),
        ("s16", "b64"),
        ("u32", "b32"),
        ("u32", "b64"),
        ("s32", "b64"),
        ("b64", "b64"),
        ("f32", "f32"),
        ("f32", "b32"),
        ("f64", "f64"),
        ("f64", "b64"),
    ] {
        forms.push(Form::new(&format!("ld.global.{ty} %d, [%in];"), &format!("d:{holder}"), "a:b64"));
        forms.push(Form::new(&format!("ld.{ty} %d, [%in+8];"), &format!("d:{holder}"), "a:b64 b:b64"));
        // Other bytes of the second result keep their poison.
        let code = format!("ld.{holder} %d, [%in];\nst.global.{ty} [%out+8], %d;\nld.b64 %e, [%out+8];");
        forms.push(Form::new(&code, &format!("d:{holder} e:b64"), "a:b64"));
    }
    forms.extend([
        Form::new("ld.global.v2.u8 {%d, %e}, [%in];", "d:b32 e:b32", "a:b64"),
        Form::new("ld.global.v4.s8 {%d, %e, %f, %g}, [%in];", "d:b32 e:b32 f:b32 g:b32", "a:b64"),
        Form::new("ld.global.v2.s16 {%d, %e}, [%in];", "d:b32 e:b32", "a:b64"),
        Form::new("ld.global.v4.u16 {%d, _, %f, %g}, [%in];", "d:b16 f:b16 g:b16", "a:b64"),
        Form::new("ld.global.nc.v2.f32 {%d, %e}, [%in];", "d:f32 e:f32", "a:b64"),
        Form::new("ld.volatile.global.v2.u32 {%d, %e}, [%in];", "d:b32 e:b32", "a:b64"),
        Form::new("ld.global.v2.f64 {%d, %e}, [%in];", "d:f64 e:f64", "a:f64 b:f64"),
        Form::new("ld.global.v4.f32 {%d, %e, %f, %g}, [%in];", "d:f32 e:f32 f:f32 g:f32", "a:b64 b:b64"),
        Form::new("st.global.v2.b32 [%out], {%a, %b};\nld.b64 %d, [%out];", "d:b64", "a:b32 b:b32"),
        Form::new("st.global.v4.b16 [%out], {%a, %b, %b, %a};\nld.b64 %d, [%out];", "d:b64", "a:b16 b:b16"),
        Form::new("st.v4.u8 [%out], {%a, %b, %b, %a};\nld.u32 %d, [%out];", "d:b32", "a:b32 b:b32"),
        Form::new(
            "st.global.v2.f64 [%out], {%a, %b};\nld.f64 %d, [%out+8];\nld.f64 %e, [%out];",
            "d:f64 e:f64",
            "a:f64 b:f64",
        ),
    ]);
    forms
}

/// The type of the same width without a meaning.
fn untyped(ty: &str) -> &str {
    match ty {
        "f16" | "bf16" => "b16",
        "f16x2" | "bf16x2" => "b32",
        other => other,
    }
}

/// The row's own 16 bytes of shared memory, at `%to` and filled with ones.
const TILE: &str = ".shared .align 16 .b8 tile[1536];\n.reg .b64 %to, %far;\n.reg .b32 %me;\nmov.u32 %me, %tid.x;\nmul.wide.u32 %far, %me, 16;\n\
    mov.u64 %to, tile;\nadd.u64 %to, %to, %far;\nst.shared.v2.b64 [%to], {-1, -1};\n";

/// From the row's operands to shared memory.
pub(super) fn copies() -> Vec<Form> {
    let mut forms = Vec::new();
    let mut push = |operands: &str, copy: &str| {
        let code = format!("{TILE}{copy}\nld.shared.v2.b64 {{%d, %e}}, [%to];");
        forms.push(Form::new(&code, "d:b64 e:b64", operands));
    };
    for bytes in [4, 8, 16] {
        push("a:b64 b:b64", &format!("cp.async.ca.shared.global [%to], [%in], {bytes};\ncp.async.wait_all;"));
        push(
            "a:b64 b:b64 c:count",
            &format!(
                ".reg .b32 %given;\nmin.u32 %given, %c, {bytes};\n\
                 cp.async.ca.shared::cta.global.L2::128B [%to], [%in], {bytes}, %given;\ncp.async.commit_group;\ncp.async.wait_group 0;"
            ),
        );
        push(
            "a:b64 b:b64 p:pred",
            &format!("cp.async.ca.shared.global [%to], [%in], {bytes}, %p;\ncp.async.wait_all;"),
        );
    }
    for given in [0, 3, 16] {
        push("a:b64 b:b64", &format!("cp.async.cg.shared.global [%to], [%in], 16, {given};\ncp.async.wait_all;"));
    }
    push(
        "a:b64 b:b64",
        "cp.async.cg.shared.global.L2::cache_hint [%to], [%in], 16, %a;\ncp.async.ca.shared.global.L2::cache_hint [%to+4], [%in+8], 4, 2, %b;",
    );
    forms
}

/// A barrier in shared memory that only this row's thread arrives at.
pub(super) fn barriers() -> Vec<Form> {
    let mut forms = Vec::new();
    let mut push = |results: &str, operands: &str, code: &str| {
        forms.push(Form::new(&format!("{TILE}.reg .b64 %s<3>;\n{code}"), results, operands));
    };
    push(
        "d:u32 e:u32 p:pred q:pred",
        "a:u32",
        "and.b32 %a, %a, 0xfffff;\nmax.u32 %a, %a, 2;\nmbarrier.init.shared.b64 [%to], %a;\nmbarrier.arrive.shared.b64 %s0, [%to];\n\
         mbarrier.arrive.shared::cta.b64 %s1, [%to];\nmbarrier.pending_count.b64 %d, %s0;\nmbarrier.pending_count.b64 %e, %s1;\n\
         mbarrier.test_wait.shared.b64 %p, [%to], %s0;\nmbarrier.try_wait.shared::cta.b64 %q, [%to], %s1, 100;",
    );
    push(
        "p:pred q:pred p0:pred q0:pred p1:pred q1:pred",
        "a:u32",
        "mbarrier.init.shared::cta.b64 [%to+8], 3;\nmbarrier.try_wait.parity.shared::cta.b64 %p, [%to+8], 1;\nmbarrier.test_wait.parity.shared.b64 %q, [%to+8], 0;\n\
         mbarrier.arrive.release.cta.shared::cta.b64 _, [%to+8], 2;\nmbarrier.arrive.b64 %s0, [%to+8];\n\
         mbarrier.test_wait.parity.acquire.cta.shared.b64 %p0, [%to+8], 0;\nmbarrier.try_wait.parity.b64 %q0, [%to+8], 1;\n\
         mbarrier.arrive.noComplete.shared.b64 %s1, [%to+8], 2;\nmbarrier.test_wait.b64 %p1, [%to+8], %s1;\nmbarrier.test_wait.b64 %q1, [%to+8], %s0;",
    );
    push(
        "d:u32 e:u32 p:pred q:pred",
        "a:u32",
        "mbarrier.init.shared.b64 [%to], 5;\nmbarrier.arrive_drop.shared.b64 %s0, [%to], 2;\nmbarrier.arrive.shared.b64 %s1, [%to], 3;\n\
         mbarrier.test_wait.shared.b64 %p, [%to], %s0;\nmbarrier.arrive.shared.b64 %s2, [%to], 3;\nmbarrier.pending_count.b64 %d, %s2;\n\
         mbarrier.test_wait.shared.b64 %q, [%to], %s2;\nmbarrier.arrive_drop.release.cta.shared.b64 %s0, [%to];\nmbarrier.pending_count.b64 %e, %s0;\nmbarrier.inval.shared.b64 [%to];",
    );
    push(
        "p:pred q:pred",
        "a:b64",
        "mbarrier.init.shared.b64 [%to], 1;\nfence.mbarrier_init.release.cluster;\nfence.proxy.async.shared::cta;\ncp.async.mbarrier.arrive.shared.b64 [%to];\n\
         mbarrier.test_wait.parity.shared.b64 %p, [%to], 0;\ncp.async.mbarrier.arrive.noinc.shared::cta.b64 [%to];\nmbarrier.test_wait.parity.shared.b64 %q, [%to], 0;",
    );
    forms
}

/// On the row's own memory: the old value and what is left.
pub(super) fn atomics() -> Vec<Form> {
    let mut forms = Vec::new();
    let mut push = |name: &str, ty: &str| {
        let (results, operands) = (format!("d:{ty} e:{ty}"), format!("a:{ty} b:{ty}"));
        let memory = untyped(ty);
        let code = format!(
            "st.global.{memory} [%out+8], %a;\natom.global.{name}.{ty} %d, [%out+8], %b;\nld.global.{memory} %e, [%out+8];",
        );
        forms.push(Form::new(&code, &results, &operands));
        if name != "exch" {
            let code = format!(
                "st.global.{memory} [%out], %a;\nred.global.{name}.{ty} [%out], %b;\nld.global.{memory} %d, [%out];"
            );
            forms.push(Form::new(&code, &format!("d:{ty}"), &operands));
        }
    };
    for (name, types) in [
        ("add", &["u32", "s32", "u64"][..]),
        ("min", &["u32", "s32", "u64", "s64"]),
        ("max", &["u32", "s32", "u64", "s64"]),
        ("inc", &["u32"]),
        ("dec", &["u32"]),
        ("and", &["b32", "b64"]),
        ("or", &["b32", "b64"]),
        ("xor", &["b32", "b64"]),
        ("exch", &["b32", "b64"]),
        ("add.noftz", &["f16", "f16x2", "bf16", "bf16x2"]),
    ] {
        for ty in types {
            push(name, ty);
        }
    }
    for ty in ["b16", "b32", "b64"] {
        let code = format!(
            "st.global.{ty} [%out], %a;\natom.global.cas.{ty} %d, [%out], %b, %c;\nld.global.{ty} %e, [%out];",
        );
        forms.push(Form::new(&code, &format!("d:{ty} e:{ty}"), &format!("a:{ty} b:{ty} c:{ty}")));
    }
    forms
}

/// What the hardware approximates, with the errors that PTX allows.
pub(super) fn approximations() -> Vec<Form> {
    let units = |count| Tolerance::Units(Type::F32, count);
    let near = |bound| Tolerance::Near(Type::F32, bound);
    let mut forms = Vec::new();
    for flush in ["", ".ftz"] {
        for (name, tolerance) in [
            ("ex2", units(2)),
            ("lg2", near(2f64.powi(-22))),
            ("sin", near(2f64.powi(-20))),
            ("cos", near(2f64.powi(-20))),
            ("rsqrt", units(2)),
            ("rcp", units(1)),
            ("sqrt", units(1)),
        ] {
            forms.extend(
                unary(&[&format!("{name}.approx{flush}")], &["f32"]).into_iter().map(|form| form.within(tolerance)),
            );
        }
        for name in ["div.approx", "div.full"] {
            forms.extend(binary(&[&format!("{name}{flush}")], &["f32"]).into_iter().map(|form| form.within(units(2))));
        }
    }
    forms.extend(unary(&["tanh.approx"], &["f32"]).into_iter().map(|form| form.within(near(2f64.powi(-11)))));
    forms.extend(
        unary(&["ex2.approx", "tanh.approx"], &["f16", "f16x2"])
            .into_iter()
            .map(|form| form.within(Tolerance::Units(Type::F16, 2))),
    );
    forms.extend(
        unary(&["ex2.approx.ftz", "tanh.approx"], &["bf16", "bf16x2"])
            .into_iter()
            .map(|form| form.within(Tolerance::Units(Type::Bf16, 2))),
    );
    forms.extend(
        unary(&["rcp.approx.ftz", "rsqrt.approx.ftz", "rsqrt.approx"], &["f64"])
            .into_iter()
            .map(|form| form.within(Tolerance::Near(Type::F64, 2f64.powi(-18)))),
    );
    forms
}
