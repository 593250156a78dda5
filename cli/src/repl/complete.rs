//! What Tab offers: names, and what a command takes.

use super::commands::{self, COMMANDS};
use super::words::ends_word;
use crate::names::{names as language_names, names_in};
use lisp_runtime::Limits;
use lisp_runtime::internal::visible;
use rustyline::completion::Pair;
use std::collections::BTreeSet;
use std::fs;

/// Returns where the word before the cursor starts, and what it may become. `names` are those of the session.
pub(super) fn complete(before: &str, names: &BTreeSet<String>) -> (usize, Vec<Pair>) {
    if let Some((command, argument)) = commands::parse(before)
        && before.trim_start().len() > command.name.len()
    {
        match command.name {
            ":load" | ":save" | ":save!" | ":record" => return files(before, argument),
            ":data" => {
                let file = argument.split_once('=').map_or(argument, |(_, file)| file);
                return files(before, file);
            }
            ":limits" => {
                let name = argument.rsplit([',', ' ']).next().unwrap_or_default();
                return (before.len() - name.len(), those_with(name, Limits::NAMES.iter().copied()));
            }
            _ => {}
        }
    }
    let start = before.rfind(ends_word).map_or(0, |at| at + 1);
    let word = &before[start..];
    if word.is_empty() {
        return (before.len(), Vec::new());
    }
    let commands = COMMANDS.iter().map(|command| command.name).filter(|_| before[..start].trim().is_empty());
    let in_namespace: Vec<String> = match word.split_once('/') {
        Some((namespace, _)) if !namespace.is_empty() => names_in(namespace).collect(),
        _ => Vec::new(),
    };
    let of_language = language_names().map(|name: &str| name);
    let all = names.iter().map(String::as_str).chain(of_language).chain(commands);
    (start, those_with(word, all.chain(in_namespace.iter().map(String::as_str))))
}

/// Returns the names that begin with a text and can be typed, in order.
fn those_with<'n>(start: &str, names: impl Iterator<Item = &'n str>) -> Vec<Pair> {
    let names: BTreeSet<&str> = names.filter(|name| name.starts_with(start) && can_be_typed(name)).collect();
    let pair = |name: &str| Pair { display: name.to_owned(), replacement: name.to_owned() };
    names.into_iter().map(pair).collect()
}

/// Returns whether a name is one word of visible characters. The names of data and its keys may be any text.
fn can_be_typed(name: &str) -> bool {
    !name.contains(ends_word) && visible(name) == name
}

/// Returns the files whose path begins with what is typed at the end of `before`.
fn files(before: &str, typed: &str) -> (usize, Vec<Pair>) {
    /// More than this are no help.
    const MAX: usize = 1_000;
    let (folder, start) = typed
        .rsplit_once('/')
        .map_or((".", typed), |(folder, start)| (if folder.is_empty() { "/" } else { folder }, start));
    let at = before.len() - start.len();
    let Ok(entries) = fs::read_dir(folder) else { return (at, Vec::new()) };
    let named = |entry: fs::DirEntry| {
        let name = entry.file_name().into_string().ok()?;
        let is_asked = name.starts_with(start) && (start.starts_with('.') || !name.starts_with('.'));
        let can_be_typed = !name.contains(char::is_control) && visible(&name) == name;
        // A link to a folder is one too.
        let is_folder = || fs::metadata(entry.path()).is_ok_and(|found| found.is_dir());
        (is_asked && can_be_typed).then(|| if is_folder() { name + "/" } else { name })
    };
    let found: BTreeSet<String> = entries.filter_map(|entry| named(entry.ok()?)).take(MAX).collect();
    (at, found.into_iter().map(|name| Pair { display: name.clone(), replacement: name }).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lisp_runtime::language::describe_name;

    fn offered(before: &str) -> (usize, Vec<String>) {
        let (start, pairs) = complete(before, &BTreeSet::from([":total".to_owned()]));
        (start, pairs.into_iter().map(|pair| pair.replacement).collect())
    }

    #[test]
    fn names_after_a_slash_are_offered() {
        assert_eq!(offered("(str/upper-"), (1, vec!["str/upper-case".to_owned()]));
        assert_eq!(offered("(clojure.string/upper-"), (1, vec!["clojure.string/upper-case".to_owned()]));
        for (typed, name) in [
            ("(Math/", "Math/abs"),
            ("(Math/", "Math/PI"),
            ("(LocalDate/", "LocalDate/parse"),
            ("(clojure.set/", "clojure.set/union"),
            ("(set/", "set/union"),
            ("(str/", "str/join"),
            ("(defonc", "defonce"),
        ] {
            assert!(offered(typed).1.iter().any(|offer| offer == name), "{typed}: {:?}", offered(typed));
        }
        // What is offered is a name of the language.
        for offer in offered("(str/").1 {
            assert!(describe_name(&offer).is_ok(), "{offer}");
        }
        assert_eq!(offered("(/"), (1, vec!["/".to_owned()]));
    }

    #[test]
    fn commands_offer_what_they_take() {
        assert_eq!(offered(":limits timeout"), (8, vec!["timeout_ms".to_owned()]));
        assert_eq!(offered(":limits fuel=5,session_u"), (15, vec!["session_undo".to_owned()]));
        assert_eq!(offered(":limits fuel").0, 8);
        assert_eq!(offered(":und"), (0, vec![":undo".to_owned()]));
        assert_eq!(offered("(f :to"), (3, vec![":total".to_owned()]));
        let folder = std::env::temp_dir().join(format!("ptcl-complete-{}", std::process::id()));
        fs::create_dir_all(folder.join("data-of-may")).unwrap();
        for name in ["data one.csv", ".data", "data\u{1b}[31m"] {
            fs::write(folder.join(name), "").unwrap();
        }
        let path = folder.display();
        for command in [":load ", ":save ", ":save! ", ":data ", ":data x=", ":record "] {
            let typed = format!("{command}{path}/da");
            let wanted = vec!["data one.csv".to_owned(), "data-of-may/".to_owned()];
            assert_eq!(offered(&typed), (typed.len() - 2, wanted));
        }
        assert_eq!(offered(&format!(":load {path}/.d")).1, [".data"]);
        fs::remove_dir_all(&folder).unwrap();
    }
}
