//! What a whole warp does with matrices: products on the values at which they go wrong, and matrices on their way between memory and registers.
//!
//! ```text
//!  buffers:  for each thread: words that it brings │ words that it gets
//! ```

use crate::random::Random;
use crate::rig::{BUFFERS, Kernel, Run, Start};
use steadfast_ptx::module::Type;

/// Bytes of a thread's words of either kind.
const THREAD: u64 = 128;
/// Warps of a block.
const WARPS: u32 = 3;

/// A product: its name, the types of its factors and sum with how many registers each has.
#[derive(Clone, Copy)]
struct Product {
    name: &'static str,
    first: (Type, u32),
    second: (Type, u32),
    sum: (Type, u32),
}

const fn product(name: &'static str, first: (Type, u32), second: (Type, u32), sum: (Type, u32)) -> Product {
    Product { name, first, second, sum }
}

const PRODUCTS: &[Product] = &[
    product("m16n8k8.row.col.f32.f16.f16.f32", (Type::F16, 2), (Type::F16, 1), (Type::F32, 4)),
    product("m16n8k16.row.col.f32.f16.f16.f32", (Type::F16, 4), (Type::F16, 2), (Type::F32, 4)),
    product("m16n8k8.row.col.f16.f16.f16.f16", (Type::F16, 2), (Type::F16, 1), (Type::F16, 2)),
    product("m16n8k16.row.col.f16.f16.f16.f16", (Type::F16, 4), (Type::F16, 2), (Type::F16, 2)),
    product("m16n8k8.row.col.f32.bf16.bf16.f32", (Type::Bf16, 2), (Type::Bf16, 1), (Type::F32, 4)),
    product("m16n8k16.row.col.f32.bf16.bf16.f32", (Type::Bf16, 4), (Type::Bf16, 2), (Type::F32, 4)),
    product("m16n8k4.row.col.f32.tf32.tf32.f32", (Type::F32, 2), (Type::F32, 1), (Type::F32, 4)),
    product("m16n8k8.row.col.f32.tf32.tf32.f32", (Type::F32, 4), (Type::F32, 2), (Type::F32, 4)),
    product("m16n8k16.row.col.s32.s8.s8.s32", (Type::S8, 2), (Type::S8, 1), (Type::S32, 4)),
    product("m16n8k16.row.col.s32.u8.s8.s32", (Type::U8, 2), (Type::S8, 1), (Type::S32, 4)),
    product("m16n8k32.row.col.s32.s8.u8.s32", (Type::S8, 4), (Type::U8, 2), (Type::S32, 4)),
    product("m16n8k32.row.col.s32.u8.u8.s32", (Type::U8, 4), (Type::U8, 2), (Type::S32, 4)),
    product("m8n8k4.row.col.f64.f64.f64.f64", (Type::F64, 1), (Type::F64, 1), (Type::F64, 2)),
    product("m16n8k4.row.col.f64.f64.f64.f64", (Type::F64, 2), (Type::F64, 1), (Type::F64, 4)),
    product("m16n8k8.row.col.f64.f64.f64.f64", (Type::F64, 4), (Type::F64, 2), (Type::F64, 4)),
    product("m16n8k16.row.col.f64.f64.f64.f64", (Type::F64, 8), (Type::F64, 4), (Type::F64, 4)),
];

