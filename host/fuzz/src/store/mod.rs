//! Target `store`: a task's folder full of whatever names and records somebody put there.
//!
//! An input is a folder in text form, so that seeds can be read and a mutation moves whole names and fields about:
//!
//! ```text
//! == e0001-00000001.claim
//! {"tenure": "e0001-00000001", …}                  sealed: the hash is made right
//! == e0001-00000001-000000000005.ckpt
//! {"job": "job", "next_step": 5, …}                becomes the metadata of a checkpoint file that is in order
//! == e0001-00000001-0001.seg
//! bytes of outputs                                 as they are; ranges that name them get their hashes
//! == task-00000-of-00002/e0001-….claim             in another folder of the job
//! ```
//!
//! What must hold for any folder: no panic; an error that says what is wrong; the same decision when it is made again; step 0
//! only where nothing holds work; and outputs that are rebuilt in their folder and nowhere else.

mod folder;
mod volume;

use std::collections::BTreeSet;
use std::fs;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use steadfast::checkpoint::metadata::Metadata;
use steadfast::checkpoint::names::{FileName, TaskFolder, Tenure};
use steadfast::checkpoint::outputs::{Segments, rebuild};
use steadfast::checkpoint::store::{
    AttemptRecord, Choice, Claim, ClaimRequest, Decision, DoneRecord, LoadError, Session, Store, Survey, Wish, sealed,
};
use steadfast::job::spec::JobName;

use volume::Memory;

/// The job and the task whose folder it is.
const JOB: &str = "job";
const TASK: TaskFolder = TaskFolder { index: 0, count: 1 };

/// One input.
pub fn run(bytes: &[u8]) {
    let (volume, records) = folder::read(bytes);
    for record in &records {
        check_record::<Claim>(record);
        check_record::<AttemptRecord>(record);
        check_record::<DoneRecord>(record);
        check_record::<Metadata>(record);
    }
    let store = Store::new(Arc::new(volume), &JobName::new(JOB).expect("a name"), TASK);
    let survey = store.survey().expect("a volume in memory does not fail");
    if let Some(lineage) = survey.lineage() {
        let history = store.history(&survey, lineage);
        if let Some(why) = history.hopeless("same", 3) {
            assert!(!format!("{why:?}").is_empty());
        }
    }
    let step = survey.checkpoints().map(|(_, step)| step).max().unwrap_or(5);
    for wish in [Wish::GoOn, Wish::Fresh, Wish::From(step), Wish::RestartIfDone] {
        for execution in [None, Some("here")] {
            attempt(&store, &survey, wish, execution);
        }
    }
}

/// A checkpoint file alone in the folder that it says it belongs to.
pub(crate) fn load_alone(file: &[u8], metadata: &Metadata) {
    let Ok(job) = JobName::new(metadata.job.clone()) else { return };
    let task = TaskFolder { index: metadata.task_index, count: metadata.task_count };
    let mut volume = Memory::default();
    let name = FileName::Checkpoint(metadata.tenure, metadata.next_step).to_string();
    let folder = Store::new(Arc::new(volume.clone()), &job, task).folder();
    volume.put(folder.join(name), file.to_vec());
    let store = Store::new(Arc::new(volume), &job, task);
    let survey = store.survey().expect("a volume in memory does not fail");
    attempt(&store, &survey, Wish::GoOn, None);
}

/// What an attempt says when it claims its task.
fn request(wish: Wish, execution: Option<&str>) -> ClaimRequest {
    ClaimRequest {
        wish,
        execution: execution.map(Into::into),
        engine: String::new(),
        machine: String::new(),
        adopt: None,
        keep: NonZeroU32::MIN,
    }
}

