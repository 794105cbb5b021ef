//! What others do to the task's folder: files replaced by links and pipes, names and records that somebody made up, a full disk.

use std::os::unix::fs::symlink;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;
use crate::checkpoint::faults::{FaultKind, FaultPlan, Faulty};
use crate::checkpoint::outputs::{AssembledFile, export};

fn pipe(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

fn frozen(output: &str, tracker: &mut Tracker, scratch: &Scratch) -> Frozen {
    fs::write(scratch.output().join("file"), output).unwrap();
    tracker.freeze().unwrap()
}

#[test]
fn what_has_a_checkpoints_name_is_not_nothing_there() {
    let moved_and_linked = |path: &Path| {
        fs::rename(path, path.with_extension("moved")).unwrap();
        symlink(path.with_extension("moved"), path).unwrap();
    };
    let a_folder = |path: &Path| {
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
    };
    let a_pipe = |path: &Path| {
        fs::remove_file(path).unwrap();
        pipe(path);
    };
    for replaced in [&moved_and_linked as &dyn Fn(&Path), &a_folder, &a_pipe] {
        let place = Place::new();
        let mut first = place.go_on();
        save(&mut first, 5).unwrap();
        save(&mut first, 6).unwrap();
        let [older, newer] = &place.checkpoints()[..] else { panic!("{:?}", place.names()) };
        replaced(&place.task().join(newer));
        let mut second = place.go_on();
        let decision = load(&mut second).unwrap();
        assert_eq!(decision.loaded.unwrap().metadata.next_step, 5);
        assert_eq!((decision.strange.len(), decision.damaged.len()), (1, 0), "it is not set aside");

        replaced(&place.task().join(older));
        for _ in 0..2 {
            assert!(
                matches!(load(&mut place.go_on()), Err(LoadError::NoneUsable { damaged, .. }) if damaged.len() == 2)
            );
        }
    }
}

#[test]
fn a_segment_that_is_no_file_is_damage_and_not_a_failing_volume() {
    let place = Place::new();
    let parent = tempfile::tempdir().unwrap();
    let scratch = Scratch::make(parent.path()).unwrap();
    let mut first = place.go_on();
    save(&mut first, 1).unwrap();
    let mut tracker = Tracker::new(scratch.output(), scratch.metrics(), first.tenure(), &Manifest::default());
    save_with(&mut first, 2, frozen("text", &mut tracker, &scratch)).unwrap();
    let segment = place.names().into_iter().find(|name| name.ends_with(".seg")).unwrap();
    fs::remove_file(place.task().join(&segment)).unwrap();
    pipe(&place.task().join(&segment));
    assert_eq!(loaded_step(&mut place.go_on()), Some(1));
}

#[test]
fn the_file_that_leaves_no_epoch_is_named() {
    let place = Place::new();
    place.go_on();
    let last = "e4294967295-00000000.stage-x";
    fs::write(place.task().join(last), "").unwrap();
    let store = place.store();
    let survey = store.survey().unwrap();
    let (choice, _) = store.choose(&survey, Wish::GoOn, None).unwrap();
    let refused = store.prepare(survey, choice, &request(Wish::GoOn, None, 1)).map(|session| session.tenure());
    assert!(refused.unwrap_err().to_string().contains(last));
}

#[test]
fn a_claim_that_names_a_path_for_a_checkpoint_leads_nowhere() {
    let place = Place::new();
    let mut claim = place.go_on().claim().clone();
    claim.tenure.epoch = 2;
    claim.lineage = claim.tenure;
    claim.begun = Begun::From { step: 3, checkpoint: "../../../etc/passwd".into() };
    let name = FileName::Claim(claim.tenure).to_string();
    fs::write(place.task().join(name), sealed::seal(&claim).unwrap()).unwrap();
    assert!(matches!(load(&mut place.go_on()), Err(LoadError::NoneUsable { .. })));
}

/// A task of one step that is done, with a file among its outputs.
fn finished(place: &Place) -> (Session, DoneRecord, tempfile::TempDir) {
    let parent = tempfile::tempdir().unwrap();
    let scratch = Scratch::make(parent.path()).unwrap();
    let mut session = place.go_on();
    let mut tracker = Tracker::new(scratch.output(), scratch.metrics(), session.tenure(), &Manifest::default());
    let frozen = frozen("text", &mut tracker, &scratch);
    let manifest = frozen.manifest.clone();
    save_with(&mut session, 1, frozen).unwrap();
    let (done, _) = session.finish(&metadata(1, manifest), &scratch.output(), &scratch.metrics()).unwrap();
    (session, done, parent)
}

#[test]
fn a_done_record_that_leads_elsewhere_is_none() {
    let place = Place::new();
    let (session, good, _parent) = finished(&place);
    let path = place.task().join(FileName::Done(session.tenure()).to_string());
    let found = || {
        let store = place.store();
        store.done(&store.survey().unwrap(), session.lineage()).unwrap()
    };
    assert_eq!(found(), Some(good.clone()));

    let elsewhere = ["../../elsewhere", "/elsewhere", "a/../../b", ""];
    let file = |path: &str| AssembledFile { path: path.into(), ..good.outputs.files[0].clone() };
    for path_given in elsewhere {
        let (mut folder, mut folders, mut files, mut metrics) =
            (good.clone(), good.clone(), good.clone(), good.clone());
        folder.folder = path_given.into();
        folders.outputs.folders.push(path_given.into());
        files.outputs.files.push(file(path_given));
        metrics.metrics = Some(file(path_given));
        for record in [folder, folders, files, metrics] {
            fs::write(&path, sealed::seal(&record).unwrap()).unwrap();
            assert_eq!(found(), None, "{record:?}");
        }
    }
}

#[test]
fn a_pipe_where_the_user_wants_a_copy_holds_nobody_up() {
    let place = Place::new();
    let (_, done, parent) = finished(&place);
    let target = parent.path().join("copy");
    fs::create_dir(&target).unwrap();
    pipe(&target.join("file"));
    export(&Disk::new(place.folder.path()), &place.store().folder().join(&done.folder), &done.outputs, &target)
        .unwrap();
    assert_eq!(fs::read_to_string(target.join("file")).unwrap(), "text");
}

#[test]
fn saves_that_fail_leave_no_segment_behind() {
    let place = Place::new();
    let parent = tempfile::tempdir().unwrap();
    let scratch = Scratch::make(parent.path()).unwrap();
    let mut session = place.go_on();
    let mut tracker = Tracker::new(scratch.output(), scratch.metrics(), session.tenure(), &Manifest::default());
    let segments = || place.names().into_iter().filter(|name| name.ends_with(".seg")).count();
    // What is in the way of the stage file stands for a disk that is full by then.
    let in_the_way = place.task().join(FileName::Checkpoint(session.tenure(), 1).stage().to_string());
    for _ in 0..3 {
        fs::write(&in_the_way, "").unwrap();
        let frozen = frozen("text", &mut tracker, &scratch);
        let segment = frozen.segment.as_ref().map(|(name, _)| name.clone()).unwrap();
        assert!(save_with(&mut session, 1, frozen).is_err());
        tracker.distrust(&segment);
        assert_eq!(segments(), 0);
    }
    fs::remove_file(&in_the_way).unwrap();
    save_with(&mut session, 1, frozen("text", &mut tracker, &scratch)).unwrap();
    assert_eq!(segments(), 1);
    assert_eq!(loaded_step(&mut place.go_on()), Some(1));
}

#[test]
fn a_disk_that_killed_attempts_filled_can_still_be_claimed() {
    let place = Place::new();
    let dead = place.go_on();
    let half = place.task().join(FileName::Checkpoint(dead.tenure(), 1).stage().to_string());
    let claim = |plan: FaultPlan| {
        let faulty = Arc::new(Faulty::new(Arc::new(Disk::new(place.folder.path())), plan));
        let store = Store { volume: faulty.clone(), ..place.store() };
        let survey = store.survey().unwrap();
        let (choice, _) = store.choose(&survey, Wish::GoOn, None).unwrap();
        let session = store.prepare(survey, choice, &request(Wish::GoOn, None, 1)).unwrap();
        let before = faulty.operations();
        (session.begin(), before)
    };
    // The folder is there; creating the claim's file is the operation after that which makes sure of it.
    let full = |before: u64| FaultPlan::default().and(before + 2, FaultKind::Enospc);
    let (claimed, before) = claim(FaultPlan::default());
    claimed.unwrap();
    let (claimed, before) = claim(full(before + 1));
    assert!(claimed.is_err(), "there is nothing that could make room");
    fs::write(&half, "half").unwrap();
    let (claimed, _) = claim(full(before));
    claimed.unwrap();
    assert!(!half.exists());
}
