//! A named piece of work: what it runs, how long it took, and the command that repeats it when it fails.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// The repository's root, whatever the current folder is.
pub(crate) fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root().join(folder),
        None => root().join("target"),
    }
}

/// `cargo` with these arguments, in the repository's root.
pub(crate) fn cargo<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    // Cargo has told us about the package that we are. To build scripts that look, ours would be a change, and they would be run again after
    // every command that was typed without us.
    let about_us = |name: &str| ["CARGO_PKG_", "CARGO_MANIFEST_"].iter().any(|prefix| name.starts_with(prefix));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(about_us)) {
        command.env_remove(name);
    }
    command
}

/// Runs a command to its end; fails, with the command to repeat, unless it exits 0.
pub(crate) fn run(name: &str, command: &mut Command) -> Result<()> {
    begin(name, command);
    let started = Instant::now();
    let status = command.status().with_context(|| format!("cannot start {}", text(command)))?;
    end(name, started.elapsed(), status, command)
}

/// Runs a command without a word; fails unless it exits 0.
pub(crate) fn run_quietly(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot start {}", text(command)))?;
    if status.success() { Ok(()) } else { bail!("{} ended with {status}", text(command)) }
}

/// Like [`run`], handing each line of its standard output to `line` after it was passed on.
pub(crate) fn run_lines(name: &str, command: &mut Command, mut line: impl FnMut(&str)) -> Result<()> {
    begin(name, command);
    let started = Instant::now();
    let status = stream(command, &mut line)?;
    end(name, started.elapsed(), status, command)
}

/// Runs a command to its end, passing its standard output on and handing each line of it to `line`.
pub(crate) fn stream(command: &mut Command, line: &mut impl FnMut(&str)) -> Result<ExitStatus> {
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("cannot start {}", text(command)))?;
    if let Some(output) = child.stdout.take() {
        pass_on(output, &mut std::io::stdout(), line)?;
    }
    Ok(child.wait()?)
}

/// Not `lines()`: what a test prints need not be UTF-8, and must not end the run.
fn pass_on(from: impl Read, to: &mut impl Write, line: &mut impl FnMut(&str)) -> std::io::Result<()> {
    let mut from = BufReader::new(from);
    let mut bytes = Vec::new();
    while from.read_until(b'\n', &mut bytes)? > 0 {
        to.write_all(&bytes)?;
        line(String::from_utf8_lossy(&bytes).trim_end());
        bytes.clear();
    }
    Ok(())
}

/// Whether a program can be started at all: for checks that are skipped, and say so, where their tool is missing.
pub(crate) fn installed(program: &str, probe: &[&str]) -> bool {
    let quiet =
        Command::new(program).args(probe).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}

fn begin(name: &str, command: &Command) {
    println!("── {name}: {}", text(command));
}

fn end(name: &str, took: Duration, status: ExitStatus, command: &Command) -> Result<()> {
    if status.success() {
        println!("   {name} took {:.1} s", took.as_secs_f64());
        return Ok(());
    }
    bail!("{name} failed after {:.1} s ({status}); to repeat it: {}", took.as_secs_f64(), text(command))
}

/// The command as one would type it in the repository's root.
pub(crate) fn text(command: &Command) -> String {
    let mut typed = String::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            typed.push_str(&format!("{}={} ", name.to_string_lossy(), quoted(value)));
        }
    }
    let program = Path::new(command.get_program());
    // Cargo tells its children where it is by a long path; people type its name.
    match program.file_name() {
        Some(file) if file == "cargo" => typed.push_str("cargo"),
        _ => typed.push_str(&quoted(short(program).as_os_str())),
    }
    for argument in command.get_args() {
        typed.push(' ');
        typed.push_str(&quoted(short(Path::new(argument)).as_os_str()));
    }
    typed
}

/// The path below the repository's root, where it lies there.
pub(crate) fn short(path: &Path) -> &Path {
    path.strip_prefix(root()).unwrap_or(path)
}

fn quoted(argument: &OsStr) -> String {
    let argument = argument.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        argument.into_owned()
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_reads_as_one_would_type_it() {
        let mut command = Command::new("/somewhere/bin/cargo");
        command.args(["run", "--config", r#"{"steps": 3}"#, "it's"]).env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(text(&command), r#"RUSTDOCFLAGS='-D warnings' cargo run --config '{"steps": 3}' 'it'\''s'"#);
    }

    #[test]
    fn paths_in_the_repository_are_shortened() {
        assert_eq!(text(&Command::new(root().join("target/release/steadfast"))), "target/release/steadfast");
    }

    #[test]
    fn a_failing_step_names_itself_and_the_command_to_repeat() {
        let error = run("trial", Command::new("sh").args(["-c", "exit 3"])).map_err(|error| error.to_string());
        let Err(error) = error else { panic!("a step that exits 3 passed") };
        assert!(error.starts_with("trial failed after"), "{error}");
        assert!(error.ends_with("to repeat it: sh -c 'exit 3'"), "{error}");
    }

    #[test]
    fn lines_are_handed_on_even_if_they_are_not_utf8() {
        let (mut seen, mut passed) = (Vec::new(), Vec::new());
        let bytes = b"one\n\xfftwo\nlast";
        let outcome = pass_on(&bytes[..], &mut passed, &mut |line: &str| seen.push(line.to_owned()));
        assert!(outcome.is_ok());
        assert_eq!(passed, bytes);
        assert_eq!(seen, ["one", "\u{fffd}two", "last"]);
    }
}
