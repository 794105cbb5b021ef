//! How the kernels of a plugin run on the CPU, and what would make them faster: for `steadfast doctor --kernels`.
//!
//! | file | what it holds |
//! |---|---|
//! | `texts` | the texts of PTX in a component's data |
//! | `advice` | an obstacle in words for whoever writes kernels |
//!
//! The texts are looked for in the component, and the plugin is not run: that would take a configuration and an input, and show the kernels of one job only. So
//! a text that a plugin puts together while it runs is not found; of those `steadfast run --profile` tells. A text is translated as the CPU device does it, and its
//! kernels are compiled by nobody: what is told is told in milliseconds.
//!
//! Deliberately absent: any word about GPUs, where other things make kernels fast.

mod advice;
mod texts;

use steadfast_ptx::kernel::{Form, Options};
use steadfast_ptx::module::{FunctionId, Module, Position};
use steadfast_ptx::parse::parse;
use steadfast_ptx::translate::translate;

pub use advice::{advice, of_one_core, of_width};

use self::texts::Found;

/// A text of PTX.
#[derive(Debug, Clone, PartialEq)]
pub struct Text {
    /// As it stands there. If it cannot be read, it ends with the line that is wrong.
    pub ptx: String,
    /// Which PTX it is in, and the GPU that it is for, if that can be read: `8.2`, `sm_75`.
    pub written_for: Option<(String, String)>,
    /// Its kernels in order, or why it does not become a module on the CPU.
    pub kernels: Result<Vec<Kernel>, Unreadable>,
}

/// Why a text does not become a module.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {}, column {}: {message}", place.line, place.column)]
pub struct Unreadable {
    /// Where.
    pub place: Position,
    /// What is wrong and, where there is something, what to do.
    pub message: String,
}

/// A kernel, and how the CPU runs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// How many threads at a time, and why.
    pub form: Form,
    /// Whether its blocks run in order, on one core.
    pub one_core: bool,
    /// The width of its blocks, if the text demands one.
    pub width: Option<u32>,
}

impl Text {
    /// The text of a file.
    #[must_use]
    pub fn read(ptx: &str) -> Self {
        Self::of(Found { ptx: ptx.to_owned(), read: parse(ptx) })
    }

    fn of(found: Found) -> Self {
        let written_for = found.read.as_ref().ok().map(|module| {
            let (major, minor) = module.version;
            (format!("{major}.{minor}"), module.target.clone())
        });
        let kernels = match found.read {
            Ok(module) => kernels(&module),
            Err(error) => Err(Unreadable { place: error.position, message: error.message }),
        };
        Self { ptx: found.ptx, written_for, kernels }
    }

    /// A line of the text, without blanks around it.
    #[must_use]
    pub fn line(&self, place: Position) -> &str {
        self.whole_line(place).trim()
    }

    /// What stands at a place, to the end of its line.
    #[must_use]
    pub fn code(&self, place: Position) -> &str {
        let line = self.whole_line(place);
        let start = line.char_indices().nth((place.column as usize).saturating_sub(1));
        line[start.map_or(line.len(), |(start, _)| start)..].trim()
    }

    fn whole_line(&self, place: Position) -> &str {
        self.ptx.lines().nth((place.line as usize).saturating_sub(1)).unwrap_or_default()
    }
}

/// The texts in a component, in order, each once.
pub fn in_component(bytes: &[u8]) -> wasmparser::Result<Vec<Text>> {
    Ok(texts::in_component(bytes)?.into_iter().map(Text::of).collect())
}

fn kernels(module: &Module) -> Result<Vec<Kernel>, Unreadable> {
    let memory_bytes = crate::device::cpu::ADDRESSES;
    let options = Options { memory_bytes, wide: true, canonical_nans: false, vectors: true };
    let functions = (0..).map(FunctionId).zip(&module.functions);
    let entries = functions.filter(|(_, function)| function.entry);
    let kernel = |(id, function): (FunctionId, &steadfast_ptx::module::Function)| {
        let kernel = translate(module, id, &options).map_err(|error| Unreadable {
            place: error.position,
            message: format!("kernel `{}`: {}", function.name, error.text),
        })?;
        let width = kernel.required_threads.map(|[x, ..]| x);
        Ok(Kernel { name: kernel.name, form: kernel.form, one_core: kernel.sequential, width })
    };
    entries.map(kernel).collect()
}

impl Kernel {
    /// What would make it faster, or what there is to know.
    #[must_use]
    pub fn advice(&self) -> Vec<&'static str> {
        let form = match self.form {
            Form::Vector => self.width.and_then(of_width),
            Form::Scalar(obstacle) => advice(&obstacle),
        };
        form.into_iter().chain(self.one_core.then(of_one_core)).collect()
    }

    /// Whether it runs as fast as its form can.
    #[must_use]
    pub fn is_fast(&self) -> bool {
        self.advice().is_empty()
    }
}
