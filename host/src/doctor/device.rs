//! Whether the device opens that a run would take.

use super::Check;
use crate::device::cuda::lacks_blas;
use crate::job::DevicePlan;
use crate::job::spec::{DeviceChoice, JobSpec};

const WHAT: &str = "device";
/// Enough to see that it opens.
const LITTLE: u64 = 64 << 20;

pub(super) fn checks(spec: &JobSpec) -> Vec<Check> {
    let plan = match DevicePlan::choose(spec, true) {
        Ok(plan) => plan,
        Err(error) => {
            let check = Check::missing(WHAT, error.to_string(), error.hint().unwrap_or_default());
            // Whoever sets a GPU up learns all that it lacks at once.
            let products = matches!(spec.device, DeviceChoice::Cuda(_)).then(products);
            return [Some(check), products].into_iter().flatten().collect();
        }
    };
    let check = match plan.opener(LITTLE)() {
        Ok(_) => Check::fine(WHAT, plan.to_string()),
        Err(error) => Check::missing(WHAT, format!("{} does not open: {error}", plan.name()), needs(&plan)),
    };
    let products = plan.own_memory().is_some().then(products);
    [Some(check), products].into_iter().flatten().collect()
}

fn needs(plan: &DevicePlan) -> &'static str {
    match plan.own_memory() {
        None => "it needs address space and threads: look at `ulimit -v` and at the container's limits",
        Some(_) => "it needs some memory of the GPU, and a driver that works: look at nvidia-smi",
    }
}

/// Products on a GPU need a library beside the driver.
fn products() -> Check {
    const WHAT: &str = "cuBLAS";
    match lacks_blas() {
        None => Check::fine(WHAT, "here"),
        Some(absence) => Check::note(WHAT, absence.to_string(), absence.hint()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn a_device_that_is_asked_for_has_to_be_there() {
        let spec = |device| JobSpec { device, ..JobSpec::new("") };
        let cpu = checks(&spec(DeviceChoice::Cpu));
        assert!(cpu.len() == 1 && cpu[0].state == State::Fine && cpu[0].found.starts_with("cpu · "), "{cpu:?}");
        let none = checks(&spec(DeviceChoice::Cuda(Some(u32::MAX))));
        assert_eq!(none.iter().map(|check| check.what).collect::<Vec<_>>(), [WHAT, "cuBLAS"]);
        assert_eq!(none[0].state, State::Missing);
        assert!(none[0].advice.as_ref().is_some_and(|advice| advice.contains("--device cpu")));
    }
}
