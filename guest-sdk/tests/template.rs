//! What `steadfast plugin new` begins a plugin with, with the test that is in it.

#[path = "../../host/src/cli/plugin/templates/lib.rs"]
mod template;
