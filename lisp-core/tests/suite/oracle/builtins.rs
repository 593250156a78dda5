//! The built-ins that the oracle knows, in the plainest way.

use super::eval::{Failure, Res, Run, fail};
use super::value::{Value, plain, readable};
use lisp_core::library::BuiltinId;
use lisp_core::vm::Settings;
use num_bigint::BigInt;
use num_traits::Signed;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

type All<T> = Result<T, Failure>;

/// What can be walked.
pub(crate) fn items(v: &Value) -> All<Vec<Value>> {
    Ok(match v {
        Value::Nil => Vec::new(),
        Value::List(items) => items.clone(),
        Value::Map(m) => m.iter().map(|(k, v)| Value::List(vec![k.clone(), v.clone()])).collect(),
        Value::Set(s) => s.iter().cloned().collect(),
        Value::Str(s) => s.chars().map(|c| Value::Str(c.to_string())).collect(),
        _ => return fail("type_error"),
    })
}

/// The value at a key; other things than maps have none.
pub(crate) fn look(coll: &Value, key: &Value) -> Value {
    match coll {
        Value::Map(m) => spellings(key).iter().find_map(|key| m.get(key)).cloned().unwrap_or(Value::Nil),
        Value::Set(s) if s.contains(key) => key.clone(),
        _ => Value::Nil,
    }
}

/// The keys that a key reads, in order.
fn spellings(key: &Value) -> Vec<Value> {
    let kinds: [fn(String) -> Value; 2] = [Value::Key, Value::Str];
    let (name, [own, other]) = match key {
        Value::Key(name) => (name, kinds),
        Value::Str(name) => (name, [kinds[1], kinds[0]]),
        _ => return vec![key.clone()],
    };
    let spelt = name.replace('-', "_");
    vec![own(name.clone()), other(name.clone()), own(spelt.clone()), other(spelt)]
}

/// The key that writing at a key writes at.
fn meant(m: &BTreeMap<Value, Value>, key: &Value) -> Value {
    let spellings = spellings(key);
    let taken = if matches!(key, Value::Str(_)) { &spellings[..2] } else { &spellings };
    taken.iter().find(|key| m.contains_key(key)).unwrap_or(key).clone()
}

fn int(v: &Value) -> All<BigInt> {
    match v {
        Value::Int(n) => Ok(n.clone()),
        _ => fail("type_error"),
    }
}

fn map(v: &Value) -> All<BTreeMap<Value, Value>> {
    match v {
        Value::Map(m) => Ok(m.clone()),
        Value::Nil => Ok(BTreeMap::new()),
        _ => fail("type_error"),
    }
}

/// How many of `len` elements `take` takes from the front, or, of a negative number, leaves there.
fn split(n: &Value, len: usize) -> All<usize> {
    let n = int(n)?;
    let at = if n.is_negative() { n + len } else { n };
    Ok(usize::try_from(at.max(0.into())).map_or(len, |at| at.min(len)))
}

/// The natural order of `sort`; unlike kinds have none.
fn natural(a: &Value, b: &Value) -> All<Ordering> {
    Ok(match (a, b) {
        (Value::Nil, Value::Nil) => Ordering::Equal,
        (Value::Nil, _) => Ordering::Less,
        (_, Value::Nil) => Ordering::Greater,
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Str(a), Value::Str(b)) | (Value::Key(a), Value::Key(b)) => a.cmp(b),
        // The shorter one first, then the first elements that differ.
        (Value::List(a), Value::List(b)) if a.len() != b.len() => a.len().cmp(&b.len()),
        (Value::List(a), Value::List(b)) => {
            for (a, b) in a.iter().zip(b) {
                let order = natural(a, b)?;
                if order.is_ne() {
                    return Ok(order);
                }
            }
            Ordering::Equal
        }
        _ => return fail("type_error"),
    })
}

