//! Faults on request: a layer over a volume that counts operations and makes chosen ones fail.
//!
//! It stands on the real path, so what a rehearsal shows is what a bad disk or a killed process would show. The model is a
//! bucket mount, the strictest of the volumes: **data is sure only after `close` succeeded**. So when the process dies by
//! [`FaultKind::Kill`], files that were created and not yet closed are cut to half first, whether or not they were synced or
//! already renamed; and so are those whose close failed by [`FaultKind::LoseClose`], which until then read as if all were well.
//!
//! **What this deliberately does not do.** It invents no faults of its own and knows nothing of checkpoints: which operation
//! fails is the caller's plan. It does not model listings that lag.

mod faulty;
mod plan;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::sync::Arc;

pub use faulty::Faulty;
pub use plan::{FaultKind, FaultPlan, FaultPlanError};

use super::volume::Volume;

/// The plan: `N:kind[,N:kind…]`, operations counted from 1.
pub const FAULTS_VARIABLE: &str = "STEADFAST_FAULTS";
/// A file to which every operation is appended, as `N operation path`.
pub const TRACE_VARIABLE: &str = "STEADFAST_FAULT_TRACE";

/// Puts the layer over a volume if the environment asks for it, else gives back the volume itself.
pub fn from_env(volume: Arc<dyn Volume>) -> Result<Arc<dyn Volume>, FaultPlanError> {
    let plan = FaultPlan::from_env()?;
    let trace = std::env::var_os(TRACE_VARIABLE).filter(|path| !path.is_empty());
    if plan.is_empty() && trace.is_none() {
        return Ok(volume);
    }
    let faulty = Faulty::new(volume, plan);
    Ok(Arc::new(match trace {
        Some(path) => faulty.with_trace(open_trace(path)?),
        None => faulty,
    }))
}

fn open_trace(path: OsString) -> Result<std::fs::File, FaultPlanError> {
    let file = OpenOptions::new().append(true).create(true).open(&path);
    file.map_err(|cause| FaultPlanError::Trace { path: path.into(), cause })
}
