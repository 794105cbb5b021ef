//! `steadfast output`: a task's outputs as of its newest usable checkpoint, while it runs or when it is done.

use std::path::Path;

use clap::{Args, Subcommand};
use serde_json::json;

use crate::checkpoint::browse::{self, BrowseError};

use super::failure::Failure;
use super::print;
use super::values::Place;

/// Look at outputs, at any time: list, cat
#[derive(Args, Clone, Debug)]
pub(super) struct OutputCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Clone, Debug)]
enum Action {
    /// List the files of a task's output as of its newest checkpoint
    List {
        /// A volume with one job, the folder of a job with one task, or a task's folder
        path: Place,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a file of a task's output as of its newest checkpoint
    Cat {
        /// A volume with one job, the folder of a job with one task, or a task's folder
        path: Place,
        /// The file, as `list` shows it; may be left out if there is only one
        file: Option<String>,
    },
}

pub(super) fn execute(command: OutputCommand) -> Result<u8, Failure> {
    match command.action {
        Action::List { path, json } => list(&path.0, json),
        Action::Cat { path, file } => cat(&path.0, file),
    }
    .map(|()| 0)
}

fn list(path: &Path, as_json: bool) -> Result<(), Failure> {
    let mut values = Vec::new();
    let mut table = print::table(&["job", "task", "file", "size", "as of"]);
    for task in browse::tasks(path)? {
        let outputs = match task.outputs() {
            Ok(outputs) => outputs,
            // Among many tasks some have only begun.
            Err(BrowseError::NoOutputs { .. }) => continue,
            Err(error) => return Err(error.into()),
        };
        let as_of = if outputs.finished() { "done".to_owned() } else { format!("step {}", outputs.as_of) };
        for (file, bytes) in outputs.files() {
            let number = format!("{} of {}", task.task.index, task.task.count);
            table.add_row([task.job.clone(), number, file.clone(), print::size(bytes), as_of.clone()]);
            values.push(json!({
                "job": task.job, "task_index": task.task.index, "task_count": task.task.count, "file": file,
                "bytes": bytes, "as_of_step": outputs.as_of, "finished": outputs.finished(),
            }));
        }
    }
    if as_json { print::json(&values.into()) } else { print::text(&format!("{table}\n")) }
}

fn cat(path: &Path, file: Option<String>) -> Result<(), Failure> {
    let tasks = browse::tasks(path)?;
    let [task] = &tasks[..] else {
        let folders: Vec<_> = tasks.iter().map(|task| task.folder().display().to_string()).collect();
        return Err(Failure::usage(format!("`{}` holds {} tasks", path.display(), tasks.len()))
            .hint(format!("name one of them: {}", folders.join(", "))));
    };
    let outputs = task.outputs()?;
    let file = match (file, &outputs.files()[..]) {
        (Some(file), _) => file,
        (None, [(only, _)]) => only.clone(),
        (None, []) => return Err(Failure::usage("the task has no output files")),
        (None, files) => {
            let names: Vec<_> = files.iter().map(|(name, _)| name.as_str()).collect();
            return Err(Failure::usage("which file?").hint(format!("there are: {}", names.join(", "))));
        }
    };
    print::stream(|out| Ok(outputs.copy(&file, out)?))
}
