#![expect(clippy::unwrap_used, reason = "tests")]
use super::parse;

#[test]
fn kernels() {
    for name in ["adam", "half", "heat", "matmul", "misc", "reduce", "saxpy", "softmax"] {
        let path = format!("{}/tests/kernels/{name}.ptx", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(path).unwrap();
        match parse(&text) {
            Ok(module) => assert!(!module.functions.is_empty()),
            Err(error) => panic!("{name}: {error}"),
        }
    }
}
