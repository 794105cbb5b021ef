//! A core module out of bytes: bodies by `wasm-smith`, and around them functions with the signatures of the world.
//!
//! ```text
//! wasm-smith ──► module with five bodies, and functions, tables, data that they use
//!                   │   re-encoded: the bodies' exports are taken away, a function around each is put behind the last one
//!                   ▼
//!                start · step · snapshot · restore · cabi_realloc:
//!                   some calls of imports with made-up arguments · the body · an answer, made up or the body's own
//! ```
//!
//! A body alone would hardly ever answer anything that the host could read: an answer is a pointer to a record. So the
//! functions around them write one, which is in order more often than not; and nearly every `start` does no more than that.
//!
//! Which ones do more depends on the hash of all bytes. Were it a choice like all others, a fuzzer would soon have most of its
//! inputs fail in `start`, where there is as much to be found as in `step`.
//!
//! | file | what it holds |
//! |---|---|
//! | `world` | what may be imported, and what has to be exported |
//! | `plan` | what the functions around the bodies do |
//! | `wrapper` | the module written again, with them |

mod plan;
mod world;
mod wrapper;

use arbitrary::{Result, Unstructured};
use wasm_encoder::ValType;
use wasm_encoder::reencode::Reencode as _;
use wasm_smith::{Config, Module};
use wasmparser::Parser;

use plan::{Plan, rarely};
use world::{Export, IMPORTS, Import};
use wrapper::{Shape, Wrapper};

/// How many of 256 inputs have a `start` and an allocator like their other functions.
const DARING: u8 = 32;

/// The module, with the custom section that names its world.
pub(super) fn build(bytes: &[u8], world: &[u8]) -> Option<Vec<u8>> {
    let input = &mut Unstructured::new(bytes);
    let daring = blake3::hash(bytes).as_bytes()[0] < DARING;
    let plan = Plan::of(input, daring).ok()?;
    let module = Module::new(config(input).ok()?, input).ok()?.to_bytes();
    let mut wrapper = Wrapper { plan, shape: Shape::of(&module)? };
    let mut wrapped = wasm_encoder::Module::new();
    wrapper.parse_core_module(&mut wrapped, Parser::new(0), &module).ok()?;
    let mut bytes = wrapped.finish();
    bytes.extend_from_slice(world);
    Some(bytes)
}

/// What the engine knows of WebAssembly, and sizes that compile in milliseconds.
fn config(input: &mut Unstructured<'_>) -> Result<Config> {
    Ok(Config {
        module_shape: Some(shape()),
        allow_start_export: rarely(input)?,
        disallow_traps: input.ratio(1, 2)?,
        threads_enabled: false,
        // Without the feature `gc` the engine has neither references to objects nor exceptions.
        gc_enabled: false,
        exceptions_enabled: false,
        reference_types_enabled: false,
        max_memories: 2,
        max_memory32_bytes: 8 << 20,
        max_memory64_bytes: 8 << 20,
        max_table_elements: 1000,
        max_data_segments: 4,
        max_element_segments: 4,
        max_funcs: 12,
        max_types: 12,
        max_globals: 8,
        max_instructions: 80,
        ..Config::default()
    })
}

/// The imports and exports of every module, before anything is put around its bodies.
fn shape() -> Vec<u8> {
    let words = |types: &[ValType]| types.iter().map(|ty| format!(" {ty:?}").to_lowercase()).collect::<String>();
    let mut text = "(module".to_owned();
    for Import { module, name, params, result } in &IMPORTS {
        let result: Vec<ValType> = result.iter().copied().collect();
        text += &format!("(import \"{module}\" \"{name}\" (func (param{}) (result{})))", words(params), words(&result));
    }
    text += "(memory (export \"memory\") 1)";
    for export in Export::ALL {
        text += &format!(
            "(func (export \"{}\") (param{}) (result i32) unreachable)",
            export.name(),
            words(export.params())
        );
    }
    text += ")";
    wat::parse_str(text).expect("the shape is a module")
}
