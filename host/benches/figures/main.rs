//! What Steadfast costs, each figure as a ratio to a baseline that is measured in turn with it, in the same run.
//!
//! ```text
//! main      which figures there are, and the table
//! measure   rounds, ratios, what a row says
//! machine   the facts without which a figure means nothing
//! places    folders and programs
//! bare      the same component called with nothing but wasmtime (`bare_unsafe`: deserialized)
//! grown     a component under another digest, or larger than it is
//! step · digits · save · freeze · swap · start · kernels · gpu     figures, each with its baseline beside it; `threads` is in `kernels`
//! ```
//!
//! Run by `cargo xtask bench`, which builds what is measured; names after `--` choose figures. Nothing fails because it is
//! slow: a machine that others use would fail it at random. A target is printed beside its figure, with whether it was met.
//!
//! Not measured here: a bucket mount or a network filesystem. `gpu` measures where there is a GPU, and is skipped elsewhere.

mod bare;
mod bare_unsafe;
mod digits;
mod freeze;
mod gpu;
mod gpu_unsafe;
mod grown;
mod kernels;
mod machine;
mod measure;
mod places;
mod save;
mod start;
mod step;
mod swap;

use std::process::ExitCode;

use measure::Row;

type Figures = fn() -> anyhow::Result<Vec<Row>>;

/// Figures by the name that chooses them, in the order of the table.
const FIGURES: [(&str, Figures); 9] = [
    ("step", step::figures),
    ("digits", digits::figures),
    ("save", save::figures),
    ("freeze", freeze::figures),
    ("swap", swap::figures),
    ("start", start::figures),
    ("kernels", kernels::figures),
    ("threads", kernels::threads),
    ("gpu", gpu::figures),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.split_first() {
        Some((first, rest)) if first == start::SMALLEST => start::smallest(rest),
        _ => compare(&arguments),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("figures: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn compare(arguments: &[String]) -> anyhow::Result<()> {
    // Cargo adds `--bench` to what it was given.
    let chosen: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let mut rows = Vec::new();
    for (name, figures) in FIGURES {
        if chosen.is_empty() || chosen.iter().any(|choice| choice.as_str() == name) {
            eprintln!("measuring {name} …");
            rows.extend(figures()?);
        }
    }
    machine::print();
    println!("\n{}", measure::table(&rows));
    Ok(())
}
