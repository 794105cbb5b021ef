//! The threads of the device: seats at a table, one of which is the caller's.

use std::io;

/// Runs one piece of work in several seats at once.
pub(super) struct Crew {
    /// For all seats but the caller's; none where that is the only one.
    others: Option<rayon::ThreadPool>,
    seats: usize,
}

impl Crew {
    pub(super) fn new(seats: usize, stack: usize) -> io::Result<Self> {
        let build = || {
            let threads = rayon::ThreadPoolBuilder::new().num_threads(seats - 1).stack_size(stack);
            threads.thread_name(|index| format!("device {}", index + 1)).build().map_err(io::Error::other)
        };
        let others = if seats > 1 { Some(build()?) } else { None };
        Ok(Self { others, seats: seats.max(1) })
    }

    pub(super) fn seats(&self) -> usize {
        self.seats
    }

    /// Calls `work` once for each seat from 0 (the caller's) to `seats`, of those that there are, and returns when all calls have. A call that comes late
    /// finds nothing left to do: `work` shares itself out.
    pub(super) fn work(&self, seats: usize, work: impl Fn(usize) + Sync) {
        let seats = seats.min(self.seats);
        match &self.others {
            Some(others) if seats > 1 => others.in_place_scope(|scope| {
                let work = &work;
                for seat in 1..seats {
                    scope.spawn(move |_| work(seat));
                }
                work(0);
            }),
            _ => work(0),
        }
    }
}
