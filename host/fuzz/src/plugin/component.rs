//! From a core module to a component that fits the world.

use std::sync::OnceLock;

use wit_component::{ComponentEncoder, StringEncoding};
use wit_parser::Resolve;

use super::module;

const STEADFAST: &str = include_str!("../../../../wit/steadfast.wit");

/// As much of WASI 0.2 as the modules import.
const WASI: &str = r"
package fuzz:guest;

package wasi:io@0.2.3 {
    interface error { resource error; }
    interface streams {
        use error.{error};
        variant stream-error { last-operation-failed(error), closed }
        resource output-stream {
            blocking-write-and-flush: func(contents: list<u8>) -> result<_, stream-error>;
        }
    }
}
package wasi:cli@0.2.3 {
    interface exit { exit: func(status: result); }
    interface stderr { use wasi:io/streams@0.2.3.{output-stream}; get-stderr: func() -> output-stream; }
}
package wasi:random@0.2.3 {
    interface random { get-random-u64: func() -> u64; get-random-bytes: func(len: u64) -> list<u8>; }
    interface insecure-seed { insecure-seed: func() -> tuple<u64, u64>; }
}

world guest {
    include steadfast:job/plugin@0.1.0;
    import wasi:cli/exit@0.2.3;
    import wasi:cli/stderr@0.2.3;
    import wasi:random/random@0.2.3;
    import wasi:random/insecure-seed@0.2.3;
}
";

/// A component for an input; none where the input makes no module.
pub(super) fn build(input: &[u8]) -> Option<Vec<u8>> {
    let module = module::build(input, world())?;
    let component = ComponentEncoder::default().module(&module).and_then(|mut encoder| encoder.encode());
    Some(component.expect("the module has the imports and exports of the world"))
}

/// The custom section that tells a module's world, as it stands at a module's end.
fn world() -> &'static [u8] {
    static WORLD: OnceLock<Vec<u8>> = OnceLock::new();
    WORLD.get_or_init(|| {
        let mut resolve = Resolve::default();
        resolve.push_str("steadfast.wit", STEADFAST).expect("the contract is in order");
        let package = resolve.push_str("guest.wit", WASI).expect("so is this");
        let world = resolve.select_world(&[package], Some("guest")).expect("it has this world");
        let empty = wasm_encoder::Module::new().finish();
        let mut module = empty.clone();
        wit_component::embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8)
            .expect("a world can be embedded");
        module.split_off(empty.len())
    })
}
