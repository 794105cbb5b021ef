//! What the host adds to NVIDIA's driver: to a launch, and to the way of a checkpoint to the host. Only where there is a GPU; against the double of the
//! driver (`host/tests/cuda-double`) it runs too, and its figures mean nothing.
//!
//! *Subject*: launches of an empty kernel by a guest, in one step; and all of a buffer, as a save fetches it, in memory that an earlier one left. *Baseline*: the
//! same calls of the driver with nothing around them (`gpu_unsafe`), waited for alike; and copies of as many bytes to one pinned piece of memory, again and again.

use std::ffi::CString;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use steadfast::device::cuda::{CudaDevice, Found, Settings};
use steadfast::device::{Context, Device, DeviceError};
use steadfast::plugin::{GuestSettings, Runtime};

use crate::digits::{job, settings};
use crate::gpu_unsafe::Raw;
use crate::measure::{Row, in_turn, seconds};
use crate::places;

const ROUNDS: usize = 9;
const LAUNCHES: u32 = 20_000;
const EMPTY: &str = ".version 8.2\n.target sm_75\n.address_size 64\n.visible .entry nothing() { ret; }";
/// What is promised of both.
const TARGET: Option<f64> = Some(1.2);

pub fn figures() -> Result<Vec<Row>> {
    let found = match Found::look(0) {
        Ok(found) => found,
        Err(absence) => {
            eprintln!("SKIPPED gpu: {absence}");
            return Ok(Vec::new());
        }
    };
    // A GPU is large enough for the buffer and its copy, and a double of one should not fill the machine.
    let bytes = (found.memory_bytes / 8).min(8 << 30);
    let raw = Raw::open(&CString::new(EMPTY)?, c"nothing", bytes)?;
    Ok(vec![launches(&found, &raw)?, download(&found, &raw, bytes)?])
}

fn device() -> Result<Box<dyn Device>, DeviceError> {
    match CudaDevice::open(&Settings { number: 0, memory_bytes: 16 << 30 }) {
        Ok(device) => Ok(Box::new(device)),
        Err(absence) => Err(DeviceError::Lost(absence.to_string())),
    }
}

fn launches(found: &Found, raw: &Raw) -> Result<Row> {
    let folder = places::on_disk()?;
    let plugin = Runtime::new(None)?.load(&places::component("launches")?, &|_| {})?;
    let settings = GuestSettings { device: Some(Arc::new(device)), ..settings(folder.path().to_owned()) };
    let mut guest = plugin.instantiate(settings)?;
    guest.start(&job(), &format!(r#"{{"launches": {LAUNCHES}}}"#))?;
    let rounds = in_turn(
        &mut guest,
        ROUNDS,
        |guest| seconds(|| Ok(guest.step().map(drop)?)),
        |_| seconds(|| raw.launch(LAUNCHES)),
    )?;
    let figure = format!("an empty launch by a guest : by the driver ({})", found.name);
    Ok(rounds.row(&figure, f64::from(LAUNCHES), TARGET))
}

fn download(found: &Found, raw: &Raw, bytes: u64) -> Result<Row> {
    let mut context = Context::new(device()?);
    let buffer = context.allocate(bytes)?;
    context.finish_step()?;
    let mut spare = Vec::new();
    let rounds = in_turn(
        &mut (),
        ROUNDS,
        |()| {
            let memory = std::mem::take(&mut spare);
            seconds(|| {
                let content = context.begin_read(buffer, memory)?;
                content.parts().try_for_each(|part| part.map(drop))?;
                spare = content.into_memory();
                Ok(())
            })
        },
        |()| seconds(|| raw.download()),
    )?;
    let arrived: u64 = spare.iter().map(|part| part.len() as u64).sum();
    if arrived != bytes {
        return Err(anyhow!("{arrived} bytes arrived of {bytes}"));
    }
    let figure = format!("{} MiB from the GPU for a checkpoint : to pinned memory ({})", bytes >> 20, found.name);
    Ok(rounds.row(&figure, 1.0, TARGET))
}
