//! Compares the shapes of the results of library functions with what runs return.

use super::*;
use crate::check::MissingData;
use crate::check::known::{Habit, Known};
use crate::check::shape::Items;
use crate::check::walk::Checker;
use crate::heap::{Heap, Map, Value};

/// Arguments, among them all that are easily forgotten.
const VALUES: &[&str] = &[
    "nil",
    "[]",
    "{}",
    "#{}",
    "\"\"",
    "\"a b\"",
    "[\"x\"]",
    "[[:k 1]]",
    "{:a 1}",
    "{:a {:b 2}}",
    "#{1}",
    "[3 1 2]",
    "0",
    "2",
    ":a",
    "1.5",
    "true",
];
/// Values and functions of a call with three or four arguments.
const FEW: &[&str] = &["nil", "[]", "[\"x\" \"y\" \"z\"]", "{:a 1}", "2", ":a"];
const FUNCTIONS: &[&str] =
    &["identity", "str", "inc", ":a", "first", "vector", "nil?", "(fn [& xs] xs)", "(constantly nil)"];

struct Nothing;

impl Facts for Nothing {
    fn data(&self, _: &str) -> Option<Shape> {
        None
    }
    fn missing_data(&self, _: &str) -> Option<MissingData> {
        None
    }
    fn tool(&self, _: &str) -> Option<ToolShape> {
        None
    }
}

/// Returns whether a value is as its shape says.
fn fits<'h>(h: &'h Heap, shape: &Shape, value: Value<'h>) -> bool {
    let each = |items: &[Value<'h>]| match &shape.items {
        Items::Unknown => true,
        Items::All(element) => items.iter().all(|&item| fits(h, element, item)),
        // Of other lists and sets nothing is kept for each place.
        Items::Each(each) if items.len() == each.len() => {
            each.iter().zip(items).all(|(shape, &item)| fits(h, shape, item))
        }
        Items::Each(_) => false,
    };
    let is = |types: Types| shape.types.may_be(types);
    match value {
        Value::Nil => is(Types::NIL),
        Value::Bool(_) => is(Types::BOOL),
        Value::Int(_) | Value::Big(_) => is(Types::INT),
        Value::Float(_) => is(Types::FLOAT),
        Value::Str(_) => is(Types::STRING),
        Value::Keyword(..) => is(Types::KEYWORD),
        Value::Vector(vector) => is(Types::LIST) && each(vector.items()),
        Value::Set(set) => {
            is(Types::SET) && each(&entries_of(h, set).iter().map(|(item, _)| *item).collect::<Vec<_>>())
        }
        Value::Map(map) => is(Types::MAP) && has_fields(h, shape, &entries_of(h, map)),
        _ => is(Types::FN | Types::OTHER),
    }
}

fn entries_of<'h>(h: &'h Heap, map: &Map<'h>) -> Vec<(Value<'h>, Value<'h>)> {
    map.entries(h).map(|entries| entries.iter().collect()).unwrap_or_default()
}

fn has_fields<'h>(h: &'h Heap, shape: &Shape, entries: &[(Value<'h>, Value<'h>)]) -> bool {
    let Some(fields) = shape.fields.as_deref() else { return true };
    let name = |key: Value<'_>| match key {
        Value::Keyword(_, name) | Value::Str(name) => Some(name.text().to_owned()),
        _ => None,
    };
    let all_fit = entries.iter().all(|&(key, value)| match name(key).and_then(|name| fields.get(&name).cloned()) {
        Some(field) => fits(h, &field.shape, value),
        None => fields.others.as_ref().is_some_and(|(keys, values)| fits(h, keys, key) && fits(h, values, value)),
    });
    let is_there = |wanted: &str| entries.iter().any(|&(key, _)| name(key).as_deref() == Some(wanted));
    all_fit && fields.known.iter().all(|(key, field)| !field.is_always || is_there(key))
}

/// Returns whether a program ended with a value, and what contradicts that which was known of it.
fn contradiction(source: &str) -> Option<Option<String>> {
    let Ok((program, forms)) = Program::compile_unless(source, &ReadLimits::default(), &|| false) else { return None };
    let program = Arc::new(program);
    let volatile = RefCell::new(BTreeSet::new());
    let known = Checker::new(&program, &forms, &Nothing, &volatile, &|| false).visit(&forms.body);
    let says_nothing = known.shape.is_unknown() && known.habit.is_none() && known.holds().is_none();
    if says_nothing {
        return None;
    }
    let mut machine = Machine::new(Vec::new(), Settings::default());
    machine.load(program.clone()).ok()?;
    let Step::Done(Ending::Value) = machine.resume(20_000) else { return None };
    Some(machine.with_result(|h, value| against(h, &known, value)))
}

fn against<'h>(h: &'h Heap, known: &Known<'_>, value: Value<'h>) -> Option<String> {
    let is_true = !matches!(value, Value::Nil | Value::Bool(false));
    match () {
        () if !fits(h, &known.shape, value) => Some(format!("{:?}", known.shape)),
        () if known.holds().is_some_and(|holds| holds != is_true) => Some(format!("holds: {:?}", known.holds())),
        () if known.habit == Some(Habit::List) && !is_true => Some("a list is true".to_owned()),
        () => None,
    }
}

/// Each function gives what the check says that it gives, also for nil and what is empty.
#[test]
fn what_is_known_of_results_is_true() {
    let (mut tried, mut wrong) = (0, Vec::new());
    let mut one = |source: String| {
        if let Some(told) = contradiction(&source) {
            tried += 1;
            wrong.extend(told.map(|told| format!("{source}: {told}")));
        }
    };
    for row in crate::library::all() {
        let has = |count: u8| row.min <= count && (row.max == crate::builtins::MANY || count <= row.max);
        let all = || VALUES.iter().chain(FUNCTIONS);
        for a in all() {
            if has(1) {
                one(format!("({} {a})", row.name));
                one(format!("(apply {} [{a}])", row.name));
                one(format!("(apply {} (vec (keep identity [{a}])))", row.name));
                one(format!("({} (first [{a} 1]))", row.name));
            }
            for b in all().filter(|_| has(2)) {
                one(format!("({} {a} {b})", row.name));
                one(format!("({} {a} (first [{b} 1]))", row.name));
            }
            for b in VALUES.iter().filter(|_| has(1)) {
                one(format!("({} (if (= 1 (count (str 1 2))) {a} {b}))", row.name));
            }
        }
        for f in FEW.iter().chain(&FUNCTIONS[..4]).filter(|_| has(3)) {
            for a in FEW {
                for b in FEW {
                    one(format!("({} {f} {a} {b})", row.name));
                    if has(4) && row.max < 5 {
                        one(format!("({} {a} 1 {b} {f})", row.name));
                        one(format!("({} 1 1 {b} {a})", row.name));
                    }
                }
            }
        }
    }
    // Where values are joined, and where they are not constants.
    for a in VALUES {
        for b in VALUES {
            for form in ["(if (= 1 (count (str 1 2))) {a} {b})", "(or {a} {b})", "(and {a} {b})", "(not (and {a} {b}))"]
            {
                one(form.replace("{a}", a).replace("{b}", b));
            }
            one(format!("(let [m (first [{a}])] (get m (first [{b}])))"));
            one(format!("({{:a 1 \"b\" :c}} (first [{a} {b}]))"));
        }
    }
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong[..wrong.len().min(60)].join("\n"));
    assert!(tried > 10_000, "{tried}");
}
