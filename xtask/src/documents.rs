//! What the README says is checked: its scripts by shellcheck, its manifests against the schema of Kubernetes, its job files by a
//! parser of TOML, and every option of `steadfast` in it against what the program itself says in `--help`.
//!
//! The scripts for Slurm are run for real by `cargo xtask rack slurm`, which takes them from here.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::{packages, step};

/// A fenced block of a document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Line of its first line of text, from 1.
    pub(crate) line: usize,
    /// What stands behind the fence.
    pub(crate) language: String,
    /// What is in it.
    pub(crate) text: String,
}

/// The README's text.
pub(crate) fn readme() -> Result<String> {
    fs::read_to_string(step::root().join("README.md")).context("cannot read README.md")
}

/// The fenced blocks of a document, in their order.
pub(crate) fn blocks(document: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in document.lines().enumerate() {
        match (line.strip_prefix("```"), open.take()) {
            (Some(_), Some(block)) => blocks.push(block),
            (Some(language), None) => {
                open = Some(Block { line: index + 2, language: language.trim().to_owned(), text: String::new() });
            }
            (None, Some(mut block)) => {
                block.text.push_str(line);
                block.text.push('\n');
                open = Some(block);
            }
            (None, None) => {}
        }
    }
    blocks
}

/// Every check that needs no host.
pub(crate) fn run(skipped: &mut Vec<String>) -> Result<()> {
    let readme = readme()?;
    let blocks = blocks(&readme);
    let of = |languages: &[&str]| -> Vec<&Block> {
        blocks.iter().filter(|block| languages.contains(&block.language.as_str())).collect()
    };
    job_files(&of(&["toml"]))?;
    scripts(&of(&["sh", "bash"]), skipped)?;
    manifests(&of(&["yaml"]), skipped)
}

fn job_files(blocks: &[&Block]) -> Result<()> {
    for block in blocks {
        if let Err(error) = block.text.parse::<toml::Table>() {
            bail!("README.md, block at line {}: {error}", block.line);
        }
    }
    Ok(())
}

fn scripts(blocks: &[&Block], skipped: &mut Vec<String>) -> Result<()> {
    if let Err(missing) = packages::ensure(&["shellcheck"], &["shellcheck"]) {
        skipped.push(format!("scripts in README.md: {missing}"));
        return Ok(());
    }
    for block in blocks {
        let mut check = Command::new("shellcheck");
        check.arg(format!("--shell={}", block.language)).arg("-");
        let said = fed(&mut check, &block.text)?;
        if let Err(said) = said {
            bail!("README.md, script at line {} (its lines are counted from there):\n{said}", block.line);
        }
    }
    println!("── {} scripts in README.md: shellcheck has nothing against them", blocks.len());
    Ok(())
}

/// Runs a command on a text: what it says is an error unless it exits 0.
fn fed(command: &mut Command, text: &str) -> Result<Result<(), String>> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot start {}", step::text(command)))?;
    if let Some(mut input) = child.stdin.take() {
        // One that does not read to the end says why by its exit code.
        let _ = input.write_all(text.as_bytes());
    }
    let output = child.wait_with_output()?;
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    Ok(if output.status.success() { Ok(()) } else { Err(said) })
}

/// The validator with the schemas of every version of Kubernetes in it, so that nothing is fetched when it runs.
const VALIDATOR: &str = "kubernetes-validate==1.37.0";

fn manifests(blocks: &[&Block], skipped: &mut Vec<String>) -> Result<()> {
    let validator = match validator() {
        Ok(validator) => validator,
        Err(error) => {
            skipped.push(format!("manifests in README.md: no kubernetes-validate: {error:#}"));
            return Ok(());
        }
    };
    for block in blocks {
        if let Err(said) = validate(&validator, &block.text)? {
            bail!("README.md, manifest at line {}:\n{said}", block.line);
        }
        // A validator that takes anything would be no check.
        let Some(misspelt) = misspell(&block.text) else {
            bail!("README.md, manifest at line {}: it has no field `spec`", block.line);
        };
        if validate(&validator, &misspelt)?.is_ok() {
            bail!("kubernetes-validate lets a misspelt field pass, so it proves nothing:\n{misspelt}");
        }
    }
    println!("── {} manifests in README.md: as Kubernetes has them, and refused with a misspelt field", blocks.len());
    Ok(())
}

