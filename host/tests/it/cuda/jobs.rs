//! The same results as on the CPU, moving from one to the other, faults, kernels without end.

use rustix::process::Signal;

use super::{on_double, run};
use crate::support::{Phase, Place, Run, component, metadata_of, undisturbed};

const GUEST: &str = "keeps_buffers";

#[test]
fn a_job_comes_to_what_it_comes_to_on_the_cpu_and_says_where_it_ran() {
    for mode in ["0", "1"] {
        let place = Place::new();
        let config = r#"{"steps": 5}"#;
        let ended = run(&place, GUEST).config(config).env("CUDA_DOUBLE_LAZY", mode).done();
        assert!(
            ended.stderr.contains("  device    cuda · GPU 0, CUDA test double, 4.0 GiB · driver for CUDA 12.2\n"),
            "{}",
            ended.stderr
        );
        assert_eq!(metadata_of(&place.newest(GUEST)).device, "cuda");
        assert_eq!(place.record(GUEST).device, "cuda");
        place.finished(GUEST).assert_equals(&undisturbed(GUEST, config), "on CUDA");
    }
}

#[test]
fn where_nothing_is_said_a_gpu_is_taken_if_the_plugin_uses_a_device() {
    let place = Place::new();
    let ended = on_double(place.run(GUEST)).config(r#"{"steps": 1}"#).done();
    assert!(ended.stderr.contains("  device    cuda · GPU 0, "), "{}", ended.stderr);
    assert!(ended.stderr.contains("(auto: a GPU is here)"), "{}", ended.stderr);
    let place = Place::new();
    on_double(place.run("countdown")).config(r#"{"steps": 1}"#).done().never_says("  device    ");
}

#[test]
fn a_checkpoint_of_one_device_goes_on_on_the_other() {
    let place = Place::new();
    let config = r#"{"steps": 7}"#;
    let on = |device: &str| on_double(place.run(GUEST)).config(config).args("--every 1steps --device").arg(device);
    assert_eq!(on("cuda").kill_at(Phase::Idle, 0).resumed_from(), None);
    for step in 0..6 {
        let device = if step % 2 == 0 { "cpu" } else { "cuda" };
        assert_eq!(on(device).kill_at(Phase::Idle, step + 1).resumed_from(), Some(step));
    }
    on("cpu").done();
    place.finished(GUEST).assert_equals(&undisturbed(GUEST, config), "from device to device");
}

#[test]
fn a_rehearsal_takes_devices_in_turn() {
    let place = Place::new();
    let rehearse = on_double(place.command(&["rehearse"])).arg(component(GUEST)).config(r#"{"steps": 4}"#);
    let rehearse = rehearse.args("--every 1steps --preempt every-step --devices cpu,cuda --work").arg(place.path());
    assert!(rehearse.exits(0).stdout.contains("same: "));
}

/// What comes to the host beside the guest may fail alone: the second of two buffers here, when the first is being written.
#[test]
fn a_transfer_that_fails_fails_its_save_and_nothing_else() {
    let place = Place::new();
    // It never reads by itself: the only transfers are those of checkpoints.
    let config = r#"{"cells": [8, 8, 8], "steps": 1000000000, "picture_every": 1000000000}"#;
    let fail = ("CUDA_DOUBLE_FAIL", "cuMemcpyDtoHAsync_v2:2:1");
    let mut attempt = run(&place, "heat").config(config).args("--every 1s").env(fail.0, fail.1).start();
    attempt.go_on_until_said(
        "A save failed (1 in a row): the state could not be had: the GPU failed: cuMemcpyDtoHAsync_v2 answered 1",
    );
    attempt.go_on_until_said("Saved step ");
    attempt.signal(Signal::TERM);
    attempt.end().expect_code(143).never_says("2 in a row");
    assert_eq!(place.record("heat").saves.failed, 1);
}

fn with_bad_kernel(place: &Place, how: &str, arguments: &str) -> Run {
    run(place, "bad_kernel").config(&format!(r#"{{"at": 3, "how": "{how}"}}"#)).args("--every 1steps").args(arguments)
}

#[test]
fn a_fault_is_nobody_s_but_tells_step_and_kernel() {
    for how in ["fault", "fault-and-read"] {
        let place = Place::new();
        // Twice at the same step, from two starting points: on the CPU that is proof, here it may be the GPU.
        for _ in 0..2 {
            // Lazily, so that whoever waits is told, and not whichever call comes next.
            let ended = with_bad_kernel(&place, how, "").env("CUDA_DOUBLE_LAZY", "1").exits(75);
            let said = "the guest failed in `step` at step 3: the device failed: the GPU (CUDA test double) failed: cuEventQuery answered 700, \
                        a kernel used an address that it has no right to; under way was the kernel `wild`";
            assert!(ended.stderr.contains(said), "{}", ended.stderr);
        }
        assert!(!place.record("bad_kernel").failure.unwrap().trap);
    }
}

#[test]
fn a_kernel_without_end_holds_up_neither_the_call_nor_the_process() {
    let place = Place::new();
    with_bad_kernel(&place, "endless", "--step-timeout 300ms")
        .exits(75)
        .says("the guest failed in `step` at step 3: interrupted: the call took longer than --step-timeout allows");

    let mut attempt = with_bad_kernel(&place, "endless", "--grace 1s").start();
    attempt.go_on_until_said("a kernel goes round for ever");
    attempt.signal(Signal::TERM);
    attempt.end().expect_code(143).says("Step 3 did not end within the grace time; the last checkpoint stands");
}

#[test]
fn a_profile_counts_the_same_on_a_gpu() {
    let counted = |device: &str, place: &Place| {
        let run = on_double(place.run(GUEST)).config(r#"{"steps": 4}"#).args("--profile --device").arg(device);
        run.done().says("\nProfile: the device worked ").says("; a launch that does nothing takes ");
        let profile = place.record(GUEST).profile;
        let mut counted: Vec<_> = profile
            .iter()
            .map(|line| (line.what.clone(), line.calls, line.threads, line.bytes, line.runs_as.clone()))
            // A GPU has its kernels ready when a module is; how often is saved depends on the clock.
            .filter(|(what, ..)| !["(modules, compiling)", "(checkpoints)"].contains(&what.as_str()))
            .collect();
        counted.sort();
        counted
    };
    let (cpu, cuda) = (Place::new(), Place::new());
    let on_cpu = counted("cpu", &cpu);
    let on_cuda = counted("cuda", &cuda);
    let advance = |counted: &[(String, u64, u64, u64, Option<String>)]| {
        counted.iter().find(|(what, ..)| what == "advance").unwrap().4.clone().unwrap()
    };
    assert_eq!(advance(&on_cuda), "GPU");
    assert!(advance(&on_cpu).starts_with("vector lanes"), "{}", advance(&on_cpu));
    let figures = |counted: Vec<(String, u64, u64, u64, Option<String>)>| {
        counted.into_iter().map(|(what, calls, threads, bytes, _)| (what, calls, threads, bytes)).collect::<Vec<_>>()
    };
    assert_eq!(figures(on_cpu), figures(on_cuda));
    cuda.finished(GUEST).assert_equals(&cpu.finished(GUEST), "on the other device");
}
