//! Which device the job's guests get: chosen once an attempt, opened anew for each guest.

use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;

use super::RunError;
use super::memory::in_bytes;
use super::spec::{DeviceChoice, JobSpec};
use crate::compiled::default_cache_folder;
use crate::device::cpu::{self, CpuDevice};
use crate::device::cuda::{self, Absence, CudaDevice, Found};
use crate::device::{self, Device, DeviceError};
use crate::platform::process_environment;
use crate::plugin::OpenDevice;

/// The device of an attempt.
#[derive(Clone, Debug)]
pub struct DevicePlan {
    kind: Kind,
    /// Why it is this one, where that was not said.
    why: Option<String>,
}

#[derive(Clone, Debug)]
enum Kind {
    Cpu { threads: NonZeroU32, canonical_nans: bool },
    Cuda(Found),
}

impl DevicePlan {
    /// Chooses: what is asked for by name is never replaced by another. Where nothing is said, a GPU is only looked for if it is `needed`.
    pub fn choose(spec: &JobSpec, needed: bool) -> Result<Self, RunError> {
        Self::choose_from(spec, needed, Found::look)
    }

    fn choose_from(
        spec: &JobSpec,
        needed: bool,
        look: impl Fn(u32) -> Result<Found, Absence>,
    ) -> Result<Self, RunError> {
        let cores = || NonZeroU32::try_from(cpu::Settings::all_cores()).unwrap_or(NonZeroU32::MIN);
        let threads = spec.device_threads.unwrap_or_else(cores);
        let cpu = Kind::Cpu { threads, canonical_nans: spec.canonical_nans };
        match spec.device {
            DeviceChoice::Cpu => Ok(Self { kind: cpu, why: None }),
            DeviceChoice::Auto if !needed => Ok(Self { kind: cpu, why: Some("auto: the plugin uses none".to_owned()) }),
            DeviceChoice::Auto => match look(0) {
                Ok(found) => Ok(Self { kind: Kind::Cuda(found), why: Some("auto: a GPU is here".to_owned()) }),
                Err(absence) => {
                    if absence.may_pass() {
                        tracing::warn!("Kernels run on the CPU: {absence}; {}", absence.hint());
                    }
                    Ok(Self { kind: cpu, why: Some(format!("auto: {absence}")) })
                }
            },
            asked @ DeviceChoice::Cuda(number) => {
                let found = look(number.unwrap_or(0)).map_err(|why| RunError::NoDevice { asked, why })?;
                Ok(Self { kind: Kind::Cuda(found), why: None })
            }
        }
    }

    /// The name under which checkpoints and records know it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self.kind {
            Kind::Cpu { .. } => "cpu",
            Kind::Cuda(_) => "cuda",
        }
    }

    /// Bytes that buffers may have together on a device with memory of its own.
    #[must_use]
    pub fn own_memory(&self) -> Option<u64> {
        match &self.kind {
            Kind::Cpu { .. } => None,
            Kind::Cuda(found) => Some(found.usual_budget()),
        }
    }

    /// Whether one that nobody uses takes memory all the same, so that there may be no room for two. On the CPU it takes addresses only.
    #[must_use]
    pub fn takes_memory_when_idle(&self) -> bool {
        matches!(self.kind, Kind::Cuda(_))
    }

    /// What opens it, with so many bytes for buffers.
    #[must_use]
    pub fn opener(&self, memory_bytes: u64) -> OpenDevice {
        match &self.kind {
            Kind::Cpu { threads, canonical_nans } => {
                let settings = cpu::Settings {
                    memory_bytes,
                    cores: NonZeroUsize::try_from(*threads).unwrap_or(NonZeroUsize::MIN),
                    cache: default_cache_folder(&process_environment),
                    canonical_nans: *canonical_nans,
                    vectors: true,
                };
                Arc::new(move || opened(CpuDevice::open(&settings)))
            }
            Kind::Cuda(found) => {
                let settings = cuda::Settings { number: found.number, memory_bytes };
                Arc::new(move || opened(CudaDevice::open(&settings)))
            }
        }
    }
}

