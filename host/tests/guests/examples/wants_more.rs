//! A plugin that imports what no host of ours offers.

use serde::{Deserialize, Serialize};
use steadfast_guest::{Job, NoConfig, Outcome, Plugin, Result, plugin};

mod bindings {
    wit_bindgen::generate!({
        inline: "
            package steadfast:test-guests;
            world weather { import acme:weather/forecast@1.0.0; }
            package acme:weather@1.0.0 {
                interface forecast { tomorrow: func() -> string; }
            }
        ",
        world: "weather",
        generate_all,
    });
}

#[derive(Serialize, Deserialize)]
struct WantsMore;

impl Plugin for WantsMore {
    type Config = NoConfig;

    fn start(_job: &Job, _config: NoConfig) -> Result<Self> {
        Ok(Self)
    }

    fn step(&mut self) -> Result<Outcome> {
        Ok(Outcome::done(bindings::acme::weather::forecast::tomorrow()))
    }
}

plugin!(WantsMore);
