//! The real filesystem, and how a file gets its name.

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

use std::fs;

use super::*;

fn volume() -> (tempfile::TempDir, Disk) {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::new(folder.path());
    (folder, disk)
}

#[test]
fn a_published_file_is_there_and_its_stage_is_not() {
    let (folder, disk) = volume();
    disk.make_dirs(Path::new("job/task")).unwrap();
    let (stage, target) = (Path::new("job/task/stage"), Path::new("job/task/final"));
    let answer = publish(&disk, stage, target, |out| out.write_all(b"content").map(|()| 7)).unwrap();
    assert_eq!(answer, 7);
    assert_eq!(fs::read(folder.path().join(target)).unwrap(), b"content");
    assert_eq!(disk.list(Path::new("job/task")).unwrap().unwrap().len(), 1);
}
