//! That components do come as far as they must.

use super::*;

/// Bytes that depend on a number alone.
fn noise(number: u32, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&number.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

#[test]
fn most_components_start_and_some_are_restored() {
    let inputs = 200;
    let reached = |number: u32| {
        let component = component::build(&noise(number, 200 + 20 * number as usize));
        play(&component.expect("any bytes make a component"))
    };
    let reached: Vec<Reached> = (0..inputs).map(reached).collect();
    let at_least = |least: Reached| reached.iter().filter(|reached| **reached >= least).count();
    let (started, restored) = (at_least(Reached::Step), at_least(Reached::Restored));
    assert!(started > 140 && restored > 20, "{started} started and {restored} were restored, of {inputs}");
}

#[test]
fn an_input_without_bytes_is_a_plugin() {
    let component = component::build(&[]).expect("no bytes make a component");
    assert_eq!(play(&component), Reached::Restored);
}

#[test]
fn every_seed_passes() {
    crate::each_seed("component", |_, bytes| run_component(bytes));
    crate::each_seed("plugin_bytes", |_, bytes| run_bytes(bytes));
}
