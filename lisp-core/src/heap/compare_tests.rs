//! Equality, hashes and order against a model in which equal values have the same text. Each tree level uses one bit of
//! the hash, and the values include keys with colliding hashes, and functions, which have no order among them.

use super::*;
use crate::heap::Compose;
use num_bigint::BigInt;
use num_traits::FromPrimitive;
use std::collections::BTreeMap;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

/// A model of a value.
#[derive(Clone)]
enum Made {
    Int(i64),
    Half(i64),
    Text(String),
    Word(String),
    Function(usize),
    Vector(Vec<Made>),
    Set(Vec<Made>),
    Map(Vec<(Made, Made)>),
}

/// Integers: the first two have the same hash, and so do the next two.
const INTS: [i64; 8] = [83_975, 174_235, 188_706, 199_262, 0, 1, 2, -1];

impl Made {
    fn random(random: &mut Random, depth: usize) -> Made {
        // Most trees contain integers of their own, so that they do not need 33 deep keys each time.
        let many = |random: &mut Random| if random.below(6) == 0 { 33 + random.below(8) } else { 0 };
        match random.below(if depth == 0 { 5 } else { 9 }) {
            0 => Made::Int(INTS[random.below(INTS.len())]),
            1 => Made::Half(random.below(3) as i64),
            2 => Made::Text(["", "a", "b"][random.below(3)].to_owned()),
            3 => Made::Word(["a", "b"][random.below(2)].to_owned()),
            4 => Made::Function(random.below(4)),
            5 | 6 => Made::Vector(Made::some(random, 3, depth)),
            7 => {
                let own = (0..many(random)).map(|i| Made::Int(i as i64)).collect::<Vec<_>>();
                Made::Set(Made::some(random, 5, depth).into_iter().chain(own).collect())
            }
            _ => {
                let own = (0..many(random)).map(|i| (Made::Int(i as i64), Made::Int(0))).collect::<Vec<_>>();
                let count = random.below(5);
                let drawn = |_| (Made::random(random, depth - 1), Made::random(random, depth - 1));
                Made::Map((0..count).map(drawn).collect::<Vec<_>>().into_iter().chain(own).collect())
            }
        }
    }

    fn some(random: &mut Random, max: usize, depth: usize) -> Vec<Made> {
        (0..random.below(max)).map(|_| Made::random(random, depth - 1)).collect()
    }

    /// Returns a copy with another value somewhere.
    fn changed(&self, random: &mut Random) -> Made {
        let mut made = self.clone();
        let parts: &mut [Made] = match &mut made {
            Made::Vector(all) | Made::Set(all) => all,
            Made::Map(all) if !all.is_empty() => {
                let at = random.below(all.len());
                let (key, value) = &mut all[at];
                let part = if random.below(2) == 0 { key } else { value };
                std::slice::from_mut(part)
            }
            _ => &mut [],
        };
        if parts.is_empty() || random.below(4) == 0 {
            return Made::random(random, 1);
        }
        let at = random.below(parts.len());
        parts[at] = parts[at].changed(random);
        made
    }

    /// Returns the text, which is the same for equal values.
    fn text(&self) -> String {
        match self {
            Made::Int(i) => i.to_string(),
            Made::Half(i) => format!("{i}.5"),
            Made::Text(text) => format!("{text:?}"),
            Made::Word(text) => format!(":{text}"),
            Made::Function(n) => format!("f{n}"),
            Made::Vector(items) => format!("{:?}", items.iter().map(Made::text).collect::<Vec<_>>()),
            Made::Set(members) => {
                format!("set {:?}", members.iter().map(|m| (m.text(), ())).collect::<BTreeMap<_, _>>())
            }
            Made::Map(entries) => {
                format!("{:?}", entries.iter().map(|(k, v)| (k.text(), v.text())).collect::<BTreeMap<_, _>>())
            }
        }
    }

