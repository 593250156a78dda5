//! Finding tools by words, for more of them than a prompt has room for.

use super::tool::{Body, Effect, Tool, Tools};
use super::words::{cut, one_line};
use lisp_core::compile::TOOL_PAGE;
use lisp_core::text::near_names;
use serde::Serialize;
use std::sync::Arc;

/// The most words of a search that count.
const WORDS: usize = 12;
/// The most tools that a search of a program finds.
const FOUND: usize = 10;

/// A tool that a search found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundTool {
    /// Its name behind `tool/`.
    pub name: String,
    /// How it is called: the line of the prompt card.
    pub usage: String,
    /// What it does, the beginning of its description.
    pub about: String,
}

impl Tools {
    /// The tools whose names, descriptions or parameters have these words, at most `most`, the best first: those that have most of
    /// the words, and in their names rather than elsewhere.
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
    pub fn search(&self, words: &str, most: usize) -> Vec<FoundTool> {
        let words: Vec<String> = pieces(words).into_iter().take(WORDS).collect();
        let mut ranked: Vec<(usize, usize, &Tool)> = Vec::new();
        for tool in self.all() {
            let (mut matched, mut score) = (0, 0);
            let places =
                [(tool.given_name(), 8), (tool.description.as_deref().unwrap_or_default(), 3), (tool.shown(), 2)]
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
        ranked.sort_by(|a, b| (b.0, b.1).cmp(&(a.0, a.1)).then_with(|| a.2.name.cmp(&b.2.name)));
        ranked.into_iter().take(most).map(|(_, _, tool)| found(tool)).collect()
    }

    /// A tool named `search` that finds these tools, for programs: `(tool/search {:words "open issues"})`.
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
    /// What `(doc tool/name)` asks: the page of each of these tools, of several with one name the first.
    pub(crate) fn pages(tools: Vec<Arc<Tool>>) -> Tool {
        let page = move |name: &str| match tools.iter().find(|tool| tool.name == name) {
            Some(tool) => tool.describe().trim_end().to_owned(),
            None => {
                let mut names: Vec<&str> = tools.iter().map(|tool| tool.name()).collect();
                names.sort_unstable();
                names.dedup();
                format!("there is no tool/{name}; {}", which_there_are(name, &names))
            }
        };
        Tool::new(TOOL_PAGE, move |call| Ok(page(&call.get::<String>("name")?))).effect(Effect::Read)
    }

    /// What `(doc tool/name)` asks where the pages are with another half.
    pub(crate) fn pages_elsewhere() -> Tool {
        Tool::external(TOOL_PAGE)
    }

    /// Is it what `(doc tool/name)` asks? Every run has it, and no policy is asked about it.
    pub(crate) fn is_pages(&self) -> bool {
        self.name == TOOL_PAGE
    }

    /// What a worker asks at its end, where its calls are counted by another half.
    pub(crate) fn end_question() -> Tool {
        Tool::external(Tool::END_QUESTION)
    }

    /// The name of that: programs have none like it.
    pub(crate) const END_QUESTION: &str = " end of a worker";

    /// Does a call of it need nobody: is it what `(doc tool/name)` asks, and here?
    pub(crate) fn has_pages(&self) -> bool {
        self.is_pages() && matches!(self.body, Body::Function(_))
    }
}

/// The tools that may have been meant by a name that there is not: the nearest names, or all of a few, and how many there are.
pub(crate) fn which_there_are(name: &str, names: &[&str]) -> String {
    /// The most names that are shown.
    const SHOWN: usize = 5;
    let listed = |names: &[&str]| names.iter().map(|name| format!("tool/{name}")).collect::<Vec<_>>().join(", ");
    let near = near_names(name, names.iter().copied(), SHOWN);
    match (names.len(), near.len()) {
        (0, _) => "there are no tools here; work on data/... alone".to_owned(),
        (_, 1..) => format!("did you mean {}?", listed(&near)),
        (count, 0) if count <= SHOWN => format!("there are {}", listed(names)),
        (count, 0) => format!("none of the {count} tools has a similar name; the first is {}", listed(&names[..1])),
    }
}

fn found(tool: &Tool) -> FoundTool {
    FoundTool {
        name: tool.name.clone(),
        usage: one_line(&format!("tool/{} {}", tool.name, tool.shown())),
        about: cut(&one_line(tool.description.as_deref().unwrap_or_default()), 300),
    }
}

/// The words of a text in lower case; `listOpenIssues` has three.
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

/// 3 for the word itself, 2 for one with the same beginning (`issue` and `issues`), 1 for one that has it within.
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
