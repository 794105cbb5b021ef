//! Every engine's variables, and what is made of them.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use super::*;

type Set<'a> = &'a [(&'a str, &'a str)];

fn placed_with(set: Set<'_>, spec: &JobSpec) -> Result<Placement, PlatformError> {
    detect(&|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()), spec)
}

fn placed(set: Set<'_>) -> Placement {
    placed_with(set, &JobSpec::new("plugins/count down.wasm")).unwrap()
}

fn refused(set: Set<'_>) -> String {
    let error = placed_with(set, &JobSpec::new("countdown.wasm")).unwrap_err();
    match error.hint() {
        Some(hint) => format!("{error}\nhint: {hint}"),
        None => error.to_string(),
    }
}

fn summary(place: &Placement) -> String {
    format!(
        "{} · {} (from {}) in {} · task {} of {} · attempt {:?} · execution {:?} · {:?} ({}) · {}",
        place.engine,
        place.job.name,
        place.job.source,
        place.job.folder,
        place.task_index,
        place.task_count,
        place.attempt,
        place.execution,
        place.grace.time,
        place.grace.source,
        place.stop_signals.iter().map(|signal| signal.name()).collect::<Vec<_>>().join("+"),
    )
}

const CLOUD_RUN: [(&str, &str); 5] = [
    ("CLOUD_RUN_JOB", "train"),
    ("CLOUD_RUN_EXECUTION", "train-x7"),
    ("CLOUD_RUN_TASK_INDEX", "3"),
    ("CLOUD_RUN_TASK_COUNT", "16"),
    ("CLOUD_RUN_TASK_ATTEMPT", "2"),
];

