//! `steadfast doctor --kernels`: how a plugin's kernels run on the CPU, and what would make them faster.

use serde_json::{Value, json};
use steadfast_ptx::kernel::{Form, Obstacle};

use crate::doctor::kernels::{self, Kernel, Text, Unreadable};
use crate::job::spec::{LogFormat, PluginSource};
use crate::job::{ExitCode, RunError};
use crate::plugin::{self, FileKind, PluginError};

use super::super::failure::Failure;
use super::super::print;

/// Something is missing: kernels, or a text that can be read.
const MISSING: u8 = 1;
/// Characters of the text that a line of the table has room for.
const WIDEST_CODE: usize = 56;

pub(super) fn execute(source: &PluginSource, json: bool) -> Result<u8, Failure> {
    crate::report::init(LogFormat::Human);
    let texts = texts(source)?;
    if json {
        print::json(&texts.iter().map(as_json).collect::<Vec<_>>().into())?;
    } else {
        print::text(&for_people(&texts))?;
    }
    let broken = texts.iter().enumerate().find_map(|(index, text)| Some((index, text, text.kernels.as_ref().err()?)));
    match broken {
        Some((index, text, why)) => Err(unreadable(source, (index, texts.len()), text, why)),
        None => Ok(0),
    }
}

/// What is found of PTX in a file: there is some, and a kernel in it unless it cannot be read.
fn texts(source: &PluginSource) -> Result<Vec<Text>, Failure> {
    let shown = source.label().display();
    // Read as a run reads it: a wrong path may be a device without end.
    let bytes = source.read().map_err(failed)?.bytes;
    if is_ptx(source) {
        let ptx = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            Failure::new(MISSING, format!("`{shown}` is not text: what begins at byte {at} is no UTF-8"))
        })?;
        let text = Text::read(&ptx);
        let none = text.kernels.as_ref().is_ok_and(Vec::is_empty);
        let missing = || Failure::new(MISSING, format!("`{shown}` has no kernel: no `.entry` stands in it"));
        return if none { Err(missing()) } else { Ok(vec![text]) };
    }
    let kind = plugin::inspect(&bytes).kind;
    if kind != FileKind::Component {
        let path = source.label().to_owned();
        let failure = Failure::new(MISSING, PluginError::NotAComponent { path, kind }.to_string());
        return Err(failure.hint("a text of PTX is read from a file that ends in .ptx"));
    }
    let texts = kernels::in_component(&bytes).map_err(|error| Failure::new(MISSING, format!("`{shown}`: {error}")))?;
    let all_empty = texts.iter().all(|text| text.kernels.as_ref().is_ok_and(Vec::is_empty));
    if all_empty { Err(no_kernels(source, &bytes, texts.is_empty())) } else { Ok(texts) }
}

fn is_ptx(source: &PluginSource) -> bool {
    let PluginSource::File(file) = source else { return false };
    file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("ptx"))
}

fn failed(error: RunError) -> Failure {
    match error {
        error if error.exit_code() == ExitCode::Hopeless => Failure { code: MISSING, ..error.into() },
        // That a disk fails is no verdict on the file, and nobody tries this again by its exit code.
        RunError::Plugin(error) => Failure::usage(error.to_string()),
        error => error.into(),
    }
}

fn no_kernels(source: &PluginSource, component: &[u8], no_text: bool) -> Failure {
    let shown = source.label().display();
    if !plugin::imports_device(component) {
        return Failure::new(MISSING, format!("`{shown}` uses no device, and has no kernels"));
    }
    let what = if no_text { "no text of PTX stands in" } else { "no kernel stands in the PTX of" };
    Failure::new(MISSING, format!("{what} `{shown}`, and it uses a device"))
        .hint("if it puts its kernels together while it runs, `steadfast run --profile` tells of them; or give this command a text in a file that ends in .ptx")
}

