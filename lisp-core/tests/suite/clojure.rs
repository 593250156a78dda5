//! The reader beside Clojure's: `clojure/readings.txt` has what the reader of Clojure 1.11 makes of 46,000 short sources, single tokens,
//! tokens in pairs without a space between, and numbers, names and characters by their grammar. `clojure/readings.clj` wrote it.
//!
//! Each is read the same here, or for a reason that is in the list of differences. No difference is a text that Clojure refuses and
//! that is read here as several forms.

use lisp_core::syntax::{Form, FormKind, Names, ReadLimits, read};
use std::collections::BTreeMap;

const READINGS: &str = include_str!("clojure/readings.txt");

/// What is read of a source, as the table writes it, or the error.
fn reading(source: &str) -> Result<String, String> {
    match read(source, &ReadLimits::default()) {
        Ok(read) => Ok(all(&read.forms, &read.names, false, false)),
        Err(error) => Err(error.to_string()),
    }
}

fn all(forms: &[Form], names: &Names, quoted: bool, in_fn: bool) -> String {
    forms.iter().map(|form| canonical(form, names, quoted, in_fn)).collect::<Vec<_>>().join(" ")
}

fn canonical(form: &Form, names: &Names, quoted: bool, in_fn: bool) -> String {
    let all = |forms: &[Form]| all(forms, names, quoted, in_fn);
    match &form.kind {
        FormKind::Nil => "nil".to_owned(),
        FormKind::Bool(value) => value.to_string(),
        FormKind::Int(value) => value.to_string(),
        FormKind::Big(value) => value.to_string(),
        FormKind::Float(value) => format!("f{:016x}", value.to_bits()),
        FormKind::Str(text) => format!("\"{}\"", shown(text)),
        FormKind::Regex(text) => format!("#\"{}\"", shown(text)),
        FormKind::Keyword(name) => format!(":{}", names.text(*name)),
        FormKind::Symbol(name) if quoted => format!("'{}", names.text(*name)),
        FormKind::Symbol(name) if in_fn && names.text(*name) == "%" => "%1".to_owned(),
        FormKind::Symbol(name) => names.text(*name).to_owned(),
        FormKind::Quote(form) if quoted => format!("['quote {}]", canonical(form, names, true, in_fn)),
        FormKind::Quote(form) => canonical(form, names, true, in_fn),
        FormKind::Var(name) if quoted => format!("['var '{}]", names.text(*name)),
        FormKind::Var(name) => format!("#'{}", names.text(*name)),
        FormKind::List(forms) if quoted => format!("[{}]", all(forms)),
        FormKind::List(forms) => format!("({})", all(forms)),
        FormKind::Vector(forms) => format!("[{}]", all(forms)),
        FormKind::Map(forms) => format!("{{{}}}", all(forms)),
        FormKind::Set(forms) => {
            let mut members: Vec<_> = forms.iter().map(|form| canonical(form, names, quoted, in_fn)).collect();
            members.sort();
            format!("#{{{}}}", members.join(" "))
        }
        FormKind::ShortFn(_) if quoted => "#()".to_owned(),
        FormKind::ShortFn(forms) => format!("#({})", self::all(forms, names, false, true)),
    }
}

fn shown(text: &str) -> String {
    text.chars().map(|c| if c < ' ' { char::from_u32(0x2400 + c as u32).unwrap_or(c) } else { c }).collect()
}

/// The text that is shown so.
fn meant(shown: &str) -> String {
    let picture = |c: char| (c as u32).checked_sub(0x2400).filter(|code| *code < 32).and_then(char::from_u32);
    shown.chars().map(|c| picture(c).unwrap_or(c)).collect()
}

/// All sources of the table with what Clojure reads; `None` where it refuses.
fn table() -> Vec<(String, Option<String>)> {
    let mut parts = READINGS.split_terminator('\n').fold(BTreeMap::<&str, Vec<&str>>::new(), {
        let mut part = "";
        move |mut parts, line| {
            match ["tokens", "pairs", "others", "sources"].into_iter().find(|name| *name == line) {
                Some(name) => part = name,
                None => parts.entry(part).or_default().push(line),
            }
            parts
        }
    });
    let mut part = |name| parts.remove(name).unwrap_or_default();
    let read = |reading: &str| (reading != "✗").then(|| reading.to_owned());
    let pair = |line: &'static str| line.split_once('\t').expect("a source and its reading");
    let tokens: Vec<(String, &str)> = part("tokens").into_iter().map(pair).map(|(t, r)| (meant(t), r)).collect();
    let others: BTreeMap<(usize, usize), &str> = part("others")
        .into_iter()
        .map(|line| {
            let (one, rest) = pair(line);
            let (other, reading) = pair(rest);
            ((one.parse().expect("a number"), other.parse().expect("a number")), reading)
        })
        .collect();
    let mut table: Vec<_> = tokens.iter().map(|(token, reading)| (token.clone(), read(reading))).collect();
    for (i, row) in part("pairs").into_iter().enumerate() {
        for (j, code) in row.chars().enumerate() {
            let source = format!("{}{}", tokens[i].0, tokens[j].0);
            let reading = match code {
                '!' => None,
                '=' => Some(format!("{} {}", tokens[i].1, tokens[j].1).trim().to_owned()),
                'j' => Some(source.clone()),
                _ => Some(others[&(i, j)].to_owned()),
            };
            table.push((source, reading));
        }
    }
    table.extend(part("sources").into_iter().map(pair).map(|(source, reading)| {
        let source = meant(source);
        let reading = if reading == "=" { Some(source.clone()) } else { read(reading) };
        (source, reading)
    }));
    table
}

