//! What can be seen of the device without one: that its absence is said, everywhere and in words.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use serde::{Deserialize, Serialize};

use super::*;
use crate::testing::Harness;
use crate::{Job, NoConfig, Outcome, Plugin};

#[test]
fn natively_there_is_no_device_and_every_way_to_one_says_so() {
    let said = [
        Buffer::<f32>::scratch(1).unwrap_err(),
        Buffer::<f32>::persistent("weights", 1).unwrap_err(),
        Module::from_ptx("").unwrap_err(),
        Module::cuda_only("").unwrap_err(),
        describe().unwrap_err(),
    ];
    for error in said {
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("a device needs a host"), "{error}");
        assert!(matches!(crate::Error::from(error), crate::Error::Invalid(_)));
    }
}

#[test]
fn what_is_closed_says_what_it_is_to_whom() {
    let (buffer, module) = (Buffer::<f32>::default(), Module::default());
    assert_eq!((buffer.len(), buffer.restored(), buffer.name()), (0, false, None));
    let said = |error: Error| error.to_string();
    let closed =
        "the buffer is closed: a field with #[serde(skip)] has to be opened in `start`, and again in `resumed`";
    assert_eq!(said(buffer.read().unwrap_err()), format!("read: {closed}"));
    assert_eq!(said(buffer.write(&[1.0]).unwrap_err()), format!("write: {closed}"));
    let product =
        Gemm { a: buffer.matrix(2, 3), b: buffer.matrix(3, 4), c: buffer.matrix(2, 4), alpha: 1.0, beta: 0.0 };
    assert_eq!(said(product.run().unwrap_err()), format!("gemm: `a`: a range: {closed}"));
    let launch = module.kernel("saxpy").grid(1).block(1).arg(&buffer).launch();
    assert_eq!(
        said(launch.unwrap_err()),
        "kernel `saxpy`: its module is closed: make it in `start`, and again in `resumed`"
    );
}

#[test]
fn matrices_must_fit_together() {
    let buffer = Buffer::<f64>::default();
    let (a, b, c) = (buffer.matrix(2, 3), buffer.matrix(4, 5), buffer.matrix(2, 5));
    let product = Gemm { a, b, c, alpha: 1.0, beta: 0.0 };
    assert_eq!(
        product.run().unwrap_err().to_string(),
        "gemm: an `a` of 2 × 3 times a `b` of 4 × 5 does not make a `c` of 2 × 5"
    );
    let fits = Gemm { b: buffer.matrix(5, 3).t(), ..product };
    assert!(fits.run().unwrap_err().to_string().contains("closed"));
}

#[derive(Serialize, Deserialize)]
struct Holder(Buffer<f32>);

impl Plugin for Holder {
    type Config = NoConfig;

    fn start(_job: &Job, _config: NoConfig) -> crate::Result<Self> {
        Ok(Self(Buffer::default()))
    }

    fn step(&mut self) -> crate::Result<Outcome> {
        Ok(Outcome::done("at once"))
    }
}

#[test]
fn why_a_buffer_is_not_saved_or_comes_not_back_is_said() {
    let run = Harness::<Holder>::start("{}").unwrap();
    assert_eq!(
        run.snapshot().unwrap_err(),
        crate::Error::invalid(
            "the state cannot be encoded in section `state`: a closed buffer is no part of the state: open it in `start`"
        )
    );
    // As a host would have saved one: a name, and how many elements.
    let error = crate::decode::<Holder>(&[1, b'w', 3]).err().unwrap();
    assert!(error.to_string().contains("a device needs a host"), "{error}");
    // What has nothing to do with the device says so after it, too.
    let error = crate::decode::<Holder>(&[1]).err().unwrap();
    assert!(matches!(&error, crate::Error::IncompatibleState(why) if why.contains("end of buffer")), "{error}");
}

#[test]
fn dimensions_are_numbers_pairs_and_triples() {
    assert_eq!(7_u32.dimensions(), [7, 1, 1]);
    assert_eq!((7_usize, 8_u64).dimensions(), [7, 8, 1]);
    assert_eq!((1, 2, -3).dimensions(), [1, 2, 0]);
}
