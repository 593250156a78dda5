//! Regular expressions: search, match, split and replace.

use super::Builtin;
use super::args::{string, type_error};
use super::parse;
use crate::context::Ctx;
use crate::cost;
use crate::heap::{Fault, Heap, Res, Value};
use crate::regex::{Backtracker, Compiled, Extent, Found, Linear, PatternCost, Program, SearchCache, Stepped};
use regex_automata::Input;
use regex_automata::util::captures::Captures;
use std::sync::Arc;

pub(super) const TABLE: &[Builtin] = &[
    Builtin::direct("re-find", 2, 2, "(re-find re s)", re_find).doc(
        "Returns the first match in the string, or nil; with groups [match group ...].",
        &[
            ("(re-find #\"\\d+\" \"a12b\")", "\"12\""),
            ("(re-find #\"(a)?(b)\" \"b\")", "[\"b\" nil \"b\"]"),
            ("(re-find #\"z\" \"abc\")", "nil"),
            ("(re-find \"a\" \"abc\")", "!type_error"),
        ],
    ),
    Builtin::direct("re-matches", 2, 2, "(re-matches re s)", re_matches).doc(
        "Returns the match when the whole string matches, else nil; with groups [match group ...].",
        &[
            ("(re-matches #\"(\\d+)-(\\d+)\" \"10-20\")", "[\"10-20\" \"10\" \"20\"]"),
            ("(re-matches #\"a\" \"ab\")", "nil"),
            ("(re-matches #\"a\" nil)", "!type_error"),
        ],
    ),
    Builtin::direct("re-seq", 2, 2, "(re-seq re s)", re_seq).doc(
        "Returns all matches in the string, each like that of re-find.",
        &[
            ("(re-seq #\"\\d+\" \"a1b22\")", "[\"1\" \"22\"]"),
            ("(re-seq #\"z\" \"abc\")", "[]"),
            ("(re-seq true \"b\")", "!type_error"),
        ],
    ),
    Builtin::direct("re-split", 2, 2, "(re-split re s)", re_split).doc(
        "Returns the parts of the string between the matches.",
        &[("(re-split #\"\\s+\" \"a  b c\")", "[\"a\" \"b\" \"c\"]"), ("(re-split \",\" \"a,b\")", "!type_error")],
    ),
    Builtin::direct("re-pattern", 1, 1, "(re-pattern s)", re_pattern).doc(
        "Returns the regular expression of a string.",
        &[
            ("(re-pattern \"\\\\d+\")", "#\"\\d+\""),
            ("(re-pattern \"[\")", "!runtime_error"),
            ("(re-pattern #\"a\")", "!type_error"),
        ],
    ),
    Builtin::direct("regex?", 1, 1, "(regex? x)", is_regex).doc(
        "Returns whether the value is a regular expression.",
        &[("(regex? #\"a\")", "true"), ("(regex? \"a\")", "false"), ("(regex?)", "!arity_error")],
    ),
    Builtin::direct("extract", 2, 3, "(extract pattern s n)", extract).doc(
        "Group n (1 when not given, 0 is the whole match) of the first match, or nil. The pattern may be a string.",
        &[
            ("(extract \"ID:(\\\\d+)\" \"ID:42\")", "\"42\""),
            ("(extract #\"ID:(\\d+)\" \"ID:42\" 0)", "\"ID:42\""),
            ("(extract \"ID:(\\\\d+)\" \"none\")", "nil"),
            ("(extract \"a\" 5)", "!type_error"),
        ],
    ),
    Builtin::direct("extract-int", 2, 4, "(extract-int pattern s n default)", extract_int).doc(
        "Returns the integer in group n (1 when not given) of the first match, else the default or nil.",
        &[
            ("(extract-int \"age=(\\\\d+)\" \"age=25\")", "25"),
            ("(extract-int \"age=(\\\\d+)\" \"none\" 1 0)", "0"),
            ("(extract-int \"a\" \"a\" \"b\")", "!type_error"),
        ],
    ),
];

