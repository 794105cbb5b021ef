//! Typed calls: what goes in, what comes back, and what ends a guest.

use std::sync::Arc;

use super::super::*;
use super::build::Guest as Text;
use super::{Recorder, guest, job, settings};

#[test]
fn a_guest_counts_to_ten_and_says_done() {
    let (mut guest, _, _) = guest(&Text::default());
    guest.start(&job(7), "{}").unwrap();
    assert_eq!(guest.step().unwrap(), Step::More { done: 8, total: Some(10) });
    assert_eq!(guest.step().unwrap(), Step::More { done: 9, total: Some(10) });
    assert_eq!(guest.step().unwrap(), Step::Done("finished".to_owned()));
}

#[test]
fn an_error_of_the_guest_leaves_it_alive() {
    let (mut guest, _, _) = guest(&Text::default());
    let refused = guest.start(&job(0), "not a number").unwrap_err();
    assert_eq!(refused, CallError::Guest(GuestError::Invalid("not a number".to_owned())));
    guest.start(&job(0), "{}").unwrap();
    guest.step().unwrap();
}

#[test]
fn state_goes_from_one_guest_to_the_next() {
    let (mut first, plugin, _) = guest(&Text::default());
    first.start(&job(3), "{}").unwrap();
    first.step().unwrap();
    let snapshot = first.snapshot(Snapshot::default()).unwrap();
    let sections: Vec<_> = snapshot.sections.iter().map(|s| (s.name.as_str(), s.bytes.as_slice())).collect();
    assert_eq!((snapshot.version, sections), (7, vec![("n", &4_u64.to_le_bytes()[..]), ("empty", b"")]));

    let mut second = plugin.instantiate(settings(Recorder::new())).unwrap();
    let state = Arc::new(first.snapshot(Snapshot::default()).unwrap());
    second.restore(&job(3), "{}", &state).unwrap();
    let back = Arc::try_unwrap(state).unwrap();
    assert_eq!(back, snapshot);
    assert_eq!(second.step().unwrap(), first.step().unwrap());
    assert_eq!(second.snapshot(back).unwrap(), first.snapshot(snapshot).unwrap());
}

#[test]
fn state_of_another_version_is_told_apart() {
    let (mut guest, _, _) = guest(&Text::default());
    let state = Snapshot { version: 6, ..Snapshot::default() };
    let refused = guest.restore(&job(0), "{}", &state.into()).unwrap_err();
    assert_eq!(refused, CallError::Guest(GuestError::IncompatibleState(String::new())));
}

#[test]
fn section_names_are_checked_and_the_guest_hears_why() {
    let bad = "(call $write (local.get $into) (i32.const 80) (i32.const 0) (i32.const 512) (i32.const 3)) unreachable";
    let (mut guest, _, _) = guest(&Text { snapshot: bad, ..Text::default() });
    let error = guest.snapshot(Snapshot::default()).unwrap_err().to_string();
    assert!(error.starts_with("the name of a state section is 0 bytes long; it must be 1 to 255"), "{error}");
}

#[test]
fn a_snapshot_without_end_is_stopped() {
    let forever = "(loop $again
        (call $write (local.get $into) (i32.const 80) (i32.const 1) (i32.const 0) (i32.const 65536)) (br $again)) unreachable";
    let (mut guest, _, _) = guest(&Text { snapshot: forever, ..Text::default() });
    let error = guest.snapshot(Snapshot::default()).unwrap_err().to_string();
    assert!(error.starts_with("the snapshot is larger than"), "{error}");
}

#[test]
fn a_writer_that_is_kept_is_refused() {
    let keep = "(i32.store (i32.const 1028) (i32.const 7)) (i32.const 1024)";
    let (mut guest, _, _) = guest(&Text { snapshot: keep, ..Text::default() });
    let error = guest.snapshot(Snapshot::default()).unwrap_err();
    assert!(matches!(&error, CallError::Trap { message } if message.contains("borrow")), "{error}");
}