impl Product {
    /// The type of registers that hold elements of this type.
    fn register(self, ty: Type) -> &'static str {
        match ty {
            Type::F32 if self.sum.0 == Type::F32 => "f32",
            Type::F64 => "f64",
            _ => "b32",
        }
    }

    fn bytes(self) -> u32 {
        if self.sum.0 == Type::F64 { 8 } else { 4 }
    }

    fn text(self) -> String {
        let mut body = String::new();
        let mut at = 0;
        let parts = [("x", self.first, "b32"), ("y", self.second, "b32"), ("z", self.sum, self.register(self.sum.0))];
        for (name, (_, count), register) in parts {
            let register = if self.sum.0 == Type::F64 { "f64" } else { register };
            body += &format!(".reg .{register} %{name}<{count}>;\n");
            for index in 0..count {
                body += &format!("ld.global.{register} %{name}{index}, [%mine+{at}];\n");
                at += self.bytes();
            }
        }
        let list = |name: &str, count: u32| {
            let all: Vec<String> = (0..count).map(|index| format!("%{name}{index}")).collect();
            format!("{{{}}}", all.join(", "))
        };
        let (sums, register) = (list("z", self.sum.1), self.register(self.sum.0));
        body += &format!(
            "mma.sync.aligned.{} {sums}, {}, {}, {sums};\n",
            self.name,
            list("x", self.first.1),
            list("y", self.second.1)
        );
        for index in 0..self.sum.1 {
            body += &format!("st.global.{register} [%mine+{}], %z{index};\n", THREAD + u64::from(index * self.bytes()));
        }
        kernel("", &body)
    }

    /// The bytes that a thread brings, with elements from `element`.
    fn brought(self, mut element: impl FnMut(Type) -> u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (ty, count) in [self.first, self.second, self.sum] {
            for _ in 0..count * self.bytes() * 8 / ty.bits() {
                bytes.extend(&element(ty).to_le_bytes()[..ty.bytes() as usize]);
            }
        }
        bytes
    }
}

/// A kernel whose threads have their words at `%mine`.
fn kernel(before: &str, body: &str) -> String {
    format!(
        ".version 8.2\n.target sm_90\n.address_size 64\n{before}\n.visible .entry kernel(.param .u64 parameter)\n{{\n\
         .reg .b32 %id, %r<16>;\n.reg .b64 %mine, %a<8>;\nmov.u32 %id, %tid.x;\nld.param.u64 %mine, [parameter];\n\
         mul.wide.u32 %a0, %id, {};\nadd.u64 %mine, %mine, %a0;\n{body}ret;\n}}\n",
        2 * THREAD
    )
}

/// What each thread gets, from the translation; the oracle has the same.
fn run(kernel: &Kernel, brought: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let run = Run {
        grid: [1; 3],
        block: [brought.len() as u32, 1, 1],
        parameters: BUFFERS.to_le_bytes().to_vec(),
        ..Run::default()
    };
    let mut start = Start::of(kernel, BUFFERS + 2 * THREAD * brought.len() as u64);
    for (thread, bytes) in brought.iter().enumerate() {
        start.memory[BUFFERS as usize + 2 * THREAD as usize * thread..][..bytes.len()].copy_from_slice(bytes);
    }
    let threads = |memory: &[u8]| -> Vec<Vec<u8>> {
        memory[BUFFERS as usize..].chunks(2 * THREAD as usize).map(|all| all[THREAD as usize..].to_vec()).collect()
    };
    let got = threads(&kernel.translation(&run, &start).unwrap());
    let expected = threads(&kernel.oracle(&run, &start).unwrap());
    for (thread, (got, expected)) in got.iter().zip(&expected).enumerate() {
        assert_eq!(got, expected, "thread {thread}");
    }
    got
}

#[test]
fn products_of_edges_and_of_any_bits() {
    for (index, product) in (0..).zip(PRODUCTS) {
        let kernel = Kernel::new(&product.text(), "kernel").unwrap_or_else(|error| panic!("{}: {error}", product.name));
        let mut random = Random::new(index);
        for round in 0..6 {
            // Few edges at first, so that not every sum is a NaN; then numbers near one, then all of them.
            let mut element = |ty: Type| match round {
                0 => random.next() & (u64::MAX >> (64 - ty.bits())),
                1 | 2 => random.edge(ty),
                _ if random.chance(2) => random.edge(ty),
                _ => near_one(&mut random, ty),
            };
            let brought: Vec<Vec<u8>> = (0..32 * WARPS).map(|_| product.brought(&mut element)).collect();
            println!("{}, round {round}", product.name);
            run(&kernel, &brought);
        }
    }
}

/// A number whose products and sums have something to round.
fn near_one(random: &mut Random, ty: Type) -> u64 {
    let any = random.next();
    let (fraction, bias, spread) = match ty {
        Type::F16 => (10, 15, 3),
        Type::Bf16 => (7, 127, 6),
        Type::F32 => (23, 127, 6),
        Type::F64 => (52, 1023, 20),
        ty => return any & (u64::MAX >> (64 - ty.bits())),
    };
    let sign = (any >> 63) << (ty.bits() - 1);
    sign | (bias - spread + random.below(2 * spread)) << fraction | any & ((1 << fraction) - 1)
}

