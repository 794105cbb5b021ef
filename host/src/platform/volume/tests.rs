//! Which places are volumes, by tables of mounts as engines have them.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use super::*;

const CONTAINER: &str = "\
100 99 0:50 / / rw,relatime - overlay overlay rw,lowerdir=/l,upperdir=/u,workdir=/w
101 100 0:51 / /dev/shm rw - tmpfs shm rw
102 100 0:52 / /mnt/bucket rw,nosuid - fuse.gcsfuse my-bucket rw,user_id=0
103 100 8:1 /var/lib/kubelet/pods/0b/volumes/kubernetes.io~empty-dir/scratch /mnt/scratch rw - ext4 /dev/sda1 rw
104 100 0:53 / /mnt/memory rw - tmpfs tmpfs rw
105 100 0:54 /export /mnt/nfs rw - nfs4 10.0.0.2:/export rw
106 100 8:2 / /mnt/disk rw - ext4 /dev/sdb rw
107 100 0:55 / /mnt/layer rw - overlay overlay rw";

const NODE: &str = "\
22 1 8:1 / / rw - ext4 /dev/sda1 rw
23 22 0:40 / /tmp rw - tmpfs tmpfs rw
24 22 0:41 / /home rw - nfs4 server:/home rw";

fn judged(engine: Engine, table: &str, path: &str, temporary: Option<&str>) -> String {
    let mounts = Mounts::parse(table);
    let path = Path::new(path);
    fault(engine, path, mounts.holding(path), temporary.map(Path::new)).unwrap_or_else(|| "lasts".to_owned())
}

