//! What a trap of a kernel means, in words for its author: which kernel, which line of its PTX, which block, and what happened.
//!
//! The same fault is always told in the same words: addresses, which are random, are told by how they lie to the launch's buffers.

use std::fmt;

use steadfast_ptx::kernel::{Kernel, trap};
use steadfast_ptx::module::Position;
use wasmtime::{Trap, WasmBacktrace};

/// A buffer that the launch was given.
pub(super) struct Given {
    /// The argument's number, from 1.
    pub(super) argument: usize,
    pub(super) start: u64,
    pub(super) bytes: u64,
}

/// A distance that is called near: what a wrong index reaches, and not an address out of nowhere.
pub(super) const NEAR: u64 = 64 << 20;
/// Addresses below this are null and an offset.
const NULL: u64 = 64 << 10;

/// A kernel that did not come back.
pub(super) struct Fault<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) error: &'a wasmtime::Error,
    /// Of [`trap`], or none of them.
    pub(super) reason: i32,
    pub(super) block: Option<[u32; 3]>,
    pub(super) given: &'a [Given],
}

impl fmt::Display for Fault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel `{}` failed", self.kernel.name)?;
        if let Some(place) = self.place() {
            write!(f, " at line {}, column {} of its PTX", place.line, place.column)?;
        }
        if let Some([x, y, z]) = self.block {
            write!(f, ", in block ({x}, {y}, {z})")?;
        }
        write!(f, ": {}", self.what())
    }
}

impl Fault<'_> {
    fn place(&self) -> Option<Position> {
        let frames = self.error.downcast_ref::<WasmBacktrace>()?.frames();
        // A frame of generated helper code has no place: then the one that called it.
        frames.iter().find_map(|frame| self.kernel.place(u32::try_from(frame.module_offset()?).ok()?))
    }

    fn what(&self) -> String {
        match self.error.downcast_ref::<Trap>() {
            Some(Trap::MemoryOutOfBounds) => {
                // Far beyond the reservation compiled code sees it by itself, and no address is told.
                let place = address(self.error).map(|address| describe(address, self.given));
                format!("it reached for {}", place.unwrap_or_else(|| NOWHERE.into()))
            }
            Some(Trap::HeapMisaligned) => "an atomic operation's address is no multiple of its size".into(),
            Some(Trap::StackOverflow) => TOO_DEEP.into(),
            Some(Trap::UnreachableCodeReached) => self.why().into(),
            Some(other) => other.to_string(),
            None => format!("{:#}", self.error),
        }
    }

    /// Why it stopped itself.
    fn why(&self) -> &'static str {
        match self.reason {
            trap::TRAP => "it executed `trap`",
            trap::DEADLOCK => "no thread of the block can go on: they wait for others that never come",
            trap::TABLE => "the index of a `brx.idx` is beyond its table",
            trap::ASSERTION => "an assertion does not hold",
            trap::BARRIER => "there are 16 barriers, and it used another",
            trap::STACK => TOO_DEEP,
            _ => "it came to a place that no thread can come to",
        }
    }
}

const NOWHERE: &str = "an address in no buffer";
const TOO_DEEP: &str = "its functions call each other too deep";

/// Where a memory fault was. wasmtime's type for this is not public; its words are.
fn address(error: &wasmtime::Error) -> Option<u64> {
    error.chain().find_map(|cause| {
        let text = cause.to_string();
        let digits = text.strip_prefix("memory fault at wasm address 0x")?;
        u64::from_str_radix(digits.split(' ').next()?, 16).ok()
    })
}

fn describe(address: u64, given: &[Given]) -> String {
    if address < NULL {
        return format!("address {address}, a null pointer");
    }
    let nearest = given.iter().map(|buffer| (distance(address, buffer), buffer)).min_by_key(|(distance, _)| *distance);
    match nearest {
        Some((distance, buffer)) if distance <= NEAR => {
            let Given { argument, start, bytes } = buffer;
            let side = if address < *start { "before the beginning" } else { "behind the end" };
            format!("byte {distance} {side} of argument {argument}, a buffer of {bytes} bytes")
        }
        _ => NOWHERE.into(),
    }
}

/// How far an address is from the nearest byte of a buffer's edge.
fn distance(address: u64, buffer: &Given) -> u64 {
    if address < buffer.start { buffer.start - address } else { address.saturating_sub(buffer.start + buffer.bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_by_the_nearest_argument() {
        let given =
            [Given { argument: 2, start: 1 << 30, bytes: 4096 }, Given { argument: 3, start: 1 << 31, bytes: 0 }];
        for (address, words) in [
            (16, "address 16, a null pointer"),
            ((1 << 30) + 5000, "byte 904 behind the end of argument 2, a buffer of 4096 bytes"),
            ((1 << 30) - 8, "byte 8 before the beginning of argument 2, a buffer of 4096 bytes"),
            (1 << 31, "byte 0 behind the end of argument 3, a buffer of 0 bytes"),
            (1 << 35, NOWHERE),
        ] {
            assert_eq!(describe(address, &given), words);
        }
        assert_eq!(describe(1 << 20, &[]), NOWHERE);
    }
}