#[test]
fn every_engine_is_recognised_by_its_variables() {
    let plain = placed_with(&[], &JobSpec::new("plugins/countdown.wasm")).unwrap();
    let kubernetes = [
        ("KUBERNETES_SERVICE_HOST", "10.0.0.1"),
        ("JOB_NAME", "train"),
        ("JOB_COMPLETION_INDEX", "1"),
        ("STEADFAST_TASK_COUNT", "4"),
    ];
    let pod = [("KUBERNETES_SERVICE_HOST", "10.0.0.1"), ("STEADFAST_JOB", "train")];
    let slurm = [
        ("SLURM_JOB_ID", "1007"),
        ("SLURM_JOB_NAME", "train"),
        ("SLURM_ARRAY_JOB_ID", "1000"),
        ("SLURM_ARRAY_TASK_ID", "7"),
        ("SLURM_ARRAY_TASK_MIN", "1"),
        ("SLURM_ARRAY_TASK_STEP", "2"),
        ("SLURM_ARRAY_TASK_COUNT", "5"),
        ("SLURM_RESTART_COUNT", "4"),
    ];
    let aws = [
        ("AWS_BATCH_JOB_ID", "c0ffee:2"),
        ("AWS_BATCH_JOB_ATTEMPT", "1"),
        ("AWS_BATCH_JOB_ARRAY_INDEX", "2"),
        ("AWS_BATCH_JOB_ARRAY_SIZE", "8"),
        ("KUBERNETES_SERVICE_HOST", "10.0.0.1"),
        ("STEADFAST_JOB", "train"),
    ];
    let nomad = [("NOMAD_JOB_NAME", "train"), ("NOMAD_ALLOC_INDEX", "0")];
    let all = [
        plain,
        placed(&CLOUD_RUN),
        placed(&kubernetes),
        placed(&pod),
        placed(&slurm),
        placed(&[("SLURM_JOB_ID", "1007"), ("SLURM_JOB_NAME", "train")]),
        placed(&aws),
        placed(&nomad),
    ];
    insta::assert_snapshot!(all.iter().map(summary).collect::<Vec<_>>().join("\n"), @r#"
    no engine detected · countdown (from the plugin's file name) in countdown · task 0 of 1 · attempt None · execution None · 10s (default) · SIGTERM
    Cloud Run · train (from CLOUD_RUN_JOB) in train · task 3 of 16 · attempt Some(2) · execution Some("train-x7") · 10s (what Cloud Run usually grants) · SIGTERM
    Kubernetes · train (from JOB_NAME) in train · task 1 of 4 · attempt None · execution None · 30s (what Kubernetes usually grants) · SIGTERM
    Kubernetes · train (from STEADFAST_JOB) in train · task 0 of 1 · attempt None · execution None · 30s (what Kubernetes usually grants) · SIGTERM
    Slurm · train (from SLURM_JOB_NAME) in train · task 3 of 5 · attempt Some(4) · execution Some("1000") · 30s (what Slurm usually grants) · SIGTERM
    Slurm · train (from SLURM_JOB_NAME) in train · task 0 of 1 · attempt Some(0) · execution Some("1007") · 30s (what Slurm usually grants) · SIGTERM
    AWS Batch · train (from STEADFAST_JOB) in train · task 2 of 8 · attempt Some(0) · execution Some("c0ffee") · 30s (what AWS Batch usually grants) · SIGTERM
    Nomad · train (from NOMAD_JOB_NAME) in train · task 0 of 1 · attempt None · execution None · 5s (what Nomad usually grants) · SIGTERM+SIGINT
    "#);
}

#[test]
fn options_win_over_variables() {
    let name = |text: &str| Some(JobName::new(text).unwrap());
    let mut spec = JobSpec::new("countdown.wasm");
    spec.run_id = name("again");
    let place = placed_with(&CLOUD_RUN, &spec).unwrap();
    assert_eq!((place.job.name.as_str(), place.job.folder.as_str()), ("train", "again"));
    spec.name = name("mine");
    spec.grace = Some(Duration::from_secs(99));
    let place = placed_with(&[("STEADFAST_JOB", "theirs"), CLOUD_RUN[0]], &spec).unwrap();
    assert_eq!((place.job.name.as_str(), place.job.source), ("mine", NameSource::Option));
    assert_eq!(place.grace, Grace { time: Duration::from_secs(99), source: GraceSource::Option });
    assert_eq!(placed(&[("STEADFAST_JOB", "theirs"), CLOUD_RUN[0]]).job.name.as_str(), "theirs");
}

#[test]
fn a_run_id_names_a_job_that_has_no_other_name() {
    let mut spec = JobSpec::new("countdown.wasm");
    spec.run_id = Some(JobName::new("again").unwrap());
    let place = placed_with(&[("AWS_BATCH_JOB_ID", "c0ffee")], &spec).unwrap();
    assert_eq!((place.job.name.as_str(), place.job.source), ("again", NameSource::RunId));
}

#[test]
fn a_variable_set_to_nothing_is_unset() {
    let place = placed_with(&[("CLOUD_RUN_JOB", ""), ("TMPDIR", "")], &JobSpec::new("a.wasm")).unwrap();
    assert_eq!((place.engine, place.temporary_folder), (Engine::None, None));
}

#[test]
fn slurm_arrays_count_from_anywhere() {
    let task = |id, more: Set<'_>| {
        let array = [("SLURM_JOB_ID", "9"), ("SLURM_JOB_NAME", "a"), ("SLURM_ARRAY_TASK_ID", id)];
        let place = placed_with(&[&array, more].concat(), &JobSpec::new("a.wasm"));
        place.map(|place| (place.task_index, place.task_count)).map_err(|error| error.to_string())
    };
    let steps = [("SLURM_ARRAY_TASK_MIN", "10"), ("SLURM_ARRAY_TASK_STEP", "5"), ("SLURM_ARRAY_TASK_COUNT", "3")];
    assert_eq!(task("10", &steps), Ok((0, 3)));
    assert_eq!(task("20", &steps), Ok((2, 3)));
    assert!(task("12", &steps).is_err());
    assert!(task("9", &steps).is_err());
    assert!(task("25", &steps).is_err());
    assert!(task("3", &[]).is_err());
    // Only some tasks of a larger array are run again.
    assert_eq!(task("20", &[&steps[..], &[("STEADFAST_TASK_COUNT", "64")]].concat()), Ok((20, 64)));
}

#[test]
fn what_makes_no_sense_is_refused_with_the_variables_name() {
    let cloud = |name: &'static str, value: &'static str| {
        let mut set = CLOUD_RUN.to_vec();
        set.retain(|(known, _)| *known != name);
        set.push((name, value));
        set
    };
    let without_count = [("JOB_NAME", "train"), ("JOB_COMPLETION_INDEX", "0")];
    let all = [
        refused(&cloud("CLOUD_RUN_TASK_INDEX", "three\n")),
        refused(&cloud("CLOUD_RUN_TASK_INDEX", "-1")),
        refused(&cloud("CLOUD_RUN_TASK_INDEX", "16")),
        refused(&cloud("CLOUD_RUN_TASK_INDEX", "")),
        refused(&cloud("CLOUD_RUN_TASK_COUNT", "0")),
        refused(&cloud("CLOUD_RUN_JOB", "no name")),
        refused(&without_count),
        refused(&[("NOMAD_JOB_NAME", "train"), ("NOMAD_ALLOC_INDEX", "1")]),
        refused(&[("AWS_BATCH_JOB_ID", "c0ffee")]),
        refused(&[("KUBERNETES_SERVICE_HOST", "10.0.0.1")]),
        refused(&[("SLURM_JOB_ID", "9"), ("SLURM_JOB_NAME", "wrap")]),
        placed_with(&[], &JobSpec::new("count down.wasm")).unwrap_err().to_string(),
    ];
    insta::assert_snapshot!(all.join("\n"), @r"
    the variable CLOUD_RUN_TASK_INDEX is `three\n`, which is no number from 0 to 4294967295
    the variable CLOUD_RUN_TASK_INDEX is `-1`, which is no number from 0 to 4294967295
    task 16 of 16 makes no sense: the variable CLOUD_RUN_TASK_INDEX is 16, and CLOUD_RUN_TASK_COUNT is 16
    Cloud Run is detected, but the variable CLOUD_RUN_TASK_INDEX is not set
    hint: without it, this task can't be told from the others
    task 3 of 0 makes no sense: the variable CLOUD_RUN_TASK_INDEX is 3, and CLOUD_RUN_TASK_COUNT is 0
    CLOUD_RUN_JOB: `no name` is no usable job name: only ASCII letters, digits, `.`, `_` and `-` are allowed
    hint: name the job with --name
    Kubernetes is detected, but the variable STEADFAST_TASK_COUNT is not set
    hint: Kubernetes doesn't tell an Indexed Job's pods how many they are: set STEADFAST_TASK_COUNT to its completions
    task 1 of 1 makes no sense: the variable NOMAD_ALLOC_INDEX is 1, and STEADFAST_TASK_COUNT is not set
    hint: set STEADFAST_TASK_COUNT to the number of tasks
    AWS Batch is detected, but nothing says what the job is called
    hint: give --name or --run-id, or set the variable STEADFAST_JOB
    Kubernetes is detected, but nothing says what the job is called
    hint: give --name or --run-id, or set STEADFAST_JOB or JOB_NAME through the downward API: metadata.labels['batch.kubernetes.io/job-name']
    Slurm is detected, but nothing says what the job is called
    hint: give --name or --run-id, or submit with --job-name
    the plugin's file name: `count down` is no usable job name: only ASCII letters, digits, `.`, `_` and `-` are allowed
    ");
}

#[test]
fn a_rehearsal_says_so() {
    assert!(placed(&[("STEADFAST_REHEARSAL", "1"), CLOUD_RUN[0]]).rehearsal);
    assert!(!placed(&[("STEADFAST_REHEARSAL", "0"), CLOUD_RUN[0]]).rehearsal);
    assert!(!placed(&CLOUD_RUN).rehearsal);
}
