//! Right: the release of `digits` whose rate falls to a half.

use steadfast_guest::plugin;
use test_guests::training::{Halving, Trained};

plugin!(Trained<Halving>);
