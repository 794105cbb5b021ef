//! A random kernel as a tree of statements: what can be printed as PTX and made smaller.
//!
//! Every register has a value from the start, so each statement can be left out and the rest still is a kernel.

use std::fmt::Write;

/// Where nested statements keep their predicate, counter and mask: registers `%c`, `%n` and `%m` with this number.
pub(super) type Depth = usize;

/// The deepest that statements are nested.
pub(super) const DEEPEST: Depth = 4;

#[derive(Clone, Debug)]
pub(super) enum Statement {
    /// Instructions in a row. `SKIP` stands for a label behind them.
    Lines(Vec<String>),
    /// `condition` sets `%c` of the depth.
    If { depth: Depth, condition: String, masks: Masks, then: Vec<Statement>, otherwise: Vec<Statement> },
    /// `count` sets `%n` of the depth.
    Loop { depth: Depth, count: String, masks: Masks, body: Vec<Statement> },
    /// `brx.idx` by `index`, a register, taken modulo the number of arms.
    Switch { depth: Depth, index: String, arms: Vec<Vec<Statement>> },
    /// A loop with two entries: which one, and how often it goes round, is in the registers.
    Tangle { depth: Depth, entry: String, rounds: String, first: Vec<Statement>, second: Vec<Statement> },
    /// Threads for which the predicate holds end here; the others make a new mask of who is left.
    Leave { predicate: String },
}

/// Whether the lanes that take a branch are known to one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Masks {
    /// All threads of the block take the same way; the mask stays what it is.
    Uniform(Depth),
    /// From the mask of this depth the lanes that take the branch are counted.
    Tracked(Depth),
    /// Nobody knows.
    Unknown,
}

#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) functions: Vec<Vec<Statement>>,
    pub(super) body: Vec<Statement>,
    /// Whether its threads know nothing of one another, and have no memory of their own.
    pub(super) alone: bool,
}

/// Text with labels that are its own.
struct Printer {
    text: String,
    labels: usize,
    alone: bool,
}

impl Printer {
    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    fn statements(&mut self, statements: &[Statement]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Lines(lines) => {
                let skip = self.label();
                for line in lines {
                    self.line(&line.replace("SKIP", &skip));
                }
            }
            Statement::If { depth, condition, masks, then, otherwise } => {
                self.branch(*depth, condition, *masks, then, otherwise);
            }
            Statement::Loop { depth, count, masks, body } => self.repeat(*depth, count, *masks, body),
            Statement::Switch { depth, index, arms } => self.switch(*depth, index, arms),
            Statement::Tangle { depth, entry, rounds, first, second } => {
                let (one, two) = (self.label(), self.label());
                self.line(&format!("and.b32 %n{depth}, {rounds}, 3;\nsetp.lt.s32 %c{depth}, {entry}, 0;"));
                self.line(&format!("@%c{depth} bra {two};\n{one}:"));
                self.statements(first);
                self.line(&format!("{two}:"));
                self.statements(second);
                self.line(&format!(
                    "sub.u32 %n{depth}, %n{depth}, 1;\nsetp.gt.s32 %c{depth}, %n{depth}, 0;\n@%c{depth} bra {one};"
                ));
            }
            Statement::Leave { predicate } if self.alone => self.line(&format!("@{predicate} exit;")),
            Statement::Leave { predicate } => {
                self.line(&format!("@{predicate} exit;\nvote.sync.ballot.b32 %m0, %true, -1;"));
            }
        }
    }

    fn branch(&mut self, depth: Depth, condition: &str, masks: Masks, then: &[Statement], otherwise: &[Statement]) {
        let (other, end) = (self.label(), self.label());
        self.line(condition);
        match masks {
            Masks::Uniform(above) => self.line(&format!("mov.b32 %m{depth}, %m{above};")),
            Masks::Tracked(above) => self.line(&format!("vote.sync.ballot.b32 %m{depth}, %c{depth}, %m{above};")),
            Masks::Unknown => {}
        }
        self.line(&format!("@!%c{depth} bra {other};"));
        self.statements(then);
        if !otherwise.is_empty() {
            self.line(&format!("bra {end};"));
        }
        self.line(&format!("{other}:"));
        if !otherwise.is_empty() {
            if let Masks::Tracked(above) = masks {
                self.line(&format!("xor.b32 %m{depth}, %m{depth}, %m{above};"));
            }
            self.statements(otherwise);
            self.line(&format!("{end}:"));
        }
    }

    fn repeat(&mut self, depth: Depth, count: &str, masks: Masks, body: &[Statement]) {
        let (again, end) = (self.label(), self.label());
        self.line(count);
        if let Masks::Uniform(above) | Masks::Tracked(above) = masks {
            self.line(&format!("mov.b32 %m{depth}, %m{above};"));
        }
        self.line(&format!("{again}:\nsetp.ne.u32 %c{depth}, %n{depth}, 0;"));
        if let Masks::Tracked(_) = masks {
            self.line(&format!(
                "vote.sync.ballot.b32 %t, %c{depth}, %m{depth};\n@!%c{depth} bra {end};\nmov.b32 %m{depth}, %t;"
            ));
        } else {
            self.line(&format!("@!%c{depth} bra {end};"));
        }
        self.statements(body);
        self.line(&format!("sub.u32 %n{depth}, %n{depth}, 1;\nbra {again};\n{end}:"));
    }

    fn switch(&mut self, depth: Depth, index: &str, arms: &[Vec<Statement>]) {
        if arms.is_empty() {
            return;
        }
        let (table, end) = (self.label(), self.label());
        let targets: Vec<String> = arms.iter().map(|_| self.label()).collect();
        self.line(&format!(
            "{table}: .branchtargets {};\nrem.u32 %n{depth}, {index}, {};",
            targets.join(", "),
            arms.len()
        ));
        self.line(&format!("brx.idx %n{depth}, {table};"));
        for (arm, target) in arms.iter().zip(&targets) {
            self.line(&format!("{target}:"));
            self.statements(arm);
            self.line(&format!("bra {end};"));
        }
        self.line(&format!("{end}:"));
    }
}

