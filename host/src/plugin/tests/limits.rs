//! Interruption, memory and randomness.

use std::sync::{Arc, Mutex};

use super::super::*;
use super::build::Guest as Text;
use super::{Recorder, guest, job, plugin, settings};

const LOOP: &str = "
    (call $log (i32.const 1) (i32.const 96) (i32.const 5))
    (loop $again (br $again)) unreachable";

/// Interrupts the guest from inside its first log call, so that nothing here depends on time.
struct InterruptOnLog(Mutex<Option<Interrupter>>, Interruption);

impl GuestEvents for InterruptOnLog {
    fn line(&self, _: GuestStream, _: &str) {}
    fn metric(&self, _: &str, _: f64) {}
    fn log(&self, _: GuestLevel, _: &str) {
        if let Some(interrupter) = self.0.lock().unwrap().take() {
            interrupter.interrupt(self.1);
        }
    }
}

#[test]
fn an_endless_step_is_ended() {
    for why in [Interruption::StepTimeout, Interruption::GraceEnds] {
        let plugin = plugin(&Text::stepping(LOOP));
        let events = Arc::new(InterruptOnLog(Mutex::new(Some(plugin.interrupter())), why));
        let mut guest = plugin.instantiate(GuestSettings { events, ..settings(Recorder::new()) }).unwrap();
        assert_eq!(guest.step().unwrap_err(), CallError::Interrupted(why));
        plugin.interrupter().clear();
        assert!(guest.step().unwrap_err().to_string().contains("cannot be called any more"));
    }
}

#[test]
fn an_endless_step_is_ended_from_another_thread() {
    let plugin = plugin(&Text::stepping(LOOP));
    let (told, hears) = std::sync::mpsc::channel();
    struct Tell(Mutex<std::sync::mpsc::Sender<()>>);
    impl GuestEvents for Tell {
        fn line(&self, _: GuestStream, _: &str) {}
        fn metric(&self, _: &str, _: f64) {}
        fn log(&self, _: GuestLevel, _: &str) {
            self.0.lock().unwrap().send(()).unwrap();
        }
    }
    let events = Arc::new(Tell(Mutex::new(told)));
    let mut guest = plugin.instantiate(GuestSettings { events, ..settings(Recorder::new()) }).unwrap();
    let interrupter = plugin.interrupter();
    let watchdog = std::thread::spawn(move || {
        hears.recv().unwrap();
        interrupter.interrupt(Interruption::StepTimeout);
    });
    assert_eq!(guest.step().unwrap_err(), CallError::Interrupted(Interruption::StepTimeout));
    watchdog.join().unwrap();
}

#[test]
fn a_wish_that_was_taken_back_changes_nothing() {
    let (mut guest, plugin, _) = guest(&Text::default());
    guest.start(&job(0), "{}").unwrap();
    for done in 1..5 {
        plugin.interrupter().interrupt(Interruption::StepTimeout);
        plugin.interrupter().clear();
        assert_eq!(guest.step().unwrap(), Step::More { done, total: Some(10) });
    }
    plugin.interrupter().interrupt(Interruption::GraceEnds);
    plugin.interrupter().interrupt(Interruption::StepTimeout);
    assert_eq!(guest.step().unwrap_err(), CallError::Interrupted(Interruption::GraceEnds));
}

#[test]
fn another_plugin_s_interruption_is_not_ours() {
    let runtime = Runtime::new(None).unwrap();
    let text = Text::default().build();
    let (one, two) =
        (runtime.load_bytes("1".as_ref(), &text).unwrap(), runtime.load_bytes("2".as_ref(), &text).unwrap());
    let mut guest = one.instantiate(settings(Recorder::new())).unwrap();
    two.interrupter().interrupt(Interruption::GraceEnds);
    guest.step().unwrap();
}

const GROW: &str = "
    (if (i32.eq (memory.grow (i32.const 32)) (i32.const -1)) (then unreachable))
    (call $more (i64.const 1))";

#[test]
fn memory_ends_at_its_limit() {
    // One page to begin with and a table of ten; every step wants 2 MiB.
    let plugin = plugin(&Text::stepping(GROW));
    let limit = 4 * 1024 * 1024 + 65536 + 80;
    let mut guest = plugin.instantiate(GuestSettings { memory_limit: limit, ..settings(Recorder::new()) }).unwrap();
    // wit-component adds a table of its own, so a little more than the module's is used.
    let first = guest.memory_used();
    assert!(first >= 65536 + 80, "{first}");
    guest.step().unwrap();
    assert_eq!(guest.memory_used(), first + 2 * 1024 * 1024);
    let wanted = first + 4 * 1024 * 1024;
    let error = match guest.step() {
        Ok(_) => guest.step().unwrap_err(),
        Err(error) => error,
    };
    assert!(matches!(error, CallError::MemoryLimit { wanted: w, limit: l } if w >= wanted && l == limit), "{error}");
}

