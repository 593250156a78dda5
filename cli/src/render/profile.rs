//! Profiles of runs: beside the source, and as a flame graph.

use super::errors::Texts;
use lisp_core::syntax::LineIndex;
use lisp_runtime::internal::{visible, visible_in_place};
use lisp_runtime::outcome::{Cost, Profile, ProfileNode};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

/// The number of forms shown.
const FORMS: usize = 12;
/// For a longer program, only lines with a cost are shown.
const LINES: usize = 200;
/// The maximum characters shown of a form.
const CHARS: usize = 48;

/// Identifies a source text; both `None` for the program itself.
type Place = (Option<usize>, Option<u64>);

/// A profile with its source texts.
pub(crate) struct Drawn<'a> {
    profile: &'a Profile,
    /// The cost of each node, including everything below it.
    totals: Vec<Cost>,
    texts: HashMap<Place, (String, String)>,
    lines: HashMap<Place, LineIndex>,
}

fn place(node: &ProfileNode) -> Place {
    (node.setup, node.turn)
}

impl<'a> Drawn<'a> {
    pub(crate) fn new(profile: &'a Profile, texts: &impl Texts) -> Self {
        let mut drawn = Drawn { profile, totals: profile.totals(), texts: HashMap::new(), lines: HashMap::new() };
        for node in &profile.nodes {
            let at = place(node);
            if !drawn.texts.contains_key(&at)
                && let Some(text) = texts.text(at.0, at.1)
            {
                drawn.lines.insert(at, LineIndex::new(&text.source));
                drawn.texts.insert(at, (text.name, text.source));
            }
        }
        drawn
    }

    fn whole(&self) -> Cost {
        let roots = self.profile.nodes.iter().zip(&self.totals).filter(|(node, _)| node.parent.is_none());
        roots.fold(Cost::default(), |mut whole, (_, total)| {
            whole.add(*total);
            whole
        })
    }

    fn parent(&self, node: &ProfileNode) -> Option<&ProfileNode> {
        node.parent.and_then(|parent| self.profile.nodes.get(parent as usize))
    }

    /// Line and column of a form, from 1.
    fn position(&self, node: &ProfileNode) -> Option<(u32, u32)> {
        Some(self.lines.get(&place(node))?.position(node.span?.0))
    }

    /// The start of a form, on one line.
    fn form(&self, node: &ProfileNode) -> Option<String> {
        let (start, end) = node.span?;
        let text = self.texts.get(&place(node))?.1.get(start as usize..end as usize)?;
        let mut words = text.split_whitespace();
        let mut shown = words.next().unwrap_or_default().to_owned();
        words.for_each(|word| shown.extend([" ", word]));
        match shown.char_indices().nth(CHARS) {
            Some((at, _)) => Some(format!("{}...", &shown[..at])),
            None => Some(shown),
        }
    }

    /// Returns the report for people: the lines of the program with their cost, and the most expensive forms.
    pub(crate) fn table(&self) -> String {
        let whole = self.whole();
        let mut out = format!(
            "profile: {} fuel, {} bytes allocated, {} ms, {} samples\n",
            grouped(whole.fuel),
            grouped(whole.bytes),
            millis(whole.nanos),
            grouped(self.profile.samples)
        );
        if self.profile.cut {
            out.push_str("very many calls, or very deep ones: some are in the accounts of those that made them\n");
        }
        let _ = writeln!(out, "\n{HEAD}  each line of the program, with the built-ins that it calls");
        let (lines, elsewhere) = self.by_line();
        let source = self.texts.get(&(None, None)).map_or("", |(_, source)| source);
        let count = source.lines().count();
        for (number, text) in (1..).zip(source.lines()) {
            match lines.get(&number) {
                None if count > LINES => continue,
                cost => {
                    let figures = cost.map_or_else(|| " ".repeat(HEAD.len()), |cost| figures(cost, &whole));
                    let _ = writeln!(out, "{figures} {number:>4} | {}", visible_in_place(text));
                }
            }
        }
        if elsewhere != Cost::default() {
            let _ = writeln!(out, "{}        elsewhere: set-up programs, earlier turns", figures(&elsewhere, &whole));
        }
        let _ = writeln!(out, "\n{HEAD}  the most expensive forms, with all that they call");
        for (label, cost) in self.by_form().into_iter().take(FORMS) {
            let _ = writeln!(out, "{}  {}", figures(&cost, &whole), visible(&label));
        }
        out
    }

