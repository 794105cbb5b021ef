//! What an image has to be before it runs a job.

use anyhow::{Result, ensure};

use super::container::Launch;
use super::room::{Room, ask};
use crate::rack::ledger::Ledger;

pub(super) fn check(room: &Room, image: &str, ledger: &mut Ledger) {
    let config = |what: &str| ask(&mut room.podman(["image", "inspect", "--format", what, image]));
    ledger.check("the program is the entry point, with no shell", || {
        let entry = config("{{json .Config.Entrypoint}}")?;
        ensure!(entry == r#"["/usr/local/bin/steadfast"]"#, "the entry point is {entry}");
        Ok(entry)
    });
    ledger.check("a user by number, and not root", || {
        let user = config("{{.Config.User}}")?;
        ensure!(owner(&user).is_some_and(|(user, group)| user > 0 && group > 0), "the user is `{user}`");
        Ok(user)
    });
    ledger.check("stopped by SIGTERM, and no volume of its own", || {
        let signal = config("{{.Config.StopSignal}}")?;
        ensure!(["SIGTERM", "15"].contains(&signal.as_str()), "the stop signal is `{signal}`");
        let volumes = config("{{json .Config.Volumes}}")?;
        // An engine mounts something on a volume that nobody gave, and the host could not tell that it was forgotten.
        ensure!(["null", "{}"].contains(&volumes.as_str()), "it has volumes: {volumes}");
        Ok(signal)
    });
    ledger.check("help", || {
        let ended = Launch::new(room, image).arguments(["--help"]).end()?.code(0)?;
        Ok(ended.said("Usage:")?.to_owned())
    });
    ledger.check("a job without arguments fails", || {
        Launch::new(room, image).end()?.code(2).map(|_| "exit code 2".to_owned())
    });
    ledger.check("any other user finds the plugins compiled", || {
        let other = Launch::new(room, image).option("--user", "12345:12345");
        let run = other.arguments(["run", "/plugins/countdown.wasm", "--dry-run", "--config", r#"{"steps": 1}"#]);
        let ended = run.arguments(["--volume", "/tmp/none"]).end()?.code(0)?;
        ended.compiled_nothing()?;
        Ok(ended.said("compiled before")?.trim().to_owned())
    });
    ledger.check("without a cache a plugin is compiled and runs", || without_cache(room, image));
}

fn without_cache(room: &Room, image: &str) -> Result<String> {
    let run = Launch::new(room, image).option("--env", "STEADFAST_CACHE=/nowhere");
    let run = run.arguments(["run", "/plugins/countdown.wasm", "--config", r#"{"steps": 1}"#, "--volume", "/tmp/none"]);
    let ended = run.end()?.code(0)?;
    Ok(ended.said("compiled now")?.trim().to_owned())
}

/// The numbers in `USER:GROUP`.
pub(super) fn owner(user: &str) -> Option<(u32, u32)> {
    let (user, group) = user.split_once(':')?;
    Some((user.parse().ok()?, group.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_numbers_are_numbers() {
        assert_eq!(owner("65532:65532"), Some((65532, 65532)));
        assert_eq!(owner("nobody"), None);
        assert_eq!(owner("1:users"), None);
    }
}
