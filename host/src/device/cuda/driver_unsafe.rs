//! Every call into NVIDIA's libraries, and nothing else: the one file of this device with unsafe code.
//!
//! cudarc finds the libraries and knows their types; its functions are not called. They return an enum, and a driver that is newer than the enum
//! answers numbers that it does not have, which is undefined behaviour before anybody can look at them. A symbol that is missing panics at its first use,
//! and so does printing an error while the driver is ill. So the same symbols are bound here, all of them before the first is called, as functions that
//! return the number that they return.
//!
//! # Why this is sound
//!
//! Handles are made here alone, by the driver, and their types have no other way to come into being. A context keeps them all: it is destroyed as a
//! whole, by value, and only [`Gpu`](super::Gpu), which owns both it and every handle of it, does that, at its end. A call with a handle that the
//! driver took back earlier (an unloaded module's function) is answered with an error by the driver.
//!
//! Device addresses are numbers: the host never reads through one. A wrong one is a fault of the GPU, which the driver reports.
//!
//! Of the host's memory the driver gets two kinds. What it uses during a call is borrowed for that call. What it uses after a call, in a
//! transfer, is [`Pinned`]: no reference to it is ever made, bytes are copied in and out by address, and it is given back by [`Gpu`](super::Gpu) only after the
//! transfers are known to be over; else it stays allocated until the process ends. Copying out too early gives wrong bytes and nothing worse.
#![expect(unsafe_code, reason = "C libraries have no other interface")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use cudarc::cublas::sys::{
    self as blas, cublasComputeType_t, cublasGemmAlgo_t, cublasHandle_t, cublasMath_t, cublasOperation_t, cudaDataType,
};
use cudarc::driver::sys::{
    self as cuda, CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent, CUevent_flags, CUfunction,
    CUjit_option, CUmodule, CUstream, CUstream_flags,
};

use super::error::{Absence, Failed};

/// A table of functions that return a number, filled from a library before any of them is called.
macro_rules! functions {
    ($(#[$doc:meta])* $table:ident from $library:expr; $($name:ident($($argument:ty),*);)+) => {
        $(#[$doc])*
        #[expect(non_snake_case, reason = "named as in the library")]
        struct $table {
            $($name: unsafe extern "C" fn($($argument),*) -> u32,)+
        }

        impl $table {
            /// All of them, or the name of the first that the library lacks.
            ///
            /// # Safety
            ///
            /// The library is there.
            unsafe fn bind() -> Result<Self, &'static str> {
                // SAFETY: the caller says that it is there; loading it runs the initialisers that NVIDIA gave it.
                let library = unsafe { $library };
                Ok(Self {
                    $($name: {
                        let symbol = concat!(stringify!($name), "\0").as_bytes();
                        // SAFETY: the types are those of NVIDIA's headers, but for the result, an enum over a `u32` there.
                        let found = unsafe { library.get::<unsafe extern "C" fn($($argument),*) -> u32>(symbol) };
                        *found.map_err(|_| stringify!($name))?
                    },)+
                })
            }
        }
    };
}

functions! {
    /// Of the driver.
    DriverFunctions from cuda::culib();
    cuInit(u32);
    cuDriverGetVersion(*mut c_int);
    cuDeviceGetCount(*mut c_int);
    cuDeviceGet(*mut CUdevice, c_int);
    cuDeviceGetName(*mut c_char, c_int, CUdevice);
    cuDeviceGetAttribute(*mut c_int, CUdevice_attribute, CUdevice);
    cuDeviceTotalMem_v2(*mut usize, CUdevice);
    cuCtxCreate_v2(*mut CUcontext, u32, CUdevice);
    cuCtxDestroy_v2(CUcontext);
    cuCtxSetCurrent(CUcontext);
    cuStreamCreate(*mut CUstream, u32);
    cuEventCreate(*mut CUevent, u32);
    cuEventRecord(CUevent, CUstream);
    cuEventQuery(CUevent);
    cuMemAlloc_v2(*mut CUdeviceptr, usize);
    cuMemFree_v2(CUdeviceptr);
    cuMemHostAlloc(*mut *mut c_void, usize, u32);
    cuMemFreeHost(*mut c_void);
    cuMemcpyHtoDAsync_v2(CUdeviceptr, *const c_void, usize, CUstream);
    cuMemcpyDtoHAsync_v2(*mut c_void, CUdeviceptr, usize, CUstream);
    cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, usize, CUstream);
    cuMemsetD8Async(CUdeviceptr, u8, usize, CUstream);
    cuMemsetD32Async(CUdeviceptr, u32, usize, CUstream);
    cuModuleLoadDataEx(*mut CUmodule, *const c_void, u32, *mut CUjit_option, *mut *mut c_void);
    cuModuleUnload(CUmodule);
    cuModuleGetFunction(*mut CUfunction, CUmodule, *const c_char);
    cuModuleGetGlobal_v2(*mut CUdeviceptr, *mut usize, CUmodule, *const c_char);
    cuLaunchKernel(CUfunction, u32, u32, u32, u32, u32, u32, u32, CUstream, *mut *mut c_void, *mut *mut c_void);
}

