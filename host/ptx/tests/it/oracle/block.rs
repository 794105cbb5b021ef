//! The threads of one block: who goes next, and who waits for whom.

use steadfast_ptx::module::{BarrierReduction, FunctionId, Op, Type};

use super::thread::{Frame, State, Thread};
use super::{Oracle, Schedule, Trap};

/// After so many instructions the next warp has its turn, so that one warp may spin until another goes on.
const TURN: u32 = 1000;
/// Barriers that a block has.
const BARRIERS: usize = 16;

pub(super) struct Block<'a> {
    pub(super) position: [u32; 3],
    pub(super) threads: Vec<Thread<'a>>,
    /// For each barrier, the threads that have been there without waiting.
    pub(super) passed: [Vec<u32>; BARRIERS],
}

impl<'a> Oracle<'a> {
    pub(super) fn run_block(&mut self, entry: FunctionId, position: [u32; 3]) -> Result<(), Trap> {
        let count: u32 = self.launch.block.iter().product();
        // Nothing is left of earlier blocks.
        let local_end = Thread::local(self.launch.local, count);
        for (start, end) in [(self.launch.shared, self.shared_end), (self.launch.local, local_end)] {
            self.memory[start as usize..end as usize].fill(0);
        }
        let threads = (0..count).map(|index| {
            let stack = Thread::local(self.launch.local, index);
            let frame = Frame::new(entry, &self.codes[entry.0 as usize], stack, Vec::new());
            Thread { index, frames: vec![frame], state: State::Runnable }
        });
        let mut block = Block { position, threads: threads.collect(), passed: Default::default() };
        loop {
            let mut moved = false;
            for first in (0..block.threads.len()).step_by(32) {
                let end = block.threads.len().min(first + 32);
                moved |= self.run_warp(&mut block, first..end)?;
            }
            if block.threads.iter().all(Thread::is_finished) {
                return Ok(());
            }
            let opened = (0..BARRIERS).filter(|barrier| self.open(&mut block, *barrier as u64)).count();
            if !moved && opened == 0 {
                return Err(Trap::Deadlock);
            }
        }
    }

    /// Whether any thread could go on.
    fn run_warp(&mut self, block: &mut Block<'a>, warp: std::ops::Range<usize>) -> Result<bool, Trap> {
        for turn in 0..TURN {
            let runnable: Vec<usize> = warp.clone().filter(|index| block.threads[*index].is_runnable()).collect();
            let Some(lowest) = runnable.iter().map(|index| self.counter(&block.threads[*index])).min() else {
                return Ok(turn > 0);
            };
            match &mut self.schedule {
                Schedule::Anyone(random) => {
                    let index = runnable[random.below(runnable.len() as u64) as usize];
                    self.step(block, index)?;
                }
                Schedule::LowestFirst => {
                    for index in runnable {
                        if self.counter(&block.threads[index]) == lowest {
                            self.step(block, index)?;
                        }
                    }
                }
            }
            self.meet(&mut block.threads[warp.clone()])?;
        }
        Ok(true)
    }

    /// The program counter, one number for the whole module.
    fn counter(&self, thread: &Thread) -> usize {
        thread.frames.last().map_or(0, |frame| self.codes[frame.function.0 as usize].first + frame.next)
    }

    /// Lets the threads at a barrier go on if all have come: all warps that still run, or as many as the threads say. A warp has come when
    /// all of its threads have that still run.
    fn open(&self, block: &mut Block<'a>, barrier: u64) -> bool {
        let passed = std::mem::take(&mut block.passed[barrier as usize]);
        let waits = |thread: &Thread| matches!(thread.state, State::Barrier { barrier: at, .. } if at == barrier);
        let mut expected = None;
        let (mut came, mut missing, mut holding, mut participants) = (0, 0, 0, 0);
        for warp in block.threads.chunks(32) {
            let alive: Vec<&Thread> =
                warp.iter().filter(|thread| !thread.is_finished() || passed.contains(&thread.index)).collect();
            for thread in warp {
                if let State::Barrier { barrier: at, threads, holds } = thread.state
                    && at == barrier
                {
                    expected = expected.or(threads);
                    holding += u64::from(holds);
                    participants += 1;
                }
            }
            if !alive.is_empty() && alive.iter().all(|thread| waits(thread) || passed.contains(&thread.index)) {
                came += 1;
            } else if !alive.is_empty() {
                missing += 1;
            }
        }
        let complete = expected.map_or(missing == 0, |threads| came * 32 >= threads);
        if participants == 0 || !complete {
            block.passed[barrier as usize] = passed;
            return false;
        }
        for thread in block.threads.iter_mut().filter(|thread| waits(thread)) {
            thread.state = State::Runnable;
            self.give_reduction(thread, holding, participants);
        }
        true
    }

    /// The thread stands behind its barrier.
    fn give_reduction(&self, thread: &mut Thread, holding: u64, participants: u64) {
        let Some(frame) = thread.frames.last_mut() else { return };
        let code = &self.codes[frame.function.0 as usize];
        if let Op::Barrier { reduction: Some((reduction, dst, _)), .. } = code.instructions[frame.next - 1].op {
            let (ty, value) = match reduction {
                BarrierReduction::Count => (Type::U32, holding),
                BarrierReduction::All => (Type::Pred, u64::from(holding == participants)),
                BarrierReduction::Any => (Type::Pred, u64::from(holding > 0)),
            };
            frame.set(code, dst, ty, value.into());
        }
    }
}
