//! The functions, as C has them.
//!
//! Each trusts its caller as a C library does: pointers are those that NVIDIA's headers ask for. That holds for the one caller that there is, the CUDA device's
//! `driver_unsafe`.
#![expect(unsafe_code, reason = "a C library has no other interface")]
#![expect(clippy::too_many_arguments, reason = "as many as NVIDIA's headers have")]
#![expect(
    unsafe_op_in_unsafe_fn,
    reason = "every function here is the caller's word for what its headers say, as a whole"
)]

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use steadfast::device::Element;

use crate::bench::{Operand, Product};
use crate::code;
use crate::gpu::{Gpu, handle};
use crate::settings::SETTINGS;

static INITIALIZED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static CURRENT: Cell<u64> = const { Cell::new(0) };
}

/// Pinned memory: address and length.
static PINNED: LazyLock<Mutex<BTreeMap<usize, usize>>> = LazyLock::new(Mutex::default);
/// cuBLAS' handles, and whether they have all that a deterministic product needs.
static BLAS: LazyLock<Mutex<HashMap<u64, Multiplier>>> = LazyLock::new(Mutex::default);

#[derive(Clone, Copy, Default)]
struct Multiplier {
    /// 0 where none was set.
    stream: u64,
    workspace: bool,
    exact: bool,
}

fn initialized() -> Result<(), u32> {
    if INITIALIZED.load(Ordering::SeqCst) { Ok(()) } else { Err(code::NOT_INITIALIZED) }
}

/// The thread's context, unless a kernel of it has failed.
fn current() -> Result<Arc<Gpu>, u32> {
    initialized()?;
    let gpu = Gpu::of(CURRENT.get())?;
    gpu.well()?;
    Ok(gpu)
}

fn is_gpu(device: c_int) -> Result<(), u32> {
    initialized()?;
    if (0..SETTINGS.gpus).contains(&device) { Ok(()) } else { Err(code::INVALID_DEVICE) }
}

fn is_pinned(start: usize, bytes: usize) -> bool {
    let pinned = PINNED.lock().unwrap_or_else(PoisonError::into_inner);
    let place = pinned.range(..=start).next_back();
    place.is_some_and(|(first, length)| start - first <= *length && bytes <= length - (start - first))
}

/// Puts an answer where the caller wants it.
///
/// # Safety
///
/// `to` may be written to.
unsafe fn put<T>(to: *mut T, value: T) -> Result<(), u32> {
    // SAFETY: the caller says so.
    unsafe { to.write(value) };
    Ok(())
}

macro_rules! exports {
    ($(fn $name:ident($($argument:ident: $type:ty),*) $body:block)+) => {
        $(
            /// # Safety
            ///
            /// The arguments are what NVIDIA's headers ask for.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn $name($($argument: $type),*) -> u32 {
                unsafe fn answer($($argument: $type),*) -> Result<(), u32> {
                    SETTINGS.called(stringify!($name))?;
                    $body
                }
                // SAFETY: the caller keeps to the headers.
                unsafe { answer($($argument),*) }.err().unwrap_or(0)
            }
        )+
    };
}

type Out<T> = *mut T;
type Address = *mut c_void;

