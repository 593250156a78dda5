//! Predicates, and `boolean`, `not`, `type`, `identity`.

use super::args::type_error_as;
use super::{Builtin, Lowering, MANY};
use crate::context::Ctx;
use crate::error::ErrorClass;
use crate::heap::{Res, Value};
use crate::text::characters;

fn answer<'h>(yes: bool) -> Res<Value<'h>> {
    Ok(Value::Bool(yes))
}

/// Returns the sign of an integer; `None` for other values.
fn integer_sign(v: Value<'_>) -> Option<i64> {
    match v {
        Value::Int(i) => Some(i.signum()),
        Value::Big(b) => Some(if b.negative { -1 } else { 1 }),
        _ => None,
    }
}

/// Returns the sign of a number; `None` for other values, and for floats that are zero or NaN.
fn sign(v: Value<'_>) -> Option<i64> {
    match v {
        Value::Float(f) if f > 0.0 => Some(1),
        Value::Float(f) if f < 0.0 => Some(-1),
        Value::Float(_) => None,
        other => integer_sign(other),
    }
}

/// Returns whether a whole number is odd; `None` for other values.
fn parity(v: Value<'_>) -> Option<bool> {
    match v {
        Value::Int(i) => Some(i % 2 != 0),
        Value::Big(b) => Some(b.limbs.first().is_some_and(|limb| limb % 2 != 0)),
        Value::Float(f) if f.is_finite() && f.fract() == 0.0 => Some(f % 2.0 != 0.0),
        _ => None,
    }
}

fn is_function(v: Value<'_>) -> bool {
    matches!(v, Value::Closure(_) | Value::Builtin(_) | Value::Composed(_) | Value::Tool(_))
}

fn is_char<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    let Value::Str(s) = args[0] else { return answer(false) };
    answer(characters::is_one(h, s.text())?)
}

fn symbol<'h>(_: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    match args[0] {
        Value::Str(s) | Value::Keyword(_, s) | Value::Symbol(s) => Ok(Value::Symbol(s)),
        other => {
            let what = "a string, a keyword or a symbol";
            Err(type_error_as(ErrorClass::IllegalArgument, "symbol", what, other))
        }
    }
}

/// Returns true if both are the same value at the same address. Values without an address are identical if they are
/// equal.
fn identical<'h>(h: &'h Ctx, a: Value<'h>, b: Value<'h>) -> Res<bool> {
    Ok(match (a, b) {
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        (Value::Builtin(a), Value::Builtin(b)) => a == b,
        (Value::Keyword(..), Value::Keyword(..)) => h.same_key(a, b)?,
        (Value::Str(a), Value::Str(b)) | (Value::Symbol(a), Value::Symbol(b)) | (Value::Regex(a), Value::Regex(b)) => {
            std::ptr::eq(a, b)
        }
        (Value::Vector(a), Value::Vector(b)) => std::ptr::eq(a, b),
        (Value::Map(a), Value::Map(b)) | (Value::Set(a), Value::Set(b)) => std::ptr::eq(a, b),
        (Value::Closure(a), Value::Closure(b)) => std::ptr::eq(a, b),
        (Value::Composed(a), Value::Composed(b)) => std::ptr::eq(a, b),
        (Value::Big(a), Value::Big(b)) => std::ptr::eq(a, b),
        (Value::Time(a), Value::Time(b)) => std::ptr::eq(a, b),
        _ => false,
    })
}

fn all_distinct<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    h.charge(args.len() as u64)?;
    let seen = h.map_builder(args.len())?;
    for (i, &arg) in args.iter().enumerate() {
        if seen.insert(h, arg, Value::Nil)? != i {
            return answer(false);
        }
    }
    answer(true)
}