functions! {
    /// Of cuBLAS.
    BlasFunctions from blas::culib();
    cublasCreate_v2(*mut cublasHandle_t);
    cublasDestroy_v2(cublasHandle_t);
    cublasSetStream_v2(cublasHandle_t, *mut c_void);
    cublasSetWorkspace_v2(cublasHandle_t, *mut c_void, usize);
    cublasSetMathMode(cublasHandle_t, cublasMath_t);
    cublasGemmStridedBatchedEx_64(
        cublasHandle_t, cublasOperation_t, cublasOperation_t, i64, i64, i64, *const c_void,
        *const c_void, cudaDataType, i64, i64, *const c_void, cudaDataType, i64, i64, *const c_void,
        *mut c_void, cudaDataType, i64, i64, i64, cublasComputeType_t, cublasGemmAlgo_t
    );
}

/// The driver, initialised.
pub(super) struct Driver {
    functions: DriverFunctions,
    parameters: Option<ParameterInfo>,
}

/// `cuFuncGetParamInfo`, which drivers before CUDA 12.4 lack.
type ParameterInfo = unsafe extern "C" fn(CUfunction, usize, *mut usize, *mut usize) -> u32;

/// cuBLAS.
pub(super) struct Blas(BlasFunctions);

/// A handle of the driver's or of cuBLAS', by which no memory of ours is reached. It belongs to a context and not to a thread.
macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident($type:ty);)+) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(super) struct $name($type);

        // SAFETY: the driver takes its handles from any thread, as long as their context is made current there.
        unsafe impl Send for $name {}
        // SAFETY: as above, and from several at once: of a handle itself nothing is ever written.
        unsafe impl Sync for $name {})+
    };
}

handles! {
    /// A context.
    Context(CUcontext);
    /// An order of operations.
    Stream(CUstream);
    /// A point in such an order.
    Event(CUevent);
    /// A module that the driver has compiled.
    Module(CUmodule);
    /// A kernel of a module.
    Function(CUfunction);
    /// What cuBLAS keeps.
    BlasHandle(cublasHandle_t);
}

/// A GPU, by its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ordinal(CUdevice);

/// Memory of the host that transfers go through.
#[derive(Debug)]
pub(super) struct Pinned {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: the allocation belongs to this value and to the transfers of its owner's stream, to no thread.
unsafe impl Send for Pinned {}

/// What [`Driver::event_query`] says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Progress {
    Done,
    UnderWay,
}

/// `CUDA_ERROR_NOT_READY`.
const NOT_READY: u32 = 600;
/// `CUDA_ERROR_NOT_FOUND`.
const NOT_FOUND: u32 = 500;
/// `CUDA_ERROR_INVALID_VALUE`.
const INVALID_VALUE: u32 = 1;
/// The values of `cuLaunchKernel`'s `extra` that announce a block of parameters.
const PARAMETERS_AT: usize = 1;
const PARAMETERS_SIZE_AT: usize = 2;

