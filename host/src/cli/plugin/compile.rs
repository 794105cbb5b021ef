//! `steadfast plugin compile`: what the first attempt on a machine would do, done before there is one.

use std::path::Path;
use std::time::{Duration, Instant};

use clap::Args;

use super::super::failure::Failure;
use super::super::print;
use super::super::values::Source;
use crate::compiled::default_cache_folder;
use crate::job::RunError;
use crate::job::spec::LogFormat;
use crate::platform::process_environment;
use crate::plugin::{Plugin, PluginError, Runtime};

/// Compile plugins into the cache, so that no run has to
#[derive(Args, Clone, Debug)]
#[command(after_help = ABOUT, after_long_help = ABOUT)]
pub(super) struct CompileCommand {
    /// The components, in files or registries
    #[arg(value_name = "PLUGIN.wasm|oci://…", required = true)]
    plugins: Vec<Source>,
}

const ABOUT: &str = "\
Prints a line for each plugin: whether it was compiled or found, how long that took, its digest, its file or reference.

Compiled plugins are kept in $STEADFAST_CACHE, else $XDG_CACHE_HOME/steadfast, else ~/.cache/steadfast. \
A folder that others may write to is not used; it has to belong to the user who runs the plugin, or to root. \
Entries are found by what is in the plugin, not by its path, and only by the same version of steadfast \
on a processor with the same features: elsewhere a run compiles, as without them.

Examples:
  steadfast plugin compile my.wasm
      Once after each deployment, so that the first attempt starts as fast as all others.

  RUN [\"/usr/local/bin/steadfast\", \"plugin\", \"compile\", \"/plugins/my.wasm\"]
      In a Dockerfile, as USER 0: the cache of an image is written by root, and read by everybody.

Exit codes: 0 all are in the cache; 2 there is no such file or no cache; 65 it is no plugin; 75 the cache cannot be written.";

pub(super) fn execute(command: &CompileCommand) -> Result<u8, Failure> {
    let folder = default_cache_folder(&process_environment).ok_or_else(no_cache)?;
    let runtime = Runtime::new(Some(folder.clone())).map_err(failed)?;
    crate::report::init(LogFormat::Human);
    for Source(source) in &command.plugins {
        let component = source.read()?;
        let started = Instant::now();
        let plugin = component.compile(&runtime, &|_| {}).map_err(failed)?;
        let took = started.elapsed();
        // A run does without a cache and says nothing. Here it is the purpose, so that what was kept is read back.
        let again = || runtime.load_bytes(plugin.path(), plugin.bytes());
        if !plugin.from_cache() && !again().map_err(failed)?.from_cache() {
            return Err(not_kept(&folder));
        }
        print::text(&line(&plugin, took))?;
    }
    Ok(0)
}

fn line(plugin: &Plugin, took: Duration) -> String {
    let how = if plugin.from_cache() { "found" } else { "compiled" };
    format!("{how:<8} {:>8.1} ms  {}  {}\n", took.as_secs_f64() * 1e3, plugin.digest(), plugin.path().display())
}

fn failed(error: PluginError) -> Failure {
    RunError::Plugin(error).into()
}

fn no_cache() -> Failure {
    Failure::usage("there is no cache to compile into")
        .hint("set STEADFAST_CACHE to a folder, or HOME if the usual place will do")
}

fn not_kept(folder: &Path) -> Failure {
    Failure::new(75, format!("compiled plugins cannot be kept in `{}`", folder.display()))
        .hint("it has to be writable, with room, by its owner alone, and that has to be this user or root")
}
