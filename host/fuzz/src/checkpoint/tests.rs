//! That repaired files do come past the hashes, whatever a fuzzer does to them.
#![expect(clippy::unwrap_used, reason = "tests")]

use super::*;

const GOLDEN: &[u8] = include_bytes!("../../../tests/data/format-1.ckpt");

#[test]
fn an_untouched_file_stays_as_it_is() {
    assert_eq!(repair(GOLDEN).unwrap(), GOLDEN);
    run(GOLDEN);
}

#[test]
fn most_changed_files_open_once_they_are_repaired() {
    let opens = |place: &usize| {
        let mut file = GOLDEN.to_vec();
        file[*place] ^= 0x41;
        run(&file);
        let repaired = repair(&file).unwrap();
        Reader::open(&repaired).is_ok()
    };
    let opened = (0..GOLDEN.len() - 1).filter(opens).count();
    assert!(opened > GOLDEN.len() * 3 / 4, "{opened} of {}", GOLDEN.len());
}

#[test]
fn cut_and_stretched_files_do_too() {
    for place in 32..GOLDEN.len() - 128 {
        let mut file = GOLDEN.to_vec();
        file.remove(place);
        run(&file);
        file.splice(place..place, *b"abc");
        run(&file);
    }
}
