//! Whether the device opens that a run would take.

use super::Check;
use crate::job::DevicePlan;
use crate::job::spec::JobSpec;

const WHAT: &str = "device";
/// Enough to see that it opens.
const LITTLE: u64 = 64 << 20;

pub(super) fn check(spec: &JobSpec) -> Check {
    let plan = match DevicePlan::choose(spec, true) {
        Ok(plan) => plan,
        Err(error) => return Check::missing(WHAT, error.to_string(), error.hint().unwrap_or_default()),
    };
    match plan.opener(LITTLE)() {
        Ok(_) => Check::fine(WHAT, plan.to_string()),
        Err(error) => Check::missing(
            WHAT,
            format!("{} does not open: {error}", plan.name()),
            "it needs address space and threads: look at `ulimit -v` and at the container's limits",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;
    use crate::job::spec::DeviceChoice;

    #[test]
    fn a_device_that_is_asked_for_has_to_be_there() {
        let spec = |device| JobSpec { device, ..JobSpec::new("") };
        let cpu = check(&spec(DeviceChoice::Cpu));
        assert_eq!((cpu.state, cpu.found.starts_with("cpu · ")), (State::Fine, true), "{cpu:?}");
        let cuda = check(&spec(DeviceChoice::Cuda(None)));
        assert_eq!(cuda.state, State::Missing);
        assert!(cuda.advice.is_some_and(|advice| advice.contains("--device cpu")));
    }
}