/// The maximum product of the length of a text and the states of a pattern for an uninterrupted search. At worst such a
/// search takes a few milliseconds.
const AT_ONE_GO: u64 = 400_000;
/// The maximum product of the length of a text and the weight of a pattern for many uninterrupted searches in the same
/// text. Each of them may read far beyond its match, to the end of the text. Searches in longer texts are stepped,
/// which takes no longer, and charged for what they read.
const EACH_AT_ONE_GO: u64 = 4_000;

/// The engine that finds the next match.
enum Engine<'h> {
    /// For short texts. Finds the groups as well if the pattern has any.
    Quick(Arc<Linear>, Option<Captures>),
    /// For short texts. The backtracking program finds the groups of each match.
    Traced(Arc<Linear>, Arc<Program>),
    /// For long texts.
    Stepped(Arc<Linear>, Option<Box<Stepped<'h>>>),
    Backtracking(Arc<Program>),
}

/// A search for the matches of a pattern, one after the other.
pub(super) struct Search<'h> {
    h: &'h Ctx,
    engine: Engine<'h>,
    text: &'h str,
    /// The position at which the next search starts; beyond the end of the text there is no further match.
    place: usize,
    /// The end of the last match.
    last_match: usize,
    /// The fuel for each search for a match.
    step: u64,
    /// The ranges of the groups of the last match.
    groups: Vec<Option<(usize, usize)>>,
    /// The number of groups, including the whole match.
    count: usize,
    /// For the engines that search in one call.
    cache: Option<SearchCache>,
}

impl Drop for Search<'_> {
    fn drop(&mut self) {
        if let (Engine::Quick(linear, _) | Engine::Traced(linear, _), Some(cache)) = (&self.engine, self.cache.take()) {
            self.h.put_search_cache(linear, cache);
        }
    }
}

impl<'h> Search<'h> {
    /// Creates a search for one match.
    pub(super) fn once(h: &'h Ctx, pattern: &str, text: &'h str) -> Res<Self> {
        Self::new(h, pattern, Extent::Part, text, AT_ONE_GO)
    }

    /// Creates a search for a match of the whole text.
    pub(super) fn whole(h: &'h Ctx, pattern: &str, text: &'h str) -> Res<Self> {
        Self::new(h, pattern, Extent::Whole, text, AT_ONE_GO)
    }

    /// Creates a search for all matches.
    pub(super) fn each(h: &'h Ctx, pattern: &str, text: &'h str) -> Res<Self> {
        Self::new(h, pattern, Extent::Part, text, EACH_AT_ONE_GO)
    }

    /// Creates a search. Work that can take long is charged while it is done; everything else is charged here.
    fn new(h: &'h Ctx, pattern: &str, extent: Extent, text: &'h str, at_one_go: u64) -> Res<Self> {
        let (compiled, cost) = h.regex(pattern, extent)?;
        let (len, spread) = (text.len() as u64, cost::search_spread(cost.weight));
        charge_compiled(h, cost)?;
        let quick = cost.states.saturating_mul(len) <= AT_ONE_GO && cost.weight.saturating_mul(len) <= at_one_go;
        let mut step = cost::SEARCH;
        let (engine, count) = match compiled {
            Compiled::Linear(linear) => {
                let count = linear.groups;
                if !linear.suits(h, text, !quick)? {
                    (Engine::Backtracking(linear.program()?), count)
                } else if quick {
                    h.charge((len / cost::SEARCHED_BYTES_PER_UNIT).saturating_mul(spread))?;
                    if count > 1 {
                        // Finding the groups of a match is slow: it goes through the match position by position.
                        h.charge((len / cost::GROUP_BYTES_PER_UNIT).saturating_mul(spread))?;
                    }
                    step += len / cost::SEARCHED_AGAIN_PER_UNIT;
                    if linear.is_traced {
                        let program = linear.program()?;
                        (Engine::Traced(linear, program), count)
                    } else {
                        let captures = (count > 1).then(|| linear.quick.create_captures());
                        (Engine::Quick(linear, captures), count)
                    }
                } else {
                    // The pattern is compiled again for each direction.
                    charge_compiled(h, cost)?;
                    charge_compiled(h, cost)?;
                    let automata = linear.automata();
                    let stepped = automata.map(|automata| Box::new(Stepped::new(h, automata, spread)));
                    (Engine::Stepped(linear, stepped), count)
                }
            }
            Compiled::Backtracking(program) => {
                let count = program.groups;
                (Engine::Backtracking(program), count)
            }
        };
        h.check_available(count.saturating_mul(64))?;
        let step = step + count as u64;
        let cache = match &engine {
            Engine::Quick(linear, _) | Engine::Traced(linear, _) => Some(h.take_search_cache(linear)),
            Engine::Stepped(..) | Engine::Backtracking(_) => None,
        };
        Ok(Search { h, engine, text, place: 0, last_match: 0, step, groups: Vec::with_capacity(count), count, cache })
    }

