//! `ptcl check`: checks programs without running them.

use crate::exit::{Exit, Failure};
use crate::given::{self, Texts};
use crate::limits::LimitOptions;
use crate::options::{self, Grant};
use crate::output;
use crate::render::errors;
use crate::tools::ToolsOption;
use lisp_runtime::outcome::Warning;
use lisp_runtime::request::CheckReport;
use lisp_runtime::{Engine, Input, Problem, Program};
use serde::Serialize;
use std::path::PathBuf;

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The programs; - reads one from standard input
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Check EXPR instead of files
    #[arg(short, value_name = "EXPR", conflicts_with = "files")]
    expression: Option<String>,
    #[command(flatten)]
    grant: Grant,
    #[command(flatten)]
    tools: ToolsOption,
    #[command(flatten)]
    limits: LimitOptions,
    /// Print what is found as JSON, one object per program
    #[arg(long)]
    json: bool,
}

/// Runs the command. The exit code is the highest of all programs.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let engine = arguments.limits.engine_with_tools(arguments.tools.tools()?)?;
    let input = match arguments.grant.shared_input(&engine)? {
        Ok(input) => input,
        Err(setup) => {
            tell!("{}", errors::draw(&setup.problem, &setup.file, &setup.source));
            return Ok(Exit::of_problem(&setup.problem));
        }
    };
    if arguments.files.is_empty() {
        let (name, source) = options::read_program(None, arguments.expression.as_deref())?;
        return one(arguments, &engine, &input, &name, &source);
    }
    let mut highest = Exit::Ok;
    for file in &arguments.files {
        let (name, source) = options::read_program(Some(file), None)?;
        highest = highest.max(one(arguments, &engine, &input, &name, &source)?);
    }
    Ok(highest)
}

/// Checks a program, and prints what is found.
fn one(arguments: &Arguments, engine: &Engine, input: &Input<'_>, name: &str, source: &str) -> Result<Exit, Failure> {
    let compiled = engine.compile(source);
    let checked = compiled.and_then(|program| Ok((engine.check(&program, input)?, program)));
    let exit = match &checked {
        Ok((warnings, _)) if warnings.is_empty() => Exit::Ok,
        Ok(_) => Exit::Fail,
        Err(problem) => Exit::of_problem(problem),
    };
    if arguments.json {
        print_json(name, &checked)?;
        return Ok(exit);
    }
    match checked {
        Ok((warnings, program)) => {
            warnings.iter().for_each(|warning| tell!("{}", errors::draw_warning(warning, name, source)));
            output::print(&format!("{name}: {}{}\n", count(warnings.len()), uses(&program)))?;
        }
        Err(problem) => {
            let texts = Texts { grant: &arguments.grant, name, source, is_shared: true, name_of_in: "data/in" };
            tell!("{}", given::draw(&problem, &texts));
        }
    }
    Ok(exit)
}

fn print_json(name: &str, checked: &Result<(Vec<Warning>, Program), Box<Problem>>) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct OfFile<'a> {
        file: &'a str,
        #[serde(flatten)]
        report: CheckReport,
    }
    let report = match checked {
        Ok((warnings, _)) => CheckReport::new(None, None, warnings),
        Err(problem) => CheckReport::new(None, Some(problem), &[]),
    };
    let json =
        serde_json::to_string(&OfFile { file: name, report }).map_err(|error| Failure::Bug(error.to_string()))?;
    output::print(&format!("{json}\n"))
}

/// Says how many warnings there are.
fn count(warnings: usize) -> String {
    match warnings {
        0 => "no faults".to_owned(),
        1 => "1 warning".to_owned(),
        many => format!("{many} warnings"),
    }
}

/// Names the data and the tools that a program uses.
fn uses(program: &Program) -> String {
    let tools: Vec<String> = program.tool_names().map(|tool| format!(" tool/{tool}")).collect();
    let data: Vec<String> = program.data_names().map(|data| format!(" data/{data}")).collect();
    let uses = if tools.len() + data.len() > 0 { "; it uses" } else { "" };
    format!("{uses}{}{}", data.concat(), tools.concat())
}
