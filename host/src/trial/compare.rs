//! What two plugins made of the same checkpoint, side by side.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::time::Duration;

use super::Played;
use crate::plugin::Step;

/// Differing outputs beyond so many are only counted.
const SHOWN: usize = 4;

/// How the new plugin's work compares with the old one's.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// One thing that was compared each.
    pub aspects: Vec<Aspect>,
    /// A usual step of the new one and of the old one.
    pub step_times: (Duration, Duration),
}

/// One thing that was compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aspect {
    /// What.
    pub what: &'static str,
    /// Whether both are the same, bit for bit.
    pub equal: bool,
    /// For people.
    pub text: String,
}

impl Comparison {
    /// What differs.
    #[must_use]
    pub fn differing(&self) -> Vec<&'static str> {
        self.aspects.iter().filter(|aspect| !aspect.equal).map(|aspect| aspect.what).collect()
    }
}

pub(super) fn compare(new: &Played, old: &Played) -> io::Result<Comparison> {
    let aspects = vec![progress(new, old), outputs(new, old)?, metrics(new, old), state(new, old), random(new, old)];
    Ok(Comparison { aspects, step_times: (new.usual_step(), old.usual_step()) })
}

fn progress(new: &Played, old: &Played) -> Aspect {
    let steps = |played: &Played| played.steps.iter().map(|(_, step)| step.clone()).collect::<Vec<_>>();
    let last = |played: &Played| played.steps.last().map_or("no step".to_owned(), |(_, step)| said(step));
    let equal = steps(new) == steps(old);
    let text = if equal { last(new) } else { format!("{}; the old one: {}", last(new), last(old)) };
    Aspect { what: "progress", equal, text }
}

/// How far a step said that the task is.
fn said(step: &Step) -> String {
    match step {
        Step::More { done, total: Some(total) } => format!("{done} of {total}"),
        Step::More { done, total: None } => done.to_string(),
        Step::Done(line) => format!("done, `{line}`"),
    }
}

fn outputs(new: &Played, old: &Played) -> io::Result<Aspect> {
    let (here, there) = (new.scratch.output(), old.scratch.output());
    let mut paths = BTreeSet::new();
    list(&here, "", &mut paths)?;
    list(&there, "", &mut paths)?;
    let mut differing = Vec::new();
    for path in &paths {
        differing.extend(difference(&here.join(path), &there.join(path))?.map(|how| format!("{path} {how}")));
    }
    let files = paths.len();
    let more = differing.len().saturating_sub(SHOWN);
    let equal = differing.is_empty();
    differing.truncate(SHOWN);
    let mut text = if equal { format!("{files} of them") } else { differing.join("; ") };
    if more > 0 {
        text.push_str(&format!("; and {more} more"));
    }
    Ok(Aspect { what: "outputs", equal, text })
}

fn list(folder: &Path, below: &str, paths: &mut BTreeSet<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = format!("{below}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            list(&entry.path(), &format!("{path}/"), paths)?;
        }
        paths.insert(path);
    }
    Ok(())
}

/// How two files or folders differ. Links are not followed: they may lead out, and are not kept by a run either.
fn difference(here: &Path, there: &Path) -> io::Result<Option<String>> {
    let about = |path: &Path| fs::symlink_metadata(path).ok();
    let differs = match (about(here), about(there)) {
        (Some(_), None) => Some("is new".to_owned()),
        (None, Some(_)) => Some("is missing".to_owned()),
        (Some(a), Some(b)) if a.is_file() && b.is_file() => first_difference(here, there)?
            .map(|at| format!("differs from byte {at} on ({} bytes, the old one's {})", a.len(), b.len())),
        (Some(a), Some(b)) if a.file_type() != b.file_type() => Some("is of another kind".to_owned()),
        _ => None,
    };
    Ok(differs)
}

fn first_difference(here: &Path, there: &Path) -> io::Result<Option<u64>> {
    let (mut here, mut there) = (BufReader::new(File::open(here)?).bytes(), BufReader::new(File::open(there)?).bytes());
    for at in 0.. {
        match (here.next().transpose()?, there.next().transpose()?) {
            (None, None) => break,
            (a, b) if a != b => return Ok(Some(at)),
            _ => {}
        }
    }
    Ok(None)
}

fn metrics(new: &Played, old: &Played) -> Aspect {
    let bits = |played: &Played| -> Vec<_> {
        played.metrics.iter().map(|(step, name, value)| (*step, name.clone(), value.to_bits())).collect()
    };
    let (here, there) = (bits(new), bits(old));
    let equal = here == there;
    let first = here.iter().zip(&there).position(|(a, b)| a != b).unwrap_or(here.len().min(there.len()));
    let shown = |played: &Played| match played.metrics.get(first) {
        Some((step, name, value)) => format!("{name} = {value} at step {step}"),
        None => "no more".to_owned(),
    };
    let text = match equal {
        true => format!("{} of them", here.len()),
        false => format!("first {}; the old one: {}", shown(new), shown(old)),
    };
    Aspect { what: "metrics", equal, text }
}

fn state(new: &Played, old: &Played) -> Aspect {
    let equal = new.state == old.state;
    let say = |played: &Played| format!("{} bytes of version {}", played.state_bytes(), played.state.version);
    let text = match equal {
        true => say(new),
        false if say(new) == say(old) => format!("{}, as the old one's, with another content", say(new)),
        false => format!("{}; the old one's: {}", say(new), say(old)),
    };
    Aspect { what: "state", equal, text }
}

fn random(new: &Played, old: &Played) -> Aspect {
    let equal = new.random == old.random;
    let text = if equal { "as many bytes were drawn" } else { "more or fewer bytes were drawn than by the old one" };
    Aspect { what: "random", equal, text: text.to_owned() }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    #[test]
    fn outputs_differ_by_presence_kind_and_first_byte() {
        let place = tempfile::tempdir().unwrap();
        let (here, there) = (place.path().join("here"), place.path().join("there"));
        let file = |path: &Path, text: &str| fs::write(path, text).unwrap();
        for side in [&here, &there] {
            fs::create_dir_all(side.join("folder")).unwrap();
            file(&side.join("folder/same"), "same");
            // It leads nowhere, and is not followed.
            std::os::unix::fs::symlink("nowhere", side.join("link")).unwrap();
        }
        file(&here.join("longer"), "abcd");
        file(&there.join("longer"), "ab");
        file(&here.join("new"), "");
        file(&there.join("missing"), "");
        file(&here.join("kind"), "");
        fs::create_dir(there.join("kind")).unwrap();

        let mut paths = BTreeSet::new();
        list(&here, "", &mut paths).unwrap();
        list(&there, "", &mut paths).unwrap();
        let say =
            |path: &String| difference(&here.join(path), &there.join(path)).unwrap().map(|how| format!("{path} {how}"));
        let said: Vec<_> = paths.iter().filter_map(say).collect();
        let expected = [
            "kind is of another kind",
            "longer differs from byte 2 on (4 bytes, the old one's 2)",
            "missing is missing",
            "new is new",
        ];
        assert_eq!(said, expected);
        assert_eq!(paths.len(), 7);
    }
}
