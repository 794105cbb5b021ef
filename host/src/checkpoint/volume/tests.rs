//! The real filesystem, and how a file gets its name.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};

use super::*;

fn volume() -> (tempfile::TempDir, Disk) {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::new(folder.path());
    (folder, disk)
}

fn names(disk: &Disk, dir: &str) -> Vec<String> {
    disk.list(Path::new(dir)).unwrap().unwrap().into_iter().map(|entry| entry.name).collect()
}

fn put(volume: &dyn Volume, path: &str, bytes: &[u8]) {
    publish_new(volume, Path::new(path), |out| out.write_all(bytes)).unwrap();
}

#[test]
fn a_published_file_is_there_and_its_stage_is_not() {
    let (folder, disk) = volume();
    disk.make_dirs(Path::new("job/task")).unwrap();
    let (stage, target) = (Path::new("job/task/stage"), Path::new("job/task/final"));
    let answer = publish(&disk, stage, target, |out| out.write_all(b"content").map(|()| 7)).unwrap();
    assert_eq!(answer, 7);
    assert_eq!(fs::read(folder.path().join(target)).unwrap(), b"content");
    assert_eq!(names(&disk, "job/task"), ["final"]);
    assert_eq!(fs::metadata(folder.path().join(target)).unwrap().mode() & 0o777 & !0o644, 0);
    assert_eq!(read_all(&disk, target).unwrap(), b"content");
}

#[test]
fn a_final_name_is_never_taken_over() {
    let (_folder, disk) = volume();
    put(&disk, "final", b"first");
    let error = publish(&disk, Path::new("stage"), Path::new("final"), |out| out.write_all(b"second")).unwrap_err();
    assert_eq!((error.operation, error.cause.kind()), (Operation::Rename, io::ErrorKind::AlreadyExists));
    let error = publish_new(&disk, Path::new("final"), |out| out.write_all(b"third")).unwrap_err();
    assert_eq!((error.operation, error.cause.kind()), (Operation::Create, io::ErrorKind::AlreadyExists));
    assert_eq!(read_all(&disk, Path::new("final")).unwrap(), b"first");
    assert_eq!(names(&disk, ""), ["final"]);
}

#[test]
fn another_writers_stage_file_is_left_alone() {
    let (_folder, disk) = volume();
    put(&disk, "stage", b"somebody else's");
    let error = publish(&disk, Path::new("stage"), Path::new("final"), |out| out.write_all(b"x")).unwrap_err();
    assert_eq!(error.operation, Operation::Create);
    assert_eq!(read_all(&disk, Path::new("stage")).unwrap(), b"somebody else's");
}

#[test]
fn replace_takes_the_place_of_a_record() {
    let (_folder, disk) = volume();
    for content in [b"one", b"two"] {
        replace(&disk, Path::new("stage"), Path::new("record"), |out| out.write_all(content)).unwrap();
    }
    assert_eq!(read_all(&disk, Path::new("record")).unwrap(), b"two");
    assert_eq!(names(&disk, ""), ["record"]);
}

#[test]
fn a_failing_writer_leaves_nothing() {
    let (_folder, disk) = volume();
    let fail = |out: &mut dyn Write| -> io::Result<()> {
        out.write_all(b"half")?;
        Err(io::Error::other("the encoder gave up"))
    };
    let error = publish(&disk, Path::new("stage"), Path::new("final"), fail).unwrap_err();
    assert_eq!(error.operation, Operation::Write);
    assert!(error.to_string().ends_with("stage`: the encoder gave up"), "{error}");
    publish_new(&disk, Path::new("claim"), fail).unwrap_err();
    replace(&disk, Path::new("stage"), Path::new("record"), fail).unwrap_err();
    assert_eq!(names(&disk, ""), [""; 0]);
}

#[test]
fn listing_tells_kinds_apart_and_is_sorted() {
    let (folder, disk) = volume();
    put(&disk, "b-file", b"12345");
    disk.make_dirs(Path::new("a-folder/below")).unwrap();
    symlink(folder.path().join("b-file"), folder.path().join("c-link")).unwrap();
    symlink(folder.path().join("a-folder"), folder.path().join("d-link")).unwrap();
    symlink("nowhere", folder.path().join("e-link")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, folder.path().join("f-pipe"), rustix::fs::FileType::Fifo, 0o644.into(), 0)
        .unwrap();
    // A name that is not UTF-8 is none of ours.
    fs::write(folder.path().join(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"g-\xff")), b"")
        .unwrap();
    let found = disk.list(Path::new("")).unwrap().unwrap();
    let expected = [
        ("a-folder", EntryKind::Dir, 0),
        ("b-file", EntryKind::File, 5),
        ("c-link", EntryKind::Other, 0),
        ("d-link", EntryKind::Other, 0),
        ("e-link", EntryKind::Other, 0),
        ("f-pipe", EntryKind::Other, 0),
    ];
    let expected = expected.map(|(name, kind, len)| Entry { name: name.to_owned(), kind, len });
    assert_eq!(found, expected);
    for entry in expected {
        assert_eq!(disk.look(Path::new(&entry.name)).unwrap(), Some(entry.kind));
        assert_eq!(disk.open(Path::new(&entry.name)).is_ok(), entry.is_file(), "{}", entry.name);
    }
    assert_eq!(disk.look(Path::new("nothing")).unwrap(), None);
    assert!(disk.list(Path::new("d-link")).is_err(), "a link to a folder is not followed");
    assert!(disk.list(Path::new("b-file")).is_err(), "a file is no folder");
}

