//! `reduce`, `reduce-kv`, `merge-with`: functions that combine elements, and the loop that they share.

use super::direct::DirectFn;
use super::registers::{ACC, FUNCTION, ITEMS, RESULT, items, vector};
use crate::builtins::args::function;
use crate::builtins::streams::reduced;
use crate::builtins::{Builtin, Endless, Lowering, MANY, Round, args};
use crate::context::Ctx;
use crate::cost;
use crate::heap::{Compose, Fault, Res, Value, Work};
use crate::stack::{Call, Control, NativeFn, NativeFrame, State};

pub(super) const TABLE: &[Builtin] = &[Reduce::ROW, ReduceKv::ROW, MergeWith::ROW];

/// A function that combines elements from the left. Its frame has the registers [`RESULT`], [`FUNCTION`], [`ITEMS`],
/// [`ACC`] and one more of its own.
trait Fold: Sized {
    const ROW: Builtin;
    /// The number of arguments with which it calls the function.
    const ARGC: usize;
    /// Whether a function that returns `reduced` ends it.
    const ENDS_EARLY: bool = true;

    /// The native function of its frames.
    const NATIVE: &'static NativeFn = &NativeFn::new(Self::ROW.name, step::<Self>).counts(FUNCTION);

    /// Returns what to do with the element at a position.
    fn take<'h>(h: &'h Ctx, own: &mut [Value<'h>], item: Value<'h>, place: usize) -> Res<Take<'h>>;

