//! `sort` and `sort-by`. Keys are computed first, one call each. If the comparator's order is known ([`KnownOrder`]),
//! numbers are sorted at once; so are all values in the natural order. With another comparator, indexes are merged
//! bottom-up, with one call per comparison.
//!
//! Registers: the result, the key function, the elements, the keys, the comparator, two rows of indexes to merge from
//! and to, the length of the runs, and for the two current runs the start of the unmerged part and the end.

use super::accepts;
use super::direct::DirectFn;
use super::known_order::{COMPARE, KnownOrder};
use super::registers::{FUNCTION, ITEMS, RESULT, items, vector};
use crate::builtins::args::{function, not_function};
use crate::builtins::{Builtin, args, comparison};
use crate::context::Ctx;
use crate::heap::{Closure, Res, Value, VecBuilder};
use crate::stack::{Call, Code, Control, Frame, NativeFn, NativeFrame, State};

pub(super) const TABLE: &[Builtin] = &[
    Builtin::calling("sort", 1, 2, "(sort coll) (sort comparator coll)", start_sort).doc(
        "Returns the elements in order.",
        &[("(sort [3 1 2])", "[1 2 3]"), ("(sort > [3 1 2])", "[3 2 1]"), ("(sort [1 \"a\"])", "!type_error")],
    ),
    Builtin::calling("sort-by", 2, 3, "(sort-by f coll) (sort-by f comparator coll)", start_sort_by).doc(
        "Returns the elements in the order of what f returns for them.",
        &[("(sort-by :n [{:n 2} {:n 1}])", "[{:n 1} {:n 2}]"), ("(sort-by 1 [1])", "!type_error")],
    ),
];

static SORT: NativeFn = NativeFn::new("sort", step).next_call(next_pair);
static SORT_BY: NativeFn = NativeFn::new("sort-by", step).next_call(next_pair);

const KEYS: usize = 3;
const COMPARATOR: usize = 4;
const FROM: usize = 5;
const TO: usize = 6;
const WIDTH: usize = 7;
const A: usize = 8;
const A_END: usize = 9;
const B: usize = 10;
const B_END: usize = 11;

fn start_sort<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let (comparator, coll) = match s.stack[call.args()] {
        [comparator, coll, ..] => (comparator, coll),
        [coll] => (Value::Unset, coll),
        [] => (Value::Unset, Value::Nil),
    };
    let comparator = check_comparator(SORT.name, comparator)?;
    let list = items(h, SORT.name, coll)?;
    push(&SORT, h, s, call, [Value::Unset, list, list, comparator])
}

fn start_sort_by<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call) -> Res<Control<'h>> {
    let args = &s.stack[call.args()];
    let (f, coll) = (args[0], args[args.len() - 1]);
    let comparator = if args.len() == 2 { Value::Unset } else { args[1] };
    if let Value::Str(_) = f {
        return Err(not_function(SORT_BY.name, f, "write a path of one key: (sort-by [\"key\"] coll)"));
    }
    function(SORT_BY.name, f)?;
    let comparator = check_comparator(SORT_BY.name, comparator)?;
    let list = items(h, SORT_BY.name, coll)?;
    let keys = Value::VecBuilder(h.vec_builder(vector(list).len())?);
    push(&SORT_BY, h, s, call, [f, list, keys, comparator])
}

/// Checks the comparator; `None` stands for the natural order.
fn check_comparator<'h>(name: &str, comparator: Value<'h>) -> Res<Value<'h>> {
    if let Value::Unset = comparator {
        return Ok(comparator);
    }
    function(name, comparator)?;
    match comparator {
        Value::Keyword(..) => {
            let hint = "write (sort > coll) for the largest first, (sort coll) for the smallest";
            Err(not_function(name, comparator, hint))
        }
        Value::Builtin(id) if id == COMPARE => Ok(Value::Unset),
        _ => Ok(comparator),
    }
}

fn push<'h>(
    native: &'static NativeFn,
    h: &'h Ctx,
    s: &mut State<'h>,
    call: Call,
    [f, list, keys, comparator]: [Value<'h>; 4],
) -> Res<Control<'h>> {
    let nil = Value::Nil;
    let registers = [nil, f, list, keys, comparator, nil, nil, Value::Int(0), nil, nil, nil, nil];
    s.push_native(h, native, call, &registers)
}

fn step<'h>(h: &'h Ctx, s: &mut State<'h>) -> Res<Control<'h>> {
    let Some(frame) = s.native_frame() else { return Ok(Control::Frame) };
    let base = frame.base;
    if let Value::VecBuilder(keys) = s.stack[base + KEYS]
        && let Some(control) = compute_keys(h, s, frame, keys)?
    {
        return Ok(control);
    }
    h.meter.set_restart();
    let (list, keys, comparator) = (s.stack[base + ITEMS], s.stack[base + KEYS], s.stack[base + COMPARATOR]);
    let is_begun = number(s.stack[base + WIDTH]) != 0;
    if !is_begun
        && let Some(order) = KnownOrder::of(s, comparator)
        && let Some(sorted) = order.sort(h, vector(list), vector(keys))?
    {
        return Ok(Control::Value(sorted));
    }
    match comparator {
        Value::Unset => natural(h, list, keys).map(Control::Value),
        _ => merge(h, s, base),
    }
}

