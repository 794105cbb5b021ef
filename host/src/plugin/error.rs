//! Why a file does not become a guest.

use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

use super::inspect::FileKind;
use super::world::Problem;

/// Why a plugin could not be loaded or started. Only reads, folders and the engine may get better by themselves.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// The engine did not come up, or could not make room for a guest: the machine's fault, not the plugin's.
    #[error("the WebAssembly engine failed: {cause}")]
    Engine {
        /// What wasmtime says.
        cause: String,
    },
    /// The file cannot be read.
    #[error("cannot read the plugin `{}`: {source}{}", .path.display(), read_hint(.source))]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file is something else.
    #[error("`{}` is not a plugin: {}{}", .path.display(), .kind, hint_line(.kind.hint()))]
    NotAComponent {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        kind: FileKind,
    },
    /// A component, but not one that fits the world `steadfast:job/plugin`.
    #[error("the component `{}` is not a Steadfast plugin:{}", .path.display(), list(.problems))]
    World {
        /// The file.
        path: PathBuf,
        /// What does not fit, and what to do about it.
        problems: Vec<Problem>,
    },
    /// Another component is asked for.
    #[error("`{}` is the plugin {found}, and --plugin-digest asks for {wanted}", .path.display())]
    Pinned {
        /// The file.
        path: PathBuf,
        /// The digest that is asked for.
        wanted: String,
        /// The file's.
        found: String,
    },
    /// Compilation failed.
    #[error("cannot compile the plugin `{}`: {cause}", .path.display())]
    Compile {
        /// The file.
        path: PathBuf,
        /// What wasmtime says.
        cause: String,
    },
    /// A folder that the guest was to see cannot be opened.
    #[error("cannot open `{}` as the guest's {guest}: {cause}", .path.display())]
    Folder {
        /// The host's folder.
        path: PathBuf,
        /// The name that the guest knows it by.
        guest: &'static str,
        /// What the system says.
        cause: String,
    },
    /// The plugin uses a device, and there is none, or it does not open.
    #[error("cannot open a device for the plugin `{}`: {cause}", .path.display())]
    Device {
        /// The plugin's file.
        path: PathBuf,
        /// What went wrong.
        cause: String,
    },
    /// The guest did not come up: it is too large for its limit, or broke off while it was set up.
    #[error("cannot start the plugin `{}`: {cause}", .path.display())]
    Instantiate {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        cause: String,
    },
}

fn hint_line(hint: Option<&str>) -> String {
    hint.map(|hint| format!("\nhint: {hint}")).unwrap_or_default()
}

fn read_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "\nhint: build it with `cargo build --release --target wasm32-wasip2`",
        _ => "",
    }
}

fn list(problems: &[Problem]) -> String {
    let mut text = String::new();
    for problem in problems {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n  - {}{}", problem.what, hint_line(Some(&problem.hint)).replace('\n', "\n    "));
    }
    text
}
