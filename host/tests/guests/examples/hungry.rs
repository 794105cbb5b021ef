//! Wants so much memory at once, or in pieces until there is no more: `{"at": 3, "mebibytes": 512, "pieces": 1}`. With
//! `pages` it asks for so many pages of 64 KiB itself, since no allocator asks for 4 GiB.

use serde::Deserialize;
use steadfast_guest::{Result, plugin};
use test_guests::{Trouble, Troubled};

#[derive(Deserialize)]
struct Hungry {
    #[serde(default = "much")]
    mebibytes: usize,
    #[serde(default = "one")]
    pieces: usize,
    #[serde(default)]
    pages: usize,
}

fn much() -> usize {
    512
}

fn one() -> usize {
    1
}

impl Trouble for Hungry {
    type Options = Self;

    fn strike(options: &Self) -> Result<()> {
        if options.pages > 0 && grow(options.pages).is_none() {
            std::process::abort();
        }
        let piece = (options.mebibytes << 20) / options.pieces.max(1);
        let taken: Vec<_> = (0..options.pieces).map(|number| vec![number as u8 | 1; piece]).collect();
        std::hint::black_box(taken);
        println!("got {} MiB", options.mebibytes);
        Ok(())
    }
}

/// Asks for so many pages of memory at once.
fn grow(pages: usize) -> Option<usize> {
    #[cfg(target_family = "wasm")]
    let before = core::arch::wasm32::memory_grow::<0>(pages);
    // There is nothing to ask natively.
    #[cfg(not(target_family = "wasm"))]
    let before = pages;
    (before != usize::MAX).then_some(before)
}

plugin!(Troubled<Hungry>);
