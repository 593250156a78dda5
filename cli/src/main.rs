//! `ptcl`: PTC-Lisp on the command line. One file per command.
//!
//! ```console
//! $ ptcl run -e '(reduce + (range 10))'
//! 45
//! ```
//!
//! Features, all on by default:
//!
//! - `serve` builds `ptcl serve`, `ptcl worker`, `ptcl runs` and `ptcl store`.
//! - `postgres` lets them keep their store in PostgreSQL, and includes `serve`.
//! - `mcp` builds `ptcl mcp`, and includes `serve`.
//! - `json-schema` lets `ptcl prompt` read tools with JSON Schemas.
//! - `manual` builds `ptcl completions` and `ptcl man`.
//! - `flamegraph` adds `ptcl run --flame`.
//! - `progress` adds the counter of `ptcl run --lines` and `ptcl batch`.
//!
//! `serve`, `postgres` and `mcp` need Unix, and process isolation needs Linux.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]
// They panic if the output is closed.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

#[macro_use]
mod tell;

mod batch;
mod check;
#[cfg(feature = "manual")]
mod completions;
mod doc;
mod docs;
mod examples;
mod exit;
mod explain;
mod fmt;
mod fold;
mod formats;
mod given;
mod isolation;
mod layout;
mod limits;
mod lines;
#[cfg(feature = "manual")]
mod man;
#[cfg(all(unix, feature = "mcp"))]
mod mcp;
mod names;
#[cfg(all(unix, feature = "serve"))]
mod operate;
mod options;
mod ordered;
mod output;
mod pager;
mod progress;
mod prompt;
mod record;
mod render;
mod repl;
mod replace;
mod replay;
mod room;
mod run;
#[cfg(target_os = "linux")]
mod sandbox;
#[cfg(all(unix, feature = "serve"))]
mod serve;
#[cfg(all(unix, feature = "serve"))]
mod service;
#[cfg(target_os = "linux")]
mod slate;
mod sources;
mod test;
mod tools;
mod watch;
#[cfg(all(unix, feature = "serve"))]
mod worker;

#[cfg(feature = "manual")]
use clap::CommandFactory;
use clap::{Parser, Subcommand};
use exit::{Exit, Failure};
use lisp_runtime::internal::visible;
use std::process::ExitCode;

/// Run PTC-Lisp programs: transform data and call tools, within limits.
#[derive(Debug, Parser)]
#[command(name = "ptcl", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    /// When to use colours; auto means on a terminal, unless NO_COLOR is set or TERM is dumb
    #[arg(long, global = true, value_name = "WHEN", default_value_t = clap::ColorChoice::Auto)]
    color: clap::ColorChoice,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a program and print its value
    #[command(after_help = examples::RUN)]
    Run(run::Arguments),
    /// Answer requests from standard input, one JSON object per line
    #[command(after_help = examples::BATCH)]
    Batch(batch::Arguments),
    /// Check programs against their data and tools without running them
    #[command(after_help = examples::CHECK)]
    Check(check::Arguments),
    /// Format programs
    #[command(after_help = examples::FMT)]
    Fmt(fmt::Arguments),
    /// Run the examples in programs and Markdown pages
    ///
    /// A comment after an expression, on its line or the next one, gives the expected result: `; => VALUE`, or
    /// `; => error: REASON`, short `; !REASON`. Expressions without one must succeed. There are no tools.
    #[command(after_help = examples::TEST)]
    Test(test::Arguments),
    /// Explain an error reason or a kind of warning
    #[command(after_help = examples::EXPLAIN)]
    Explain(explain::Arguments),
    /// Show the documentation of a function or special form
    #[command(after_help = examples::DOC)]
    Doc(doc::Arguments),
    /// Show a page of the documentation
    #[command(after_help = examples::DOCS)]
    Docs(docs::Arguments),
    /// Print a language reference for a model's system prompt
    #[command(after_help = examples::PROMPT)]
    Prompt(prompt::Arguments),
    /// Start a REPL
    #[command(after_help = examples::REPL)]
    Repl(repl::Arguments),
    /// Run a recorded run again, without its tools, and compare the answers
    #[command(after_help = examples::REPLAY)]
    Replay(replay::Arguments),
    /// Start the HTTP service: runs, durable runs, sessions
    #[cfg(all(unix, feature = "serve"))]
    #[command(after_help = examples::SERVE)]
    Serve(serve::Arguments),
    /// Run the durable runs of a PostgreSQL store, without the API
    #[cfg(all(unix, feature = "serve"))]
    #[command(after_help = examples::WORKER)]
    Worker(worker::Arguments),
    /// Show, answer and cancel the durable runs of a store
    #[cfg(all(unix, feature = "serve"))]
    #[command(after_help = examples::RUNS)]
    Runs(operate::runs::Arguments),
    /// Copy, check and convert a store
    #[cfg(all(unix, feature = "serve"))]
    #[command(after_help = examples::STORE)]
    Store(operate::store::Arguments),
    /// Start the MCP server, which runs programs for MCP clients
    #[cfg(all(unix, feature = "mcp"))]
    #[command(after_help = examples::MCP)]
    Mcp(mcp::Arguments),
    /// Run a program controlled through named pipes, or show which isolation layers work here
    #[cfg(target_os = "linux")]
    #[command(after_help = examples::SANDBOX)]
    Sandbox(sandbox::Arguments),
    /// Run programs one after the other, each in a fresh process
    #[cfg(target_os = "linux")]
    #[command(after_help = examples::SLATE)]
    Slate(slate::Arguments),
    /// Print completions for a shell
    #[cfg(feature = "manual")]
    #[command(after_help = examples::COMPLETIONS)]
    Completions(completions::Arguments),
    /// Print the manual page, or write the pages of all commands to a directory
    #[cfg(feature = "manual")]
    #[command(after_help = examples::MAN)]
    Man(man::Arguments),
}

