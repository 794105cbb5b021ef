//! Saving a checkpoint.
//!
//! *Subject*: `encode` through `publish` on the real volume: hashes, chunk table, sync, close, rename, sync of the folder. The
//! store reads every checkpoint back before it counts; that is not in here, since it is not writing.
//! *Baseline*: the zstd library at the same level and in pieces of the same size, on as many threads, their frames written in
//! order to a file that is then synced. No hashes, no table, no rename.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use anyhow::{Context, Result, anyhow};
use steadfast::checkpoint::format::{CHUNK_BYTES, Compression, SectionKind, SectionRef, encode};
use steadfast::checkpoint::volume::{Disk, Volume, publish};
use zstd::bulk::{Compressor, compress};

use crate::measure::{Row, in_turn, seconds};
use crate::places;

const BYTES: usize = 256 << 20;
const ROUNDS: usize = 7;

pub fn figures() -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (what, state, target) in [("incompressible", noise(), Some(1.1)), ("of weights", weights(), None)] {
        rows.push(compare(&format!("saving 256 MiB {what} : zstd, write and sync"), &state, target)?);
        let encoding = || seconds(|| encode_to(&mut std::io::sink(), &state));
        let compressing = || seconds(|| compress_to(&mut std::io::sink(), &state));
        let rounds = in_turn(&mut (), ROUNDS, |()| encoding(), |()| compressing())?;
        rows.push(rounds.row("of that, without a disk : zstd", 1.0, None));
    }
    Ok(rows)
}

fn compare(figure: &str, state: &[u8], target: Option<f64>) -> Result<Row> {
    let folder = places::on_disk()?;
    let disk = Disk::new(folder.path());
    let rounds =
        in_turn(&mut (), ROUNDS, |()| save(&disk, state), |()| compress_and_write(&folder.path().join("b"), state))?;
    let shrinks = compress(&state[..CHUNK_BYTES], Compression::default().level)?.len() * 100 / CHUNK_BYTES;
    Ok(rounds.row(&format!("{figure} (to {shrinks} %)"), 1.0, target))
}

fn save(disk: &Disk, state: &[u8]) -> Result<f64> {
    let (stage, target) = (Path::new("stage"), Path::new("target"));
    let took = seconds(|| {
        publish(disk, stage, target, |out| encode_to(out, state).map_err(std::io::Error::other))?;
        Ok(())
    })?;
    disk.remove_file(target)?;
    Ok(took)
}

fn encode_to(out: &mut dyn Write, state: &[u8]) -> Result<()> {
    let sections = [SectionRef { kind: SectionKind::State, name: "weights", bytes: state }];
    encode(out, &sections, b"{}", Compression::default())?;
    Ok(())
}

fn compress_and_write(path: &Path, state: &[u8]) -> Result<f64> {
    let took = seconds(|| {
        let mut file = File::create_new(path)?;
        compress_to(&mut file, state)?;
        file.sync_all().context("cannot sync")
    })?;
    std::fs::remove_file(path)?;
    Ok(took)
}

fn compress_to(out: &mut dyn Write, state: &[u8]) -> Result<()> {
    thread::scope(|scope| {
        let threads = rayon::current_num_threads();
        let worker = |first: usize| {
            let (to_writer, frames) = sync_channel(2);
            let (to_worker, spare) = sync_channel(3);
            let pieces = state.chunks(CHUNK_BYTES).skip(first).step_by(threads);
            scope.spawn(move || pack(pieces, &spare, &to_writer));
            (frames, to_worker)
        };
        let workers: Vec<(Receiver<Result<Vec<u8>>>, SyncSender<_>)> = (0..threads).map(worker).collect();
        for (piece, _) in state.chunks(CHUNK_BYTES).enumerate() {
            let (frames, to_worker) = &workers[piece % threads];
            let frame = frames.recv().map_err(|_| anyhow!("a compressing thread is gone"))??;
            out.write_all(&frame)?;
            // A worker that is done wants no more buffers.
            let _ = to_worker.try_send(frame);
        }
        Ok(())
    })
}

/// Compresses pieces one after the other, into buffers that come back.
fn pack<'a>(pieces: impl Iterator<Item = &'a [u8]>, spare: &Receiver<Vec<u8>>, frames: &SyncSender<Result<Vec<u8>>>) {
    let mut compressor = Compressor::new(Compression::default().level);
    for piece in pieces {
        let mut frame = spare.try_recv().unwrap_or_default();
        frame.clear();
        frame.reserve(zstd::zstd_safe::compress_bound(piece.len()));
        let packed = match &mut compressor {
            Ok(compressor) => compressor.compress_to_buffer(piece, &mut frame).map(|_| frame).map_err(Into::into),
            Err(error) => Err(anyhow!("cannot set zstd up: {error}")),
        };
        if frames.send(packed).is_err() {
            return;
        }
    }
}

/// SplitMix64.
fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = (*seed ^ (*seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn noise() -> Vec<u8> {
    let mut seed = 1;
    (0..BYTES / 8).flat_map(|_| random(&mut seed).to_le_bytes()).collect()
}

/// As a trained layer has them: 32-bit floats, roughly normal around 0, hardly any beyond 0.1.
fn weights() -> Vec<u8> {
    let mut seed = 2;
    let mut weight = || {
        let bits = random(&mut seed);
        let parts = (0..4).map(|part| ((bits >> (16 * part)) & 0xffff) as f32 / 65536.0 - 0.5);
        parts.sum::<f32>() * 0.04
    };
    (0..BYTES / 4).flat_map(|_| weight().to_le_bytes()).collect()
}
