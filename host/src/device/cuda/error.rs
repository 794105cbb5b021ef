//! What the driver and cuBLAS answer, in words. Nothing here calls them: a driver that is ill is not asked what it means.

use std::fmt;

/// A call that did not do what it was asked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Failed {
    /// The function, as its library names it.
    pub(super) call: &'static str,
    /// What it answered: any number, also one that nobody has heard of.
    pub(super) code: u32,
}

impl Failed {
    pub(super) fn check(call: &'static str, code: u32) -> Result<(), Self> {
        if code == 0 { Ok(()) } else { Err(Self { call, code }) }
    }

    /// Whether it is for want of memory. The two libraries count differently.
    pub(super) fn is_out_of_memory(self) -> bool {
        self.code == if self.is_of_blas() { 3 } else { 2 }
    }

    /// Whether the text of a module is to blame, and not the device.
    pub(super) fn is_of_the_text(self) -> bool {
        matches!(self.code, NO_BINARY | INVALID_PTX | UNSUPPORTED_PTX | 200 | 221 | 223 | 300 | 301 | 302 | 303)
    }

    fn is_of_blas(self) -> bool {
        self.call.starts_with("cublas")
    }
}

/// The GPU cannot run what the module was made for.
pub(super) const NO_BINARY: u32 = 209;
/// The text is wrong.
pub(super) const INVALID_PTX: u32 = 218;
/// The text is of a later version than the driver knows.
pub(super) const UNSUPPORTED_PTX: u32 = 222;
/// A launch needs more registers or memory than a processor of the GPU has.
pub(super) const OUT_OF_RESOURCES: u32 = 701;

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, code } = self;
        let known = if self.is_of_blas() { BLAS } else { DRIVER };
        match known.iter().find(|(known, _)| known == code) {
            Some((_, meaning)) => write!(f, "{call} answered {code}, {meaning}"),
            None => write!(f, "{call} answered {code}, which this program does not know"),
        }
    }
}

type Meanings = &'static [(u32, &'static str)];

/// `CUresult`, as far as it says something.
const DRIVER: Meanings = &[
    (1, "an argument is wrong"),
    (2, "out of memory"),
    (3, "the driver is not initialised"),
    (4, "the driver is shutting down"),
    (34, "the library is a stub for linking, and no driver"),
    (36, "the call needs a newer driver"),
    (46, "the device is in use by another process, or not to be had"),
    (100, "there is no GPU that this process may use"),
    (101, "there is no GPU of this number"),
    (102, "the GPU has no valid licence"),
    (201, "the context is gone"),
    (NO_BINARY, "the module is for another kind of GPU"),
    (214, "an error of the GPU's memory that could not be corrected"),
    (INVALID_PTX, "the PTX is wrong"),
    (220, "the link between GPUs failed"),
    (221, "the driver's compiler is not there"),
    (UNSUPPORTED_PTX, "the PTX is of a later version than the driver knows"),
    (226, "a contained error of the GPU's memory"),
    (304, "the operating system refused a call"),
    (400, "a handle is wrong"),
    (500, "there is nothing of this name"),
    (700, "a kernel used an address that it has no right to"),
    (OUT_OF_RESOURCES, "the launch needs more than a processor of the GPU has"),
    (702, "a kernel ran too long for the driver"),
    (710, "an assertion of a kernel does not hold"),
    (713, "the address given back is none that was taken"),
    (714, "a kernel's stack or an address of it is broken"),
    (715, "a kernel executed an instruction that there is none of"),
    (716, "a kernel used an address that is no multiple of the access's size"),
    (717, "a kernel used an address of the wrong kind of memory"),
    (718, "a kernel jumped to where no program is"),
    (719, "a kernel failed"),
    (801, "the driver does not support this"),
    (802, "the system is not ready yet"),
    (803, "the driver in the kernel and its library are of different versions"),
    (804, "this GPU does not take the compatibility library of a newer driver"),
    (999, "unknown, to the driver too"),
];

/// `cublasStatus_t`.
const BLAS: Meanings = &[
    (1, "cuBLAS is not initialised"),
    (3, "out of memory"),
    (7, "an argument is wrong"),
    (8, "this GPU cannot do it"),
    (11, "the GPU's memory could not be reached"),
    (13, "the GPU failed"),
    (14, "an error within cuBLAS"),
    (15, "cuBLAS does not support this"),
    (16, "a licence is missing"),
];

/// Why a machine has no GPU for us.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Absence {
    /// No library.
    #[error("NVIDIA's driver is not here: no libcuda.so.1 is found")]
    NoDriver,
    /// No library.
    #[error("cuBLAS is not here: no libcublas.so.12 is found")]
    NoBlas,
    /// A library that is too old, or none of NVIDIA's.
    #[error("{library} lacks the function `{symbol}`")]
    Symbol {
        /// The library.
        library: &'static str,
        /// The first function that it lacks.
        symbol: &'static str,
    },
    /// No GPU at all, or none that this process may use.
    #[error("the driver is here, and no GPU that this process may use")]
    NoGpu,
    /// Another number than there are.
    #[error("there is no GPU {asked}: there {}", are(*.count))]
    NoSuchGpu {
        /// The number asked for.
        asked: u32,
        /// How many there are.
        count: u32,
    },
    /// The driver is there and does not work.
    #[error("NVIDIA's driver does not work: {0}")]
    Ill(String),
}

fn are(count: u32) -> String {
    match count {
        1 => "is one, number 0".to_owned(),
        count => format!("are {count}, from number 0 on"),
    }
}

impl Absence {
    pub(super) fn of_init(failed: Failed) -> Self {
        // Both say that there is nothing to be had here, and not that something is broken.
        if matches!(failed.code, 34 | 100) { Self::NoGpu } else { Self::Ill(failed.to_string()) }
    }

    /// Whether another attempt may find a better answer.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Ill(_))
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NoDriver => {
                "start the container with NVIDIA's runtime (--gpus all), or put the folder of libcuda.so.1 into LD_LIBRARY_PATH"
            }
            Self::NoBlas => {
                "take the image's stage `cuda`, or put the folder of libcublas.so.12 into LD_LIBRARY_PATH; only gemm needs it"
            }
            Self::Symbol { .. } => "install NVIDIA's driver R535 or later, and CUDA 12's libraries with it",
            Self::NoGpu => "ask the platform for a GPU (--gpus all, nvidia.com/gpu), and look at CUDA_VISIBLE_DEVICES",
            Self::NoSuchGpu { .. } => "say --device cuda for the first, or another number",
            Self::Ill(_) => "run nvidia-smi: what it says of the driver or the GPU is the cause",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_words() {
        let said = |call, code| Failed { call, code }.to_string();
        assert_eq!(
            said("cuInit", 803),
            "cuInit answered 803, the driver in the kernel and its library are of different versions"
        );
        assert_eq!(said("cuInit", 4711), "cuInit answered 4711, which this program does not know");
        assert_eq!(said("cublasCreate_v2", 3), "cublasCreate_v2 answered 3, out of memory");
        assert_eq!(
            said("cublasCreate_v2", u32::MAX),
            "cublasCreate_v2 answered 4294967295, which this program does not know"
        );
        let memory = |call, code| Failed { call, code }.is_out_of_memory();
        assert_eq!(
            [memory("cuMemAlloc_v2", 2), memory("cublasCreate_v2", 2), memory("cublasCreate_v2", 3)],
            [true, false, true]
        );
    }
}
