//! What wit-bindgen makes of `wit/steadfast.wit`: the only place in a Rust plugin where `unsafe` is, all of it generated.

wit_bindgen::generate!({
    path: "../wit",
    world: "plugin",
    pub_export_macro: true,
    export_macro_name: "export_plugin",
    default_bindings_module: "steadfast_guest::bindings",
});
