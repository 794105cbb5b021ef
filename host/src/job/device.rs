//! Which device the job's guests get: chosen once an attempt, opened anew for each guest.

use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;

use super::RunError;
use super::spec::{DeviceChoice, JobSpec};
use crate::compiled::default_cache_folder;
use crate::device::cpu::{CpuDevice, Settings};
use crate::device::{self, Device, DeviceError};
use crate::platform::process_environment;
use crate::plugin::OpenDevice;

/// The device of an attempt.
#[derive(Clone, Debug)]
pub struct DevicePlan {
    threads: NonZeroU32,
    canonical_nans: bool,
    /// Why it is this one, where that was not said.
    why: Option<&'static str>,
}

impl DevicePlan {
    /// Chooses: what is asked for by name is never replaced by another.
    pub fn choose(spec: &JobSpec) -> Result<Self, RunError> {
        let cores = || NonZeroU32::try_from(Settings::all_cores()).unwrap_or(NonZeroU32::MIN);
        let threads = spec.device_threads.unwrap_or_else(cores);
        let canonical_nans = spec.canonical_nans;
        match spec.device {
            DeviceChoice::Auto => Ok(Self { threads, canonical_nans, why: Some("auto: this program has no other") }),
            DeviceChoice::Cpu => Ok(Self { threads, canonical_nans, why: None }),
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
        let settings = Settings {
            memory_bytes: memory,
            cores: NonZeroUsize::try_from(self.threads).unwrap_or(NonZeroUsize::MIN),
            cache: default_cache_folder(&process_environment),
            canonical_nans: self.canonical_nans,
        };
        Arc::new(move || open_cpu(&settings))
    }
}

impl fmt::Display for DevicePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = if self.threads.get() == 1 { "" } else { "s" };
        write!(f, "{} · {} thread{plural}", self.name(), self.threads)?;
        self.why.map_or(Ok(()), |why| write!(f, "   ({why})"))
    }
}

fn open_cpu(settings: &Settings) -> device::Result<Box<dyn Device>> {
    match CpuDevice::open(settings) {
        Ok(device) => Ok(Box::new(device)),
        Err(error) => Err(DeviceError::Lost(error.to_string())),
    }
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
