//! Right: the release of `digits` whose rate falls to nothing.

use steadfast_guest::plugin;
use test_guests::training::{Falling, Trained};

plugin!(Trained<Falling>);
