//! Searching tools by words, for more tools than fit in a prompt.

use super::contract::Effect;
use super::tool::{Body, Tool};
use super::tool_set::Tools;
use super::words::{cut, one_line};
use lisp_core::compile::TOOL_PAGE;
use lisp_core::text::near_names;
use serde::Serialize;
use std::sync::Arc;

/// The maximum number of words that count in a search.
const WORDS: usize = 12;
/// The maximum number of tools that a program's search returns.
const FOUND: usize = 10;

/// A tool that a search found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundTool {
    /// The name, as written after `tool/`.
    pub name: String,
    /// The call with its signature, as in the prompt.
    pub usage: String,
    /// The beginning of the description.
    pub about: String,
}

impl Tools {
    /// Searches the names, descriptions and parameters of the tools for words. Returns at most `max` tools.
    ///
    /// Tools that match more of the words come first; matches in names count more than others.
    ///
    /// ```
    /// use lisp_runtime::{Tool, Tools};
    /// let mut tools = Tools::new();
    /// tools.add(Tool::external("list_issues").signature("(state :string) -> [:map]").about("Lists the issues of a repository."))?;
    /// tools.add(Tool::external("get_weather").about("Weather of a city."))?;
    /// let found = tools.search("issue list", 5);
    /// assert_eq!(found.len(), 1);
    /// assert_eq!(found[0].usage, "tool/list_issues (state :string) -> [:map]");
    /// # Ok::<(), lisp_runtime::BuildError>(())
    /// ```
    pub fn search(&self, words: &str, max: usize) -> Vec<FoundTool> {
        let words: Vec<String> = pieces(words).into_iter().take(WORDS).collect();
        let mut ranked: Vec<(usize, usize, &Tool)> = Vec::new();
        for tool in self.all() {
            let (mut matched, mut score) = (0, 0);
            let places = [
                (tool.given_name(), 8),
                (tool.contract.description.as_deref().unwrap_or_default(), 3),
                (tool.signature_text(), 2),
            ]
            .map(|(text, weight)| (pieces(&cut(text, 2_000)), weight));
            for word in &words {
                let best =
                    places.iter().map(|(pieces, weight)| weight * likeness(word, pieces)).max().unwrap_or_default();
                matched += usize::from(best > 0);
                score += best;
            }
            if matched > 0 {
                ranked.push((matched, score, tool));
            }
        }
        ranked.sort_by(|a, b| (b.0, b.1).cmp(&(a.0, a.1)).then_with(|| a.2.name().cmp(b.2.name())));
        ranked.into_iter().take(max).map(|(_, _, tool)| found(tool)).collect()
    }

    /// Returns a tool named `search` with which programs search these tools: `(tool/search {:words "open issues"})`.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input, Tool, Tools};
    /// let mut tools = Tools::new();
    /// tools.add(Tool::external("list_issues").about("Lists issues."))?;
    /// let search = tools.search_tool();
    /// let engine = Engine::builder().grant_all(tools).grant(search).build()?;
    /// let outcome = engine.eval("(map :name (tool/search {:words \"issues\"}))", Input::new());
    /// assert_eq!(outcome.value::<Vec<String>>()?, ["list_issues"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn search_tool(&self) -> Tool {
        let tools = self.clone();
        Tool::new("search", move |call| Ok(tools.search(&call.get::<String>("words")?, FOUND)))
            .signature("(words :string) -> [{name :string, usage :string, about :string}]")
            .about("Finds tools by words of their names and descriptions.")
    }
}

impl Tool {
    /// Returns the internal tool behind `(doc tool/name)` for these tools. If names are equal, the first tool counts.
    pub(crate) fn pages(tools: Vec<Arc<Tool>>) -> Tool {
        let page = move |name: &str| match tools.iter().find(|tool| tool.name() == name) {
            Some(tool) => tool.describe().trim_end().to_owned(),
            None => {
                let mut names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
                names.sort_unstable();
                names.dedup();
                format!("there is no tool/{name}; {}", which_there_are(name, &names))
            }
        };
        Tool::new(TOOL_PAGE, move |call| Ok(page(&call.get::<String>("name")?))).with_effect(Effect::Read)
    }

    /// Returns the internal tool behind `(doc tool/name)` when the other half of the run has the descriptions.
    pub(crate) fn pages_elsewhere() -> Tool {
        Tool::external(TOOL_PAGE)
    }

    /// Returns whether this is the internal tool behind `(doc tool/name)`. Every run has it; policies do not see it.
    pub(crate) fn is_pages(&self) -> bool {
        self.name() == TOOL_PAGE
    }

    /// Returns the internal tool that a worker calls at its end when the other half of the run counts its calls.
    pub(crate) fn end_question() -> Tool {
        Tool::external(Tool::END_QUESTION)
    }

    /// Its name, which programs cannot write.
    pub(crate) const END_QUESTION: &str = " end of a worker";

    /// Returns whether its calls need no one else: it is the tool behind `(doc tool/name)`, and has the descriptions.
    pub(crate) fn has_pages(&self) -> bool {
        self.is_pages() && matches!(self.body, Body::Function(_))
    }
}

/// Describes the tools that an unknown name may have meant: the nearest names, or all names if they are few, and their
/// number.
pub(crate) fn which_there_are(name: &str, names: &[&str]) -> String {
    /// The maximum number of names that are shown.
    const SHOWN: usize = 5;
    let listed = |names: &[&str]| names.iter().map(|name| format!("tool/{name}")).collect::<Vec<_>>().join(", ");
    let near = near_names(name, names.iter().copied(), SHOWN);
    match (names.len(), near.len()) {
        (0, _) => "this run has no tools; use data/... only".to_owned(),
        (_, 1..) => format!("did you mean {}?", listed(&near)),
        (count, 0) if count <= SHOWN => format!("available: {}", listed(names)),
        (count, 0) => format!("none of the {count} tools has a similar name; the first is {}", listed(&names[..1])),
    }
}

fn found(tool: &Tool) -> FoundTool {
    FoundTool {
        name: tool.name().to_owned(),
        usage: one_line(&format!("tool/{} {}", tool.name(), tool.signature_text())),
        about: cut(&one_line(tool.contract.description.as_deref().unwrap_or_default()), 300),
    }
}

/// Returns the words of a text in lower case; `listOpenIssues` has three.
fn pieces(text: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let (mut word, mut was_lower) = (String::new(), false);
    for c in text.chars() {
        if !c.is_alphanumeric() || (was_lower && c.is_uppercase()) {
            all.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase();
    }
    all.push(word);
    all.retain(|word| !word.is_empty());
    all
}

/// Returns 3 for an equal word, 2 for one with the same beginning (`issue` and `issues`), and 1 for one that contains
/// it.
fn likeness(word: &str, pieces: &[String]) -> usize {
    let of = |piece: &String| {
        let short = word.len().min(piece.len());
        if piece == word {
            3
        } else if short >= 3 && (piece.starts_with(word) || word.starts_with(piece.as_str())) {
            2
        } else {
            usize::from(word.len() >= 4 && piece.contains(word))
        }
    };
    pieces.iter().map(of).max().unwrap_or_default()
}
