//! The typed form of a PTX module: names are resolved, operands checked against their instruction, immediates in the bits of the
//! operand's type. What the parser writes; the translation and the tests' interpreter read it.
//!
//! Serialised, a module is an outline: all that is declared, without what functions do. That is what is still needed of it by whoever has
//! the compiled code.

mod op;
mod types;

use serde::{Deserialize, Serialize};

pub use op::*;
pub use types::*;

/// A PTX module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Module {
    /// `.version`: major and minor.
    pub version: (u32, u32),
    /// `.target`, as written: `sm_75`.
    pub target: String,
    /// Variables declared outside functions, in order: `.global`, `.const` and `.shared`.
    pub variables: Vec<Variable>,
    /// Entries and device functions, in order.
    pub functions: Vec<Function>,
}

/// An index into [`Module::functions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(pub u32);
/// An index into [`Function::registers`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RegisterId(pub u32);
/// A label of one function; each id below [`Function::labels`] stands exactly once in its body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelId(pub u32);

/// A variable in memory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Variable {
    /// As written.
    pub name: String,
    /// `Global`, `Const` or `Shared` for a module's; `Shared`, `Local` or `Param` (an argument of a call, or a value that it returns) for a
    /// function's.
    pub space: Space,
    /// Of one element.
    pub element: Type,
    /// In bytes, a power of two.
    pub align: u32,
    /// Bytes in all. 0 for `.extern .shared x[]`, which is the dynamic shared memory.
    pub bytes: u64,
    /// The first bytes; what follows them is 0. Empty: all is.
    pub initial: Vec<u8>,
    /// Places in `initial` that hold the address of something: 8 bytes, or 4 of its lower half.
    pub relocations: Vec<Relocation>,
    /// Whether it is declared with `.extern`.
    pub external: bool,
    /// Of a module's variable: whether code or an initialiser names it. No kernel can mean to change one that nothing names.
    pub named: bool,
    /// Of its name.
    pub position: Position,
}

/// An initialiser that is an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relocation {
    /// Offset in the variable.
    pub at: u64,
    /// Bytes written: 4 or 8.
    pub bytes: u32,
    /// A variable of the module, by its index.
    pub variable: u32,
    /// Added to its address.
    pub offset: i64,
    /// `generic(x)`: as a generic address.
    pub generic: bool,
}

/// An entry point or a device function.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// As written.
    pub name: String,
    /// Whether it can be launched.
    pub entry: bool,
    /// What it returns: at most one in practice. Empty for an entry.
    pub returns: Vec<Parameter>,
    /// In order.
    pub parameters: Vec<Parameter>,
    /// All that its body declares.
    #[serde(skip)]
    pub registers: Vec<Register>,
    /// Variables that its body declares, in order.
    pub variables: Vec<Variable>,
    /// How many labels it has.
    #[serde(skip)]
    pub labels: u32,
    /// Empty and `declaration` set for `.extern .func` and prototypes that are never defined; calling one is the translation's error.
    #[serde(skip)]
    pub body: Vec<Statement>,
    /// Whether there is no body.
    pub declaration: bool,
    /// `.maxntid` or `.reqntid`: the most threads in a block, by axis.
    pub max_threads: Option<[u32; 3]>,
    /// `.reqntid`: exactly so many.
    pub required_threads: Option<[u32; 3]>,
    /// Of its name.
    pub position: Position,
}

/// A parameter of a function, or what it returns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// As written.
    pub name: String,
    /// Of one element.
    pub element: Type,
    /// In bytes.
    pub align: u32,
    /// Bytes in all; more than one element for a structure by value.
    pub bytes: u32,
    /// Where it stands in the parameter block: each parameter at the next multiple of its alignment, as CUDA lays them out.
    pub offset: u32,
    /// Whether it is declared as an array (`.b8 p[24]`): a structure by value.
    pub array: bool,
    /// For a device function's parameter passed in a register (`.reg .u32 %a`): that register.
    pub register: Option<RegisterId>,
}

/// A virtual register.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Register {
    /// As written; `%r` of `.reg .b32 %r<9>` gives `%r0` to `%r8`. Only registers that are used are listed.
    pub name: String,
    /// Its type.
    pub ty: Type,
}

/// A line of a body.
#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    /// The place of a label.
    Label(LabelId),
    /// An instruction.
    Instruction(Instruction),
}

/// An instruction.
#[derive(Debug, Clone, PartialEq)]
pub struct Instruction {
    /// `@%p`: executed only where the register is true.
    pub guard: Option<Predicate>,
    /// What it does.
    pub op: Op,
    /// Of its first character.
    pub position: Position,
}

impl Function {
    /// The type of a register.
    pub fn ty(&self, register: RegisterId) -> Type {
        self.registers[register.0 as usize].ty
    }
}
