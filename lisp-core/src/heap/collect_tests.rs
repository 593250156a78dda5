//! Compaction of random graphs: everything reached is the same afterwards, with the same sharing, and nothing else is
//! left.

use super::*;
use crate::heap::{Store, Trace};
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

struct Roots;

// SAFETY: a list of values has no cells of its own, and `trace` passes on each value.
unsafe impl Trace for Roots {
    type Context = Box<Heap>;
    type In<'h> = Vec<Value<'h>>;

    fn trace(roots: &mut Vec<Value<'static>>, collector: &mut Collector, from: usize, count: usize) -> Option<usize> {
        let end = from.saturating_add(count).min(roots.len());
        for value in &mut roots[from..end] {
            *value = collector.value(*value);
        }
        (end < roots.len()).then_some(end)
    }

    fn release(_: &mut Self::In<'static>, _: &[bool]) -> Vec<usize> {
        Vec::new()
    }

    fn result(_: &Vec<Value<'static>>) -> Value<'static> {
        Value::Nil
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

/// Creates a value from some of the earlier ones.
fn grow<'h>(h: &'h Heap, random: &mut Random, all: &[Value<'h>]) -> Value<'h> {
    let pick = |random: &mut Random| all[random.below(all.len())];
    let items: Vec<Value<'h>> = (0..random.below(6)).map(|_| pick(random)).collect();
    let old = pick(random);
    let seldom = random.below(10) == 0;
    let made = match (random.below(9), old) {
        (0, Value::Vector(v)) => h.slice(v, random.below(v.len() + 1), v.len()),
        (1, Value::Vector(v)) => h.conj(v, pick(random)),
        (2, Value::Vector(v)) => h.cons(pick(random), v),
        (0..=2, Value::Map(m)) => h.assoc(m, Value::Int(random.below(60) as i64), pick(random)).map(Value::Map),
        (3, _) => h.str(&"text ".repeat(random.below(if seldom { 200 } else { 4 }))),
        (4, _) => h.map(
            (0..random.below(if cfg!(miri) { 20 } else { 50 }))
                .map(|i| (Value::Int((i * 37 % 53) as i64), all[i % all.len()]))
                .collect::<Vec<_>>()
                .into_iter(),
        ),
        (5, _) => h.composed(crate::heap::Compose::Comp, &items),
        (6, _) => Ok(Value::Int(random.below(1_000) as i64)),
        _ => h.vector(&items),
    };
    made.expect("room")
}

/// Returns the address of an object; `None` for other values.
fn address(v: Value<'_>) -> Option<usize> {
    Some(match v {
        Value::Str(s) => std::ptr::from_ref(s) as usize,
        Value::Vector(v) => std::ptr::from_ref(v) as usize,
        Value::Map(m) => std::ptr::from_ref(m) as usize,
        Value::Composed(c) => std::ptr::from_ref(c) as usize,
        _ => return None,
    })
}

/// Returns the graph that the roots reach, object by object in the order of a walk, with numbers for addresses. Two
/// graphs are equal, with the same sharing, if these lists are.
fn graph<'h>(h: &'h Heap, roots: &[Value<'h>]) -> Vec<String> {
    let mut ids: HashMap<usize, usize> = HashMap::new();
    let mut waiting: Vec<Value<'h>> = Vec::new();
    let mut out = Vec::new();
    let mut name = |v: Value<'h>, waiting: &mut Vec<Value<'h>>| match (v, address(v)) {
        (Value::Int(i), _) => i.to_string(),
        (_, Some(address)) => {
            let next = ids.len();
            let id = *ids.entry(address).or_insert_with(|| {
                waiting.push(v);
                next
            });
            format!("#{id}")
        }
        (other, None) => other.type_name().to_owned(),
    };
    let list = |items: &[Value<'h>],
                waiting: &mut Vec<Value<'h>>,
                name: &mut dyn FnMut(Value<'h>, &mut Vec<Value<'h>>) -> String| {
        items.iter().map(|v| name(*v, waiting)).collect::<Vec<_>>().join(" ")
    };
    out.push(list(roots, &mut waiting, &mut name));
    while let Some(v) = waiting.pop() {
        let parts = match v {
            Value::Vector(v) => list(v.items(), &mut waiting, &mut name),
            Value::Composed(c) => list(c.parts(), &mut waiting, &mut name),
            Value::Map(m) => {
                let entries = m.entries_as_written(h).expect("room");
                let entries: Vec<Value<'h>> = entries.iter().flat_map(|(k, v)| [k, v]).collect();
                list(&entries, &mut waiting, &mut name)
            }
            Value::Str(s) => s.text().to_owned(),
            _ => String::new(),
        };
        out.push(format!("{}: {parts}", v.type_name()));
    }
    out
}

#[test]
fn random_graphs_are_the_same_afterwards() {
    let (seeds, steps) = if cfg!(miri) { (2, 10) } else { (60, 120) };
    for seed in 0..seeds {
        let mut random = Random(seed);
        let mut store: Store<Roots> = Store::new(Box::new(Heap::new(1, usize::MAX)), Vec::new());
        for round in 0..4 {
            // What the walks of the check allocate is garbage in the first compaction and freed in the second.
            let before = store.enter(|h, roots, _| {
                let mut all = std::mem::take(roots);
                all.push(Value::Int(round));
                for _ in 0..steps {
                    let value = grow(h, &mut random, &all);
                    all.push(value);
                }
                // A few of them stay.
                roots.extend((0..10).map(|_| all[random.below(all.len())]));
                graph(h, roots)
            });
            while !store.collect_some(random.below(2_000)) {}
            let live = store.heap().account().used;
            let after = store.enter(|h, roots, _| graph(h, roots));
            assert_eq!(before, after, "seed {seed}, round {round}");
            store.collect();
            assert_eq!(store.heap().account().used, live, "seed {seed}, round {round}: garbage was copied");
        }
    }
}

/// Roots whose tracing fails once, from the first string on, as if there were no memory for its copy.
struct Failing;

thread_local! {
    static FAILS: Cell<bool> = const { Cell::new(false) };
}

// SAFETY: as for `Roots`; a panic ends the compaction.
unsafe impl Trace for Failing {
    type Context = Box<Heap>;
    type In<'h> = Vec<Value<'h>>;

    fn trace(roots: &mut Vec<Value<'static>>, collector: &mut Collector, from: usize, count: usize) -> Option<usize> {
        let text = roots.iter().position(|value| matches!(value, Value::Str(_)));
        if FAILS.get() && text.is_some_and(|text| (from..from.saturating_add(count)).contains(&text)) {
            FAILS.set(false);
            panic!("no memory");
        }
        Roots::trace(roots, collector, from, count)
    }

    fn release(_: &mut Self::In<'static>, _: &[bool]) -> Vec<usize> {
        Vec::new()
    }

    fn result(roots: &Vec<Value<'static>>) -> Value<'static> {
        roots[0]
    }
}

/// A compaction that panicked is neither continued nor is its state read.
#[test]
fn a_heap_is_not_entered_again_after_a_panic_of_its_compaction() {
    let broken = || {
        let mut store: Store<Failing> = Store::new(Box::new(Heap::new(1, usize::MAX)), Vec::new());
        store.enter(|h, roots, _| {
            let item = h.vector(&[Value::Int(1)]).expect("room");
            *roots = vec![item, item, h.str("text").expect("room")];
        });
        // The first root has been updated when the last one fails.
        assert!(!store.collect_some(0));
        FAILS.set(true);
        assert!(catch_unwind(AssertUnwindSafe(|| store.collect())).is_err());
        store
    };
    let is_refused = |work: &mut dyn FnMut()| {
        let panic = catch_unwind(AssertUnwindSafe(work)).expect_err("the heap is lost");
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"the heap is lost: a compaction of it has panicked"));
    };
    let mut store = broken();
    is_refused(&mut || store.enter(|_, _, _| ()));
    is_refused(&mut || store.collect());
    is_refused(&mut || assert!(store.import(Vec::new(), |_, _, _| ())));
    let mut lost = Some(store);
    is_refused(&mut || drop(lost.take().map(Store::suspend)));
    let above: Store<Roots> = Store::new(Box::new(Heap::new(1, usize::MAX)), Vec::new());
    let (above, mut lost) = (above.suspend(), Some(broken()));
    is_refused(&mut || drop(lost.take().map(|lost| lost.export(&above, usize::MAX))));
}

/// Returns the bytes left after a compaction with the roots that `build` returns.
fn live_after(build: impl for<'h> FnOnce(&'h Heap) -> Vec<Value<'h>>) -> usize {
    let mut store: Store<Roots> = Store::new(Box::new(Heap::new(1, usize::MAX)), Vec::new());
    store.enter(|h, roots, _| *roots = build(h));
    store.collect();
    store.heap().account().used
}

/// Shared parts of objects are copied once too: the keys of maps of one shape, the nodes of a tree's versions, the
/// cells of a vector's views, the text of a keyword.
#[test]
#[cfg_attr(miri, ignore = "it looks at sizes only, and takes long")]
fn what_is_shared_is_copied_once() {
    const MANY: i64 = 1_000;
    let of_a_shape = |count: i64| {
        live_after(|h| {
            let keys: Vec<_> = (0..8).map(|k| (Value::Int(k), Value::Nil)).collect();
            let Value::Map(first) = h.map(keys.into_iter()).expect("room") else { return Vec::new() };
            (0..count).map(|i| Value::Map(h.assoc(first, Value::Int(0), Value::Int(i)).expect("room"))).collect()
        })
    };
    let row = (of_a_shape(MANY) - of_a_shape(1)) / (MANY as usize - 1);
    assert!(row < 8 * 16 + 64, "a map of a shape that is there takes {row} bytes");
    let versions = |count: i64| {
        live_after(|h| {
            let Value::Map(base) =
                h.map((0..MANY).map(|i| (Value::Int(i), Value::Int(i))).collect::<Vec<_>>().into_iter()).expect("room")
            else {
                return Vec::new();
            };
            (0..count).map(|i| Value::Map(h.assoc(base, Value::Int(i), Value::Nil).expect("room"))).collect()
        })
    };
    let (one, more) = (versions(1), versions(101) - versions(1));
    assert!(more / 100 < one / 10, "a version of a tree of {one} bytes takes {} more", more / 100);
    let views = live_after(|h| {
        let Value::Vector(v) = h.vector_from(MANY as usize, (0..MANY).map(Value::Int)).expect("room") else {
            return Vec::new();
        };
        (0..100).map(|i| h.slice(v, i, v.len()).expect("room")).collect()
    });
    assert!(views < 16 * MANY as usize + 100 * 100, "{views}");
    let names = live_after(|h| {
        let name = h.keyword(&"name".repeat(100)).expect("room");
        (0..100).map(|_| h.vector(&[name]).expect("room")).collect()
    });
    assert!(names < 400 + 100 * 150, "{names}");
}
