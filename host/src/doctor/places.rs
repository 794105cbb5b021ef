//! Where a run would write: the volume, scratch space, the folder of compiled code.

use std::path::Path;

use super::Check;
use crate::checkpoint::outputs::may_write;
use crate::compiled::{default_cache_folder, may_be_trusted};
use crate::job::spec::JobSpec;
use crate::platform::{Environment, Mounts, check_volume, detect};

pub(super) fn checks(spec: &JobSpec, environment: Environment<'_>) -> Vec<Check> {
    let (engine, placement) = match detect(environment, spec) {
        Ok(placement) => (Check::fine("engine", placement.engine.to_string()), Some(placement)),
        Err(error) => {
            (Check::missing("engine", error.to_string(), error.hint().unwrap_or("correct the variable")), None)
        }
    };
    let volume = placement.map(|placement| {
        let place = Mounts::of_process().and_then(|mounts| check_volume(&placement, spec, &mounts));
        match place {
            Ok(place) => writable("volume", &place.path, place.description),
            Err(error) => Check::missing(
                "volume",
                error.to_string(),
                error.hint().unwrap_or("give the folder that outlives an attempt, with --volume"),
            ),
        }
    });
    let scratch = spec.scratch.clone().unwrap_or_else(std::env::temp_dir);
    let scratch = writable("scratch", &scratch, format!("{}{}", scratch.display(), kind(&scratch)));
    [Some(engine), volume, Some(scratch), Some(cache(environment))].into_iter().flatten().collect()
}

fn writable(what: &'static str, path: &Path, found: String) -> Check {
    match may_write(path) {
        Ok(()) if path.exists() => Check::fine(what, found),
        Ok(()) => Check::fine(what, format!("{found} · not there yet: the first run makes it")),
        Err(error) => Check::missing(
            what,
            format!("{found}: cannot be written to: {error}"),
            "let this user write there, or name another folder",
        ),
    }
}

/// What a folder lies on, if that is known.
fn kind(path: &Path) -> String {
    let mounts = Mounts::of_process().ok();
    let mount = mounts.as_ref().and_then(|mounts| mounts.holding(path));
    match mount.map(|mount| mount.filesystem.as_str()) {
        Some(memory @ ("tmpfs" | "ramfs")) => format!(" ({memory}: a plugin's outputs will take memory)"),
        Some(other) => format!(" ({other})"),
        None => String::new(),
    }
}

/// Never needed: without one, every attempt compiles.
fn cache(environment: Environment<'_>) -> Check {
    const WHAT: &str = "compiled code";
    let Some(folder) = default_cache_folder(environment) else {
        let advice = "every attempt compiles its plugin and kernels; set HOME or STEADFAST_CACHE to keep them";
        return Check::note(WHAT, "kept nowhere", advice);
    };
    let shown = folder.display().to_string();
    match may_write(&folder) {
        Err(error) => Check::note(
            WHAT,
            format!("{shown}: cannot be written to: {error}"),
            "what it lacks is compiled in every attempt; name another folder with STEADFAST_CACHE",
        ),
        Ok(()) if folder.exists() && !may_be_trusted(&folder) => Check::note(
            WHAT,
            format!("{shown}: others may write to it, so it is not used"),
            format!("take their right away: chmod go-w {shown}"),
        ),
        Ok(()) => Check::fine(WHAT, format!("kept in {shown}")),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]

    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::super::State;
    use super::*;

    fn state(checks: &[Check], what: &str) -> (State, String) {
        let check = checks.iter().find(|check| check.what == what).unwrap();
        (check.state, check.found.clone())
    }

    #[test]
    fn places_are_looked_at_as_a_run_would() {
        let place = tempfile::tempdir().unwrap();
        let shared = place.path().join("shared");
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
        let file = place.path().join("file");
        fs::write(&file, "").unwrap();
        let spec = JobSpec {
            volume: Some(place.path().join("new")),
            scratch: Some(file.join("x")),
            ..JobSpec::new("job.wasm")
        };
        let cache = shared.to_str().unwrap().to_owned();
        let found = checks(&spec, &|name| (name == "STEADFAST_CACHE").then(|| cache.clone()));
        let volume = state(&found, "volume");
        assert!(volume.0 == State::Fine && volume.1.ends_with("not there yet: the first run makes it"), "{found:?}");
        assert_eq!(state(&found, "scratch").0, State::Missing, "{found:?}");
        assert!(state(&found, "compiled code").1.ends_with("others may write to it, so it is not used"), "{found:?}");
        assert!(!place.path().join("new").exists(), "nothing is made");

        let nowhere = checks(&spec, &|_| None);
        assert_eq!(state(&nowhere, "compiled code"), (State::Note, "kept nowhere".to_owned()));
        let forgotten = JobSpec { volume: None, ..spec };
        let engine = [
            ("CLOUD_RUN_JOB", "j"),
            ("CLOUD_RUN_TASK_INDEX", "0"),
            ("CLOUD_RUN_TASK_COUNT", "1"),
            ("CLOUD_RUN_TASK_ATTEMPT", "0"),
        ];
        let on_cloud_run =
            |name: &str| engine.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        assert_eq!(state(&checks(&forgotten, &on_cloud_run), "volume").0, State::Missing);
    }
}
