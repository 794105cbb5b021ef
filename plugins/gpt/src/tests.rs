//! What can be said without a device. Training, gradient and resuming are tested in the host, with `gpt` as a component.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::Path;

use steadfast_guest::testing::{Harness, set_folders};

use super::*;

fn config(json: &str) -> Config {
    serde_json::from_str::<Config>(json).unwrap().checked().unwrap()
}

/// What `start` says about this configuration.
fn refusal(config: &str) -> String {
    set_folders(Path::new(env!("CARGO_MANIFEST_DIR")).join("data"), Path::new("/nowhere"));
    match Harness::<Gpt>::start(config).err() {
        Some(Error::Invalid(message)) => message,
        other => panic!("expected a refusal of {config}, got {other:?}"),
    }
}

#[test]
fn configuration_out_of_bounds_is_invalid() {
    for (given, said) in [
        (r#"{"layers": 0}"#, "at `layers`: must be between 1 and 1000"),
        (r#"{"heads": 0}"#, "at `heads`: must be at least 1"),
        (r#"{"heads": 3}"#, "at `width`: must be a multiple of `heads`"),
        (r#"{"context": 1}"#, "at `context`: must be between 2 and 65536"),
        (r#"{"context": 65536, "batch": 257}"#, "at `batch`: must be at most 16777216 / `context`"),
        (r#"{"steps": 0}"#, "at `steps`: must be at least 1"),
        (r#"{"learning_rate": -1}"#, "at `learning_rate`: must be above 0"),
        (r#"{"last_rate": 1.5}"#, "at `last_rate`: must be between 0 and 1"),
        (r#"{"betas": [0.9, 1]}"#, "at `betas`: must be at least 0 and below 1"),
        (r#"{"clip": 0}"#, "at `clip`: must be above 0"),
        (r#"{"validation_share": 0.6}"#, "at `validation_share`: must be between 0 and 0.5"),
        (r#"{"temperature": 0}"#, "at `temperature`: must be above 0"),
    ] {
        assert_eq!(refusal(given), format!("configuration, {said}"));
    }
    assert!(refusal(r#"{"layer": 3}"#).contains("unknown field `layer`"));
    assert!(refusal(r#"{"preset": "huge"}"#).starts_with("configuration, at `preset`: "));
}

#[test]
fn what_a_preset_decides_can_be_decided_otherwise() {
    let sizes = config(r#"{"preset": "gpt2", "layers": 6, "batch": 4}"#).sizes();
    let shape = config::Shape { layers: 6, heads: 12, width: 768, context: 1024 };
    assert_eq!((sizes.shape, sizes.batch, sizes.steps), (shape, 4, 100_000));
    let default = config("{}").sizes().shape;
    let weights = Layout::of(default, 72).total;
    assert!((950_000..1_050_000).contains(&weights), "{weights}");
}

#[test]
fn the_learning_rate_rises_and_falls() {
    let config = config(r#"{"learning_rate": 1, "warm_up": 4, "steps": 104, "last_rate": 0.5}"#);
    assert_eq!([0, 1, 3, 4].map(|step| config.rate(step)), [0.25, 0.5, 1.0, 1.0]);
    assert!((config.rate(54) - 0.75).abs() < 1e-6);
    assert_eq!([104, 1000].map(|step| config.rate(step)), [0.5, 0.5]);
}

#[test]
fn the_table_has_every_character_once_and_in_order() {
    let table = Table::of("hello, wörld\n").unwrap();
    assert_eq!(table.characters(), "\n ,dehlorwö");
    assert_eq!(table.tokens::<i32>("low").unwrap(), [6, 7, 9]);
    assert_eq!(table.tokens::<i32>("lower!"), Err('!'));
    assert_eq!((table.character(10), table.character(11), table.character(-1)), (Some('ö'), None, None));
}

/// What is said about a folder with these files, less the folder.
fn unreadable(files: &[(&str, &[u8])], name: Option<&str>) -> String {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        fs::write(folder.path().join(name), content).unwrap();
    }
    match text::read(folder.path(), name) {
        Err(Error::Invalid(message)) => message.replace(&folder.path().display().to_string(), "IN"),
        other => panic!("expected invalid input, got {other:?}"),
    }
}

#[test]
fn a_text_that_is_not_there_is_said_to_be_so() {
    assert_eq!(unreadable(&[], None), "no file in `IN` ends in `.txt`: name the one to train on with `text`");
    assert_eq!(
        unreadable(&[("b.txt", b""), ("a.txt", b""), ("c.md", b"")], None),
        "2 files in `IN` end in `.txt`, `a.txt` and `b.txt` among them: name the one to train on with `text`"
    );
    assert_eq!(unreadable(&[("a.txt", b"")], Some("b")), "there is no `IN/b`: give its folder with --input");
    assert_eq!(
        unreadable(&[("a.txt", b"na\xefve")], None),
        "`IN/a.txt` is no text in UTF-8, from byte 2 on: convert it (`iconv --to-code UTF-8`)"
    );
    let nowhere = text::read(Path::new("/nowhere"), None);
    assert_eq!(nowhere, Err(Error::invalid("there is no text: give the folder of one with --input")));
}

#[test]
fn a_folder_in_the_place_of_a_text_may_be_one_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("a.txt")).unwrap();
    assert!(matches!(text::read(folder.path(), None), Err(Error::Retryable(_))));
}

#[test]
fn pieces_are_of_their_own_part_of_the_text() {
    let text = Text::new((0..100).collect(), 0.3, 8).unwrap();
    let mut draws = Draws::for_batches(3);
    for _ in 0..50 {
        let batch = text.draw(&mut draws, 4, 8);
        assert_eq!((batch.tokens.len(), batch.length), (32, 8));
        assert!(batch.tokens.iter().zip(&batch.targets).all(|(token, target)| target - token == 1 && *target < 70));
    }
    let held_out = text.held_out(8, 2, 8);
    assert_eq!(held_out.iter().map(|batch| batch.tokens.len()).collect::<Vec<_>>(), [16, 8]);
    assert!(held_out.iter().flat_map(|batch| &batch.tokens).all(|token| *token >= 70));
    assert_eq!(held_out[0].tokens[0], 70);
    assert_eq!(text.held_out(1, 1, 8).len(), 1);
}

#[test]
fn a_text_that_is_too_short_is_invalid() {
    let short = |share, context| Text::new((0..20).collect(), share, context).err();
    assert!(short(0.5, 9).is_none() && short(0.0, 19).is_none());
    let invalid = |start: &str| {
        let rest = "take a longer text, a smaller `context` or another `validation_share`";
        Some(Error::Invalid(format!("of the text's 20 characters {start} needs more than as many: {rest}")))
    };
    assert_eq!(short(0.5, 10), invalid("10 are for training, and a `context` of 10"));
    assert_eq!(short(0.1, 8), invalid("2 are for validation, and a `context` of 8"));
    assert_eq!(short(0.0, 20), invalid("20 are for training, and a `context` of 20"));
}

#[test]
fn a_prompt_is_made_of_characters_of_the_text() {
    let table = Table::of("abc").unwrap();
    let prompt = |prompt: &str| sampling::prompt(&config(&format!(r#"{{"prompt": "{prompt}"}}"#)), &table);
    assert_eq!((prompt(""), prompt("cab")), (Ok(vec![0]), Ok(vec![2, 0, 1])));
    let refused = "configuration, at `prompt`: 'd' does not occur in the text";
    assert_eq!(prompt("bad"), Err(Error::invalid(refused)));
}
