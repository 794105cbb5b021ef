//! Which device the job's guests get: chosen once an attempt, opened anew for each guest.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;

use super::RunError;
use super::spec::{DeviceChoice, JobSpec};
use crate::device::{self, Device};
use crate::plugin::OpenDevice;

/// The device of an attempt.
#[derive(Clone, Debug)]
pub struct DevicePlan {
    threads: NonZeroU32,
    /// Why it is this one, where that was not said.
    why: Option<&'static str>,
}

impl DevicePlan {
    /// Chooses: what is asked for by name is never replaced by another.
    pub fn choose(spec: &JobSpec) -> Result<Self, RunError> {
        let threads = spec.device_threads.unwrap_or_else(|| {
            let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
            u32::try_from(cores).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN)
        });
        match spec.device {
            DeviceChoice::Auto => Ok(Self { threads, why: Some("auto: this program has no other") }),
            DeviceChoice::Cpu => Ok(Self { threads, why: None }),
            asked @ DeviceChoice::Cuda(_) => Err(RunError::NoDevice { asked }),
        }
    }

    /// The name under which checkpoints and records know it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        "cpu"
    }

    /// What opens it, with so many bytes for buffers.
    #[must_use]
    pub fn opener(&self, memory: u64) -> OpenDevice {
        let threads = self.threads;
        Arc::new(move || open_cpu(memory, threads))
    }
}

impl fmt::Display for DevicePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.threads.get() == 1 { "" } else { "s" };
        write!(f, "{} · {} thread{plural}", self.name(), self.threads)?;
        self.why.map_or(Ok(()), |why| write!(f, "   ({why})"))
    }
}

fn open_cpu(_memory: u64, _threads: NonZeroU32) -> device::Result<Box<dyn Device>> {
    Err(device::DeviceError::Lost("this program has no CPU device".to_owned()))
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use crate::job::ExitCode;

    fn chosen(device: DeviceChoice) -> Result<DevicePlan, RunError> {
        DevicePlan::choose(&JobSpec { device, device_threads: NonZeroU32::new(3), ..JobSpec::new("a.wasm") })
    }

    #[test]
    fn what_is_asked_for_by_name_is_never_replaced() {
        assert_eq!(
            chosen(DeviceChoice::Auto).unwrap().to_string(),
            "cpu · 3 threads   (auto: this program has no other)"
        );
        assert_eq!(chosen(DeviceChoice::Cpu).unwrap().to_string(), "cpu · 3 threads");
        for asked in [DeviceChoice::Cuda(None), DeviceChoice::Cuda(Some(1))] {
            let error = chosen(asked).err().unwrap();
            assert_eq!(error.exit_code(), ExitCode::Usage);
            assert_eq!(
                error.to_string(),
                format!("there is no device `{asked}` here: this program has none but the CPU")
            );
            assert!(error.hint().unwrap().contains("--device cpu"));
        }
    }
}
