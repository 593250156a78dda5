//! Functions that call a predicate for each element until the result is known.

use super::accepts::Accepts;
use super::per_element::{After, PerElement, row};
use super::registers::{ITEMS, RESULT};
use crate::builtins::{Builtin, Endless};
use crate::context::Ctx;
use crate::heap::{Res, Step, Value, Vector};

pub(super) const TABLE: &[Builtin] =
    &[FirstTrue::ROW, Every::ROW, NotAny::ROW, NotEvery::ROW, TakeWhile::ROW, DropWhile::ROW, SplitWith::ROW];

/// Ends with `value` if `stop` is true.
#[inline]
fn stop_when<'h>(stop: bool, value: Value<'h>) -> Res<After<'h>> {
    Ok(if stop { After::Stop(value) } else { After::Next })
}

struct FirstTrue;

impl PerElement for FirstTrue {
    const ROW: Builtin = row::<Self>("some", "(some pred coll)").endless(Endless::Some).doc(
        "Returns the first true result of pred, or nil.",
        &[("(some #(when (> % 1) %) [1 2 3])", "2"), ("(some 1 [1])", "!type_error")],
    );
    const ACCEPTS: Accepts = Accepts::FUNCTIONS;

    fn consume<'h>(_: &'h Ctx, own: &mut [Value<'h>], _: Value<'h>, _: usize) -> Res<After<'h>> {
        stop_when(own[RESULT].truthy(), own[RESULT])
    }
}

struct Every;

impl PerElement for Every {
    const ROW: Builtin = row::<Self>("every?", "(every? pred coll)").endless(Endless::Every).doc(
        "Returns whether pred is true for every element.",
        &[("(every? odd? [1 3])", "true"), ("(every? 1 [1])", "!type_error")],
    );
    const ACCEPTS: Accepts = Accepts::LOOK_UPS;

    fn consume<'h>(_: &'h Ctx, own: &mut [Value<'h>], _: Value<'h>, _: usize) -> Res<After<'h>> {
        stop_when(!own[RESULT].truthy(), Value::Bool(false))
    }

    fn finish<'h>(_: &'h Ctx, _: &mut [Value<'h>]) -> Res<Value<'h>> {
        Ok(Value::Bool(true))
    }
}

struct NotAny;

impl PerElement for NotAny {
    const ROW: Builtin = row::<Self>("not-any?", "(not-any? pred coll)").endless(Endless::NotAny).doc(
        "Returns whether pred is true for no element.",
        &[("(not-any? odd? [2 4])", "true"), ("(not-any? 1 [1])", "!type_error")],
    );
    const ACCEPTS: Accepts = Accepts::PREDICATES;

    fn consume<'h>(_: &'h Ctx, own: &mut [Value<'h>], _: Value<'h>, _: usize) -> Res<After<'h>> {
        stop_when(own[RESULT].truthy(), Value::Bool(false))
    }

    fn finish<'h>(_: &'h Ctx, _: &mut [Value<'h>]) -> Res<Value<'h>> {
        Ok(Value::Bool(true))
    }
}

struct NotEvery;

impl PerElement for NotEvery {
    const ROW: Builtin = row::<Self>("not-every?", "(not-every? pred coll)").endless(Endless::NotEvery).doc(
        "Returns whether pred is not true for some element.",
        &[("(not-every? odd? [1 2])", "true"), ("(not-every? 1 [1])", "!type_error")],
    );
    const ACCEPTS: Accepts = Accepts::PREDICATES;

    fn consume<'h>(_: &'h Ctx, own: &mut [Value<'h>], _: Value<'h>, _: usize) -> Res<After<'h>> {
        stop_when(!own[RESULT].truthy(), Value::Bool(true))
    }

    fn finish<'h>(_: &'h Ctx, _: &mut [Value<'h>]) -> Res<Value<'h>> {
        Ok(Value::Bool(false))
    }
}

