//! NVIDIA's driver with nothing around it: what a program written for nothing else would call.
//!
//! What it takes stays until the process ends.

use std::ffi::{CStr, c_void};
use std::ptr::null_mut;

use anyhow::{Result, ensure};
use cudarc::driver::sys::{self as cuda, CUcontext, CUdeviceptr, CUevent, CUfunction, CUresult, CUstream};

/// Bytes of the pinned piece: far more than the bus needs for its full speed.
const PINNED: usize = 64 << 20;

/// A context of the first GPU, with an entry to launch and memory to fetch.
pub struct Raw {
    context: CUcontext,
    stream: CUstream,
    mark: CUevent,
    entry: CUfunction,
    memory: CUdeviceptr,
    bytes: u64,
    pinned: *mut c_void,
}

/// A call that has to succeed.
macro_rules! call {
    ($name:ident($($argument:expr),*)) => {{
        // SAFETY: `Raw::open` makes every handle and address before it is used, of the sizes and types that NVIDIA's headers have; none is ever given back.
        let answer = unsafe { cuda::$name($($argument),*) };
        ensure!(answer == CUresult::CUDA_SUCCESS, "{} answered {}", stringify!($name), answer as u32);
    }};
}

impl Raw {
    #[expect(unsafe_code, reason = "the driver is a C library")]
    pub fn open(text: &CStr, name: &CStr, bytes: u64) -> Result<Self> {
        let (mut device, mut module) = (0, null_mut());
        let (mut context, mut stream, mut mark, mut entry) = (null_mut(), null_mut(), null_mut(), null_mut());
        let (mut memory, mut pinned) = (0, null_mut());
        call!(cuInit(0));
        call!(cuDeviceGet(&raw mut device, 0));
        call!(cuCtxCreate_v2(&raw mut context, 0, device));
        // Beside the stream that waits for all others; no times in events.
        call!(cuStreamCreate(&raw mut stream, 1));
        call!(cuEventCreate(&raw mut mark, 2));
        call!(cuModuleLoadDataEx(&raw mut module, text.as_ptr().cast(), 0, null_mut(), null_mut()));
        call!(cuModuleGetFunction(&raw mut entry, module, name.as_ptr()));
        call!(cuMemAlloc_v2(&raw mut memory, bytes as usize));
        call!(cuMemHostAlloc(&raw mut pinned, PINNED, 0));
        Ok(Self { context, stream, mark, entry, memory, bytes, pinned })
    }

    /// So many launches, and what they take.
    #[expect(unsafe_code, reason = "the driver is a C library")]
    pub fn launch(&self, times: u32) -> Result<()> {
        call!(cuCtxSetCurrent(self.context));
        for _ in 0..times {
            call!(cuLaunchKernel(self.entry, 1, 1, 1, 1, 1, 1, 0, self.stream, null_mut(), null_mut()));
        }
        self.wait()
    }

    /// All of the memory, piece after piece to the same place.
    #[expect(unsafe_code, reason = "the driver is a C library")]
    pub fn download(&self) -> Result<()> {
        call!(cuCtxSetCurrent(self.context));
        for offset in (0..self.bytes).step_by(PINNED) {
            let bytes = (self.bytes - offset).min(PINNED as u64) as usize;
            call!(cuMemcpyDtoHAsync_v2(self.pinned, self.memory + offset, bytes, self.stream));
        }
        self.wait()
    }

    /// As the host waits: by asking.
    #[expect(unsafe_code, reason = "the driver is a C library")]
    fn wait(&self) -> Result<()> {
        call!(cuEventRecord(self.mark, self.stream));
        loop {
            // SAFETY: as above.
            match unsafe { cuda::cuEventQuery(self.mark) } {
                CUresult::CUDA_ERROR_NOT_READY => std::thread::yield_now(),
                answer => {
                    ensure!(answer == CUresult::CUDA_SUCCESS, "cuEventQuery answered {}", answer as u32);
                    return Ok(());
                }
            }
        }
    }
}
