//! What a call that did not come back means, in words for the plugin's author.
//!
//! A trap's own cause ("unreachable") is rarely what went wrong: a panicking Rust guest prints its message and then aborts. So
//! the message is made of the cause, what the guest said on standard error in the same call, and the guest's own stack, without
//! the frames of the panic machinery.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use wasmtime::{FrameInfo, Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use super::interrupt::Interruption;
use super::limits::Refusal;
use super::stdio;

/// Why the guest says that it cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GuestError {
    /// Configuration or input can never work.
    #[error("invalid: {0}")]
    Invalid(String),
    /// Another attempt may succeed.
    #[error("retryable: {0}")]
    Retryable(String),
    /// The state has a version that the plugin cannot read.
    #[error("incompatible state: {0}")]
    IncompatibleState(String),
}

/// Why a call has no result. After any but [`CallError::Guest`] the guest is never called again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The guest answered with an error.
    #[error(transparent)]
    Guest(#[from] GuestError),
    /// The guest broke off.
    #[error("{message}")]
    Trap {
        /// The cause, the guest's last words, and its stack; several lines.
        message: String,
    },
    /// The host ended the call.
    #[error("interrupted: {0}")]
    Interrupted(Interruption),
    /// The guest broke off after it was refused more memory.
    #[error(
        "out of memory: the guest wanted {} in all, and its limit is {}\nhint: raise it with --memory-limit",
        size(*wanted),
        size(*limit)
    )]
    MemoryLimit {
        /// What it would have had in all, in bytes.
        wanted: u64,
        /// What it may have.
        limit: u64,
    },
    /// The guest broke off after it wanted something to grow that can never be so large.
    #[error(
        "out of memory: the guest wanted more than {}, the most that this memory or table of it can have\n\
         hint: a guest of 32 bits has 4 GiB at most, or what its module declares, whatever --memory-limit says",
        size(*maximum)
    )]
    MemoryMaximum {
        /// The size that the memory or table would have had, in bytes.
        wanted: u64,
        /// What it may have.
        maximum: u64,
    },
    /// The guest broke off after a growth that nothing forbids failed.
    #[error(
        "out of memory: the guest wanted more than the machine has: {cause}\n\
         hint: give the machine more, or lower --memory-limit so that the guest meets that first"
    )]
    NoMemory {
        /// What wasmtime says.
        cause: String,
    },
    /// A kernel did what it must not, and would do it again.
    #[error("a kernel failed: {0}")]
    KernelFault(String),
    /// The device is gone, or has no room for what a checkpoint holds; another attempt may find a better one.
    #[error("the device failed: {0}")]
    Device(String),
    /// The guest called `exit`.
    #[error("the guest exited with code {0} instead of answering")]
    Exited(i32),
}

fn size(bytes: u64) -> bytesize::Display {
    bytesize::ByteSize::b(bytes).display().iec()
}

const MOST_FRAMES: usize = 16;
const LONGEST_LAST_WORDS: usize = 2048;

/// Whether the guest is at fault, and not the host or the machine.
pub(super) fn is_the_guest_s(error: &wasmtime::Error, refusal: Option<&Refusal>) -> bool {
    refusal.is_some() || error.is::<Trap>() || error.is::<I32Exit>() || error.is::<Interruption>()
}

/// Turns what wasmtime reports into what it means.
pub(super) fn explain(error: &wasmtime::Error, refusal: Option<&Refusal>, last_words: &[String]) -> CallError {
    if let Some(why) = error.downcast_ref::<Interruption>() {
        return CallError::Interrupted(*why);
    }
    if let Some(exit) = error.downcast_ref::<I32Exit>() {
        return CallError::Exited(exit.0);
    }
    match refusal {
        Some(Refusal::Limit { wanted, limit }) => return CallError::MemoryLimit { wanted: *wanted, limit: *limit },
        Some(Refusal::Maximum { wanted, maximum }) => {
            return CallError::MemoryMaximum { wanted: *wanted, maximum: *maximum };
        }
        Some(Refusal::Failed(cause)) => return CallError::NoMemory { cause: cause.clone() },
        None => {}
    }
    CallError::Trap { message: describe(error, last_words) }
}

fn describe(error: &wasmtime::Error, last_words: &[String]) -> String {
    let panic = panic_message(last_words);
    let frames = error.downcast_ref::<WasmBacktrace>().map_or(&[][..], WasmBacktrace::frames);
    let mut text = match (&panic, error.downcast_ref::<Trap>()) {
        (Some(panic), _) => format!("the guest panicked: {panic}"),
        (None, Some(Trap::UnreachableCodeReached)) => "the guest aborted".to_owned(),
        (None, Some(Trap::StackOverflow)) => RECURSION.to_owned(),
        // Compilers keep a stack of their own at the low end of memory, which ends below zero.
        (None, Some(trap @ Trap::MemoryOutOfBounds)) if is_recursion(frames) => {
            format!("{RECURSION} ({})", trap.to_string().trim_start_matches("wasm trap: "))
        }
        (None, Some(trap)) => format!("the guest broke off: {}", trap.to_string().trim_start_matches("wasm trap: ")),
        (None, None) => error.root_cause().to_string(),
    };
    // What can be done comes last, as everywhere.
    let hint = text.find("\nhint: ").map(|at| text.split_off(at));
    if panic.is_none() && !last_words.is_empty() {
        text.push_str("\n  its last words:");
        for line in last_words {
            let _ = write!(text, "\n  | {}", stdio::cut(line, 512));
        }
    }
    text.push_str(&stack(frames));
    text.extend(hint);
    text
}

