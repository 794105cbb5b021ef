//! The text that is trained on, as tokens: a token is the place of a character in the table of all that occur.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use steadfast_guest::{Error, Result};

use super::draws::Draws;

const MOST_CHARACTERS: usize = 1 << 16;

/// The characters that occur in the text, in order. Weights mean nothing without it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Table {
    characters: Vec<char>,
}

impl Table {
    pub(crate) fn of(text: &str) -> Result<Self> {
        let mut characters: Vec<char> = Vec::new();
        for character in text.chars() {
            if let Err(place) = characters.binary_search(&character) {
                characters.insert(place, character);
            }
        }
        // A place has 16 bits.
        match characters.len() {
            ..=MOST_CHARACTERS => Ok(Self { characters }),
            many => Err(Error::invalid(format!(
                "the text has {many} different characters, and {MOST_CHARACTERS} are possible"
            ))),
        }
    }

    pub(crate) fn len(&self) -> u32 {
        self.characters.len() as u32
    }

    pub(crate) fn characters(&self) -> String {
        self.characters.iter().collect()
    }

    pub(crate) fn character(&self, token: i32) -> Option<char> {
        self.characters.get(usize::try_from(token).ok()?).copied()
    }

    /// The tokens of a text, or its first character that the table lacks.
    pub(crate) fn tokens<T: TryFrom<usize>>(&self, text: &str) -> Result<Vec<T>, char> {
        let token = |character| self.characters.binary_search(&character).ok().and_then(|place| place.try_into().ok());
        text.chars().map(|character| token(character).ok_or(character)).collect()
    }
}

/// Reads the text: the file of that name in the folder, or the one whose name ends in `.txt`.
pub(crate) fn read(folder: &Path, name: Option<&str>) -> Result<String> {
    let path = match name {
        Some(name) => folder.join(name),
        None => the_only_one(folder)?,
    };
    let shown = path.display();
    let bytes = fs::read(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::invalid(format!("there is no `{shown}`: give its folder with --input")),
        _ => Error::retryable(format!("cannot read `{shown}`: {error}")),
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Error::invalid(format!(
            "`{shown}` is no text in UTF-8, from byte {at} on: convert it (`iconv --to-code UTF-8`)"
        ))
    })
}

fn the_only_one(folder: &Path) -> Result<PathBuf> {
    let shown = folder.display();
    let entries = fs::read_dir(folder).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::invalid("there is no text: give the folder of one with --input"),
        _ => Error::retryable(format!("cannot list `{shown}`: {error}")),
    })?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            found.push(path);
        }
    }
    found.sort();
    match found.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(Error::invalid(format!("no file in `{shown}` ends in `.txt`: name the one to train on with `text`"))),
        [first, second, ..] => Err(Error::invalid(format!(
            "{} files in `{shown}` end in `.txt`, `{}` and `{}` among them: name the one to train on with `text`",
            found.len(),
            first.file_name().unwrap_or_default().display(),
            second.file_name().unwrap_or_default().display(),
        ))),
    }
}

/// A text in two parts: one to train on, and one that is held out.
#[derive(Default)]
pub(crate) struct Text {
    training: Vec<u16>,
    held_out: Vec<u16>,
}

/// Pieces of text, and for each of their characters the one that comes next.
pub(crate) struct Batch {
    pub(crate) tokens: Vec<i32>,
    pub(crate) targets: Vec<i32>,
    /// Of a piece.
    pub(crate) length: u32,
}

impl Text {
    /// Holds out this share of the text, from its end. Each part has to be longer than `context`, the second one unless it is empty.
    pub(crate) fn new(mut tokens: Vec<u16>, share: f64, context: u32) -> Result<Self> {
        let all = tokens.len();
        let held_out = tokens.split_off(all - (all as f64 * share) as usize);
        for (part, name) in [(&tokens, "training"), (&held_out, "validation")] {
            if part.len() <= context as usize && (name == "training" || share > 0.0) {
                let have = part.len();
                return Err(Error::invalid(format!(
                    "of the text's {all} characters {have} are for {name}, and a `context` of {context} needs more than as many: \
                     take a longer text, a smaller `context` or another `validation_share`"
                )));
            }
        }
        Ok(Self { training: tokens, held_out })
    }

    /// Pieces of the training's part, anywhere.
    pub(crate) fn draw(&self, draws: &mut Draws, count: u32, length: u32) -> Batch {
        let places = self.training.len() as u64 - u64::from(length);
        let firsts = (0..count).map(|_| draws.below(places) as usize);
        pieces(&self.training, firsts, length)
    }

    /// Batches of pieces of the held-out part, evenly apart: as many as fit side by side, but not more than `most`.
    pub(crate) fn held_out(&self, most: u32, count: u32, length: u32) -> Vec<Batch> {
        let places = self.held_out.len().saturating_sub(1);
        let pieces_in_all = (places / length as usize).min((most * count) as usize);
        let firsts: Vec<usize> = (0..pieces_in_all).map(|piece| piece * (places / pieces_in_all)).collect();
        firsts.chunks(count as usize).map(|firsts| pieces(&self.held_out, firsts.iter().copied(), length)).collect()
    }
}

fn pieces(text: &[u16], firsts: impl Iterator<Item = usize>, length: u32) -> Batch {
    let mut batch = Batch { tokens: Vec::new(), targets: Vec::new(), length };
    for first in firsts {
        let piece = &text[first..=first + length as usize];
        batch.tokens.extend(piece[..piece.len() - 1].iter().copied().map(i32::from));
        batch.targets.extend(piece[1..].iter().copied().map(i32::from));
    }
    batch
}
