//! The Rust face of `wit/steadfast.wit`, generated. Only `telemetry`, the exports and the types are used from here: the functions of
//! `state` and `device` stand by hand in [`super::state`] and [`super::device`], because generated code would copy every byte of a
//! snapshot or a buffer once more.
#![allow(missing_docs, clippy::all, reason = "generated from the WIT, which holds the documentation")]

wasmtime::component::bindgen!({
    path: "../wit",
    world: "plugin",
    with: {
        "steadfast:job/state.writer": super::state::Writer,
        "steadfast:job/state.reader": super::state::Reader,
        "steadfast:job/device.buffer": super::device::Buffer,
        "steadfast:job/device.module": super::device::Module,
    },
});
