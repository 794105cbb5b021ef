//! Random kernels: the oracle and the translation leave the same bytes in memory, one thread at a time and, where a kernel has a vector form, as the lanes of vectors.
//! Every fourth is of threads that know nothing of one another, and every fourth of threads that meet but have nothing that keeps them from running so.
//!
//! A thousand of them by default; `STEADFAST_PTX_KERNELS` says another number and `STEADFAST_PTX_SEED` where to begin, so that many processes can share a
//! million. A kernel that fails is made as small as it gets and printed.

mod generator;
mod program;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use steadfast_ptx::kernel::Form;
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
/// Of so many kernels together some share has a vector form, or little is proven of vectors: so many in a hundred.
const VECTORS: u64 = 30;
/// Attempts to make a kernel smaller.
const ATTEMPTS: usize = 2000;

const INPUT: u64 = BUFFERS;
const INPUT_BYTES: usize = 8192;
const ACCUMULATED: u64 = INPUT + INPUT_BYTES as u64;
const OWNED: u64 = BUFFERS + 0x4000;
/// The most blocks of a launch.
const BLOCKS: u64 = 3;
/// Blocks of more threads take a large memory, and are alone.
const SMALL_BLOCK: u32 = 128;

/// A launch for a seed.
struct Launch {
    run: Run,
    /// Where the memory of each thread ends and the results begin, and where these end.
    result: u64,
    end: u64,
    random: Random,
}

/// Blocks of every width, most of them narrow, since what is in the way of a group of lanes is at its ends. Of widths by chance, half are made multiples of four, without which
/// there are no groups; many of the others are of a warp or half of one, as which groups run side by side.
fn shape(random: &mut Random) -> [u32; 2] {
    const SHAPES: [[u32; 2]; 16] = [
        [1, 1],
        [31, 1],
        [32, 1],
        [33, 1],
        [37, 1],
        [64, 1],
        [70, 1],
        [96, 1],
        [8, 5],
        [16, 8],
        [4, 9],
        [20, 2],
        [16, 3],
        [32, 3],
        [48, 2],
        [64, 2],
    ];
    let by_chance = |random: &mut Random, least: u64, most: u64| {
        let width = random.between(least, most);
        (if random.chance(50) { width.next_multiple_of(4).min(most) } else { width }) as u32
    };
    match random.below(100) {
        0..45 => SHAPES[random.below(SHAPES.len() as u64) as usize],
        45..86 => [by_chance(random, 1, 48), 1],
        86..98 => {
            let x = by_chance(random, 1, 40);
            [x, random.between(1, u64::from(SMALL_BLOCK / x)) as u32]
        }
        _ => [by_chance(random, u64::from(SMALL_BLOCK) + 1, THREADS), 1],
    }
}

impl Launch {
    fn of(seed: u64) -> Self {
        let mut random = Random::new(seed ^ 0x5eed);
        let [x, y] = shape(&mut random);
        let blocks = if x * y > SMALL_BLOCK { 1 } else { random.between(1, BLOCKS) };
        let threads = u64::from(x * y) * blocks;
        let (result, mut parameters) = (OWNED + OWN * threads, Vec::new());
        for address in [INPUT, OWNED, result, ACCUMULATED] {
            parameters.extend(address.to_le_bytes());
        }
        for _ in 0..4 {
            parameters.extend((random.operand(Type::B32) as u32).to_le_bytes());
        }
        let run = Run { grid: [blocks as u32, 1, 1], block: [x, y, 1], dynamic_shared: 0, parameters };
        Self { run, result, end: result + RESULTS * threads, random }
    }

    fn kernel(&self, program: &Program) -> Result<Kernel, String> {
        let [x, y, _] = self.run.block;
        if x * y > SMALL_BLOCK {
            Kernel::new(&program.print(), "kernel")
        } else {
            Kernel::small(&program.print(), "kernel")
        }
    }

    fn start(&mut self, kernel: &Kernel) -> Start {
        let mut start = Start::of(kernel, self.end);
        for at in (0..INPUT_BYTES).step_by(4) {
            let ty = if self.random.chance(50) { Type::B32 } else { Type::F32 };
            let value = self.random.operand(ty) as u32;
            start.memory[INPUT as usize + at..][..4].copy_from_slice(&value.to_le_bytes());
        }
        start.memory[OWNED as usize..self.result as usize].fill(0x3c);
        start.memory[self.result as usize..].fill(0xa5);
        start
    }

    /// What lies at an address.
    fn name(&self, at: u64) -> String {
        match at {
            at if at >= self.result => {
                let (thread, slot) = ((at - self.result) / RESULTS, (at - self.result) % RESULTS / 8);
                format!("register {slot} of thread {thread}")
            }
            at if at >= OWNED => format!("memory of thread {}", (at - OWNED) / OWN),
            at => format!("address {at:#x}"),
        }
    }