impl Command {
    /// Returns whether the main output goes to standard output. If so, the command does not start while standard output
    /// is closed.
    fn writes_output(&self) -> bool {
        match self {
            #[cfg(all(unix, feature = "serve"))]
            Command::Serve(_) | Command::Worker(_) => false,
            // These may write files only; they check standard output themselves when they use it.
            Command::Fmt(_) => false,
            #[cfg(feature = "manual")]
            Command::Man(_) => false,
            Command::Run(_)
            | Command::Batch(_)
            | Command::Check(_)
            | Command::Test(_)
            | Command::Explain(_)
            | Command::Doc(_)
            | Command::Docs(_)
            | Command::Prompt(_)
            | Command::Repl(_)
            | Command::Replay(_) => true,
            #[cfg(feature = "manual")]
            Command::Completions(_) => true,
            #[cfg(all(unix, feature = "serve"))]
            Command::Runs(_) | Command::Store(_) => true,
            #[cfg(all(unix, feature = "mcp"))]
            Command::Mcp(_) => true,
            #[cfg(target_os = "linux")]
            Command::Sandbox(_) | Command::Slate(_) => true,
        }
    }
}

fn main() -> ExitCode {
    // This program is also the template that isolated processes are forked from.
    #[cfg(target_os = "linux")]
    lisp_sandbox::init();
    std::panic::set_hook(Box::new(say_panic));
    #[cfg(target_os = "linux")]
    if stack_is_small()
        && let Ok(thread) = std::thread::Builder::new().stack_size(STACK).spawn(command)
    {
        return thread.join().unwrap_or_else(|_| Exit::HostFault.into());
    }
    command()
}

/// Writes a panic to standard error, without a backtrace: where a thread finds no memory to start, the backtrace of the standard
/// library finds none either, and waits for itself.
fn say_panic(panic: &std::panic::PanicHookInfo<'_>) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr().lock(), "ptcl: {panic}");
}

/// The stack that commands are tested with, in bytes.
#[cfg(target_os = "linux")]
const STACK: usize = 8 << 20;

/// Returns whether `ulimit -s` gives the main thread less than reading the arguments takes.
#[cfg(target_os = "linux")]
fn stack_is_small() -> bool {
    const ENOUGH: u64 = 2 << 20;
    rustix::process::getrlimit(rustix::process::Resource::Stack).current.is_some_and(|bytes| bytes < ENOUGH)
}

