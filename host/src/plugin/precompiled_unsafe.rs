//! Turning cached machine code back into a component: the one unsafe step of loading a plugin.
//!
//! What cannot be checked here is that the code came out of our compiler. [`OwnCode`] carries that: it is made by
//! [`super::cache`] alone, for entries whose seal holds, from a folder that nobody but us and root can write to.

use wasmtime::Engine;
use wasmtime::component::Component;

/// Bytes that this program's own `Component::serialize` made, as far as anybody can tell.
pub(super) struct OwnCode<'a>(&'a [u8]);

impl<'a> OwnCode<'a> {
    /// For the cache, after it has compared the entry's hash and the folder's owner.
    pub(super) fn proven(code: &'a [u8]) -> Self {
        Self(code)
    }
}

/// The component, unless another version or configuration of the engine made it.
#[expect(unsafe_code, reason = "wasmtime cannot verify machine code, so loading it is unsafe")]
pub(super) fn component(engine: &Engine, code: OwnCode<'_>) -> Option<Component> {
    // SAFETY: `deserialize` requires bytes that `serialize` made and that nobody has changed. The bytes are in our memory, they
    // lay in a folder that only our user and root can write to, and a hash made when they were written still matches. Whether version,
    // settings and processor features fit is checked by wasmtime itself.
    unsafe { Component::deserialize(engine, code.0) }.ok()
}
