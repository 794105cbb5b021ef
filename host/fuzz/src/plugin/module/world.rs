//! The world as a core module sees it: what it may import, and what it has to export.

use wasm_encoder::ValType;

/// What a guest may import: name, parameters, and the result that is dropped.
pub(super) struct Import {
    pub(super) module: &'static str,
    pub(super) name: &'static str,
    pub(super) params: &'static [ValType],
    pub(super) result: Option<ValType>,
}

const fn import(
    module: &'static str,
    name: &'static str,
    params: &'static [ValType],
    result: Option<ValType>,
) -> Import {
    Import { module, name, params, result }
}

const STATE: &str = "steadfast:job/state@0.1.0";
const TELEMETRY: &str = "steadfast:job/telemetry@0.1.0";
const STREAMS: &str = "wasi:io/streams@0.2.3";

pub(super) const IMPORTS: [Import; 16] = {
    use ValType::{F64, I32, I64};
    [
        import(STATE, "[method]writer.write", &[I32, I32, I32, I32, I32], None),
        import(STATE, "[method]reader.version", &[I32], Some(I32)),
        import(STATE, "[method]reader.sections", &[I32, I32], None),
        import(STATE, "[method]reader.size", &[I32, I32, I32, I32], None),
        import(STATE, "[method]reader.read", &[I32, I32, I32, I64, I64, I32], None),
        import(STATE, "[resource-drop]writer", &[I32], None),
        import(STATE, "[resource-drop]reader", &[I32], None),
        import(TELEMETRY, "log", &[I32, I32, I32], None),
        import(TELEMETRY, "metric", &[I32, I32, F64], None),
        import("wasi:cli/exit@0.2.3", "exit", &[I32], None),
        import("wasi:cli/stderr@0.2.3", "get-stderr", &[], Some(I32)),
        import(STREAMS, "[method]output-stream.blocking-write-and-flush", &[I32, I32, I32, I32], None),
        import(STREAMS, "[resource-drop]output-stream", &[I32], None),
        import("wasi:random/random@0.2.3", "get-random-u64", &[], Some(I64)),
        import("wasi:random/random@0.2.3", "get-random-bytes", &[I64, I32], None),
        import("wasi:random/insecure-seed@0.2.3", "insecure-seed", &[I32], None),
    ]
};

/// The functions that the world asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Export {
    Start,
    Step,
    Snapshot,
    Restore,
    Realloc,
}

impl Export {
    pub(super) const ALL: [Self; 5] = [Self::Start, Self::Step, Self::Snapshot, Self::Restore, Self::Realloc];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Start => "steadfast:job/workload@0.1.0#start",
            Self::Step => "steadfast:job/workload@0.1.0#step",
            Self::Snapshot => "steadfast:job/workload@0.1.0#snapshot",
            Self::Restore => "steadfast:job/workload@0.1.0#restore",
            Self::Realloc => "cabi_realloc",
        }
    }

    /// Every one answers one i32.
    pub(super) fn params(self) -> &'static [ValType] {
        use ValType::{I32, I64};
        match self {
            Self::Start => &[I32, I32, I32, I32, I32, I64, I32, I32],
            Self::Step => &[],
            Self::Snapshot => &[I32],
            Self::Restore => &[I32, I32, I32, I32, I32, I64, I32, I32, I32],
            Self::Realloc => &[I32, I32, I32, I32],
        }
    }

    /// The handle that it is lent, by its place among the parameters, and the import that gives it back.
    pub(super) fn lent(self) -> Option<(u32, usize)> {
        match self {
            Self::Snapshot => Some((0, 5)),
            Self::Restore => Some((8, 6)),
            _ => None,
        }
    }
}