/// Registers by the letter of their names: how many, and of which type.
pub(super) const POOLS: [(char, usize, &str); 6] =
    [('r', 6, "b32"), ('d', 3, "b64"), ('f', 3, "f32"), ('g', 2, "f64"), ('h', 3, "b16"), ('p', 4, "pred")];
/// Bytes of results of a thread.
pub(super) const RESULTS: u64 = 192;
/// Bytes of memory that belongs to a thread.
pub(super) const OWN: u64 = 64;
/// The most threads in a block.
pub(super) const THREADS: u64 = 1024;
/// Accumulators in shared memory, and as many in global memory.
pub(super) const ACCUMULATORS: u64 = 8;

impl Program {
    pub(super) fn print(&self) -> String {
        let mut printer = Printer { text: String::from(HEAD), labels: 0, alone: self.alone };
        for (index, body) in self.functions.iter().enumerate() {
            printer.line(&format!(
                ".func (.param .b32 result) function{index}(.param .b32 mask, .param .b32 x, .param .b64 y, .param .f32 z)\n{{"
            ));
            printer.line(&registers());
            printer.line(".local .align 16 .b8 array[64];");
            printer.line(FUNCTION_START);
            printer.statements(body);
            printer.line("xor.b32 %r0, %r0, %r1;\nst.param.b32 [result], %r0;\nret;\n}");
        }
        printer.line(ENTRY);
        printer.line(&registers());
        printer.line(START);
        if !self.alone {
            printer.line(".local .align 16 .b8 array[64];");
            printer.line(TOGETHER);
        }
        printer.statements(&self.body);
        printer.text += &end();
        printer.text
    }

    /// The program without one of its statements, for each of them; those that hold others also replaced by what they hold.
    pub(super) fn smaller(&self) -> Vec<Program> {
        let mut all: Vec<Program> =
            without_one(&self.body).into_iter().map(|body| Program { body, ..self.clone() }).collect();
        for index in 0..self.functions.len() {
            for body in without_one(&self.functions[index]) {
                let mut program = self.clone();
                program.functions[index] = body;
                all.push(program);
            }
        }
        all
    }
}

