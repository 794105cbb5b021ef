//! Single instructions in a kernel that declares something of everything.

use crate::module::{Function, Instruction, Module, Statement};
use crate::parse::{ParseError, parse};

/// A kernel around one instruction, which stands in line 26, column 1.
pub(super) fn kernel(instruction: &str) -> String {
    format!(
        ".version 8.2
.target sm_90
.address_size 64
.global .align 4 .u32 table[4] = {{1, 2, 3, 4}};
.const .f32 constant = 0f40490FDB;
.shared .align 8 .b8 tile[64];
.func (.param .b32 result) helper (.param .align 4 .b8 first[8], .param .b32 second);
.visible .entry kernel (.param .u64 input)
{{
.reg .pred %p, %q;
.reg .b16 %h<9>;
.reg .b32 %r<9>;
.reg .b64 %d<9>;
.reg .f32 %f<9>;
.reg .f64 %g<9>; .reg .b128 %x<9>;
.local .align 8 .b8 depot[16];
.param .align 4 .b8 argument[8];
.param .b32 result;
begin:
targets: .branchtargets begin, end;
callees: .calltargets helper;
prototype: .callprototype (.param .b32 _) _ (.param .align 4 .b8 _[8], .param .b32 _);
.pragma \"nounroll\";
{{ }}

{instruction};
end:
ret;
}}
"
    )
}

/// Reads the kernel around this instruction.
pub(super) fn read(instruction: &str) -> Result<Module, ParseError> {
    parse(&kernel(instruction))
}

/// How each of these instructions is understood: written as Rust writes an `Op`, with names for registers and without what is off.
#[track_caller]
pub(super) fn check(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let module = read(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let Some(function) = module.functions.last() else { panic!("{text}: no function") };
        let instructions = function.body.iter().filter_map(|statement| match statement {
            Statement::Instruction(instruction) => Some(instruction),
            Statement::Label(_) => None,
        });
        let shown: Vec<String> = instructions.map(|instruction| show(function, instruction)).collect();
        assert_eq!(shown, [*expected, "Return"], "{text}");
    }
}

fn show(function: &Function, instruction: &Instruction) -> String {
    let mut shown = match instruction.guard {
        Some(guard) => format!("{:?} if {guard:?}", instruction.op),
        None => format!("{:?}", instruction.op),
    };
    for (index, register) in function.registers.iter().enumerate() {
        shown = shown.replace(&format!("RegisterId({index})"), &register.name);
        shown = shown.replace(&format!("Register({})", register.name), &register.name);
        shown = shown.replace(&format!("Some({})", register.name), &register.name);
    }
    let off = [
        "mode: FloatMode { rounding: NearestEven, flush: false, saturate: false, relu: false }, ",
        ", flush: false, saturate: false, relu: false",
        ", saturate: false, relu: false",
        ", relu: false",
        "carry: Carry { reads: false, writes: false }, ",
        "saturate: false, ",
        "flush: false, ",
        ", combine: None",
        ", second: None",
        ", truth: None",
        ", given: None",
        ", ignored: None",
        "order: Weak, ",
    ];
    off.iter().fold(shown, |shown, off| shown.replace(off, ""))
}