    /// How what a translation left, if it came to its end, differs from what is expected.
    fn compare(&self, expected: &[u8], got: Result<Vec<u8>, String>) -> Option<String> {
        let got = match got {
            Ok(memory) => memory,
            Err(error) => return Some(format!("the translation ends early: {error}")),
        };
        let at = expected.iter().zip(&got).position(|(expected, got)| expected != got)?;
        let (expected, got) = (expected[at], got[at]);
        Some(format!("{} begins to differ with {got:#x} and not {expected:#x}", self.name(at as u64)))
    }
}

/// What was tried.
#[derive(Default)]
struct Tally {
    kernels: AtomicU64,
    vectors: AtomicU64,
    /// In blocks that have groups of lanes.
    grouped: AtomicU64,
    /// In blocks whose rows are of warps: all groups of a warp can run side by side.
    warps: AtomicU64,
}

impl Tally {
    fn count(&self, kernel: &Kernel, run: &Run) {
        self.kernels.fetch_add(1, Ordering::Relaxed);
        if kernel.translation.form == Form::Vector {
            self.vectors.fetch_add(1, Ordering::Relaxed);
            self.grouped.fetch_add(u64::from(run.block[0].is_multiple_of(4)), Ordering::Relaxed);
            self.warps.fetch_add(u64::from(run.block[0].is_multiple_of(32)), Ordering::Relaxed);
        }
    }
}

/// The kernel of a seed.
fn program(seed: u64) -> Program {
    match seed % 4 {
        0 | 2 => Generator::program(seed),
        1 => Generator::alone(seed),
        _ => Generator::together(seed),
    }
}

/// What is wrong with the kernel, if anything.
fn difference(program: &Program, seed: u64, tally: &Tally) -> Option<String> {
    let mut launch = Launch::of(seed);
    let kernel = match launch.kernel(program) {
        Ok(kernel) => kernel,
        Err(error) => return Some(format!("it is refused: {error}")),
    };
    let start = launch.start(&kernel);
    let run = &launch.run;
    let expected = match kernel.oracle(run, &start) {
        Ok(memory) => memory,
        Err(trap) => return Some(format!("the oracle ends early: {trap:?}")),
    };
    tally.count(&kernel, run);
    // Blocks know nothing of one another here, so any division of them among instances will do.
    let instances = if kernel.translation.sequential { 1 } else { 1 + seed % 3 };
    let outcomes = [
        Some(("interpreted", kernel.interpreted(run, &start, instances))),
        (seed / 2).is_multiple_of(COMPILED).then(|| ("compiled", kernel.split(run, &start, instances))),
    ];
    let found = outcomes.into_iter().flatten().find_map(|(how, outcome)| {
        launch.compare(&expected, outcome).map(|difference| format!("{difference} ({how})"))
    });
    found.map(|difference| format!("{difference}; grid {:?}, block {:?}", run.grid, run.block))
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
            if difference(&smaller, seed, &Tally::default()).is_some_and(|difference| same(&difference)) {
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
fn finding(seeds: impl Iterator<Item = u64>, found: &AtomicBool, tally: &Tally) -> Option<String> {
    for seed in seeds {
        if found.load(Ordering::Relaxed) {
            return None;
        }
        let program = program(seed);
        if let Some(first) = difference(&program, seed, tally) {
            found.store(true, Ordering::Relaxed);
            let smallest = shrink(program, seed, &first);
            let now = difference(&smallest, seed, &Tally::default()).unwrap_or_default();
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
    let (found, tally, next) = (&AtomicBool::new(false), &Tally::default(), &AtomicU64::new(first));
    // Whoever is free takes the next one: kernels differ much.
    let seeds = || std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| *seed < end));
    let findings: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..processors).map(|_| scope.spawn(move || finding(seeds(), found, tally))).collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    let [kernels, vectors, grouped, warps] =
        [&tally.kernels, &tally.vectors, &tally.grouped, &tally.warps].map(|count| count.load(Ordering::Relaxed));
    // What the rack adds up.
    println!(
        "tally: {kernels} kernels, {vectors} with a vector form, {grouped} of these in groups of lanes, {warps} in rows of warps"
    );
    assert!(
        kernels < 100 || vectors * 100 > kernels * VECTORS,
        "only {vectors} of {kernels} kernels have a vector form"
    );
}

/// Else a difference between oracle and translation would say nothing.
#[test]
fn random_kernels_do_not_depend_on_who_goes_first() {
    for seed in 0..UNORDERED {
        let program = if seed.is_multiple_of(2) { Generator::program(seed) } else { Generator::together(seed) };
        let mut launch = Launch::of(seed);
        let kernel = launch.kernel(&program).unwrap();
        let start = launch.start(&kernel);
        let one = kernel.oracle(&launch.run, &start).unwrap();
        let other = kernel.oracle_with(&launch.run, &start, Schedule::Anyone(Random::new(seed))).unwrap();
        let difference = launch.compare(&one, Ok(other));
        assert_eq!(difference, None, "kernel {seed}\n{}", program.print());
    }
}