/// The manifest with a field too many in its `spec`.
fn misspell(manifest: &str) -> Option<String> {
    manifest.contains("\nspec:\n").then(|| manifest.replacen("\nspec:\n", "\nspec:\n  backoffLimits: 1\n", 1))
}

fn validate(validator: &Path, manifest: &str) -> Result<Result<(), String>> {
    // It reads files only, and what is fed to it is one.
    fed(Command::new(validator).args(["--strict", "--no-warn", "/dev/stdin"]), manifest)
}

/// Where the validator is, installed if it is not.
fn validator() -> Result<PathBuf> {
    let folder = step::target().join("kubernetes-validate");
    let program = folder.join("bin/kubernetes-validate");
    let stamp = folder.join("version");
    if program.is_file() && fs::read_to_string(&stamp).is_ok_and(|version| version == VALIDATOR) {
        return Ok(program);
    }
    // Debian's Python makes no environments without a package that brings no program: where pip is missing, so is that.
    packages::ensure(&["python3", "pip3"], &["python3", "python3-pip", "python3-venv"])?;
    let mut environment = Command::new("python3");
    step::run("environment for Python", environment.args(["-m", "venv", "--clear"]).arg(&folder))?;
    let mut install = Command::new(folder.join("bin/pip"));
    install.args(["--quiet", "--disable-pip-version-check", "install", VALIDATOR]);
    step::run("kubernetes-validate", &mut install)?;
    fs::write(&stamp, VALIDATOR)?;
    Ok(program)
}

/// Checks that every option in the README's blocks is one of the program, by its own `--help`.
pub(crate) fn options(host: &Path) -> Result<()> {
    let readme = readme()?;
    let mut known = BTreeMap::new();
    let mut used = 0;
    for block in &blocks(&readme) {
        for Use { command, options } in uses(block) {
            if !known.contains_key(&command) {
                known.insert(command.clone(), help(host, &command)?);
            }
            let help = known.get(&command).map_or("", String::as_str);
            for option in options {
                used += 1;
                if !names(help, &option) {
                    let command = command.join(" ");
                    bail!("README.md, block at line {}: `steadfast {command}` has no option {option}", block.line);
                }
            }
        }
    }
    println!("── {used} options in README.md: the program knows them");
    Ok(())
}

/// One use of the program.
#[derive(Debug, PartialEq, Eq)]
struct Use {
    /// `run`, or `checkpoint list`.
    command: Vec<String>,
    /// `--every`, …
    options: Vec<String>,
}

fn uses(block: &Block) -> Vec<Use> {
    match block.language.as_str() {
        "sh" | "bash" => block.text.replace("\\\n", " ").lines().filter_map(typed).collect(),
        // In a manifest the arguments stand in quotes, behind the image's own program.
        "yaml" => {
            let quoted = block.text.split('"').filter(|word| word.starts_with("--") && !word.contains(' '));
            vec![Use { command: vec!["run".to_owned()], options: quoted.map(name).collect() }]
        }
        "toml" => job_options(&block.text),
        _ => Vec::new(),
    }
}

/// A line that is typed, if it runs the program.
fn typed(line: &str) -> Option<Use> {
    let mut words = line.split(" #").next()?.split_whitespace().skip_while(|word| {
        // Not the word in a comment or a path below it.
        Path::new(word).file_name().is_none_or(|file| file != "steadfast")
    });
    words.next()?;
    let words: Vec<&str> = words.collect();
    let groups = ["checkpoint", "output", "plugin"];
    let depth = if words.first().is_some_and(|word| groups.contains(word)) { 2 } else { 1 };
    let command = words.iter().take(depth).map(|word| (*word).to_owned()).collect();
    let options = words.iter().filter(|word| word.starts_with("--")).map(|word| name(word)).collect();
    Some(Use { command, options })
}