    /// Returns the elements after those in [`ITEMS`], if there are more. Changes nothing if it fails.
    fn more<'h>(_h: &'h Ctx, _own: &mut [Value<'h>]) -> Res<Option<Value<'h>>> {
        Ok(None)
    }

    /// Returns the index of the first of the elements in [`ITEMS`].
    #[inline(always)]
    fn first(_own: &[Value<'_>]) -> usize {
        0
    }

    /// Returns the accumulator combined with the result for an element.
    #[inline(always)]
    fn combine<'h>(_h: &'h Ctx, own: &[Value<'h>]) -> Res<Value<'h>> {
        Ok(own[RESULT])
    }
}

/// What to do with an element.
enum Take<'h> {
    /// Call the function with the first [`Fold::ARGC`] of these.
    Call([Value<'h>; 3]),
    /// Use this as the function's result.
    Value(Value<'h>),
}

/// Continues the frame on top.
fn step<'h, F: Fold>(h: &'h Ctx, s: &mut State<'h>) -> Res<Control<'h>> {
    let Some(NativeFrame { base, mut called, mut index, .. }) = s.native_frame() else { return Ok(Control::Frame) };
    let mut list = vector(s.stack[base + ITEMS]);
    let f = s.stack[base + FUNCTION];
    let direct = DirectFn::of(h, f, F::ARGC);
    loop {
        h.meter.set_restart();
        if called {
            if let Value::Composed(_) = s.stack[base + RESULT]
                && F::ENDS_EARLY
                && let Some(last) = reduced(s.stack[base + RESULT])
            {
                return Ok(Control::Value(last));
            }
            s.stack[base + ACC] = F::combine(h, &s.stack[base..])?;
            index += 1;
            s.note(false, index);
            h.meter.set_restart();
        }
        let place = index - F::first(&s.stack[base..]);
        let Some(&item) = list.get(place) else {
            let end = base + s.registers_from(0);
            let Some(more) = F::more(h, &mut s.stack[base..end])? else {
                return Ok(Control::Value(s.stack[base + ACC]));
            };
            s.stack[base + ITEMS] = more;
            list = vector(more);
            called = false;
            continue;
        };
        h.charge(1)?;
        let result = match (F::take(h, &mut s.stack[base..], item, place)?, direct) {
            (Take::Call(args), Some(direct)) => direct.call(h, &args[..F::ARGC])?,
            (Take::Call(args), None) => return s.call_from_native(h, f, &args[..F::ARGC]),
            (Take::Value(value), _) => value,
        };
        s.stack[base + RESULT] = result;
        s.note(true, index);
        called = true;
    }
}

/// Returns the number in a register.
fn count(v: Value<'_>) -> usize {
    v.as_integer().and_then(|n| usize::try_from(n).ok()).unwrap_or_default()
}

/// Starts to combine elements from number `index` on with `acc`.
fn start<'h, F: Fold>(
    h: &'h Ctx,
    s: &mut State<'h>,
    call: Call,
    [f, list, acc]: [Value<'h>; 3],
    index: usize,
) -> Res<Control<'h>> {
    let control = s.push_native(h, F::NATIVE, call, &[Value::Nil, f, list, acc, Value::Unset, Value::Unset])?;
    s.note(false, index);
    Ok(control)
}

struct Reduce;

impl Reduce {
    fn start<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
        let args = &s.stack[call.args()];
        let f = function(Self::ROW.name, args[0])?;
        let list = items(h, Self::ROW.name, args[args.len() - 1])?;
        match (args, vector(list)) {
            (&[_, init, _], _) => start::<Self>(h, s, call, [f, list, init], 0),
            (_, [first, ..]) => start::<Self>(h, s, call, [f, list, *first], 1),
            // Combining nothing returns what a call without arguments returns.
            (_, []) if takes_nothing(h, s, f)? => Ok(Control::Call(Call::new(call.args().start, 0, call.dst))),
            (_, []) => Ok(Control::Value(Value::Nil)),
        }
    }
}

/// Returns true if a function can be called without arguments. One made of others can if each of those that it then
/// calls takes its arguments.
fn takes_nothing<'h>(h: &'h Ctx, s: &State<'h>, f: Value<'h>) -> Res<bool> {
    let mut work = Work::new(h);
    work.push((f, 0))?;
    while let Some((f, argc)) = work.pop() {
        let takes = match f {
            Value::Builtin(id) => id.row().takes(argc),
            Value::Closure(c) => {
                let others = || s.units.get(c.program).and_then(|unit| unit.other_arity(c.proto, argc));
                c.proto.takes(argc) || others().is_some()
            }
            Value::Composed(c) => match (h.charge(1).map(|()| c.kind)?, c.parts()) {
                (Compose::Partial, [f, given @ ..]) => work.push((*f, argc + given.len())).map(|()| true)?,
                (Compose::Comp, []) => argc == 1,
                (Compose::Comp, [.., f]) | (Compose::Complement | Compose::Completing, [f, ..]) => {
                    work.push((*f, argc)).map(|()| true)?
                }
                (Compose::Fnil, [f, ..]) if argc > 0 => work.push((*f, argc)).map(|()| true)?,
                (Compose::Juxt, parts) => {
                    parts.iter().try_for_each(|&f| work.push((f, argc)))?;
                    true
                }
                (Compose::Constantly | Compose::EveryPred | Compose::SomeFn, _) => true,
                _ => false,
            },
            Value::Keyword(..) | Value::Map(_) | Value::Set(_) => argc > 0,
            _ => false,
        };
        if !takes {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Fold for Reduce {
    const ROW: Builtin = Builtin::calling("reduce", 2, 3, "(reduce f coll) (reduce f init coll)", Reduce::start).endless(Endless::Reduce).lowered(Lowering::Round(Round::Reduce)).doc(
        "Combines the elements from the left. Without elements and init, returns (f), or nil if f requires arguments.",
        &[
            ("(reduce + [1 2 3])", "6"),
            ("(reduce conj [] [1 2])", "[1 2]"),
            ("[(reduce + []) (reduce (partial + 5) []) (reduce max [])]", "[0 5 nil]"),
            ("(reduce 1 [1 2])", "!type_error"),
        ],
    );
    const ARGC: usize = 2;

    #[inline(always)]
    fn take<'h>(_: &'h Ctx, own: &mut [Value<'h>], item: Value<'h>, _: usize) -> Res<Take<'h>> {
        Ok(Take::Call([own[ACC], item, Value::Nil]))
    }
}

/// The register for the values of a map whose keys are the elements.
const VALUES: usize = 4;

struct ReduceKv;

impl ReduceKv {
    fn start<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
        let at = call.args().start;
        let f = function(Self::ROW.name, s.stack[at])?;
        let (init, map) = (s.stack[at + 1], s.stack[at + 2]);
        let [keys, values] = match map {
            Value::Map(map) => map.columns(h)?,
            Value::Nil => [Value::Nil; 2],
            other => {
                return Err(match (args::not_walked(Self::ROW.name, "a map", other), other) {
                    (Fault::Error(error), Value::Vector(_)) => error
                        .hint(
                            "convert the vector to a map from index to element: (reduce-kv f init (zipmap (range) v))",
                        )
                        .into(),
                    (fault, _) => fault,
                });
            }
        };
        let control = start::<Self>(h, s, call, [f, keys, init], 0)?;
        s.stack[call.at() + VALUES] = values;
        Ok(control)
    }
}

impl Fold for ReduceKv {
    const ROW: Builtin = Builtin::calling("reduce-kv", 3, 3, "(reduce-kv f init m)", ReduceKv::start).doc(
        "Combines the entries of a map: f gets the result so far, a key and a value.",
        &[("(reduce-kv (fn [a k v] (+ a v)) 0 {:a 1 :b 2})", "3"), ("(reduce-kv 1 0 {})", "!type_error")],
    );
    const ARGC: usize = 3;

    fn take<'h>(_: &'h Ctx, own: &mut [Value<'h>], key: Value<'h>, place: usize) -> Res<Take<'h>> {
        Ok(match vector(own[VALUES]).get(place) {
            Some(&value) => Take::Call([own[ACC], key, value]),
            None => Take::Value(own[ACC]),
        })
    }
}

/// The entries of the other maps are merged into the first.
struct MergeWith;

impl MergeWith {
    /// The register for the key of the current entry.
    const KEY: usize = 5;
    /// The register for the index of the first entry of the current map.
    const BEGIN: usize = 6;
    /// The register for the index of the next map; the maps follow.
    const NEXT: usize = 7;
    const MAPS: usize = 8;

    /// A single argument is returned whatever it is, unless it is nil or false.
    fn start<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
        let name = Self::ROW.name;
        let at = call.args().start;
        let f = function(name, s.stack[at])?;
        let given = &s.stack[at + 1..call.args().end];
        if let [single] = given
            && single.truthy()
        {
            return Ok(Control::Value(*single));
        }
        h.charge(given.len() as u64)?;
        if given.len() > 1
            && let Some(place) = given.iter().position(|a| !matches!(a, Value::Map(_) | Value::Nil))
        {
            let error = if place == 0 { args::type_error } else { args::not_walked };
            return Err(error(name, "maps", given[place]));
        }
        let mut maps = (0..).zip(given).filter(|(_, m)| matches!(m, Value::Map(_)));
        match (maps.next(), maps.next()) {
            (None, _) => h.empty_map().map(|map| Control::Value(Value::Map(map))),
            (Some((_, &only)), None) => Ok(Control::Value(only)),
            (Some((_, &first)), Some((next, _))) => {
                let nil = Value::Nil;
                let own = [nil, f, nil, first, nil, nil, Value::Int(0), Value::Int(next)];
                s.push_native_over(h, Self::NATIVE, call, &own, 1)
            }
        }
    }
}

impl Fold for MergeWith {
    const ROW: Builtin = Builtin::calling("merge-with", 1, MANY, "(merge-with f m1 m2 ...)", MergeWith::start).doc(
        "Merges maps; f combines the values of a key that several have. nil counts as empty.",
        &[
            ("(merge-with + {:a 1} {:a 2 :b 3})", "{:a 3 :b 3}"),
            ("(merge-with + nil {:a 1})", "{:a 1}"),
            ("(merge-with + nil [1])", "!type_error"),
        ],
    );
    const ARGC: usize = 2;
    const ENDS_EARLY: bool = false;

