//! Which forms a kernel gets: for threads one by one, and for groups of four that run side by side.

use std::collections::BTreeSet;

use super::exchange;
use super::groups::Wide;
use super::module::uniform_values;
use crate::kernel::{Obstacle, Options};
use crate::module::Position;
use crate::translate::frame::Frames;
use crate::translate::graph::Graph;
use crate::translate::if_conversion::{convert_one, join_chains};
use crate::translate::ir::{Function, Input, Inst, Program, Terminator};
use crate::translate::lanes::{Shape, shapes_in_lockstep};
use crate::translate::parting::{Lockstep, stays_alone};
use crate::translate::regions::{Regions, heads};

/// Operations of all regions in which threads go on alone that parted, at most.
const MOST_RESTS: usize = 6000;
/// Operations of all regions for groups.
const MOST_TOGETHER: usize = 6000;
/// Branches that become selections, at most.
const MOST_CONVERSIONS: usize = 64;

/// How a kernel is run.
pub enum Form {
    /// Its threads never wait, and run one after the other.
    Flat(Obstacle),
    /// They never wait, and run in groups that begin again one by one if they do not agree.
    Groups(Box<Wide>),
    /// A scheduler runs them one by one.
    Scheduled(Regions, Obstacle),
    /// A scheduler runs them in groups that part.
    Lockstep(Regions, Box<Lockstep>),
}

/// Chooses; cuts the body up where the form asks for it. None if there are too many regions.
pub fn choose(body: &mut Function, program: &Program, local_at: Option<Position>, options: &Options) -> Option<Form> {
    let mut begins = heads(body)?;
    let waits = begins.contains(&true);
    let mut alone_because = None;
    if !options.vectors {
        return Some(one_by_one(body, &begins, waits, Obstacle::Disabled));
    }
    if !waits {
        let wide = match local_at {
            None => Wide::of(body, program, |body| uniform_values(body, program)),
            Some(place) => Err(Obstacle::LocalMemory(place)),
        };
        match wide {
            Ok(wide) => return Some(Form::Groups(Box::new(wide))),
            Err(obstacle @ Obstacle::Diverges(_)) => {
                begins[0] = true;
                alone_because = Some(obstacle);
            }
            Err(obstacle) => return Some(Form::Flat(obstacle)),
        }
    }
    let before = body.clone();
    match lockstep(body, program, &mut begins, waits) {
        Ok((regions, lockstep)) => Some(Form::Lockstep(regions, Box::new(lockstep))),
        Err(obstacle) => {
            *body = before;
            Some(one_by_one(body, &heads(body)?, waits, alone_because.unwrap_or(obstacle)))
        }
    }
}

fn one_by_one(body: &Function, heads: &[bool], waits: bool, obstacle: Obstacle) -> Form {
    if waits { Form::Scheduled(Regions::new(body, heads, &[], &[]), obstacle) } else { Form::Flat(obstacle) }
}

/// Where threads wait that come by there first, if they ever do.
fn waits_at(body: &Function) -> Option<Position> {
    let reached = Graph::of(body).order.into_iter().map(|block| &body.blocks[block as usize]);
    let mut waiting = reached.filter(|block| matches!(block.terminator, Terminator::Suspend(..)));
    waiting.next().map(|block| block.position)
}

/// The form for groups that part; the body for threads is cut up where they do.
fn lockstep(
    body: &mut Function,
    program: &Program,
    begins: &mut [bool],
    waits: bool,
) -> Result<(Regions, Lockstep), Obstacle> {
    // Matrices and arguments of calls lie in the frames of threads as they are by themselves.
    if program.exchange > 0 || body.call_area > 0 || program.functions.iter().any(|function| function.device) {
        return Err(Obstacle::Waits(waits_at(body).unwrap_or_default()));
    }
    let pure: Vec<bool> = program.functions.iter().map(|function| function.pure).collect();
    spread_frames(body);
    convert(body, program, &pure)?;
    if waits {
        begins.copy_from_slice(&heads(body).ok_or(Obstacle::TooLarge)?);
    }
    let uniform = uniform_values(body, program);
    let groups = exchange::groups_side_by_side(body);
    let mut lockstep = Lockstep::new(body, &uniform, &pure, begins, groups)?;
    let rests: BTreeSet<u32> = lockstep.partings.iter().map(|parting| parting.rest).collect();
    let rests: Vec<u32> = rests.into_iter().collect();
    loop {
        let regions = Regions::new(body, begins, &rests, &lockstep.joins);
        let size =
            |graph: &Graph| graph.order.iter().map(|block| body.blocks[*block as usize].insts.len() + 1).sum::<usize>();
        let alone: usize =
            regions.regions.iter().filter(|region| region.parted).map(|region| size(&region.graph)).sum();
        let together: usize =
            super::lockstep::regions(&lockstep, &regions, &[]).iter().map(|wide| size(&wide.graph)).sum();
        if alone <= MOST_RESTS && together <= MOST_TOGETHER {
            return Ok((regions, lockstep));
        }
        // What saves the least goes first.
        if lockstep.side_by_side.take().is_none() {
            if lockstep.joins.is_empty() {
                return Err(Obstacle::TooLarge);
            }
            lockstep.joins.clear();
        }
    }
}

/// Short branches on which threads may disagree become selections, but in a kernel with effects that depend on the order: that is the order of its regions.
fn convert(body: &mut Function, program: &Program, pure: &[bool]) -> Result<(), Obstacle> {
    let insts = body.blocks.iter().flat_map(|block| &block.insts);
    if insts.clone().any(|value| stays_alone(body, body.inst(*value), pure)) {
        return Ok(());
    }
    for _ in 0..MOST_CONVERSIONS {
        let (graph, uniform) = (Graph::of(body), uniform_values(body, program));
        let shapes = shapes_in_lockstep(body, &graph, &uniform, |_| false)?.shapes;
        if !convert_one(body, &graph, |value| shapes[value.0 as usize] != Shape::SAME) {
            break;
        }
        join_chains(body);
    }
    Ok(())
}

/// Where the frames of four threads are one, words of a thread's header lie further apart.
fn spread_frames(body: &mut Function) {
    let layout = Frames { bytes: 0, grouped: true };
    let frame: Vec<bool> =
        body.values.iter().map(|definition| matches!(definition.inst, Inst::Input(Input::Frame))).collect();
    for definition in &mut body.values {
        if let Inst::Load(access, address) = &mut definition.inst
            && frame[address.0 as usize]
        {
            access.offset = u64::from(layout.offset(access.offset as u32));
        }
    }
}