fn without_one(statements: &[Statement]) -> Vec<Vec<Statement>> {
    let mut all = Vec::new();
    // Halves first: most of a kernel has nothing to do with what is wrong.
    if statements.len() > 3 {
        let half = statements.len() / 2;
        all.extend([statements[..half].to_vec(), statements[half..].to_vec()]);
    }
    for (index, statement) in statements.iter().enumerate() {
        let with = |replacement: &[Statement]| [&statements[..index], replacement, &statements[index + 1..]].concat();
        all.push(with(&[]));
        for smaller in smaller_inside(statement) {
            all.push(with(&[smaller]));
        }
    }
    all
}

/// The statement with one of those that it holds left out.
fn smaller_inside(statement: &Statement) -> Vec<Statement> {
    let mut all = Vec::new();
    match statement {
        Statement::Lines(_) | Statement::Leave { .. } => {}
        Statement::If { depth, condition, masks, then, otherwise } => {
            let make = |then, otherwise| Statement::If {
                depth: *depth,
                condition: condition.clone(),
                masks: *masks,
                then,
                otherwise,
            };
            all.extend(without_one(then).into_iter().map(|then| make(then, otherwise.clone())));
            all.extend(without_one(otherwise).into_iter().map(|otherwise| make(then.clone(), otherwise)));
        }
        Statement::Loop { depth, count, masks, body } => {
            all.extend(without_one(body).into_iter().map(|body| Statement::Loop {
                depth: *depth,
                count: count.clone(),
                masks: *masks,
                body,
            }));
        }
        Statement::Switch { depth, index, arms } => {
            for (at, arm) in arms.iter().enumerate() {
                for smaller in without_one(arm) {
                    let mut arms = arms.clone();
                    arms[at] = smaller;
                    all.push(Statement::Switch { depth: *depth, index: index.clone(), arms });
                }
            }
        }
        Statement::Tangle { depth, entry, rounds, first, second } => {
            let make = |first, second| Statement::Tangle {
                depth: *depth,
                entry: entry.clone(),
                rounds: rounds.clone(),
                first,
                second,
            };
            all.extend(without_one(first).into_iter().map(|first| make(first, second.clone())));
            all.extend(without_one(second).into_iter().map(|second| make(first.clone(), second)));
        }
    }
    all
}

fn registers() -> String {
    let mut text = String::from(
        ".reg .b32 %t<4>, %t, %id, %lane, %size, %gid;\n.reg .b64 %a<4>, %in, %own, %out, %acc;\n.reg .f32 %e<4>;\n.reg .pred %true, %q;\n",
    );
    for (name, count, ty) in POOLS {
        writeln!(text, ".reg .{ty} %{name}<{count}>;").unwrap();
    }
    write!(text, ".reg .b32 %m<{0}>, %n<{0}>, %u<2>;\n.reg .pred %c<{0}>;", DEEPEST + 1).unwrap();
    text
}

/// Stores everything that a thread has.
fn end() -> String {
    let mut text = String::new();
    let mut at = 0;
    for (name, count, ty) in POOLS {
        for index in 0..count {
            match ty {
                "pred" => write!(text, "selp.u32 %t, 1, 0, %{name}{index};\nst.global.u8 [%out+{at}], %t;\n").unwrap(),
                ty => writeln!(text, "st.global.{ty} [%out+{at}], %{name}{index};").unwrap(),
            }
            at += 8;
        }
    }
    text + "ret;\n}\n"
}

const HEAD: &str = "\
.version 8.2
.target sm_90
.address_size 64
.shared .align 8 .b8 slots[8192];
.shared .align 16 .b32 sums[8];
.const .align 4 .b32 table[8] = {1, 0x80000000, 3, 0xFFFFFFFF, 5, 0x7FFFFFFF, 0x10001, 42};
";

