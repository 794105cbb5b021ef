//! The kernels of `tests/kernels`, as a compiler makes them, against references in double precision or exact integers.
//!
//! Tolerances stand with each test: what a GPU's own approximations may differ by, not what this translation happens to reach. Inputs are
//! other ones in each run; a failure shows the seed, and `STEADFAST_PTX_SEED` brings them back.

mod cooperative;
mod elementwise;
mod subject;
mod tensor;
