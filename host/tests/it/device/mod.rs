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
//! | `cuda` | the suite on a double of the driver and on a GPU: a process for each case |
//!
//! A case is a function of a [`Lab`](lab::Lab), written once; [`conformance!`] makes a test of each for a device.

mod buffers;
mod cpu;
mod cuda;
mod gemm;
mod hostile;
mod kernels;
mod lab;
mod launches;
mod modules;
mod random;

/// Makes a module of tests: every case of the suite, given with its full name to `run`.
macro_rules! conformance {
    ($device:ident, $run:expr) => {
        conformance!(@cases $device, $run,
            buffers: new_ones_are_zero, written_is_read, filling, copying, read_while_it_changes, read_in_parts, nothing_is_fine, out_of_range,
                after_dropping, memory_runs_out;
            random: published_numbers, every_device_has_the_same_numbers, any_piece_is_the_whole, distributions, refusals;
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
    (@cases $device:ident, $run:expr, $($module:ident: $($case:ident),+;)+) => {
        mod $device {
            $(mod $module {
                $(conformance!(@case $module $case, $run);)+
            })+
        }
    };
    (@case $module:ident $case:ident, $run:expr) => {
        #[test]
        fn $case() {
            $run(concat!(module_path!(), "::", stringify!($case)), crate::device::$module::$case);
        }
    };
}

/// A case of the suite.
type Case = fn(&mut lab::Lab);

conformance!(on_one_core, |_, case: crate::device::Case| case(&mut crate::device::cpu::lab(1)));
conformance!(on_two_cores, |_, case: crate::device::Case| case(&mut crate::device::cpu::lab(2)));
conformance!(on_three_cores, |_, case: crate::device::Case| case(&mut crate::device::cpu::lab(3)));
conformance!(on_cuda, crate::device::cuda::on_cuda);
conformance!(on_a_lazy_double, crate::device::cuda::on_a_lazy_double);