    /// Returns the range of the next match, and stores its groups.
    pub(super) fn next(&mut self) -> Res<Option<(usize, usize)>> {
        if self.place > self.text.len() {
            return Ok(None);
        }
        self.h.charge(self.step)?;
        self.h.poll_interrupt()?;
        self.look()?;
        let Some(&Some((start, end))) = self.groups.first() else {
            self.place = usize::MAX;
            return Ok(None);
        };
        // After an empty match the next one starts at least one character later.
        self.place = if end > start { end } else { self.after_character(end) };
        self.last_match = end;
        Ok(Some((start, end)))
    }

    /// Searches for a match from the current position. If there is none, there are no groups.
    fn look(&mut self) -> Res<()> {
        self.groups.clear();
        let input = Input::new(self.text).range(self.place..);
        match (&mut self.engine, &mut self.cache) {
            (Engine::Quick(..) | Engine::Traced(..), None) => {}
            (Engine::Quick(linear, None), Some(cache)) => {
                self.groups.extend(linear.quick.search_with(cache, &input).map(|m| Some((m.start(), m.end()))));
            }
            (Engine::Quick(linear, Some(captures)), Some(cache)) => {
                linear.quick.search_captures_with(cache, &input, captures);
                if captures.is_match() {
                    self.groups.extend((0..self.count).map(|i| captures.get_group(i).map(|m| (m.start, m.end))));
                }
            }
            (Engine::Traced(linear, program), Some(cache)) => {
                if let Some(found) = linear.quick.search_with(cache, &input) {
                    let program = program.clone();
                    let mut machine = Backtracker::new(self.h, &program, self.text, found.start(), self.last_match)?;
                    if machine.matches_at(found.start())? {
                        self.groups.extend(machine.groups());
                    }
                }
            }
            (Engine::Stepped(linear, stepped), _) => {
                let found = match stepped {
                    Some(stepped) => stepped.find(self.text, self.place)?,
                    None => Found::Unknown,
                };
                match found {
                    Found::Nothing => {}
                    Found::Match(start, end) if self.count == 1 => self.groups.push(Some((start, end))),
                    Found::Match(start, _) => {
                        let program = linear.program()?;
                        let mut machine = Backtracker::new(self.h, &program, self.text, start, self.last_match)?;
                        if machine.matches_at(start)? {
                            self.groups.extend(machine.groups());
                        }
                    }
                    Found::Unknown => {
                        let program = linear.program()?;
                        self.backtrack(&program, self.place)?;
                    }
                }
            }
            (Engine::Backtracking(program), _) => {
                let program = program.clone();
                return self.backtrack(&program, self.place);
            }
        }
        self.look_again_at_end()
    }

