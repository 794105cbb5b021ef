//! The folder of one task on a volume, seen from outside: which checkpoints stand there, and whether they prove themselves.
//!
//! Reads through the checkpoint format alone. Nothing is written here but the damage that a rehearsal does on purpose.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rand_chacha::ChaCha8Rng;
use rand_core::Rng as _;

use crate::checkpoint::browse;
use crate::checkpoint::names::{FileName, TaskFolder, Tenure};

/// Where one task of a job keeps its checkpoints.
#[derive(Clone, Debug)]
pub struct Place {
    /// The job's folder on the volume.
    pub job: PathBuf,
    /// The task's folder in it.
    pub task: PathBuf,
}

/// A checkpoint under its final name. Ordered as candidates are: by epoch, nonce, step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Standing {
    /// Who wrote it.
    pub tenure: Tenure,
    /// The next step to run.
    pub step: u64,
}

impl Standing {
    /// Its file's name.
    #[must_use]
    pub fn file(&self) -> String {
        FileName::Checkpoint(self.tenure, self.step).to_string()
    }
}

impl Place {
    /// The place of task 0 of 1 of the job that is filed under `name`.
    #[must_use]
    pub fn new(volume: &Path, name: &str) -> Self {
        let job = volume.join(name);
        Self { task: job.join(TaskFolder { index: 0, count: 1 }.to_string()), job }
    }

    /// The checkpoints under final names, oldest first; nothing where there is no folder.
    pub fn checkpoints(&self) -> io::Result<Vec<Standing>> {
        let entries = match std::fs::read_dir(&self.task) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            if let Some(FileName::Checkpoint(tenure, step)) = name.to_str().and_then(FileName::parse) {
                found.push(Standing { tenure, step });
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    /// Whether the task is done: nothing goes on from a checkpoint any more.
    pub fn is_done(&self) -> io::Result<bool> {
        let entries = match std::fs::read_dir(&self.task) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            entries => entries?,
        };
        for entry in entries {
            if let Some(FileName::Done(_)) = entry?.file_name().to_str().and_then(FileName::parse) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Watches one volume over a whole rehearsal: what may not prove itself, and what must.
#[derive(Debug, Default)]
pub struct Watch {
    proven: BTreeSet<String>,
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
            let file = checkpoint.file();
            if self.excused.contains(&file) {
                continue;
            }
            if !self.proven.contains(&file) {
                let path = place.task.join(&file);
                if let Err(why) = browse::verify(&path) {
                    self.excused.insert(file.clone());
                    if !excuse {
                        look.broken.push((file, why.to_string()));
                    }
                    continue;
                }
                look.new_sizes.push(std::fs::metadata(&path)?.len());
                self.proven.insert(file);
            }
            look.usable += 1;
            look.saved = Some(checkpoint.step);
        }
        Ok(look)
    }

    /// Damages the newest usable checkpoint, and says which it was. Not the only one, and none of a task that is done: nothing
    /// would go on from it, and the comparison would find it damaged.
    pub fn damage_newest(&mut self, place: &Place, random: &mut ChaCha8Rng) -> io::Result<Option<String>> {
        if place.is_done()? {
            return Ok(None);
        }
        let standing = place.checkpoints()?.into_iter().map(|checkpoint| checkpoint.file());
        let usable: Vec<String> = standing.filter(|file| self.proven.contains(file)).collect();
        let [.., _, newest] = usable.as_slice() else { return Ok(None) };
        damage(&place.task.join(newest), random)?;
        self.proven.remove(newest);
        self.excused.insert(newest.clone());
        Ok(Some(newest.clone()))
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
    #![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
    use rand_core::SeedableRng as _;

    use super::*;

    #[test]
    fn checkpoints_are_ordered_by_number_and_the_only_usable_one_is_spared() {
        let volume = tempfile::tempdir().unwrap();
        let place = Place::new(volume.path(), "job");
        assert_eq!(place.checkpoints().unwrap(), []);
        std::fs::create_dir_all(&place.task).unwrap();
        let names = ["e10000-00000001-000000000007.ckpt", "e9999-00000001-000000009999.ckpt"];
        for name in names.iter().chain(&["e9999-00000001.claim", "e9999-00000001-000001.seg", "other"]) {
            std::fs::write(place.task.join(name), "0123456789").unwrap();
        }
        let steps: Vec<u64> = place.checkpoints().unwrap().iter().map(|checkpoint| checkpoint.step).collect();
        assert_eq!(steps, [9999, 7]);

        let mut watch = Watch::default();
        let look = watch.look(&place, false).unwrap();
        assert_eq!((look.broken.len(), look.usable, look.saved), (2, 0, None), "they hold no checkpoint at all");
        watch.proven.extend(names.map(str::to_owned));
        let random = &mut ChaCha8Rng::seed_from_u64(1);
        let done = place.task.join("e10000-00000001.done.json");
        std::fs::write(&done, "").unwrap();
        assert_eq!(watch.damage_newest(&place, random).unwrap(), None, "nothing goes on from it");
        std::fs::remove_file(done).unwrap();
        assert_eq!(watch.damage_newest(&place, random).unwrap().as_deref(), Some(names[0]));
        assert_ne!(std::fs::read(place.task.join(names[0])).unwrap(), b"0123456789");
        assert_eq!(watch.damage_newest(&place, random).unwrap(), None);
    }
}
