//! A plugin whose state is on the device: what checkpoints keep of it, and how its kernels end an attempt.

use std::fs;

use rustix::process::Signal;
use steadfast::checkpoint::browse;
use steadfast::checkpoint::format::SectionKind;

use crate::support::{Double, Phase, Place, Run, component, metadata_of, undisturbed};

const GUEST: &str = "keeps_buffers";

/// Runs a job to its end, killed before each step and after each save, every attempt with another number of threads.
fn killed_everywhere(config: &str, steps: u64) {
    let place = Place::new();
    let mut attempts = 0;
    let mut run = || {
        attempts += 1;
        let threads = format!("--every 1steps --device-threads {}", 1 + attempts % 3);
        place.run(GUEST).config(config).args(&threads)
    };
    assert_eq!(run().kill_at(Phase::Idle, 0).resumed_from(), None);
    for step in 0..steps - 1 {
        assert_eq!(run().kill_at(Phase::Step, step).resumed_from(), Some(step));
        assert_eq!(run().kill_at(Phase::Idle, step + 1).resumed_from(), Some(step));
    }
    run().done();
    place.finished(GUEST).assert_equals(&undisturbed(GUEST, config), "after a kill at every step");
}

#[test]
fn killed_at_every_step_buffers_end_the_same() {
    killed_everywhere(r#"{"steps": 7, "kernels": false}"#, 7);
}

#[test]
fn killed_at_every_step_kernels_and_variables_end_the_same() {
    killed_everywhere(r#"{"steps": 7}"#, 7);
}

#[test]
fn a_checkpoint_has_a_section_for_each_buffer_and_show_lists_them() {
    let place = Place::new();
    let run = place.run(GUEST).config(r#"{"steps": 3, "kernels": false}"#);
    let ended = run.done();
    assert!(ended.stderr.contains("  device    cpu · "), "{}", ended.stderr);
    let newest = place.newest(GUEST);
    assert_eq!(metadata_of(&newest).device, "cpu");
    assert_eq!(place.record(GUEST).device, "cpu");
    let shown = browse::show(&newest).unwrap();
    let sections: Vec<_> = shown.sections.iter().map(|(kind, name, bytes, _)| (*kind, name.as_str(), *bytes)).collect();
    assert_eq!(sections[0].0, SectionKind::State);
    assert_eq!(
        sections[1..],
        [
            (SectionKind::Buffer, "int32:counts", 256),
            (SectionKind::Buffer, "int16:late", 6),
            (SectionKind::Buffer, "float32:values", 4096)
        ]
    );
    let text = place.command(&["checkpoint", "show"]).arg(&newest).exits(0).stdout;
    assert!(text.contains("buffer float32:values: 4.0 KiB, stored "), "{text}");
    // The values went to a file past the guest, after a gap of eight bytes.
    let finished = place.finished(GUEST);
    let file = finished.outputs["values.f32"].as_deref().unwrap();
    assert_eq!((&file[..8], &file[8..]), (&[0; 8][..], &finished.state[3].1[..]));
}

#[test]
fn rehearsals_find_nothing_in_a_plugin_on_the_device() {
    let place = Place::new();
    let config = r#"{"steps": 6, "kernels": false}"#;
    let rehearse = |arguments: &str| {
        let run = place.command(&["rehearse"]).arg(component(GUEST)).config(config);
        let run = run.args(arguments).arg("--work").arg(place.path());
        assert!(run.exits(0).stdout.contains("same: "));
    };
    rehearse("--every 2steps --preempt every-step --kill --device cpu --device-memory 1MiB");
    rehearse("--every 2steps --preempt every-step --damage newest");
}

#[test]
fn buffers_meet_the_limits_of_the_device_and_of_the_state() {
    let said = |arguments: &str, code: i32| {
        let place = Place::new();
        let run = place.run(GUEST).config(r#"{"steps": 3, "kernels": false, "extra_kib": 100}"#).args(arguments);
        run.exits(code).refusal(&place)
    };
    insta::assert_snapshot!(said("--device-memory 64KiB", 65), @"steadfast: the guest failed in `start` at step 0: invalid: the buffer `extra`: 100.0 KiB are wanted, more than the 64.0 KiB that --device-memory allows altogether");
    insta::assert_snapshot!(said("--device-memory 102KiB", 75), @"steadfast: the guest failed in `start` at step 0: retryable: the buffer `extra`: 100.0 KiB are wanted, and of the 102.0 KiB that --device-memory allows 4.3 KiB are in use");
    insta::assert_snapshot!(said("--state-limit 64KiB", 75), @r#"
    steadfast: the guest failed in `snapshot` at step 0: the snapshot is larger than 64.0 KiB, the most that is taken (512 bytes are added for each section)
    hint: keep less in the state, or raise --state-limit
    "#);
}

#[test]
fn a_plugin_is_tried_on_the_device_of_a_checkpoint() {
    let place = Place::new();
    place.run(GUEST).config(r#"{"steps": 9, "kernels": false}"#).args("--every 1steps").term_at(Phase::Step, 3);
    let tried = place.command(&["plugin", "try"]).arg(component(GUEST)).arg("--against");
    let said = tried.arg(place.task(GUEST)).exits(0).stdout;
    assert!(said.contains("as the old plugin, to the bit"), "{said}");
}

#[test]
fn what_is_not_there_is_never_replaced() {
    let place = Place::new();
    for asked in ["cuda", "cuda:3"] {
        let run = place.run(GUEST).args("--device").arg(asked).env("LD_LIBRARY_PATH", Double::none().folder());
        assert_eq!(
            run.exits(2).refusal(&place),
            format!(
                "steadfast: there is no device `{asked}` here: NVIDIA's driver is not here: no libcuda.so.1 is found\n\
                 hint: start the container with NVIDIA's runtime (--gpus all), or put the folder of libcuda.so.1 into LD_LIBRARY_PATH; \
                 or say --device cpu: the same kernels run on the CPU, more slowly\n"
            )
        );
    }
    assert_eq!(fs::read_dir(place.volume()).unwrap().count(), 0, "nothing is written");
}

fn with_bad_kernel(place: &Place, config: &str, arguments: &str) -> Run {
    place.run("bad_kernel").config(config).args("--every 1steps").args(arguments)
}

#[test]
fn a_kernel_that_faults_ends_the_attempt_as_a_trap_does() {
    for how in ["fault", "fault-and-read"] {
        let place = Place::new();
        let config = format!(r#"{{"at": 3, "how": "{how}"}}"#);
        let ended = with_bad_kernel(&place, &config, "").exits(75);
        assert!(ended.stderr.contains("the guest failed in `step` at step 3: a kernel failed: "), "{}", ended.stderr);
        assert!(ended.stderr.contains("`wild`"), "{}", ended.stderr);
        assert!(place.record("bad_kernel").failure.unwrap().trap);
        // From a checkpoint it does so again as it did from the start: another attempt is of no use.
        with_bad_kernel(&place, &config, "").exits(65);
    }
}

#[test]
fn an_endless_kernel_meets_the_limit_of_a_step() {
    let place = Place::new();
    let run = with_bad_kernel(&place, r#"{"at": 3, "how": "endless"}"#, "--step-timeout 300ms");
    run.exits(75)
        .says("the guest failed in `step` at step 3: interrupted: the call took longer than --step-timeout allows");
}

#[test]
fn an_endless_kernel_gives_way_to_the_end_of_the_grace_time() {
    let place = Place::new();
    let run = with_bad_kernel(&place, r#"{"at": 3, "how": "endless"}"#, "--grace 1s");
    let mut attempt = run.start();
    attempt.go_on_until_said("a kernel goes round for ever");
    attempt.signal(Signal::TERM);
    attempt.end().expect_code(143).says("Step 3 did not end within the grace time; the last checkpoint stands");
    assert_eq!(place.record("bad_kernel").failure, None, "a stop is no failure of the guest");
}

#[test]
fn a_doctor_says_what_is_there_and_what_is_missing() {
    let place = Place::new();
    let doctor = place.command(&["doctor", "--volume"]).arg(place.volume());
    let people = doctor.exits(0).stdout;
    for what in [
        "versions",
        "processor",
        "cores",
        "memory",
        "GPU driver",
        "device",
        "engine",
        "volume",
        "scratch",
        "compiled code",
    ] {
        assert!(people.lines().any(|line| line.contains(what)), "no {what} in\n{people}");
    }
    let json: serde_json::Value = serde_json::from_str(
        &doctor.arg("--json").args("--device cuda").env("LD_LIBRARY_PATH", Double::none().folder()).exits(1).stdout,
    )
    .unwrap();
    let device = json.as_array().unwrap().iter().find(|check| check["what"] == "device").unwrap();
    assert_eq!(device["state"], "missing");
    assert!(device["advice"].as_str().unwrap().contains("--device cpu"), "{device}");
}