fn unreadable(source: &PluginSource, (index, count): (usize, usize), text: &Text, why: &Unreadable) -> Failure {
    let shown = source.label().display();
    let which = if count > 1 { format!(", text {} of {count}", index + 1) } else { String::new() };
    let number = why.place.line;
    let failure = Failure::new(MISSING, format!("`{shown}`{which}, {why}\n  {number} | {}", text.line(why.place)));
    if is_ptx(source) {
        return failure;
    }
    failure.hint("the CPU refuses it; a plugin that hands it to the driver unread (`cuda-only`) runs on a GPU only")
}

fn for_people(texts: &[Text]) -> String {
    let mut shown = String::new();
    for (index, text) in texts.iter().enumerate() {
        let Ok(kernels) = &text.kernels else { continue };
        if texts.len() > 1 {
            let (version, target) = text.written_for.as_ref().map_or(("", ""), |(version, target)| (version, target));
            let number = index + 1;
            shown.push_str(&format!("text {number} of {}: PTX {version} for {target}\n", texts.len()));
        }
        shown.push_str(&format!("{}\n\n", table(text, kernels)));
    }
    let all: Vec<&Kernel> = texts.iter().filter_map(|text| text.kernels.as_ref().ok()).flatten().collect();
    shown.push_str(&hints(&all));
    shown.truncate(shown.trim_end().len());
    if !shown.is_empty() {
        shown.push('\n');
    }
    shown
}

fn table(text: &Text, kernels: &[Kernel]) -> comfy_table::Table {
    let mut table = print::table(&["", "kernel", "runs as", "because", "line:column", "in the text"]);
    for kernel in kernels {
        let word = if kernel.is_fast() { "ok" } else { "note" };
        let obstacle = obstacle(kernel);
        let place = obstacle.and_then(|obstacle| obstacle.place());
        table.add_row([
            word.to_owned(),
            kernel.name.clone(),
            kernel.form.to_string(),
            obstacle.map(|obstacle| obstacle.to_string()).unwrap_or_default(),
            place.map(|place| format!("{}:{}", place.line, place.column)).unwrap_or_default(),
            place.map(|place| shortened(text.code(place))).unwrap_or_default(),
        ]);
    }
    table
}

fn obstacle(kernel: &Kernel) -> Option<Obstacle> {
    match kernel.form {
        Form::Vector => None,
        Form::Scalar(obstacle) => Some(obstacle),
    }
}

/// Code on one line that is not too wide.
fn shortened(code: &str) -> String {
    let words = code.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.char_indices().nth(WIDEST_CODE) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}

/// What would make kernels faster, each said once, with the names of those that it is for.
fn hints(kernels: &[&Kernel]) -> String {
    let mut hints: Vec<(&str, Vec<&str>)> = Vec::new();
    for kernel in kernels {
        for advice in kernel.advice() {
            match hints.iter_mut().find(|(known, _)| *known == advice) {
                Some((_, names)) if names.contains(&kernel.name.as_str()) => {}
                Some((_, names)) => names.push(&kernel.name),
                None => hints.push((advice, vec![&kernel.name])),
            }
        }
    }
    hints.iter().map(|(advice, names)| format!("hint: {}: {advice}\n", names.join(", "))).collect()
}

fn as_json(text: &Text) -> Value {
    let (version, target) = text.written_for.clone().unzip();
    let error =
        text.kernels.as_ref().err().map(
            |Unreadable { place, message }| json!({"line": place.line, "column": place.column, "message": message}),
        );
    let kernels: Vec<_> = text.kernels.iter().flatten().map(|kernel| kernel_as_json(text, kernel)).collect();
    json!({"version": version, "target": target, "error": error, "kernels": kernels})
}

fn kernel_as_json(text: &Text, kernel: &Kernel) -> Value {
    let obstacle = obstacle(kernel);
    let place = obstacle.and_then(|obstacle| obstacle.place());
    json!({
        "kernel": kernel.name, "runs_as": kernel.form.to_string(), "because": obstacle.map(|obstacle| obstacle.to_string()),
        "line": place.map(|place| place.line), "column": place.map(|place| place.column),
        "code": place.map(|place| text.code(place)), "one_core": kernel.one_core, "advice": kernel.advice(),
    })
}