const FUNCTION_START: &str = "\
ld.param.b32 %m0, [mask];
ld.param.b32 %r0, [x];
ld.param.b64 %d0, [y];
ld.param.f32 %f0, [z];
mov.u32 %id, %tid.x;
mov.u32 %size, %ntid.x;
mov.u32 %t, %tid.y;
mad.lo.u32 %id, %t, %size, %id;
mov.u32 %lane, %laneid;
setp.eq.u32 %true, 0, 0;
not.b32 %r1, %r0;
mov.b32 %r2, 77;
shr.u32 %r3, %r0, 3;
mov.b32 %r4, %id;
mov.b32 %r5, 0xF0F0;
mov.u32 %u0, %ctaid.x;
mov.u32 %u1, 3;
not.b64 %d1, %d0;
cvt.u64.u32 %d2, %r0;
neg.f32 %f1, %f0;
mov.f32 %f2, 0f3FC00000;
cvt.f64.f32 %g0, %f0;
mov.f64 %g1, 0dC008000000000000;
cvt.u16.u32 %h0, %r0;
mov.b16 %h1, 0x3C00;
mov.b16 %h2, 0xC200;
setp.lt.s32 %p0, %r0, 0;
setp.gt.f32 %p1, %f0, 0f00000000;
not.pred %p2, %p0;
xor.pred %p3, %p0, %p1;
mov.u64 %a0, array;
st.local.v2.b64 [%a0], {%d0, %d1};
st.local.v2.b64 [%a0+16], {%d1, %d2};
st.local.v2.b64 [%a0+32], {%d2, %d0};
st.local.v2.b64 [%a0+48], {%d1, %d0};";

const ENTRY: &str = "\
.visible .entry kernel(
.param .u64 parameter_in, .param .u64 parameter_own, .param .u64 parameter_out, .param .u64 parameter_acc,
.param .u32 scalar, .param .align 4 .b8 structure[12])
{";

const START: &str = "\
ld.param.u64 %in, [parameter_in];
cvta.to.global.u64 %in, %in;
ld.param.u64 %own, [parameter_own];
ld.param.u64 %out, [parameter_out];
ld.param.u64 %acc, [parameter_acc];
mov.u32 %id, %tid.x;
mov.u32 %size, %ntid.x;
mov.u32 %t, %tid.y;
mad.lo.u32 %id, %t, %size, %id;
mov.u32 %t, %ntid.y;
mul.lo.u32 %size, %size, %t;
mov.u32 %u0, %ctaid.x;
mad.lo.u32 %gid, %u0, %size, %id;
mov.u32 %lane, %laneid;
ld.param.u32 %u1, [structure+4];
mul.wide.u32 %a0, %gid, 64;
add.u64 %own, %own, %a0;
mul.wide.u32 %a0, %gid, 192;
add.u64 %out, %out, %a0;
and.b32 %t, %gid, 127;
mul.wide.u32 %a0, %t, 32;
add.u64 %a0, %in, %a0;
ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%a0];
ld.global.nc.b64 %d0, [%a0+16];
ld.global.b64 %d1, [%a0+24];
ld.param.u32 %r4, [scalar];
ld.param.u32 %r5, [structure];
ld.param.b32 %t, [structure+8];
cvt.s64.s32 %d2, %r4;
ld.global.f32 %f0, [%a0+4];
ld.global.f32 %f1, [%a0+20];
cvt.rn.f32.s32 %f2, %r1;
ld.global.f64 %g0, [%a0+8];
cvt.f64.f32 %g1, %f2;
cvt.u16.u32 %h0, %r2;
ld.global.b16 %h1, [%a0+18];
cvt.rn.f16.f32 %h2, %f1;
setp.lt.s32 %p0, %r0, %r1;
setp.gt.u32 %p1, %r2, %r3;
setp.ltu.f32 %p2, %f0, %f1;
setp.eq.u32 %p3, %lane, 3;
setp.eq.u32 %true, 0, 0;";

/// What threads that know of one another begin with.
const TOGETHER: &str = "\
mov.u64 %a0, slots;
mul.wide.u32 %a1, %id, 8;
add.u64 %a0, %a0, %a1;
st.shared.b64 [%a0], %d0;
setp.ne.u32 %q, %id, 0;
@!%q st.shared.v2.b64 [sums], {0, -1};
@!%q st.shared.v2.b64 [sums+16], {77, 0};
mov.u64 %a0, array;
st.local.v2.b64 [%a0], {%d0, %d1};
st.local.v4.b32 [%a0+16], {%r0, %r1, %r2, %t};
st.local.v2.f64 [%a0+32], {%g0, %g1};
st.local.v2.b64 [%a0+48], {%d1, %d0};
bar.sync 0;
vote.sync.ballot.b32 %m0, %true, -1;";
