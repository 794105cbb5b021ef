//! What a user reads, without what differs from run to run, to be frozen by snapshots.

use std::path::Path;

use super::Place;

/// The text with `[place]` for the test's own folder, `[guests]` for where guests are built, and `[hash]` for digests and
/// nonces. Spaces at line ends are no part of it.
pub(crate) fn stable(place: &Place, text: &str) -> String {
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("wasm32-wasip2/release");
    let text = text.replace(place.path().to_str().unwrap(), "[place]");
    let text = text.replace(built.join("examples").to_str().unwrap(), "[guests]");
    let text = text.replace(built.to_str().unwrap(), "[guests]");
    let mut stable = String::new();
    let mut word = String::new();
    for symbol in text.chars().chain(['\n']) {
        if symbol.is_ascii_alphanumeric() {
            word.push(symbol);
            continue;
        }
        stable.push_str(if is_hash(&stable, &word) { "[hash]" } else { &word });
        word.clear();
        stable.push(symbol);
    }
    stable.pop();
    stable.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// A digest has 64 digits, also where it is shortened to a dozen after `sha256:`; a nonce has 8 and stands behind an epoch.
fn is_hash(before: &str, word: &str) -> bool {
    let hex = word.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    let behind_epoch = || {
        let epoch =
            before.strip_suffix('-').and_then(|before| before.rsplit(|c: char| !c.is_ascii_alphanumeric()).next());
        epoch.and_then(|epoch| epoch.strip_prefix('e')).is_some_and(|digits| digits.len() >= 4)
    };
    hex && (word.len() == 64
        || (!word.is_empty() && before.ends_with("sha256:"))
        || (word.len() == 8 && behind_epoch()))
}

/// The text with `[size]` for numbers of bytes, where they depend on how well something is compressed or on how full a disk is.
pub(crate) fn without_sizes(text: &str) -> String {
    let mut words: Vec<&str> = text.split(' ').collect();
    for at in 1..words.len() {
        let unit = words[at].trim_end_matches([',', ')', ';', '\n']);
        if ["B", "KiB", "MiB", "GiB", "bytes"].contains(&unit) && words[at - 1].parse::<f64>().is_ok() {
            words[at - 1] = "[size]";
        }
    }
    words.join(" ")
}
