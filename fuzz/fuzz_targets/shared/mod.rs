//! Programs made of the language's own parts: special forms, the built-ins of the real table, and literals.

use arbitrary::{Arbitrary, Result, Unstructured};
use lisp_core::library;

/// Special forms, with what stands in them; `$` is a form.
const FORMS: &[&str] = &[
    "(if $ $ $)",
    "(when $ $)",
    "(cond $ $ :else $)",
    "(case $ 1 $ :a $ $)",
    "(and $ $)",
    "(or $ $)",
    "(do $ $)",
    "(let [x $ y $] $)",
    "(let [{:keys [a b] :as m} $ [x & xs] $] [a b x xs m])",
    "(loop [x 0 y $] (if (> x 20) y (recur (inc x) $)))",
    "(for [x $ :when $ y [x 1]] $)",
    "(doseq [x $] (println $))",
    "(-> $ (assoc :a $) $)",
    "(->> $ (map (fn [x] $)) (filter (fn [y] $)) vec)",
    "(some-> $ :a inc)",
    "(reduce (fn [x y] $) $ $)",
    "(sort-by (fn [x] $) $)",
    "(group-by (fn [x] $) $)",
    "(update $ :a (fn [x] $))",
    "(map (fn [x] $) $)",
    "(pmap (fn [x] $) $)",
    "(def g $)",
    "(do (defn h [x y] $) (h $ $))",
    "(tool/echo {:a $})",
    "(#(vector % $) $)",
    "(apply (fn [x & xs] $) $)",
    "(return $)",
    "(str $ $)",
    "(re-find #\"(a|b)+c?\" $)",
];

/// A program as text.
#[derive(Debug)]
pub(crate) struct Source(pub(crate) String);

impl<'a> Arbitrary<'a> for Source {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        // What the forms refer to.
        let mut text = String::from("(def f (fn [x] [x x])) (let [x 1 y \"ab\" xs [3 1 nil :k] m {:a 1 \"b\" [2]}]\n");
        for _ in 0..u.int_in_range(1..=4)? {
            form(u, &mut text, 0)?;
            text.push('\n');
        }
        text.push(')');
        Ok(Source(text))
    }
}

fn pick<'t>(u: &mut Unstructured<'_>, texts: &[&'t str]) -> Result<&'t str> {
    u.choose(texts).copied()
}

fn form(u: &mut Unstructured<'_>, text: &mut String, depth: usize) -> Result<()> {
    let kind = if depth > 5 { u.int_in_range(0..=5)? } else { u.int_in_range(0..=14)? };
    match kind {
        0 => text.push_str(&i64::arbitrary(u)?.to_string()),
        1 => text.push_str(&u.int_in_range(-3..=12)?.to_string()),
        2 => {
            text.push_str(pick(u, &["nil", "true", "false", "1.5", "-0.0", "##NaN", "##Inf", "99999999999999999999"])?)
        }
        3 => text.push_str(pick(u, &[":a", ":b", "\"a\"", "\"\"", "\"é👍\"", "\"a,b\"", "#\"(a+)+\"", "'s"])?),
        4 => text.push_str(pick(u, &["x", "y", "f", "xs", "m"])?),
        5 => text.push_str(pick(u, &["data/rows", "inc", "str", "+", "first", "identity", "nil?", "*1"])?),
        6 => nested(u, text, "[", "]", depth)?,
        7 => {
            text.push_str("{:a ");
            form(u, text, depth + 1)?;
            text.push_str("\"b\" ");
            form(u, text, depth + 1)?;
            text.push('}');
        }
        8 => nested(u, text, "#{:z ", "}", depth)?,
        9..=10 => {
            let template = pick(u, FORMS)?;
            let mut parts = template.split('$');
            text.push_str(parts.next().unwrap_or_default());
            for part in parts {
                form(u, text, depth + 1)?;
                text.push_str(part);
            }
        }
        _ => call(u, text, depth)?,
    }
    text.push(' ');
    Ok(())
}

/// A call of a built-in, mostly with as many arguments as it takes.
fn call(u: &mut Unstructured<'_>, text: &mut String, depth: usize) -> Result<()> {
    let row = u.choose(library::all())?;
    text.push('(');
    text.push_str(row.name);
    text.push(' ');
    let (least, max) = (row.min.min(4), row.max.min(4));
    let count = if u.ratio(1, 20)? { u.int_in_range(0..=4)? } else { u.int_in_range(least..=max.max(least))? };
    for _ in 0..count {
        form(u, text, depth + 1)?;
    }
    text.push(')');
    Ok(())
}

fn nested(u: &mut Unstructured<'_>, text: &mut String, open: &str, close: &str, depth: usize) -> Result<()> {
    text.push_str(open);
    for _ in 0..u.int_in_range(0..=4)? {
        form(u, text, depth + 1)?;
    }
    text.push_str(close);
    Ok(())
}
