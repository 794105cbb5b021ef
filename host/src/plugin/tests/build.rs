//! Builds components from core WebAssembly text: the text says what a guest does, `wit-component` makes a component of it.

use wit_component::{ComponentEncoder, StringEncoding};
use wit_parser::Resolve;

const STEADFAST: &str = include_str!("../../../../wit/steadfast.wit");

/// As much of WASI 0.2 as the guests here import.
const WASI: &str = r"
package test:guest;

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
    interface run { run: func() -> result; }
}
package wasi:random@0.2.3 {
    interface random { get-random-u64: func() -> u64; }
    interface insecure-seed { insecure-seed: func() -> tuple<u64, u64>; }
}
package wasi:http@0.2.3 { interface outgoing-handler { handle: func(); } }
package wasi:cli@0.3.0 { interface exit { exit: func(status: result); } }
package acme:tools { interface magic { wave: func(); } }

world guest {
    include steadfast:job/plugin@0.1.0;
    import wasi:cli/exit@0.2.3;
    import wasi:cli/stderr@0.2.3;
    import wasi:random/random@0.2.3;
    import wasi:random/insecure-seed@0.2.3;
    import wasi:http/outgoing-handler@0.2.3;
    import wasi:cli/exit@0.3.0;
    import acme:tools/magic;
}
world program { export wasi:cli/run@0.2.3; }
world nothing { }
";

/// What a guest does. The default counts to ten from the job's seed, and keeps its count in the section `n`.
pub(super) struct Guest {
    pub(super) imports: &'static str,
    pub(super) memory: &'static str,
    pub(super) functions: &'static str,
    pub(super) step: &'static str,
    pub(super) snapshot: &'static str,
}

/// Adds one to the count and answers `more`, or `done` at ten.
pub(super) const COUNT: &str = "
    (global.set $n (i64.add (global.get $n) (i64.const 1)))
    (if (result i32) (i64.eq (global.get $n) (i64.const 10))
      (then
        (i32.store8 (i32.const 1032) (i32.const 1))
        (i32.store (i32.const 1040) (i32.const 64)) (i32.store (i32.const 1044) (i32.const 8))
        (i32.const 1024))
      (else (call $more (global.get $n))))";

const SAVE: &str = "
    (i64.store (i32.const 512) (global.get $n))
    (call $write (local.get $into) (i32.const 80) (i32.const 1) (i32.const 512) (i32.const 3))
    (call $write (local.get $into) (i32.const 81) (i32.const 5) (i32.const 512) (i32.const 0))
    (call $write (local.get $into) (i32.const 80) (i32.const 1) (i32.const 515) (i32.const 5))
    (call $drop_writer (local.get $into))
    (i32.store (i32.const 1032) (i32.const 0)) (i32.store (i32.const 1028) (i32.const 7))
    (i32.const 1024)";

impl Default for Guest {
    fn default() -> Self {
        Self { imports: "", memory: "1", functions: "", step: COUNT, snapshot: SAVE }
    }
}

impl Guest {
    /// The default guest with another step.
    pub(super) fn stepping(step: &'static str) -> Self {
        Self { step, ..Self::default() }
    }

    pub(super) fn build(&self) -> Vec<u8> {
        component("guest", &self.text())
    }

