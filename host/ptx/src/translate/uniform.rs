//! Which values are the same for all threads of a block.
//!
//! What follows from constants and the launch record alone is computed once before the loop over threads. (For threads side by side in
//! vectors `lanes` finds more: also what is the same for them only.) Nothing that can trap is among them, so it does no harm to compute one that no thread would have needed.

use super::ir::{Function, Inst, Value};

/// For each value of a function, whether it is uniform and free of effects.
pub fn uniform(function: &Function, pure: impl Fn(&Inst) -> bool) -> Vec<bool> {
    let mut known: Vec<Option<bool>> = vec![None; function.values.len()];
    for index in 0..function.values.len() {
        let mut pending = vec![Value(index as u32)];
        while let Some(value) = pending.last().copied() {
            if known[value.0 as usize].is_some() {
                pending.pop();
                continue;
            }
            let inst = function.inst(value);
            if !may_be(inst, &pure) {
                known[value.0 as usize] = Some(false);
                continue;
            }
            let missing: Vec<Value> = inst.operands().filter(|operand| known[operand.0 as usize].is_none()).collect();
            if missing.is_empty() {
                let all = inst.operands().all(|operand| known[operand.0 as usize] == Some(true));
                known[value.0 as usize] = Some(all);
            } else {
                pending.extend(missing);
            }
        }
    }
    known.into_iter().map(|known| known == Some(true)).collect()
}

fn may_be(inst: &Inst, pure: &impl Fn(&Inst) -> bool) -> bool {
    match inst {
        Inst::Const(_) | Inst::Unary(..) | Inst::Binary(..) | Inst::Fma(..) | Inst::Select(..) => true,
        Inst::Load(access, _) => access.constant,
        Inst::Call(..) => pure(inst),
        _ => false,
    }
}
