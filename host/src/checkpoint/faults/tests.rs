//! Plans, what each fault does, and publishing under every fault at every operation.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::{fs, io, io::Write};

use super::super::volume::{Disk, Operation, VolumeError, publish, publish_new, read_all, replace};
use super::*;

const OLD: &[u8] = b"the record as it was before";
const NEW: &[u8] = b"the record as it shall be from now on";

fn faulty(folder: &Path, plan: FaultPlan) -> Faulty {
    Faulty::new(Arc::new(Disk::new(folder)), plan)
}

fn content(folder: &Path, name: &str) -> Option<Vec<u8>> {
    fs::read(folder.join(name)).ok()
}

/// Writes in two pieces, so that a fault can come between them.
fn write_new(out: &mut dyn Write) -> io::Result<()> {
    out.write_all(&NEW[..10])?;
    out.write_all(&NEW[10..])
}

fn publish_final(volume: &dyn Volume) -> Result<(), VolumeError> {
    publish(volume, Path::new("stage"), Path::new("final"), write_new)
}

fn errno(error: &io::Error) -> Option<i32> {
    error.raw_os_error()
}

#[test]
fn plans_are_parsed_and_printed() {
    let plan: FaultPlan = " 12:fail-close, 3:kill,".parse().unwrap();
    assert_eq!((plan.at(12), plan.at(3), plan.at(4)), (Some(FaultKind::FailClose), Some(FaultKind::Kill), None));
    assert_eq!(plan.to_string(), "3:kill,12:fail-close");
    assert_eq!(plan, FaultPlan::default().and(3, FaultKind::Kill).and(12, FaultKind::FailClose));
    for kind in FaultKind::ALL {
        let plan = FaultPlan::default().and(1, kind);
        assert_eq!(plan.to_string().parse::<FaultPlan>().unwrap(), plan);
    }
    assert!("".parse::<FaultPlan>().unwrap().is_empty());
    for wrong in ["kill", "0:kill", "x:kill", "1:killed", "1:", "1:kill,1:eio", "-1:eio", "1:kill:2"] {
        let error = wrong.parse::<FaultPlan>().unwrap_err();
        assert!(error.to_string().contains("STEADFAST_FAULTS"), "{error}");
    }
}

#[test]
fn without_faults_the_layer_only_counts_and_traces() {
    let folder = tempfile::tempdir().unwrap();
    let trace = tempfile::NamedTempFile::new().unwrap();
    let volume = faulty(folder.path(), FaultPlan::default()).with_trace(trace.reopen().unwrap());
    volume.make_dirs(Path::new("job")).unwrap();
    publish(&volume, Path::new("job/stage"), Path::new("job/final"), write_new).unwrap();
    assert_eq!(read_all(&volume, Path::new("job/final")).unwrap(), NEW);
    assert_eq!(volume.list(Path::new("job")).unwrap().unwrap().len(), 1);
    assert!(volume.look(Path::new("job/final")).unwrap().is_some());
    volume.remove_file(Path::new("job/final")).unwrap();
    volume.remove_dir(Path::new("job")).unwrap();
    let expected = "1 make-dirs job\n2 create job/stage\n3 write job/stage\n4 write job/stage\n5 sync job/stage\n\
                    6 close job/stage\n7 rename job/final\n8 sync-dir job\n9 open job/final\n10 read job/final\n\
                    11 list job\n12 look job/final\n13 remove job/final\n14 remove job\n";
    assert_eq!(fs::read_to_string(trace.path()).unwrap(), expected);
    assert_eq!(volume.operations(), 14);
}

#[test]
fn every_operation_fails_as_the_plan_says() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), OLD).unwrap();
    let path = Path::new("file");
    let expected = [
        (FaultKind::Enospc, libc::ENOSPC),
        (FaultKind::Eio, libc::EIO),
        (FaultKind::Eacces, libc::EACCES),
        (FaultKind::Estale, libc::ESTALE),
        (FaultKind::Enotconn, libc::ENOTCONN),
        // These four make no sense for what follows.
        (FaultKind::ShortWrite, libc::EIO),
        (FaultKind::FailClose, libc::EIO),
        (FaultKind::LoseClose, libc::EIO),
        (FaultKind::Corrupt, libc::EIO),
    ];
    for (kind, number) in expected {
        let volume = (1..12).fold(FaultPlan::default(), |plan, operation| plan.and(operation, kind));
        let volume = faulty(folder.path(), volume);
        let errors = [
            volume.make_dirs(path).err(),
            volume.create_new(Path::new("new")).err(),
            volume.rename(path, Path::new("other")).err(),
            volume.rename_over(path, Path::new("other")).err(),
            volume.sync_dir(Path::new("")).err(),
            volume.list(Path::new("")).err(),
            volume.open(path).err(),
            volume.look(path).err(),
            volume.remove_file(path).err(),
            volume.remove_dir(path).err(),
        ];
        for error in errors {
            assert_eq!(errno(&error.unwrap()), Some(number));
        }
        let volume = faulty(folder.path(), FaultPlan::default().and(2, kind));
        let error = volume.open(path).unwrap().read_exact_at(&mut [0; 4], 0).unwrap_err();
        assert_eq!(errno(&error), Some(number));
    }
    assert_eq!(content(folder.path(), "file").unwrap(), OLD);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing was done");
}

