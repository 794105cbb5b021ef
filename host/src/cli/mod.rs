//! The command line: one file a command, each from arguments to a validated specification, and no work.
//!
//! | file | what |
//! |---|---|
//! | `run`, `rehearse`, `checkpoint`, `output`, `plugin`, `doctor` | the commands |
//! | `options`, `values` | the options of a run and how their values are read |
//! | `job_file`, `config`, `text` | the files that they can stand in |
//! | `failure`, `print` | how a command fails; data on standard output |

mod checkpoint;
mod config;
mod doctor;
mod failure;
// Private readers, for the fuzz targets: nothing that a user of this crate could rely on.
#[cfg(any(fuzzing, clippy))]
#[doc(hidden)]
pub mod fuzzing;
mod job_file;
mod options;
mod output;
mod plugin;
mod print;
mod rehearse;
mod run;
mod text;
mod values;

use std::ffi::{OsStr, OsString};

use clap::{Parser, Subcommand};

use crate::platform::{Engine, StopRequests, process_environment};

pub use failure::Failure;

/// The table that the platforms' manifests are written by, for help texts.
macro_rules! exit_codes {
    () => {
        "\
Exit codes of a run:
    0  done, and the outputs are on the volume
    2  the command line, a file of options, or the place it runs in is wrong
   65  the plugin, its configuration or its input can never work, or it stalled too often
   70  refused rather than started over: see the message
   75  a failure that another attempt may not meet                                 (retry)
   76  a newer attempt of this task is at work
  130  interrupted from the keyboard; progress is saved
  143  preempted; progress is saved as far as time allowed                         (retry)"
    };
}
use exit_codes;

/// Runs long batch jobs written as WebAssembly components, and carries them through preemption
#[derive(Parser, Debug)]
#[command(name = "steadfast", version, propagate_version = true, after_help = exit_codes!(), after_long_help = exit_codes!())]
#[command(subcommand_required = true, arg_required_else_help = true, infer_long_args = false)]
struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Run(Box<run::RunCommand>),
    Rehearse(Box<rehearse::RehearseCommand>),
    Checkpoint(checkpoint::CheckpointCommand),
    Output(output::OutputCommand),
    Plugin(Box<plugin::PluginCommand>),
    Doctor(doctor::DoctorCommand),
}

/// Parses the arguments of a process, its own name first, and does what they say. Answers the exit code.
pub fn execute(arguments: Vec<OsString>) -> Result<u8, Failure> {
    // Signals are listened to before anything else, so that one at start-up isn't lost; process 1 of a container would
    // ignore it. Other commands are ended by a signal as usual.
    let stops = match arguments.get(1).map(OsString::as_os_str) {
        Some(first) if first == OsStr::new("run") => {
            Some(StopRequests::install(&Engine::detect(&process_environment).stop_signals(), true)?)
        }
        _ => None,
    };
    // Help and mistakes are printed by the parser, which exits with 0 and 2.
    match CommandLine::parse_from(arguments).command {
        Command::Run(command) => run::execute(*command, &stops.unwrap_or_else(StopRequests::detached)),
        Command::Rehearse(command) => rehearse::execute(*command),
        Command::Checkpoint(command) => checkpoint::execute(command),
        Command::Output(command) => output::execute(command),
        Command::Plugin(command) => plugin::execute(*command),
        Command::Doctor(command) => doctor::execute(&command),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_of_the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn help_teaches() {
        fn all_have_help(command: &clap::Command) {
            assert!(command.get_about().is_some(), "{} says nothing about itself", command.get_name());
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{} {}", command.get_name(), argument.get_id());
            }
            command.get_subcommands().for_each(all_have_help);
        }
        all_have_help(&CommandLine::command());
    }

    #[test]
    fn every_exit_code_stands_in_the_help_with_whether_it_is_retried() {
        let table = exit_codes!();
        for code in crate::job::ExitCode::ALL {
            let number = format!("{:>5}  ", code.code());
            let line = table.lines().find(|line| line.starts_with(&number));
            let line = line.unwrap_or_else(|| panic!("{code:?} is missing"));
            assert_eq!(line.ends_with("(retry)"), code.should_be_retried() == Some(true), "{line}");
        }
        assert_eq!(table.lines().count(), crate::job::ExitCode::ALL.len() + 1);
    }
}
