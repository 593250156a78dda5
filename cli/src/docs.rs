//! `ptcl docs`: shows the pages of the documentation.

use crate::exit::{Exit, Failure};
use crate::output;
use crate::pager::{self, Paged};
use lisp_runtime::internal::near_names;
use lisp_runtime::language::functions_markdown;
use std::borrow::Cow;
use std::io::IsTerminal;

/// What the command takes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The page; without it, the list of pages
    page: Option<String>,
    /// On a terminal: write the page as it is, not through $PAGER (or less)
    #[arg(long)]
    no_pager: bool,
}

/// A page: its name, what it is about, and its text; the functions are made of the language.
type Page = (&'static str, &'static str, Option<&'static str>);

const PAGES: &[Page] = &[
    ("tour", "a tour of the language in twenty minutes", Some(include_str!("../docs/book/src/tour.md"))),
    ("language", "the language", Some(include_str!("../docs/language.md"))),
    ("functions", "all functions", None),
    ("from-clojure", "for people who know Clojure", Some(include_str!("../docs/book/src/from-clojure.md"))),
    ("divergences", "what differs from Clojure and the reference", Some(include_str!("../docs/divergences.md"))),
    ("command-line", "the commands and their options", Some(include_str!("../docs/command-line.md"))),
    ("cookbook", "short answers to common tasks", Some(include_str!("../docs/cookbook.md"))),
    ("limits", "the limits, and how to change them", Some(include_str!("../docs/limits.md"))),
    ("signatures", "the types of arguments and results", Some(include_str!("../docs/signatures.md"))),
    ("tools", "tools from schemas, APIs and MCP servers", Some(include_str!("../docs/tools.md"))),
    ("hosts", "embedding the interpreter in a Rust program", Some(include_str!("../docs/hosts.md"))),
    ("agents", "building an agent", Some(include_str!("../docs/agents.md"))),
    ("service", "the HTTP service", Some(include_str!("../docs/service.md"))),
    ("scale", "many machines", Some(include_str!("../docs/scale.md"))),
    ("mcp", "the MCP server", Some(include_str!("../docs/mcp.md"))),
    ("security", "what protects against which programs", Some(include_str!("../docs/security.md"))),
];

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit, Failure> {
    let Some(name) = &arguments.page else {
        let width = PAGES.iter().map(|(name, ..)| name.len()).max().unwrap_or_default();
        let lines = PAGES.iter().map(|(name, about, _)| format!("{name:width$}  {about}\n"));
        output::print(&lines.collect::<String>())?;
        return Ok(Exit::Ok);
    };
    let wanted = name.strip_suffix(".md").unwrap_or(name);
    let Some((_, _, text)) = PAGES.iter().find(|(name, ..)| *name == wanted) else {
        let near = near_names(wanted, PAGES.iter().map(|(name, ..)| *name), 1);
        let near = near.first().map_or_else(String::new, |near| format!("did you mean {near}? "));
        return Err(Failure::Usage(format!("unknown page {wanted}: {near}ptcl docs lists the pages")));
    };
    let text = text.map_or_else(|| Cow::from(functions_markdown()), Cow::from);
    let is_paged = !arguments.no_pager && std::io::stdout().is_terminal() && pager::is_longer_than_window(&text);
    if !is_paged || !pager::show(&text, Paged::Text)? {
        output::print(&text)?;
    }
    Ok(Exit::Ok)
}