/// Where elements stand, said once more: with a factor that picks elements out, the result is a part of the other.
#[test]
fn a_product_with_the_identity() {
    let name = "m16n8k16.row.col.f32.f16.f16.f32";
    let product = *PRODUCTS.iter().find(|product| product.name == name).unwrap();
    let kernel = Kernel::new(&product.text(), "kernel").unwrap();
    // The first factor's element in row r and column k is 16 r + k, which halves can hold; the second picks column 5 + n.
    let first = |row: u32, k: u32| half(16 * row + k);
    let second = |k: u32, column: u32| half(u32::from(k == 5 + column));
    let brought: Vec<Vec<u8>> = (0..32u32)
        .map(|lane| {
            let (group, turn) = (lane / 4, lane % 4);
            let a = [(0, 0), (8, 0), (0, 8), (8, 8)]
                .map(|(down, right)| [0, 1].map(|i| first(group + down, 2 * turn + right + i)));
            let b = [0, 8].map(|down| [0, 1].map(|i| second(2 * turn + down + i, group)));
            let sums = [0.5f32; 4].map(f32::to_le_bytes);
            let halves: Vec<u8> = a.iter().chain(&b).flatten().flat_map(|half| half.to_le_bytes()).collect();
            [halves, sums.concat()].concat()
        })
        .collect();
    for (lane, words) in (0u32..).zip(run(&kernel, &brought)) {
        let (group, turn) = (lane / 4, lane % 4);
        for (index, (down, right)) in [(0, 0), (0, 1), (8, 0), (8, 1)].into_iter().enumerate() {
            let got = f32::from_le_bytes(words[4 * index..][..4].try_into().unwrap());
            let expected = 16 * (group + down) + 5 + 2 * turn + right;
            assert_eq!(f64::from(got), f64::from(expected) + 0.5, "lane {lane}, element {index}");
        }
    }
}

/// A whole number below 2048 as a half.
fn half(number: u32) -> u16 {
    if number == 0 {
        return 0;
    }
    let exponent = number.ilog2();
    ((exponent + 15) << 10 | (number << (10 - exponent)) & 0x3ff) as u16
}

/// One sum in one order: with another, small products that come after a large one would be lost or not.
#[test]
fn products_are_added_in_their_order() {
    let name = "m16n8k8.row.col.f32.tf32.tf32.f32";
    let product = *PRODUCTS.iter().find(|product| product.name == name).unwrap();
    let kernel = Kernel::new(&product.text(), "kernel").unwrap();
    let column = [16_777_216.0f32, 1.0, 1.0, -16_777_216.0, 1.0, 0.0, 0.0, 0.0];
    let brought: Vec<Vec<u8>> = (0..32usize)
        .map(|lane| {
            let turn = lane % 4;
            let a = [1.0f32; 4];
            let b = [column[turn], column[turn + 4]];
            let c = [0.0f32; 4];
            a.iter().chain(&b).chain(&c).flat_map(|x| x.to_le_bytes()).collect()
        })
        .collect();
    let words = run(&kernel, &brought);
    // 2²⁴ + 1 + 1 stays 2²⁴ where each sum is rounded; what comes after it has gone is kept.
    assert!(words.iter().all(|words| words[..16] == [1.0f32.to_le_bytes(); 4].concat()), "{words:?}");
}

