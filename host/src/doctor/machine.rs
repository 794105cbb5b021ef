//! Versions, processor, cores, memory.

use super::Check;
use crate::checkpoint::format::FORMAT_VERSION;
use crate::platform::{Allowed, Allower, memory_allowed};
use crate::plugin::WIT_VERSION;

/// The release of wasmtime that is built in; a test compares it with what the build takes.
const WASMTIME: &str = "48";
/// Room for the host and a small guest, twice.
const LITTLE_MEMORY: u64 = 256 << 20;

pub(super) fn checks() -> Vec<Check> {
    vec![versions(), processor(&features()), cores(), memory(memory_allowed())]
}

fn versions() -> Check {
    let own = env!("CARGO_PKG_VERSION");
    let found =
        format!("steadfast {own} · WIT {WIT_VERSION} · checkpoint format {FORMAT_VERSION} · wasmtime {WASMTIME}");
    Check::fine("versions", found)
}

/// What guests and kernels ask of a processor, and whether it has it.
struct Features {
    simd: bool,
    fused_multiply_add: bool,
    names: Vec<&'static str>,
}

#[cfg(target_arch = "x86_64")]
fn features() -> Features {
    let all = [
        ("SSE4.2", std::arch::is_x86_feature_detected!("sse4.2")),
        ("AVX2", std::arch::is_x86_feature_detected!("avx2")),
        ("FMA", std::arch::is_x86_feature_detected!("fma")),
    ];
    let [(_, simd), _, (_, fused_multiply_add)] = all;
    Features {
        simd,
        fused_multiply_add,
        names: all.into_iter().filter(|(_, has)| *has).map(|(name, _)| name).collect(),
    }
}

/// Every processor of the architecture has them.
#[cfg(not(target_arch = "x86_64"))]
fn features() -> Features {
    Features { simd: true, fused_multiply_add: true, names: vec!["SIMD", "FMA"] }
}

fn processor(features: &Features) -> Check {
    const WHAT: &str = "processor";
    let found = match &features.names[..] {
        [] => format!("{} · none of the features that help", std::env::consts::ARCH),
        names => format!("{} · {}", std::env::consts::ARCH, names.join(", ")),
    };
    match features {
        Features { simd: false, .. } => {
            Check::missing(WHAT, found, "plugins with SIMD need SSE4.2: take a machine with a newer processor")
        }
        Features { fused_multiply_add: false, .. } => Check::note(
            WHAT,
            found,
            "without FMA, kernels on the CPU compute fused multiply-adds step by step: right, and many times slower",
        ),
        _ => Check::fine(WHAT, found),
    }
}

fn cores() -> Check {
    match std::thread::available_parallelism() {
        Ok(cores) => Check::fine("cores", format!("{cores}, as far as this process may use them")),
        Err(error) => {
            Check::note("cores", format!("unknown: {error}"), "one thread is used; --device-threads asks for more")
        }
    }
}

fn memory(allowed: Option<Allowed>) -> Check {
    const WHAT: &str = "memory";
    let Some(Allowed { bytes, by }) = allowed else {
        return Check::note(WHAT, "unknown", "say --memory-limit, --state-limit and --device-memory, so that they fit");
    };
    let size = bytesize::ByteSize::b(bytes).display().iec();
    let found = match by {
        Allower::Container => format!("{size}, the limit of this control group"),
        Allower::Machine => format!("{size}, what the machine has"),
    };
    match bytes {
        ..LITTLE_MEMORY => Check::note(WHAT, found, "that is little: allow the container more"),
        _ => Check::fine(WHAT, found),
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn the_version_of_wasmtime_is_the_one_that_is_built_in() {
        let lock = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.lock"));
        let built_in = format!("name = \"wasmtime\"\nversion = \"{WASMTIME}.");
        assert!(lock.contains(&built_in), "Cargo.lock has another wasmtime than {WASMTIME}");
    }

    #[test]
    fn processors_are_judged_by_what_plugins_need() {
        let of = |simd, fused_multiply_add| processor(&Features { simd, fused_multiply_add, names: vec![] }).state;
        assert_eq!([of(true, true), of(true, false), of(false, false)], [State::Fine, State::Note, State::Missing]);
    }

    #[test]
    fn memory_is_what_is_allowed_and_by_whom() {
        let of = |bytes, by| memory(Some(Allowed { bytes, by }));
        assert_eq!(of(8 << 30, Allower::Machine), Check::fine("memory", "8.0 GiB, what the machine has"));
        let tight = of(128 << 20, Allower::Container);
        assert_eq!((tight.state, tight.found.as_str()), (State::Note, "128.0 MiB, the limit of this control group"));
        assert_eq!(memory(None).state, State::Note);
    }
}