/// Calls the key function for each element; afterwards the keys are a vector.
fn compute_keys<'h>(
    h: &'h Ctx,
    s: &mut State<'h>,
    frame: NativeFrame,
    keys: &'h VecBuilder<'h>,
) -> Res<Option<Control<'h>>> {
    let NativeFrame { native, base, mut called, mut index } = frame;
    let list = vector(s.stack[base + ITEMS]);
    let f = s.stack[base + FUNCTION];
    let direct = DirectFn::of(h, f, 1);
    loop {
        h.meter.set_restart();
        if called {
            keys.push(h, s.stack[base + RESULT])?;
            index += 1;
            s.note(false, index);
            h.meter.set_restart();
        }
        let Some(&item) = list.get(index) else {
            s.stack[base + KEYS] = keys.finish(h)?;
            s.note(false, 0);
            return Ok(None);
        };
        h.charge(1)?;
        let key = match direct {
            Some(direct) => direct.call(h, &[item])?,
            None => match accepts::read(h, native.name, f, item, false)? {
                Some(key) => key,
                None => return s.call_from_native(h, f, &[item]).map(Some),
            },
        };
        s.note_result(key);
        called = true;
    }
}

/// Sorts in the natural order of the keys.
fn natural<'h>(h: &'h Ctx, list: Value<'h>, keys: Value<'h>) -> Res<Value<'h>> {
    let (list, keys) = (vector(list), vector(keys));
    let n = list.len();
    h.charge(crate::cost::sorted(n))?;
    h.check_available(n * 8)?;
    // A vector never has more elements than this type counts.
    let mut order: Vec<u32> = (0..u32::try_from(n).unwrap_or(u32::MAX)).collect();
    if let [only] = keys {
        comparison::compare_values(h, *only, *only)?;
    }
    crate::heap::merge_sort(h, &mut order, |a, b| comparison::compare_values(h, keys[a as usize], keys[b as usize]))?;
    h.vector_from(n, order.into_iter().map(|i| list[i as usize]))
}

fn number(v: Value<'_>) -> usize {
    match v {
        Value::Int(i) => usize::try_from(i).unwrap_or(0),
        _ => 0,
    }
}

/// The state of a merge: runs of `width` indexes from `from` become runs of twice that in `to`, until one run is left.
/// Of the two current runs, those from `a` up to `a_end` and from `b` up to `b_end` are not in `to` yet.
struct Runs<'h> {
    from: &'h VecBuilder<'h>,
    to: &'h VecBuilder<'h>,
    width: usize,
    a: usize,
    a_end: usize,
    b: usize,
    b_end: usize,
}

