//! Guests that break off, take too long, want too much or say too much. The host lives on: it says why, and writes its record.

use std::fs;

use rustix::process::Signal;

use crate::support::{Ended, Phase, Place, Run, state_of};

/// What the attempt says in the end. It has written down how it ended, which it can only do when it lives.
#[track_caller]
fn failed(place: &Place, guest: &str, run: &Run, code: u8) -> String {
    let ended = run.exits(code.into()).never_says("panicked at host/src");
    let recorded = place.record(guest).ended.unwrap();
    let refusal = ended.refusal(place);
    assert_eq!(recorded.exit, code);
    assert!(ended.stderr.contains(&recorded.message), "the record says something else: {}", recorded.message);
    refusal
}

/// The text without the frames of the standard library's and of our own glue, which are others in every release of the compiler.
fn own_frames(text: &str) -> String {
    let foreign = |line: &str| {
        let frame = line.strip_prefix("    in ");
        frame.is_some_and(|name| !["traps::", "test_guests::", "hungry::"].iter().any(|own| name.contains(own)))
    };
    let lines = text.lines().filter(|line| !foreign(line) && !line.starts_with("    … and "));
    lines.map(|line| line.to_owned() + "\n").collect()
}

#[test]
fn a_panic() {
    let place = Place::new();
    let run = place.run("traps").config(r#"{"at": 3, "how": "panic"}"#);
    let said = failed(&place, "traps", &run, 75);
    assert!(said.lines().count() < 20, "a backtrace that nobody reads to its end:\n{said}");
    insta::assert_snapshot!(own_frames(&said), @r#"
    steadfast: the guest failed in `step` at step 3: the guest panicked: this guest was told to panic
      at host/tests/guests/examples/traps.rs:30:27
        in <test_guests::Troubled<T> as steadfast_guest::Plugin>::step
    "#);
}

#[test]
fn a_trap() {
    let place = Place::new();
    let run = place.run("traps").config(r#"{"at": 3, "how": "abort"}"#);
    insta::assert_snapshot!(own_frames(&failed(&place, "traps", &run, 75)), @r#"
    steadfast: the guest failed in `step` at step 3: the guest aborted
        in <test_guests::Troubled<T> as steadfast_guest::Plugin>::step
    "#);
}

#[test]
fn an_exit() {
    let place = Place::new();
    let run = place.run("exits").config(r#"{"at": 3, "code": 0}"#);
    insta::assert_snapshot!(failed(&place, "exits", &run, 75), @"steadfast: the guest failed in `step` at step 3: the guest exited with code 0 instead of answering");
}

#[test]
fn recursion_without_end() {
    let place = Place::new();
    let run = place.run("traps").config(r#"{"at": 3, "how": "recursion"}"#);
    let said = failed(&place, "traps", &run, 75);
    assert!(said.lines().count() < 25, "{said}");
    insta::assert_snapshot!(said, @r#"
    steadfast: the guest failed in `step` at step 3: stack exhausted: recursion without end? (out of bounds memory access)
        in traps::deeper (64 times)
    "#);
}

#[test]
fn a_call_without_end() {
    let mut said = String::new();
    for (call, from) in [("start", None), ("step", Some(2)), ("snapshot", Some(2)), ("restore", Some(2))] {
        let place = Place::new();
        let config = format!(r#"{{"in": "{call}", "only_before_attempt": 2}}"#);
        let run = place.run("endless").config(&config).args("--every 1steps --volume-is-ephemeral --log human");
        if from.is_some() {
            // An attempt that may go on this far, by its number.
            run.clone().on_cloud_run("endless", "x", 5).term_at(Phase::Step, 2).expect_code(143);
        }
        let limited = run.clone().args("--step-timeout 200ms").on_cloud_run("endless", "x", 1);
        said += &failed(&place, "endless", &limited, 75);
        assert_eq!(place.usable("endless").last().copied(), from, "the last checkpoint stands");
        run.on_cloud_run("endless", "x", 3).done();
    }
    insta::assert_snapshot!(said, @r#"
    steadfast: the guest failed in `start` at step 0: interrupted: the call took longer than --step-timeout allows
    hint: let it do less at a time, or give it more time with --step-timeout
    steadfast: the guest failed in `step` at step 2: interrupted: the call took longer than --step-timeout allows
    hint: let it do less at a time, or give it more time with --step-timeout
    steadfast: the guest failed in `snapshot` at step 3: interrupted: the call took longer than --step-timeout allows
    hint: let it do less at a time, or give it more time with --step-timeout
    steadfast: the guest failed in `restore` at step 2: interrupted: the call took longer than --step-timeout allows
    hint: let it do less at a time, or give it more time with --step-timeout
    "#);
}

#[test]
fn memory_beyond_the_limit() {
    let place = Place::new();
    let run = place.run("hungry").config(r#"{"at": 3, "mebibytes": 512}"#).args("--memory-limit 64MiB");
    let said = failed(&place, "hungry", &run, 75);
    // What it has besides is the compiler's affair.
    let wanted = said.split("wanted ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
    assert!((512.0..514.0).contains(&wanted.parse::<f64>().unwrap()), "{said}");
    insta::assert_snapshot!(said.replace(wanted, "[a little more than 512]"), @r#"
    steadfast: the guest failed in `step` at step 3: out of memory: the guest wanted [a little more than 512] MiB in all, and its limit is 64.0 MiB
    hint: raise it with --memory-limit
    "#);
}

#[test]
fn memory_beyond_the_limit_from_the_first() {
    let place = Place::new();
    let run = place.run("hungry").args("--memory-limit 64KiB");
    insta::assert_snapshot!(failed(&place, "hungry", &run, 65), @r#"
    steadfast: cannot start the plugin `[guests]/hungry.wasm`: out of memory: the guest wanted 1.1 MiB in all, and its limit is 64.0 KiB
    hint: raise it with --memory-limit
    "#);
}

#[test]
fn four_gibibytes_at_once() {
    let place = Place::new();
    let run = place.run("hungry").config(r#"{"at": 3, "pages": 65536}"#).args("--memory-limit 8GiB");
    insta::assert_snapshot!(failed(&place, "hungry", &run, 75), @r#"
    steadfast: the guest failed in `step` at step 3: out of memory: the guest wanted more than 4.0 GiB, the most that this memory or table of it can have
    hint: a guest of 32 bits has 4 GiB at most, or what its module declares, whatever --memory-limit says
    "#);
}

#[test]
fn a_flood_of_lines() {
    let place = Place::new();
    let config = r#"{"steps": 4, "lines": 20000, "width": 200, "metrics": 0}"#;
    let ended = place.run("floods").config(config).done();
    // Each line is printed, or counted.
    let dropped: u64 = ended.stderr.lines().filter_map(dropped_lines).sum();
    let is_flood = |line: &&str| line.ends_with(&"x".repeat(200));
    let passed = ended.stdout.lines().filter(is_flood).count() + ended.stderr.lines().filter(is_flood).count();
    assert_eq!(passed as u64 + dropped, 4 * 3 * 20_000);
    assert!(dropped > 100_000, "{dropped} dropped");
    let notices = ended.lines(&place, &["of the guest's output"]);
    let notice = notices.lines().last().unwrap();
    let notice = notice.replace(&dropped_lines(notice).unwrap().to_string(), "[number]");
    insta::assert_snapshot!(notice, @"warning: [number] lines of the guest's output were dropped: it prints faster than a log can take");
    insta::assert_snapshot!(ended.stderr.lines().rev().find(|line| line.starts_with("Done")).unwrap(), @"Done: 4 steps");
}

#[test]
fn a_flood_that_nobody_reads() {
    let place = Place::new();
    let config = r#"{"steps": 4, "lines": 20000, "width": 200, "metrics": 0}"#;
    let mut attempt = place.run("floods").config(config).args("--grace 1s").unread().start();
    attempt.until(Phase::Idle, 0);
    attempt.go_on_until_unread();
    attempt.signal(Signal::TERM);
    attempt.end().expect_code(143);
    assert_eq!(place.usable("floods"), [0], "the last checkpoint stands");
}

fn dropped_lines(line: &str) -> Option<u64> {
    let (before, _) = line.split_once(" lines of the guest's output")?;
    before.rsplit(' ').next()?.parse().ok()
}

#[test]
fn a_flood_of_metrics() {
    let place = Place::new();
    let config = r#"{"steps": 2, "lines": 0, "metrics": 12000}"#;
    let ended = place.run("floods").config(config).done();
    insta::assert_snapshot!(ended.lines(&place, &["metric"]), @r#"
    warning: 2000 metrics of step 0 were too many, and dropped
    warning: 2000 metrics of step 1 were too many, and dropped
    "#);
    assert_eq!(place.finished("floods").metrics.lines().count(), 2 * 10_000, "all others are there");
}

#[test]
fn names_that_no_metric_can_have() {
    let place = Place::new();
    let mut said = String::new();
    for names in
        [r#""names": ["two\nlines"]"#, r#""long_name": 10000000"#, r#""names": ["", "", "fine"], "metrics": 1"#]
    {
        let config = format!(r#"{{"steps": 2, "lines": 0, "metrics": 0, {names}}}"#);
        let ended = place.run("floods").config(&config).arg("--fresh").done();
        said += &ended.lines(&place, &["etric"]);
        let longest = ended.stderr.lines().map(str::len).max().unwrap();
        assert!(longest < 1000, "a line of {longest} bytes");
    }
    insta::assert_snapshot!(said, @r#"
    warning: the metric name "two\nlines" is not 1 to 255 bytes without control characters; values under such names are dropped
    warning: Metrics dropped because of their names, in this attempt: 2
    warning: the metric name "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn" is not 1 to 255 bytes without control characters; values under such names are dropped
    warning: Metrics dropped because of their names, in this attempt: 2
    warning: the metric name "" is not 1 to 255 bytes without control characters; values under such names are dropped
    warning: Metrics dropped because of their names, in this attempt: 4
    "#);
    assert_eq!(place.finished("floods").metrics.lines().count(), 4, "what has a name is there");
}

/// One step, a stop, a resume: the sections come back as they were.
#[track_caller]
fn saved_and_restored(place: &Place, guest: &str, config: &str, arguments: &str) -> Ended {
    let run = place.run(guest).config(config).args("--every 1000steps --grace 100s --keep 1").args(arguments);
    run.term_at(Phase::Step, 1).expect_code(143);
    let ended = run.done();
    assert_eq!(ended.resumed_from(), Some(1));
    ended
}

#[test]
fn a_section_of_129_mebibytes_works() {
    let place = Place::new();
    saved_and_restored(&place, "big_state", r#"{"mebibytes": 129, "random": false, "steps": 2}"#, "");
    let state = state_of(&place.newest("big_state"));
    assert_eq!(state.iter().map(|(_, bytes)| bytes.len()).max(), Some(129 << 20));
}

#[test]
fn a_section_of_a_gibibyte_works() {
    let place = Place::new();
    let config = r#"{"mebibytes": 1024, "random": false, "steps": 2}"#;
    saved_and_restored(&place, "big_state", config, "--memory-limit 4GiB");
    let sums = place.finished("big_state");
    assert_eq!(sums.text("sums.csv").lines().count(), 2);
    assert_eq!(sums.state.iter().map(|(_, bytes)| bytes.len()).max(), Some(1 << 30));
}

#[test]
fn no_sections_work() {
    let place = Place::new();
    saved_and_restored(&place, "keeps_nothing", r#"{"steps": 3}"#, "");
    assert!(state_of(&place.newest("keeps_nothing")).is_empty());
    assert_eq!(place.finished("keeps_nothing").text("steps.log"), "step 0\nstep 1\nstep 2\n");
}

#[test]
fn a_name_that_is_used_twice_is_one_section() {
    let place = Place::new();
    let config = r#"{"steps": 3, "names": ["twice", "other", "twice"]}"#;
    saved_and_restored(&place, "strange_sections", config, "");
    let names: Vec<_> = state_of(&place.newest("strange_sections")).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["step", "twice", "other"]);
}

#[test]
fn a_million_sections_work() {
    let place = Place::new();
    let config = r#"{"steps": 2, "names": [], "numbered": 1000000, "pieces": 1}"#;
    saved_and_restored(&place, "strange_sections", config, "");
    assert_eq!(state_of(&place.newest("strange_sections")).len(), 1_000_001);
}

#[test]
fn more_sections_than_a_guest_may_have() {
    let place = Place::new();
    let config = r#"{"steps": 2, "names": [], "numbered": 1000000, "pieces": 1}"#;
    let run = place.run("strange_sections").config(config).args("--memory-limit 96MiB");
    let said = failed(&place, "strange_sections", &run, 75);
    insta::assert_snapshot!(own_frames(&said), @r#"
    steadfast: the guest failed in `snapshot` at step 0: the snapshot is larger than 96.0 MiB, the most that is taken (512 bytes are added for each section)
    hint: keep less in the state, or raise --state-limit
    "#);
}

#[test]
fn names_that_no_section_can_have() {
    let mut said = String::new();
    for name in [String::new(), "n".repeat(256)] {
        let place = Place::new();
        let config = format!(r#"{{"steps": 2, "names": ["{name}"]}}"#);
        said += &own_frames(&failed(&place, "strange_sections", &place.run("strange_sections").config(&config), 75));
    }
    insta::assert_snapshot!(said, @r#"
    steadfast: the guest failed in `snapshot` at step 0: the name of a state section is 0 bytes long; it must be 1 to 255
    steadfast: the guest failed in `snapshot` at step 0: the name of a state section is 256 bytes long; it must be 1 to 255
    "#);
}

#[test]
fn a_refusal_of_the_guest_s_own() {
    let mut said = String::new();
    for (kind, code) in [("invalid", 65), ("retryable", 75), ("incompatible-state", 70)] {
        let place = Place::new();
        let config = format!(r#"{{"at": 3, "kind": "{kind}", "message": "so it is"}}"#);
        said += &failed(&place, "refuses", &place.run("refuses").config(&config), code);
        assert!(fs::read_dir(place.task("refuses")).unwrap().count() > 0);
    }
    insta::assert_snapshot!(said, @r#"
    steadfast: the guest failed in `step` at step 3: invalid: so it is
    steadfast: the guest failed in `step` at step 3: retryable: so it is
    steadfast: the guest failed in `step` at step 3: incompatible state: so it is
    hint: run a plugin that reads this state: the one that wrote it is kept on the volume, in the job's folder `plugins`; to begin anew, say --fresh
    "#);
}
