//! Each call of the driver fails in turn, in several ways: no panic, no hang, the right exit code, and the next attempt comes to what no failure would have
//! changed.
//!
//! CI takes each function once; with `STEADFAST_CUDA_CALLS=all`, as `cargo xtask rack cuda` has it, each is taken at many of its calls in every way.

use std::collections::BTreeMap;
use std::fs;

use super::{on_double, run};
use crate::support::{Finished, Place, Run};

/// An argument is wrong; out of memory; a fault; unknown to the driver; unknown to everybody.
const CODES: [u32; 5] = [1, 2, 700, 999, 4711];
/// Of a function's calls, how many are tried at most.
const MOST: usize = 12;

/// A job that is short and calls much.
struct Job {
    guest: &'static str,
    arguments: &'static str,
    config: &'static str,
}

const JOBS: [Job; 2] = [
    Job { guest: "keeps_buffers", arguments: "--every 1steps", config: r#"{"steps": 3}"# },
    Job { guest: "digits", arguments: "--every 20steps", config: r#"{"epochs": 1}"# },
];

impl Job {
    fn with(&self, run: Run) -> Run {
        let run = run.config(self.config).args(self.arguments);
        let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../plugins/digits/data");
        if self.guest == "digits" { run.arg("--input").arg(data) } else { run }
    }

    fn run(&self, place: &Place) -> Run {
        self.with(run(place, self.guest))
    }

    /// What it comes to, and how often it calls each function.
    fn undisturbed(&self) -> (Finished, BTreeMap<String, usize>) {
        let place = Place::new();
        let trace = place.path().join("calls");
        self.run(&place).env("CUDA_DOUBLE_TRACE", &trace).done();
        let mut calls = BTreeMap::new();
        for name in fs::read_to_string(trace).unwrap().lines() {
            *calls.entry(name.to_owned()).or_default() += 1;
        }
        (place.finished(self.guest), calls)
    }

    fn fail(&self, expected: &Finished, call: &str, nth: usize, code: u32) {
        let place = Place::new();
        let what = format!("{call}:{nth}:{code}");
        let lazy = (nth % 2).to_string();
        let ended = self.run(&place).env("CUDA_DOUBLE_FAIL", &what).env("CUDA_DOUBLE_LAZY", lazy).end();
        let said = &ended.stderr;
        assert!(!said.contains("panicked"), "{what}: {said}");
        // Giving things back at the end is beside the point, and what one call refuses another may give.
        assert!(matches!(ended.code, Some(0 | 75)), "{what}: {:?}\n{said}", ended.code);
        if ended.code == Some(75) {
            let told = said.contains(&format!("{call} answered {code}")) || call == "kernel";
            assert!(told, "{what} is not what it says: {said}");
        }
        on_double(self.run(&place)).done();
        place.finished(self.guest).assert_equals(expected, &what);
    }
}

#[test]
fn any_call_may_fail() {
    let all = std::env::var_os("STEADFAST_CUDA_CALLS").is_some();
    let mut tried = BTreeMap::new();
    for job in JOBS {
        let (expected, calls) = job.undisturbed();
        let new = |name: &String| all || !tried.contains_key(name);
        let chosen: Vec<_> =
            calls.iter().filter(|(name, _)| new(name)).map(|(name, count)| (name.clone(), *count)).collect();
        for (name, count) in chosen {
            let number = tried.len();
            tried.insert(name.clone(), count);
            let some = [if number % 2 == 0 { 1 } else { count }];
            let every = count.div_ceil(MOST);
            let nths: Vec<_> = if all { (1..=count).step_by(every).chain([count]).collect() } else { some.to_vec() };
            for nth in nths {
                for code in CODES.into_iter().enumerate().filter(|(index, _)| all || *index == number % 5) {
                    job.fail(&expected, &name, nth, code.1);
                }
            }
        }
    }
    for name in [
        "cuInit",
        "cuCtxCreate_v2",
        "cuEventQuery",
        "cuLaunchKernel",
        "cuModuleGetGlobal_v2",
        "cublasSetWorkspace_v2",
        "kernel",
    ] {
        assert!(tried.contains_key(name), "no call of `{name}` in {tried:?}");
    }
    println!("{} functions failed", tried.len());
}

#[test]
fn the_first_call_of_each_function_is_missed() {
    // Where nothing is given back yet, nothing makes up for a failure.
    for (call, code) in [
        ("cuInit", 999),
        ("cuDeviceGetCount", 4711),
        ("cuCtxCreate_v2", 2),
        ("cuMemAlloc_v2", 2),
        ("cuModuleLoadDataEx", 2),
        ("kernel", 719),
    ] {
        let place = Place::new();
        let fail = format!("{call}:1:{code}");
        // Lazily, so that whoever waits is told of a kernel's failure, and not whichever call comes next.
        let ended = JOBS[0].run(&place).env("CUDA_DOUBLE_FAIL", &fail).env("CUDA_DOUBLE_LAZY", "1").exits(75);
        let by = if call == "kernel" { "cuEventQuery" } else { call };
        assert!(ended.stderr.contains(&format!("{by} answered {code}")), "{fail}: {}", ended.stderr);
    }
    let place = Place::new();
    let refused = JOBS[0].run(&place).env("CUDA_DOUBLE_FAIL", "cuInit:1:100").exits(2);
    assert!(refused.stderr.contains("the driver is here, and no GPU that this process may use"), "{}", refused.stderr);
}