/// The keys of a job's file, which are options of `run`; other files in TOML have none.
fn job_options(text: &str) -> Vec<Use> {
    let Ok(table) = text.parse::<toml::Table>() else { return Vec::new() };
    if !table.get("plugin").is_some_and(toml::Value::is_str) {
        return Vec::new();
    }
    let options = table.keys().filter(|key| *key != "plugin").map(|key| format!("--{key}"));
    vec![Use { command: vec!["run".to_owned()], options: options.collect() }]
}

/// `--every` of `--every=5m`.
fn name(option: &str) -> String {
    option.split('=').next().unwrap_or(option).to_owned()
}

fn help(host: &Path, command: &[String]) -> Result<String> {
    let mut help = Command::new(host);
    help.args(command).arg("--help");
    let output = help.output().with_context(|| format!("cannot start {}", step::text(&help)))?;
    if !output.status.success() {
        bail!("README.md uses `steadfast {}`, which is no command of it", command.join(" "));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether a help text has an option as a whole word.
fn names(help: &str, option: &str) -> bool {
    help.split(|c: char| !c.is_ascii_alphanumeric() && c != '-').any(|word| word == option)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str =
        "text\n```sh\nsteadfast run a.wasm \\\n  --every=5m\n```\n\n```\nplain\n```\n```toml\nx = 1\n```\n";

    #[test]
    fn blocks_are_found_with_their_lines() {
        let blocks = blocks(DOCUMENT);
        let of = |index: usize| blocks.get(index).map(|block| (block.line, block.language.as_str(), &*block.text));
        assert_eq!(of(0), Some((3, "sh", "steadfast run a.wasm \\\n  --every=5m\n")));
        assert_eq!(of(1), Some((8, "", "plain\n")));
        assert_eq!(of(2), Some((11, "toml", "x = 1\n")));
        assert_eq!(blocks.len(), 3);
    }

    fn used(language: &str, text: &str) -> Vec<String> {
        let block = Block { line: 1, language: language.to_owned(), text: text.to_owned() };
        let say = |used: Use| format!("{}: {}", used.command.join(" "), used.options.join(" "));
        uses(&block).into_iter().map(say).collect()
    }

    #[test]
    fn options_belong_to_their_command() {
        let line = "target/release/steadfast run \\\n a.wasm --config '{}' --every=5m # not --this\n";
        assert_eq!(used("sh", line), ["run: --config --every"]);
        assert_eq!(used("bash", "exec steadfast checkpoint list --json x\n"), ["checkpoint list: --json"]);
        assert!(used("sh", "cargo xtask --nothing # steadfast run --any\nls host/steadfast.rs --all\n").is_empty());
        assert_eq!(used("yaml", "args: [\"run\", \"--volume=/v\", \"-- not one\"]\n"), ["run: --volume"]);
        assert_eq!(used("toml", "plugin = \"a\"\nevery = \"5m\"\n[config]\nx = 1\n"), ["run: --config --every"]);
        assert!(used("toml", "[package]\nname = \"a\"\n").is_empty());
    }

    #[test]
    fn an_option_is_known_by_its_whole_name() {
        let help = "      --max-stalled <COUNT>  after --this, [default: 3]";
        assert!(names(help, "--max-stalled") && names(help, "--this"));
        assert!(!names(help, "--max") && !names(help, "--stalled"));
    }

    #[test]
    fn a_misspelt_manifest_differs_in_its_specification_only() {
        let misspelt = misspell("kind: Job\nspec:\n  a: 1\n");
        assert_eq!(misspelt.as_deref(), Some("kind: Job\nspec:\n  backoffLimits: 1\n  a: 1\n"));
        assert_eq!(misspell("kind: Job\n"), None);
    }

    #[test]
    fn what_shellcheck_says_is_an_error() {
        let fails = fed(Command::new("sh").args(["-c", "cat; echo bad >&2; exit 1"]), "text\n");
        assert!(fails.is_ok_and(|said| said == Err("text\nbad\n".to_owned())));
        assert!(fed(&mut Command::new("true"), "text\n").is_ok_and(|said| said.is_ok()));
    }
}