const RECURSION: &str = "stack exhausted: recursion without end?";

/// Whether the stack is deep, and made of a few functions that call each other.
fn is_recursion(frames: &[FrameInfo]) -> bool {
    const DEEP: usize = 48;
    const FEW: usize = 4;
    // What the innermost of them called is beside the point.
    let deep = frames.len().checked_sub(DEEP).map(|rest| &frames[rest.min(FEW)..][..DEEP - FEW]);
    let functions = |frames: &[FrameInfo]| frames.iter().map(FrameInfo::func_index).collect::<BTreeSet<_>>().len();
    deep.is_some_and(|frames| functions(frames) <= FEW)
}

/// The message of the last panic that Rust's standard library printed, and its place; the message first, because those who
/// have room for one line show the first.
fn panic_message(last_words: &[String]) -> Option<String> {
    let first = last_words.iter().rposition(|line| line.starts_with("thread '") && line.contains(" panicked at "))?;
    let (_, place) = last_words[first].split_once(" panicked at ")?;
    let lines = last_words[first + 1..].iter().take_while(|line| !line.starts_with("note: ")).map(String::as_str);
    let message = lines.collect::<Vec<_>>().join("\n  ");
    Some(format!("{}\n  at {}", stdio::cut(&message, LONGEST_LAST_WORDS), place.trim_end_matches(':')))
}

fn stack(frames: &[FrameInfo]) -> String {
    let names: Vec<String> = frames.iter().map(function_name).collect();
    let first = names.iter().rposition(|name| is_panic_machinery(name)).map_or(0, |last| last + 1);
    // A trap inside the machinery itself still shows something.
    let first = if first < frames.len() { first } else { 0 };
    let lines: Vec<_> = frames
        .iter()
        .zip(&names)
        .skip(first)
        .map(|(frame, name)| stdio::cut(name, 300).to_owned() + &place(frame))
        .collect();
    let mut text = String::new();
    let mut shown = 0;
    // A function that calls itself is one line.
    for same in lines.chunk_by(|one, other| one == other).take(MOST_FRAMES) {
        shown += same.len();
        let times = if same.len() > 1 { format!(" ({} times)", same.len()) } else { String::new() };
        let _ = write!(text, "\n    in {}{times}", same[0]);
    }
    if shown < lines.len() {
        let _ = write!(text, "\n    … and {} frames more", lines.len() - shown);
    }
    text
}

fn function_name(frame: &FrameInfo) -> String {
    let raw = frame.symbols().first().and_then(|symbol| symbol.name()).or(frame.func_name());
    match raw {
        Some(name) => format!("{:#}", rustc_demangle::demangle(name)),
        None => format!("function {}", frame.func_index()),
    }
}

fn place(frame: &FrameInfo) -> String {
    let Some(symbol) = frame.symbols().first() else { return String::new() };
    match (symbol.file(), symbol.line()) {
        (Some(file), Some(line)) => format!(" ({file}:{line})"),
        (Some(file), None) => format!(" ({file})"),
        _ => String::new(),
    }
}

fn is_panic_machinery(name: &str) -> bool {
    const MARKS: [&str; 8] = [
        "core::panicking::",
        "std::panicking::",
        "rust_panic",
        "__rust_abort",
        "std::process::abort",
        "core::option::unwrap_failed",
        "core::option::expect_failed",
        "core::result::unwrap_failed",
    ];
    MARKS.iter().any(|mark| name.contains(mark)) || matches!(name, "abort" | "panic_abort" | "rust_begin_unwind")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn the_panic_message_leads() {
        let said = words(&[
            "loading",
            "",
            "thread '<unnamed>' (1) panicked at src/lib.rs:7:5:",
            "index out of bounds: the len is 3",
            "  but the index is 4",
            "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace",
        ]);
        let error = wasmtime::Error::from(Trap::UnreachableCodeReached);
        insta::assert_snapshot!(explain(&error, None, &said), @r#"
        the guest panicked: index out of bounds: the len is 3
            but the index is 4
          at src/lib.rs:7:5
        "#);
    }

    #[test]
    fn last_words_stand_in_for_a_panic() {
        let error = wasmtime::Error::from(Trap::UnreachableCodeReached);
        insta::assert_snapshot!(explain(&error, None, &words(&["Assertion failed: n > 0"])), @r#"
        the guest aborted
          its last words:
          | Assertion failed: n > 0
        "#);
    }

    #[test]
    fn a_refused_growth_is_the_cause() {
        let error = wasmtime::Error::from(Trap::UnreachableCodeReached);
        let refusal = Refusal::Limit { wanted: 2000, limit: 1000 };
        let got = explain(&error, Some(&refusal), &[]);
        assert_eq!(got, CallError::MemoryLimit { wanted: 2000, limit: 1000 });
    }

    #[test]
    fn an_interruption_beats_all() {
        let error = wasmtime::Error::new(Interruption::GraceEnds);
        let refusal = Refusal::Limit { wanted: 2000, limit: 1000 };
        assert_eq!(explain(&error, Some(&refusal), &[]), CallError::Interrupted(Interruption::GraceEnds));
    }
}
