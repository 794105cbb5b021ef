//! The store against a real folder, with the fault layer where something has to fail.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::collections::BTreeSet;
use std::fs;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::*;
use crate::checkpoint::faults::{FaultKind, FaultPlan, Faulty};
use crate::checkpoint::format::{SectionKind, SectionRef};
use crate::checkpoint::metadata::{Metadata, PluginFacts, Progress};
use crate::checkpoint::names::{FileName, Tenure};
use crate::checkpoint::outputs::{Frozen, Manifest, Scratch, Tracker};
use crate::checkpoint::volume::Disk;

mod hostile;

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn store(&self) -> Store {
        let job = JobName::new("job").unwrap();
        Store::new(Arc::new(Disk::new(self.folder.path())), &job, TaskFolder { index: 0, count: 1 })
    }

    fn session(&self, wish: Wish, execution: Option<&str>, keep: u32) -> Session {
        let store = self.store();
        let survey = store.survey().unwrap();
        let (choice, _) = store.choose(&survey, wish, execution).unwrap();
        let session = store.prepare(survey, choice, &request(wish, execution, keep)).unwrap();
        session.begin().unwrap();
        session
    }

    fn go_on(&self) -> Session {
        self.session(Wish::GoOn, None, 2)
    }

    fn task(&self) -> PathBuf {
        self.folder.path().join(self.store().folder())
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(self.task()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn checkpoints(&self) -> Vec<String> {
        self.names().into_iter().filter(|name| name.ends_with(".ckpt")).collect()
    }
}

fn request(wish: Wish, execution: Option<&str>, keep: u32) -> ClaimRequest {
    ClaimRequest {
        wish,
        execution: execution.map(Into::into),
        engine: "none".into(),
        machine: "here".into(),
        adopt: None,
        keep: NonZeroU32::new(keep).unwrap(),
    }
}

fn metadata(step: u64, outputs: Manifest) -> Metadata {
    let nobody = Tenure { epoch: 0, nonce: 0 };
    Metadata {
        host_version: "test".into(),
        made: String::new(),
        job: "job".into(),
        task_index: 0,
        task_count: 1,
        lineage: nobody,
        tenure: nobody,
        next_step: step,
        finished: None,
        progress: Progress::default(),
        plugin: PluginFacts { name: "p".into(), digest: "sha256:0".into(), state_version: 1, artifact: None },
        config: "{}".into(),
        input: None,
        seed: 0,
        random: serde_json::Value::Null,
        device: "none".into(),
        elapsed_ms: 0,
        outputs,
    }
}

fn save(session: &mut Session, step: u64) -> Result<Saved, SaveError> {
    save_with(session, step, Frozen { manifest: Manifest::default(), segment: None, not_kept: Vec::new() })
}

fn save_with(session: &mut Session, step: u64, frozen: Frozen) -> Result<Saved, SaveError> {
    let bytes = format!("state of step {step}");
    let sections = vec![SectionRef { kind: SectionKind::State, name: "state", bytes: bytes.as_bytes() }];
    session.save(Draft { metadata: metadata(step, frozen.manifest), sections, segment: frozen.segment }, &|_| {})
}

fn load(session: &mut Session) -> Result<Decision, LoadError> {
    session.load(&History::default(), "same", &mut BTreeSet::new())
}

fn loaded_step(session: &mut Session) -> Option<u64> {
    let loaded = load(session).unwrap().loaded;
    if let Some(loaded) = &loaded {
        let wanted = format!("state of step {}", loaded.metadata.next_step);
        assert_eq!(loaded.sections[0].bytes, wanted.as_bytes(), "counter and state are one record");
    }
    loaded.map(|loaded| loaded.metadata.next_step)
}

fn flip_a_bit(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    fs::write(path, bytes).unwrap();
}

#[test]
fn an_empty_task_starts_at_step_0() {
    assert_eq!(loaded_step(&mut Place::new().go_on()), None);
}

#[test]
fn the_next_attempt_goes_on_from_the_newest_checkpoint() {
    let place = Place::new();
    let mut first = place.go_on();
    for step in [0, 9, 10] {
        save(&mut first, step).unwrap();
    }
    let mut second = place.go_on();
    assert_eq!(second.lineage(), first.lineage());
    assert_eq!(second.tenure().epoch, 2);
    assert_eq!(loaded_step(&mut second), Some(10));
}

#[test]
fn order_and_retention_are_numeric() {
    let place = Place::new();
    let mut session = place.go_on();
    for step in [9, 10, 9_999, 10_000, 999_999_999_999, 1_000_000_000_000] {
        save(&mut session, step).unwrap();
        assert_eq!(loaded_step(&mut place.go_on()), Some(step));
        // Those claims are newer than the session's own: it has to claim again to go on.
        session = place.go_on();
    }
    assert_eq!(place.checkpoints().len(), 2);
}

#[test]
fn keep_counts_across_epochs_and_the_newest_stay() {
    let place = Place::new();
    for (epoch, steps) in [[0, 1], [2, 3], [4, 5]].iter().enumerate() {
        let mut session = place.session(Wish::GoOn, None, 3);
        assert_eq!(session.tenure().epoch as usize, epoch + 1);
        for step in steps {
            save(&mut session, *step).unwrap();
        }
    }
    let steps: Vec<u64> = place
        .checkpoints()
        .iter()
        .filter_map(|name| match FileName::parse(name) {
            Some(FileName::Checkpoint(_, step)) => Some(step),
            _ => None,
        })
        .collect();
    assert_eq!(steps, [3, 4, 5]);
}

#[test]
fn keep_does_not_count_what_is_passed_over() {
    let place = Place::new();
    let mut first = place.go_on();
    save(&mut first, 1).unwrap();
    let killing = save(&mut first, 2).unwrap().name;
    let mut second = place.go_on();
    second.pass_over(std::slice::from_ref(&killing));
    save(&mut second, 3).unwrap();
    assert_eq!(place.checkpoints().len(), 3, "two usable ones, and the one between them");
    save(&mut second, 4).unwrap();
    assert_eq!(place.checkpoints().len(), 2, "{killing} is gone with the older ones");
}

#[test]
fn a_damaged_checkpoint_is_passed_over_and_set_aside_afterwards() {
    let place = Place::new();
    let mut first = place.go_on();
    save(&mut first, 1).unwrap();
    let bad = save(&mut first, 2).unwrap().name;
    flip_a_bit(&place.task().join(&bad));
    let before = place.names();
    let mut second = place.go_on();
    let decision = load(&mut second).unwrap();
    assert_eq!(decision.loaded.unwrap().metadata.next_step, 1);
    assert_eq!(decision.damaged.len(), 1);
    assert_eq!(place.names().len(), before.len() + 1, "deciding writes nothing but the claim");
    assert_eq!(second.settle(&decision.damaged), Vec::<String>::new());
    assert!(place.task().join(SET_ASIDE).join(&bad).exists());
    assert_eq!(loaded_step(&mut place.go_on()), Some(1));
}

#[test]
fn candidates_of_which_none_is_usable_are_refused_again_and_again() {
    let place = Place::new();
    let mut first = place.session(Wish::GoOn, None, 1);
    let bad = save(&mut first, 1).unwrap().name;
    flip_a_bit(&place.task().join(&bad));
    for _ in 0..2 {
        assert!(matches!(load(&mut place.go_on()), Err(LoadError::NoneUsable { .. })));
        assert!(place.task().join(&bad).exists(), "nothing is moved");
    }
    // Also when an earlier attempt had set it aside.
    let aside = place.task().join(SET_ASIDE);
    fs::create_dir(&aside).unwrap();
    fs::rename(place.task().join(&bad), aside.join(&bad)).unwrap();
    assert!(matches!(load(&mut place.go_on()), Err(LoadError::NoneUsable { set_aside: 1, .. })));
}

#[test]
fn a_damaged_checkpoint_of_step_0_holds_no_work() {
    let place = Place::new();
    let mut first = place.go_on();
    let bad = save(&mut first, 0).unwrap().name;
    flip_a_bit(&place.task().join(&bad));
    let mut second = place.go_on();
    let decision = load(&mut second).unwrap();
    assert!(decision.loaded.is_none());
    assert_eq!(decision.damaged.len(), 1);
    second.settle(&decision.damaged);
    assert_eq!(loaded_step(&mut place.go_on()), None, "set aside, it still holds none");
}

#[test]
fn a_missing_output_segment_makes_its_checkpoint_unusable() {
    let place = Place::new();
    let mut first = place.go_on();
    save(&mut first, 1).unwrap();
    let scratch_parent = tempfile::tempdir().unwrap();
    let scratch = Scratch::make(scratch_parent.path()).unwrap();
    fs::write(scratch.output().join("lines"), "one\n").unwrap();
    let mut tracker = Tracker::new(scratch.output(), scratch.metrics(), first.tenure(), &Manifest::default());
    save_with(&mut first, 2, tracker.freeze().unwrap()).unwrap();
    assert_eq!(loaded_step(&mut place.go_on()), Some(2));
    let segment = place.names().into_iter().find(|name| name.ends_with(".seg")).unwrap();
    fs::remove_file(place.task().join(segment)).unwrap();
    assert_eq!(loaded_step(&mut place.go_on()), Some(1));
}

#[test]
fn the_older_of_two_attempts_is_fenced_and_harms_nothing() {
    let place = Place::new();
    let mut old = place.go_on();
    save(&mut old, 5).unwrap();
    let mut new = place.go_on();
    save(&mut new, 3).unwrap();
    assert!(matches!(old.look().unwrap(), Standing::Fenced(by) if by == new.tenure()));
    assert!(matches!(save(&mut old, 6), Err(SaveError::Fenced(_))));
    assert!(matches!(new.look().unwrap(), Standing::Alone));
    assert_eq!(loaded_step(&mut place.go_on()), Some(3), "the higher epoch counts, whatever its step");
}

#[test]
fn what_a_zombie_publishes_unseen_is_never_chosen() {
    let place = Place::new();
    let mut zombie = place.go_on();
    save(&mut zombie, 1).unwrap();
    let mut new = place.go_on();
    save(&mut new, 2).unwrap();
    let claim = FileName::Claim(new.tenure()).to_string();
    let hidden = place.folder.path().join("hidden");
    // The zombie's listing is stale: it does not see the claim.
    fs::rename(place.task().join(&claim), &hidden).unwrap();
    save(&mut zombie, 900).unwrap();
    fs::rename(&hidden, place.task().join(&claim)).unwrap();
    assert_eq!(loaded_step(&mut place.go_on()), Some(2));
}

#[test]
fn an_attempt_that_did_not_see_a_higher_older_claim_claims_above_it() {
    let place = Place::new();
    place.go_on();
    let mut hidden = Vec::new();
    for _ in 0..2 {
        hidden.push(FileName::Claim(place.go_on().tenure()).to_string());
    }
    for name in &hidden {
        fs::rename(place.task().join(name), place.folder.path().join(name)).unwrap();
    }
    let mut session = place.go_on();
    assert_eq!(session.tenure().epoch, 2);
    for name in &hidden {
        fs::rename(place.folder.path().join(name), place.task().join(name)).unwrap();
    }
    assert!(matches!(session.look().unwrap(), Standing::Reclaimed(tenure) if tenure.epoch == 4));
    save(&mut session, 7).unwrap();
    assert_eq!(loaded_step(&mut place.go_on()), Some(7));
}

#[test]
fn what_the_attempt_before_prunes_meanwhile_is_not_nothing_there() {
    let place = Place::new();
    let mut old = place.session(Wish::GoOn, None, 1);
    let first = save(&mut old, 5).unwrap().name;
    let mut new = place.session(Wish::GoOn, None, 1);
    // The older attempt does not see the claim yet: it saves, and removes what the newer one has listed.
    let claim = FileName::Claim(new.tenure()).to_string();
    let hidden = place.folder.path().join("hidden");
    fs::rename(place.task().join(&claim), &hidden).unwrap();
    save(&mut old, 6).unwrap();
    fs::rename(&hidden, place.task().join(&claim)).unwrap();
    assert!(!place.task().join(first).exists());
    assert_eq!(loaded_step(&mut new), Some(6));

    let mut next = place.go_on();
    fs::remove_file(place.task().join(place.checkpoints().remove(0))).unwrap();
    assert!(matches!(load(&mut next), Err(LoadError::Vanished { .. })), "nothing starts over while anything was seen");
    assert_eq!(loaded_step(&mut place.go_on()), None);
}

#[test]
fn what_a_lineage_was_begun_from_is_missed_and_not_started_over() {
    let place = Place::new();
    let mut first = place.go_on();
    let base = save(&mut first, 5).unwrap().name;
    let mut from = place.session(Wish::From(5), None, 2);
    fs::remove_file(place.task().join(base)).unwrap();
    assert!(matches!(load(&mut from), Err(LoadError::NoneUsable { .. })));
}

#[test]
fn fresh_begins_a_lineage_and_leaves_the_old_one() {
    let place = Place::new();
    let mut first = place.go_on();
    save(&mut first, 5).unwrap();
    let mut fresh = place.session(Wish::Fresh, Some("x"), 1);
    assert_eq!(loaded_step(&mut fresh), None);
    // It died before its first checkpoint; a retry of the same execution goes on in the lineage that the flag began.
    fresh = place.session(Wish::Fresh, Some("x"), 1);
    assert_eq!(fresh.lineage().epoch, 2);
    assert_eq!(loaded_step(&mut fresh), None);
    save(&mut fresh, 1).unwrap();
    assert_eq!(loaded_step(&mut place.session(Wish::Fresh, Some("x"), 1)), Some(1));
    assert_eq!(loaded_step(&mut place.go_on()), Some(1));
    assert_eq!(place.checkpoints().len(), 2, "the old lineage's checkpoint stays");
}

#[test]
fn restart_does_not_do_again_what_this_execution_has_done() {
    let place = Place::new();
    place.session(Wish::RestartIfDone, Some("monday"), 2);
    // Begun by another execution, which did not come to the end; this one finishes it, and dies before it can say so.
    let mut session = place.session(Wish::RestartIfDone, Some("tuesday"), 2);
    save(&mut session, 1).unwrap();
    let parent = tempfile::tempdir().unwrap();
    let scratch = Scratch::make(parent.path()).unwrap();
    session.finish(&metadata(1, Manifest::default()), &scratch.output(), &scratch.metrics()).unwrap();
    let survey = place.store().survey().unwrap();
    let choice = |execution| place.store().choose(&survey, Wish::RestartIfDone, Some(execution)).unwrap();
    assert!(matches!(choice("tuesday"), (Choice::GoOn(_), Some(_))));
    assert!(matches!(choice("wednesday"), (Choice::Begin, None)));
}

#[test]
fn from_step_begins_a_lineage_at_that_checkpoint() {
    let place = Place::new();
    let mut first = place.go_on();
    save(&mut first, 5).unwrap();
    save(&mut first, 6).unwrap();
    let mut from = place.session(Wish::From(5), None, 2);
    assert_eq!(loaded_step(&mut from), Some(5));
    assert_eq!(loaded_step(&mut place.go_on()), Some(5), "also when it died before its first checkpoint");
    from = place.go_on();
    save(&mut from, 8).unwrap();
    assert_eq!(loaded_step(&mut place.go_on()), Some(8));

    let store = place.store();
    match store.prepare(store.survey().unwrap(), Choice::Begin, &request(Wish::From(7), None, 1)) {
        Err(ClaimError::NoSuchStep { step: 7, steps }) => assert_eq!(steps, [8]),
        other => panic!("{:?}", other.map(|session| session.tenure())),
    }
}

#[test]
fn stage_files_of_dead_attempts_go_and_those_of_living_ones_stay() {
    let place = Place::new();
    let dead = place.go_on();
    let new = place.go_on();
    let stage = |tenure: Tenure| FileName::Checkpoint(tenure, 1).stage().to_string();
    let newer = Tenure { epoch: 3, nonce: 1 };
    for tenure in [dead.tenure(), newer] {
        fs::write(place.task().join(stage(tenure)), "half").unwrap();
    }
    let again = place.go_on();
    assert_eq!(again.tenure().epoch, 4);
    assert_eq!(new.settle(&[]), Vec::<String>::new());
    again.settle(&[]);
    assert_eq!(place.names().iter().filter(|name| name.contains(".stage-")).count(), 0);
}

#[test]
fn an_attempt_record_that_cannot_be_read_stops_nobody() {
    let place = Place::new();
    let mut session = place.go_on();
    save(&mut session, 1).unwrap();
    let name = FileName::Attempt(session.tenure()).to_string();
    fs::write(place.task().join(name), "{}").unwrap();
    // The first operation after the survey is the record's.
    let through = |plan: FaultPlan| {
        let faulty = Arc::new(Faulty::new(Arc::new(Disk::new(place.folder.path())), plan));
        let task = TaskFolder { index: 0, count: 1 };
        let store = Store::new(Arc::clone(&faulty) as Arc<dyn Volume>, &JobName::new("job").unwrap(), task);
        let survey = store.survey().unwrap();
        let surveyed = faulty.operations();
        assert!(store.history(&survey, session.lineage()).records().is_empty());
        assert!(faulty.operations() > surveyed, "it was read");
        surveyed
    };
    let surveyed = through(FaultPlan::default());
    through(FaultPlan::default().and(surveyed + 1, FaultKind::Eio));
}

#[test]
fn strange_files_are_nobodys_checkpoints() {
    let place = Place::new();
    let mut session = place.go_on();
    save(&mut session, 1).unwrap();
    let task = place.task();
    let higher = FileName::Checkpoint(Tenure { epoch: 9, nonce: 9 }, 9).to_string();
    fs::create_dir(task.join(&higher)).unwrap();
    let link = FileName::Checkpoint(Tenure { epoch: 8, nonce: 8 }, 8).to_string();
    std::os::unix::fs::symlink(task.join(place.checkpoints().remove(0)), task.join(link)).unwrap();
    fs::write(task.join("README"), "hello").unwrap();
    assert_eq!(loaded_step(&mut place.go_on()), Some(1));
}

#[test]
fn a_checkpoint_of_another_job_is_refused_and_not_passed_over() {
    let place = Place::new();
    let mut session = place.go_on();
    let name = save(&mut session, 1).unwrap().name;
    let other = place.folder.path().join("other");
    fs::rename(place.folder.path().join("job"), &other).unwrap();
    fs::create_dir_all(place.task()).unwrap();
    fs::copy(other.join("task-00000-of-00001").join(&name), place.task().join(&name)).unwrap();
    assert_eq!(loaded_step(&mut place.go_on()), Some(1), "the same job's is good");
    let store = Store::new(
        Arc::new(Disk::new(place.folder.path())),
        &JobName::new("other").unwrap(),
        TaskFolder { index: 0, count: 1 },
    );
    let survey = store.survey().unwrap();
    let choice = store.choose(&survey, Wish::GoOn, None).unwrap().0;
    let mut session = store.prepare(survey, choice, &request(Wish::GoOn, None, 1)).unwrap();
    assert!(matches!(load(&mut session), Err(LoadError::Foreign { .. })));
}

#[test]
fn a_done_task_knows_its_outputs_and_holds_no_needless_segment() {
    let place = Place::new();
    let mut session = place.session(Wish::GoOn, None, 1);
    let parent = tempfile::tempdir().unwrap();
    let mut scratch = Scratch::make(parent.path()).unwrap();
    let mut tracker = Tracker::new(scratch.output(), scratch.metrics(), session.tenure(), &Manifest::default());
    fs::create_dir(scratch.output().join("empty")).unwrap();
    let mut last = Manifest::default();
    for step in 0..3 {
        fs::write(scratch.output().join("last"), format!("step {step}\n")).unwrap();
        scratch.add_metric(step, "loss", 0.5).unwrap();
        scratch.flush_metrics().unwrap();
        let frozen = tracker.freeze().unwrap();
        last = frozen.manifest.clone();
        save_with(&mut session, step, frozen).unwrap();
    }
    let (done, warnings) = session.finish(&metadata(2, last), &scratch.output(), &scratch.metrics()).unwrap();
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(fs::read_to_string(place.task().join(&done.folder).join("last")).unwrap(), "step 2\n");
    assert!(place.task().join(&done.folder).join("empty").is_dir());
    let metrics = fs::read_to_string(place.task().join(&done.metrics.as_ref().unwrap().path)).unwrap();
    assert_eq!(metrics.lines().count(), 3);
    let store = place.store();
    let (_, found) = store.choose(&store.survey().unwrap(), Wish::GoOn, None).unwrap();
    let folder = done.folder.clone();
    assert_eq!(found, Some(done));
    assert_eq!(loaded_step(&mut place.go_on()), Some(2), "its last checkpoint still proves itself");

    let cat = || {
        let mut bytes = Vec::new();
        let tasks = crate::checkpoint::browse::tasks(place.folder.path()).unwrap();
        let copied = tasks[0].outputs().unwrap().copy("last", &mut bytes);
        copied.map(|()| bytes)
    };
    assert_eq!(cat().unwrap(), b"step 2\n");
    flip_a_bit(&place.task().join(&folder).join("last"));
    assert!(cat().is_err(), "a damaged output is not shown as if it were whole");
}
