//! How checkpointing failed people, as they reported it of other systems: each kind of failure is a test, named after it.
//!
//! | module | what failed |
//! |---|---|
//! | `saving` | being killed while saving, full disks, failing volumes, what a file holds |
//! | `reading` | damaged, missing, unreadable or misordered files |
//! | `resuming` | steps, generators, cursors and outputs after a resume |
//! | `stopping` | signals lost, misread or too many |
//! | `attempts` | two attempts at once, attempts without end, another execution |

mod attempts;
mod reading;
mod resuming;
mod saving;
mod stopping;
