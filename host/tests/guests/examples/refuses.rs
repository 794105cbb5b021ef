//! Answers with an error: `{"in": "step", "at": 7, "kind": "retryable"}`.

use serde::Deserialize;
use steadfast_guest::{Error, Result, plugin};
use test_guests::{Trouble, Troubled};

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    #[default]
    Invalid,
    Retryable,
    IncompatibleState,
}

#[derive(Deserialize)]
struct Refuses {
    #[serde(default)]
    kind: Kind,
    #[serde(default = "no_reason")]
    message: String,
}

fn no_reason() -> String {
    "this guest was told to refuse".to_owned()
}

impl Trouble for Refuses {
    type Options = Self;

    fn strike(options: &Self) -> Result<()> {
        let message = options.message.clone();
        Err(match options.kind {
            Kind::Invalid => Error::Invalid(message),
            Kind::Retryable => Error::Retryable(message),
            Kind::IncompatibleState => Error::IncompatibleState(message),
        })
    }
}

plugin!(Troubled<Refuses>);
