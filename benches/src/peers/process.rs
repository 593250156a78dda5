//! Peers in processes of their own, which time themselves (`drivers/`, `examples/floor.rs`). A process works at one workload in one
//! round and prints one line: the median time in microseconds, a tab, and the answer.

use super::{Answer, Data, Task, Workload};
use crate::timing::Budget;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A peer in processes of its own.
pub struct Process {
    name: String,
    program: PathBuf,
    /// What comes before the arguments of a measurement: the driver, or how the floor holds orders.
    before: String,
    /// The ending of its programs; the floor has none.
    extension: Option<&'static str>,
    /// Has it the long programs without data?
    is_long: bool,
}

/// Those that are on the machine, and of the others what is missing.
pub(super) fn all() -> Vec<Result<Process, String>> {
    vec![
        floor("Rust, serde_json::Value", "value", false),
        floor("Rust, typed", "typed", true),
        script("LUAJIT", "luajit", "-v", "lua"),
        script("NODE", "node", "--version", "js"),
        script("PYTHON", "python3", "--version", "py"),
    ]
}

/// Hand-written Rust, built without starlark before this program is.
fn floor(name: &str, held: &str, is_long: bool) -> Result<Process, String> {
    let here = std::env::current_exe().map_err(|error| error.to_string())?;
    let program = here.parent().and_then(Path::parent).unwrap_or(&here).join("examples/floor");
    if !program.is_file() {
        return Err(format!("{name}: `cargo build --release -p ptc-lisp-benches --example floor` comes before"));
    }
    Ok(Process { name: name.to_owned(), program, before: held.to_owned(), extension: None, is_long })
}

/// A language whose program is on the path, or is named by a variable of the environment.
fn script(variable: &str, usual: &str, version: &str, extension: &'static str) -> Result<Process, String> {
    let program = std::env::var_os(variable).unwrap_or_else(|| usual.into());
    let output = Command::new(&program).arg(version).output();
    let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
    let version = String::from_utf8_lossy(&output.stdout);
    // LuaJIT says much more, and Node not its name.
    let words: Vec<&str> = version.split_whitespace().take(2).collect();
    let name = if extension == "js" { format!("Node {}", words.join(" ")) } else { words.join(" ") };
    let before = format!("{}/drivers/drive.{extension}", env!("CARGO_MANIFEST_DIR"));
    Ok(Process { name, program: program.into(), before, extension: Some(extension), is_long: true })
}

impl Process {
    /// Its name and version.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The median time in microseconds, and the answer; `None` for a workload that it does not do.
    pub(super) fn measure(
        &self,
        workload: Workload,
        data: &Data,
        budget: Budget,
    ) -> Option<Result<(f64, Answer), String>> {
        let task = match workload {
            Workload::Long(task) => task,
            _ => Task::Pipeline,
        };
        let kind = self.kind(workload)?;
        let program = match self.extension {
            Some(extension) => format!("{}/programs/{}.{extension}", env!("CARGO_MANIFEST_DIR"), task.name()),
            None => task.name().to_owned(),
        };
        let [orders, text] = data.files();
        let mut command = Command::new(&self.program);
        command.args([&self.before, kind, &program]).args([orders, text]);
        command.args([budget.warm, budget.measure].map(|time| time.as_millis().to_string()));
        command.args([budget.fewest, budget.max].map(|runs| runs.to_string()));
        Some(measured(&mut command))
    }

    /// How the drivers call a workload. A long program is compiled once: who compiles while it runs would begin anew each time.
    fn kind(&self, workload: Workload) -> Option<&'static str> {
        let is_script = self.extension.is_some();
        match workload {
            Workload::Compile if is_script => Some("compile"),
            Workload::Inside if is_script => Some("inside"),
            Workload::Bring if is_script => Some("bring"),
            Workload::CompiledInside => Some("compiled-inside"),
            Workload::CompiledBring => Some("compiled-bring"),
            Workload::Import => Some("import"),
            Workload::Long(task) if self.is_long || task == Task::Json => Some("long"),
            _ => None,
        }
    }
}

fn measured(command: &mut Command) -> Result<(f64, Answer), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    let line = String::from_utf8_lossy(&output.stdout);
    let (time, answer) = line.trim_end().split_once('\t').unwrap_or((line.trim_end(), ""));
    match time.parse() {
        Ok(time) => Ok((time, answer.to_owned())),
        Err(_) => Err(String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or("no answer").to_owned()),
    }
}
