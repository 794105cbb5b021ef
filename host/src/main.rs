//! The `steadfast` program.

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    match steadfast::cli::execute(std::env::args_os().collect()) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            // That nobody reads standard error any more changes nothing about the exit code.
            let _ = writeln!(std::io::stderr(), "steadfast: {failure}");
            ExitCode::from(failure.code)
        }
    }
}
