//! The functions of `steadfast:job/device`, one by one.
//!
//! They are defined by hand and not by `bindgen!`, as those of `state` are, so that `write` reads the guest's bytes in place.

use std::os::unix::fs::FileExt;

use rustix::fs::{Advice, fadvise};
use wasmtime::component::{Linker, Resource, ResourceType, WasmList, WasmStr};
use wasmtime::{Result, StoreContextMut};

use super::failure::{self, Failure, answer};
use super::files::Access;
use super::{Buffer, Module};
use crate::device::{self, Backend, BufferId, DeviceError, Distribution, Purpose, RandomFill};
use crate::plugin::bindings::steadfast::job::device as wit;
use crate::plugin::engine::GuestState;

const INTERFACE: &str = "steadfast:job/device@0.1.0";
/// How much of a file passes through the host at once.
const PIECE: usize = 4 << 20;

type Store<'a> = StoreContextMut<'a, GuestState>;
type Answer<T> = Result<(std::result::Result<T, wit::DeviceError>,)>;

pub(in crate::plugin) fn add_to_linker(linker: &mut Linker<GuestState>) -> Result<()> {
    let mut device = linker.instance(INTERFACE)?;
    device.resource("buffer", ResourceType::host::<Buffer>(), |mut store, rep| {
        let state = store.data_mut();
        let buffer = state.table.delete(Resource::<Buffer>::new_own(rep))?;
        state.holdings.drop_buffer(buffer);
        Ok(())
    })?;
    device.resource("module", ResourceType::host::<Module>(), |mut store, rep| {
        let state = store.data_mut();
        let module = state.table.delete(Resource::<Module>::new_own(rep))?;
        state.holdings.drop_module(module);
        Ok(())
    })?;
    device.func_wrap("describe", describe)?;
    device.func_wrap("[static]buffer.scratch", scratch)?;
    device.func_wrap("[static]buffer.persistent", persistent)?;
    device.func_wrap("[method]buffer.restored", |store, (buffer,): (Resource<Buffer>,)| {
        Ok((store.data().table.get(&buffer)?.restored,))
    })?;
    device.func_wrap("[method]buffer.size", |store, (buffer,): (Resource<Buffer>,)| {
        Ok((store.data().table.get(&buffer)?.bytes,))
    })?;
    device.func_wrap("[method]buffer.write", write)?;
    device.func_wrap("[method]buffer.read", read)?;
    device.func_wrap("[method]buffer.fill", fill)?;
    device.func_wrap("[method]buffer.copy-from", copy_from)?;
    device.func_wrap("[method]buffer.load", load)?;
    device.func_wrap("[method]buffer.store", store)?;
    device.func_wrap("[method]buffer.fill-random", fill_random)?;
    device.func_wrap("[static]module.from-ptx", from_ptx)?;
    device.func_wrap("[static]module.cuda-only", cuda_only)?;
    device.func_wrap("[method]module.launch", launch)?;
    device.func_wrap("gemm", gemm)
}

fn describe(mut store: Store<'_>, (): ()) -> Result<(wit::Facts,)> {
    let device::Facts { backend, name, memory_bytes } = match store.data_mut().holdings.facts() {
        Ok(facts) => facts,
        Err(Failure::Device(error)) => return Err(wasmtime::Error::msg(error.to_string())),
        Err(other) => return Err(wasmtime::Error::msg(format!("{other:?}"))),
    };
    let backend = match backend {
        Backend::Cpu => wit::Backend::Cpu,
        Backend::Cuda => wit::Backend::Cuda,
    };
    Ok((wit::Facts { backend, name, memory_bytes },))
}

fn scratch(mut store: Store<'_>, (bytes,): (u64,)) -> Answer<Resource<Buffer>> {
    let state = store.data_mut();
    let made = state.holdings.scratch(bytes).and_then(|buffer| Ok(state.table.push(buffer)?));
    answer(state, made)
}

fn persistent(mut store: Store<'_>, (name, element, bytes): (WasmStr, wit::Element, u64)) -> Answer<Resource<Buffer>> {
    let name = name.to_str(&store)?.into_owned();
    let state = store.data_mut();
    let made = state.holdings.persistent(&name, element, bytes).and_then(|buffer| Ok(state.table.push(buffer)?));
    answer(state, made)
}