    /// Builds the value in a random order.
    fn value<'h>(&self, h: &'h Heap, functions: &[Value<'h>], random: &mut Random) -> Value<'h> {
        let whole_float = random.below(3) == 0;
        let mut keyed = |keys: &mut dyn Iterator<Item = (&Made, Option<&Made>)>| {
            let distinct: BTreeMap<String, (&Made, Option<&Made>)> = keys.map(|(k, v)| (k.text(), (k, v))).collect();
            let mut entries: Vec<_> = distinct.into_values().collect();
            random.shuffle(&mut entries);
            let made = |one: &Made, random: &mut Random| one.value(h, functions, random);
            let entries: Vec<(Value<'h>, Value<'h>)> = entries
                .into_iter()
                .map(|(k, v)| (made(k, random), v.map_or(Value::Bool(true), |v| made(v, random))))
                .collect();
            let map = if random.below(2) == 0 {
                h.map(entries.into_iter())
            } else {
                let empty = h.empty_map().expect("a map");
                entries.into_iter().try_fold(empty, |map, (key, value)| h.assoc(map, key, value)).map(Value::Map)
            };
            let Ok(Value::Map(map)) = map else { panic!("a map") };
            map
        };
        match self {
            Made::Int(i) if whole_float => Value::Float(*i as f64),
            Made::Int(i) => Value::Int(*i),
            Made::Half(i) => Value::Float(*i as f64 + 0.5),
            Made::Text(text) => h.str(text).expect("a string"),
            Made::Word(text) => h.keyword(text).expect("a keyword"),
            Made::Function(n) => functions[*n],
            Made::Vector(items) => {
                let items: Vec<_> = items.iter().map(|item| item.value(h, functions, random)).collect();
                h.vector(&items).expect("a vector")
            }
            Made::Set(members) => Value::Set(keyed(&mut members.iter().map(|member| (member, None)))),
            Made::Map(entries) => Value::Map(keyed(&mut entries.iter().map(|(k, v)| (k, Some(v))))),
        }
    }
}

#[test]
fn equal_values_are_those_of_one_text() {
    let h = Heap::new(1, usize::MAX);
    let mut random = Random(1);
    let functions: Vec<_> = (0..4).map(|_| h.composed(Compose::Comp, &[]).expect("a function")).collect();
    let rounds = if cfg!(miri) { 100 } else { 20_000 };
    let (mut same, mut tied) = (0, 0);
    for round in 0..rounds {
        let one = Made::random(&mut random, 1 + round % 3);
        let other = match random.below(3) {
            0 => one.clone(),
            1 => one.changed(&mut random),
            _ => Made::random(&mut random, 2),
        };
        let (a, b) = (one.value(&h, &functions, &mut random), other.value(&h, &functions, &mut random));
        let wanted = one.text() == other.text();
        let shown = || format!("{} and {}", one.text(), other.text());
        assert_eq!(h.equal(a, b).expect("an answer"), wanted, "{}", shown());
        assert_eq!(h.same_key(b, a).expect("an answer"), wanted, "{}", shown());
        let order = h.order(a, b).expect("an order");
        assert_eq!(h.order(b, a).expect("an order"), order.reverse(), "{}", shown());
        if wanted {
            assert_eq!(order, Ordering::Equal, "{}", shown());
            assert_eq!(h.hash(a).expect("a hash"), h.hash(b).expect("a hash"), "{}", shown());
        }
        same += usize::from(wanted);
        tied += usize::from(!wanted && order == Ordering::Equal);
    }
    assert!(same > rounds / 10 && (tied > rounds / 1_000 || cfg!(miri)), "{same} the same, {tied} tied");
}

/// Numbers of all kinds share one equality, hash and order: a whole float equals its integer, however large.
#[test]
fn whole_floats_are_their_integers() {
    let h = Heap::new(1, usize::MAX);
    let mut random = Random(3);
    let mut floats = vec![0.0, -0.0, 1.0, 2f64.powi(53), 2f64.powi(63), -2f64.powi(63), 2f64.powi(64), 1e20, f64::MAX];
    floats.extend((0..1_000).map(|_| {
        let significand = (random.below(1 << 30) as f64).mul_add(2f64.powi(23), random.below(1 << 23) as f64);
        let sign = if random.below(2) == 0 { 1.0 } else { -1.0 };
        (sign * significand * 2f64.powi(random.below(970) as i32 - 60)).trunc()
    }));
    for float in floats {
        let whole = BigInt::from_f64(float).expect("a finite float");
        let (a, b) = (Value::Float(float), h.integer(&whole).expect("an integer"));
        assert!(h.equal(a, b).expect("an answer") && h.same_key(b, a).expect("an answer"), "{float}");
        assert_eq!(h.hash(a).expect("a hash"), h.hash(b).expect("a hash"), "{float}");
        assert_eq!(h.order(a, b).expect("an order"), Ordering::Equal, "{float}");
        for other in [&whole + 1, &whole - 1] {
            let other = h.integer(&other).expect("an integer");
            assert!(!h.same_key(a, other).expect("an answer") && !h.equal(other, a).expect("an answer"), "{float}");
            assert_eq!(h.order(a, other).expect("an order"), h.order(b, other).expect("an order"), "{float}");
        }
    }
}

/// The order is total: no three values form a cycle.
#[test]
fn the_order_goes_round_in_no_circle() {
    let h = Heap::new(1, usize::MAX);
    let mut random = Random(2);
    let functions: Vec<_> = (0..4).map(|_| h.composed(Compose::Comp, &[]).expect("a function")).collect();
    for round in 0..if cfg!(miri) { 20 } else { 3_000 } {
        let one = Made::random(&mut random, 1 + round % 3);
        let makes = [one.clone(), one.changed(&mut random), one.changed(&mut random)];
        let mut three = makes.map(|made| made.value(&h, &functions, &mut random));
        let order = |a, b| h.order(a, b).expect("an order");
        three.sort_by(|&a, &b| order(a, b));
        assert_ne!(order(three[0], three[2]), Ordering::Greater, "{}", one.text());
        assert!(order(three[0], three[2]) != Ordering::Equal || order(three[0], three[1]) == Ordering::Equal);
    }
}

/// A level of a deep value.
type Level = for<'h> fn(&'h Heap, Value<'h>) -> Res<Value<'h>>;

/// Values inside others, as an element, a value, a key and a member, alone and among others.
const LEVELS: &[Level] = &[
    |h, v| h.vector(&[v]),
    |h, v| h.vector(&[Value::Int(0), v, Value::Int(1)]),
    |h, v| h.map([(Value::Int(0), v)].into_iter()),
    |h, v| h.map([(v, Value::Int(0))].into_iter()),
    |h, v| h.set([v].into_iter()),
    |h, v| h.set([v, Value::Int(1), h.vector(&[])?].into_iter()),
];

#[test]
fn deep_values_are_compared_without_native_stack() {
    let check = || {
        let depth = if cfg!(miri) { 500 } else { 100_000 };
        for (i, level) in LEVELS.iter().enumerate() {
            let h = Heap::new(1, usize::MAX);
            let nested = |seed| (0..depth).try_fold(Value::Int(seed), |v, _| level(&h, v)).expect("a value");
            let (a, b, c) = (nested(1), nested(1), nested(2));
            assert!(h.equal(a, b).is_ok_and(|same| same), "level {i}");
            assert!(!h.equal(a, c).expect("an answer"), "level {i}");
            assert_eq!(h.order(a, b).expect("an order"), Ordering::Equal);
            assert_eq!(h.order(a, c).expect("an order"), Ordering::Less);
            assert_eq!(h.hash(a).expect("a hash"), h.hash(b).expect("a hash"));
            let spent = h.spent();
            assert!(!h.equal(a, c).expect("an answer"));
            assert!(h.spent() - spent < depth as u64 * 12, "level {i} costs {}", h.spent() - spent);
        }
    };
    let thread = std::thread::Builder::new().stack_size(128 << 10).spawn(check).expect("a thread");
    thread.join().expect("no panic");
}