    /// Repeats the search for a match that ends at the end of the text, where a linear search may be wrong. Java finds
    /// no match before it.
    fn look_again_at_end(&mut self) -> Res<()> {
        let linear = match &self.engine {
            Engine::Quick(linear, _) | Engine::Traced(linear, _) | Engine::Stepped(linear, _) => linear,
            Engine::Backtracking(_) => return Ok(()),
        };
        match self.groups.first() {
            Some(&Some((start, end))) if end == self.text.len() && linear.is_unsure_at_end() => {
                let program = linear.program()?;
                self.groups.clear();
                self.backtrack(&program, start)
            }
            _ => Ok(()),
        }
    }

    fn backtrack(&mut self, program: &Program, from: usize) -> Res<()> {
        let mut machine = Backtracker::new(self.h, program, self.text, from, self.last_match)?;
        if machine.search()? {
            self.groups.extend(machine.groups());
        }
        Ok(())
    }

    fn after_character(&self, place: usize) -> usize {
        place + self.text.get(place..).and_then(|rest| rest.chars().next()).map_or(1, char::len_utf8)
    }

    /// Returns the part of the text in a range.
    pub(super) fn part(&self, start: usize, end: usize) -> &'h str {
        self.text.get(start..end).unwrap_or_default()
    }

    /// Returns the text of a group of the last match, if the group took part.
    pub(super) fn group(&self, number: usize) -> Option<&'h str> {
        let range = self.groups.get(number).copied().flatten();
        range.map(|(start, end)| self.part(start, end))
    }

    /// Returns the number of groups, without the whole match.
    pub(super) fn group_count(&self) -> usize {
        self.count.saturating_sub(1)
    }

    /// Returns the number of the group with this name.
    pub(super) fn named(&self, name: &str) -> Option<usize> {
        match &self.engine {
            Engine::Quick(linear, _) | Engine::Traced(linear, _) | Engine::Stepped(linear, _) => linear.named(name),
            Engine::Backtracking(program) => program.named(name),
        }
    }

    /// Returns the last match as a value: its text, or a vector if there are groups. A group that took no part is nil.
    pub(super) fn value(&self) -> Res<Value<'h>> {
        let text = |group: &Option<(usize, usize)>| match *group {
            Some((start, end)) => self.h.str_view(self.part(start, end)),
            None => Ok(Value::Nil),
        };
        match &*self.groups {
            [] => Ok(Value::Nil),
            [whole] => text(whole),
            groups => {
                let out = self.h.vec_builder(groups.len())?;
                for group in groups {
                    out.push(self.h, text(group)?)?;
                }
                out.finish(self.h)
            }
        }
    }
}

/// Charges for the compiled form at every use, whether or not it was compiled just now, so that the fuel of a program
/// does not depend on what is cached.
fn charge_compiled(h: &Heap, cost: PatternCost) -> Res<()> {
    h.charge(cost.bytes as u64 / cost::COMPILED_BYTES_PER_UNIT)
}

/// Returns the pattern of a regular expression.
fn pattern<'h>(name: &str, v: Value<'h>) -> Res<&'h str> {
    match v {
        Value::Regex(s) => Ok(s.text()),
        other => Err(expects_regex(name, other)),
    }
}

#[cold]
fn expects_regex(name: &str, got: Value<'_>) -> Fault {
    match type_error(name, "a regular expression", got) {
        Fault::Error(error) => error.hint("write #\"...\" or (re-pattern s)").into(),
        other => other,
    }
}

fn two<'h>(args: &[Value<'h>]) -> (Value<'h>, Value<'h>) {
    (args.first().copied().unwrap_or(Value::Nil), args.get(1).copied().unwrap_or(Value::Nil))
}

fn re_find<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let (re, text) = two(args);
    let mut search = Search::once(h, pattern("re-find", re)?, string("re-find", text)?)?;
    match search.next()? {
        Some(_) => search.value(),
        None => Ok(Value::Nil),
    }
}