fn write(mut store: Store<'_>, params: (Resource<Buffer>, u64, WasmList<u8>)) -> Answer<()> {
    let (buffer, offset, bytes) = params;
    let id = store.data().table.get(&buffer)?.id;
    // The device is taken out for the moment, because the guest's bytes borrow the store.
    let mut taken = match store.data_mut().holdings.take_context() {
        Ok(context) => context,
        Err(failure) => return answer(store.data(), Err(failure)),
    };
    let written = taken.write(id, offset, bytes.as_le_slice(&store));
    let state = store.data_mut();
    state.holdings.give_back_context(taken);
    named(state, &buffer, written.map_err(Failure::from))
}

fn read(mut store: Store<'_>, (buffer, offset, len): (Resource<Buffer>, u64, u64)) -> Answer<Vec<u8>> {
    let state = store.data_mut();
    let read = ranged(state, &buffer, "read", offset, len).and_then(|id| {
        if len > state.memory.limit() {
            let text =
                format!("read: {len} bytes are more than a guest may have (--memory-limit): read a range at a time");
            return Err(Failure::argument(text));
        }
        let mut bytes = memory(len)?;
        state.holdings.context()?.read(id, offset, &mut bytes)?;
        Ok(bytes)
    });
    named(state, &buffer, read)
}

/// Memory of the host for bytes of the device, if it has as much.
fn memory(len: u64) -> failure::Result<Vec<u8>> {
    let refuse = |_| Failure::Device(DeviceError::OutOfMemory(format!("the host has no memory for {len} bytes")));
    let mut bytes = Vec::new();
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    bytes.try_reserve_exact(len).map_err(refuse)?;
    bytes.resize(len, 0);
    Ok(bytes)
}

type Filling = (Resource<Buffer>, u64, u64, WasmList<u8>);

fn fill(mut store: Store<'_>, (buffer, offset, len, pattern): Filling) -> Answer<()> {
    let pattern = pattern.as_le_slice(&store).iter().copied().take(16).collect::<Vec<u8>>();
    let state = store.data_mut();
    let filled = ranged(state, &buffer, "fill", offset, len).and_then(|id| {
        let unit = pattern.len() as u64;
        if ![1, 2, 4, 8].contains(&unit) {
            return Err(Failure::argument("fill: a pattern has 1, 2, 4 or 8 bytes"));
        }
        if !offset.is_multiple_of(unit) || !len.is_multiple_of(unit) {
            let text =
                format!("fill: offset {offset} and length {len} must be multiples of the pattern's {unit} bytes");
            return Err(Failure::argument(text));
        }
        fill_with(state, id, offset, len, &pattern)
    });
    named(state, &buffer, filled)
}

/// The device knows patterns of four bytes; with others, a piece is made here and written again and again.
fn fill_with(state: &mut GuestState, id: BufferId, offset: u64, len: u64, pattern: &[u8]) -> failure::Result<()> {
    let context = state.holdings.context()?;
    let eight: [u8; 8] = std::array::from_fn(|at| pattern[at % pattern.len()]);
    let (first, second) = eight.split_at(4);
    if first == second && offset.is_multiple_of(4) && len.is_multiple_of(4) {
        let word = std::array::from_fn(|at| first[at]);
        return Ok(context.fill(id, offset, len, u32::from_le_bytes(word))?);
    }
    let piece = eight.repeat(usize::try_from(len.div_ceil(8)).unwrap_or(usize::MAX).min(PIECE / 8));
    let mut done = 0;
    while done < len {
        let size = piece.len().min(usize::try_from(len - done).unwrap_or(usize::MAX));
        context.write(id, offset + done, &piece[..size])?;
        done += size as u64;
    }
    Ok(())
}

type Copying = (Resource<Buffer>, u64, Resource<Buffer>, u64, u64);

fn copy_from(mut store: Store<'_>, (buffer, offset, source, source_offset, len): Copying) -> Answer<()> {
    let state = store.data_mut();
    let (to, from) = (state.table.get(&buffer)?.id, state.table.get(&source)?.id);
    let copied =
        state.holdings.context().and_then(|context| Ok(context.copy((to, offset), (from, source_offset), len)?));
    named(state, &buffer, copied)
}

type Transfer = (Resource<Buffer>, u64, u64, WasmStr, u64);

/// Buffer, offset in it, length, path, offset in the file.
type Transferring = fn(&mut GuestState, BufferId, u64, u64, &str, u64) -> failure::Result<()>;

