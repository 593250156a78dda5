//! The kinds of composed functions and endless sequences in a saved session: their names, and the parts of each.

use crate::heap::{Compose, Source, Step, Value};

const COMPOSED: &[(&str, Compose)] = &[
    ("partial", Compose::Partial),
    ("comp", Compose::Comp),
    ("juxt", Compose::Juxt),
    ("complement", Compose::Complement),
    ("constantly", Compose::Constantly),
    ("fnil", Compose::Fnil),
    ("every-pred", Compose::EveryPred),
    ("some-fn", Compose::SomeFn),
    ("reduced", Compose::Reduced),
    ("completing", Compose::Completing),
    ("map", Compose::Step(Step::Map)),
    ("map-row", Compose::Step(Step::MapRow)),
    ("filter", Compose::Step(Step::Filter)),
    ("remove", Compose::Step(Step::Remove)),
    ("keep", Compose::Step(Step::Keep)),
    ("map-indexed", Compose::Step(Step::MapIndexed)),
    ("keep-indexed", Compose::Step(Step::KeepIndexed)),
    ("mapcat", Compose::Step(Step::Mapcat)),
    ("cat", Compose::Step(Step::Cat)),
    ("take", Compose::Step(Step::Take)),
    ("drop", Compose::Step(Step::Drop)),
    ("take-while", Compose::Step(Step::TakeWhile)),
    ("drop-while", Compose::Step(Step::DropWhile)),
    ("take-nth", Compose::Step(Step::TakeNth)),
    ("distinct", Compose::Step(Step::Distinct)),
    ("dedupe", Compose::Step(Step::Dedupe)),
    ("interpose", Compose::Step(Step::Interpose)),
    ("partition-by", Compose::Step(Step::PartitionBy)),
    ("partition-all", Compose::Step(Step::PartitionAll)),
    ("windows", Compose::Step(Step::Windows)),
    ("prefix", Compose::Step(Step::Prefix)),
    ("reductions", Compose::Step(Step::Reductions)),
];

const ENDLESS: &[(&str, Source)] = &[
    ("range", Source::Range),
    ("repeat", Source::Repeat),
    ("cycle", Source::Cycle),
    ("iterate", Source::Iterate),
    ("repeatedly", Source::Repeatedly),
    ("zip", Source::Zip),
];

/// Returns the name of a kind of composed function. `None` for endless sequences, which are separate values.
pub(super) fn name_of(kind: Compose) -> Option<&'static str> {
    COMPOSED.iter().find(|(_, known)| *known == kind).map(|(name, _)| *name)
}

/// Returns the name of a source of endless sequences.
pub(super) fn name_of_source(source: Source) -> Option<&'static str> {
    ENDLESS.iter().find(|(_, known)| *known == source).map(|(name, _)| *name)
}

/// Returns the kind of composed function with this name.
pub(super) fn composed(name: &str) -> Option<Compose> {
    COMPOSED.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
}

/// Returns the source with this name.
pub(super) fn source(name: &str) -> Option<Source> {
    ENDLESS.iter().find(|(known, _)| *known == name).map(|(_, source)| *source)
}

fn is_count(v: Value<'_>, least: i64) -> bool {
    matches!(v, Value::Int(n) if n >= least)
}

/// Returns true if a program could create such a function with these parts.
pub(super) fn fits(kind: Compose, parts: &[Value<'_>]) -> bool {
    use Step::*;
    match kind {
        Compose::Partial | Compose::Juxt | Compose::EveryPred | Compose::SomeFn => !parts.is_empty(),
        Compose::Comp => parts.len() > 1,
        Compose::Complement | Compose::Constantly | Compose::Reduced => parts.len() == 1,
        Compose::Fnil => matches!(parts.len(), 2..=4),
        Compose::Completing => matches!(parts.len(), 1..=2),
        Compose::Step(step) => match (step, parts) {
            (Cat | Distinct | Dedupe, []) => true,
            (MapRow, [_, n]) => is_count(*n, 0),
            (Take | Drop, [n]) => matches!(n, Value::Int(_)),
            (TakeNth | PartitionAll, [n]) => is_count(*n, 1),
            (Windows, [n, every]) => is_count(*n, 1) && is_count(*every, 1),
            (Prefix, [before]) => matches!(before, Value::Vector(_)),
            (Reductions, parts) => matches!(parts.len(), 1..=2),
            (
                Map | Filter | Remove | Keep | MapIndexed | KeepIndexed | Mapcat | TakeWhile | DropWhile | Interpose
                | PartitionBy,
                [_],
            ) => true,
            _ => false,
        },
        Compose::Source(_) => false,
    }
}

/// Returns true if a program could create an endless sequence of this source with these parts.
pub(super) fn fits_source(source: Source, parts: &[Value<'_>]) -> bool {
    let is_step = |v: &Value<'_>| matches!(v, Value::Composed(c) if matches!(c.kind, Compose::Step(_)));
    let [Value::Vector(steps), own @ ..] = parts else { return false };
    if !steps.items().iter().all(is_step) {
        return false;
    }
    match (source, own) {
        (Source::Range, [start, by]) => start.is_number() && by.is_number(),
        (Source::Repeat | Source::Repeatedly, [_]) | (Source::Iterate, [_, _]) => true,
        (Source::Cycle, [Value::Vector(all), Value::Int(at)]) => usize::try_from(*at).is_ok_and(|at| at < all.len()),
        (Source::Zip, [_, ..]) => own.iter().all(|v| matches!(v, Value::Endless(_))),
        _ => false,
    }
}