    /// The cost of each line of the program, and of all other texts.
    fn by_line(&self) -> (BTreeMap<u32, Cost>, Cost) {
        let (mut lines, mut elsewhere) = (BTreeMap::<u32, Cost>::new(), Cost::default());
        for node in &self.profile.nodes {
            // Work of the language itself counts for the form that called it.
            let mut at = Some(node);
            while let Some(inner) = at.filter(|node| node.span.is_none()) {
                at = self.parent(inner);
            }
            match at.filter(|node| place(node) == (None, None)).and_then(|node| self.position(node)) {
                Some((line, _)) => lines.entry(line).or_default().add(node.cost),
                None => elsewhere.add(node.cost),
            }
        }
        (lines, elsewhere)
    }

    /// The cost of each form with everything that it calls, most expensive first.
    fn by_form(&self) -> Vec<(String, Cost)> {
        let mut forms: HashMap<(Place, (u32, u32)), (usize, Cost)> = HashMap::new();
        for (number, node) in self.profile.nodes.iter().enumerate() {
            let Some(span) = node.span else { continue };
            let key = (place(node), span);
            // A recursive form is counted once.
            let mut above = self.parent(node);
            while let Some(node) = above.filter(|node| node.span.map(|span| (place(node), span)) != Some(key)) {
                above = self.parent(node);
            }
            if above.is_none() {
                forms.entry(key).or_insert((number, Cost::default())).1.add(self.totals[number]);
            }
        }
        let mut forms: Vec<(usize, Cost)> = forms.into_values().collect();
        forms.sort_by_key(|(number, cost)| (std::cmp::Reverse(cost.fuel), *number));
        let label = |(number, cost): (usize, Cost)| {
            let node = &self.profile.nodes[number];
            let name = self.texts.get(&place(node)).map_or("an earlier text", |(name, _)| name);
            let (line, column) = self.position(node).unwrap_or_default();
            (format!("{name}:{line}:{column} {}", self.form(node).unwrap_or_default()), cost)
        };
        forms.into_iter().map(label).collect()
    }

    /// One line per call chain, with its fuel: the input format of flame graph tools.
    #[cfg(feature = "flamegraph")]
    fn folded(&self) -> Vec<String> {
        let mut ways: Vec<String> = Vec::with_capacity(self.profile.nodes.len());
        let mut folded = Vec::new();
        for node in &self.profile.nodes {
            let function = node.function.as_deref();
            let at = self.position(node).map(|(line, column)| format!("{line}:{column}"));
            let parts = [function.map(str::to_owned), at, self.form(node)];
            let label: Vec<String> = parts.into_iter().flatten().collect();
            let label = if label.is_empty() { "?".to_owned() } else { label.join(" ").replace(';', ",") };
            let way = match node.parent.and_then(|parent| ways.get(parent as usize)) {
                Some(above) => format!("{above};{label}"),
                None => label,
            };
            if node.cost.fuel > 0 {
                folded.push(format!("{way} {}", node.cost.fuel));
            }
            ways.push(way);
        }
        folded.sort();
        folded
    }

    /// Returns a flame graph of the fuel, as SVG.
    #[cfg(feature = "flamegraph")]
    pub(crate) fn flame(&self) -> std::io::Result<Vec<u8>> {
        let folded = self.folded();
        let mut options = inferno::flamegraph::Options::default();
        options.title = "Fuel".to_owned();
        options.count_name = "units of fuel".to_owned();
        let mut svg = Vec::new();
        inferno::flamegraph::from_lines(&mut options, folded.iter().map(String::as_str), &mut svg)
            .map_err(std::io::Error::other)?;
        Ok(svg)
    }
}

const HEAD: &str = "        fuel     %           bytes     %          ms     %";

fn figures(cost: &Cost, whole: &Cost) -> String {
    let part = |cost: u64, whole: u64| match whole {
        0 => "0.0".to_owned(),
        whole => format!("{:.1}", cost as f64 * 100.0 / whole as f64),
    };
    format!(
        "{:>12} {:>5} {:>15} {:>5} {:>11} {:>5}",
        grouped(cost.fuel),
        part(cost.fuel, whole.fuel),
        grouped(cost.bytes),
        part(cost.bytes, whole.bytes),
        millis(cost.nanos),
        part(cost.nanos, whole.nanos),
    )
}

fn millis(nanos: u64) -> String {
    format!("{:.3}", nanos as f64 / 1e6)
}

/// Formats a number with commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