/// A stable insertion sort whose order may fail.
fn sorted(list: Vec<Value>, mut before: impl FnMut(&Value, &Value) -> All<bool>) -> All<Vec<Value>> {
    let mut out: Vec<Value> = Vec::new();
    for item in list {
        let mut at = out.len();
        while at > 0 && before(&item, &out[at - 1])? {
            at -= 1;
        }
        out.insert(at, item);
    }
    Ok(out)
}

fn compare(args: &[Value], holds: fn(Ordering) -> bool) -> Res {
    let numbers = args.iter().map(int).collect::<All<Vec<_>>>()?;
    Ok(Value::Bool(numbers.windows(2).all(|w| holds(w[0].cmp(&w[1])))))
}

/// A printed line: its first characters and a mark, if there are more than a line may have.
fn cut(line: &str, max: usize) -> String {
    let count = line.chars().count();
    if count <= max {
        return line.to_owned();
    }
    format!("{}... ({max}/{count} chars)", line.chars().take(max).collect::<String>())
}

/// Calls a built-in.
pub(crate) fn call(run: &mut Run, name: &'static str, args: Vec<Value>) -> Res {
    let row = BuiltinId::by_name(name).expect("a built-in").row();
    if !row.takes(args.len()) {
        return fail("arity_error");
    }
    match name {
        "println" => {
            let line = args.iter().map(|v| plain(v, "nil")).collect::<Vec<_>>().join(" ");
            run.prints.push(cut(&line, Settings::default().print_chars));
            Ok(Value::Nil)
        }
        "+" | "*" | "-" | "inc" | "dec" | "quot" | "rem" | "mod" | "abs" | "max" | "min" => arithmetic(name, &args),
        "<" => compare(&args, Ordering::is_lt),
        "<=" => compare(&args, Ordering::is_le),
        ">" => compare(&args, Ordering::is_gt),
        ">=" => compare(&args, Ordering::is_ge),
        "=" => Ok(Value::Bool(args.windows(2).all(|w| w[0] == w[1]))),
        "not" => Ok(Value::Bool(!args[0].truthy())),
        "even?" | "odd?" | "zero?" | "pos?" | "neg?" | "nil?" | "some?" | "empty?" | "contains?" => test(name, &args),
        "str" => Ok(Value::Str(args.iter().map(|v| plain(v, "")).collect())),
        "pr-str" => Ok(Value::Str(args.iter().map(readable).collect::<Vec<_>>().join(" "))),
        "identity" => Ok(args[0].clone()),
        "vector" => Ok(Value::List(args)),
        "apply" => {
            let (last, first) = args.split_last().expect("a collection");
            let mut all = first[1..].to_vec();
            all.extend(items(last)?);
            run.call(&first[0], all)
        }
        "map" | "filter" | "remove" | "keep" | "mapcat" | "map-indexed" | "some" | "every?" | "take-while"
        | "drop-while" | "group-by" | "sort-by" | "reduce" | "reductions" | "sort" => each(run, name, args),
        "get" | "assoc" | "dissoc" | "merge" | "merge-with" | "update" | "keys" | "vals" | "zipmap" | "select-keys"
        | "update-vals" | "frequencies" => maps(run, name, args),
        _ => lists(name, &args),
    }
}

fn arithmetic(name: &str, args: &[Value]) -> Res {
    let of_numbers = args.iter().all(|v| matches!(v, Value::Int(_)));
    if matches!(name, "inc" | "dec" | "quot" | "rem" | "mod") && !of_numbers {
        return fail("type_error");
    }
    if matches!((name, args), ("max" | "min", [_])) {
        return Ok(args[0].clone());
    }
    let n = args.iter().map(int).collect::<All<Vec<_>>>()?;
    if matches!(name, "quot" | "rem" | "mod") && n[1] == 0.into() {
        return fail("arithmetic_error");
    }
    Ok(Value::Int(match name {
        "+" => n.iter().sum(),
        "*" => n.iter().product(),
        "-" if n.len() == 1 => -&n[0],
        "-" => n[1..].iter().fold(n[0].clone(), |a, b| a - b),
        "inc" => &n[0] + 1,
        "dec" => &n[0] - 1,
        "quot" => &n[0] / &n[1],
        "rem" => &n[0] % &n[1],
        "mod" => ((&n[0] % &n[1]) + &n[1]) % &n[1],
        "abs" => n[0].abs(),
        "max" => n.into_iter().max().expect("a number"),
        _ => n.into_iter().min().expect("a number"),
    }))
}