#[test]
fn in_a_container_only_a_mount_lasts() {
    let paths = [
        "/mnt/bucket",
        "/mnt/bucket/deep/down",
        "/mnt/nfs/a",
        "/mnt/disk",
        "/checkpoints",
        "/mnt",
        "/dev/shm/a",
        "/mnt/scratch/a",
        "/mnt/memory",
        "/mnt/layer",
    ];
    let all = paths.map(|path| format!("{path}: {}", judged(Engine::CloudRun, CONTAINER, path, None)));
    insta::assert_snapshot!(all.join("\n"), @r"
    /mnt/bucket: lasts
    /mnt/bucket/deep/down: lasts
    /mnt/nfs/a: lasts
    /mnt/disk: lasts
    /checkpoints: nothing is mounted there, so it lies on the container's own disk
    /mnt: nothing is mounted there, so it lies on the container's own disk
    /dev/shm/a: it lies in memory (tmpfs)
    /mnt/scratch/a: it is an emptyDir, which vanishes with its pod
    /mnt/memory: it lies in memory (tmpfs)
    /mnt/layer: it lies on a layer of the container (overlay)
    ");
    for engine in [Engine::Kubernetes, Engine::AwsBatch, Engine::Nomad] {
        for path in paths {
            let others = judged(engine, CONTAINER, path, None);
            assert_eq!(others, judged(Engine::CloudRun, CONTAINER, path, None), "{engine} {path}");
        }
    }
    assert_ne!(judged(Engine::CloudRun, "", "/mnt/bucket", None), "lasts", "an unreadable table proves nothing");
}

#[test]
fn on_a_cluster_any_disk_lasts_but_the_nodes_own() {
    let on_slurm = |path| judged(Engine::Slurm, NODE, path, Some("/scratch/1007"));
    assert_eq!(on_slurm("/home/me/checkpoints"), "lasts");
    assert_eq!(on_slurm("/data"), "lasts");
    insta::assert_snapshot!(on_slurm("/scratch/1007/checkpoints"), @"it lies below the node's $TMPDIR, /scratch/1007");
    insta::assert_snapshot!(on_slurm("/tmp/checkpoints"), @"it lies in memory (tmpfs)");
}

#[test]
fn on_a_plain_machine_everything_is_allowed() {
    for path in ["/", "/tmp/a", "/home/a"] {
        assert_eq!(judged(Engine::None, NODE, path, Some("/tmp")), "lasts");
    }
}

fn placement(set: &[(&str, &str)], spec: &JobSpec) -> Placement {
    super::super::detect(&|name| set.iter().find(|(known, _)| *known == name).map(|(_, v)| (*v).to_owned()), spec)
        .unwrap()
}

const CLOUD_RUN: [(&str, &str); 1] = [("CLOUD_RUN_JOB", "train")];
const REHEARSAL: [(&str, &str); 2] = [("CLOUD_RUN_JOB", "train"), ("STEADFAST_REHEARSAL", "1")];

#[test]
fn a_volume_has_to_be_given_where_an_engine_is_detected() {
    let spec = JobSpec::new("a.wasm");
    let chosen = |set: &[(&str, &str)], table| choose(&placement(set, &spec), &spec, &Mounts::parse(table));
    assert_eq!(chosen(&[], NODE).unwrap(), Path::new("./checkpoints"));
    assert_eq!(chosen(&REHEARSAL, NODE).unwrap(), Path::new("./checkpoints"));
    let mounted = format!("{CONTAINER}\n108 100 0:60 / /checkpoints rw - fuse.gcsfuse b rw");
    assert_eq!(chosen(&CLOUD_RUN, &mounted).unwrap(), Path::new("/checkpoints"));
    let slurm = [("SLURM_JOB_ID", "9"), ("SLURM_JOB_NAME", "train")];
    assert!(matches!(chosen(&slurm, &mounted), Err(PlatformError::NoVolume { engine: Engine::Slurm })));
    let error = chosen(&CLOUD_RUN, CONTAINER).unwrap_err();
    insta::assert_snapshot!(format!("{error}\nhint: {}", error.hint().unwrap()), @r"
    Cloud Run is detected, but no volume is given, and checkpoints on this machine's own disk would be lost with it
    hint: mount a bucket or a disk and give its path with --volume or STEADFAST_VOLUME (or mount it at /checkpoints)
    ");
}

#[test]
fn what_does_not_last_is_refused_unless_it_is_meant() {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = JobSpec::new("a.wasm");
    spec.volume = Some(folder.path().join("not there yet"));
    let overlay = Mounts::parse(CONTAINER);
    let error = check_volume(&placement(&CLOUD_RUN, &spec), &spec, &overlay).unwrap_err();
    assert!(matches!(error, PlatformError::VolumeDoesNotLast { .. }), "{error}");
    let place = check_volume(&placement(&REHEARSAL, &spec), &spec, &overlay).unwrap();
    assert_eq!((place.path.as_path(), place.filesystem.as_str()), (spec.volume.as_deref().unwrap(), "overlay"));
    assert!(place.description.contains("not there yet (overlay, "), "{}", place.description);
    assert!(!folder.path().join("not there yet").exists(), "judging creates nothing");
    spec.volume_is_ephemeral = true;
    check_volume(&placement(&CLOUD_RUN, &spec), &spec, &overlay).unwrap();
}

#[test]
fn on_a_cluster_the_folder_has_to_be_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut spec = JobSpec::new("a.wasm");
    spec.volume = Some(folder.path().join("not there"));
    let slurm = [("SLURM_JOB_ID", "9"), ("SLURM_JOB_NAME", "train")];
    let error = check_volume(&placement(&slurm, &spec), &spec, &Mounts::parse("")).unwrap_err();
    assert!(error.to_string().ends_with("cannot be used: it is not there"), "{error}");
    let rehearsed = [slurm[0], slurm[1], REHEARSAL[1]];
    check_volume(&placement(&rehearsed, &spec), &spec, &Mounts::parse("")).unwrap();
    spec.volume = Some(folder.path().to_owned());
    check_volume(&placement(&slurm, &spec), &spec, &Mounts::parse("")).unwrap();
}

#[test]
fn a_link_is_judged_by_where_it_leads() {
    let folder = tempfile::tempdir().unwrap();
    let real = folder.path().join("real").canonicalize().unwrap_or_else(|_| folder.path().join("real"));
    std::fs::create_dir(&real).unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    assert_eq!(resolve(&link.join("a/b")).unwrap(), real.canonicalize().unwrap().join("a/b"));
    std::os::unix::fs::symlink("nowhere", folder.path().join("dangling")).unwrap();
    assert!(resolve(&folder.path().join("dangling/a")).is_err());
}

#[test]
fn a_file_is_no_volume() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut spec = JobSpec::new("a.wasm");
    spec.volume = Some(file.path().to_owned());
    let error = check_volume(&placement(&[], &spec), &spec, &Mounts::parse(NODE)).unwrap_err();
    assert!(error.to_string().ends_with("cannot be used: it is no folder"), "{error}");
    spec.volume = Some(file.path().join("below"));
    assert!(matches!(
        check_volume(&placement(&[], &spec), &spec, &Mounts::parse(NODE)),
        Err(PlatformError::BadVolume { .. })
    ));
}
