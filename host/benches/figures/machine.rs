//! The facts of the machine, printed above the table.

use std::fs;
use std::process::Command;
use std::thread::available_parallelism;

use crate::places;

/// Prints a fact a line.
pub fn print() {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let cores = available_parallelism().map_or(0, std::num::NonZero::get);
    let facts = [
        ("CPU", field("/proc/cpuinfo", "model name")),
        ("cores", format!("{cores}, load {}", load.split(' ').next().unwrap_or("unknown"))),
        ("memory", field("/proc/meminfo", "MemTotal")),
        ("kernel", fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()),
        ("disk", places::filesystem()),
        ("rustc", said("rustc", &["--version"])),
        ("commit", said("git", &["describe", "--always", "--dirty", "--exclude", "*"])),
    ];
    println!();
    for (name, fact) in facts {
        println!("{name:<8}{fact}");
    }
}

fn field(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix(':'));
    line.map_or_else(|| "unknown".to_owned(), |value| value.trim().to_owned())
}

fn said(program: &str, arguments: &[&str]) -> String {
    let said = Command::new(program).args(arguments).current_dir(places::repository()).output();
    said.map_or_else(|_| "unknown".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