#[test]
fn a_short_write_stores_half_and_finds_the_disk_full() {
    let folder = tempfile::tempdir().unwrap();
    let volume = faulty(folder.path(), FaultPlan::default().and(2, FaultKind::ShortWrite));
    let mut file = volume.create_new(Path::new("f")).unwrap();
    let error = file.write_all(b"12345678").unwrap_err();
    assert_eq!(errno(&error), Some(libc::ENOSPC));
    assert_eq!(errno(&file.write_all(b"9").unwrap_err()), Some(libc::ENOSPC), "it stays full");
    drop(file);
    assert_eq!(content(folder.path(), "f").unwrap(), b"1234");
}

#[test]
fn a_corrupt_write_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    publish_final(&faulty(folder.path(), FaultPlan::default().and(3, FaultKind::Corrupt))).unwrap();
    let stored = content(folder.path(), "final").unwrap();
    assert_eq!(stored.len(), NEW.len());
    assert_eq!(stored.iter().zip(NEW).filter(|(stored, given)| stored != given).count(), 1);
}

#[test]
fn a_failed_close_loses_data_at_once_or_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    for (kind, before, after) in [(FaultKind::FailClose, 2, 2), (FaultKind::LoseClose, 4, 2), (FaultKind::Eio, 4, 4)] {
        let name = kind.word();
        let volume = faulty(folder.path(), FaultPlan::default().and(3, kind));
        let mut file = volume.create_new(Path::new(name)).unwrap();
        file.write_all(b"1234").unwrap();
        assert_eq!(errno(&file.close().unwrap_err()), Some(libc::EIO));
        assert_eq!(content(folder.path(), name).unwrap().len(), before, "{name}");
        volume.process_ends();
        assert_eq!(content(folder.path(), name).unwrap().len(), after, "{name}");
    }
}

#[test]
fn what_is_not_closed_is_cut_under_whatever_name_it_has() {
    let folder = tempfile::tempdir().unwrap();
    let volume = faulty(folder.path(), FaultPlan::default());
    let mut renamed = volume.create_new(Path::new("stage")).unwrap();
    renamed.write_all(b"12345678").unwrap();
    renamed.sync().unwrap();
    volume.rename(Path::new("stage"), Path::new("final")).unwrap();
    let mut dropped = volume.create_new(Path::new("dropped")).unwrap();
    dropped.write_all(b"1234").unwrap();
    drop(dropped);
    publish_new(&volume, Path::new("closed"), |out| out.write_all(b"1234")).unwrap();
    // A later file of the same name has nothing to do with the one that was removed.
    drop(volume.create_new(Path::new("again")).unwrap());
    volume.remove_file(Path::new("again")).unwrap();
    publish_new(&volume, Path::new("again"), |out| out.write_all(b"1234")).unwrap();
    volume.process_ends();
    let lengths = ["final", "dropped", "closed", "again"].map(|name| content(folder.path(), name).unwrap().len());
    assert_eq!(lengths, [4, 2, 4, 4]);
}