fn test(name: &str, args: &[Value]) -> Res {
    let zero = BigInt::from(0);
    let number = |holds: &dyn Fn(&BigInt) -> bool| matches!(&args[0], Value::Int(n) if holds(n));
    Ok(Value::Bool(match name {
        "even?" => number(&|n| n % 2 == zero),
        "odd?" => number(&|n| n % 2 != zero),
        "zero?" => number(&|n| *n == zero),
        "pos?" => number(&|n| *n > zero),
        "neg?" => number(&|n| *n < zero),
        "nil?" => matches!(args[0], Value::Nil),
        "some?" => !matches!(args[0], Value::Nil),
        "empty?" => match &args[0] {
            Value::Str(s) => s.is_empty(),
            other => items(other)?.is_empty(),
        },
        // Of a vector's elements, not of its places.
        _ => match &args[0] {
            Value::Map(m) => m.contains_key(&args[1]),
            other => items(other)?.contains(&args[1]),
        },
    }))
}

/// Functions that call a function for each element.
fn each(run: &mut Run, name: &str, mut args: Vec<Value>) -> Res {
    let list = items(&args.pop().expect("a collection"))?;
    if name == "reductions" {
        let mut list = list.into_iter();
        let first = match args.get(1).cloned().or_else(|| list.next()) {
            Some(first) => first,
            None => run.call_from(&args[0], Vec::new())?,
        };
        let mut all = vec![first];
        for item in list {
            let last = all[all.len() - 1].clone();
            all.push(run.call_from(&args[0], vec![last, item])?);
        }
        return Ok(Value::List(all));
    }
    if name == "reduce" {
        let mut list = list.into_iter();
        let mut acc = match args.get(1) {
            Some(init) => init.clone(),
            None => match list.next() {
                Some(first) => first,
                // What the function is for nothing, if it is a built-in that takes nothing.
                None => {
                    return if let Value::Builtin("+" | "*" | "str" | "vector" | "concat" | "conj" | "merge") = args[0] {
                        run.call(&args[0], Vec::new())
                    } else {
                        Ok(Value::Nil)
                    };
                }
            },
        };
        for item in list {
            acc = run.call_from(&args[0], vec![acc, item])?;
        }
        return Ok(acc);
    }
    if name == "sort" {
        return Ok(Value::List(match args.first() {
            Some(f) => sorted(list, |a, b| Ok(run.call_from(f, vec![a.clone(), b.clone()])?.truthy()))?,
            None => sort_naturally(list, |v| v.clone())?,
        }));
    }
    let f = &args[0];
    let mut results = Vec::new();
    let mut groups: BTreeMap<Value, Vec<Value>> = BTreeMap::new();
    for (i, item) in list.iter().enumerate() {
        let given = if name == "map-indexed" { vec![(i as i64).into(), item.clone()] } else { vec![item.clone()] };
        let result = run.call_from(f, given)?;
        let yes = result.truthy();
        match name {
            "map" | "map-indexed" => results.push(result),
            "filter" if yes => results.push(item.clone()),
            "remove" if !yes => results.push(item.clone()),
            "keep" if result != Value::Nil => results.push(result),
            "mapcat" => match (&result, f, items(&result)) {
                // What a keyword reads may be no collection.
                (Value::Str(_), Value::Key(_), _) => results.push(result),
                (_, _, Err(_)) => {
                    return Err(Failure { reason: "runtime_error", in_closure: false, placed: true });
                }
                (_, _, Ok(more)) => results.extend(more),
            },
            "some" if yes => return Ok(result),
            "every?" if !yes => return Ok(Value::Bool(false)),
            "take-while" if !yes => return Ok(Value::List(list[..i].to_vec())),
            "drop-while" if !yes => return Ok(Value::List(list[i..].to_vec())),
            "group-by" => groups.entry(result).or_default().push(item.clone()),
            "sort-by" => results.push(Value::List(vec![result, item.clone()])),
            _ => {}
        }
    }
    Ok(match name {
        "some" => Value::Nil,
        "every?" => Value::Bool(true),
        "take-while" => Value::List(list),
        "group-by" => Value::Map(groups.into_iter().map(|(k, v)| (k, Value::List(v))).collect()),
        "sort-by" => {
            let part = |v: &Value, i: usize| items(v).map(|pair| pair[i].clone()).unwrap_or(Value::Nil);
            let pairs = sort_naturally(results, |pair| part(pair, 0))?;
            Value::List(pairs.iter().map(|pair| part(pair, 1)).collect())
        }
        _ => Value::List(results),
    })
}