/// Calls a function of a table, and names it in the error.
macro_rules! call {
    ($functions:expr, $name:ident($($argument:expr),* $(,)?)) => {
        Failed::check(stringify!($name), ($functions.$name)($($argument),*))
    };
}

impl Driver {
    /// The driver of this machine. Once found it stays; where it is not, a later look may find it.
    pub(super) fn get() -> Result<&'static Self, Absence> {
        static DRIVER: OnceLock<Driver> = OnceLock::new();
        if let Some(driver) = DRIVER.get() {
            return Ok(driver);
        }
        let driver = Self::load()?;
        Ok(DRIVER.get_or_init(|| driver))
    }

    fn load() -> Result<Self, Absence> {
        // SAFETY: opening the library runs the initialisers that NVIDIA gave it.
        if !unsafe { cuda::is_culib_present() } {
            return Err(Absence::NoDriver);
        }
        // SAFETY: it was there a moment ago, and cudarc keeps it from now on.
        let functions =
            unsafe { DriverFunctions::bind() }.map_err(|symbol| Absence::Symbol { library: "libcuda.so.1", symbol })?;
        // SAFETY: as above, for one that may be missing.
        let parameters = unsafe { cuda::culib().get::<ParameterInfo>(b"cuFuncGetParamInfo\0".as_slice()) };
        let parameters = parameters.ok().map(|found| *found);
        // SAFETY: it takes a number, which must be 0, and may be called again.
        unsafe { call!(functions, cuInit(0)) }.map_err(Absence::of_init)?;
        Ok(Self { functions, parameters })
    }

    /// The newest CUDA that it serves, as 1000 × major + 10 × minor.
    pub(super) fn version(&self) -> Result<u32, Failed> {
        let mut version = 0;
        // SAFETY: it writes one number.
        unsafe { call!(self.functions, cuDriverGetVersion(&raw mut version)) }?;
        Ok(u32::try_from(version).unwrap_or_default())
    }

    /// How many GPUs there are.
    pub(super) fn count(&self) -> Result<u32, Failed> {
        let mut count = 0;
        // SAFETY: it writes one number.
        unsafe { call!(self.functions, cuDeviceGetCount(&raw mut count)) }?;
        Ok(u32::try_from(count).unwrap_or_default())
    }

    pub(super) fn device(&self, number: u32) -> Result<Ordinal, Failed> {
        let mut device = 0;
        let number = c_int::try_from(number).unwrap_or(c_int::MAX);
        // SAFETY: it writes one number.
        unsafe { call!(self.functions, cuDeviceGet(&raw mut device, number)) }?;
        Ok(Ordinal(device))
    }

    pub(super) fn name(&self, device: Ordinal) -> Result<String, Failed> {
        let mut name = [0_u8; 256];
        let most = name.len() as c_int - 1;
        // SAFETY: it writes at most that many bytes, which are one fewer than there are: the last stays 0.
        unsafe { call!(self.functions, cuDeviceGetName(name.as_mut_ptr().cast(), most, device.0)) }?;
        let name = CStr::from_bytes_until_nul(&name).map(CStr::to_string_lossy);
        Ok(name.map_or_else(|_| "a GPU without a name".to_owned(), |name| name.trim().to_owned()))
    }

    /// Its compute capability, major and minor.
    pub(super) fn capability(&self, device: Ordinal) -> Result<[u32; 2], Failed> {
        let attribute = |which| {
            let mut value = 0;
            // SAFETY: it writes one number.
            unsafe { call!(self.functions, cuDeviceGetAttribute(&raw mut value, which, device.0)) }?;
            Ok(u32::try_from(value).unwrap_or_default())
        };
        Ok([
            attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ])
    }

    /// Bytes of its memory.
    pub(super) fn memory(&self, device: Ordinal) -> Result<u64, Failed> {
        let mut bytes = 0;
        // SAFETY: it writes one number.
        unsafe { call!(self.functions, cuDeviceTotalMem_v2(&raw mut bytes, device.0)) }?;
        Ok(bytes as u64)
    }

    /// A context of its own, current in this thread.
    pub(super) fn context(&self, device: Ordinal) -> Result<Context, Failed> {
        let mut context = ptr::null_mut();
        // SAFETY: it writes one handle. Flags of 0 let the driver choose how it waits, which nobody here has it do.
        unsafe { call!(self.functions, cuCtxCreate_v2(&raw mut context, 0, device.0)) }?;
        Ok(Context(context))
    }

    /// Destroys a context and all that belongs to it.
    pub(super) fn destroy(&self, context: Context) -> Result<(), Failed> {
        // SAFETY: the handle is the driver's; its owner uses nothing of it afterwards, as the head of this file says.
        unsafe { call!(self.functions, cuCtxDestroy_v2(context.0)) }
    }

    /// Makes a context current in this thread.
    pub(super) fn bind(&self, context: Context) -> Result<(), Failed> {
        // SAFETY: the handle is the driver's.
        unsafe { call!(self.functions, cuCtxSetCurrent(context.0)) }
    }

    pub(super) fn stream(&self) -> Result<Stream, Failed> {
        let mut stream = ptr::null_mut();
        let flags = CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: it writes one handle.
        unsafe { call!(self.functions, cuStreamCreate(&raw mut stream, flags)) }?;
        Ok(Stream(stream))
    }

    pub(super) fn event(&self) -> Result<Event, Failed> {
        let mut event = ptr::null_mut();
        let flags = CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: it writes one handle.
        unsafe { call!(self.functions, cuEventCreate(&raw mut event, flags)) }?;
        Ok(Event(event))
    }

    /// Has the event stand for all that the stream was given so far.
    pub(super) fn record(&self, event: Event, stream: Stream) -> Result<(), Failed> {
        // SAFETY: both handles are the driver's.
        unsafe { call!(self.functions, cuEventRecord(event.0, stream.0)) }
    }

    /// Whether what an event stands for is done. Does not wait.
    pub(super) fn event_query(&self, event: Event) -> Result<Progress, Failed> {
        // SAFETY: the handle is the driver's.
        match unsafe { call!(self.functions, cuEventQuery(event.0)) } {
            Ok(()) => Ok(Progress::Done),
            Err(failed) if failed.code == NOT_READY => Ok(Progress::UnderWay),
            Err(failed) => Err(failed),
        }
    }

    /// Device memory; not for 0 bytes.
    pub(super) fn allocate(&self, bytes: u64) -> Result<u64, Failed> {
        let mut address = 0;
        // SAFETY: it writes one address. A length that does not fit is one that no GPU has.
        unsafe {
            call!(self.functions, cuMemAlloc_v2(&raw mut address, usize::try_from(bytes).unwrap_or(usize::MAX)))
        }?;
        Ok(address)
    }

    pub(super) fn free(&self, address: u64) -> Result<(), Failed> {
        // SAFETY: a device address; what the driver does not know it refuses.
        unsafe { call!(self.functions, cuMemFree_v2(address)) }
    }

    pub(super) fn pin(&self, bytes: usize) -> Result<Pinned, Failed> {
        let mut start = ptr::null_mut();
        // SAFETY: it writes one address. Flags of 0: memory that is combined for writing would be dreadfully slow to read.
        unsafe { call!(self.functions, cuMemHostAlloc(&raw mut start, bytes, 0)) }?;
        Ok(Pinned { start: start.cast(), bytes })
    }

    /// Gives pinned memory back. No transfer may be at it: see the head of this file.
    pub(super) fn unpin(&self, pinned: Pinned) -> Result<(), Failed> {
        // SAFETY: the driver's own address, given back once, since this takes the only value that holds it.
        unsafe { call!(self.functions, cuMemFreeHost(pinned.start.cast())) }
    }

    /// Orders a transfer to the device from `bytes` bytes of pinned memory.
    pub(super) fn upload(&self, to: u64, from: &Pinned, at: usize, bytes: usize, stream: Stream) -> Result<(), Failed> {
        let start = from.range(at, bytes);
        // SAFETY: the range lies in pinned memory, which outlives the transfer.
        unsafe { call!(self.functions, cuMemcpyHtoDAsync_v2(to, start.cast_const().cast(), bytes, stream.0)) }
    }

    /// Orders a transfer from the device to pinned memory.
    pub(super) fn download(&self, to: &Pinned, from: u64, bytes: usize, stream: Stream) -> Result<(), Failed> {
        let start = to.range(0, bytes);
        // SAFETY: the range lies in pinned memory, which outlives the transfer.
        unsafe { call!(self.functions, cuMemcpyDtoHAsync_v2(start.cast(), from, bytes, stream.0)) }
    }

    /// Orders a copy on the device, between ranges that are apart.
    pub(super) fn copy(&self, to: u64, from: u64, bytes: u64, stream: Stream) -> Result<(), Failed> {
        // SAFETY: device addresses.
        unsafe { call!(self.functions, cuMemcpyDtoDAsync_v2(to, from, bytes as usize, stream.0)) }
    }

    pub(super) fn zero(&self, address: u64, bytes: u64, stream: Stream) -> Result<(), Failed> {
        // SAFETY: a device address.
        unsafe { call!(self.functions, cuMemsetD8Async(address, 0, bytes as usize, stream.0)) }
    }

    pub(super) fn fill(&self, address: u64, pattern: u32, words: u64, stream: Stream) -> Result<(), Failed> {
        // SAFETY: a device address.
        unsafe { call!(self.functions, cuMemsetD32Async(address, pattern, words as usize, stream.0)) }
    }

    /// Has the driver compile PTX; with the error comes what its compiler says.
    pub(super) fn load_module(&self, text: &CStr) -> Result<Module, (Failed, String)> {
        const LOG: usize = 16 << 10;
        let mut log = vec![0_u8; LOG];
        let mut names = [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        // Numbers are passed in the place of pointers. The driver writes back how much of the log it has used.
        let mut values = [log.as_mut_ptr().cast(), ptr::without_provenance_mut::<c_void>(LOG - 1)];
        let mut module = ptr::null_mut();
        let count = names.len() as u32;
        // SAFETY: the text ends with a NUL; both arrays have `count` entries; of the log the driver gets one byte fewer than there are, so that the
        // last stays 0.
        let loaded = unsafe {
            call!(
                self.functions,
                cuModuleLoadDataEx(
                    &raw mut module,
                    text.as_ptr().cast(),
                    count,
                    names.as_mut_ptr(),
                    values.as_mut_ptr()
                )
            )
        };
        loaded.map(|()| Module(module)).map_err(|failed| {
            let said = CStr::from_bytes_until_nul(&log).map(CStr::to_string_lossy).unwrap_or_default();
            (failed, said.trim().to_owned())
        })
    }

    pub(super) fn unload(&self, module: Module) -> Result<(), Failed> {
        // SAFETY: the handle is the driver's.
        unsafe { call!(self.functions, cuModuleUnload(module.0)) }
    }

    /// An entry of a module, if it has one of this name.
    pub(super) fn function(&self, module: Module, name: &CStr) -> Result<Option<Function>, Failed> {
        let mut function = ptr::null_mut();
        // SAFETY: it writes one handle; the name ends with a NUL.
        match unsafe { call!(self.functions, cuModuleGetFunction(&raw mut function, module.0, name.as_ptr())) } {
            Ok(()) => Ok(Some(Function(function))),
            Err(failed) if failed.code == NOT_FOUND => Ok(None),
            Err(failed) => Err(failed),
        }
    }

    /// Bytes of a kernel's parameters, where the driver can tell.
    pub(super) fn parameter_bytes(&self, function: Function) -> Result<Option<usize>, Failed> {
        let Some(info) = self.parameters else { return Ok(None) };
        let mut end = 0;
        for index in 0.. {
            let (mut offset, mut size) = (0, 0);
            // SAFETY: it writes two numbers; the handle is the driver's.
            match Failed::check("cuFuncGetParamInfo", unsafe {
                info(function.0, index, &raw mut offset, &raw mut size)
            }) {
                Ok(()) => end = end.max(offset.saturating_add(size)),
                // There is no parameter of this number.
                Err(failed) if failed.code == INVALID_VALUE => break,
                Err(failed) => return Err(failed),
            }
        }
        Ok(Some(end))
    }

    /// Where a module's variable is, if the driver kept it.
    pub(super) fn variable(&self, module: Module, name: &CStr) -> Result<Option<(u64, u64)>, Failed> {
        let (mut address, mut bytes) = (0, 0);
        // SAFETY: it writes two numbers; the name ends with a NUL.
        let found = unsafe {
            call!(self.functions, cuModuleGetGlobal_v2(&raw mut address, &raw mut bytes, module.0, name.as_ptr()))
        };
        match found {
            Ok(()) => Ok(Some((address, bytes as u64))),
            Err(failed) if failed.code == NOT_FOUND => Ok(None),
            Err(failed) => Err(failed),
        }
    }

    /// Orders a kernel. The block of parameters says its own size, so that the driver reads no further whatever the kernel takes.
    pub(super) fn launch(
        &self,
        function: Function,
        [grid, block]: [[u32; 3]; 2],
        shared_bytes: u32,
        parameters: &[u8],
        stream: Stream,
    ) -> Result<(), Failed> {
        let mut size = parameters.len();
        let mut extra: [*mut c_void; 5] = [
            ptr::without_provenance_mut(PARAMETERS_AT),
            parameters.as_ptr().cast_mut().cast(),
            ptr::without_provenance_mut(PARAMETERS_SIZE_AT),
            (&raw mut size).cast(),
            ptr::null_mut(),
        ];
        let extra = if parameters.is_empty() { ptr::null_mut() } else { extra.as_mut_ptr() };
        let ([gx, gy, gz], [bx, by, bz]) = (grid, block);
        // SAFETY: the driver copies the parameters during the call. What the kernel does then happens on the device.
        unsafe {
            call!(
                self.functions,
                cuLaunchKernel(function.0, gx, gy, gz, bx, by, bz, shared_bytes, stream.0, ptr::null_mut(), extra)
            )
        }
    }
}

