//! Whole texts: the kernels, variables and their initialisers, blocks and names, limits.

use super::form::read;
use crate::module::{Function, LabelId, Module, Op, Position, Relocation, Space, Statement, Type};
use crate::parse::{MOST_BYTES, parse};

const HEADER: &str = ".version 8.2\n.target sm_75\n.address_size 64\n";

#[track_caller]
fn module(body: &str) -> Module {
    parse(&format!("{HEADER}{body}")).unwrap_or_else(|error| panic!("{error}"))
}

#[track_caller]
fn message(body: &str) -> String {
    parse(&format!("{HEADER}{body}")).err().map(|error| error.to_string()).unwrap_or_else(|| panic!("accepted"))
}

fn count(functions: &[Function], is: impl Fn(&Statement) -> bool) -> usize {
    functions.iter().flat_map(|function| &function.body).filter(|statement| is(statement)).count()
}

/// Kernels of the tests: name, text.
pub(super) const KERNELS: [(&str, &str); 9] = [
    ("adam", include_str!("../../../tests/kernels/adam.ptx")),
    ("half", include_str!("../../../tests/kernels/half.ptx")),
    ("heat", include_str!("../../../tests/kernels/heat.ptx")),
    ("matmul", include_str!("../../../tests/kernels/matmul.ptx")),
    ("misc", include_str!("../../../tests/kernels/misc.ptx")),
    ("reduce", include_str!("../../../tests/kernels/reduce.ptx")),
    ("saxpy", include_str!("../../../tests/kernels/saxpy.ptx")),
    ("softmax", include_str!("../../../tests/kernels/softmax.ptx")),
    ("tensor", include_str!("../../../tests/kernels/tensor.ptx")),
];

