//! How long it takes until the first step.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::container::Container;
use super::life::volume;
use super::room::{Room, ask};

const ROUNDS: usize = 5;

/// To the first step, and beside it what the engine takes to start a program that does nothing: the fastest of some rounds, since
/// a machine that has other work only ever adds to it, and the median.
pub(super) fn times(room: &Room, image: &str) -> Result<String> {
    println!("\n── start-up");
    let first_step = ["run", "/plugins/countdown.wasm", "--config", r#"{"steps": 3}"#, "--log", "human"];
    let engine = rounds(room, image, &["--version"], "steadfast ")?;
    let all = rounds(room, image, &first_step, "3 to go")?;
    let text = |times: &[Duration]| {
        let ms = |time: Duration| format!("{:.0} ms", time.as_secs_f64() * 1e3);
        format!("{} (median {})", ms(times[0]), ms(times[ROUNDS / 2]))
    };
    Ok(format!("{} from `podman start` to the first step; to the answer of `--version` {}", text(&all), text(&engine)))
}

fn rounds(room: &Room, image: &str, arguments: &[&str], words: &str) -> Result<Vec<Duration>> {
    let mut times = (0..ROUNDS).map(|_| once(room, image, arguments, words)).collect::<Result<Vec<_>>>()?;
    times.sort();
    Ok(times)
}

/// From the start of a container that was made before to its first line with these words.
fn once(room: &Room, image: &str, arguments: &[&str], words: &str) -> Result<Duration> {
    let mount = format!("{}:/checkpoints", volume(room, image, "start-up")?.display());
    let closed = ["--rm", "--network", "none", "--read-only", "--tmpfs", "/tmp", "--volume", &mount];
    let variables = ["--env", "STEADFAST_VOLUME=/checkpoints"];
    let mut create = room.podman(["create"]);
    let name = ask(create.args(closed).args(variables).arg(image).args(arguments))?;
    let started = Instant::now();
    let mut container = Container::follow(room, name.clone(), room.podman(["start", "--attach", &name]))?;
    container.says(words)?;
    let took = started.elapsed();
    container.end()?.code(0)?;
    Ok(took)
}
