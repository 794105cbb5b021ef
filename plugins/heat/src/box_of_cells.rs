//! The box, cell by cell, and how hot it is in the beginning.

use std::ops::Range;

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

const BALLS: usize = 5;

/// Cells along x, y and z, x fastest.
#[derive(Clone, Copy)]
pub(crate) struct BoxOfCells {
    cells: [u32; 3],
}

/// In the unit of the box's edges.
struct Ball {
    centre: [f32; 3],
    radius: f32,
}

impl BoxOfCells {
    pub(crate) fn new(cells: [u32; 3]) -> Self {
        Self { cells }
    }

    pub(crate) fn count(self) -> u64 {
        self.cells.iter().map(|along| u64::from(*along)).product()
    }

    /// The cells of the plane at this height.
    pub(crate) fn plane(self, z: u32) -> Range<u64> {
        let size = u64::from(self.cells[0]) * u64::from(self.cells[1]);
        u64::from(z) * size..(u64::from(z) + 1) * size
    }

    /// The first temperatures, a plane at a time: the box may be larger than the guest.
    pub(crate) fn planes(self, seed: u64) -> impl Iterator<Item = (u32, Vec<f32>)> {
        let balls = balls(seed);
        (0..self.cells[2]).map(move |z| {
            let [width, height, _] = self.cells;
            let rows = (0..height).flat_map(|y| (0..width).map(move |x| [x, y, z]));
            (z, rows.map(|cell| self.temperature(cell, &balls)).collect())
        })
    }

    fn temperature(self, cell: [u32; 3], balls: &[Ball]) -> f32 {
        let surface = (0..3).any(|axis| cell[axis] == 0 || cell[axis] == self.cells[axis] - 1);
        let place: [f32; 3] = std::array::from_fn(|axis| (cell[axis] as f32 + 0.5) / self.cells[axis] as f32);
        if !surface && balls.iter().any(|ball| ball.holds(place)) { 1.0 } else { 0.0 }
    }
}

impl Ball {
    fn holds(&self, place: [f32; 3]) -> bool {
        let squares = (0..3).map(|axis| (place[axis] - self.centre[axis]).powi(2));
        squares.sum::<f32>() <= self.radius * self.radius
    }
}

fn balls(seed: u64) -> Vec<Ball> {
    let mut generator = Pcg32::seed_from_u64(seed);
    // 24 random bits are an f32 exactly.
    let mut between = |low: f32, high: f32| low + (high - low) * (generator.next_u32() >> 8) as f32 / (1 << 24) as f32;
    let ball = |_| Ball { centre: std::array::from_fn(|_| between(0.25, 0.75)), radius: between(0.05, 0.2) };
    (0..BALLS).map(ball).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_cover_the_box_and_its_surface_is_cold() {
        let cells = BoxOfCells::new([20, 10, 12]);
        let planes: Vec<_> = cells.planes(7).collect();
        assert_eq!(planes.len(), 12);
        assert_eq!(cells.count(), 20 * 10 * 12);
        assert_eq!(cells.plane(3), 600..800);
        let hot = |plane: &[f32]| plane.iter().filter(|value| **value == 1.0).count();
        assert!(planes.iter().all(|(_, plane)| plane.len() == 200));
        assert_eq!(hot(&planes[0].1) + hot(&planes[11].1), 0);
        assert!(planes.iter().map(|(_, plane)| hot(plane)).sum::<usize>() > 20);
        assert!(planes.iter().all(|(_, plane)| (0..10).all(|y| plane[y * 20] == 0.0 && plane[y * 20 + 19] == 0.0)));
    }

    #[test]
    fn another_seed_places_other_balls() {
        let all = |seed| BoxOfCells::new([16; 3]).planes(seed).flat_map(|(_, plane)| plane).collect::<Vec<_>>();
        assert!(all(1) == all(1));
        assert!(all(1) != all(2));
    }
}