#[test]
fn kernels() {
    // Instructions and labels as a search for lines that end in `;` and begin with `$` finds them.
    let expected = KERNELS.map(|(name, text)| {
        let lines = || text.lines().map(str::trim);
        let ends = |line: &&str| line.ends_with(';') || line.starts_with("{ ") && line.ends_with(";}");
        let instructions = lines().filter(ends).filter(|line| !line.starts_with(['.', ')', ';'])).count();
        let call_ends = lines().filter(|line| *line == ");").count();
        let labels = lines().filter(|line| line.starts_with('$') && line.ends_with(':')).count();
        let entries = lines().filter(|line| line.contains(".entry ")).count();
        (name, entries, instructions + call_ends, labels)
    });
    let read = KERNELS.map(|(name, text)| {
        let module = parse(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let functions = &module.functions;
        let instructions = count(functions, |statement| matches!(statement, Statement::Instruction(_)));
        let labels = count(functions, |statement| matches!(statement, Statement::Label(_)));
        assert_eq!(labels, functions.iter().map(|function| function.labels as usize).sum::<usize>(), "{name}");
        (name, functions.iter().filter(|function| function.entry).count(), instructions, labels)
    });
    assert_eq!(read, expected);
}

#[test]
fn what_nvrtc_writes() {
    let (_, text) = KERNELS[4];
    let module = parse(text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((module.version, module.target.as_str()), ((8, 2), "sm_75"));
    let table = module.variables.iter().find(|variable| variable.name == "lut").map(|variable| {
        (variable.space, variable.element, variable.bytes, variable.initial.len(), variable.initial[6..8].to_vec())
    });
    assert_eq!(table, Some((Space::Const, Type::B8, 64, 64, vec![128, 63])));
    let by_value = module.functions.iter().find(|function| function.name == "byval");
    let parameters: Vec<_> = by_value
        .into_iter()
        .flat_map(|function| &function.parameters)
        .map(|parameter| (parameter.element, parameter.align, parameter.bytes, parameter.offset, parameter.array))
        .collect();
    assert_eq!(
        parameters,
        [
            (Type::B8, 4, 24, 0, true),
            (Type::U64, 8, 8, 24, false),
            (Type::U64, 8, 8, 32, false),
            (Type::F32, 4, 4, 40, false),
            (Type::U32, 4, 4, 44, false),
        ]
    );
    let declared: Vec<_> = module.functions.iter().filter(|function| function.declaration).collect();
    assert_eq!(declared.iter().map(|function| function.name.as_str()).collect::<Vec<_>>(), ["_Z6__dp4aiii"]);
}

#[test]
fn variables() {
    let module = module(
        ".global .align 8 .u16 a[4] = {1, -1, 0x12345};
         .visible .const .v2 .f32 b[2] = {{1.0, 0f40000000}, {-0.0}};
         .global .b32 c[][2] = {{1}, {2, 3}}, d;
         .weak .global .u64 e[3] = {a, a+4, generic(d)+-4};
         .global .align 8 .b8 f[17] = {0xFF(c), 0xFF00(c), 0xFF0000(c), 0xFF000000(c), 0xFF00000000(c),
             0xFF0000000000(c), 0xFF000000000000(c), 0xFF00000000000000(c),
             0xFF(generic(a)), 0xFF00(generic(a)), 0xFF0000(generic(a)), 0xFF000000(generic(a)), 7};
         .extern .shared .align 16 .b8 g[];
         .extern .global .s8 h;
         .common .global .s8 h = -2;",
    );
    let shown: Vec<_> = module
        .variables
        .iter()
        .map(|variable| {
            let Position { line, .. } = variable.position;
            (variable.name.as_str(), line, variable.align, variable.bytes, variable.initial.clone(), variable.external)
        })
        .collect();
    let mut late = vec![0; 12];
    late.push(7);
    assert_eq!(
        shown,
        [
            ("a", 4, 8, 8, vec![1, 0, 255, 255, 0x45, 0x23], false),
            ("b", 5, 8, 16, vec![0, 0, 128, 63, 0, 0, 0, 64, 0, 0, 0, 128], false),
            ("c", 6, 4, 16, vec![1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 3], false),
            ("d", 6, 4, 4, vec![], false),
            ("e", 7, 8, 24, vec![], false),
            ("f", 8, 8, 17, late, false),
            ("g", 11, 16, 0, vec![], true),
            ("h", 13, 1, 1, vec![254], false),
        ]
    );
    let relocation = |at, bytes, variable, offset, generic| Relocation { at, bytes, variable, offset, generic };
    assert_eq!(
        module.variables[4].relocations,
        [relocation(0, 8, 0, 0, false), relocation(8, 8, 0, 4, false), relocation(16, 8, 3, -4, true),]
    );
    assert_eq!(module.variables[5].relocations, [relocation(0, 8, 2, 0, false), relocation(8, 4, 0, 0, true)]);
}

#[test]
fn blocks() {
    let module = module(
        ".entry f() {
            .reg .b32 %r<4294967295>, x;
            mov.b32 %r4294967294, x;
            L: bra M;
            {
                .reg .b64 %r<2>;
                .reg .pred x;
                mov.b64 %r1, 1; mov.b32 %r3, 2; mov.pred x, 1;
                bra L; M: bra M; { bra N; }
                N:
            }
            mov.b32 %r1, x;
            M:
        }",
    );
    let function = &module.functions[0];
    let registers: Vec<_> = function.registers.iter().map(|register| (register.name.as_str(), register.ty)).collect();
    assert_eq!(
        registers,
        [
            ("x", Type::B32),
            ("%r4294967294", Type::B32),
            ("x", Type::Pred),
            ("%r1", Type::B64),
            ("%r3", Type::B32),
            ("%r1", Type::B32),
        ]
    );
    let labels: Vec<_> = function
        .body
        .iter()
        .filter_map(|statement| match statement {
            Statement::Label(LabelId(label)) => Some(("stands", *label)),
            Statement::Instruction(instruction) => match instruction.op {
                Op::Branch { target: LabelId(target), .. } => Some(("bra", target)),
                _ => None,
            },
        })
        .collect();
    let (outer_l, outer_m, inner_m, inner_n) = (0, 1, 2, 3);
    assert_eq!(
        labels,
        [
            ("stands", outer_l),
            ("bra", outer_m),
            ("bra", outer_l),
            ("stands", inner_m),
            ("bra", inner_m),
            ("bra", inner_n),
            ("stands", inner_n),
            ("stands", outer_m),
        ]
    );
}

#[test]
fn functions() {
    let module = module(
        ".func (.reg .f32 r) one (.reg .b32 a, .param .align 8 .b8 b[12], .param .u64 .ptr .global .align 4 c) .noreturn;
         .func (.reg .f32 r) one (.reg .b32 a, .param .align 8 .b8 b[12], .param .u64 .ptr .global .align 4 c) { mov.b32 r, a; ret; }
         .visible .entry two() .reqntid 8, 4 .minnctapersm 2 .maxnreg 32 .pragma \"x\"; { ret; }
         .entry three() .maxntid 256 { ret; }",
    );
    let [one, two, three] = module.functions.as_slice() else { panic!("{module:?}") };
    assert!(!one.declaration && !one.entry);
    assert_eq!(one.returns[0].register.map(|register| one.ty(register)), Some(Type::F32));
    assert_eq!(one.parameters.iter().map(|parameter| parameter.offset).collect::<Vec<_>>(), [0, 8, 24]);
    assert_eq!((two.max_threads, two.required_threads), (Some([8, 4, 1]), Some([8, 4, 1])));
    assert_eq!((three.max_threads, three.required_threads), (Some([256, 1, 1]), None));
}

/// What compilers write for a debugger is passed, with letters of any language in comments and names of files.
#[test]
fn debug_information() {
    let module = module(
        "// größer
         .file 1 \"/home/josé/x.cu\", 1700000000, 12
         .section .debug_abbrev { .b8 1, 2; .b32 .debug_info+4; { } }
         .entry f() {
         /* ä\n é */ .loc 1 5 1, function_name $L__info_string0, inlined_at 1 7 3
         $L__tmp0: .loc 1 6 2
         /* ü */ ret; }",
    );
    let [Statement::Label(_), Statement::Instruction(instruction)] = module.functions[0].body.as_slice() else {
        panic!("{module:?}")
    };
    assert_eq!(instruction.position, Position { line: 11, column: 18 });
}

/// Instructions cannot repeat a list until the module is far larger than its text.
#[test]
fn lists_are_not_multiplied() {
    let targets = vec!["L"; 5000].join(",");
    let body = format!(".entry f() {{ .reg .b32 r; L: t: .branchtargets {targets}; {} }}", "brx.idx r, t; ".repeat(50));
    assert_eq!(
        message(&body),
        "line 4, column 10088: the lists of targets that instructions name are longer in all than the text itself"
    );
    let functions: String = (0..2000).map(|index| format!(".func f{index}();\n")).collect();
    let calls = "call d, p; ".repeat(1000);
    let body = format!("{functions}.entry f() {{ .reg .b64 d; p: .callprototype _; {calls} }}");
    assert_eq!(
        message(&body),
        "line 2004, column 257: indirect calls may reach too many functions in all: list them with `.calltargets`"
    );
}

#[test]
fn limits() {
    let long = " ".repeat(MOST_BYTES + 1);
    let expected = "line 1, column 1: the text has 16777217 bytes, and 16777216 are the most that are read";
    assert_eq!(parse(&long).map_err(|error| error.to_string()), Err(expected.to_owned()));
    assert_eq!(message("// a\n é\0"), "line 5, column 3: there is a NUL byte: PTX is text");
    let deep = format!(".entry f() {}", "{".repeat(1_000_000));
    assert_eq!(message(&deep), "line 4, column 141: blocks are nested more than 128 deep");
    let braces = format!(".global .b32 x[1][1] = {}", "{".repeat(1_000_000));
    assert_eq!(message(&braces), "line 4, column 26: expected a value, but `{` stands there");
    let name = "x".repeat(100_000);
    let shown = format!(
        "line 4, column 1: expected a directive such as `.visible .entry`, but `{}…` stands there",
        &name[..100]
    );
    assert_eq!(message(&name), shown);
}

/// Texts whose cost would show if it grew with the square of their length: they would run for hours.
#[test]
fn large_texts() {
    let lines = 100_000;
    let labels: String = (0..lines).map(|index| format!("{{ L{index}: bra M{index}; }} M{index}:\n")).collect();
    let module = module(&format!(".entry f() {{ {} {labels} {} }}", "{".repeat(120), "}".repeat(120)));
    assert_eq!(module.functions[0].labels, 2 * lines);
    let one_line = "add.s32 %r1, %r2, 3; ".repeat(lines as usize);
    assert!(read(&one_line).is_ok());
    let open = "{ .reg .b32 y<9>; ".repeat(100) + &"mov.b32 y1, x1; ".repeat(lines as usize) + &"}".repeat(100);
    assert!(read(&format!(".reg .b32 x<9>; {open}")).is_ok());
    assert!(parse(&format!("{HEADER}{}", "(".repeat(1_000_000))).is_err());
    assert!(parse(&format!("{HEADER}.entry f() {{ mov.b32 {}", "(".repeat(1_000_000))).is_err());
}

#[test]
fn variables_know_whether_anything_names_them() {
    let read = module(
        ".global .u32 used; .global .u32 idle; .global .u32 pointed; .global .u64 table = pointed;
         .entry f() { .reg .b32 %r; ld.global.u32 %r, [used]; { .shared .b32 idle; ld.shared.u32 %r, [idle]; } }",
    );
    let named = read.variables.iter().filter(|variable| variable.named).map(|variable| variable.name.as_str());
    assert_eq!(named.collect::<Vec<_>>(), ["used", "pointed"]);
}