/// What an attempt looks at before it writes its claim.
fn attempt(store: &Store, survey: &Survey, wish: Wish, execution: Option<&str>) {
    let (choice, done) = store.choose(survey, wish, execution).expect("a volume in memory does not fail");
    if let Some(done) = &done {
        check_done(done);
    }
    let begins = choice == Choice::Begin;
    let request = ClaimRequest { adopt: survey.other_counts.first().copied(), ..request(wish, execution) };
    let mut session = match store.prepare(survey.clone(), choice, &request) {
        Ok(session) => session,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let _ = session.peek();
    let first = load(store, &mut session);
    let second = load(store, &mut session);
    assert_eq!(format!("{first:?}"), format!("{second:?}"), "the second look decides otherwise");
    match first {
        Ok(decision) => check_decision(store, &session, &decision, begins),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn load(store: &Store, session: &mut Session) -> Result<Decision, LoadError> {
    let history = store.history(session.survey(), session.lineage());
    session.load(&history, "same", &mut BTreeSet::new())
}

fn check_decision(store: &Store, session: &Session, decision: &Decision, begins: bool) {
    let Some(loaded) = &decision.loaded else {
        if !begins {
            assert_no_work(store, session.survey(), session.lineage());
        }
        return;
    };
    let named = FileName::Checkpoint(loaded.metadata.tenure, loaded.metadata.next_step).to_string();
    assert_eq!(loaded.origin.name, named);
    assert_eq!(loaded.metadata.job, store.job_folder().to_str().expect("a job's name is text"));
    loaded.metadata.outputs.check().expect("it was checked before it was chosen");
    check_outputs(store, &loaded.metadata, &loaded.origin.folder);
}

/// Every checkpoint past step 0 that may belong to the lineage says that it belongs to another.
fn assert_no_work(store: &Store, survey: &Survey, lineage: Tenure) {
    for (tenure, step) in survey.checkpoints().filter(|(_, step)| *step > 0) {
        let name = FileName::Checkpoint(tenure, step).to_string();
        let other = || {
            let file = store.volume().open(&store.folder().join(&name)).ok()?;
            let reader = steadfast::checkpoint::format::Reader::open(&*file).ok()?;
            let metadata: Metadata = serde_json::from_slice(reader.metadata()).ok()?;
            Some(metadata.lineage != lineage)
        };
        let ours = survey.may_belong(tenure, lineage) && other() != Some(true);
        assert!(!ours, "{name} holds work, and it was decided to start at step 0");
    }
}

/// Outputs are rebuilt in the folder that is made for them.
fn check_outputs(store: &Store, metadata: &Metadata, folder: &Path) {
    let outputs = &metadata.outputs;
    if outputs.files.is_empty() && outputs.folders.is_empty() && outputs.metrics.is_none() {
        return;
    }
    let scratch = tempfile::tempdir().expect("scratch space");
    let (output, metrics) = (scratch.path().join("output"), scratch.path().join("metrics"));
    fs::create_dir(&output).expect("scratch space");
    let mut segments = Segments::new(&**store.volume(), folder.to_owned());
    // Paths that exclude each other (a file `a`, and a file `a/b`) are errors of the scratch space.
    let rebuilt = rebuild(outputs, &mut segments, &output, &metrics);
    let there = fs::read_dir(scratch.path()).expect("scratch space").count();
    assert!(there <= 2, "outputs were written beside their folder");
    if let Err(error) = rebuilt {
        return assert!(!error.to_string().is_empty());
    }
    for (path, file) in &outputs.files {
        let written = fs::metadata(output.join(path)).expect("it was rebuilt");
        assert_eq!(written.len(), file.bytes, "{path}");
    }
}

fn check_done(done: &DoneRecord) {
    let files = done.outputs.files.iter().map(|file| &file.path);
    for path in done.outputs.folders.iter().chain(files).chain([&done.folder]) {
        let leaves = Path::new(path).components().any(|part| !matches!(part, std::path::Component::Normal(_)));
        assert!(!leaves && !path.is_empty(), "`{path}` leads elsewhere");
    }
}

/// What is read from a sealed record is sealed and read again as the same.
fn check_record<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(sealed_record: &[u8]) {
    let Some(record) = sealed::unseal::<T>(sealed_record) else { return };
    let again = sealed::seal(&record).expect("a record has a text");
    assert_eq!(sealed::unseal::<T>(&again).as_ref(), Some(&record));
}

#[cfg(test)]
mod tests;