fn re_matches<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let (re, text) = two(args);
    let (re, text) = (pattern("re-matches", re)?, string("re-matches", text)?);
    let mut search = Search::whole(h, re, text)?;
    match search.next()? {
        Some(_) => search.value(),
        None => Ok(Value::Nil),
    }
}

fn re_seq<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let (re, text) = two(args);
    let mut search = Search::each(h, pattern("re-seq", re)?, string("re-seq", text)?)?;
    let out = h.vec_builder(4)?;
    while search.next()?.is_some() {
        out.push(h, search.value()?)?;
    }
    out.finish(h)
}

fn re_split<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let (re, text) = two(args);
    split(h, pattern("re-split", re)?, string("re-split", text)?)
}

/// Returns the parts of a text between the matches of a pattern. An empty match at the start is ignored, empty parts at
/// the end are kept, and an empty text has no parts.
pub(super) fn split<'h>(h: &'h Ctx, pattern: &str, text: &'h str) -> Res<Value<'h>> {
    let mut search = Search::each(h, pattern, text)?;
    let out = h.vec_builder(4)?;
    if text.is_empty() {
        return out.finish(h);
    }
    let mut from = 0;
    while let Some((start, end)) = search.next()? {
        if end == 0 {
            continue;
        }
        out.push(h, h.str_view(search.part(from, start))?)?;
        from = end;
    }
    out.push(h, h.str_view(search.part(from, text.len()))?)?;
    out.finish(h)
}

fn re_pattern<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args.first() {
        Some(&Value::Str(s)) => {
            h.charge(s.text().len() as u64 + cost::PATTERN_READ)?;
            let (_, cost) = h.regex(s.text(), Extent::Part)?;
            charge_compiled(h, cost)?;
            Ok(Value::Regex(s))
        }
        other => Err(type_error("re-pattern", "a string", other.copied().unwrap_or(Value::Nil))),
    }
}

fn is_regex<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    Ok(Value::Bool(matches!(args, [Value::Regex(_)])))
}

/// Returns the text of a group of the first match.
fn group<'h>(h: &'h Ctx, name: &str, args: &[Value<'h>]) -> Res<Option<&'h str>> {
    let (re, text) = two(args);
    let re = match re {
        Value::Str(s) | Value::Regex(s) => s.text(),
        other => return Err(type_error(name, "a regular expression or a string", other)),
    };
    let text = string(name, text)?;
    let group = match args.get(2) {
        Some(&n) => super::args::int(name, n)?,
        None => 1,
    };
    let mut search = Search::once(h, re, text)?;
    if search.next()?.is_none() {
        return Ok(None);
    }
    // A group that took no part is empty if a later group did, and missing otherwise.
    let later = |from: usize| search.groups.iter().skip(from).any(Option::is_some);
    Ok(usize::try_from(group).ok().filter(|&n| later(n)).and_then(|n| {
        let range = search.groups.get(n)?;
        Some(range.map_or("", |(start, end)| search.part(start, end)))
    }))
}

fn extract<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match group(h, "extract", args)? {
        Some(text) => h.str_view(text),
        None => Ok(Value::Nil),
    }
}