/// By the natural order of keys. A single key must have an order too.
fn sort_naturally(list: Vec<Value>, key: impl Fn(&Value) -> Value) -> All<Vec<Value>> {
    if let [only] = list.as_slice() {
        natural(&key(only), &key(only))?;
    }
    let every_pair = list.iter().enumerate().flat_map(|(i, a)| list[..i].iter().map(move |b| (a, b)));
    for (a, b) in every_pair {
        natural(&key(a), &key(b))?;
    }
    sorted(list, |a, b| Ok(natural(&key(a), &key(b))?.is_lt()))
}

fn maps(run: &mut Run, name: &str, args: Vec<Value>) -> Res {
    let keys = |m: BTreeMap<Value, Value>| Value::List(m.into_keys().collect());
    Ok(match name {
        "get" => match &args[0] {
            Value::Nil | Value::Map(_) | Value::Set(_) => look(&args[0], &args[1]),
            // No name is a place.
            Value::List(_) => Value::Nil,
            _ => return fail("type_error"),
        },
        "assoc" => {
            let mut m = map(&args[0])?;
            m.insert(meant(&m, &args[1]), args[2].clone());
            Value::Map(m)
        }
        "dissoc" if args[0] == Value::Nil => return fail("runtime_error"),
        "dissoc" => {
            let mut m = map(&args[0])?;
            m.remove(&meant(&m, &args[1]));
            Value::Map(m)
        }
        "merge" => {
            let base = map(&args[0])?;
            let mut m = base.clone();
            m.extend(map(&args[1])?.into_iter().map(|(key, value)| (meant(&base, &key), value)));
            Value::Map(m)
        }
        // A single map stays what it is, a key and its counterpart in it too.
        "merge-with" if args[1] == Value::Nil => Value::Map(map(&args[2])?),
        "merge-with" => {
            let mut m = map(&args[1])?;
            for (key, value) in map(&args[2])? {
                let key = meant(&m, &key);
                let value = match m.get(&key) {
                    Some(old) => run.call_from(&args[0], vec![old.clone(), value])?,
                    None => value,
                };
                m.insert(key, value);
            }
            Value::Map(m)
        }
        "update" => {
            let mut m = map(&args[0])?;
            let key = meant(&m, &args[1]);
            let old = m.get(&key).cloned().unwrap_or(Value::Nil);
            m.insert(key, run.call_from(&args[2], vec![old])?);
            Value::Map(m)
        }
        "update-vals" if args[0] == Value::Nil => Value::Nil,
        "update-vals" => {
            let mut out = BTreeMap::new();
            for (key, value) in map(&args[0])? {
                out.insert(key, run.call_from(&args[1], vec![value])?);
            }
            Value::Map(out)
        }
        "keys" | "vals" if args[0] == Value::Nil => Value::Nil,
        "keys" => keys(map(&args[0])?),
        "vals" => Value::List(map(&args[0])?.into_values().collect()),
        "zipmap" => Value::Map(items(&args[0])?.into_iter().zip(items(&args[1])?).collect()),
        "select-keys" => {
            let (m, wanted) = (map(&args[0])?, items(&args[1])?);
            Value::Map(m.into_iter().filter(|(k, _)| wanted.contains(k)).collect())
        }
        _ => {
            let mut counts: BTreeMap<Value, i64> = BTreeMap::new();
            for item in items(&args[0])? {
                *counts.entry(item).or_default() += 1;
            }
            Value::Map(counts.into_iter().map(|(k, n)| (k, n.into())).collect())
        }
    })
}