#[test]
fn tables_count_as_memory() {
    let step = "
        (if (i32.eq (table.grow $table (ref.null func) (i32.const 1000000)) (i32.const -1)) (then unreachable))
        (call $more (i64.const 1))";
    let plugin = plugin(&Text::stepping(step));
    let mut guest = plugin.instantiate(GuestSettings { memory_limit: 1 << 20, ..settings(Recorder::new()) }).unwrap();
    let error = guest.step().unwrap_err();
    assert!(matches!(error, CallError::MemoryLimit { wanted, limit: 1_048_576 } if wanted > 8_000_000), "{error}");
}

#[test]
fn an_impossible_wish_gives_nothing_back() {
    // After each growth of its memory, more elements than there are numbers for, in a table of 64 bits.
    let text = Text {
        functions: "(table $wide i64 1 funcref)",
        step: "
        (if (i32.eq (memory.grow (i32.const 16)) (i32.const -1)) (then unreachable))
        (drop (table.grow $wide (ref.null func) (i64.const -1)))
        (call $more (i64.const 1))",
        ..Text::default()
    };
    let plugin = plugin(&text);
    let mut guest = plugin.instantiate(GuestSettings { memory_limit: 8 << 20, ..settings(Recorder::new()) }).unwrap();
    let error = (0..9).find_map(|_| guest.step().err()).unwrap();
    assert!(matches!(error, CallError::MemoryLimit { .. }), "{error}");
}

#[test]
fn a_refusal_that_the_guest_survives_is_no_error() {
    let step = "(drop (memory.grow (i32.const 32768))) (call $more (i64.const 1))";
    let (mut guest, _, _) = guest(&Text::stepping(step));
    guest.step().unwrap();
    guest.step().unwrap();
}

#[test]
fn a_plugin_that_is_too_large_from_the_start_is_told_so() {
    let plugin = plugin(&Text { memory: "100", ..Text::default() });
    let tight = GuestSettings { memory_limit: 1 << 20, ..settings(Recorder::new()) };
    let error = plugin.instantiate(tight).err().unwrap().to_string();
    assert!(error.contains("out of memory") && error.contains("--memory-limit"), "{error}");
}

const RANDOM: &str = r#"(import "wasi:random/random@0.2.3" "get-random-u64" (func $random (result i64)))"#;

fn number(guest: &mut Guest) -> u64 {
    match guest.step().unwrap() {
        Step::More { done, .. } => done,
        Step::Done(_) => panic!("not expected"),
    }
}

#[test]
fn random_numbers_go_on_where_they_were() {
    let plugin = plugin(&Text { imports: RANDOM, step: "(call $more (call $random))", ..Text::default() });
    let fresh = |seed| plugin.instantiate(GuestSettings { seed, ..settings(Recorder::new()) }).unwrap();
    let mut first = fresh(1);
    let numbers: Vec<u64> = (0..100).map(|_| number(&mut first)).collect();
    for at in [0, 1, 7, 31, 32, 33, 99] {
        let mut before = fresh(1);
        let _: u64 = (0..at).map(|_| number(&mut before)).fold(0, u64::wrapping_add);
        let json = serde_json::to_string(&before.random_position()).unwrap();
        let mut after = fresh(1);
        after.set_random_position(serde_json::from_str(&json).unwrap());
        assert_eq!((at..100).map(|_| number(&mut after)).collect::<Vec<_>>(), numbers[at..]);
    }
    assert_ne!(number(&mut fresh(2)), numbers[0]);
}

#[test]
fn the_insecure_seed_is_one_for_a_job() {
    let imports = r#"(import "wasi:random/insecure-seed@0.2.3" "insecure-seed" (func $seed (param i32)))"#;
    let step =
        "(call $seed (i32.const 800)) (call $more (i64.xor (i64.load (i32.const 800)) (i64.load (i32.const 808))))";
    let plugin = plugin(&Text { imports, step, ..Text::default() });
    let seed = |seed| number(&mut plugin.instantiate(GuestSettings { seed, ..settings(Recorder::new()) }).unwrap());
    assert_eq!(seed(5), seed(5));
    assert_ne!(seed(5), seed(6));
}
