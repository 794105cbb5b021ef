//! Random kernels: the oracle and the translation leave the same bytes in memory. Every second is of threads that know nothing of one another, so that most of these
//! run as the lanes of vectors.
//!
//! A thousand of them by default; `STEADFAST_PTX_KERNELS` says another number and `STEADFAST_PTX_SEED` where to begin, so that many processes can share a
//! million. A kernel that fails is made as small as it gets and printed.

mod generator;
mod program;

use std::sync::atomic::{AtomicBool, Ordering};

use steadfast_ptx::module::Type;

use crate::oracle::Schedule;
use crate::random::Random;
use crate::rig::{BUFFERS, Kernel, Run, Start};
use generator::Generator;
use program::{OWN, Program, RESULTS, THREADS};

/// How many kernels are tried where the environment does not say.
const KERNELS: u64 = 1000;
/// Of so many it is seen that they are free of data races.
const UNORDERED: u64 = 100;
/// One of so many is compiled as the device compiles it; the others are interpreted, since compiling takes ten times as long as all the rest.
const COMPILED: u64 = 32;
/// Attempts to make a kernel smaller.
const ATTEMPTS: usize = 2000;

const INPUT: u64 = BUFFERS;
const INPUT_BYTES: usize = 8192;
const ACCUMULATED: u64 = INPUT + INPUT_BYTES as u64;
const OWNED: u64 = BUFFERS + 0x4000;
const RESULT: u64 = OWNED + OWN * THREADS * BLOCKS;
/// The most blocks of a launch.
const BLOCKS: u64 = 3;

/// A launch for a seed: its shape, parameters and memory.
fn launch(seed: u64, kernel: &Kernel) -> (Run, Start) {
    let mut random = Random::new(seed ^ 0x5eed);
    let shapes =
        [[1, 1], [31, 1], [32, 1], [33, 1], [37, 1], [64, 1], [70, 1], [96, 1], [8, 5], [16, 8], [4, 9], [20, 2]];
    let [x, y] = shapes[random.below(shapes.len() as u64) as usize];
    let mut parameters = Vec::new();
    for address in [INPUT, OWNED, RESULT, ACCUMULATED] {
        parameters.extend(address.to_le_bytes());
    }
    for _ in 0..4 {
        parameters.extend((random.operand(Type::B32) as u32).to_le_bytes());
    }
    let run = Run { grid: [random.between(1, BLOCKS) as u32, 1, 1], block: [x, y, 1], dynamic_shared: 0, parameters };
    let mut start = Start::of(kernel, RESULT + RESULTS * THREADS * BLOCKS);
    for at in (0..INPUT_BYTES).step_by(4) {
        let ty = if random.chance(50) { Type::B32 } else { Type::F32 };
        let value = random.operand(ty) as u32;
        start.memory[INPUT as usize + at..][..4].copy_from_slice(&value.to_le_bytes());
    }
    start.memory[RESULT as usize..][..(RESULTS * THREADS * BLOCKS) as usize].fill(0xa5);
    start.memory[OWNED as usize..][..(OWN * THREADS * BLOCKS) as usize].fill(0x3c);
    (run, start)
}

/// What is wrong with the kernel, if anything.
fn difference(program: &Program, seed: u64) -> Option<String> {
    let kernel = match Kernel::small(&program.print(), "kernel") {
        Ok(kernel) => kernel,
        Err(error) => return Some(format!("it is refused: {error}")),
    };
    let (run, start) = launch(seed, &kernel);
    let expected = match kernel.oracle(&run, &start) {
        Ok(memory) => memory,
        Err(trap) => return Some(format!("the oracle ends early: {trap:?}")),
    };
    // Blocks know nothing of one another here, so any division of them among instances will do.
    let instances = if kernel.translation.sequential { 1 } else { 1 + seed % 3 };
    let compiled = (seed / 2).is_multiple_of(COMPILED).then(|| kernel.split(&run, &start, instances));
    let interpreted = kernel.interpreted(&run, &start, instances);
    [Some(("interpreted", interpreted)), compiled.map(|outcome| ("compiled", outcome))]
        .into_iter()
        .flatten()
        .find_map(|(how, outcome)| compare(&expected, outcome).map(|difference| format!("{difference} ({how})")))
        .map(|difference| format!("{difference}; grid {:?}, block {:?}", run.grid, run.block))
}