fn lists(name: &str, args: &[Value]) -> Res {
    let list = |items: Vec<Value>| Ok(Value::List(items));
    match name {
        "count" => match &args[0] {
            Value::Str(s) => Ok((s.chars().count() as i64).into()),
            other => Ok((items(other)?.len() as i64).into()),
        },
        "first" => Ok(items(&args[0])?.first().cloned().unwrap_or(Value::Nil)),
        "last" => Ok(items(&args[0])?.last().cloned().unwrap_or(Value::Nil)),
        "nth" => {
            let (all, n) = (items(&args[0])?, int(&args[1])?);
            Ok(usize::try_from(n).ok().and_then(|n| all.get(n).cloned()).unwrap_or(Value::Nil))
        }
        "rest" => list(items(&args[0])?.into_iter().skip(1).collect()),
        "reverse" => list(items(&args[0])?.into_iter().rev().collect()),
        "take" | "drop" => {
            let all = items(&args[1])?;
            let (front, back) = all.split_at(split(&args[0], all.len())?);
            // A negative number counts from the end: what would be left is taken, and the other way round.
            let from_front = (name == "take") != int(&args[0])?.is_negative();
            list(if from_front { front } else { back }.to_vec())
        }
        "take-nth" => match int(&args[0])? {
            n if n > BigInt::from(0) => {
                // A step beyond the end takes the first.
                let n = usize::try_from(n).unwrap_or(usize::MAX);
                list(items(&args[1])?.into_iter().step_by(n).collect())
            }
            _ => fail("type_error"),
        },
        "cons" => list(std::iter::once(args[0].clone()).chain(items(&args[1])?).collect()),
        "conj" => match &args[0] {
            Value::Nil => list(vec![args[1].clone()]),
            Value::List(all) => list(all.iter().cloned().chain([args[1].clone()]).collect()),
            Value::Set(s) => Ok(Value::Set(s.iter().cloned().chain([args[1].clone()]).collect())),
            _ => fail("runtime_error"),
        },
        "concat" => {
            let mut all = Vec::new();
            for arg in args {
                all.extend(items(arg)?);
            }
            list(all)
        }
        "distinct" => {
            let mut seen = BTreeSet::new();
            list(items(&args[0])?.into_iter().filter(|v| seen.insert(v.clone())).collect())
        }
        "range" => {
            let (from, to) =
                if args.len() == 1 { (0.into(), int(&args[0])?) } else { (int(&args[0])?, int(&args[1])?) };
            let mut all = Vec::new();
            let mut n: BigInt = from;
            while n < to {
                all.push(Value::Int(n.clone()));
                n += 1;
            }
            list(all)
        }
        "set" => Ok(Value::Set(items(&args[0])?.into_iter().collect())),
        "vec" if args[0] == Value::Nil => Ok(Value::Nil),
        "vec" => list(items(&args[0])?),
        other => panic!("the oracle does not know {other}"),
    }
}