impl Pinned {
    /// Its size.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The address of a range, which has to lie in it.
    fn range(&self, at: usize, bytes: usize) -> *mut u8 {
        assert!(at <= self.bytes && bytes <= self.bytes - at, "a range beyond pinned memory");
        // SAFETY: within the allocation, or one behind its end, as was just made sure.
        unsafe { self.start.add(at) }
    }

    /// Copies `bytes` in, from `at` on.
    pub(super) fn put(&mut self, at: usize, bytes: &[u8]) {
        let start = self.range(at, bytes.len());
        // SAFETY: the range is ours; a slice of safe code cannot lie in memory that no reference was ever made of.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len()) };
    }

    /// Copies bytes out, from the beginning on.
    pub(super) fn take(&self, bytes: &mut [u8]) {
        let start = self.range(0, bytes.len());
        // SAFETY: as above. Pinned memory has a content from the beginning, if no particular one.
        unsafe { ptr::copy_nonoverlapping(start, bytes.as_mut_ptr(), bytes.len()) };
    }
}

/// A factor or the result of a product, as cuBLAS takes it.
#[derive(Clone, Copy)]
pub(super) struct Operand {
    pub(super) address: u64,
    pub(super) leading: i64,
    pub(super) stride: i64,
    pub(super) transpose: bool,
}

