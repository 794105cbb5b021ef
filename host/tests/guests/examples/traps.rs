//! Traps: `{"in": "step", "at": 7, "how": "panic"}`.

use serde::Deserialize;
use steadfast_guest::{Result, plugin};
use test_guests::{Trouble, Troubled};

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum How {
    /// A panic, with a message.
    #[default]
    Panic,
    /// The stack ends.
    Recursion,
    /// An abort, without a word.
    Abort,
}

#[derive(Deserialize)]
struct Traps {
    #[serde(default)]
    how: How,
}

impl Trouble for Traps {
    type Options = Self;

    fn strike(options: &Self) -> Result<()> {
        match options.how {
            How::Panic => panic!("this guest was told to panic"),
            How::Recursion => println!("{}", deeper(1)),
            How::Abort => std::process::abort(),
        }
        Ok(())
    }
}

/// Not a tail call, and not a loop either: each level keeps something that the next one looks at.
#[expect(unconditional_recursion, reason = "that is the point")]
fn deeper(level: u64) -> u64 {
    let kept = std::hint::black_box([level; 64]);
    deeper(level + 1) + kept[(level % 64) as usize]
}

plugin!(Troubled<Traps>);