fn type_of<'h>(h: &'h Ctx, args: &[Value<'h>]) -> Res<Value<'h>> {
    h.keyword(match args[0] {
        Value::Nil => return Ok(Value::Nil),
        Value::Bool(_) => "boolean",
        Value::Int(_) | Value::Float(_) | Value::Big(_) => "number",
        Value::Keyword(..) => "keyword",
        Value::Str(_) => "string",
        Value::Vector(_) => "vector",
        Value::Map(_) => "map",
        Value::Set(_) => "set",
        Value::Closure(_) | Value::Builtin(_) | Value::Composed(_) | Value::Tool(_) => "function",
        Value::Endless(_) => "sequence",
        Value::Regex(_) => "regex",
        Value::Time(_) => "java_object",
        Value::Symbol(_) | Value::Var(_) | Value::VecBuilder(_) | Value::MapBuilder(_) | Value::Unset => "unknown",
    })
}

pub(super) const TABLE: &[Builtin] = &[
    Builtin::test("nil?", "(nil? x)", |v| v.is_nil())
        .doc("Returns whether the value is nil.", &[("(nil? nil)", "true"), ("(nil? false)", "false"), ("(nil?)", "!arity_error")]),
    Builtin::test("some?", "(some? x)", |v| !v.is_nil()).doc(
        "Returns whether the value is not nil.",
        &[("(some? false)", "true"), ("(some? nil)", "false"), ("(some?)", "!arity_error")],
    ),
    Builtin::test("not", "(not x)", |v| !v.truthy())
        .lowered(Lowering::Not)
        .doc("Returns true for nil and false, otherwise false.", &[("(not nil)", "true"), ("(not 0)", "false"), ("(not)", "!arity_error")]),
    Builtin::test("boolean", "(boolean x)", |v| v.truthy()).doc(
        "Returns false for nil and false, otherwise true.",
        &[("(boolean 0)", "true"), ("(boolean nil)", "false"), ("(boolean)", "!arity_error")],
    ),
    Builtin::pure("identity", 1, 1, "(identity x)", |_, a| Ok(a[0]))
        .doc("Its argument.", &[("(identity 42)", "42"), ("(identity 1 2)", "!arity_error")]),
    Builtin::test("true?", "(true? x)", |v| matches!(v, Value::Bool(true)))
        .doc("Returns whether the value is true.", &[("(true? true)", "true"), ("(true? 1)", "false"), ("(true?)", "!arity_error")]),
    Builtin::test("false?", "(false? x)", |v| matches!(v, Value::Bool(false))).doc(
        "Returns whether the value is false.",
        &[("(false? false)", "true"), ("(false? nil)", "false"), ("(false?)", "!arity_error")],
    ),
    Builtin::test("boolean?", "(boolean? x)", |v| matches!(v, Value::Bool(_))).doc(
        "Returns whether the value is true or false.",
        &[("(boolean? false)", "true"), ("(boolean? nil)", "false"), ("(boolean?)", "!arity_error")],
    ),
    Builtin::test("number?", "(number? x)", |v| v.is_number()).doc(
        "Returns whether the value is a number.",
        &[
            ("(number? 1.5)", "true"),
            ("(number? ##NaN)", "true"),
            ("(number? \"5\")", "false"),
            ("(number?)", "!arity_error"),
        ],
    ),
    Builtin::test("int?", "(int? x)", |v| integer_sign(v).is_some())
        .aliases(&["integer?", "rational?"])
        .doc("Returns whether the value is an integer.", &[("(int? 5)", "true"), ("(int? 5.0)", "false"), ("(int?)", "!arity_error")]),
    Builtin::test("float?", "(float? x)", |v| matches!(v, Value::Float(f) if f.is_finite())).aliases(&["double?"]).doc(
        "Returns whether the value is a finite float.",
        &[("(float? 1.5)", "true"), ("(float? 1)", "false"), ("(float? ##Inf)", "false"), ("(float?)", "!arity_error")],
    ),
    Builtin::test("nat-int?", "(nat-int? x)", |v| integer_sign(v).is_some_and(|s| s >= 0)).doc(
        "Returns whether the value is an integer of at least 0.",
        &[("(nat-int? 0)", "true"), ("(nat-int? -1)", "false"), ("(nat-int?)", "!arity_error")],
    ),
    Builtin::test("pos-int?", "(pos-int? x)", |v| integer_sign(v) == Some(1)).doc(
        "Returns whether the value is an integer above 0.",
        &[("(pos-int? 5)", "true"), ("(pos-int? 1.5)", "false"), ("(pos-int?)", "!arity_error")],
    ),
    Builtin::test("neg-int?", "(neg-int? x)", |v| integer_sign(v) == Some(-1)).doc(
        "Returns whether the value is an integer below 0.",
        &[("(neg-int? -1)", "true"), ("(neg-int? 0)", "false"), ("(neg-int?)", "!arity_error")],
    ),
    Builtin::test("zero?", "(zero? x)", |v| matches!(v, Value::Int(0)) || matches!(v, Value::Float(f) if f == 0.0))
        .doc("Returns whether the value is the number 0.", &[("(zero? 0.0)", "true"), ("(zero? nil)", "false"), ("(zero?)", "!arity_error")]),
    Builtin::test("pos?", "(pos? x)", |v| sign(v) == Some(1))
        .doc("Returns whether the value is a number above 0.", &[("(pos? 5)", "true"), ("(pos? \"x\")", "false"), ("(pos?)", "!arity_error")]),
    Builtin::test("neg?", "(neg? x)", |v| sign(v) == Some(-1))
        .doc("Returns whether the value is a number below 0.", &[("(neg? -0.5)", "true"), ("(neg? 0)", "false"), ("(neg?)", "!arity_error")]),
    Builtin::test("even?", "(even? x)", |v| parity(v) == Some(false)).doc(
        "Returns whether the value is an even number.",
        &[("(even? 4)", "true"), ("(even? 4.0)", "true"), ("(even? nil)", "false"), ("(even?)", "!arity_error")],
    ),
    Builtin::test("odd?", "(odd? x)", |v| parity(v) == Some(true))
        .doc("Returns whether the value is an odd number.", &[("(odd? -3)", "true"), ("(odd? 3.5)", "false"), ("(odd?)", "!arity_error")]),
    Builtin::test("NaN?", "(NaN? x)", |v| matches!(v, Value::Float(f) if f.is_nan()))
        .doc("Returns whether the value is NaN.", &[("(NaN? ##NaN)", "true"), ("(NaN? 1)", "false"), ("(NaN?)", "!arity_error")]),
    Builtin::test("infinite?", "(infinite? x)", |v| matches!(v, Value::Float(f) if f.is_infinite())).doc(
        "Returns whether the value is positive or negative infinity.",
        &[("(infinite? ##-Inf)", "true"), ("(infinite? 5)", "false"), ("(infinite?)", "!arity_error")],
    ),
    Builtin::test("decimal?", "(decimal? x)", |_| false)
        .doc("Always false: there are no decimals.", &[("(decimal? 1.5)", "false"), ("(decimal?)", "!arity_error")]),
    Builtin::test("ratio?", "(ratio? x)", |_| false)
        .doc("Always false: there are no ratios.", &[("(ratio? 0.5)", "false"), ("(ratio?)", "!arity_error")]),
    Builtin::test("string?", "(string? x)", |v| matches!(v, Value::Str(_))).doc(
        "Returns whether the value is a string.",
        &[("(string? \"a\")", "true"), ("(string? :a)", "false"), ("(string?)", "!arity_error")],
    ),
    Builtin::direct("char?", 1, 1, "(char? x)", is_char).doc(
        "Returns whether the value is a string of one character.",
        &[("(char? \\a)", "true"), ("(char? \"ab\")", "false"), ("(char?)", "!arity_error")],
    ),
    Builtin::test("keyword?", "(keyword? x)", |v| matches!(v, Value::Keyword(..))).doc(
        "Returns whether the value is a keyword.",
        &[("(keyword? :a)", "true"), ("(keyword? \"a\")", "false"), ("(keyword?)", "!arity_error")],
    ),
    Builtin::test("symbol?", "(symbol? x)", |_| false).doc(
        "Always false: keywords are used in place of symbols.",
        &[("(symbol? :a)", "false"), ("(symbol?)", "!arity_error")],
    ),
    Builtin::test("fn?", "(fn? x)", is_function)
        .doc("Returns whether the value is a function.", &[("(fn? inc)", "true"), ("(fn? :a)", "false"), ("(fn?)", "!arity_error")]),
    Builtin::test("ifn?", "(ifn? x)", |v| v.is_callable()).doc(
        "Returns whether the value can be called: a function, keyword, map or set.",
        &[("(ifn? {:a 1})", "true"), ("(ifn? [1])", "false"), ("(ifn?)", "!arity_error")],
    ),
    Builtin::test("vector?", "(vector? x)", |v| matches!(v, Value::Vector(_))).aliases(&["sequential?", "seq?"]).doc(
        "Returns whether the value is a vector, the only sequence.",
        &[("(vector? [1])", "true"), ("(seq? #{1})", "false"), ("(vector?)", "!arity_error")],
    ),
    Builtin::test("map?", "(map? x)", |v| matches!(v, Value::Map(_)))
        .doc("Returns whether the value is a map.", &[("(map? {})", "true"), ("(map? #{})", "false"), ("(map?)", "!arity_error")]),
    Builtin::test("set?", "(set? x)", |v| matches!(v, Value::Set(_)))
        .doc("Returns whether the value is a set.", &[("(set? #{1})", "true"), ("(set? [1])", "false"), ("(set?)", "!arity_error")]),
    Builtin::test("coll?", "(coll? x)", |v| matches!(v, Value::Vector(_) | Value::Map(_) | Value::Set(_))).doc(
        "Returns whether the value is a vector, map or set.",
        &[("(coll? {})", "true"), ("(coll? \"x\")", "false"), ("(coll? nil)", "false"), ("(coll?)", "!arity_error")],
    ),
    Builtin::test("associative?", "(associative? x)", |v| matches!(v, Value::Vector(_) | Value::Map(_))).doc(
        "Returns whether assoc accepts the value: a vector or map.",
        &[("(associative? [])", "true"), ("(associative? #{})", "false"), ("(associative?)", "!arity_error")],
    ),
    Builtin::test("counted?", "(counted? x)", |v| {
        matches!(v, Value::Vector(_) | Value::Map(_) | Value::Set(_) | Value::Str(_))
    })
    .doc(
        "Returns whether count accepts the value; false for nil.",
        &[("(counted? \"abc\")", "true"), ("(counted? 5)", "false"), ("(counted?)", "!arity_error")],
    ),
    Builtin::test("indexed?", "(indexed? x)", |v| matches!(v, Value::Vector(_) | Value::Str(_))).doc(
        "Returns whether nth accepts the value: a vector or string.",
        &[("(indexed? [1])", "true"), ("(indexed? {})", "false"), ("(indexed?)", "!arity_error")],
    ),
    Builtin::test("reversible?", "(reversible? x)", |v| matches!(v, Value::Vector(_) | Value::Str(_))).doc(
        "Returns whether reverse accepts the value: a vector or string.",
        &[("(reversible? [1])", "true"), ("(reversible? #{})", "false"), ("(reversible?)", "!arity_error")],
    ),
    Builtin::test("seqable?", "(seqable? x)", |v| {
        matches!(v, Value::Nil | Value::Vector(_) | Value::Map(_) | Value::Set(_) | Value::Str(_))
    })
    .doc(
        "Returns whether the value can be traversed: a collection, string or nil.",
        &[("(seqable? nil)", "true"), ("(seqable? 5)", "false"), ("(seqable?)", "!arity_error")],
    ),
    Builtin::test("sorted?", "(sorted? x)", |_| false).doc(
        "Always false: maps and sets have no order of their own.",
        &[("(sorted? [1 2])", "false"), ("(sorted?)", "!arity_error")],
    ),
    Builtin::test("any?", "(any? x)", |_| true)
        .doc("Always true.", &[("(any? nil)", "true"), ("(any?)", "!arity_error")]),
    Builtin::test("ident?", "(ident? x)", |v| matches!(v, Value::Keyword(..) | Value::Symbol(_)))
        .aliases(&["simple-ident?"])
        .doc(
            "Returns whether the value is a keyword or a symbol.",
            &[("(ident? :a)", "true"), ("(ident? \"a\")", "false"), ("(ident?)", "!arity_error")],
        ),
    Builtin::direct("symbol", 1, 1, "(symbol name)", symbol).doc(
        "Returns the symbol with a name.",
        &[("(symbol \"total\")", "'total"), ("(name (symbol :a))", "\"a\""), ("(symbol 1)", "!type_error")],
    ),
    Builtin::direct("identical?", 2, 2, "(identical? a b)", |h, a| answer(identical(h, a[0], a[1])?)).doc(
        "Returns whether two values are identical. Values other than numbers, keywords, booleans and nil are identical only to themselves.",
        &[
            ("(let [v [1]] (identical? v v))", "true"),
            ("(identical? :a :a)", "true"),
            ("(identical? 1)", "!arity_error"),
        ],
    ),
    Builtin::test("map-entry?", "(map-entry? x)", |_| false).doc(
        "Always false: entries are plain vectors.",
        &[("(map-entry? [:a 1])", "false"), ("(map-entry?)", "!arity_error")],
    ),
    Builtin::direct("distinct?", 0, MANY, "(distinct? x ...)", all_distinct).doc(
        "Returns whether all values are different. 1 and 1.0 are the same.",
        &[("(distinct? 1 2 3)", "true"), ("(distinct? 1 2 1)", "false"), ("(distinct?)", "true")],
    ),
    Builtin::direct("type", 1, 1, "(type x)", type_of).aliases(&["class"]).doc(
        "Returns the type of a value as a keyword; nil for nil.",
        &[
            ("(type 1)", ":number"),
            ("(type [])", ":vector"),
            ("(type inc)", ":function"),
            ("(type nil)", "nil"),
            ("(type)", "!arity_error"),
        ],
    ),
];