/// Reads the arguments and runs their command.
fn command() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version are not errors.
            let code = if error.use_stderr() { Exit::Usage } else { Exit::Ok };
            if let Some((command, feature)) = left_out(&error) {
                tell_line!("ptcl: this build has no `ptcl {command}`: build ptcl with `--features {feature}`");
                return code.into();
            }
            if !error.use_stderr()
                && let Err(failure) = output::is_open()
            {
                return report_failure(&failure).into();
            }
            let error = with_better_tip(error);
            // An argument may be the name of a file, which can have any characters.
            let plain = error.render().to_string();
            if error.use_stderr() && visible(&plain) != plain {
                tell_line!("{}", plain.trim_end());
                return code.into();
            }
            return if error.print().is_ok() { code.into() } else { Exit::InputOutput.into() };
        }
    };
    render::colour::ask(arguments.color);
    if arguments.command.writes_output()
        && let Err(failure) = output::is_open()
    {
        return report_failure(&failure).into();
    }
    #[cfg(unix)]
    if let Err(error) = replace::bear_file_limits() {
        return report_failure(&error.into()).into();
    }
    let done = match arguments.command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Batch(arguments) => batch::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Fmt(arguments) => fmt::run(&arguments),
        Command::Test(arguments) => test::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Doc(arguments) => doc::run(&arguments),
        Command::Docs(arguments) => docs::run(&arguments),
        Command::Prompt(arguments) => prompt::run(&arguments),
        Command::Repl(arguments) => repl::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        #[cfg(all(unix, feature = "serve"))]
        Command::Serve(arguments) => serve::run(&arguments),
        #[cfg(all(unix, feature = "serve"))]
        Command::Worker(arguments) => worker::run(&arguments),
        #[cfg(all(unix, feature = "serve"))]
        Command::Runs(arguments) => operate::runs::run(&arguments),
        #[cfg(all(unix, feature = "serve"))]
        Command::Store(arguments) => operate::store::run(&arguments),
        #[cfg(all(unix, feature = "mcp"))]
        Command::Mcp(arguments) => mcp::run(&arguments),
        #[cfg(target_os = "linux")]
        Command::Sandbox(arguments) => sandbox::run(&arguments),
        #[cfg(target_os = "linux")]
        Command::Slate(arguments) => slate::run(&arguments),
        #[cfg(feature = "manual")]
        Command::Completions(arguments) => completions::run(&arguments, Arguments::command()),
        #[cfg(feature = "manual")]
        Command::Man(arguments) => man::run(&arguments, Arguments::command()),
    };
    match done {
        Ok(exit) => exit.into(),
        Err(failure) => report_failure(&failure).into(),
    }
}

/// Returns an error about an unknown option without the tip to pass it after `--`: no command takes values that look like options.
fn with_better_tip(mut error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ErrorKind};
    if error.kind() == ErrorKind::UnknownArgument && error.get(ContextKind::SuggestedArg).is_none() {
        error.remove(ContextKind::Suggested);
    }
    error
}

/// The command that this build leaves out, and the feature that includes it, if that is what the error is about.
fn left_out(error: &clap::Error) -> Option<(&'static str, &'static str)> {
    use clap::error::{ContextKind, ContextValue};
    let Some(ContextValue::String(asked)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    OF_FEATURES.iter().copied().find(|(command, _)| command == asked)
}

/// The commands that need a feature, with its name.
const OF_FEATURES: &[(&str, &str)] = &[
    ("serve", "serve"),
    ("worker", "serve"),
    ("runs", "serve"),
    ("store", "serve"),
    ("mcp", "mcp"),
    ("completions", "manual"),
    ("man", "manual"),
];

fn report_failure(failure: &Failure) -> Exit {
    // No message for someone who closed the pipe.
    if !failure.is_closed_pipe() {
        tell_line!("ptcl: {failure}");
    }
    failure.exit()
}

#[cfg(all(test, target_os = "linux", feature = "mcp", feature = "manual"))]
mod tests {
    use super::{Arguments, OF_FEATURES};
    use clap::CommandFactory;

    /// The commands of every build.
    const ALWAYS: [&str; 13] = [
        "run", "batch", "check", "fmt", "test", "explain", "doc", "docs", "prompt", "repl", "replay", "sandbox",
        "slate",
    ];

    #[test]
    fn every_command_that_a_build_can_leave_out_names_its_feature() {
        let command = Arguments::command();
        let all: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        let known: Vec<&str> = ALWAYS.into_iter().chain(OF_FEATURES.iter().map(|(name, _)| *name)).collect();
        assert!(all.iter().all(|name| known.contains(name)), "{all:?}");
        assert!(known.iter().all(|name| all.contains(name)), "{all:?}");
    }
}
