//! How the private memory of a kernel with waiting threads is laid out behind the parameters.
//!
//! ```text
//!  scheduler: a record for each barrier, a record for each warp │ call area of device functions │ frame of thread 0 │ frame of thread 1 │ …
//!  frame:     header │ exchange area │ call area of the body │ values that outlive a suspension
//! ```
//!
//! Where four neighbouring threads can run as the lanes of vectors, their frames are one (a struct of arrays): what each of them has at offset `o` of a frame by itself
//! lies at `4 · o`, lane behind lane. Four bytes of each are one vector, eight bytes two. So whoever runs a thread, alone or with its neighbours, finds and leaves the same.

use super::lanes::LANES;

/// Of a frame: where the thread goes on. The lower bits are the number of a region …
pub const RESUME: u32 = 0;
pub const NUMBER: u32 = (1 << 24) - 1;
/// … and beside it stands that it came there with its group, so that what should be lines are (see [`super::lanes`]) …
pub const TOGETHER: u32 = 1 << 30;
/// … or with all that run side by side.
pub const SIDE_BY_SIDE: u32 = 1 << 31;
/// Its place in the block by axis, packed.
pub const PLACE: u32 = 4;
/// For what it meets others.
pub const PURPOSE: u32 = 8;
/// Whom.
pub const MASK: u32 = 12;
/// What it brings, 8 bytes.
pub const VALUE: u32 = 16;
/// What it gets, 8 bytes.
pub const RESULT: u32 = 24;
/// Whose value it wants.
pub const SOURCE: u32 = 32;
/// Bytes of the header.
pub const HEADER: u32 = 48;
/// Where the exchange area begins: what the lanes of a warp bring to a routine that runs for all of them, and take from it.
pub const EXCHANGE: u32 = HEADER;

/// Barriers of a block.
pub const BARRIERS: u32 = 16;
/// Of a barrier's record: for how many threads it is (0: all).
pub const THREADS: u32 = 0;
/// Whether its threads want to know how many predicates hold.
pub const REDUCES: u32 = 4;
/// Lanes that have arrived, by warp.
pub const ARRIVED: u32 = 16;
/// Lanes that wait, by warp.
pub const WAITING: u32 = 16 + 128;
/// Lanes whose predicate holds, by warp.
pub const PREDICATES: u32 = 16 + 256;
/// Bytes of a barrier's record.
pub const BARRIER_BYTES: u32 = 16 + 384;

/// Of a warp's record: lanes that can run.
pub const READY: u32 = 0;
/// Lanes that have ended, or never were.
pub const EXITED: u32 = 4;
/// Lanes that wait for others of the warp.
pub const MEETING: u32 = 8;
/// Of these, lanes that are known to have come for the same purpose with the same mask.
pub const ALIKE: u32 = 12;
/// Bytes of a warp's record.
pub const WARP_BYTES: u32 = 16;

/// Bytes of the scheduler's part.
pub const SCHEDULER_BYTES: u32 = BARRIERS * BARRIER_BYTES + 32 * WARP_BYTES;
/// Bytes of the call area that device functions share.
pub const CALL_BYTES: u32 = 64 * 1024;

/// How the frames of threads lie.
#[derive(Debug, Clone, Copy, Default)]
pub struct Frames {
    /// Bytes for each thread.
    pub bytes: u32,
    /// Whether those of four threads are one.
    pub grouped: bool,
}

impl Frames {
    /// What is added to a thread's address for this offset of a frame by itself. The address is that of the frame, or in the frame of a group the place of the lane.
    pub fn offset(self, field: u32) -> u32 {
        if self.grouped { field * LANES } else { field }
    }

    /// Bytes of what is addressed as one: a thread's frame, or that of a group.
    pub fn group_bytes(self) -> u32 {
        if self.grouped { self.bytes * LANES } else { self.bytes }
    }
}

/// Where everything begins.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// The barriers' records.
    pub barriers: u32,
    /// The warps' records.
    pub warps: u32,
    /// The call area of the kernel's body if no thread waits, and of device functions.
    pub calls: u32,
    /// Its end.
    pub calls_end: u32,
    /// The frames.
    pub frames: u32,
}

impl Plan {
    /// Behind so many bytes of parameters.
    pub fn new(parameter_bytes: u32, waits: bool, calls: bool, body_area: u32) -> Self {
        let barriers = (crate::kernel::PARAMETERS + parameter_bytes).next_multiple_of(16);
        let warps = barriers + BARRIERS * BARRIER_BYTES;
        let calls_at = if waits { barriers + SCHEDULER_BYTES } else { barriers };
        let area = if waits { 0 } else { body_area };
        let calls_end = calls_at + area + if calls { CALL_BYTES } else { 0 };
        Self { barriers, warps, calls: calls_at, calls_end, frames: calls_end.next_multiple_of(16) }
    }
}
