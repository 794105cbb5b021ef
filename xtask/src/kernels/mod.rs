//! The PTX of every kernel in the repository: made from the CUDA C that stands beside it, and compared with it in CI.
//!
//! NVRTC makes it, which needs no GPU. Its version decides how new a driver has to be: 12.2 writes `.version 8.2`, which drivers from R535
//! on take.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{python, step};

/// The oldest architecture that everything in most kernels exists on; drivers compile PTX for all newer ones.
const ARCHITECTURE: &str = "compute_75";
/// What stands before another architecture in the first line of a source that needs a newer one.
const NAMED: &str = "// architecture: ";
/// The compiler, and the headers for half floats.
const NVRTC: [&str; 2] = ["nvidia-cuda-nvrtc-cu12==12.2.140", "nvidia-cuda-runtime-cu12==12.2.140"];

/// Makes all PTX again, in its place.
pub(crate) fn build() -> Result<()> {
    let compiler = Compiler::find()?;
    for source in sources()? {
        compiler.compile(&source, &source.with_extension("ptx"))?;
        println!("   {}", step::short(&source.with_extension("ptx")).display());
    }
    Ok(())
}

/// Fails if some PTX is not what its source gives; where the compiler cannot be had, that is noted in `skipped`.
pub(crate) fn check(skipped: &mut Vec<String>) -> Result<()> {
    let compiler = match Compiler::find() {
        Ok(compiler) => compiler,
        Err(error) => {
            skipped.push(format!("kernels against their PTX: no NVRTC: {error:#}"));
            return Ok(());
        }
    };
    let made = step::target().join("kernels.ptx");
    let sources = sources()?;
    for source in &sources {
        compiler.compile(source, &made)?;
        compare(source, &fs::read_to_string(&made)?)?;
    }
    println!("── {} kernel sources: their PTX is what NVRTC makes of them", sources.len());
    Ok(())
}

fn compare(source: &Path, made: &str) -> Result<()> {
    let ptx = source.with_extension("ptx");
    let kept = fs::read_to_string(&ptx).with_context(|| format!("cannot read `{}`", step::short(&ptx).display()))?;
    match first_difference(&kept, made) {
        None => Ok(()),
        Some(line) => bail!(
            "`{}` has drifted from its source, from line {line} on\nhint: `cargo xtask kernels` makes it again",
            step::short(&ptx).display()
        ),
    }
}

/// The first line, counted from 1, in which two texts differ.
fn first_difference(one: &str, other: &str) -> Option<usize> {
    let (mut one, mut other) = (one.split('\n'), other.split('\n'));
    for line in 1.. {
        match (one.next(), other.next()) {
            (None, None) => break,
            (a, b) if a == b => {}
            _ => return Some(line),
        }
    }
    None
}

/// Every `.cu` that git knows or would take.
fn sources() -> Result<Vec<PathBuf>> {
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.cu"];
    let listed = Command::new("git").args(arguments).current_dir(step::root()).output().context("cannot start git")?;
    if !listed.status.success() {
        bail!("git lists no files: {}", String::from_utf8_lossy(&listed.stderr).trim());
    }
    let names = String::from_utf8_lossy(&listed.stdout).into_owned();
    let mut sources: Vec<_> = names.split_terminator('\0').map(|name| step::root().join(name)).collect();
    sources.sort();
    sources.dedup();
    Ok(sources)
}

struct Compiler {
    python: PathBuf,
    script: PathBuf,
}

impl Compiler {
    fn find() -> Result<Self> {
        let python = python::environment("nvrtc", &NVRTC)?.join("python");
        Ok(Self { python, script: step::root().join("xtask/src/kernels/nvrtc.py") })
    }

    /// In a process for each: names in the PTX are numbered through a process.
    fn compile(&self, source: &Path, ptx: &Path) -> Result<()> {
        let text =
            fs::read_to_string(source).with_context(|| format!("cannot read `{}`", step::short(source).display()))?;
        step::run_quietly(Command::new(&self.python).arg(&self.script).arg(architecture(&text)).arg(source).arg(ptx))
    }
}

/// The architecture for which a source is compiled.
fn architecture(source: &str) -> &str {
    source.lines().next().and_then(|line| line.strip_prefix(NAMED)).map_or(ARCHITECTURE, str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_names_its_architecture() {
        assert_eq!(architecture("// architecture: compute_80\nint x;"), "compute_80");
        assert_eq!(architecture("int x;\n// architecture: compute_80"), ARCHITECTURE);
        assert_eq!(architecture(""), ARCHITECTURE);
    }

    #[test]
    fn the_first_line_that_differs_is_named() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n"), Some(2));
        assert_eq!(first_difference("a\nb\n", "a\n"), Some(2));
        assert_eq!(first_difference("a", "a\nb"), Some(2));
    }
}
