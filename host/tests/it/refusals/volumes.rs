//! Volumes that are not there, not writable, full, or gone and back again; and what others put on them.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::support::{Ended, Mount, Phase, Place, Run, component, undisturbed, without_sizes};

const STEPS: &str = r#"{"steps": 6}"#;

/// On the volume of this place, saving after each step.
fn run(place: &Place) -> Run {
    place.run("stochastic").config(STEPS).args("--every 1steps")
}

/// On Cloud Run itself, where volumes are judged, and nothing is played.
fn on_cloud_run(place: &Place, volume: &Path) -> Run {
    let run = place.command(&["run"]).arg(component("stochastic")).config(STEPS).arg("--volume").arg(volume);
    run.args("--log human").env("CLOUD_RUN_JOB", "job").env("CLOUD_RUN_TASK_ATTEMPT", "0")
}

/// Refused before the guest was even started.
#[track_caller]
fn refused(place: &Place, run: &Run, code: i32) -> String {
    let ended = run.exits(code);
    assert!(!ended.came_to(Phase::Start) && !ended.came_to(Phase::Step));
    ended.refusal(place)
}

#[test]
fn a_missing_mount_and_each_retry_starts_at_0() {
    let place = Place::new();
    let mut said = String::new();
    let none = place.command(&["run"]).arg(component("stochastic")).config(STEPS).args("--log human");
    said += &refused(&place, &none.env("CLOUD_RUN_JOB", "job").env("CLOUD_RUN_TASK_ATTEMPT", "0"), 2);
    for path in ["/no-such-mount", "/", "/dev/shm/checkpoints"] {
        said += &refused(&place, &on_cloud_run(&place, Path::new(path)), 2);
    }
    assert!(!Path::new("/dev/shm/checkpoints").exists() && !Path::new("/no-such-mount").exists());
    insta::assert_snapshot!(said, @r#"
    steadfast: Cloud Run is detected, but no volume is given, and checkpoints on this machine's own disk would be lost with it
    hint: mount a bucket or a disk and give its path with --volume or STEADFAST_VOLUME (or mount it at /checkpoints)
    steadfast: the volume `/no-such-mount` would not outlive this attempt: nothing is mounted there, so it lies on the container's own disk
    hint: mount a bucket or a disk there; where losing all progress is meant, say --volume-is-ephemeral
    steadfast: the volume `/` would not outlive this attempt: nothing is mounted there, so it lies on the container's own disk
    hint: mount a bucket or a disk there; where losing all progress is meant, say --volume-is-ephemeral
    steadfast: the volume `/dev/shm/checkpoints` would not outlive this attempt: it lies in memory (tmpfs)
    hint: mount a bucket or a disk there; where losing all progress is meant, say --volume-is-ephemeral
    "#);
}

#[test]
fn missing_where_that_is_said_to_be_meant() {
    let place = Place::new();
    let absent = place.path().join("absent");
    let ended = on_cloud_run(&place, &absent).arg("--volume-is-ephemeral").exits(75);
    assert!(!ended.came_to(Phase::Start) && !absent.exists());
    insta::assert_snapshot!(ended.refusal(&place), @r#"
    steadfast: cannot list `[place]/absent/job`: the volume `[place]/absent` itself is not there: No such file or directory (os error 2)
    hint: the mount is gone, or never was there; once it is back, the same command goes on from the last checkpoint
    "#);
}

#[test]
fn no_folder() {
    let place = Place::new();
    let mut said = String::new();
    let (file, link) = (place.path().join("file"), place.path().join("link"));
    fs::write(&file, "").unwrap();
    symlink("nowhere", &link).unwrap();
    for path in [file.clone(), file.join("below"), link, "/dev/null".into()] {
        said += &refused(&place, &place.command(&["run"]).arg(component("stochastic")).arg("--volume").arg(path), 2);
    }
    insta::assert_snapshot!(said, @r#"
    steadfast: the volume `[place]/file` cannot be used: it is no folder
    hint: give a folder with --volume or STEADFAST_VOLUME; checkpoints are files in it
    steadfast: the volume `[place]/file/below` cannot be used: Not a directory (os error 20)
    hint: give a folder with --volume or STEADFAST_VOLUME; checkpoints are files in it
    steadfast: the volume `[place]/link` cannot be used: it is a link, or lies behind one, that leads nowhere
    hint: give a folder with --volume or STEADFAST_VOLUME; checkpoints are files in it
    steadfast: the volume `/dev/null` cannot be used: it is no folder
    hint: give a folder with --volume or STEADFAST_VOLUME; checkpoints are files in it
    "#);
}

#[test]
fn read_only() {
    let place = Place::new();
    run(&place).term_at(Phase::Step, 3).expect_code(143);
    let before = place.names("stochastic");
    let Some(mount) = Mount::read_only("read_only", &place.volume(), &place.volume()) else { return };
    insta::assert_snapshot!(refused(&place, &run(&place), 2), @r#"
    steadfast: cannot create `[place]/volume/stochastic/task-00000-of-00001/e0002-[hash].claim`: Read-only file system (os error 30)
    hint: the volume is mounted read-only; mount it so that it can be written to
    "#);
    insta::assert_snapshot!(refused(&place, &run(&place).args("--name another"), 2), @r#"
    steadfast: cannot make the folder `[place]/volume/another/task-00000-of-00001`: Read-only file system (os error 30)
    hint: the volume is mounted read-only; mount it so that it can be written to
    "#);
    assert_eq!(place.names("stochastic"), before);
    mount.unmount();
    assert_eq!(run(&place).done().resumed_from(), Some(3));
}

#[test]
fn without_permission_to_write() {
    let place = Place::new();
    run(&place).term_at(Phase::Step, 3).expect_code(143);
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED without_permission_to_write: only root can become another user");
        return;
    }
    // Nobody may come here, read all, and write to none but its own scratch space.
    for folder in [place.path().to_owned(), place.volume()] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let scratch = place.path().join("nobody's");
    fs::create_dir(&scratch).unwrap();
    fs::set_permissions(&scratch, fs::Permissions::from_mode(0o777)).unwrap();
    let copy = |from: PathBuf, mode| {
        let to = place.path().join(from.file_name().unwrap());
        fs::copy(&from, &to).unwrap();
        fs::set_permissions(&to, fs::Permissions::from_mode(mode)).unwrap();
        to
    };
    let program = copy(env!("CARGO_BIN_EXE_steadfast").into(), 0o755);
    let plugin = copy(component("stochastic"), 0o644);
    let nobody = |scratch: &Path| {
        let run = place.command(&["run"]).arg(&plugin).config(STEPS).arg("--scratch").arg(scratch);
        run.env("STEADFAST_CACHE", "").for_user(65_534, program.clone()).arg("--volume")
    };
    let before = place.names("stochastic");
    let ended = nobody(&scratch).arg(place.volume()).exits(75);
    insta::assert_snapshot!(ended.refusal(&place), @r#"
    steadfast: cannot create `[place]/volume/stochastic/task-00000-of-00001/e0002-[hash].claim`: Permission denied (os error 13)
    hint: the volume does not let this user do that; look at its owner and mode
    "#);
    let ended = nobody(&scratch).arg(place.volume()).args("--name another").exits(75);
    insta::assert_snapshot!(ended.refusal(&place), @r#"
    steadfast: cannot make the folder `[place]/volume/another/task-00000-of-00001`: Permission denied (os error 13)
    hint: the volume does not let this user do that; look at its owner and mode
    "#);
    // Neither can it look at what is not its own, nor make the volume, nor use scratch space of others.
    fs::set_permissions(place.task("stochastic"), fs::Permissions::from_mode(0o700)).unwrap();
    let ended = nobody(&scratch).arg(place.volume()).exits(75);
    insta::assert_snapshot!(ended.refusal(&place), @r#"
    steadfast: cannot list `[place]/volume/stochastic/task-00000-of-00001`: Permission denied (os error 13)
    hint: the volume does not let this user do that; look at its owner and mode
    "#);
    fs::set_permissions(place.task("stochastic"), fs::Permissions::from_mode(0o755)).unwrap();
    let ended = nobody(&scratch).arg(place.path().join("new")).exits(75);
    insta::assert_snapshot!(ended.refusal(&place), @r#"
    steadfast: cannot create `[place]/new`: Permission denied (os error 13)
    hint: the volume does not let this user do that; look at its owner and mode
    "#);
    let ended = nobody(place.path()).arg(place.volume()).exits(2);
    insta::assert_snapshot!(ended.refusal(&place), @r#"
    steadfast: scratch space, `[place]`, cannot be written to: Permission denied (os error 13)
    hint: give a folder that this user may write to, with room for what the plugin writes
    "#);
    assert_eq!(place.names("stochastic"), before);
    assert_eq!(run(&place).done().resumed_from(), Some(3));
}

/// Takes what room there is.
fn fill(folder: &Path) -> PathBuf {
    let path = folder.join("somebody else's");
    let mut file = File::create(&path).unwrap();
    // From large to small, so that nothing is left.
    for piece in [1 << 16, 4096, 1] {
        while std::io::Write::write_all(&mut file, &vec![1; piece]).is_ok() {}
    }
    path
}

#[test]
fn full_from_the_first() {
    let place = Place::new();
    let Some(_mount) = Mount::memory("full_from_the_first", &place.volume(), "1m") else { return };
    let filling = fill(&place.volume());
    let said = refused(&place, &run(&place), 75);
    insta::assert_snapshot!(said, @r#"
    steadfast: cannot write `[place]/volume/stochastic/task-00000-of-00001/e0001-[hash].claim`: No space left on device (os error 28)
    hint: 0 B are free; make room, or keep fewer checkpoints (--keep)
    "#);
    fs::remove_file(filling).unwrap();
    run(&place).done();
}

#[test]
fn full_in_mid_run() {
    let place = Place::new();
    let Some(_mount) = Mount::memory("full_in_mid_run", &place.volume(), "4m") else { return };
    let config = r#"{"steps": 6, "mebibytes": 1}"#;
    let run = |every: &str| {
        let run = place.run("big_state").config(config).args("--keep 1 --max-save-failures 2 --every");
        run.arg(every)
    };
    run("1000steps").term_at(Phase::Step, 2).expect_code(143);
    // Its saver is at rest there: the next saves are those of step 4 and of the end.
    let mut attempt = run("2steps").start();
    attempt.until(Phase::Step, 3);
    let filling = fill(&place.volume());
    let ended = attempt.end().expect_code(75);
    let said = ended.lines(&place, &["A save failed"]);
    insta::assert_snapshot!(without_sizes(&said), @r#"
    warning: A save failed (1 in a row): cannot write `[place]/volume/big_state/task-00000-of-00001/e0002-[hash].stage-0001.seg`: No space left on device (os error 28); hint: up to [size] B are needed and [size] B are free; make room, or keep fewer checkpoints (--keep)
    warning: A save failed (2 in a row): cannot write `[place]/volume/big_state/task-00000-of-00001/e0002-[hash].stage-0002.seg`: No space left on device (os error 28); hint: up to [size] B are needed and [size] B are free; make room, or keep fewer checkpoints (--keep)
    "#);
    insta::assert_snapshot!(without_sizes(&ended.refusal(&place)), @r#"
    steadfast: 2 saves failed in a row, and going on unprotected is no use; the last one: cannot write `[place]/volume/big_state/task-00000-of-00001/e0002-[hash].stage-0002.seg`: No space left on device (os error 28)
    hint: up to [size] B are needed and [size] B are free; make room, or keep fewer checkpoints (--keep)
    "#);
    assert_eq!(place.usable("big_state").last(), Some(&2), "the checkpoint before stays usable");
    fs::remove_file(filling).unwrap();
    assert_eq!(run("1000steps").done().resumed_from(), Some(2));
    place.finished("big_state").assert_equals(&undisturbed("big_state", config), "after a full disk");
}

/// An attempt whose volume goes away before its fourth step, and the next one, for which it is back.
#[track_caller]
fn gone_and_back(place: &Place, goes: impl FnOnce(), comes: impl FnOnce()) -> Ended {
    run(place).term_at(Phase::Step, 2).expect_code(143);
    let mut attempt = run(place).args("--max-save-failures 2").start();
    attempt.until(Phase::Step, 3);
    attempt.until_any("its saver at rest", |(phase, _)| phase == Phase::Idle || phase == Phase::FinalWrite);
    goes();
    let ended = attempt.end().expect_code(75);
    comes();
    let safe = *place.usable("stochastic").last().unwrap();
    assert!(safe >= 2);
    assert_eq!(run(place).done().resumed_from(), Some(safe));
    place.finished("stochastic").assert_equals(&undisturbed("stochastic", STEPS), "after the volume came back");
    ended
}

#[test]
fn unmounted_in_mid_run_and_back() {
    let place = Place::new();
    let real = place.path().join("real");
    fs::create_dir(&real).unwrap();
    let Some(mount) = Mount::folder("unmounted_in_mid_run_and_back", &real, &place.volume()) else { return };
    let mut back = None;
    let comes = || {
        assert_eq!(fs::read_dir(place.volume()).unwrap().count(), 0, "nothing is made where the mount was");
        back = Mount::folder("unmounted_in_mid_run_and_back", &real, &place.volume());
    };
    let ended = gone_and_back(&place, || mount.unmount(), comes);
    insta::assert_snapshot!(numberless(&place, &ended), @r#"
    steadfast: 2 saves failed in a row, and going on unprotected is no use; the last one: cannot create `[place]/volume/stochastic/task-[number]-of-[number]/e[number]-[hash].stage-[number].[kind]`: No such file or directory (os error 2)
    hint: the mount is gone, or never was there; once it is back, the same command goes on from the last checkpoint
    "#);
    assert!(back.is_some());
}

#[test]
fn not_answering_in_mid_run_and_back() {
    let place = Place::new();
    let probe = place.path().join("probe");
    fs::create_dir(&probe).unwrap();
    if Mount::dead_server("not_answering_in_mid_run_and_back", &probe).is_none() {
        return;
    }
    let mut during = String::new();
    let volume = place.volume();
    let ended = {
        run(&place).term_at(Phase::Step, 2).expect_code(143);
        let mut attempt = run(&place).args("--max-save-failures 2").start();
        attempt.until(Phase::Step, 3);
        attempt.until_any("its saver at rest", |(phase, _)| phase == Phase::Idle || phase == Phase::FinalWrite);
        let dead = Mount::dead_server("not_answering_in_mid_run_and_back", &volume);
        let ended = attempt.end().expect_code(75);
        // Whoever comes now is to come again: this is no wrong volume.
        during += &refused(&place, &run(&place), 75);
        during += &refused(&place, &on_cloud_run(&place, &volume), 75);
        let elsewhere =
            || place.command(&["run"]).arg(component("stochastic")).arg("--volume").arg(place.path().join("other"));
        for option in ["--input", "--output", "--scratch"] {
            during += &refused(&place, &elsewhere().arg(option).arg(volume.join("data")), 75);
        }
        drop(dead);
        ended
    };
    insta::assert_snapshot!(numberless(&place, &ended), @r#"
    steadfast: 2 saves failed in a row, and going on unprotected is no use; the last one: cannot list `[place]/volume/stochastic/task-[number]-of-[number]`: Transport endpoint is not connected (os error 107)
    hint: the mount is gone, or never was there; once it is back, the same command goes on from the last checkpoint
    "#);
    insta::assert_snapshot!(during, @r#"
    steadfast: the volume `[place]/volume` cannot be reached: Transport endpoint is not connected (os error 107)
    hint: the mount is gone, or never was there; once it is back, the same command goes on from the last checkpoint
    steadfast: the volume `[place]/volume` cannot be reached: Transport endpoint is not connected (os error 107)
    hint: the mount is gone, or never was there; once it is back, the same command goes on from the last checkpoint
    steadfast: the input `[place]/volume/data` cannot be reached: Transport endpoint is not connected (os error 107)
    hint: what is mounted there does not answer; another attempt may find it again
    steadfast: the folder of --output, `[place]/volume/data`, cannot be written to: Transport endpoint is not connected (os error 107)
    hint: what is mounted there does not answer; another attempt may find it again
    steadfast: scratch space, `[place]/volume/data`, cannot be written to: Transport endpoint is not connected (os error 107)
    hint: what is mounted there does not answer; another attempt may find it again
    "#);
    let safe = *place.usable("stochastic").last().unwrap();
    assert_eq!(run(&place).done().resumed_from(), Some(safe));
    place.finished("stochastic").assert_equals(&undisturbed("stochastic", STEPS), "after the volume came back");
}

/// What is said in the end, without the steps and numbers of segments at which the volume happened to be gone.
fn numberless(place: &Place, ended: &Ended) -> String {
    let mut text = String::new();
    let mut digits = String::new();
    for symbol in ended.refusal(place).chars() {
        if symbol.is_ascii_digit() {
            digits.push(symbol);
            continue;
        }
        text.push_str(if digits.len() >= 4 { "[number]" } else { &digits });
        digits.clear();
        text.push(symbol);
    }
    text.replace(".ckpt", ".[kind]").replace(".seg", ".[kind]")
}

/// Two checkpoints, of steps 3 and 5, beside that of step 0 if it is still there.
fn stopped_twice() -> Place {
    let place = Place::new();
    let run = || place.run("stochastic").config(STEPS).args("--every 1000000steps");
    run().term_at(Phase::Step, 3).expect_code(143);
    run().term_at(Phase::Step, 5).expect_code(143);
    place
}

fn change(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

type Damage = fn(&Path);

/// What may have become of a checkpoint's file.
const DAMAGES: [(&str, Damage); 7] = [
    ("truncated", |path| change(path, |bytes| bytes.truncate(bytes.len() / 2))),
    ("a bit flipped in its middle", |path| {
        change(path, |bytes| {
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
        });
    }),
    ("a bit flipped in its first byte", |path| change(path, |bytes| bytes[0] ^= 1)),
    ("empty", |path| change(path, Vec::clear)),
    ("zeros", |path| change(path, |bytes| bytes.fill(0))),
    ("a link", |path| {
        let elsewhere = path.parent().unwrap().join("elsewhere");
        fs::rename(path, &elsewhere).unwrap();
        symlink(elsewhere, path).unwrap();
    }),
    ("a folder", |path| {
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
    }),
];

#[test]
fn checkpoints_that_are_none() {
    let mut said = String::new();
    for (what, damage) in DAMAGES {
        let place = stopped_twice();
        damage(&place.newest("stochastic"));
        // The one before is used, and it is said why.
        let ended = place.run("stochastic").config(STEPS).done();
        assert_eq!(ended.resumed_from(), Some(3), "{what}");
        said += &format!("{what}:\n{}", without_positions(&ended.lines(&place, &["Checkpoint "])));
    }
    insta::assert_snapshot!(said, @r#"
    truncated:
    warning: Checkpoint e0002-[hash]-000000000005.ckpt is damaged (it does not end as a checkpoint does, at byte [n]); it is set aside
    a bit flipped in its middle:
    warning: Checkpoint e0002-[hash]-000000000005.ckpt is damaged (the tables and the metadata do not match their hash, at byte [n]); it is set aside
    a bit flipped in its first byte:
    warning: Checkpoint e0002-[hash]-000000000005.ckpt is damaged (it does not begin as a checkpoint does, at byte [n]); it is set aside
    empty:
    warning: Checkpoint e0002-[hash]-000000000005.ckpt is damaged (0 bytes are too few for a checkpoint, at byte [n]); it is set aside
    zeros:
    warning: Checkpoint e0002-[hash]-000000000005.ckpt is damaged (it does not begin as a checkpoint does, at byte [n]); it is set aside
    a link:
    warning: Checkpoint e0002-[hash]-000000000005.ckpt is passed over: it is not a regular file
    a folder:
    warning: Checkpoint e0002-[hash]-000000000005.ckpt is passed over: it is not a regular file
    "#);
}

/// How long a checkpoint is depends on the time that it took.
fn without_positions(text: &str) -> String {
    let mut parts = text.split("at byte ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "at byte [n]" + part.trim_start_matches(|c: char| c.is_ascii_digit()))
}

#[test]
fn no_checkpoint_that_is_one() {
    let mut said = String::new();
    for (what, damage) in DAMAGES {
        let place = stopped_twice();
        place.checkpoints("stochastic").iter().for_each(|path| damage(path));
        let before = place.names("stochastic");
        let run = place.run("stochastic").config(STEPS);
        let first = refused(&place, &run, 70);
        assert_eq!(refused(&place, &run, 70), first, "{what}: the next attempt is told the same");
        assert!(before.iter().all(|name| place.names("stochastic").contains(name)), "{what}: nothing is moved");
        if what == "truncated" {
            said += &without_positions(&first);
        }
        assert!(first.contains("--fresh"), "{what}: {first}");
    }
    insta::assert_snapshot!(said, @r#"
    steadfast: none of the 2 checkpoints in `[place]/volume/stochastic/task-00000-of-00001` can be used, and starting over would lose the work: e0002-[hash]-000000000005.ckpt is damaged (it does not end as a checkpoint does, at byte [n]); e0001-[hash]-000000000003.ckpt is damaged (it does not end as a checkpoint does, at byte [n])
    hint: repair or bring back a checkpoint file; to give the work up and begin at step 0, say --fresh
    "#);
}

#[test]
fn of_another_job() {
    let place = stopped_twice();
    // What `cp -r` makes of it.
    let ended = place.command(&["run"]).arg(component("stochastic")).config(STEPS);
    fs::rename(place.volume().join("stochastic"), place.volume().join("other")).unwrap();
    let ended = ended.arg("--volume").arg(place.volume()).args("--name other");
    insta::assert_snapshot!(refused(&place, &ended, 70), @r#"
    steadfast: checkpoint `e0002-[hash]-000000000005.ckpt` belongs to job `stochastic`, task 0 of 1, not to job `other`, task 0 of 1
    hint: somebody copied it here; move it away, or run the job that it belongs to (--name, --run-id)
    "#);
}

#[test]
fn of_another_plugin() {
    let place = stopped_twice();
    let run = place.run("big_state").config(STEPS).args("--name stochastic");
    insta::assert_snapshot!(refused(&place, &run, 70), @r#"
    steadfast: this is not the job that the checkpoint `e0002-[hash]-000000000005.ckpt` is of: the plugin was sha256:[hash], now it is sha256:[hash]
    hint: if that is meant, say --accept-changed plugin; to go on under the job's own plugin, --plugin-from volume; to begin anew, --fresh
    "#);
    // Whoever says that it is meant hears from the plugin.
    let ended = run.args("--accept-changed plugin").exits(70);
    insta::assert_snapshot!(ended.refusal(&place), @r#"
    steadfast: the guest failed in `restore` at step 5: incompatible state: the state has no section `counter` (it has `state`)
    hint: run a plugin that reads this state: the one that wrote it is kept on the volume, in the job's folder `plugins`; to begin anew, say --fresh
    "#);
    assert_eq!(place.usable("stochastic").last(), Some(&5), "and nothing is lost");
    place.run("stochastic").config(STEPS).done();
}

#[test]
fn among_a_hundred_thousand_strange_files() {
    let place = stopped_twice();
    let task = place.task("stochastic");
    let tenure = |number: u32| format!("e0001-{number:08x}");
    for number in 0..100_000_u32 {
        let name = match number % 10 {
            0..7 => format!("strange {number}"),
            7 => format!("{}.claim", tenure(number)),
            // Nearly a name of ours: a step has twelve digits.
            8 => format!("{}-{number}.ckpt", tenure(number)),
            _ => format!("{}.attempt.json.{number}", tenure(number)),
        };
        File::create(task.join(name)).unwrap();
    }
    let ended = place.run("stochastic").config(STEPS).done();
    assert_eq!(ended.resumed_from(), Some(5));
    let strange = place.names("stochastic").iter().filter(|name| name.starts_with("strange")).count();
    assert_eq!(strange, 70_000, "nothing of somebody else's is removed");
    let listed = place.command(&["checkpoint", "list"]).arg(&task).exits(0);
    assert_eq!((listed.stdout.lines().count() > 1, listed.stderr.as_str()), (true, ""));
}

#[test]
fn checkpoint_names_in_hundreds_that_are_none() {
    let place = stopped_twice();
    let task = place.task("stochastic");
    for number in 0..300_u64 {
        File::create(task.join(format!("e9000-00000000-{:012}.ckpt", number + 100))).unwrap();
    }
    let ended = place.run("stochastic").config(STEPS).end();
    assert!(ended.stderr.lines().count() < 400 + 20, "{}", ended.stderr.lines().count());
    assert_eq!(ended.expect_code(0).resumed_from(), Some(5));
    // And with no other beside them.
    let place = Place::new();
    fs::create_dir_all(place.task("stochastic")).unwrap();
    for number in 0..300_u64 {
        let name = format!("e9000-00000000-{:012}.ckpt", number + 100);
        File::create(place.task("stochastic").join(name)).unwrap();
    }
    insta::assert_snapshot!(refused(&place, &place.run("stochastic").config(STEPS), 70), @r#"
    steadfast: none of the 300 checkpoints in `[place]/volume/stochastic/task-00000-of-00001` can be used, and starting over would lose the work: e9000-[hash]-000000000399.ckpt is damaged (0 bytes are too few for a checkpoint, at byte 0); e9000-[hash]-000000000398.ckpt is damaged (0 bytes are too few for a checkpoint, at byte 0); e9000-[hash]-000000000397.ckpt is damaged (0 bytes are too few for a checkpoint, at byte 0); e9000-[hash]-000000000396.ckpt is damaged (0 bytes are too few for a checkpoint, at byte 0); e9000-[hash]-000000000395.ckpt is damaged (0 bytes are too few for a checkpoint, at byte 0); e9000-[hash]-000000000394.ckpt is damaged (0 bytes are too few for a checkpoint, at byte 0); and 294 more
    hint: repair or bring back a checkpoint file; to give the work up and begin at step 0, say --fresh
    "#);
}