/// Why a source is read in another way than Clojure reads it.
struct Difference {
    reason: &'static str,
    /// Is it this one?
    is: fn(source: &str, clojure: Option<&str>, here: Result<&str, &str>) -> bool,
}

/// A difference in which Clojure reads the source, and the error here says so.
macro_rules! refused {
    ($reason:literal, $error:literal) => {
        Difference {
            reason: $reason,
            is: |_, clojure, here| clojure.is_some() && here.is_err_and(|e| e.contains($error)),
        }
    };
}

/// All differences. What Clojure reads and is refused here has an error that names it; what Clojure refuses and is read
/// here is no more than one thing.
const DIFFERENCES: &[Difference] = &[
    refused!("there are no ratios", "no ratios such as"),
    refused!("there are no exact decimals", "no exact decimals such as"),
    refused!("zeros in front are ambiguous", "starts with a zero"),
    refused!("a float beyond the largest is no infinity", "out of range"),
    refused!("there is nothing to dereference", "`@` is not supported"),
    refused!("there are no macros", "no macros to define"),
    refused!("there are no namespaces that a keyword could take its own from", "keywords such as `::name`"),
    refused!("letters make names, other symbols do not", "unexpected character"),
    refused!("a quote between a name and a collection may belong to either", "between a name and a collection"),
    refused!("a var has a name", "expected a symbol right after `#'`"),
    Difference {
        reason: "a keyword whose namespace is a slash",
        is: |source, clojure, here| {
            source.contains(":/") && clojure.is_some() && here.is_err_and(|e| e.contains("invalid name"))
        },
    },
    Difference {
        reason: "a quote right before nil, a boolean or a signed number makes a symbol, as in the reference",
        is: |source, clojure, here| {
            let quoted = ["'nil", "'true", "'false", "'-", "'+"].iter().any(|quoted| source.contains(quoted));
            quoted && clojure.is_some() && here.is_ok_and(|here| here.contains('\''))
        },
    },
    Difference {
        reason: "a name may begin with a digit after its slash, as data/2024 does",
        is: |source, clojure, here| {
            clojure.is_none()
                && here.is_ok()
                && source.as_bytes().windows(2).any(|w| w[0] == b'/' && w[1].is_ascii_digit())
        },
    },
    Difference {
        reason: "metadata is left out before what can have none",
        is: |source, clojure, here| clojure.is_none() && here.is_ok() && source.contains('^'),
    },
];

fn reason(source: &str, clojure: Option<&str>, here: Result<&str, &str>) -> Option<&'static str> {
    DIFFERENCES.iter().find(|difference| (difference.is)(source, clojure, here)).map(|difference| difference.reason)
}

#[test]
fn short_sources_are_read_as_clojure_reads_them() {
    let table = table();
    let (mut reasons, mut unlike) = (BTreeMap::<&str, usize>::new(), Vec::new());
    for (source, clojure) in &table {
        let ours = reading(source);
        if ours.as_deref().ok() == clojure.as_deref() {
            continue;
        }
        match reason(source, clojure.as_deref(), ours.as_deref().map_err(|error| error.as_str())) {
            Some(reason) => *reasons.entry(reason).or_default() += 1,
            None => unlike.push(format!("{source:?}\n  Clojure: {clojure:?}\n  here:    {ours:?}")),
        }
    }
    assert!(table.len() > 45_000, "{} sources", table.len());
    let unused: Vec<_> = DIFFERENCES.iter().filter(|d| !reasons.contains_key(d.reason)).map(|d| d.reason).collect();
    assert!(unused.is_empty(), "differences that there are not: {unused:?}");
    assert!(unlike.is_empty(), "{} of {} differ:\n{}", unlike.len(), table.len(), unlike.join("\n"));
}