    pub(super) fn text(&self) -> String {
        let Self { imports, memory, functions, step, snapshot } = self;
        format!(
            r#"(module
  (import "steadfast:job/state@0.1.0" "[method]writer.write" (func $write (param i32 i32 i32 i32 i32)))
  (import "steadfast:job/state@0.1.0" "[method]reader.version" (func $version (param i32) (result i32)))
  (import "steadfast:job/state@0.1.0" "[method]reader.read" (func $read (param i32 i32 i32 i64 i64 i32)))
  (import "steadfast:job/state@0.1.0" "[resource-drop]writer" (func $drop_writer (param i32)))
  (import "steadfast:job/state@0.1.0" "[resource-drop]reader" (func $drop_reader (param i32)))
  (import "steadfast:job/telemetry@0.1.0" "log" (func $log (param i32 i32 i32)))
  (import "steadfast:job/telemetry@0.1.0" "metric" (func $metric (param i32 i32 f64)))
  {imports}
  (memory (export "memory") {memory})
  (table $table 10 funcref)
  (global $n (mut i64) (i64.const 0))
  (global $free (mut i32) (i32.const 8192))
  (data (i32.const 64) "finished")
  (data (i32.const 80) "n")
  (data (i32.const 81) "empty")
  (data (i32.const 96) "hello\01")
  {functions}
  (func $more (param $done i64) (result i32)
    (i32.store8 (i32.const 1024) (i32.const 0)) (i32.store8 (i32.const 1032) (i32.const 0))
    (i64.store (i32.const 1040) (local.get $done))
    (i32.store8 (i32.const 1048) (i32.const 1)) (i64.store (i32.const 1056) (i64.const 10))
    (i32.const 1024))
  (func (export "cabi_realloc") (param i32 i32 i32) (param $size i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $free) (i32.const 7)) (i32.const -8)))
    (global.set $free (i32.add (local.get $at) (local.get $size)))
    (local.get $at))
  (func (export "steadfast:job/workload@0.1.0#start")
    (param $name i32) (param $name_len i32) (param i32 i32 i32) (param $seed i64) (param $config i32) (param $config_len i32)
    (result i32)
    (global.set $n (local.get $seed))
    (i32.store (i32.const 1024) (i32.const 0))
    (if (i32.gt_u (local.get $config_len) (i32.const 2))
      (then
        (i32.store8 (i32.const 1024) (i32.const 1)) (i32.store8 (i32.const 1028) (i32.const 0))
        (i32.store (i32.const 1032) (local.get $config)) (i32.store (i32.const 1036) (local.get $config_len))))
    (i32.const 1024))
  (func (export "steadfast:job/workload@0.1.0#step") (result i32)
    (i64.store (i32.const 1024) (i64.const 0)) (i64.store (i32.const 1032) (i64.const 0))
    {step})
  (func (export "steadfast:job/workload@0.1.0#snapshot") (param $into i32) (result i32)
    (i32.store (i32.const 1024) (i32.const 0))
    {snapshot})
  (func (export "steadfast:job/workload@0.1.0#restore")
    (param $name i32) (param $name_len i32) (param i32 i32 i32) (param $seed i64) (param $config i32) (param $config_len i32)
    (param $from i32) (result i32)
    (i32.store (i32.const 1024) (i32.const 0))
    (if (i32.ne (call $version (local.get $from)) (i32.const 7))
      (then
        (i32.store8 (i32.const 1024) (i32.const 1)) (i32.store8 (i32.const 1028) (i32.const 2))
        (i32.store (i32.const 1032) (i32.const 64)) (i32.store (i32.const 1036) (i32.const 0)))
      (else
        (call $read (local.get $from) (i32.const 80) (i32.const 1) (i64.const 0) (i64.const 100) (i32.const 600))
        (if (i32.ne (i32.load (i32.const 604)) (i32.const 8)) (then unreachable))
        (global.set $n (i64.load (i32.load (i32.const 600))))))
    (call $drop_reader (local.get $from))
    (i32.const 1024))
)"#
        )
    }
}

/// A component that fits a world of [`WASI`].
pub(super) fn component(world: &str, text: &str) -> Vec<u8> {
    component_of(STEADFAST, world, text)
}

/// The same with another edition of `steadfast.wit`.
pub(super) fn component_of(steadfast: &str, world: &str, text: &str) -> Vec<u8> {
    let mut resolve = Resolve::default();
    resolve.push_str("steadfast.wit", steadfast).unwrap();
    let package = resolve.push_str("guest.wit", WASI).unwrap();
    let world = resolve.select_world(&[package], Some(world)).unwrap();
    let mut module = wat::parse_str(text).unwrap();
    wit_component::embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default().module(&module).unwrap().validate(true).encode().unwrap()
}