/// Ends with the part of the elements that `cut` returns, if the predicate is not true.
fn cut_when_false<'h>(
    h: &'h Ctx,
    own: &[Value<'h>],
    index: usize,
    cut: fn(&'h Ctx, &'h Vector<'h>, usize) -> Res<Value<'h>>,
) -> Res<After<'h>> {
    match own[ITEMS] {
        Value::Vector(whole) if !own[RESULT].truthy() => cut(h, whole, index).map(After::Stop),
        _ => Ok(After::Next),
    }
}

/// Returns the part of the elements that `cut` returns, if the predicate is true for all.
fn cut_behind_all<'h>(
    h: &'h Ctx,
    own: &[Value<'h>],
    cut: fn(&'h Ctx, &'h Vector<'h>, usize) -> Res<Value<'h>>,
) -> Res<Value<'h>> {
    match own[ITEMS] {
        Value::Vector(whole) => cut(h, whole, whole.len()),
        _ => Ok(Value::Nil),
    }
}

fn before<'h>(h: &'h Ctx, whole: &'h Vector<'h>, index: usize) -> Res<Value<'h>> {
    h.slice(whole, 0, index)
}

fn from<'h>(h: &'h Ctx, whole: &'h Vector<'h>, index: usize) -> Res<Value<'h>> {
    h.slice(whole, index, whole.len())
}

fn both<'h>(h: &'h Ctx, whole: &'h Vector<'h>, index: usize) -> Res<Value<'h>> {
    let (left, right) = (before(h, whole, index)?, from(h, whole, index)?);
    h.vector(&[left, right])
}

struct TakeWhile;

impl PerElement for TakeWhile {
    const ROW: Builtin = row::<Self>("take-while", "(take-while pred coll)").endless(Endless::TakeWhile).doc(
        "Returns the elements before the first for which pred is not true.",
        &[("(take-while odd? [1 3 4 5])", "[1 3]"), ("(take-while 1 [1])", "!type_error")],
    );
    const ACCEPTS: Accepts = Accepts::LOOK_UPS;
    const STEP: Option<Step> = Some(Step::TakeWhile);

    fn consume<'h>(h: &'h Ctx, own: &mut [Value<'h>], _: Value<'h>, index: usize) -> Res<After<'h>> {
        cut_when_false(h, own, index, before)
    }

    fn finish<'h>(h: &'h Ctx, own: &mut [Value<'h>]) -> Res<Value<'h>> {
        cut_behind_all(h, own, before)
    }
}

struct DropWhile;

impl PerElement for DropWhile {
    const ROW: Builtin = row::<Self>("drop-while", "(drop-while pred coll)").doc(
        "Returns the elements, starting with the first one for which pred is not true.",
        &[("(drop-while odd? [1 3 4 5])", "[4 5]"), ("(drop-while 1 [1])", "!type_error")],
    );
    const ACCEPTS: Accepts = Accepts::LOOK_UPS;
    const STEP: Option<Step> = Some(Step::DropWhile);

    fn consume<'h>(h: &'h Ctx, own: &mut [Value<'h>], _: Value<'h>, index: usize) -> Res<After<'h>> {
        cut_when_false(h, own, index, from)
    }

    fn finish<'h>(h: &'h Ctx, own: &mut [Value<'h>]) -> Res<Value<'h>> {
        cut_behind_all(h, own, from)
    }
}

struct SplitWith;

impl PerElement for SplitWith {
    const ROW: Builtin = row::<Self>("split-with", "(split-with pred coll)").endless(Endless::SplitWith).doc(
        "Returns a vector of the results of take-while and drop-while.",
        &[("(split-with odd? [1 3 4 5])", "[[1 3] [4 5]]"), ("(split-with 1 [1])", "!type_error")],
    );
    const ACCEPTS: Accepts = Accepts::PREDICATES;

    fn consume<'h>(h: &'h Ctx, own: &mut [Value<'h>], _: Value<'h>, index: usize) -> Res<After<'h>> {
        cut_when_false(h, own, index, both)
    }

    fn finish<'h>(h: &'h Ctx, own: &mut [Value<'h>]) -> Res<Value<'h>> {
        cut_behind_all(h, own, both)
    }
}
