//! That components do come as far as they must.

use super::*;

/// Bytes that depend on a number alone.
fn noise(number: u32, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new().update(&number.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

#[test]
fn more_than_half_of_all_components_start() {
    let (mut built, mut started) = (0, 0);
    let inputs = 200;
    for number in 0..inputs {
        let component = component::build(&noise(number, 200 + 20 * number as usize));
        built += u32::from(component.is_some());
        started += u32::from(component.is_some_and(|component| play(&component)));
    }
    assert_eq!(built, inputs);
    assert!(started * 10 > inputs * 7, "{started} of {inputs}");
}

#[test]
fn an_input_without_bytes_starts() {
    assert!(component::build(&[]).is_some_and(|component| play(&component)));
}

#[test]
fn every_seed_passes() {
    crate::each_seed("component", |_, bytes| run_component(bytes));
    crate::each_seed("plugin_bytes", |_, bytes| run_bytes(bytes));
}
