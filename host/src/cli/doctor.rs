//! `steadfast doctor`: what is there, and what to do about what is missing.

mod kernels;

use clap::Args;
use serde_json::json;

use crate::doctor::{self, Check, State};
use crate::job::spec::{DeviceChoice, JobSpec};
use crate::platform::{Environment, process_environment};

use super::failure::Failure;
use super::print;
use super::values::{Place, Source};

/// Look at this machine as a run would: processor, memory, GPU driver, volume; and say what to do about what is missing. Or, with
/// --kernels, at a plugin's kernels
#[derive(Args, Clone, Debug)]
#[command(after_help = EXIT_CODES, after_long_help = EXIT_CODES)]
pub(super) struct DoctorCommand {
    /// The volume that jobs will use. Also $STEADFAST_VOLUME [default: as for a run]
    #[arg(long, value_name = "DIR")]
    volume: Option<Place>,

    /// Space for plugins' /output [default: the system's temporary folder]
    #[arg(long, value_name = "DIR")]
    scratch: Option<Place>,

    /// What is to run kernels: auto, cpu, cuda or cuda:NUMBER
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    device: DeviceChoice,

    /// Look at a plugin's kernels instead: for each, whether the CPU runs it as vector lanes or thread by thread, why, where in the PTX the
    /// reason stands, and what would make it faster. Nothing is run. Takes a component, in a file or a registry, or a text of PTX in
    /// a file that ends in .ptx
    #[arg(long, value_name = "PLUGIN.wasm|oci://…|FILE.ptx", conflicts_with_all = ["volume", "scratch", "device"])]
    kernels: Option<Source>,

    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXIT_CODES: &str = "\
Examples:
  steadfast doctor --volume /mnt/bucket
      Whether jobs with checkpoints there would run on this machine.

  steadfast doctor --kernels heat.wasm
      How the CPU runs the kernels that stand in a plugin. `steadfast run --profile` tells how long they take.

Exit codes:
    0  all that jobs need is there; all kernels can be read, however fast they are
    1  something is missing, and what to do about it stands below the table; or there are no kernels, or the CPU refuses their text";

impl DoctorCommand {
    /// What a run would be given. Nothing is run, so it has no plugin.
    fn spec(&self, environment: Environment<'_>) -> JobSpec {
        let from_environment = || environment("STEADFAST_VOLUME").filter(|path| !path.is_empty()).map(Into::into);
        JobSpec {
            volume: self.volume.clone().map(|place| place.0).or_else(from_environment),
            scratch: self.scratch.clone().map(|place| place.0),
            device: self.device,
            ..JobSpec::new("job.wasm")
        }
    }
}

pub(super) fn execute(command: &DoctorCommand) -> Result<u8, Failure> {
    if let Some(Source(plugin)) = &command.kernels {
        return kernels::execute(plugin, command.json);
    }
    let checks = doctor::examine(&command.spec(&process_environment), &process_environment);
    if command.json {
        print::json(&checks.iter().map(as_json).collect::<Vec<_>>().into())?;
    } else {
        print::text(&for_people(&checks))?;
    }
    Ok(u8::from(checks.iter().any(|check| check.state == State::Missing)))
}

fn as_json(check: &Check) -> serde_json::Value {
    let Check { what, state, found, advice } = check;
    json!({"what": what, "state": state.word().to_lowercase(), "found": found, "advice": advice})
}

fn for_people(checks: &[Check]) -> String {
    let mut table = print::table(&["", "what", "found"]);
    for check in checks {
        table.add_row([check.state.word(), check.what, check.found.as_str()]);
    }
    let advice: String =
        checks.iter().filter_map(|check| Some(format!("hint: {}: {}\n", check.what, check.advice.as_ref()?))).collect();
    let between = if advice.is_empty() { "" } else { "\n" };
    format!("{table}\n{between}{advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(what: &'static str, state: State, found: &str, advice: Option<&str>) -> Check {
        Check { what, state, found: found.to_owned(), advice: advice.map(str::to_owned) }
    }

    #[test]
    fn what_to_do_stands_below_what_was_found() {
        let checks = [
            check("cores", State::Fine, "2", None),
            check("volume", State::Missing, "/mnt: it is no folder", Some("mount it")),
        ];
        let lines: Vec<_> = for_people(&checks).lines().map(|line| line.trim_end().to_owned()).collect();
        insta::assert_snapshot!(lines.join("\n"), @r#"
                  what    found
         ok       cores   2
         MISSING  volume  /mnt: it is no folder

        hint: volume: mount it
        "#);
        assert_eq!(as_json(&checks[1])["state"], "missing");
    }
}
