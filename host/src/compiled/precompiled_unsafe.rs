//! Turning cached machine code back into a component or a module: the one unsafe step of loading a plugin or a kernel.
//!
//! What cannot be checked here is that the code came out of our compiler. [`OwnCode`] carries that: it is made by
//! [`super::Cache`] alone, for entries whose seal holds, from a folder that nobody but us and root can write to.

use wasmtime::component::Component;
use wasmtime::{Engine, Module};

/// Bytes that this program's own `serialize` made, as far as anybody can tell.
pub(crate) struct OwnCode<'a>(&'a [u8]);

impl<'a> OwnCode<'a> {
    /// For the cache, after it has compared the entry's hash and the folder's owner.
    pub(super) fn proven(code: &'a [u8]) -> Self {
        Self(code)
    }

    /// The component, unless another version or configuration of the engine made it.
    #[expect(unsafe_code, reason = "wasmtime cannot verify machine code, so loading it is unsafe")]
    pub(crate) fn component(self, engine: &Engine) -> Option<Component> {
        // SAFETY: `deserialize` requires bytes that `serialize` made and that nobody has changed. The bytes are in our memory, they
        // lay in a folder that only our user and root can write to, and a hash made when they were written still matches. Whether version,
        // settings and processor features fit is checked by wasmtime itself.
        unsafe { Component::deserialize(engine, self.0) }.ok()
    }

    /// The module, unless another version or configuration of the engine made it.
    #[expect(unsafe_code, reason = "wasmtime cannot verify machine code, so loading it is unsafe")]
    pub(crate) fn module(self, engine: &Engine) -> Option<Module> {
        // SAFETY: as above.
        unsafe { Module::deserialize(engine, self.0) }.ok()
    }
}
