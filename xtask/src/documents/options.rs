//! Every option of `steadfast` in the README, against what the program itself says in `--help`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{Block, blocks, readme};
use crate::step;

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

/// A line that is typed, if it runs the program: by itself, in the place of a shell, or as an image.
fn typed(line: &str) -> Option<Use> {
    let words: Vec<&str> = line.split(" #").next()?.split_whitespace().collect();
    let runs = |at: &usize| {
        let program = Path::new(words[*at]).file_name().is_some_and(|file| file == "steadfast");
        let before = at.checked_sub(1).map(|before| words[before]);
        program && (before.is_none_or(|word| word == "exec" || word == "srun") || words.starts_with(&["docker", "run"]))
    };
    let words = &words[(0..words.len()).find(runs)? + 1..];
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
        assert_eq!(used("sh", "docker run --rm steadfast run --seed 7\n"), ["run: --seed"]);
        assert!(used("sh", "docker build --tag steadfast .\ngcloud create steadfast --any\n").is_empty());
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
}
