//! Right: does to `/output` whatever programs do to a folder, in a pattern that depends on the step alone.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};

use serde::{Deserialize, Serialize};
use steadfast_guest::{Job, Outcome, Plugin, Result, output, plugin};
use test_guests::{append, counted, fill};

#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Config {
    steps: u64,
    /// What is appended to `large.bin` each step.
    bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { steps: 20, bytes: 10_000 }
    }
}

#[derive(Serialize, Deserialize)]
struct Outputs {
    step: u64,
    config: Config,
}

impl Plugin for Outputs {
    type Config = Config;

    fn start(_job: &Job, config: Config) -> Result<Self> {
        fs::write(output("overwritten.bin"), [0; 1024])?;
        fs::write(output("turn-0"), "renamed every step")?;
        Ok(Self { step: 0, config })
    }

    fn step(&mut self) -> Result<Outcome> {
        let step = self.step;
        append("appended.log", &format!("step {step}"))?;
        self.append_much(step)?;
        overwrite_in_place(step)?;
        shrink_and_grow(step)?;
        rename(step)?;
        folders(step)?;
        self.step += 1;
        Ok(counted(self.step, self.config.steps))
    }
}

impl Outputs {
    fn append_much(&self, step: u64) -> Result<()> {
        let mut bytes = vec![0; self.config.bytes];
        fill(&mut bytes, step);
        Ok(OpenOptions::new().create(true).append(true).open(output("large.bin"))?.write_all(&bytes)?)
    }
}

/// Neither its length nor its name ever tells that a file has changed.
fn overwrite_in_place(step: u64) -> Result<()> {
    let mut file = OpenOptions::new().write(true).open(output("overwritten.bin"))?;
    file.seek(SeekFrom::Start(step * 24 % 1000))?;
    file.write_all(&step.to_le_bytes())?;
    fs::write(output("same-length.txt"), format!("{step:020}"))?;
    Ok(())
}

/// Longer, shorter, empty, with a hole, and rewritten with what was there already.
fn shrink_and_grow(step: u64) -> Result<()> {
    let file = OpenOptions::new().create(true).truncate(false).write(true).open(output("breathes.bin"))?;
    file.set_len(step * 37 % 500)?;
    File::create(output("empty.txt"))?;
    fs::write(output("unchanged.txt"), "always the same")?;
    Ok(())
}

/// Away from a name, onto a name that exists, and a name that is not ASCII.
fn rename(step: u64) -> Result<()> {
    fs::rename(output(&format!("turn-{step}")), output(&format!("turn-{}", step + 1)))?;
    fs::write(output("latest.tmp"), format!("as of step {step}"))?;
    fs::rename(output("latest.tmp"), output("latest.txt"))?;
    fs::write(output("größe 寸法.txt"), format!("{step}"))?;
    Ok(())
}

/// Folders come and go, with something in them and without.
fn folders(step: u64) -> Result<()> {
    let nested = output(&format!("folder-{}/nested", step % 3));
    fs::create_dir_all(&nested)?;
    fs::write(nested.join(format!("file-{step}.txt")), format!("step {step}"))?;
    if let Some(old) = step.checked_sub(3) {
        fs::remove_file(nested.join(format!("file-{old}.txt")))?;
    }
    fs::create_dir(output(&format!("empty-{step}")))?;
    if let Some(old) = step.checked_sub(2) {
        fs::remove_dir(output(&format!("empty-{old}")))?;
    }
    // A file where a folder was, and the other way round.
    let changeling = output("changeling");
    if step.is_multiple_of(2) {
        let _ = fs::remove_file(&changeling);
        fs::create_dir(&changeling)?;
    } else {
        fs::remove_dir(&changeling)?;
        fs::write(&changeling, format!("{step}"))?;
    }
    Ok(())
}

plugin!(Outputs);
