//! What the tests are made of.

mod attempt;
mod double;
mod finished;
mod mount;
mod place;
mod words;

use std::path::{Path, PathBuf};

pub(crate) use attempt::{Attempt, Ended, Run};
pub(crate) use double::Double;
pub(crate) use finished::Finished;
pub(crate) use mount::Mount;
pub(crate) use place::{Place, metadata_of, state_of};
pub(crate) use steadfast::job::marks::Phase;
pub(crate) use words::{stable, without_sizes};

/// A guest or example plugin by its name.
pub(crate) fn component(name: &str) -> PathBuf {
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("wasm32-wasip2/release");
    let places = [built.join("examples").join(name).with_extension("wasm"), built.join(name).with_extension("wasm")];
    let found = places.iter().find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("`{}` is not there: run `cargo xtask plugins`", places[0].display())).clone()
}

/// Where compiled guests are kept for all tests, so that each is compiled once.
fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("compiled-guests")
}

/// What a guest comes to with this configuration when nothing disturbs it.
pub(crate) fn undisturbed(guest: &str, config: &str) -> Finished {
    let place = Place::new();
    place.run(guest).config(config).done();
    place.finished(guest)
}
