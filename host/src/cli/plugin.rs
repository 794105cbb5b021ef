//! `steadfast plugin`: making one, what a file is and what it lacks to be one, trying and compiling it before it is needed.

mod compile;
mod new;
mod push;
mod trial;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::job::spec::{LogFormat, PluginSource};
use crate::job::{ExitCode, RunError};
use crate::plugin::{self, Artifact, FileKind, Inspection, Interface, MemoryFact};

use super::failure::Failure;
use super::print;
use super::values::Source;

/// What `inspect` exits with for a file that is none.
const NO_PLUGIN: u8 = 1;

/// Make plugins, look at them, try and compile them before they are needed, put them into a registry: new, inspect, try, compile,
/// push
#[derive(Args, Clone, Debug)]
pub(super) struct PluginCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Clone, Debug)]
enum Action {
    New(new::NewCommand),
    /// Show what a file exports and imports, and what is missing for a plugin and how to get it; exit 1 if it is none
    Inspect {
        /// The file, or a reference to a registry: oci://HOST/REPOSITORY:TAG or @sha256:…
        #[arg(value_name = "FILE|oci://…")]
        plugin: Source,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    Try(trial::TryCommand),
    Compile(compile::CompileCommand),
    Push(push::PushCommand),
}

pub(super) fn execute(command: PluginCommand) -> Result<u8, Failure> {
    match command.action {
        Action::Inspect { plugin, json } => inspect(&plugin.0, json),
        Action::New(command) => new::execute(&command),
        Action::Try(command) => trial::execute(command),
        Action::Compile(command) => compile::execute(&command),
        Action::Push(command) => push::execute(&command),
    }
}

fn inspect(source: &PluginSource, json: bool) -> Result<u8, Failure> {
    crate::report::init(LogFormat::Human);
    // Read as a run reads it: a wrong path may be a device without end.
    let component = source.read().map_err(failed)?;
    let found = plugin::inspect(&component.bytes);
    if json {
        print::json(&as_json(&found, component.artifact.as_ref()))?;
    } else {
        print::text(&for_people(source, component.artifact.as_ref(), &found))?;
    }
    Ok(if is_plugin(&found) { 0 } else { NO_PLUGIN })
}

fn failed(error: RunError) -> Failure {
    match error {
        error if error.exit_code() == ExitCode::Hopeless => Failure { code: NO_PLUGIN, ..error.into() },
        // That a disk fails is no verdict on the file, and nobody tries this again by its exit code.
        RunError::Plugin(error) => Failure::usage(error.to_string()),
        error => error.into(),
    }
}

fn is_plugin(found: &Inspection) -> bool {
    found.kind == FileKind::Component && found.problems.is_empty()
}

fn for_people(source: &PluginSource, artifact: Option<&Artifact>, found: &Inspection) -> String {
    let verdict = if is_plugin(found) { "a plugin" } else { "not a plugin" };
    let mut rows = vec![
        ("file", format!("{source} ({})", print::size(found.bytes))),
        ("kind", format!("{} · {verdict}", found.kind)),
        ("digest", found.digest.clone()),
    ];
    rows.extend(artifact.map(|artifact| ("manifest", artifact.manifest.clone())));
    if found.kind == FileKind::Component {
        rows.push(("exports", interfaces(&found.exports)));
        rows.push(("imports", interfaces(&found.imports)));
        rows.push(("state", state_versions(found)));
        rows.push(("memory", found.memories.iter().map(memory).collect::<Vec<_>>().join("\n")));
    }
    let mut text = crate::report::render_block(&rows);
    for problem in &found.problems {
        text.push_str(&format!("\n{}\nhint: {}\n", problem.what, problem.hint));
    }
    text
}

fn interfaces(all: &[Interface]) -> String {
    let line = |interface: &Interface| match &interface.functions[..] {
        [] => interface.name.clone(),
        functions => format!("{} ({})", interface.name, functions.join(", ")),
    };
    if all.is_empty() { "none".to_owned() } else { all.iter().map(line).collect::<Vec<_>>().join("\n") }
}

fn memory(fact: &MemoryFact) -> String {
    let most = fact.maximum.map_or("no limit of its own".to_owned(), |most| format!("at most {}", print::size(most)));
    format!("{} at first, {most}", print::size(fact.initial))
}

fn state_versions(found: &Inspection) -> String {
    match (&found.state_versions, &found.state_versions_unclear) {
        (Some(versions), _) => versions.to_string(),
        (None, Some(why)) => format!("says nothing that can be understood: {why}"),
        (None, None) => "does not say which versions it writes and reads".to_owned(),
    }
}

fn as_json(found: &Inspection, artifact: Option<&Artifact>) -> serde_json::Value {
    let interfaces = |all: &[Interface]| -> Vec<_> {
        all.iter().map(|one| json!({"name": one.name, "functions": one.functions})).collect()
    };
    let memories: Vec<_> =
        found.memories.iter().map(|fact| json!({"initial": fact.initial, "maximum": fact.maximum})).collect();
    let problems: Vec<_> = found.problems.iter().map(|one| json!({"what": one.what, "hint": one.hint})).collect();
    let versions = found.state_versions.as_ref().map(|all| json!({"writes": all.writes, "reads": all.reads}));
    json!({
        "kind": found.kind.to_string(), "is_plugin": is_plugin(found), "bytes": found.bytes, "digest": found.digest,
        "exports": interfaces(&found.exports), "imports": interfaces(&found.imports), "memories": memories,
        "core_modules": found.core_modules, "problems": problems, "state_versions": versions,
        "state_versions_unclear": found.state_versions_unclear, "manifest": artifact.map(|artifact| &artifact.manifest),
    })
}