#[test]
fn no_folder_and_no_volume_are_two_answers() {
    let (folder, disk) = volume();
    assert_eq!(disk.list(Path::new("job")).unwrap(), None);
    assert_eq!(disk.look(Path::new("job")).unwrap(), None);
    let gone = Disk::new(folder.path().join("not-mounted"));
    assert_eq!(gone.list(Path::new("job")).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert_eq!(gone.look(Path::new("job")).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert_eq!(gone.make_dirs(Path::new("job")).unwrap_err().kind(), io::ErrorKind::NotFound);
    assert!(!gone.root().exists(), "a volume that is not there is not made");
}

#[test]
fn a_listing_survives_files_that_vanish() {
    let (_folder, disk) = volume();
    for index in 0..300 {
        put(&disk, &format!("file-{index:03}"), b"x");
    }
    put(&disk, "stays", b"x");
    std::thread::scope(|scope| {
        let remover = scope.spawn(|| {
            for index in 0..300 {
                disk.remove_file(Path::new(&format!("file-{index:03}"))).unwrap();
            }
        });
        while !remover.is_finished() {
            assert!(names(&disk, "").contains(&"stays".to_owned()));
        }
    });
    assert_eq!(names(&disk, ""), ["stays"]);
}

#[test]
fn a_hundred_thousand_entries_are_listed() {
    // In memory where that can be had: making so many files on a busy disk takes a minute.
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let disk = Disk::new(folder.path());
    for index in 0..100_000 {
        fs::File::create(folder.path().join(format!("{index:06}"))).unwrap();
    }
    let found = names(&disk, "");
    assert_eq!((found.len(), found[0].as_str(), found[99_999].as_str()), (100_000, "000000", "099999"));
}

#[test]
fn paths_stay_on_the_volume() {
    let (folder, disk) = volume();
    let below = Disk::new(folder.path().join("volume"));
    disk.make_dirs(Path::new("volume")).unwrap();
    for path in ["../outside", "/etc/outside", "a/../../outside"] {
        let path = Path::new(path);
        assert!(below.create_new(path).is_err());
        assert!(below.make_dirs(path).is_err());
        assert!(below.open(path).is_err());
        assert!(below.look(path).is_err());
        assert!(below.list(path).is_err());
        assert!(below.remove_file(path).is_err());
        assert!(below.rename(path, Path::new("inside")).is_err());
        assert!(below.rename_over(Path::new("inside"), path).is_err());
    }
    assert_eq!(names(&disk, ""), ["volume"]);
    assert_eq!(names(&disk, "volume"), [""; 0]);
}

#[test]
fn links_are_not_written_through() {
    let (folder, disk) = volume();
    symlink(folder.path().join("elsewhere"), folder.path().join("link")).unwrap();
    assert!(publish_new(&disk, Path::new("link"), |out| out.write_all(b"x")).is_err());
    disk.make_dirs(Path::new("real")).unwrap();
    symlink(folder.path().join("real"), folder.path().join("folder-link")).unwrap();
    assert!(disk.make_dirs(Path::new("folder-link")).is_err());
    assert!(!folder.path().join("elsewhere").exists());
}

#[test]
fn folders_are_made_once_and_removed_when_empty() {
    let (_folder, disk) = volume();
    for _ in 0..2 {
        disk.make_dirs(Path::new("a/b/c")).unwrap();
        disk.make_dirs(Path::new("")).unwrap();
    }
    put(&disk, "a/b/c/file", b"x");
    assert!(disk.remove_dir(Path::new("a/b/c")).is_err());
    disk.remove_file(Path::new("a/b/c/file")).unwrap();
    disk.remove_dir(Path::new("a/b/c")).unwrap();
    assert!(disk.make_dirs(Path::new("a/b/c/d")).is_ok());
    put(&disk, "file", b"x");
    assert!(disk.make_dirs(Path::new("file/below")).is_err());
}

#[test]
fn errors_name_the_file_and_what_to_do() {
    let (folder, disk) = volume();
    let error = |number: rustix::io::Errno| VolumeError::new(&disk, Operation::Write, Path::new("f"), number.into());
    let full = error(rustix::io::Errno::NOSPC);
    let path = folder.path().join("f");
    assert!(full.to_string().starts_with(&format!("cannot write `{}`: No space left", path.display())), "{full}");
    assert!(full.is_no_space() && full.free.is_some());
    let hint = full.with_needed(5 << 30).hint().unwrap();
    assert!(hint.starts_with("up to 5.0 GiB are needed and ") && hint.contains("--keep"), "{hint}");
    for (number, word) in [
        (rustix::io::Errno::ROFS, "read-only"),
        (rustix::io::Errno::ACCESS, "owner and mode"),
        (rustix::io::Errno::STALE, "mount is gone"),
        (rustix::io::Errno::NOTCONN, "mount is gone"),
        (rustix::io::Errno::NAMETOOLONG, "--name"),
        (rustix::io::Errno::LOOP, "symbolic link"),
    ] {
        let hint = error(number).hint().unwrap();
        assert!(hint.contains(word), "{hint}");
    }
    assert_eq!(VolumeError::new(&disk, Operation::Open, Path::new("f"), io::Error::other("x")).hint(), None);
    let long = "n".repeat(300);
    let error = publish_new(&disk, Path::new(&long), |_| Ok(())).unwrap_err();
    assert!(error.hint().unwrap().contains("--name"));
}

#[test]
fn a_file_is_complete_once_it_is_closed() {
    let (_folder, disk) = volume();
    let mut file = disk.create_new(Path::new("f")).unwrap();
    file.write_all(b"x").unwrap();
    file.sync().unwrap();
    file.close().unwrap();
    assert_eq!(read_all(&disk, Path::new("f")).unwrap(), b"x");
    assert_eq!(read_all(&disk, Path::new("g")).unwrap_err().operation, Operation::Open);
}