/// Each thread brings a row of 16 bytes to shared memory, whose address is in `%a1`; the instructions make of them matrices in registers from `%r0` on.
fn moved(instructions: &str, count: usize, transposed: bool) {
    let stores = (0..count).map(|index| format!("st.global.u32 [%mine+{}], %r{index};\n", THREAD + 4 * index as u64));
    let body = format!(
        "mov.u64 %a1, tiles;\nmul.wide.u32 %a2, %id, 16;\nadd.u64 %a1, %a1, %a2;\n\
         ld.global.v4.u32 {{%r0, %r1, %r2, %r3}}, [%mine];\nst.shared.v4.u32 [%a1], {{%r0, %r1, %r2, %r3}};\nbar.sync 0;\n\
         {instructions}\n{}",
        stores.collect::<String>()
    );
    let tiles = format!(".shared .align 16 .b8 tiles[{}];", 512 * WARPS);
    let kernel =
        Kernel::new(&kernel(&tiles, &body), "kernel").unwrap_or_else(|error| panic!("{instructions}: {error}"));
    let mut random = Random::new(instructions.len() as u64);
    let brought: Vec<Vec<u8>> =
        (0..32 * WARPS).map(|_| (0..2).flat_map(|_| random.next().to_le_bytes()).collect()).collect();
    // The half in a column of a thread's row.
    let half = |thread: usize, column: usize| -> [u8; 2] { brought[thread][2 * column..][..2].try_into().unwrap() };
    for (thread, words) in run(&kernel, &brought).iter().enumerate() {
        let (first, lane) = (thread / 32 * 32, thread % 32);
        for (matrix, word) in words.chunks(4).take(count).enumerate() {
            let halves = [0, 1].map(|i| {
                let (row, column) = (lane / 4, lane % 4 * 2 + i);
                let (row, column) = if transposed { (column, row) } else { (row, column) };
                half(first + 8 * matrix + row, column)
            });
            assert_eq!(word, halves.concat(), "{instructions}: thread {thread}, matrix {matrix}");
        }
    }
}

#[test]
fn matrices_are_loaded() {
    for (trans, transposed) in [("", false), (".trans", true)] {
        let load = |form: &str, registers: &str, address: &str| {
            format!("ldmatrix.sync.aligned.m8n8.{form} {registers}, [{address}];").replace("#", trans)
        };
        moved(&load("x1#.shared.b16", "{%r0}", "%a1"), 1, transposed);
        moved(&load("x1#.shared.b16", "%r0", "%a1"), 1, transposed);
        moved(&load("x2#.shared::cta.b16", "{%r0, %r1}", "%a1"), 2, transposed);
        moved(&load("x4#.shared.b16", "{%r0, %r1, %r2, %r3}", "%a1"), 4, transposed);
        // By a generic address, and by one of 32 bits.
        moved(&load("x4#.b16", "{%r0, %r1, %r2, %r3}", "%a1"), 4, transposed);
        let short = load("x4#.shared.b16", "{%r0, %r1, %r2, %r3}", "%r9+48");
        moved(&format!("cvt.u32.u64 %r9, %a1;\nsub.u32 %r9, %r9, 48;\n{short}"), 4, transposed);
    }
}

/// Only the lanes whose rows are loaded have addresses: the others' may be anything.
#[test]
fn addresses_that_do_not_count_are_not_looked_at() {
    let instructions = ".reg .pred %p;\nmov.u32 %r8, %laneid;\nsetp.ge.u32 %p, %r8, 16;\n@%p mov.u64 %a1, -1;\n\
        ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0, %r1}, [%a1];";
    moved(instructions, 2, false);
}

#[test]
fn matrices_are_stored() {
    for (store, load) in [("", ""), (".trans", ""), ("", ".trans"), (".trans", ".trans")] {
        for (form, registers, count) in [("x1", "{%r4}", 1), ("x2", "{%r4, %r5}", 2), ("x4", "{%r4, %r5, %r6, %r7}", 4)]
        {
            let again =
                registers.replace("%r4", "%r0").replace("%r5", "%r1").replace("%r6", "%r2").replace("%r7", "%r3");
            let instructions = format!(
                "ldmatrix.sync.aligned.m8n8.{form}.shared.b16 {registers}, [%a1];\nbar.sync 0;\n\
                 stmatrix.sync.aligned.m8n8.{form}{store}.shared.b16 [%a1], {registers};\nbar.sync 0;\n\
                 ldmatrix.sync.aligned.m8n8.{form}{load}.shared.b16 {again}, [%a1];"
            );
            moved(&instructions, count, store != load);
        }
    }
}

#[test]
fn a_matrix_is_transposed() {
    let load = "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%a1];\n";
    moved(&format!("{load}movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r4;"), 1, true);
    moved(
        &format!(
            "{load}movmatrix.sync.aligned.m8n8.trans.b16 %r0, %r4;\nmovmatrix.sync.aligned.m8n8.trans.b16 %r0, %r0;"
        ),
        1,
        false,
    );
}
