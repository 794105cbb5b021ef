//! scratch
fn text(file: &str) -> String {
    std::fs::read_to_string(format!("{}/tests/kernels/{file}.ptx", env!("CARGO_MANIFEST_DIR"))).unwrap()
}
use std::time::Instant;
use steadfast_ptx::kernel::*;
use steadfast_ptx::module::FunctionId;
use wasmtime::*;

fn engine() -> Engine {
    let mut config = Config::new();
    config
        .wasm_memory64(true)
        .wasm_multi_memory(true)
        .wasm_relaxed_simd(true)
        .relaxed_simd_deterministic(true)
        .epoch_interruption(true).wasm_bulk_memory(false).wasm_threads(true);
    config.memory_guard_size(32 << 20);
    if std::env::var("NOGUARD").is_ok() {
        config.memory_reservation(0).memory_guard_size(0);
    }
    Engine::new(&config).unwrap()
}

fn cpu() -> f64 {
    std::fs::read_to_string("/proc/thread-self/schedstat").unwrap().split(' ').next().unwrap().parse::<f64>().unwrap()
        * 1e-9
}
enum A {
    P(u64),
    I(i32),
    Q(i64),
    F(f32),
}

fn go(file: &str, entry: &str, grid: [u32; 3], block: [u32; 3], shared: u32, args: &[A], count: f64) {
    let module = steadfast_ptx::parse::parse(&text(file)).unwrap();
    let id = FunctionId(module.functions.iter().position(|f| f.name == entry).unwrap() as u32);
    let t = Instant::now();
    let bytes: u64 = 256 << 20;
    let k = steadfast_ptx::translate::translate(&module, id, &Options { memory_bytes: bytes, canonical_nans: false })
        .unwrap();
    let t1 = t.elapsed();
    if let Ok(dir) = std::env::var("DUMP") {
        std::fs::write(format!("{dir}/{entry}.wasm"), &k.wasm).unwrap();
    }
    let engine = engine();
    let t = Instant::now();
    let c = cpu();
    let m = Module::new(&engine, &k.wasm).unwrap();
    let t2 = t.elapsed();
    let c2 = (cpu() - c) * 1e3;
    let _ = t2;
    let mut store = Store::new(&engine, ());
    store.set_epoch_deadline(u64::MAX / 2);
    let memory = Memory::new(&mut store, MemoryType::new64(bytes >> 16, Some(bytes >> 16))).unwrap();
    {
        let d = memory.data_mut(&mut store);
        let mut s = 1u32;
        for c in d.chunks_exact_mut(4) {
            s = s.wrapping_mul(1664525).wrapping_add(1013904223);
            c.copy_from_slice(&((s >> 8) as f32 / (1u32 << 24) as f32).to_le_bytes());
        }
    }
    let instance = Instance::new(&mut store, &m, &[Extern::Memory(memory)]).unwrap();
    let private = instance.get_memory(&mut store, "private").unwrap();
    let need = k.private_bytes(block.iter().product()).div_ceil(65536);
    let has = private.size(&store);
    private.grow(&mut store, need.saturating_sub(has)).unwrap();
    let launch = Launch {
        grid,
        block,
        dynamic_shared: shared,
        globals: 0x10000,
        constants: 0x20000,
        shared: 0x40000,
        local: 0x80000,
    };
    private.write(&mut store, 0, &launch.encode()).unwrap();
    for (a, p) in args.iter().zip(&k.parameters) {
        let b = match a {
            A::P(v) => v.to_le_bytes().to_vec(),
            A::I(v) => v.to_le_bytes().to_vec(),
            A::Q(v) => v.to_le_bytes().to_vec(),
            A::F(v) => v.to_le_bytes().to_vec(),
        };
        assert_eq!(b.len(), p.bytes as usize);
        private.write(&mut store, (PARAMETERS + p.offset) as usize, &b).unwrap();
    }
    let run = instance.get_typed_func::<(i64, i64), ()>(&mut store, "run").unwrap();
    let blocks = grid.iter().map(|x| i64::from(*x)).product();
    let mut best = f64::MAX;
    for _ in 0..5 {
        let t = cpu();
        run.call(&mut store, (0, blocks)).unwrap();
        best = best.min(cpu() - t);
    }
    println!(
        "{entry:14} {:8.1} M/s  translate {:6.2} ms compile {:6.2} ms wasm {} B frame {}",
        count / best / 1e6,
        t1.as_secs_f64() * 1e3,
        c2,
        k.wasm.len(),
        k.frame_bytes
    );
}

#[test]
#[ignore]
fn speed() {
    const M: u64 = 1 << 20;
    let b = |i: u64| A::P(M + i * 32 * M);
    let n = 1 << 22;
    go("saxpy", "saxpy", [n / 256, 1, 1], [256, 1, 1], 0, &[A::I(n as i32), A::F(1.5), b(0), b(1)], f64::from(n));
    go("saxpy", "saxpy_grid", [32, 1, 1], [256, 1, 1], 0, &[A::Q(n as i64), A::F(1.5), b(0), b(1)], f64::from(n));
    go(
        "adam",
        "adamw",
        [n / 256, 1, 1],
        [256, 1, 1],
        0,
        &[
            b(0),
            b(1),
            b(2),
            b(3),
            A::Q(n as i64),
            A::F(1e-3),
            A::F(0.9),
            A::F(0.999),
            A::F(0.1),
            A::F(0.001),
            A::F(1e-8),
            A::F(0.01),
        ],
        f64::from(n),
    );
    go("adam", "gelu", [n / 256, 1, 1], [256, 1, 1], 0, &[b(0), b(1), A::I(n as i32)], f64::from(n));
    let (rows, c) = (4096u32, 1000u32);
    go(
        "softmax",
        "softmax",
        [rows, 1, 1],
        [256, 1, 1],
        1024,
        &[b(0), b(1), A::I(rows as i32), A::I(c as i32)],
        f64::from(rows * c),
    );
    go(
        "softmax",
        "layernorm",
        [rows / 4, 1, 1],
        [128, 1, 1],
        0,
        &[b(0), b(1), b(2), b(3), b(4), b(5), A::I(rows as i32), A::I(1024)],
        f64::from(rows * 1024),
    );
    go(
        "heat",
        "heat",
        [128 / 32, 128 / 8, 128],
        [32, 8, 1],
        0,
        &[b(0), b(1), A::I(128), A::I(128), A::I(128), A::F(0.1)],
        f64::from(128 * 128 * 128),
    );
    go("reduce", "block_reduce", [64, 1, 1], [256, 1, 1], 0, &[b(0), b(1), A::I(n as i32)], f64::from(n));
    go("reduce", "smem_reduce", [n / 256, 1, 1], [256, 1, 1], 1024, &[b(0), b(1), A::I(n as i32)], f64::from(n));
    go(
        "matmul",
        "matmul",
        [16, 16, 1],
        [16, 16, 1],
        0,
        &[b(0), b(1), b(2), A::I(256), A::I(256), A::I(256)],
        f64::from(256 * 256 * 256),
    );
}
