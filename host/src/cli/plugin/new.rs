//! `steadfast plugin new`: the folder that a plugin begins with.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{Args, ValueEnum};

use super::super::failure::Failure;
use super::super::print;
use super::super::values::Place;

/// Make the folder of a new plugin: one that builds, passes its test and runs
#[derive(Args, Clone, Debug)]
#[command(after_help = ABOUT, after_long_help = ABOUT)]
pub(super) struct NewCommand {
    /// Its name, and that of the folder, which is made here
    name: CrateName,

    /// What it is written in
    #[arg(long, value_enum, default_value = "rust")]
    lang: Language,

    /// The folder `guest-sdk` of a checkout of Steadfast [default: ../steadfast/guest-sdk, seen from the new folder]
    #[arg(long, value_name = "DIR")]
    sdk: Option<Place>,
}

const ABOUT: &str = "\
Makes Cargo.toml, src/lib.rs with a job in steps and its test, .cargo/config.toml, .gitignore and README.md.

Example:
  steadfast plugin new walk --sdk ~/steadfast/guest-sdk
  cd walk
  cargo test
  cargo build --release --target wasm32-wasip2
  steadfast run target/wasm32-wasip2/release/walk.wasm --config '{\"steps\": 1000}'

The crate steadfast-guest is not published: it comes from a checkout.";

/// What a plugin can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Language {
    /// With the crate steadfast-guest
    Rust,
}

/// A name that cargo takes for a package, and rustc for a crate.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CrateName(String);

/// Names that cargo refuses beside keywords, or that would hide a crate which the plugin needs.
const TAKEN: [&str; 9] =
    ["test", "core", "std", "alloc", "proc-macro", "proc_macro", "serde", "steadfast-guest", "steadfast_guest"];

/// What may not be the name of a crate.
const KEYWORDS: [&str; 53] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn", "else",
    "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro", "match", "mod",
    "move", "mut", "override", "priv", "pub", "ref", "return", "self", "Self", "static", "struct", "super", "trait",
    "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield", "_",
];

impl FromStr for CrateName {
    type Err = &'static str;

    fn from_str(given: &str) -> Result<Self, &'static str> {
        let usual = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        match given {
            "" => Err("it is empty"),
            _ if given.len() > 64 => Err("it is longer than 64 characters"),
            _ if !given.chars().all(usual) => Err("a crate's name has letters, digits, `-` and `_` alone"),
            _ if !given.starts_with(|c: char| c.is_ascii_alphabetic()) => Err("a crate's name begins with a letter"),
            _ if KEYWORDS.contains(&given) => Err("it is a keyword of Rust"),
            _ if TAKEN.contains(&given) => Err("another crate has that name"),
            _ => Ok(Self(given.to_owned())),
        }
    }
}

pub(super) fn execute(command: &NewCommand) -> Result<u8, Failure> {
    let Language::Rust = command.lang;
    let name = &command.name.0;
    let sdk = command.sdk.as_ref().map(|place| checked_sdk(&place.0)).transpose()?;
    let folder = Path::new(name);
    if let Err(error) = fs::create_dir(folder) {
        return Err(match error.kind() {
            io::ErrorKind::AlreadyExists => Failure::usage(format!("there is something called `{name}` already"))
                .hint("give another name, or move it away; nothing was changed"),
            _ => cannot_make(folder, &error),
        });
    }
    for (path, content) in files(name, sdk.as_deref()) {
        let path = folder.join(path);
        let made = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, content));
        made.map_err(|error| cannot_make(&path, &error))?;
    }
    print::text(&next_steps(name, sdk.is_none()))?;
    Ok(0)
}

fn files(name: &str, sdk: Option<&Path>) -> [(&'static str, String); 5] {
    let filled = |template: &str| template.replace("{name}", name).replace("{file}", &name.replace('-', "_"));
    [
        ("Cargo.toml", filled(include_str!("templates/manifest.toml")).replace("{sdk}", &dependency(sdk))),
        ("src/lib.rs", include_str!("templates/lib.rs").to_owned()),
        (".cargo/config.toml", include_str!("templates/config.toml").to_owned()),
        (".gitignore", include_str!("templates/gitignore").to_owned()),
        ("README.md", filled(include_str!("templates/README.md"))),
    ]
}

fn dependency(sdk: Option<&Path>) -> String {
    match sdk {
        Some(sdk) => {
            let path = toml::Value::from(sdk.to_string_lossy().into_owned());
            format!("steadfast-guest = {{ path = {path} }}")
        }
        None => "# Not published: this is the folder `guest-sdk` of a checkout of Steadfast. Let it point to yours.\n\
                 steadfast-guest = { path = \"../steadfast/guest-sdk\" }"
            .to_owned(),
    }
}

/// The absolute path of a folder that holds the SDK.
fn checked_sdk(given: &Path) -> Result<PathBuf, Failure> {
    let manifest = fs::read_to_string(given.join("Cargo.toml")).unwrap_or_default();
    let path = given.canonicalize().ok().filter(|path| path.to_str().is_some());
    let names_it = manifest.lines().any(|line| line.trim() == "name = \"steadfast-guest\"");
    path.filter(|_| names_it).ok_or_else(|| {
        Failure::usage(format!("`{}` is not the crate steadfast-guest", given.display()))
            .hint("give the folder `guest-sdk` of a checkout of Steadfast")
    })
}

fn cannot_make(path: &Path, error: &io::Error) -> Failure {
    Failure::new(75, format!("cannot make `{}`: {error}", path.display()))
}

fn next_steps(name: &str, to_be_pointed: bool) -> String {
    let point = match to_be_pointed {
        true => "  edit Cargo.toml: let steadfast-guest point to the folder guest-sdk of a checkout of Steadfast\n",
        false => "",
    };
    let file = name.replace('-', "_");
    format!(
        "Made {name}. What comes next:\n  cd {name}\n{point}  cargo test\n  cargo build --release --target wasm32-wasip2\n  \
         steadfast run target/wasm32-wasip2/release/{file}.wasm --config '{{\"steps\": 1000}}'\n"
    )
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;

    #[test]
    fn names_are_those_that_cargo_takes() {
        for good in ["walk", "my-plugin", "a_b", "x2", "Walk"] {
            assert!(good.parse::<CrateName>().is_ok(), "{good}");
        }
        for bad in ["", "2x", "-a", "_a", "a b", "a/b", "..", "é", "fn", "test", "serde", &"x".repeat(65)] {
            assert!(bad.parse::<CrateName>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_manifest_is_toml_wherever_the_sdk_lies() {
        for sdk in [None, Some("/a folder/with \"quotes\" and \\"), Some("/sdk")] {
            let [(_, manifest), ..] = files("my-walk", sdk.map(Path::new));
            let read: toml::Table = manifest.parse().unwrap();
            assert_eq!(read["package"]["name"].as_str(), Some("my-walk"));
            let path = read["dependencies"]["steadfast-guest"]["path"].as_str();
            assert_eq!(path, Some(sdk.unwrap_or("../steadfast/guest-sdk")));
        }
    }

    #[test]
    fn a_plugin_begins_with_less_than_forty_lines() {
        assert!(include_str!("templates/lib.rs").lines().count() < 40);
    }
}
