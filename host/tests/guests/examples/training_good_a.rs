//! Right: the release of `digits` that trains at a constant rate.

use steadfast_guest::plugin;
use test_guests::training::{Constant, Trained};

plugin!(Trained<Constant>);
