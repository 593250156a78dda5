//! `ptcl sandbox`: shows what process isolation can do here, or runs a program controlled through named pipes.

use crate::exit::{Exit, Failure};
use crate::limits::LimitOptions;
use crate::options::Grant;
use crate::output;
use crate::render::errors;
use lisp_runtime::{Answer, Tool, Tools};
use lisp_sandbox::{Managed, Sandbox};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Program to run. When a client writes 0 to the pipe `wait`, the command ends and prints the value. The program can
    /// call (tool/read-line), which returns the next line of standard input
    #[arg(required_unless_present = "capabilities")]
    file: Option<PathBuf>,
    /// Directory in which to create the pipes `wait` and `status`
    #[arg(long, value_name = "DIR", required_unless_present = "capabilities")]
    dir: Option<PathBuf>,
    #[command(flatten)]
    grant: Grant,
    #[command(flatten)]
    limits: LimitOptions,
    /// Show which isolation layers work on this system, by trying them
    #[arg(long, conflicts_with_all = ["file", "dir"])]
    capabilities: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let no_layer = |error: lisp_sandbox::SetupError| Failure::Isolation(error.to_string());
    // Not locked: the program prints meanwhile.
    let mut out = std::io::stdout();
    let (Some(file), Some(dir)) = (&arguments.file, &arguments.dir) else {
        let capabilities = lisp_sandbox::capabilities().map_err(no_layer)?;
        let text = match arguments.json {
            true => serde_json::to_string(&capabilities).unwrap_or_default() + "\n",
            false => capabilities.to_string(),
        };
        output::print(&text)?;
        let good = capabilities.missing.is_empty() && capabilities.error.is_none();
        return Ok(if good { Exit::Ok } else { Exit::HostFault });
    };
    let engine = arguments.limits.engine()?;
    let source = crate::options::read_file(file)?;
    let input = match arguments.grant.input(&engine)? {
        Ok(input) => input,
        Err(setup) => {
            tell!("{}", errors::draw(&setup.problem, &setup.file, &setup.source));
            return Ok(Exit::of_problem(&setup.problem));
        }
    };
    let sandbox = Sandbox::builder().engine(engine).build().map_err(no_layer)?;
    let input = match arguments.json {
        true => input,
        // If the output is closed, the pipes may still be in use.
        false => input.on_print(|line| drop(writeln!(io::stdout().lock(), "{}", output::shown(line)))),
    };
    let input = input.tools(read_line()?);
    let pipes = |error| Failure::File { path: dir.clone(), error };
    let managed = Managed::start(&sandbox, dir, source.clone(), input).map_err(pipes)?;
    tell_line!(
        "ptcl: running; write 0 to {0}/wait to end it or 1 to let it continue, then read {0}/status",
        dir.display()
    );
    let ended_by = stop_on_signals(&managed)?;
    let outcome = managed.wait();
    match ended_by.load(Ordering::Relaxed) {
        0 => {}
        // The pipes are removed; now let the signal take its default action.
        signal => signal_hook::low_level::emulate_default_handler(signal)?,
    }
    let Some(outcome) = outcome else {
        return Err(Failure::Isolation("the program's process did not end".to_owned()));
    };
    if arguments.json {
        writeln!(out, "{}", output::shown(&Answer::new(None, &outcome).to_json()))?;
        return Ok(Exit::of(&outcome));
    }
    match outcome.problem() {
        Some(problem) => tell!("{}", errors::draw(problem, &file.display().to_string(), &source)),
        None => writeln!(out, "{}", output::shown(outcome.text().unwrap_or_default()))?,
    }
    Ok(Exit::of(&outcome))
}

/// `(tool/read-line)`: returns the next line of standard input, or nil at its end. A client can use it to hold the
/// program at two points and measure what lies between them.
fn read_line() -> Result<Tools, Failure> {
    let read = |_: &lisp_runtime::ToolCall| {
        let mut line = String::new();
        let read = io::stdin().read_line(&mut line)?;
        Ok((read > 0).then(|| line.trim_end_matches(['\n', '\r']).to_owned()))
    };
    let mut tools = Tools::new();
    // Detached: the end of the run does not wait for a line.
    let tool = Tool::new("read-line", read).signature("() -> :string?").detached();
    tools.add(tool).map_err(|error| Failure::Usage(error.to_string()))?;
    Ok(tools)
}

/// Ends the program and its pipes on termination signals. The result holds the number of the signal.
fn stop_on_signals(managed: &Managed) -> io::Result<Arc<AtomicI32>> {
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let ended_by = Arc::new(AtomicI32::new(0));
    let (stop, signalled) = (managed.stop_handle(), ended_by.clone());
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            signalled.store(signal, Ordering::Relaxed);
            stop();
        }
    })?;
    Ok(ended_by)
}