fn transfer(
    mut store: Store<'_>,
    (buffer, offset, len, path, file_offset): Transfer,
    (call, purpose): (&str, Purpose),
    transferring: Transferring,
) -> Answer<()> {
    let path = path.to_str(&store)?.into_owned();
    let state = store.data_mut();
    let done = ranged(state, &buffer, call, offset, len).and_then(|id| {
        state.holdings.serve(purpose);
        let done = transferring(state, id, offset, len, &path, file_offset);
        state.holdings.serve(Purpose::Guest);
        done
    });
    named(state, &buffer, done)
}

fn load(store: Store<'_>, parameters: Transfer) -> Answer<()> {
    transfer(store, parameters, ("load", Purpose::Load), load_from)
}

fn load_from(
    state: &mut GuestState,
    id: BufferId,
    offset: u64,
    len: u64,
    path: &str,
    file_offset: u64,
) -> failure::Result<()> {
    // What the guest has written to the file is there before it is read.
    state.settle_files();
    let file = state.folders.file(path, Access::Load)?;
    let failed = |why: std::io::Error| Failure::File(format!("cannot read `{path}`: {why}"));
    let size = file.metadata().map_err(failed)?.len();
    if file_offset.checked_add(len).is_none_or(|end| end > size) {
        let text = format!("`{path}` has {size} bytes, and {len} from byte {file_offset} on are asked for");
        return Err(Failure::File(text));
    }
    // A hint, of which nothing depends.
    let _ = fadvise(&file, file_offset, std::num::NonZeroU64::new(len), Advice::Sequential);
    in_pieces(state, len, |state, done, piece| {
        file.read_exact_at(piece, file_offset + done).map_err(failed)?;
        Ok(state.holdings.context()?.write(id, offset + done, piece)?)
    })
}

fn store(store: Store<'_>, parameters: Transfer) -> Answer<()> {
    transfer(store, parameters, ("store", Purpose::Store), store_to)
}

fn store_to(
    state: &mut GuestState,
    id: BufferId,
    offset: u64,
    len: u64,
    path: &str,
    file_offset: u64,
) -> failure::Result<()> {
    if file_offset.checked_add(len).is_none_or(|end| i64::try_from(end).is_err()) {
        return Err(Failure::argument(format!("store: no file has {len} bytes from byte {file_offset} on")));
    }
    // In the order of the calls, also where the guest has written to the same file.
    state.settle_files();
    let file = state.folders.file(path, Access::Store)?;
    in_pieces(state, len, |state, done, piece| {
        state.holdings.context()?.read(id, offset + done, piece)?;
        let failed = |why| Failure::File(format!("cannot write to `{path}`: {why}"));
        file.write_all_at(piece, file_offset + done).map_err(failed)
    })
}

/// Calls `transfer` for one piece after the other, unless the call is to end.
fn in_pieces(
    state: &mut GuestState,
    len: u64,
    mut transfer: impl FnMut(&mut GuestState, u64, &mut [u8]) -> failure::Result<()>,
) -> failure::Result<()> {
    let mut room = memory(len.min(PIECE as u64))?;
    let mut done = 0;
    while done < len {
        if state.interrupter.wish().is_some() {
            return Err(DeviceError::Stopped.into());
        }
        let size = room.len().min(usize::try_from(len - done).unwrap_or(usize::MAX));
        transfer(state, done, &mut room[..size])?;
        done += size as u64;
    }
    Ok(())
}

type RandomFilling = (Resource<Buffer>, u64, u64, wit::Distribution, u64, u64);

fn fill_random(mut store: Store<'_>, params: RandomFilling) -> Answer<()> {
    let (buffer, offset, count, distribution, seed, position) = params;
    let state = store.data_mut();
    let id = state.table.get(&buffer)?.id;
    let distribution = match distribution {
        wit::Distribution::Uniform => Distribution::Uniform,
        wit::Distribution::Normal => Distribution::Normal,
    };
    let fill = RandomFill { distribution, seed, position, count };
    let filled = state.holdings.context().and_then(|context| Ok(context.fill_random(id, offset, &fill)?));
    named(state, &buffer, filled)
}

fn from_ptx(mut store: Store<'_>, (text,): (WasmStr,)) -> Answer<Resource<Module>> {
    let text = text.to_str(&store)?.into_owned();
    let state = store.data_mut();
    let made = state.holdings.module(&text).and_then(|module| Ok(state.table.push(module)?));
    answer(state, made)
}

