//! The words and forms of log lines, through the same layer as in a run.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use super::*;

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Captured {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct BrokenPipe;

impl Write for BrokenPipe {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }
    fn flush(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::BrokenPipe.into())
    }
}

/// What `work` reports, on stderr and on stdout.
fn captured(format: Format, work: impl FnOnce(&Reporter)) -> (String, String) {
    let (err, out) = (Captured::default(), Captured::default());
    let outlet = Arc::new(Outlet::for_test(format, Box::new(err.clone()), Box::new(out.clone())));
    let layer = layer::LineLayer::new(Arc::clone(&outlet)).with_filter(filter(None));
    let reporter = Reporter { outlet };
    tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || work(&reporter));
    (err.text(), out.text())
}

fn some_of_everything(reporter: &Reporter) {
    reporter.block(&[("job", "digits · task 0 of 1".to_owned()), ("volume", "./checkpoints\n(ext4)".to_owned())]);
    let step = 413_u64;
    let error = io::Error::other("no space left");
    tracing::info!(step, bytes = 12_345_u64, seconds = 0.5, "Saving checkpoint at step {step}");
    tracing::warn!(error = %error, hint = "give it more room", failures = 2, "the checkpoint could not be saved");
    tracing::error!(time = "reserved", infinite = f64::INFINITY, full = true, "a \"quoted\"\nmessage");
    tracing::debug!("not shown");
    tracing::info!(target: "wasmtime", "not ours");
    let span = tracing::info_span!("attempt", job = "digits", task = 3, step = 0_u64);
    span.in_scope(|| tracing::info!(step, "inside"));
    reporter.guest_line(GuestSource::Stdout, "12 to go");
    reporter.guest_line(GuestSource::Stderr, "careful");
    reporter.guest_line(GuestSource::Log(Severity::Warning), "loss is rising");
    reporter.guest_line(GuestSource::Log(Severity::Debug), "details");
}

#[test]
fn lines_for_people() {
    let (err, out) = captured(Format::Human, some_of_everything);
    insta::assert_snapshot!(err, @r#"
      job       digits · task 0 of 1
      volume    ./checkpoints
                (ext4)
    Saving checkpoint at step 413
    warning: the checkpoint could not be saved: no space left
      hint: give it more room
    error: a "quoted"
    message
    inside
    careful
    warning: loss is rising
    "#);
    assert_eq!(out, "12 to go\n");
}

#[test]
fn lines_for_collectors() {
    let (err, out) = captured(Format::Json, some_of_everything);
    insta::assert_snapshot!(err, @r#"
    {"severity":"INFO","message":"job: digits · task 0 of 1","time":"2026-05-28T20:26:40.123456Z","row":"job"}
    {"severity":"INFO","message":"volume: ./checkpoints\n(ext4)","time":"2026-05-28T20:26:40.123456Z","row":"volume"}
    {"severity":"INFO","message":"Saving checkpoint at step 413","time":"2026-05-28T20:26:40.123456Z","step":413,"bytes":12345,"seconds":0.5}
    {"severity":"WARNING","message":"the checkpoint could not be saved: no space left","time":"2026-05-28T20:26:40.123456Z","error":"no space left","hint":"give it more room","failures":2}
    {"severity":"ERROR","message":"a \"quoted\"\nmessage","time":"2026-05-28T20:26:40.123456Z","time_":"reserved","infinite":"inf","full":true}
    {"severity":"INFO","message":"inside","time":"2026-05-28T20:26:40.123456Z","job":"digits","task":3,"step":413}
    {"severity":"INFO","message":"12 to go","time":"2026-05-28T20:26:40.123456Z","source":"guest stdout"}
    {"severity":"INFO","message":"careful","time":"2026-05-28T20:26:40.123456Z","source":"guest stderr"}
    {"severity":"WARNING","message":"loss is rising","time":"2026-05-28T20:26:40.123456Z","source":"guest log"}
    {"severity":"DEBUG","message":"details","time":"2026-05-28T20:26:40.123456Z","source":"guest log"}
    "#);
    assert_eq!(out, "");
    for line in err.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let time: jiff::Timestamp = line["time"].as_str().unwrap().parse().unwrap();
        assert_eq!(time.subsec_microsecond(), 123_456, "microseconds are lost");
    }
}

#[test]
fn a_broken_pipe_is_no_reason_to_die() {
    for format in [Format::Human, Format::Json] {
        let outlet = Arc::new(Outlet::for_test(format, Box::new(BrokenPipe), Box::new(BrokenPipe)));
        let reporter = Reporter { outlet };
        some_of_everything(&reporter);
        reporter.progress().finish();
        reporter.finish();
    }
}

#[test]
fn a_guest_that_prints_without_end_is_thinned_out_and_accounted_for() {
    let printed = 50_000_u64;
    let (err, out) = captured(Format::Human, |reporter| {
        for number in 0..printed {
            reporter.guest_line(GuestSource::Stdout, &format!("line {number}"));
        }
        reporter.finish();
    });
    let passed = u64::try_from(out.lines().count()).unwrap();
    let dropped: u64 = err.lines().map(|line| line.split(' ').nth(1).unwrap().parse::<u64>().unwrap()).sum();
    assert!(passed >= 1000, "only {passed} lines passed");
    assert_eq!(passed + dropped, printed);
    assert!(err.starts_with("warning: ") && err.contains("of the guest's output were dropped"), "{err}");
}

#[test]
fn an_endless_line_is_cut_between_characters() {
    let (_, out) = captured(Format::Human, |reporter| {
        reporter.guest_line(GuestSource::Stdout, &"€".repeat(30_000));
    });
    assert!(out.ends_with("€ … (24465 more bytes)\n"), "{}", &out[out.len() - 60..]);
}

#[test]
fn a_filter_that_cannot_be_read_is_the_usual_one() {
    for given in [None, Some(""), Some("steadfast=loud")] {
        assert_eq!(filter(given), filter(None), "{given:?}");
    }
    assert_ne!(filter(Some("debug")), filter(None));
}

#[test]
fn a_table_is_aligned_for_people_and_fields_for_collectors() {
    let row = |what: &str, calls: u64, shown: &str| vec![Cell::text(what), Cell::number(calls, shown), Cell::text("")];
    let table = Table {
        title: "Profile: all of it".to_owned(),
        columns: vec!["what", "calls", "runs as"],
        rows: vec![row("advance", 1200, "1200"), row("(reads)", 7, "7"), row("(fills)", 0, "")],
    };
    let (people, _) = captured(Format::Human, |reporter| reporter.table(&table));
    insta::assert_snapshot!(people, @r#"
    Profile: all of it
       what     calls  runs as
       advance   1200
       (reads)      7
       (fills)
    "#);
    let (lines, _) = captured(Format::Json, |reporter| reporter.table(&table));
    let lines: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0]["message"], "Profile: all of it");
    assert_eq!(lines[1]["message"], "what advance · calls 1200");
    assert_eq!(
        (&lines[1]["what"], &lines[1]["calls"], &lines[1]["runs_as"]),
        (&"advance".into(), &1200.into(), &"".into())
    );
    assert_eq!(lines[3]["calls"], 0);
}