/// What may be seen after an operation failed, or was the last: for each way of naming a file, under every fault at every
/// operation, the name has nothing, the old content or the new one, and success means the new one for good.
#[test]
fn publishing_under_every_fault_at_every_operation() {
    type Way = (&'static str, fn(&dyn Volume) -> Result<(), VolumeError>);
    let ways: [Way; 3] = [
        ("publish", publish_final),
        ("publish_new", |volume| publish_new(volume, Path::new("final"), write_new)),
        ("replace", |volume| replace(volume, Path::new("stage"), Path::new("final"), write_new)),
    ];
    let kinds = FaultKind::ALL.into_iter().filter(|kind| !matches!(kind, FaultKind::Kill | FaultKind::Corrupt));
    for ((name, way), kind) in ways.into_iter().flat_map(|way| kinds.clone().map(move |kind| (way, kind))) {
        let mut failures = 0;
        for number in 1.. {
            let folder = tempfile::tempdir().unwrap();
            let old = (name == "replace").then_some(OLD);
            if let Some(old) = old {
                fs::write(folder.path().join("final"), old).unwrap();
            }
            let volume = faulty(folder.path(), FaultPlan::default().and(number, kind));
            let result = way(&volume);
            volume.process_ends();
            let what = format!("{name}, {kind:?} at {number}: {result:?}");
            let found = content(folder.path(), "final");
            match result {
                Ok(()) => assert_eq!(found.as_deref(), Some(NEW), "{what}"),
                // The name is there and complete; only the folder is not known to be synced.
                Err(error) if error.operation == Operation::SyncDir && name != "publish_new" => {
                    assert_eq!(found.as_deref(), Some(NEW), "{what}");
                    failures += 1;
                }
                Err(_) => {
                    assert_eq!(found.as_deref(), old, "{what}");
                    assert_eq!(content(folder.path(), "stage"), None, "{what}");
                    failures += 1;
                }
            }
            if volume.operations() < number {
                break;
            }
        }
        assert_eq!(failures, if name == "publish_new" { 6 } else { 7 }, "{name}, {kind:?}");
    }
}

/// The other half of the tests below: what the child process does. On its own it does nothing.
#[test]
fn child() {
    let Some(folder) = std::env::var_os("STEADFAST_TEST_FAULTS_FOLDER") else { return };
    let volume = from_env(Arc::new(Disk::new(folder))).unwrap();
    publish_final(&*volume).unwrap();
    replace(&*volume, Path::new("stage"), Path::new("record"), write_new).unwrap();
}

fn run_child(folder: &Path, faults: &str, trace: &Path) -> std::process::ExitStatus {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "checkpoint::faults::tests::child"])
        .env("STEADFAST_TEST_FAULTS_FOLDER", folder)
        .env(FAULTS_VARIABLE, faults)
        .env(TRACE_VARIABLE, trace)
        .output()
        .unwrap()
        .status
}

#[test]
fn a_process_killed_at_every_operation() {
    let lines = |trace: &Path| fs::read_to_string(trace).unwrap().lines().count();
    let undisturbed = tempfile::tempdir().unwrap();
    fs::create_dir(undisturbed.path().join("volume")).unwrap();
    let trace = undisturbed.path().join("trace");
    assert!(run_child(&undisturbed.path().join("volume"), "", &trace).success());
    let operations = lines(&trace);
    assert_eq!(operations, 14);

    for number in 1..=operations {
        let folder = tempfile::tempdir().unwrap();
        let volume = folder.path().join("volume");
        fs::create_dir(&volume).unwrap();
        fs::write(volume.join("record"), OLD).unwrap();
        let trace = folder.path().join("trace");
        let status = run_child(&volume, &format!("{number}:kill"), &trace);
        assert_eq!(status.signal(), Some(libc::SIGKILL), "operation {number}: {status}");
        assert_eq!(lines(&trace), number);

        // Operations 1 to 7 publish `final`, 8 to 14 replace `record`; each is renamed by its sixth.
        assert_eq!(content(&volume, "final").as_deref(), (number > 6).then_some(NEW), "operation {number}");
        let record = if number > 13 { NEW } else { OLD };
        assert_eq!(content(&volume, "record").as_deref(), Some(record), "operation {number}");
        // Create, write, write, sync, close, rename, sync-dir: what was written is cut to half until the close is over.
        let stage = [None, Some(0), Some(10 / 2), Some(NEW.len() / 2), Some(NEW.len() / 2), Some(NEW.len()), None];
        let stage = stage[(number - 1) % 7];
        assert_eq!(content(&volume, "stage").map(|bytes| bytes.len()), stage, "operation {number}");
    }
}

#[test]
fn a_close_that_lies_is_found_out_by_the_kill() {
    // The process ignores nothing: its close failed, so it stopped, and the stage file is gone. A later kill finds no victim.
    let folder = tempfile::tempdir().unwrap();
    let volume = faulty(folder.path(), FaultPlan::default().and(5, FaultKind::LoseClose));
    assert_eq!(publish_final(&volume).unwrap_err().operation, Operation::Close);
    publish_final(&volume).unwrap();
    volume.process_ends();
    assert_eq!(content(folder.path(), "final").as_deref(), Some(NEW));
}
