//! What a file is, told from its bytes alone: for `steadfast plugin inspect`, and before anything is compiled.

use std::fmt;

use sha2::{Digest, Sha256};
use wasmparser::component_types::ComponentEntityType;
use wasmparser::{Encoding, Parser, Payload, Validator, WasmFeatures};

use super::versions::{self, StateVersions};
use super::world::{self, Problem};

/// What a file turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileKind {
    /// A WebAssembly component.
    Component,
    /// A core WebAssembly module.
    CoreModule,
    /// WebAssembly in its text form.
    Text,
    /// A component that some engine compiled already.
    Precompiled,
    /// No bytes at all.
    Empty,
    /// A folder.
    Folder,
    /// A component whose end is missing.
    Truncated,
    /// A component that breaks the rules; with the first one.
    Invalid(String),
    /// Something else; with what there is to say.
    Unknown(String),
}

impl FileKind {
    /// What to do about it, unless it is a component.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Component => None,
            Self::CoreModule => Some(
                "build it as a component: `cargo build --release --target wasm32-wasip2`; a core module of another language \
                 becomes one with `wasm-tools component new`",
            ),
            Self::Text => Some("turn it into its binary form: `wasm-tools parse plugin.wat -o plugin.wasm`"),
            Self::Precompiled => {
                Some("give the .wasm file that it was compiled from; compiled code is cached by itself")
            }
            Self::Empty | Self::Truncated => Some("copy or build the file again"),
            Self::Folder => Some("name the .wasm file in it, for example target/wasm32-wasip2/release/NAME.wasm"),
            Self::Invalid(_) => Some("build it again with current tools; `wasm-tools validate` says more"),
            Self::Unknown(_) => Some(
                "a plugin is a WebAssembly component, a file that usually ends in .wasm; in Rust, \
                 `cargo build --release --target wasm32-wasip2` makes one",
            ),
        }
    }
}

impl fmt::Display for FileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Component => f.write_str("a WebAssembly component"),
            Self::CoreModule => f.write_str("a core WebAssembly module, not a component"),
            Self::Text => f.write_str("WebAssembly text, not a binary"),
            Self::Precompiled => f.write_str("an already compiled component"),
            Self::Empty => f.write_str("an empty file"),
            Self::Folder => f.write_str("a folder"),
            Self::Truncated => f.write_str("a truncated WebAssembly component"),
            Self::Invalid(cause) => write!(f, "a WebAssembly component that is not valid: {cause}"),
            Self::Unknown(what) => f.write_str(what),
        }
    }
}

/// One export or import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// As the component spells it, such as `wasi:io/streams@0.2.6`.
    pub name: String,
    /// The functions in it; empty if it is a function itself.
    pub functions: Vec<String>,
}

/// One memory of a core module inside the component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryFact {
    /// What it begins with, in bytes.
    pub initial: u64,
    /// The most that it may grow to, if the module says so.
    pub maximum: Option<u64>,
}

/// All that can be told about a file without running it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// What it is. The lists are empty unless it is a component.
    pub kind: FileKind,
    /// Its size.
    pub bytes: u64,
    /// `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    /// What it offers.
    pub exports: Vec<Interface>,
    /// What it needs.
    pub imports: Vec<Interface>,
    /// The memories of its core modules.
    pub memories: Vec<MemoryFact>,
    /// How many core modules are in it.
    pub core_modules: usize,
    /// Which state it writes and reads, if it says so in a way that can be understood.
    pub state_versions: Option<StateVersions>,
    /// What is wrong with what it says about that. No problem: `restore` decides, as it does for a plugin that says nothing.
    pub state_versions_unclear: Option<String>,
    /// Why it is no plugin, and how to make it one; empty if it is one.
    pub problems: Vec<Problem>,
}

/// Looks at a file's bytes. Never fails: what it isn't stands in the result.
pub fn inspect(bytes: &[u8]) -> Inspection {
    let mut inspection = Inspection {
        kind: recognise(bytes),
        bytes: bytes.len() as u64,
        digest: digest(bytes),
        exports: Vec::new(),
        imports: Vec::new(),
        memories: Vec::new(),
        core_modules: 0,
        state_versions: None,
        state_versions_unclear: None,
        problems: Vec::new(),
    };
    if inspection.kind == FileKind::Component
        && let Err(error) = fill(&mut inspection, bytes)
    {
        inspection.kind = match error.message().contains("unexpected end") {
            true => FileKind::Truncated,
            false => FileKind::Invalid(format!("{} (at byte {})", error.message(), error.offset())),
        };
    }
    inspection.problems = match inspection.kind {
        FileKind::Component => world::problems(&inspection),
        _ => vec![Problem {
            what: format!("this is {}", inspection.kind),
            hint: inspection.kind.hint().unwrap_or_default().to_owned(),
        }],
    };
    inspection
}