#[test]
fn a_trap_names_the_guest_s_functions_and_ends_it() {
    let functions = "(func $inner (drop (i32.div_u (i32.const 1) (i32.const 0)))) (func $_ZN6plugin5outer17h0123456789abcdefE (call $inner))";
    let text =
        Text { functions, step: "(call $_ZN6plugin5outer17h0123456789abcdefE) (i32.const 1024)", ..Text::default() };
    let (mut guest, _, _) = guest(&text);
    insta::assert_snapshot!(guest.step().unwrap_err(), @r#"
    the guest broke off: integer divide by zero
        in inner
        in plugin::outer
        in function 12
    "#);
    for later in [guest.step().unwrap_err(), guest.start(&job(0), "{}").unwrap_err()] {
        insta::allow_duplicates! { insta::assert_snapshot!(later, @"the guest cannot be called any more, since it ended: the guest broke off: integer divide by zero"); }
    }
    assert!(guest.snapshot(Snapshot::default()).is_err());
    assert!(guest.restore(&job(0), "{}", &Arc::default()).is_err());
}

#[test]
fn recursion_without_end_is_a_message() {
    let text = Text {
        functions: "(func $down (param i32) (result i32) (i32.add (local.get 0) (call $down (local.get 0))))",
        step: "(call $down (i32.const 1))",
        ..Text::default()
    };
    let (mut guest, _, _) = guest(&text);
    let error = guest.step().unwrap_err().to_string();
    assert!(error.starts_with("stack exhausted"), "{error}");
    assert!(error.contains(" times)"), "{error}");
}

#[test]
fn exit_is_told_apart_from_a_trap() {
    let imports = r#"(import "wasi:cli/exit@0.2.3" "exit" (func $exit (param i32)))"#;
    for (status, code) in [("(call $exit (i32.const 1)) unreachable", 1), ("(call $exit (i32.const 0)) unreachable", 0)]
    {
        let (mut guest, _, _) = guest(&Text { imports, step: status, ..Text::default() });
        assert_eq!(guest.step().unwrap_err(), CallError::Exited(code));
        assert!(guest.step().unwrap_err().to_string().contains("cannot be called any more"));
    }
}

#[test]
fn reports_arrive_and_bad_metric_names_are_dropped_with_one_warning() {
    let step = "
        (call $log (i32.const 2) (i32.const 96) (i32.const 5))
        (call $metric (i32.const 96) (i32.const 5) (f64.const 1.5))
        (call $metric (i32.const 96) (i32.const 6) (f64.const 1.5))
        (call $metric (i32.const 96) (i32.const 0) (f64.const 1.5))
        (call $more (i64.const 1))";
    let (mut guest, _, recorder) = guest(&Text::stepping(step));
    guest.step().unwrap();
    let lines = recorder.lines();
    assert_eq!(lines[..2], ["Warn: hello", "hello = 1.5"]);
    assert!(lines[2].starts_with(r#"Warn: the metric name "hello\u{1}" is not"#), "{lines:?}");
    assert_eq!((lines.len(), guest.dropped_metrics()), (3, 2));
}

const STDERR: &str = r#"
    (import "wasi:cli/stderr@0.2.3" "get-stderr" (func $stderr (result i32)))
    (import "wasi:io/streams@0.2.3" "[method]output-stream.blocking-write-and-flush"
      (func $print (param i32 i32 i32 i32)))"#;

#[test]
fn what_a_guest_prints_arrives_as_lines_and_explains_its_trap() {
    let text = Text {
        imports: STDERR,
        functions: r#"(data (i32.const 200) "one\ntwo\nthread '<unnamed>' (1) panicked at src/lib.rs:1:2:\nno more beans\nnote: x\nrest")"#,
        step: "(call $print (call $stderr) (i32.const 200) (i32.const 85) (i32.const 700)) unreachable",
        ..Text::default()
    };
    let (mut guest, _, recorder) = guest(&text);
    let error = guest.step().unwrap_err().to_string();
    assert!(error.starts_with("the guest panicked: no more beans\n  at src/lib.rs:1:2\n    in "), "{error}");
    let place = "thread '<unnamed>' (1) panicked at src/lib.rs:1:2:";
    assert_eq!(recorder.lines(), ["one", "two", place, "no more beans", "note: x", "rest"]);
}
