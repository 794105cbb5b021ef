//! What fuzz targets reach of this module, and nobody else: its readers are private, and the command line around them prints,
//! reads files and ends the process.
//!
//! Compiled for the instrumented build alone, and for lints, which would not see it otherwise.

use std::ffi::OsString;
use std::path::Path;

use clap::Parser;

use super::{Command, CommandLine, config, job_file};

/// The options in a job's file, as they stand on a command line.
pub fn job_file(text: &str) -> Result<Vec<OsString>, String> {
    let options = job_file::parse(Path::new("job.toml"), text).map_err(|failure| failure.message)?;
    Ok(options.as_arguments())
}

/// The options of `run` on a command line, written anew; none for other commands.
pub fn command_line(arguments: Vec<OsString>) -> Result<Option<Vec<OsString>>, String> {
    match CommandLine::try_parse_from(arguments).map_err(|error| error.to_string())?.command {
        Command::Run(run) => Ok(Some(run.options.as_arguments())),
        _ => Ok(None),
    }
}

/// A configuration in JSON, as the canonical text.
pub fn json_config(text: &str) -> Result<String, String> {
    config::json(text, "--config").map(|value| config::canonical(&value)).map_err(|failure| failure.message)
}

/// A configuration in TOML, as the canonical text.
pub fn toml_config(text: &str) -> Result<String, String> {
    let table: toml::Table = text.parse().map_err(|error| job_file::at(Path::new("c.toml"), text, &error).message)?;
    config::from_toml(toml::Value::Table(table)).map(|value| config::canonical(&value))
}