/// How what a translation left, if it came to its end, differs from what is expected.
fn compare(expected: &[u8], got: Result<Vec<u8>, String>) -> Option<String> {
    let got = match got {
        Ok(memory) => memory,
        Err(error) => return Some(format!("the translation ends early: {error}")),
    };
    let at = expected.iter().zip(&got).position(|(expected, got)| expected != got)?;
    let (expected, got) = (expected[at], got[at]);
    Some(format!("{} begins to differ with {got:#x} and not {expected:#x}", name(at as u64)))
}

/// What lies at an address.
fn name(at: u64) -> String {
    match at {
        at if at >= RESULT => {
            let (thread, slot) = ((at - RESULT) / RESULTS, (at - RESULT) % RESULTS / 8);
            format!("register {slot} of thread {thread}")
        }
        at if at >= OWNED => format!("memory of thread {}", (at - OWNED) / OWN),
        at => format!("address {at:#x}"),
    }
}

/// The smallest kernel found that goes wrong in the same way, as far as its first words tell.
fn shrink(mut program: Program, seed: u64, difference_of: &str) -> Program {
    let kind = |difference: &str| difference.split([' ', ':']).take(3).collect::<Vec<_>>().join(" ");
    let same = kind(difference_of);
    let same = |other: &str| kind(other).split(' ').next() == same.split(' ').next();
    let mut attempts = 0;
    'again: loop {
        for smaller in program.smaller() {
            attempts += 1;
            if attempts > ATTEMPTS {
                return program;
            }
            if difference(&smaller, seed).is_some_and(|difference| same(&difference)) {
                program = smaller;
                continue 'again;
            }
        }
        return program;
    }
}

fn from_environment(name: &str, otherwise: u64) -> u64 {
    std::env::var(name)
        .map_or(otherwise, |number| number.parse().unwrap_or_else(|_| panic!("{name}={number} is no number")))
}

/// What is found in the first kernel of `seeds` that goes wrong, with the kernel made small.
fn finding(seeds: impl Iterator<Item = u64>, found: &AtomicBool) -> Option<String> {
    for seed in seeds {
        if found.load(Ordering::Relaxed) {
            return None;
        }
        let program = if seed % 2 == 0 { Generator::program(seed) } else { Generator::alone(seed) };
        if let Some(first) = difference(&program, seed) {
            found.store(true, Ordering::Relaxed);
            let smallest = shrink(program, seed, &first);
            let now = difference(&smallest, seed).unwrap_or_default();
            return Some(format!("kernel {seed}: {first}\nsmaller: {now}\n{}", smallest.print()));
        }
    }
    None
}

#[test]
fn random_kernels_leave_the_same_bytes() {
    let first = from_environment("STEADFAST_PTX_SEED", 0);
    let end = first + from_environment("STEADFAST_PTX_KERNELS", KERNELS);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let found = &AtomicBool::new(false);
    let findings: Vec<String> = std::thread::scope(|scope| {
        let share = move |processor: u64| (first + processor..end).step_by(processors);
        let threads: Vec<_> =
            (0..processors as u64).map(|processor| scope.spawn(move || finding(share(processor), found))).collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

/// Else a difference between oracle and translation would say nothing.
#[test]
fn random_kernels_do_not_depend_on_who_goes_first() {
    for seed in 0..UNORDERED {
        let text = Generator::program(seed).print();
        let kernel = Kernel::small(&text, "kernel").unwrap();
        let (run, start) = launch(seed, &kernel);
        let one = kernel.oracle(&run, &start).unwrap();
        let other = kernel.oracle_with(&run, &start, Schedule::Anyone(Random::new(seed))).unwrap();
        let at = one.iter().zip(&other).position(|(one, other)| one != other);
        assert!(at.is_none(), "kernel {seed}: {}\n{text}", name(at.unwrap_or_default() as u64));
    }
}
