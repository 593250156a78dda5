//! Built-ins that combine many values from the left, in a frame: one value after the other, so that intermediate
//! results can be compacted away. Few or small values need no frame; otherwise the built-ins request one with
//! [`Fault::NeedsFrame`].

use super::registers::vector;
use crate::builtins::{bits, id_of, maps, math, numbers, renaming, sets};
use crate::code::BuiltinId;
use crate::context::Ctx;
use crate::heap::{Fault, Heap, Res, Value};
use crate::stack::{Call, Control, NativeFn, NativeFrame, State};

/// The register for the result so far; the arguments follow.
const ACC: usize = 0;
/// The register for the first argument, or for the steps that precede it.
const FIRST: usize = 1;
/// The register for the first argument after steps.
const WHOLE: usize = 2;

/// Combines the next value with the result so far, which is in the registers.
type Join = for<'h> fn(&'h Heap, &[Value<'h>], Value<'h>) -> Res<Value<'h>>;

/// The values that one of them combines.
enum Over {
    /// The first argument with the others.
    Arguments,
    /// The elements of the first argument, starting with 0.
    Elements,
    /// The first argument with steps, which this function makes of all arguments; they precede the arguments.
    Steps(for<'h> fn(&'h Heap, &[Value<'h>]) -> Res<Value<'h>>),
}

/// One of these built-ins.
struct OneByOne {
    id: BuiltinId,
    native: NativeFn,
    join: Join,
    over: Over,
    /// Returns the final result.
    finish: for<'h> fn(&'h Heap, &[Value<'h>]) -> Res<Value<'h>>,
}

impl OneByOne {
    const fn new(name: &'static str, join: Join) -> Self {
        let native = NativeFn::new(name, step).keeps_reasons();
        OneByOne { id: id_of(name), native, join, over: Over::Arguments, finish: |_, own| Ok(own[ACC]) }
    }
}

static ALL: &[OneByOne] = &[
    OneByOne::new("+", |h, own, next| numbers::add(h, own[ACC], next)),
    OneByOne::new("-", |h, own, next| numbers::sub(h, own[ACC], next)),
    OneByOne::new("*", |h, own, next| numbers::mul(h, own[ACC], next)),
    OneByOne::new("bit-and", |h, own, next| bits::AND.apply(h, own[ACC], next)),
    OneByOne::new("bit-or", |h, own, next| bits::OR.apply(h, own[ACC], next)),
    OneByOne::new("bit-xor", |h, own, next| bits::XOR.apply(h, own[ACC], next)),
    OneByOne::new("bit-and-not", |h, own, next| bits::AND_NOT.apply(h, own[ACC], next)),
    OneByOne::new("merge", |h, own, next| maps::merge_two(h, own[ACC], next)),
    OneByOne::new("dissoc", |h, own, next| maps::dissoc_one(h, own[FIRST], own[ACC], next)),
    OneByOne::new("union", |h, own, next| sets::union_of_two(h, own[ACC], next)),
    OneByOne::new("intersection", |h, own, next| sets::intersection_of_two(h, own[ACC], next)),
    OneByOne::new("difference", |h, own, next| sets::difference_of_two(h, own[ACC], next)),
    OneByOne::new("disj", |h, own, next| sets::disj_one(h, own[ACC], next)),
    OneByOne {
        over: Over::Steps(renaming::renamings),
        ..OneByOne::new("rename-keys", |h, own, step| renaming::rename_one(h, own[WHOLE], own[ACC], step))
    },
    OneByOne { over: Over::Elements, ..OneByOne::new("sum", |h, own, next| math::add_up(h, "sum", own[ACC], next)) },
    OneByOne {
        over: Over::Elements,
        finish: |h, own| math::mean(h, own[ACC], vector(own[FIRST])),
        ..OneByOne::new("avg", |h, own, next| math::add_up(h, "avg", own[ACC], next))
    },
];

/// Starts the call of one of them.
pub(super) fn start<'h>(h: &'h Ctx, s: &mut State<'h>, call: Call, id: BuiltinId) -> Res<Control<'h>> {
    let args = &s.stack[call.args()];
    let is_endless = |arg: &Value<'h>| matches!(arg, Value::Endless(_));
    let (Some(one), Some(&first)) = (ALL.iter().find(|one| one.id == id), args.first()) else {
        return Err(Fault::NeedsFrame);
    };
    if args.iter().any(is_endless) {
        return Err(Fault::NeedsFrame);
    }
    match one.over {
        Over::Arguments => s.push_native_over(h, &one.native, call, &[first], 0),
        Over::Elements => s.push_native_over(h, &one.native, call, &[Value::Int(0)], 0),
        Over::Steps(steps) => {
            let steps = steps(h, args)?;
            s.push_native_over(h, &one.native, call, &[first, steps], 0)
        }
    }
}

fn step<'h>(h: &'h Ctx, s: &mut State<'h>) -> Res<Control<'h>> {
    let Some(NativeFrame { native, base, mut index, .. }) = s.native_frame() else { return Ok(Control::Frame) };
    let Some(one) = ALL.iter().find(|one| std::ptr::eq(&one.native, native)) else { return Err(Fault::NeedsFrame) };
    let end = base + s.registers_from(0);
    loop {
        h.meter.set_restart();
        let own = &s.stack[base..end];
        let values = match one.over {
            Over::Arguments => &own[FIRST + 1..],
            Over::Elements | Over::Steps(_) => vector(own[FIRST]),
        };
        let Some(&next) = values.get(index) else { return (one.finish)(h, own).map(Control::Value) };
        h.charge(1)?;
        s.stack[base + ACC] = (one.join)(h, own, next)?;
        index += 1;
        s.note(false, index);
    }
}
