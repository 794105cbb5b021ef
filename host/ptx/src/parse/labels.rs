//! Labels of a function: used before and after the place where they stand, and known in the block around it only.

use std::collections::HashMap;

use super::error::{Result, error, quote};
use crate::module::{LabelId, Op, Position, Statement};

/// A spelling in one block.
#[derive(Debug, Clone, Copy)]
struct Label {
    /// Provisional: an index into [`Labels::known`].
    id: LabelId,
    /// Of its first mention.
    position: Position,
    stands: bool,
}

/// What a provisional number turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// Not placed yet.
    Open,
    /// A label that stands in the body.
    Stands,
    /// Another number: the mention was in an inner block, the label in an outer one.
    Same(LabelId),
}

/// All labels of a function. Each mention gets a provisional number at once; [`finish`](Self::finish) makes them final.
#[derive(Debug, Default)]
pub(super) struct Labels<'a> {
    /// The body itself.
    outermost: HashMap<&'a str, Label>,
    /// The open blocks in it.
    blocks: Vec<HashMap<&'a str, Label>>,
    known: Vec<Known>,
}

impl<'a> Labels<'a> {
    /// `{`.
    pub(super) fn enter(&mut self) {
        self.blocks.push(HashMap::new());
    }

    /// `}`: what was mentioned and does not stand in the block is looked for in the one around it.
    pub(super) fn leave(&mut self) {
        let Some(inner) = self.blocks.pop() else { return };
        let outer = self.blocks.last_mut().unwrap_or(&mut self.outermost);
        for (name, label) in inner.into_iter().filter(|(_, label)| !label.stands) {
            let same = outer.entry(name).or_insert(label);
            same.position = same.position.min(label.position);
            if same.id != label.id {
                self.known[label.id.0 as usize] = Known::Same(same.id);
            }
        }
    }

    /// A label as a target.
    pub(super) fn mention(&mut self, name: &'a str, position: Position) -> LabelId {
        self.entry(name, position).id
    }

    /// A label at its place.
    pub(super) fn place(&mut self, name: &'a str, position: Position) -> Result<LabelId> {
        let label = self.entry(name, position);
        if label.stands {
            return error(position, format!("the label {} stands twice in this block", quote(name)));
        }
        label.stands = true;
        let id = label.id;
        self.known[id.0 as usize] = Known::Stands;
        Ok(id)
    }

    fn entry(&mut self, name: &'a str, position: Position) -> &mut Label {
        let known = &mut self.known;
        self.blocks.last_mut().unwrap_or(&mut self.outermost).entry(name).or_insert_with(|| {
            known.push(Known::Open);
            Label { id: LabelId(known.len() as u32 - 1), position, stands: false }
        })
    }

    /// Writes the final numbers into the body; how many labels there are.
    pub(super) fn finish(self, body: &mut [Statement]) -> Result<u32> {
        let open = self.outermost.iter().filter(|(_, label)| !label.stands);
        if let Some((name, label)) = open.min_by_key(|(_, label)| label.position) {
            return error(
                label.position,
                format!("the label {} does not stand in this block or one around it", quote(name)),
            );
        }
        let mut count = 0;
        let mut numbers = vec![LabelId(0); self.known.len()];
        for (number, _) in numbers.iter_mut().zip(&self.known).filter(|(_, known)| **known == Known::Stands) {
            *number = LabelId(count);
            count += 1;
        }
        // A chain is as long as blocks are nested at most.
        let of = |mut label: LabelId| {
            while let Known::Same(other) = self.known[label.0 as usize] {
                label = other;
            }
            numbers[label.0 as usize]
        };
        for statement in body {
            match statement {
                Statement::Label(label) => *label = of(*label),
                Statement::Instruction(instruction) => match &mut instruction.op {
                    Op::Branch { target, .. } => *target = of(*target),
                    Op::BranchTable { targets, .. } => targets.iter_mut().for_each(|target| *target = of(*target)),
                    _ => {}
                },
            }
        }
        Ok(count)
    }
}
