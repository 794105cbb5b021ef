//! What every device must do: one suite, run on each.
//!
//! | module | what it is about |
//! |---|---|
//! | `lab` | a device with what tests do to it: buffers of numbers, poisoned results, kernels by name |
//! | `buffers` | reading, writing, filling, copying: offsets, overlaps, nothing, out of range, after dropping |
//! | `random` | random fills |
//! | `modules` | texts that are refused, and variables that kernels write |
//! | `launches` | what is refused, and when faults are told |
//! | `hostile` | kernels that mean harm |
//! | `gemm` | products of every kind against a plain one in f64 |
//! | `kernels` | real kernels, as NVRTC compiles them, against references in f64 with stated tolerances |
//! | `cpu` | what only the CPU promises: the same bits on any number of cores, and compiled code that is kept |
//!
//! A case is a function of a [`Lab`](lab::Lab), written once; [`conformance!`] makes a test of each for a device.

mod buffers;
mod cpu;
mod gemm;
mod hostile;
mod kernels;
mod lab;
mod launches;
mod modules;
mod random;

/// Makes a module of tests: every case of the suite on the device that `open` answers.
macro_rules! conformance {
    ($device:ident, $open:expr) => {
        conformance!(@cases $device, $open,
            buffers: new_ones_are_zero, written_is_read, filling, copying, nothing_is_fine, out_of_range,
                after_dropping, memory_runs_out;
            random: published_numbers, any_piece_is_the_whole, distributions, refusals;
            modules: refused_texts, variables, cuda_only;
            launches: refusals, no_argument_is_lost, faults_are_told_late_and_for_good, dropped_while_ordered;
            hostile: wild_pointers, own_parameters, shared_memory_beyond_the_limit, endless, many_blocks,
                a_barrier_that_half_skip, deep_recursion, a_million_launches, nul_bytes, a_hundred_megabytes;
            gemm: all_kinds, whole_tiles, scaling_without_factors, nothing_unneeded_is_read, side_by_side, batches,
                refusals;
            kernels: saxpy, axpy4, matmul, reductions, histogram, ballots, softmax, layernorm, adamw, functions, halves,
                heat, structures, constants, locals_and_calls, switches, philox, locks, fractal, dot_products;
        );
    };
    (@cases $device:ident, $open:expr, $($module:ident: $($case:ident),+;)+) => {
        mod $device {
            $(mod $module {
                $(#[test]
                fn $case() {
                    crate::device::$module::$case(&mut crate::device::lab::Lab::new($open));
                })+
            })+
        }
    };
}

conformance!(on_one_core, || crate::device::cpu::device(1));
conformance!(on_two_cores, || crate::device::cpu::device(2));
conformance!(on_three_cores, || crate::device::cpu::device(3));