/// A number that the product is multiplied by, in the type that sums are made in.
#[derive(Clone, Copy)]
pub(super) enum Scale {
    Single(f32),
    Double(f64),
}

impl Scale {
    fn address(&self) -> *const c_void {
        match self {
            Self::Single(number) => ptr::from_ref(number).cast(),
            Self::Double(number) => ptr::from_ref(number).cast(),
        }
    }
}

/// A product, with nothing left to check.
pub(super) struct Product {
    pub(super) numbers: cudaDataType,
    pub(super) sums: cublasComputeType_t,
    pub(super) shape: [i64; 3],
    pub(super) alpha: Scale,
    pub(super) a: Operand,
    pub(super) b: Operand,
    pub(super) beta: Scale,
    pub(super) c: Operand,
    pub(super) batch: i64,
}

impl Blas {
    /// cuBLAS of this machine.
    pub(super) fn get() -> Result<&'static Self, Absence> {
        static BLAS: OnceLock<Blas> = OnceLock::new();
        if let Some(blas) = BLAS.get() {
            return Ok(blas);
        }
        // SAFETY: opening the library runs the initialisers that NVIDIA gave it.
        if !unsafe { blas::is_culib_present() } {
            return Err(Absence::NoBlas);
        }
        // SAFETY: it was there a moment ago, and cudarc keeps it from now on.
        let functions = unsafe { BlasFunctions::bind() }
            .map_err(|symbol| Absence::Symbol { library: "libcublas.so.12", symbol })?;
        Ok(BLAS.get_or_init(|| Self(functions)))
    }

    /// A handle in the current context, whose work goes to `stream` and uses no other memory than `workspace`.
    pub(super) fn handle(&self, stream: Stream, (address, bytes): (u64, u64)) -> Result<BlasHandle, Failed> {
        let mut handle = ptr::null_mut();
        // SAFETY: it writes one handle.
        unsafe { call!(self.0, cublasCreate_v2(&raw mut handle)) }?;
        let handle = BlasHandle(handle);
        // Without it, sums of 16 bits might be made in 16 bits.
        let math = cublasMath_t::CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION;
        // SAFETY: the handle is the library's.
        let set = unsafe { call!(self.0, cublasSetMathMode(handle.0, math)) };
        // SAFETY: the stream's handle is the driver's, which the library shares. It belongs to the current context.
        let set = set.and_then(|()| unsafe { call!(self.0, cublasSetStream_v2(handle.0, stream.0.cast())) });
        let workspace = ptr::without_provenance_mut(address as usize);
        // SAFETY: a device address.
        let set =
            set.and_then(|()| unsafe { call!(self.0, cublasSetWorkspace_v2(handle.0, workspace, bytes as usize)) });
        if let Err(failed) = set {
            let _ = self.destroy(handle);
            return Err(failed);
        }
        Ok(handle)
    }

    pub(super) fn destroy(&self, handle: BlasHandle) -> Result<(), Failed> {
        // SAFETY: the handle is the library's; its owner forgets it.
        unsafe { call!(self.0, cublasDestroy_v2(handle.0)) }
    }

    /// Orders a product.
    pub(super) fn multiply(&self, handle: BlasHandle, product: &Product) -> Result<(), Failed> {
        let Product { numbers, sums, shape: [m, n, k], alpha, a, b, beta, c, batch } = product;
        let operation = |operand: &Operand| match operand.transpose {
            true => cublasOperation_t::CUBLAS_OP_T,
            false => cublasOperation_t::CUBLAS_OP_N,
        };
        let at = |operand: &Operand| ptr::without_provenance_mut::<c_void>(operand.address as usize);
        // SAFETY: the matrices are device addresses; both scales are of the type that the sums are made in, and are read during the call.
        unsafe {
            call!(
                self.0,
                cublasGemmStridedBatchedEx_64(
                    handle.0,
                    operation(a),
                    operation(b),
                    *m,
                    *n,
                    *k,
                    alpha.address(),
                    at(a).cast_const(),
                    *numbers,
                    a.leading,
                    a.stride,
                    at(b).cast_const(),
                    *numbers,
                    b.leading,
                    b.stride,
                    beta.address(),
                    at(c),
                    *numbers,
                    c.leading,
                    c.stride,
                    *batch,
                    *sums,
                    cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
                )
            )
        }
    }
}

/// From now on the process ends without the libraries' own work at exit: it would wait for a kernel that nobody can stop.
pub(super) fn leave_without_driver() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        // SAFETY: the function is one, and lives as long as the process. What is registered last runs first, so before the driver's.
        let _ = unsafe { on_exit(leave, ptr::null_mut()) };
    });
}

unsafe extern "C" {
    /// Of glibc: has `function` called at exit with the exit code.
    fn on_exit(function: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

extern "C" fn leave(code: c_int, _: *mut c_void) {
    // SAFETY: ends the process; the standard library has flushed its streams before this is called.
    unsafe { libc::_exit(code) }
}