exports! {
    fn cuInit(flags: u32) {
        if flags != 0 {
            return Err(code::INVALID_VALUE);
        }
        if SETTINGS.gpus == 0 {
            return Err(code::NO_DEVICE);
        }
        INITIALIZED.store(true, Ordering::SeqCst);
        Ok(())
    }

    fn cuDriverGetVersion(version: Out<c_int>) {
        put(version, SETTINGS.cuda)
    }

    fn cuDeviceGetCount(count: Out<c_int>) {
        initialized()?;
        put(count, SETTINGS.gpus)
    }

    fn cuDeviceGet(device: Out<c_int>, number: c_int) {
        is_gpu(number)?;
        put(device, number)
    }

    fn cuDeviceGetName(name: Out<c_char>, length: c_int, device: c_int) {
        is_gpu(device)?;
        let text = b"CUDA test double\0";
        let bytes = text.len().min(length as usize);
        name.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), bytes);
        Ok(())
    }

    fn cuDeviceGetAttribute(value: Out<c_int>, attribute: c_int, device: c_int) {
        is_gpu(device)?;
        match attribute {
            75 => put(value, 7),
            76 => put(value, 5),
            _ => Err(code::INVALID_VALUE),
        }
    }

    fn cuDeviceTotalMem_v2(bytes: Out<usize>, device: c_int) {
        is_gpu(device)?;
        put(bytes, SETTINGS.memory as usize)
    }

    fn cuCtxCreate_v2(context: Out<u64>, _flags: u32, device: c_int) {
        is_gpu(device)?;
        let made = Gpu::open()?;
        CURRENT.set(made);
        put(context, made)
    }

    fn cuCtxDestroy_v2(context: u64) {
        initialized()?;
        Gpu::close(context)
    }

    fn cuCtxSetCurrent(context: u64) {
        initialized()?;
        Gpu::of(context)?;
        CURRENT.set(context);
        Ok(())
    }

    fn cuStreamCreate(stream: Out<u64>, _flags: u32) {
        put(stream, current()?.new_stream())
    }

    fn cuEventCreate(event: Out<u64>, _flags: u32) {
        put(event, current()?.new_event())
    }

    fn cuEventRecord(event: u64, stream: u64) {
        current()?.record(event, stream)
    }

    fn cuEventQuery(event: u64) {
        current()?.query(event)
    }

    fn cuMemAlloc_v2(address: Out<u64>, bytes: usize) {
        let made = current()?.bench().allocate(bytes as u64)?;
        put(address, made)
    }

    fn cuMemFree_v2(address: u64) {
        current()?.bench().free(address)
    }

    fn cuMemHostAlloc(address: Out<Address>, bytes: usize, flags: u32) {
        current()?;
        if flags != 0 {
            return Err(code::INVALID_VALUE);
        }
        // What is there at first is no business of anybody's.
        let start = libc::memalign(4096, bytes.max(1));
        if start.is_null() {
            return Err(code::OUT_OF_MEMORY);
        }
        start.write_bytes(0xAB, bytes);
        PINNED.lock().unwrap_or_else(PoisonError::into_inner).insert(start as usize, bytes);
        put(address, start)
    }

    fn cuMemFreeHost(address: Address) {
        current()?;
        let removed = PINNED.lock().unwrap_or_else(PoisonError::into_inner).remove(&(address as usize));
        removed.ok_or(code::INVALID_VALUE)?;
        libc::free(address);
        Ok(())
    }

    fn cuMemcpyHtoDAsync_v2(to: u64, from: *const u8, bytes: usize, stream: u64) {
        let (gpu, from) = (current()?, from as usize);
        if !is_pinned(from, bytes) {
            return Err(code::INVALID_VALUE);
        }
        gpu.order(stream, move |bench| {
            if !is_pinned(from, bytes) {
                return Err(code::ILLEGAL_ADDRESS);
            }
            // SAFETY: pinned memory, which the host leaves alone while this is under way: what it does all the same is what the test looks for.
            let copy = unsafe { std::slice::from_raw_parts(from as *const u8, bytes) }.to_vec();
            bench.write(to, &copy)
        })
    }

    fn cuMemcpyDtoHAsync_v2(to: *mut u8, from: u64, bytes: usize, stream: u64) {
        let (gpu, to) = (current()?, to as usize);
        if !is_pinned(to, bytes) {
            return Err(code::INVALID_VALUE);
        }
        gpu.order(stream, move |bench| {
            let mut copy = vec![0; bytes];
            bench.read(from, &mut copy)?;
            if !is_pinned(to, bytes) {
                return Err(code::ILLEGAL_ADDRESS);
            }
            // SAFETY: as above.
            unsafe { (to as *mut u8).copy_from_nonoverlapping(copy.as_ptr(), bytes) };
            Ok(())
        })
    }

    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: u64) {
        current()?.order(stream, move |bench| bench.copy(to, from, bytes as u64))
    }

    fn cuMemsetD8Async(address: u64, value: u8, bytes: usize, stream: u64) {
        current()?.order(stream, move |bench| {
            let words = bytes as u64 / 4;
            bench.fill(address, u32::from_le_bytes([value; 4]), words)?;
            bench.write(address + words * 4, &vec![value; bytes % 4])
        })
    }

    fn cuMemsetD32Async(address: u64, value: u32, words: usize, stream: u64) {
        if !address.is_multiple_of(4) {
            return Err(code::INVALID_VALUE);
        }
        current()?.order(stream, move |bench| bench.fill(address, value, words as u64))
    }

    fn cuModuleLoadDataEx(module: Out<u64>, text: *const c_char, options: u32, names: *const u32, values: Out<Address>) {
        let gpu = current()?;
        let Ok(text) = CStr::from_ptr(text).to_str() else { return Err(code::INVALID_PTX) };
        let loaded = gpu.bench().load(text);
        match loaded {
            Ok(loaded) => put(module, loaded),
            Err((code, said)) => {
                let option = |wanted: u32| (0..options as usize).find(|index| *names.add(*index) == wanted);
                if let (Some(log), Some(size)) = (option(5), option(6)) {
                    let room = *values.add(size) as usize;
                    let bytes = said.len().min(room);
                    (*values.add(log)).cast::<u8>().copy_from_nonoverlapping(said.as_ptr(), bytes);
                    *values.add(size) = bytes as Address;
                }
                Err(code)
            }
        }
    }

    fn cuModuleUnload(module: u64) {
        current()?.bench().unload(module)
    }

    fn cuModuleGetFunction(function: Out<u64>, module: u64, name: *const c_char) {
        let found = current()?.bench().function(module, &CStr::from_ptr(name).to_string_lossy())?;
        put(function, found)
    }

    fn cuFuncGetParamInfo(function: u64, index: usize, offset: Out<usize>, size: Out<usize>) {
        let (at, bytes) = current()?.bench().parameter(function, index)?;
        put(offset, at)?;
        put(size, bytes)
    }

    fn cuModuleGetGlobal_v2(address: Out<u64>, bytes: Out<usize>, module: u64, name: *const c_char) {
        let (at, length) = current()?.bench().variable(module, &CStr::from_ptr(name).to_string_lossy())?;
        put(address, at)?;
        put(bytes, length as usize)
    }

    fn cuLaunchKernel(
        function: u64, gx: u32, gy: u32, gz: u32, bx: u32, by: u32, bz: u32, shared: u32,
        stream: u64, pointers: *const Address, extra: *const Address
    ) {
        let gpu = current()?;
        if !pointers.is_null() {
            return Err(code::INVALID_VALUE);
        }
        let mut parameters = Vec::new();
        if !extra.is_null() {
            let size = *(*extra.add(3)).cast::<usize>();
            if [*extra as usize, *extra.add(2) as usize, *extra.add(4) as usize] != [1, 2, 0] {
                return Err(code::INVALID_VALUE);
            }
            parameters.extend_from_slice(std::slice::from_raw_parts((*extra.add(1)).cast::<u8>(), size));
        }
        // A kernel that is running must not keep the next from being ordered, so only the first launch of each looks here.
        if let Some(bench) = gpu.bench_if_free() {
            bench.takes(function, &parameters)?;
        }
        gpu.order(stream, move |bench| bench.launch(function, [[gx, gy, gz], [bx, by, bz]], shared, &parameters))
    }

    fn cublasCreate_v2(made: Out<u64>) {
        current()?;
        let multiplier = handle();
        BLAS.lock().unwrap_or_else(PoisonError::into_inner).insert(multiplier, Multiplier::default());
        put(made, multiplier)
    }

    fn cublasDestroy_v2(multiplier: u64) {
        current()?;
        BLAS.lock().unwrap_or_else(PoisonError::into_inner).remove(&multiplier).map(drop).ok_or(1_u32)
    }

    fn cublasSetStream_v2(multiplier: u64, stream: u64) {
        // As the library does: another stream, another workspace.
        with(multiplier, |known| *known = Multiplier { stream, workspace: false, ..*known })
    }

    fn cublasSetWorkspace_v2(multiplier: u64, address: u64, bytes: usize) {
        current()?.bench().read(address, &mut vec![0; bytes])?;
        with(multiplier, |known| known.workspace = true)
    }

    fn cublasSetMathMode(multiplier: u64, mode: u32) {
        with(multiplier, |known| known.exact = mode == 16)
    }

    fn cublasGemmStridedBatchedEx_64(
        multiplier: u64, transpose_a: u32, transpose_b: u32, m: i64, n: i64, k: i64, alpha: *const c_void,
        a: u64, a_type: u32, a_leading: i64, a_stride: i64,
        b: u64, b_type: u32, b_leading: i64, b_stride: i64, beta: *const c_void,
        c: u64, c_type: u32, c_leading: i64, c_stride: i64, batch: i64, sums: u32, _algorithm: i32
    ) {
        let gpu = current()?;
        let mut known = Multiplier::default();
        with(multiplier, |set| known = *set)?;
        let Multiplier { stream, workspace, exact } = known;
        // Numbers and what they are summed in, as NVIDIA counts them.
        let element = match (c_type, sums) {
            (0, 69) => Element::Float32,
            (1, 71) => Element::Float64,
            (2, 68) => Element::Float16,
            (14, 68) => Element::Bfloat16,
            _ => return Err(15),
        };
        if stream == 0 || !workspace || !exact || a_type != c_type || b_type != c_type || transpose_a > 1 || transpose_b > 1 {
            return Err(7);
        }
        let scale = |number: *const c_void| match element {
            Element::Float64 => *number.cast::<f64>(),
            _ => f64::from(*number.cast::<f32>()),
        };
        let operand = |address, leading, stride, transpose| Operand { address, leading, stride, transpose };
        let product = Product {
            element,
            shape: [m, n, k],
            alpha: scale(alpha),
            a: operand(a, a_leading, a_stride, transpose_a == 1),
            b: operand(b, b_leading, b_stride, transpose_b == 1),
            beta: scale(beta),
            c: operand(c, c_leading, c_stride, false),
            batch,
        };
        gpu.order(stream, move |bench| bench.multiply(&product))
    }
}

fn with(multiplier: u64, change: impl FnOnce(&mut Multiplier)) -> Result<(), u32> {
    let mut known = BLAS.lock().unwrap_or_else(PoisonError::into_inner);
    known.get_mut(&multiplier).map(change).ok_or(1)
}