impl<'h> Runs<'h> {
    fn load(own: &[Value<'h>]) -> Option<Self> {
        let (Value::VecBuilder(from), Value::VecBuilder(to)) = (own[FROM], own[TO]) else { return None };
        let [width, a, a_end, b, b_end] = [WIDTH, A, A_END, B, B_END].map(|register| number(own[register]));
        Some(Runs { from, to, width, a, a_end, b, b_end })
    }

    fn store(&self, own: &mut [Value<'h>]) {
        own[FROM] = Value::VecBuilder(self.from);
        own[TO] = Value::VecBuilder(self.to);
        let numbers = [(WIDTH, self.width), (A, self.a), (A_END, self.a_end), (B, self.b), (B_END, self.b_end)];
        for (register, number) in numbers {
            own[register] = Value::count(number);
        }
    }

    /// Continues with the two runs that start at `start`, of `n` indexes in total.
    fn begin(&mut self, start: usize, n: usize) {
        (self.a, self.a_end) = (start, (start + self.width).min(n));
        (self.b, self.b_end) = (self.a_end, (start + 2 * self.width).min(n));
    }
}

fn merge<'h>(h: &'h Ctx, s: &mut State<'h>, base: usize) -> Res<Control<'h>> {
    let n = vector(s.stack[base + ITEMS]).len();
    if number(s.stack[base + WIDTH]) == 0 {
        h.charge(n as u64)?;
        let (from, to) = (h.vec_builder(n)?, h.vec_builder(n)?);
        for i in 0..n {
            from.push(h, Value::count(i))?;
        }
        let mut runs = Runs { from, to, width: 1, a: 0, a_end: 0, b: 0, b_end: 0 };
        runs.begin(0, n);
        runs.store(&mut s.stack[base..]);
    }
    let Some(mut runs) = Runs::load(&s.stack[base..]) else { return Ok(Control::Value(Value::Nil)) };
    let control = merge_runs(h, s, base, &mut runs);
    runs.store(&mut s.stack[base..]);
    control
}

/// Merges until a comparison takes a frame, or the sort is done.
fn merge_runs<'h>(h: &'h Ctx, s: &mut State<'h>, base: usize, runs: &mut Runs<'h>) -> Res<Control<'h>> {
    let (list, keys) = (vector(s.stack[base + ITEMS]), vector(s.stack[base + KEYS]));
    let n = list.len();
    let comparator = s.stack[base + COMPARATOR];
    let direct = DirectFn::of(h, comparator, 2);
    let mut called = s.native_frame().is_some_and(|frame| frame.called);
    loop {
        h.meter.set_restart();
        if runs.width >= n {
            h.charge(n as u64)?;
            return h.vector_from(n, (0..n).map(|i| list[number(runs.from.get(i))])).map(Control::Value);
        }
        if runs.to.len() == n {
            runs.from.clear();
            (runs.from, runs.to, runs.width) = (runs.to, runs.from, runs.width * 2);
            runs.begin(0, n);
            continue;
        }
        let take_right = if runs.a >= runs.a_end {
            Some(true)
        } else if runs.b >= runs.b_end {
            Some(false)
        } else if called {
            Some(comes_first(s.stack[base + RESULT])?)
        } else {
            None
        };
        if let Some(take_right) = take_right {
            h.charge(1)?;
            let taken = if take_right { &mut runs.b } else { &mut runs.a };
            runs.to.push(h, runs.from.get(*taken))?;
            *taken += 1;
            // The comparator's result, if any, has been used; before this point it may be read again.
            if called {
                called = false;
                s.note(false, 0);
            }
            if runs.a >= runs.a_end && runs.b >= runs.b_end {
                runs.begin(runs.b_end, n);
            }
            continue;
        }
        // The first of the right run with the first of the left.
        let pair = [keys[number(runs.from.get(runs.b))], keys[number(runs.from.get(runs.a))]];
        let Some(direct) = direct else { return s.call_from_native(h, comparator, &pair) };
        let result = direct.call(h, &pair)?;
        s.note_result(result);
        called = true;
    }
}

/// Returns the registers of the native frame below, the function on top that it called, and where the function's
/// arguments were; `None` if the frame of that function cannot start over: with a rest parameter, each call creates a
/// vector of the arguments.
#[inline(always)]
fn caller<'s, 'h>(s: &'s mut State<'h>) -> Option<(&'s mut [Value<'h>], &'h Closure<'h>, &'s mut [Value<'h>])> {
    let [.., Frame { code: Code::Native { size, .. }, base, .. }, top] = s.frames.as_slice() else { return None };
    let Code::Lisp { closure: Some(function), proto, .. } = top.code else { return None };
    if proto.variadic {
        return None;
    }
    let (own, args) = s.stack.split_at_mut(top.base as usize);
    let own = own.get_mut(*base as usize..*base as usize + *size as usize)?;
    Some((own, function, args))
}

/// The fast path of a merge: the comparator has returned `result` for the current pair, and neither run ends with it.
fn next_pair<'h>(s: &mut State<'h>, result: &Value<'h>) -> bool {
    let Some((own, function, args)) = caller(s) else { return false };
    let [
        _,
        _,
        _,
        Value::Vector(keys),
        Value::Closure(f),
        Value::VecBuilder(from),
        Value::VecBuilder(to),
        _,
        fronts @ ..,
    ] = own
    else {
        return false;
    };
    let [Value::Int(a), Value::Int(a_end), Value::Int(b), Value::Int(b_end), ..] = fronts else { return false };
    let take_right = match *result {
        Value::Bool(first) => first,
        Value::Int(order) => order < 0,
        _ => return false,
    };
    let (taken, other, end) = if take_right { (b, a, *b_end) } else { (a, b, *a_end) };
    let (from, keys) = (from.cells(), keys.items());
    let (Ok(first), Ok(second)) = (usize::try_from(*taken), usize::try_from(*other)) else { return false };
    let (Some([index, next, ..]), Some(stays)) = (from.get(first..), from.get(second)) else {
        return false;
    };
    let (Some(next), Some(stays)) = (keys.get(number(next.get())), keys.get(number(stays.get()))) else { return false };
    let [first, second, ..] = args else { return false };
    if *taken + 1 >= end || !std::ptr::eq(*f, function) || !to.push_in_place(&index.get()) {
        return false;
    }
    *taken += 1;
    (*first, *second) = if take_right { (*next, *stays) } else { (*stays, *next) };
    true
}

/// Returns whether the result of a comparator means that its first argument comes first.
fn comes_first(result: Value<'_>) -> Res<bool> {
    match result {
        Value::Bool(b) => Ok(b),
        Value::Int(i) => Ok(i < 0),
        Value::Float(f) => Ok(f < 0.0),
        Value::Big(b) => Ok(b.negative),
        Value::Nil => Ok(false),
        other => Err(args::type_error("sort", "a comparator that returns a boolean or a number", other)),
    }
}
