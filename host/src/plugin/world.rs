//! Whether a component fits the world `steadfast:job/plugin`, and what to do if not.
//!
//! This looks at names. Whether types fit as well is the linker's business, after compilation; see [`type_mismatch`].

use super::inspect::Inspection;

/// The version of the WIT package that this host speaks.
pub const WIT_VERSION: &str = "0.1.0";

const PACKAGE: &str = "steadfast:job/";
const EXPORTS: [&str; 4] = ["start", "step", "snapshot", "restore"];
const OWN_IMPORTS: [&str; 4] = ["types", "state", "telemetry", "device"];
/// What of WASI 0.2 is linked, by package.
const WASI: [(&str, &[&str]); 6] = [
    ("io", &["error", "poll", "streams"]),
    ("clocks", &["wall-clock", "monotonic-clock"]),
    ("filesystem", &["types", "preopens"]),
    ("random", &["random", "insecure", "insecure-seed"]),
    (
        "cli",
        &[
            "exit",
            "environment",
            "stdin",
            "stdout",
            "stderr",
            "terminal-input",
            "terminal-output",
            "terminal-stdin",
            "terminal-stdout",
            "terminal-stderr",
        ],
    ),
    (
        "sockets",
        &["network", "instance-network", "ip-name-lookup", "tcp", "tcp-create-socket", "udp", "udp-create-socket"],
    ),
];

/// Something that keeps a file from being a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub hint: String,
}

impl Problem {
    fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint: hint.into() }
    }
}

pub(super) fn problems(inspection: &Inspection) -> Vec<Problem> {
    let mut problems = missing_exports(inspection);
    for import in &inspection.imports {
        // One version too many is one problem, however many interfaces have it.
        let problem = unknown_import(&import.name).filter(|problem| {
            problem.hint != VERSION_HINT || problems.iter().all(|earlier| earlier.hint != VERSION_HINT)
        });
        problems.extend(problem);
    }
    problems
}

fn missing_exports(inspection: &Inspection) -> Vec<Problem> {
    let workload = |export: &&super::Interface| Name::parse(&export.name).is_some_and(|n| n.is(PACKAGE, "workload"));
    let Some(export) = inspection.exports.iter().find(workload) else {
        return vec![no_workload(inspection)];
    };
    let version = Name::parse(&export.name).and_then(|name| name.version);
    if !version.is_some_and(is_spoken) {
        return vec![other_version(&export.name)];
    }
    let missing: Vec<_> = EXPORTS.iter().filter(|name| !export.functions.iter().any(|f| f == *name)).copied().collect();
    if missing.is_empty() {
        return Vec::new();
    }
    vec![Problem::new(format!("`{}` lacks {}", export.name, missing.join(", ")), SDK_HINT)]
}

const SDK_HINT: &str = "implement the trait `Plugin` of the crate steadfast-guest 0.1 and export it with `plugin!`; in another \
                        language, generate bindings from wit/steadfast.wit for the world `plugin`";

fn no_workload(inspection: &Inspection) -> Problem {
    let what = format!("it does not export `steadfast:job/workload@{WIT_VERSION}` (start, step, snapshot, restore)");
    if inspection.exports.iter().any(|export| export.name.starts_with("wasi:cli/run@")) {
        let hint = format!(
            "this is a program with a `main`: make it a library with `crate-type = [\"cdylib\"]` and no `main`, and {SDK_HINT}"
        );
        return Problem::new(what, hint);
    }
    if inspection.exports.iter().any(|export| export.name.starts_with("wasi:http/")) {
        return Problem::new(what, format!("this answers HTTP requests; {SDK_HINT}"));
    }
    Problem::new(what, SDK_HINT)
}

fn other_version(name: &str) -> Problem {
    Problem::new(format!("it was built for `{name}`, and this host speaks version {WIT_VERSION}"), VERSION_HINT)
}

const VERSION_HINT: &str = "build it with steadfast-guest 0.1, or run it with the Steadfast whose version matches";

fn unknown_import(name: &str) -> Option<Problem> {
    let what = format!("it imports `{name}`, which Steadfast does not have");
    let Some(parsed) = Name::parse(name) else {
        return Some(Problem::new(what, "imports must be interfaces of steadfast:job or of WASI 0.2"));
    };
    if parsed.package == "steadfast:job" {
        return match OWN_IMPORTS.contains(&parsed.interface) {
            true if parsed.version.is_some_and(is_spoken) => None,
            true => Some(other_version(name)),
            false => Some(Problem::new(what, format!("a newer Steadfast may have it; this one speaks {WIT_VERSION}"))),
        };
    }
    let wasi = parsed.package.strip_prefix("wasi:");
    let linked = WASI.iter().any(|(package, names)| wasi == Some(package) && names.contains(&parsed.interface));
    match (linked, parsed.version) {
        (true, Some(version)) if version.starts_with("0.2.") => None,
        (true, _) => {
            Some(Problem::new(what, "only WASI 0.2 is here: build for wasm32-wasip2 (or with tools for WASI 0.2)"))
        }
        (false, _) => Some(Problem::new(what, hint_for(wasi))),
    }
}

fn hint_for(wasi: Option<&str>) -> &'static str {
    match wasi {
        Some("http") => {
            "plugins have no network: fetch the data before the job and pass it with --input. JavaScript: build with \
             `--disable http` or the QuickJS back end"
        }
        Some("nn" | "webgpu" | "gfx") => "plugins get their device from Steadfast itself: import steadfast:job/device",
        Some("keyvalue" | "blobstore" | "messaging" | "sql" | "config") => {
            "plugins have two folders, /input and /output, and no services: read and write files"
        }
        Some(_) => "of WASI 0.2, io, clocks, random, filesystem, cli and sockets (without a network) are here",
        None => "remove the import, or link the component that provides it into this one with `wac plug`",
    }
}

/// Whether the device is among a component's imports.
pub(super) fn uses_device<'a>(mut imports: impl Iterator<Item = &'a str>) -> bool {
    imports.any(|name| Name::parse(name).is_some_and(|name| name.is(PACKAGE, "device")))
}

/// For names that fit and types that don't: a plugin built from an edited WIT, or something wasmtime only sees when linking.
pub(super) fn type_mismatch(error: &wasmtime::Error) -> Problem {
    Problem::new(
        format!("its types do not fit: {error:#}"),
        format!("build it against the WIT of steadfast:job@{WIT_VERSION}, unchanged"),
    )
}

/// Within 0.1 items are only added.
fn is_spoken(version: &str) -> bool {
    version == "0.1" || version.starts_with("0.1.")
}

/// `namespace:package/interface@version`.
struct Name<'a> {
    package: &'a str,
    interface: &'a str,
    version: Option<&'a str>,
}

impl<'a> Name<'a> {
    fn parse(name: &'a str) -> Option<Self> {
        let (package, rest) = name.split_once('/')?;
        let (interface, version) = match rest.split_once('@') {
            Some((interface, version)) => (interface, Some(version)),
            None => (rest, None),
        };
        Some(Self { package, interface, version })
    }

    fn is(&self, package: &str, interface: &str) -> bool {
        self.package == package.trim_end_matches('/') && self.interface == interface
    }
}
