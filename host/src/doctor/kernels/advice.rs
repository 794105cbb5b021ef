//! An obstacle in words for whoever writes kernels.
//!
//! What is said is of use in CUDA C++ and in PTX by hand alike: where both differ, both are named.

use steadfast_ptx::kernel::{LANES, Obstacle};

/// What would make a kernel with this obstacle faster, where there is something.
#[must_use]
pub fn advice(obstacle: &Obstacle) -> Option<&'static str> {
    match obstacle {
        Obstacle::Disabled => None,
        Obstacle::Waits(_) => Some(
            "make the functions that it calls a part of it: `__forceinline__` in CUDA C++. A kernel that moves or multiplies matrices by a whole warp runs thread by thread: give each \
             thread more work between two waits, so that there are fewer",
        ),
        Obstacle::Atomics(_) => {
            Some("let each thread or block write to a place of its own, and add up in a second kernel what they wrote")
        }
        Obstacle::Calls(_) => Some(
            "make the function a part of the kernel: `__forceinline__` in CUDA C++; recursion and calls by address stay calls",
        ),
        Obstacle::LocalMemory(_) => Some(
            "local memory is an array with an index known only at run time, or registers that were spilled: unroll the loops over the array (`#pragma unroll`), or \
             keep it in a buffer. `sinf`, `cosf` and `tanf` have one for large angles; `__sinf` or --use_fast_math has none",
        ),
        Obstacle::Diverges(_) => Some(
            "it is too large for threads that part behind a store and meet again: divide it, or load and compare first and store at the end",
        ),
        Obstacle::TooLarge => Some("divide it: two kernels of half the size each run as vector lanes"),
    }
}

/// What there is to know of a kernel whose blocks are that wide, where there is something.
#[must_use]
pub fn of_width(width: u32) -> Option<&'static str> {
    (!width.is_multiple_of(LANES)).then_some(
        "its blocks are as wide as `.reqntid` says, which is no multiple of four: such blocks run thread by thread",
    )
}

/// What there is to know of a kernel whose blocks run in order.
#[must_use]
pub fn of_one_core() -> &'static str {
    "its blocks run in order, on one core, since the outcome of its atomics depends on it (sums of floats, or results that are used): with integers whose \
     results nobody uses, or sums by block that a second kernel adds up, all cores have work"
}
