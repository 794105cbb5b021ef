//! `steadfast checkpoint`: what lies on a volume, and whether it can be trusted.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::json;

use crate::checkpoint::browse::{self, BrowseError, Listed, Shown};
use crate::checkpoint::format::FormatError;
use crate::plugin::short;

use super::failure::Failure;
use super::print;
use super::values::Place;

/// Look at checkpoints: list, show, verify
#[derive(Args, Clone, Debug)]
pub(super) struct CheckpointCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Clone, Debug)]
enum Action {
    /// List the checkpoints of a volume, a job or a task
    List(Where),
    /// Show what a checkpoint (or a task's newest) says about itself: state, sections, outputs, who made it
    Show(Where),
    /// Read every byte of a checkpoint (or of all below a folder) and compare all hashes; exit 1 if one is damaged
    Verify(Where),
}

#[derive(Args, Clone, Debug)]
struct Where {
    /// A volume, the folder of a job or a task, or one checkpoint
    path: Place,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn execute(command: CheckpointCommand) -> Result<u8, Failure> {
    match command.action {
        Action::List(place) => list(&place).map(|()| 0),
        Action::Show(place) => show(&place).map(|()| 0),
        Action::Verify(place) => verify(&place),
    }
}

fn list(place: &Where) -> Result<(), Failure> {
    let tasks = browse::tasks(&place.path.0)?;
    let rows = tasks.iter().flat_map(|task| task.checkpoints.iter().map(move |listed| (task, listed)));
    let mut values = Vec::new();
    let mut table = print::table(&["job", "task", "next step", "attempt", "plugin", "size", "made", "note"]);
    for (task, listed) in rows {
        let shown = browse::show(&listed.path);
        let facts = shown.as_ref().ok();
        let size = facts.map(|shown| shown.file_bytes);
        let made = facts.map(|shown| shown.metadata.made.as_str()).unwrap_or_default();
        let plugin = facts.map(|shown| shown.metadata.plugin.digest.as_str());
        let note = note(listed, shown.as_ref().err());
        table.add_row([
            task.job.clone(),
            format!("{} of {}", task.task.index, task.task.count),
            listed.next_step.to_string(),
            listed.tenure.to_string(),
            plugin.map(short).unwrap_or_default().to_owned(),
            size.map(print::size).unwrap_or_default(),
            in_seconds(made),
            note.clone(),
        ]);
        values.push(json!({
            "job": task.job, "task_index": task.task.index, "task_count": task.task.count, "name": listed.name,
            "path": listed.path, "tenure": listed.tenure, "next_step": listed.next_step, "plugin": plugin,
            "bytes": size, "made": made,
            "older_lineage": listed.older_lineage, "set_aside": listed.set_aside,
            "error": shown.as_ref().err().map(ToString::to_string),
        }));
    }
    if place.json { print::json(&values.into()) } else { print::text(&format!("{table}\n")) }
}

fn note(listed: &Listed, error: Option<&BrowseError>) -> String {
    let older = listed.older_lineage.then(|| "older lineage".to_owned());
    let aside = listed.set_aside.then(|| "set aside".to_owned());
    let error = error.map(|error| match error {
        BrowseError::Format { cause, .. } => cause.to_string(),
        other => other.to_string(),
    });
    [older, aside, error].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn show(place: &Where) -> Result<(), Failure> {
    let mut values = Vec::new();
    let mut text = String::new();
    for path in files(&place.path.0, |listed| !listed.older_lineage && !listed.set_aside, true)? {
        let shown = browse::show(&path)?;
        text.push_str(&crate::report::render_block(&facts(&path, &shown)));
        let sections: Vec<_> = shown
            .sections
            .iter()
            .map(|(kind, name, bytes, stored)| {
                json!({"kind": format!("{kind:?}").to_lowercase(), "name": name, "bytes": bytes, "stored_bytes": stored})
            })
            .collect();
        values.push(json!({
            "path": path, "bytes": shown.file_bytes, "metadata": shown.metadata, "sections": sections,
        }));
    }
    if place.json { print::json(&values.into()) } else { print::text(&text) }
}

fn facts(path: &Path, shown: &Shown) -> Vec<(&'static str, String)> {
    let of = &shown.metadata;
    let state: u64 = shown.sections.iter().map(|(_, _, bytes, _)| bytes).sum();
    let total = of.progress.total.map(|total| format!(" of {total}")).unwrap_or_default();
    let mut rows = vec![
        ("file", format!("{} ({})", path.display(), print::size(shown.file_bytes))),
        ("job", format!("{} · task {} of {}", of.job, of.task_index, of.task_count)),
        ("step", format!("{} is the next to run · progress {}{total}", of.next_step, of.progress.done)),
        ("made", format!("{} by {} · steadfast {}", of.made, of.tenure, of.host_version)),
        ("lineage", format!("began with {}", of.lineage)),
        ("plugin", format!("{} · {} · state version {}", of.plugin.name, of.plugin.digest, of.plugin.state_version)),
        ("config", of.config.clone()),
        ("seed", of.seed.to_string()),
    ];
    let artifact = of.plugin.artifact.as_ref();
    rows.extend(artifact.map(|from| ("registry", format!("{} · manifest {}", from.reference, from.manifest))));
    rows.extend(of.finished.as_ref().map(|line| ("finished", line.clone())));
    let sections = shown.sections.iter().map(|(kind, name, bytes, stored)| {
        format!(
            "\n{} {name}: {}, stored {}",
            format!("{kind:?}").to_lowercase(),
            print::size(*bytes),
            print::size(*stored)
        )
    });
    rows.push((
        "state",
        format!("{} in {}{}", print::size(state), count(shown.sections.len(), "section"), sections.collect::<String>()),
    ));
    let files = of.outputs.files.iter().map(|(name, file)| format!("\n{name}: {}", print::size(file.bytes)));
    rows.push(("outputs", format!("{}{}", count(of.outputs.files.len(), "file"), files.collect::<String>())));
    rows
}

fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A time of the metadata without its fractions.
fn in_seconds(made: &str) -> String {
    made.parse::<jiff::Timestamp>().map_or_else(|_| made.to_owned(), |time| format!("{time:.0}"))
}

fn verify(place: &Where) -> Result<u8, Failure> {
    let mut damaged = false;
    let mut values = Vec::new();
    let mut text = String::new();
    for path in files(&place.path.0, |listed| !listed.set_aside, false)? {
        let problem = match browse::verify(&path) {
            Ok(()) => None,
            // What can't be read is not known to be damaged.
            Err(error @ BrowseError::Format { cause: FormatError::Damaged { .. }, .. }) => Some(error.to_string()),
            Err(error) => return Err(error.into()),
        };
        damaged |= problem.is_some();
        text.push_str(&match &problem {
            None => format!("ok       {}\n", path.display()),
            Some(problem) => format!("damaged  {problem}\n"),
        });
        values.push(json!({"path": path, "ok": problem.is_none(), "problem": problem}));
    }
    if place.json {
        print::json(&values.into())?;
    } else {
        print::text(&text)?;
    }
    Ok(u8::from(damaged))
}

/// One checkpoint, or those below a folder that are `wanted`; with `newest` only the first of each task.
fn files(path: &Path, wanted: impl Fn(&Listed) -> bool, newest: bool) -> Result<Vec<PathBuf>, Failure> {
    if path.is_file() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    for task in browse::tasks(path)? {
        let paths = task.checkpoints.iter().filter(|listed| wanted(listed)).map(|listed| listed.path.clone());
        found.extend(paths.take(if newest { 1 } else { usize::MAX }));
    }
    match found.is_empty() {
        false => Ok(found),
        true => Err(Failure::usage(format!("there are no checkpoints below `{}`", path.display()))),
    }
}
