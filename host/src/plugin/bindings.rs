//! The Rust face of `wit/steadfast.wit`, generated. Only `telemetry` and the exports are used from here: the functions of
//! `state` stand by hand in [`super::state`], because generated code would copy every byte of a snapshot once more.
#![allow(missing_docs, clippy::all, reason = "generated from the WIT, which holds the documentation")]

wasmtime::component::bindgen!({
    path: "../wit",
    world: "plugin",
    with: {
        "steadfast:job/state.writer": super::state::Writer,
        "steadfast:job/state.reader": super::state::Reader,
    },
});
