//! Whether the translation is right: compared with an oracle, with PTX's own words and with references.
//!
//! | module | what it is about |
//! |---|---|
//! | `cooperation` | barriers of some warps, calls, spaces, special registers |
//! | `hostile` | kernels that mean harm |
//! | `instructions` | each instruction on the values at which instructions go wrong |
//! | `interpreter` | a translated kernel without a compiler |
//! | `kernels` | random kernels |
//! | `lanes` | kernels that run as the lanes of vectors |
//! | `lockstep` | groups that part and come together again |
//! | `matrices` | products and moves of matrices by a whole warp |
//! | `oracle` | the interpreter that both are compared with |
//! | `references` | kernels that a compiler made, against references |
//! | `rig` | a kernel from its text, run by the oracle and as the translation |
//! | `machine` | a translated kernel in wasmtime |
//! | `random` | numbers by chance, and edges |
//! | `side_by_side` | several groups of lanes at a time |

#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod cooperation;
mod hostile;
mod instructions;
mod interpreter;
mod kernels;
mod lanes;
mod lockstep;
mod machine;
mod matrices;
mod oracle;
mod random;
mod references;
mod rig;
mod side_by_side;
mod warps;