fn cuda_only(mut store: Store<'_>, (text,): (WasmStr,)) -> Answer<Resource<Module>> {
    let text = text.to_str(&store)?.into_owned();
    let state = store.data_mut();
    let made = state.holdings.cuda_only(&text).and_then(|module| Ok(state.table.push(module)?));
    answer(state, made)
}

type Launching = (Resource<Module>, WasmStr, wit::Dimensions, wit::Dimensions, u32, Vec<wit::Argument>);

fn launch(mut store: Store<'_>, params: Launching) -> Answer<()> {
    let (module, entry, grid, block, shared_bytes, arguments) = params;
    let entry = entry.to_str(&store)?.into_owned();
    let state = store.data_mut();
    let module = state.table.get(&module)?.id;
    let mut given = Vec::with_capacity(arguments.len());
    for argument in &arguments {
        given.push(match argument {
            wit::Argument::Buffer((buffer, offset)) => device::Argument::Buffer(state.table.get(buffer)?.id, *offset),
            wit::Argument::Int32(value) => device::Argument::Int32(*value),
            wit::Argument::Uint32(value) => device::Argument::Uint32(*value),
            wit::Argument::Int64(value) => device::Argument::Int64(*value),
            wit::Argument::Uint64(value) => device::Argument::Uint64(*value),
            wit::Argument::Float32(value) => device::Argument::Float32(*value),
            wit::Argument::Float64(value) => device::Argument::Float64(*value),
            wit::Argument::Bytes(bytes) => device::Argument::Bytes(bytes),
        });
    }
    let axes = |of: wit::Dimensions| [of.x, of.y, of.z];
    let launch =
        device::Launch { entry: &entry, grid: axes(grid), block: axes(block), shared_bytes, arguments: &given };
    let launched = state.holdings.context().and_then(|context| Ok(context.launch(module, &launch)?));
    answer(state, launched)
}

type Multiplying = (wit::Element, u32, u32, u32, f64, wit::Matrix, wit::Matrix, f64, wit::Matrix, u32);

fn gemm(mut store: Store<'_>, params: Multiplying) -> Answer<()> {
    let (element, m, n, k, alpha, a, b, beta, c, batch) = params;
    let state = store.data_mut();
    let matrix = |matrix: &wit::Matrix| -> Result<device::Matrix> {
        let wit::Matrix { at, offset, leading, stride, transposed } = matrix;
        let buffer = state.table.get(at)?.id;
        Ok(device::Matrix { buffer, offset: *offset, leading: *leading, stride: *stride, transpose: *transposed })
    };
    let (a, b, c) = (matrix(&a)?, matrix(&b)?, matrix(&c)?);
    let element = match element {
        wit::Element::Float16 => device::Element::Float16,
        wit::Element::Bfloat16 => device::Element::Bfloat16,
        wit::Element::Float32 => device::Element::Float32,
        wit::Element::Float64 => device::Element::Float64,
        wit::Element::Byte | wit::Element::Int16 | wit::Element::Int32 | wit::Element::Int64 => {
            return answer(state, Err(Failure::argument("gemm: there are products of floats only")));
        }
    };
    let product = device::Gemm { element, m, n, k, alpha, a, b, beta, c, batch };
    let multiplied = state.holdings.context().and_then(|context| Ok(context.gemm(&product)?));
    answer(state, multiplied)
}

/// The buffer, if the range lies in it: for calls that take memory or touch a file before the device hears of them.
fn ranged(
    state: &GuestState,
    buffer: &Resource<Buffer>,
    call: &str,
    offset: u64,
    len: u64,
) -> failure::Result<BufferId> {
    let Buffer { id, bytes, .. } = state.table.get(buffer)?;
    if offset.checked_add(len).is_none_or(|end| end > *bytes) {
        let text = format!("{call}: {len} bytes from offset {offset} on do not lie in a buffer of {bytes} bytes");
        return Err(Failure::argument(text));
    }
    Ok(*id)
}

/// The answer of a call of a buffer's, which is named if it has a name.
fn named<T>(state: &GuestState, buffer: &Resource<Buffer>, outcome: failure::Result<T>) -> Answer<T> {
    let name = state.table.get(buffer).ok().and_then(|buffer| buffer.name.as_deref());
    match (outcome, name) {
        (Err(failure), Some(name)) => answer(state, Err(failure.about(&format!("the buffer `{name}`")))),
        (outcome, _) => answer(state, outcome),
    }
}