    fn take<'h>(h: &'h Ctx, own: &mut [Value<'h>], key: Value<'h>, place: usize) -> Res<Take<'h>> {
        let (Value::Map(map), Some(&value)) = (own[ACC], vector(own[VALUES]).get(place)) else {
            return Ok(Take::Value(own[ACC]));
        };
        map.charge_meant(h, key)?;
        let key = map.meant(h, key)?;
        let old = map.get(h, key)?;
        own[Self::KEY] = key;
        Ok(match old {
            Some(old) => Take::Call([old, value, Value::Nil]),
            None => Take::Value(value),
        })
    }

    fn more<'h>(h: &'h Ctx, own: &mut [Value<'h>]) -> Res<Option<Value<'h>>> {
        let mut next = count(own[Self::NEXT]);
        let map = loop {
            match own.get(Self::MAPS + next) {
                Some(Value::Map(map)) => break map,
                Some(_) => next += 1,
                None => return Ok(None),
            }
        };
        h.charge(cost::placed(1 + map.len()))?;
        let [keys, values] = map.columns(h)?;
        own[VALUES] = values;
        own[Self::BEGIN] = Value::count(Self::first(own) + vector(own[ITEMS]).len());
        own[Self::NEXT] = Value::count(next + 1);
        Ok(Some(keys))
    }

    fn first(own: &[Value<'_>]) -> usize {
        count(own[Self::BEGIN])
    }

    fn combine<'h>(h: &'h Ctx, own: &[Value<'h>]) -> Res<Value<'h>> {
        match own[ACC] {
            Value::Map(map) => h.assoc(map, own[Self::KEY], own[RESULT]).map(Value::Map),
            _ => Ok(own[RESULT]),
        }
    }
}
