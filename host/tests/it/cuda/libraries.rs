//! Drivers and libraries that are not there, too old, or incomplete.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::run;
use crate::support::{Double, Place, Run};

const GUEST: &str = "keeps_buffers";

#[test]
fn without_a_driver_a_job_runs_on_the_cpu_and_says_why() {
    let place = Place::new();
    let run = place.run(GUEST).config(r#"{"steps": 1}"#).env("LD_LIBRARY_PATH", Double::none().folder());
    run.done().says("(auto: NVIDIA's driver is not here: no libcuda.so.1 is found)");
}

#[test]
fn another_number_of_gpus() {
    let place = Place::new();
    let with = |gpus: &str, device: &str| {
        let run = place.command(&["doctor", "--device", device, "--volume"]).arg(place.volume());
        run.env("LD_LIBRARY_PATH", Double::new().folder()).env("CUDA_DOUBLE_GPUS", gpus)
    };
    assert!(with("0", "cuda").exits(1).stdout.contains("the driver is here, and no GPU that this process may use"));
    assert!(with("2", "cuda:2").exits(1).stdout.contains("there is no GPU 2: there are 2, from number 0 on"));
    assert!(with("2", "cuda:1").exits(0).stdout.contains("cuda · GPU 1, CUDA test double"));
}

#[test]
fn a_driver_that_is_older_than_the_ptx_is_told_with_both_versions() {
    let place = Place::new();
    let ended = run(&place, GUEST).config(r#"{"steps": 1}"#).env("CUDA_DOUBLE_CUDA", "12010").exits(65);
    let said = "the PTX is of version 8.2, and the driver here serves CUDA up to 12.1: install a newer driver, or make the PTX with an older";
    assert!(ended.stderr.contains(said), "{}", ended.stderr);
}

#[test]
fn without_cublas_all_but_products_is_there() {
    let run = |guest: &str| {
        let place = Place::new();
        let run = place.run(guest).args("--device cuda").env("LD_LIBRARY_PATH", Double::without_blas().folder());
        (place, run)
    };
    let (_place, without) = run("heat");
    without.config(r#"{"cells": [8, 8, 8], "steps": 5}"#).done();
    let (_place, with) = run("digits");
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../plugins/digits/data");
    with.arg("--input")
        .arg(data)
        .exits(75)
        .says("gemm: cuBLAS is not here: no libcublas.so.12 is found; take the image's stage `cuda`");
}

/// A library with these functions, each of which answers 0.
fn stub(folder: &Path, names: &[&str], functions: &[&str]) {
    let source = folder.join("stub.c");
    let text: String = functions.iter().map(|name| format!("unsigned {name}(void) {{ return 0; }}\n")).collect();
    fs::write(&source, text).unwrap();
    for name in names {
        let status = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(folder.join(name)).arg(&source).status();
        assert!(status.unwrap().success());
    }
}

/// The functions that the CUDA device binds of a library, as its source lists them below these words.
fn bound(words: &str) -> Vec<&'static str> {
    let source = include_str!("../../../src/device/cuda/driver_unsafe.rs");
    let (_, table) = source.split_once(words).unwrap();
    let (table, _) = table.split_once('}').unwrap();
    table.lines().filter_map(|line| line.trim().split_once('(')).map(|(name, _)| name).collect()
}

/// Stubs of a library, each without another one of its functions.
fn each_lacks_one(file: &str, functions: &[&'static str], try_it: impl Fn(&Path, &str)) {
    for missing in functions {
        let folder = tempfile::tempdir().unwrap();
        let others: Vec<_> = functions.iter().copied().filter(|name| name != missing).collect();
        stub(folder.path(), &[file], &others);
        try_it(folder.path(), missing);
    }
}

fn doctor(place: &Place, libraries: &Path) -> Run {
    let doctor = place.command(&["doctor", "--device", "cuda", "--volume"]).arg(place.volume());
    doctor.env("LD_LIBRARY_PATH", libraries)
}

#[test]
fn a_function_that_the_driver_lacks_is_named() {
    let functions = bound("DriverFunctions from cuda::culib();");
    assert!(functions.len() > 20 && functions.contains(&"cuLaunchKernel"), "{functions:?}");
    let place = Place::new();
    each_lacks_one("libcuda.so", &functions, |folder, missing| {
        let said = doctor(&place, folder).exits(1).stdout;
        assert!(said.contains(&format!("libcuda.so.1 lacks the function `{missing}`")), "{said}");
    });
}

/// Only products need it: that one is missing is worth a note, and ends the attempt that multiplies.
#[test]
fn a_function_that_cublas_lacks_is_named() {
    let functions = bound("BlasFunctions from blas::culib();");
    assert!(functions.contains(&"cublasCreate_v2"), "{functions:?}");
    let place = Place::new();
    each_lacks_one("libcublas.so", &functions, |folder, missing| {
        for name in ["libcuda.so", "libcuda.so.1"] {
            std::os::unix::fs::symlink(Double::new().folder().join(name), folder.join(name)).unwrap();
        }
        let said = format!("libcublas.so.12 lacks the function `{missing}`");
        let doctor = doctor(&place, folder).exits(0).stdout;
        assert!(doctor.contains(&said), "{doctor}");
        if *missing == *functions[functions.len() - 1] {
            let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../plugins/digits/data");
            let run = place.run("digits").arg("--input").arg(data).args("--device cuda");
            run.env("LD_LIBRARY_PATH", folder).exits(75).says(&said);
        }
    });
}
