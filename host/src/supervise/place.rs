//! The folder of one task on a volume, seen from outside: which checkpoints stand there, and whether they prove themselves.
//!
//! Reads through the checkpoint format alone. Nothing is written here but the damage that a rehearsal does on purpose.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rand_chacha::ChaCha8Rng;
use rand_core::Rng as _;

use super::compare::verify_checkpoint;

/// Where one task of a job keeps its checkpoints.
#[derive(Clone, Debug)]
pub struct Place {
    /// The job's folder on the volume.
    pub job: PathBuf,
    /// The task's folder in it.
    pub task: PathBuf,
}

/// The name of a checkpoint, taken apart. Ordered as candidates are: by epoch, nonce, step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CheckpointName {
    /// The epoch of its writer.
    pub epoch: u64,
    /// The nonce of its writer.
    pub nonce: String,
    /// The next step to run.
    pub step: u64,
    /// The whole name.
    pub file: String,
}

impl CheckpointName {
    /// Takes `e0004-9c1f-000000001240.ckpt` apart.
    #[must_use]
    pub fn parse(file: &str) -> Option<Self> {
        let mut parts = file.strip_suffix(".ckpt")?.strip_prefix('e')?.split('-');
        let (epoch, nonce, step, None) = (parts.next()?, parts.next()?, parts.next()?, parts.next()) else {
            return None;
        };
        let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten();
        Some(Self { epoch: number(epoch)?, nonce: nonce.to_owned(), step: number(step)?, file: file.to_owned() })
    }
}

impl Place {
    /// The place of task 0 of 1 of the job that is filed under `name`.
    #[must_use]
    pub fn new(volume: &Path, name: &str) -> Self {
        let job = volume.join(name);
        Self { task: job.join("task-00000-of-00001"), job }
    }

    /// The checkpoints under final names, oldest first.
    pub fn checkpoints(&self) -> io::Result<Vec<CheckpointName>> {
        let mut found: Vec<CheckpointName> =
            self.files()?.iter().filter_map(|name| CheckpointName::parse(name)).collect();
        found.sort();
        Ok(found)
    }

    /// Names of everything in the task's folder; nothing where there is none.
    pub fn files(&self) -> io::Result<Vec<String>> {
        let entries = match std::fs::read_dir(&self.task) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = Vec::new();
        for entry in entries {
            names.extend(entry?.file_name().into_string().ok());
        }
        names.sort();
        Ok(names)
    }
}

/// Watches one volume over a whole rehearsal: what may not prove itself, and what must.
#[derive(Debug, Default)]
pub struct Watch {
    sizes: BTreeMap<String, u64>,
    excused: BTreeSet<String>,
}

/// What one look at a volume showed.
#[derive(Clone, Debug, Default)]
pub struct Look {
    /// The step of the newest usable checkpoint.
    pub saved: Option<u64>,
    /// How many are usable.
    pub usable: usize,
    /// Bytes of those that are new since the last look.
    pub new_sizes: Vec<u64>,
    /// Those that should prove themselves and don't, and why.
    pub broken: Vec<(String, String)>,
}

impl Watch {
    /// Looks at every checkpoint that was not seen to prove itself before. With `excuse`, those that don't are forgiven: a
    /// fault that alters stored bytes was at work.
    pub fn look(&mut self, place: &Place, excuse: bool) -> io::Result<Look> {
        let mut look = Look::default();
        for checkpoint in place.checkpoints()? {
            if self.excused.contains(&checkpoint.file) {
                continue;
            }
            if !self.sizes.contains_key(&checkpoint.file) {
                let path = place.task.join(&checkpoint.file);
                match verify_checkpoint(&path) {
                    Ok(bytes) => {
                        look.new_sizes.push(bytes);
                        self.sizes.insert(checkpoint.file.clone(), bytes);
                    }
                    Err(why) => {
                        self.excused.insert(checkpoint.file.clone());
                        if !excuse {
                            look.broken.push((checkpoint.file, why));
                        }
                        continue;
                    }
                }
            }
            look.usable += 1;
            look.saved = Some(checkpoint.step);
        }
        Ok(look)
    }

    /// Damages the newest usable checkpoint, unless it is the only one, and says which it was.
    pub fn damage_newest(&mut self, place: &Place, random: &mut ChaCha8Rng) -> io::Result<Option<String>> {
        let usable: Vec<CheckpointName> =
            place.checkpoints()?.into_iter().filter(|name| self.sizes.contains_key(&name.file)).collect();
        let [.., _, newest] = usable.as_slice() else { return Ok(None) };
        damage(&place.task.join(&newest.file), random)?;
        self.sizes.remove(&newest.file);
        self.excused.insert(newest.file.clone());
        Ok(Some(newest.file.clone()))
    }
}

/// Flips one bit, or cuts the file's end off.
fn damage(path: &Path, random: &mut ChaCha8Rng) -> io::Result<()> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let len = file.metadata()?.len().max(1);
    let at = random.next_u64() % len;
    if random.next_u64().is_multiple_of(2) {
        return file.set_len(at);
    }
    let mut byte = [0];
    file.read_exact_at(&mut byte, at)?;
    file.write_all_at(&[byte[0] ^ (1 << (random.next_u64() % 8))], at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ordered_by_number() {
        let parse = |name: &str| CheckpointName::parse(name).map(|name| (name.epoch, name.nonce, name.step));
        assert_eq!(parse("e0004-9c1f-000000001240.ckpt"), Some((4, "9c1f".to_owned(), 1240)));
        assert_eq!(parse("e10000-00ab-000000000007.ckpt"), Some((10_000, "00ab".to_owned(), 7)));
        for name in ["e0004-9c1f.claim", "e0004-9c1f-0007.seg", "e0004-9c1f.stage-1", "e-9c1f-1.ckpt", "ex-9c1f-1.ckpt"]
        {
            assert_eq!(parse(name), None, "{name}");
        }
        assert!(
            CheckpointName::parse("e0010-0000-000000000001.ckpt")
                > CheckpointName::parse("e0009-ffff-000000000009.ckpt")
        );
        assert!(CheckpointName::parse("e10000-0000-1.ckpt") > CheckpointName::parse("e9999-0000-1.ckpt"));
    }
}
