use crate::rig::*;
use steadfast_ptx::kernel::Options;
#[test]
fn timing() {
    let n: u32 = 1 << 18;
    let a = |i: u64| BUFFERS + i * 4 * u64::from(n);
    let f = |x: f32| x.to_le_bytes().to_vec();
    let b = |i| a(i).to_le_bytes().to_vec();
    let i = |i: u32| i.to_le_bytes().to_vec();
    let l = |i: u32| u64::from(i).to_le_bytes().to_vec();
    let heat = std::fs::read_to_string("../../plugins/heat/kernels/heat.ptx").unwrap();
    let own = |file: &str| std::fs::read_to_string(format!("tests/kernels/{file}.ptx")).unwrap();
    let rates = [1e-3, 0.9, 0.999, 0.1, 0.001, 1e-8, 0.01].map(f).concat();
    let pad = |v: Vec<Vec<u8>>| v.concat();
    let cases = [
        ("saxpy", own("saxpy"), pad(vec![i(n), f(1.0001), b(0), b(1)]), [n / 256, 1, 1], [256, 1, 1]),
        ("adamw", own("adam"), pad(vec![b(0), b(1), b(2), b(3), l(n), rates]), [n / 256, 1, 1], [256, 1, 1]),
        ("gelu", own("adam"), pad(vec![b(0), b(1), i(n)]), [n / 256, 1, 1], [256, 1, 1]),
        ("diffuse", heat, pad(vec![b(0), b(1), i(64), i(64), i(64), f(0.1)]), [2, 16, 32], [32, 4, 2]),
    ];
    for (entry, text, parameters, grid, block) in cases {
        for vectors in [false, true] {
            let module = parse(&text).unwrap();
            let id = module.functions.iter().position(|function| function.name == entry).unwrap();
            let options = Options { memory_bytes: BYTES, canonical_nans: false, vectors };
            let kernel = steadfast_ptx::translate::translate(&module, steadfast_ptx::module::FunctionId(id as u32), &options).unwrap();
            if vectors { std::fs::write(format!("/tmp/x/{entry}.wasm"), &kernel.wasm).unwrap(); }
            let start = std::time::Instant::now();
            let machine = crate::machine::Machine::new(&kernel).unwrap();
            let compile = start.elapsed();
            let run = Run { grid, block, dynamic_shared: 0, parameters: parameters.clone() };
            let best = machine.time(&run.launch(0), grid.iter().map(|x| u64::from(*x)).product(), &parameters);
            println!("{entry:8} {vectors:5} {:7.3} ns/element, compile {compile:?}, {} bytes", best / f64::from(n) * 1e9, kernel.wasm.len());
        }
    }
}