/// Whether a component imports the device, told from its imports alone: without a look at whether it is valid.
pub fn imports_device(bytes: &[u8]) -> bool {
    let sections = Parser::new(0).parse_all(bytes).map_while(Result::ok);
    let imports = sections.filter_map(|section| match section {
        Payload::ComponentImportSection(imports) => Some(imports.into_iter().map_while(Result::ok)),
        _ => None,
    });
    world::uses_device(imports.flatten().map(|import| import.name.name))
}

/// A digest's beginning, for people.
pub fn short(digest: &str) -> &str {
    digest.get(..19).unwrap_or(digest)
}

/// The digest by which a component is known: `sha256:` and 64 hexadecimal digits.
pub fn digest(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(bytes).iter().fold("sha256:".to_owned(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn recognise(bytes: &[u8]) -> FileKind {
    match bytes {
        [] => FileKind::Empty,
        [b'\0', b'a', b's', b'm', _, _, 0, 0, ..] => FileKind::CoreModule,
        [b'\0', b'a', b's', b'm', _, _, 1, 0, ..] => FileKind::Component,
        [b'\0', b'a', b's', b'm', ..] if bytes.len() >= 8 => {
            FileKind::Unknown("an unknown kind of WebAssembly".to_owned())
        }
        _ if b"\0asm".starts_with(bytes) || bytes.starts_with(b"\0asm") => FileKind::Truncated,
        [0x7f, b'E', b'L', b'F', ..] => match contains(bytes, b".wasmtime") {
            true => FileKind::Precompiled,
            false => FileKind::Unknown("a native program".to_owned()),
        },
        [0x1f, 0x8b, ..] | [b'P', b'K', 3, 4, ..] | [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            FileKind::Unknown("a compressed file".to_owned())
        }
        _ if is_text_form(bytes) => FileKind::Text,
        _ => FileKind::Unknown("not WebAssembly".to_owned()),
    }
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

/// Comments and white space, then `(component` or `(module`.
fn is_text_form(bytes: &[u8]) -> bool {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]);
    let code = start.lines().map(str::trim_start).find(|line| !line.is_empty() && !line.starts_with(";;"));
    code.is_some_and(|line| line.starts_with("(component") || line.starts_with("(module"))
}

fn fill(inspection: &mut Inspection, bytes: &[u8]) -> wasmparser::Result<()> {
    let types = Validator::new_with_features(WasmFeatures::all()).validate_all(bytes)?;
    let types = types.as_ref();
    let functions = |item: Option<&wasmparser::component_types::ComponentItem>| match item.map(|item| item.ty) {
        Some(ComponentEntityType::Instance(id)) => {
            let items = types[id].exports.iter();
            items
                .filter(|(_, item)| matches!(item.ty, ComponentEntityType::Func(_)))
                .map(|(name, _)| name.clone())
                .collect()
        }
        _ => Vec::new(),
    };
    let mut depth = 0_usize;
    let mut said = Vec::new();
    for payload in Parser::new(0).parse_all(bytes) {
        match payload? {
            Payload::Version { encoding, .. } => {
                depth += 1;
                inspection.core_modules += usize::from(encoding == Encoding::Module);
            }
            Payload::End(_) => depth = depth.saturating_sub(1),
            Payload::ComponentImportSection(section) if depth == 1 => {
                for import in section {
                    let name = import?.name.name;
                    let functions = functions(types.component_item_for_import(name));
                    inspection.imports.push(Interface { name: name.to_owned(), functions });
                }
            }
            Payload::ComponentExportSection(section) if depth == 1 => {
                for export in section {
                    let name = export?.name.name;
                    let functions = functions(types.component_item_for_export(name));
                    inspection.exports.push(Interface { name: name.to_owned(), functions });
                }
            }
            Payload::CustomSection(section) if section.name() == versions::SECTION => said.push(section.data()),
            Payload::MemorySection(section) => {
                for memory in section {
                    let memory = memory?;
                    let page = 1_u64 << memory.page_size_log2.unwrap_or(16).min(16);
                    let bytes = |pages: u64| pages.saturating_mul(page);
                    inspection
                        .memories
                        .push(MemoryFact { initial: bytes(memory.initial), maximum: memory.maximum.map(bytes) });
                }
            }
            _ => {}
        }
    }
    match versions::understand(&said) {
        Ok(found) => inspection.state_versions = found,
        Err(why) => inspection.state_versions_unclear = Some(why),
    }
    Ok(())
}