impl fmt::Display for DevicePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name())?;
        match &self.kind {
            Kind::Cpu { threads, .. } => write!(f, " · {threads} thread{}", if threads.get() == 1 { "" } else { "s" })?,
            Kind::Cuda(Found { number, name, memory_bytes, cuda, .. }) => {
                write!(f, " · GPU {number}, {name}, {} · driver for CUDA {cuda}", in_bytes(*memory_bytes))?;
            }
        }
        self.why.as_ref().map_or(Ok(()), |why| write!(f, "   ({why})"))
    }
}

fn opened<E: fmt::Display>(device: Result<impl Device + 'static, E>) -> device::Result<Box<dyn Device>> {
    match device {
        Ok(device) => Ok(Box::new(device)),
        Err(error) => Err(DeviceError::Lost(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may panic")]

    use super::*;
    use crate::job::ExitCode;

    fn chosen(device: DeviceChoice, there: Result<Found, Absence>) -> Result<DevicePlan, RunError> {
        let spec = JobSpec { device, device_threads: NonZeroU32::new(3), ..JobSpec::new("a.wasm") };
        DevicePlan::choose_from(&spec, true, |number| there.clone().map(|found| Found { number, ..found }))
    }

    fn gpu() -> Found {
        let (name, cuda) = ("NVIDIA L4".to_owned(), "12.2".to_owned());
        Found { number: 0, name, capability: [8, 9], memory_bytes: 24 << 30, cuda }
    }

    #[test]
    fn a_gpu_is_taken_where_nothing_is_said_and_one_is_here() {
        let plan = |device, there| chosen(device, there).unwrap().to_string();
        let shown = "cuda · GPU 0, NVIDIA L4, 24.0 GiB · driver for CUDA 12.2";
        assert_eq!(plan(DeviceChoice::Auto, Ok(gpu())), format!("{shown}   (auto: a GPU is here)"));
        assert_eq!(plan(DeviceChoice::Cuda(None), Ok(gpu())), shown);
        assert!(plan(DeviceChoice::Cuda(Some(2)), Ok(gpu())).contains("GPU 2"));
        assert_eq!(plan(DeviceChoice::Cpu, Ok(gpu())), "cpu · 3 threads");
        assert_eq!(
            plan(DeviceChoice::Auto, Err(Absence::NoDriver)),
            "cpu · 3 threads   (auto: NVIDIA's driver is not here: no libcuda.so.1 is found)"
        );
        let spec = JobSpec { device_threads: NonZeroU32::new(1), ..JobSpec::new("a.wasm") };
        let unneeded = DevicePlan::choose_from(&spec, false, |_| panic!("nobody needs it")).unwrap();
        assert_eq!(unneeded.to_string(), "cpu · 1 thread   (auto: the plugin uses none)");
    }

    #[test]
    fn what_is_asked_for_by_name_is_never_replaced() {
        for (absence, code) in [
            (Absence::NoDriver, ExitCode::Usage),
            (Absence::NoGpu, ExitCode::Usage),
            (Absence::NoSuchGpu { asked: 1, count: 1 }, ExitCode::Usage),
            (Absence::Symbol { library: "libcuda.so.1", symbol: "cuInit" }, ExitCode::Usage),
            (Absence::Ill("cuInit answered 999".to_owned()), ExitCode::Retry),
        ] {
            for asked in [DeviceChoice::Cuda(None), DeviceChoice::Cuda(Some(1))] {
                let error = chosen(asked, Err(absence.clone())).err().unwrap();
                assert_eq!(error.exit_code(), code);
                assert_eq!(error.to_string(), format!("there is no device `{asked}` here: {absence}"));
                assert!(error.hint().unwrap().contains("--device cpu"));
            }
        }
    }
}