fn extract_int<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let default = args.get(3).copied().unwrap_or(Value::Nil);
    let Some(text) = group(h, "extract-int", args)? else { return Ok(default) };
    h.charge(cost::scanned(text.len()))?;
    Ok(parse::long(text).map_or(default, Value::Int))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Reason;
    use crate::heap::TextBuf;
    use crate::text::pr_str;

    fn shown<'h>(h: &'h Ctx, f: super::super::DirectImp, args: &[Value<'h>]) -> Result<String, Reason> {
        let value = match f(h, args) {
            Ok(value) => value,
            Err(Fault::Error(error)) => return Err(error.reason),
            Err(other) => panic!("{other:?}"),
        };
        let mut out = TextBuf::new(h);
        pr_str(h, value, &mut out).expect("there is room");
        Ok(out.into_string())
    }

    fn call(f: super::super::DirectImp, pattern: &str, text: &str) -> Result<String, Reason> {
        let h = Ctx::new(Heap::new(1, usize::MAX / 2));
        let re = Value::Regex(h.text(pattern).expect("there is room"));
        let text = h.str(text).expect("there is room");
        shown(&h, f, &[re, text])
    }

    #[test]
    fn searches_in_both_engines() {
        for (f, pattern, text, answer) in [
            (re_find as super::super::DirectImp, r"a(\d+)?", "xa", r#"["a" nil]"#),
            (re_find, r"(a)?(b)?(c)", "c", r#"["c" nil nil "c"]"#),
            (re_seq, r"a(\d+)?", "a a2", r#"[["a" nil] ["a2" "2"]]"#),
            (re_seq, r"x*", "xab", r#"["x" "" "" ""]"#),
            (re_seq, "", "é", r#"["" ""]"#),
            (re_seq, r"\Ga?", "aaba", r#"["a" "a" ""]"#),
            (re_seq, "(?m)^.*$", "a\n\nb\n", r#"["a" "" "b"]"#),
            (re_matches, r"a|ab", "ab", r#""ab""#),
            // As in Java, a round that matches the empty string is the last one, and counts.
            (re_matches, r"(a|c*)+", "a", r#"["a" ""]"#),
            (re_matches, r"(a|c*)+", "cca", r#"["cca" ""]"#),
            (re_matches, r"(x?c*)+", "x", r#"["x" ""]"#),
            (re_matches, r"(a*)*", "aa", r#"["aa" ""]"#),
            (re_matches, r"(a+)*", "aa", r#"["aa" "aa"]"#),
            (re_matches, r"((a)|b?)*", "a", r#"["a" "" "a"]"#),
            (re_find, r"b$", "ab\n", r#""b""#),
            (re_find, r"b$", "ab\r\n", r#""b""#),
            (re_find, r"b$", "ab\n\n", "nil"),
            (re_find, r"b\Z", "ab\n", r#""b""#),
            (re_find, r"b\z", "ab\n", "nil"),
            (re_matches, r"b$", "b\n", "nil"),
            (re_seq, r"(?m)\w$", "a\nb\n", r#"["a" "b"]"#),
            (re_seq, r"$", "a\n", r#"["" ""]"#),
            (re_matches, r"a", "ab", "nil"),
            (re_split, r"", "abc", r#"["a" "b" "c" ""]"#),
            (re_split, r",", "", "[]"),
            (re_split, r",", ",a,,", r#"["" "a" "" ""]"#),
            (re_split, r"(\d)", "a1b", r#"["a" "b"]"#),
        ] {
            assert_eq!(call(f, pattern, text).as_deref(), Ok(answer), "{pattern} in {text}");
        }
    }

    #[test]
    fn hostile_patterns_end() {
        let long = "a".repeat(100_000) + "!";
        let rounds = format!(r#"["{}" ""]"#, "xc".repeat(50_000));
        assert_eq!(call(re_matches, "(x?c*)+", &"xc".repeat(50_000)), Ok(rounds), "the same in long texts");
        assert_eq!(call(re_find, r"(?:$)*(){1000000000}", "a").as_deref(), Ok(r#"["" ""]"#), "repeats of nothing");
        assert_eq!(call(re_find, "(a+)+$", &long).as_deref(), Ok("nil"));
        assert_eq!(call(re_find, r"(?:\p{L}|\p{L}\p{L})*~", &long).as_deref(), Ok("nil"));
        assert_eq!(call(re_find, r"(((a{100}b){100}){100}){100}", "a"), Err(Reason::RuntimeError), "too large");
        assert!(call(re_find, r"(a?){9000}", &long).is_ok(), "long, but linear");
    }
}
