//! The kernels that are measured, how each is launched, and what is promised of it.

use steadfast::device::{Argument, BufferId};

/// As in `native.c`.
pub const N: u32 = 1 << 22;
const ROWS: u32 = 1024;
const COLUMNS: u32 = 1024;
/// Columns that no vector and no warp divides.
const ODD_COLUMNS: u32 = 1000;
const EDGE: u32 = 128;
/// Rows and columns of the tiled product.
const MATRIX: u32 = 512;
/// Of a tile of it.
const TILE: u32 = 16;

/// How kernels are translated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// As in a run: those that can be are lanes of vectors.
    Lanes,
    /// All of them thread by thread.
    Threads,
}

/// A kernel as it is measured.
pub struct Measured {
    /// In `native.c`.
    pub name: &'static str,
    pub file: &'static str,
    pub entry: &'static str,
    /// What tells it from another row of the same kernel.
    pub variant: &'static str,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
    pub arguments: fn([BufferId; 4]) -> Vec<Argument<'static>>,
    /// Runs a round.
    pub times: u32,
    /// As in a run.
    pub target: f64,
    /// Thread by thread, where that was promised.
    pub target_of_threads: Option<f64>,
}

const ALONG: fn(u32) -> [u32; 3] = |count| [count, 1, 1];

/// All of them.
pub fn measured() -> [Measured; 10] {
    [
        saxpy(),
        adamw(),
        gelu(),
        softmax(),
        layernorm(),
        Measured {
            name: "layernorm_odd",
            variant: ", rows of 1000,",
            arguments: |b| normalise(b, ODD_COLUMNS),
            target: 2.5,
            target_of_threads: None,
            ..layernorm()
        },
        diffuse(),
        block_reduce(),
        Measured { variant: ", an element a thread,", grid: ALONG(N / 256), target: 10.0, ..block_reduce() },
        matmul(),
    ]
}

fn saxpy() -> Measured {
    use Argument::{Buffer, Float32, Int32};
    Measured {
        name: "saxpy",
        file: "host/ptx/tests/kernels/saxpy.ptx",
        entry: "saxpy",
        variant: "",
        grid: ALONG(N / 256),
        block: ALONG(256),
        shared_bytes: 0,
        arguments: |[a, b, ..]| vec![Int32(N as i32), Float32(1.0001), Buffer(a, 0), Buffer(b, 0)],
        times: 4,
        target: 1.3,
        target_of_threads: Some(5.0),
    }
}

fn adamw() -> Measured {
    use Argument::{Buffer, Float32, Int64};
    Measured {
        name: "adamw",
        file: "host/ptx/tests/kernels/adam.ptx",
        entry: "adamw",
        variant: "",
        grid: ALONG(N / 256),
        block: ALONG(256),
        shared_bytes: 0,
        arguments: |buffers| {
            let rates = [1e-3, 0.9, 0.999, 0.1, 0.001, 1e-8, 0.01].map(Float32);
            buffers.map(|buffer| Buffer(buffer, 0)).into_iter().chain([Int64(N.into())]).chain(rates).collect()
        },
        times: 1,
        target: 1.3,
        target_of_threads: Some(8.0),
    }
}

/// It computes, and hardly touches memory.
pub fn gelu() -> Measured {
    use Argument::{Buffer, Int32};
    Measured {
        name: "gelu",
        file: "host/ptx/tests/kernels/adam.ptx",
        entry: "gelu",
        variant: "",
        grid: ALONG(N / 256),
        block: ALONG(256),
        shared_bytes: 0,
        arguments: |[a, b, ..]| vec![Buffer(b, 0), Buffer(a, 0), Int32(N as i32)],
        times: 1,
        target: 1.5,
        target_of_threads: None,
    }
}

fn softmax() -> Measured {
    use Argument::{Buffer, Int32};
    Measured {
        name: "softmax",
        file: "host/ptx/tests/kernels/softmax.ptx",
        entry: "softmax",
        variant: "",
        grid: ALONG(ROWS),
        block: ALONG(128),
        shared_bytes: 16,
        arguments: |[a, b, ..]| vec![Buffer(b, 0), Buffer(a, 0), Int32(ROWS as i32), Int32(COLUMNS as i32)],
        times: 1,
        target: 1.3,
        target_of_threads: Some(18.0),
    }
}

fn layernorm() -> Measured {
    Measured {
        name: "layernorm",
        file: "host/ptx/tests/kernels/softmax.ptx",
        entry: "layernorm",
        variant: "",
        grid: ALONG(ROWS / 4),
        block: ALONG(128),
        shared_bytes: 0,
        arguments: |buffers| normalise(buffers, COLUMNS),
        times: 2,
        target: 1.5,
        target_of_threads: Some(18.0),
    }
}

fn normalise([a, b, c, d]: [BufferId; 4], columns: u32) -> Vec<Argument<'static>> {
    use Argument::{Buffer, Int32};
    let statistics = [Buffer(c, 0), Buffer(c, 4 * u64::from(ROWS))];
    let scales = [Buffer(d, 0), Buffer(d, 4 * u64::from(columns))];
    let sizes = [Int32(ROWS as i32), Int32(columns as i32)];
    [Buffer(b, 0)].into_iter().chain(statistics).chain([Buffer(a, 0)]).chain(scales).chain(sizes).collect()
}

fn diffuse() -> Measured {
    use Argument::{Buffer, Float32, Int32};
    Measured {
        name: "diffuse",
        file: "plugins/heat/kernels/heat.ptx",
        entry: "diffuse",
        variant: "",
        grid: [EDGE / 32, EDGE / 4, EDGE / 2],
        block: [32, 4, 2],
        shared_bytes: 0,
        arguments: |[a, b, ..]| {
            let edges = [Int32(EDGE as i32); 3];
            [Buffer(a, 0), Buffer(b, 0)].into_iter().chain(edges).chain([Float32(0.1)]).collect()
        },
        times: 2,
        target: 2.0,
        target_of_threads: Some(18.0),
    }
}

/// 64 elements a thread.
fn block_reduce() -> Measured {
    use Argument::{Buffer, Int32};
    Measured {
        name: "sum",
        file: "host/ptx/tests/kernels/reduce.ptx",
        entry: "block_reduce",
        variant: "",
        grid: ALONG(256),
        block: ALONG(256),
        shared_bytes: 0,
        arguments: |[a, b, ..]| vec![Buffer(a, 0), Buffer(b, 0), Int32(N as i32)],
        times: 2,
        target: 1.5,
        target_of_threads: None,
    }
}

fn matmul() -> Measured {
    use Argument::{Buffer, Int32};
    Measured {
        name: "matmul",
        file: "host/ptx/tests/kernels/matmul.ptx",
        entry: "matmul",
        variant: "",
        grid: [MATRIX / TILE, MATRIX / TILE, 1],
        block: [TILE, TILE, 1],
        shared_bytes: 0,
        arguments: |[a, b, c, _]| {
            let edges = [Int32(MATRIX as i32); 3];
            [Buffer(a, 0), Buffer(b, 0), Buffer(c, 0)].into_iter().chain(edges).collect()
        },
        times: 1,
        target: 2.5,
        target_of_threads: None,
    }
}
