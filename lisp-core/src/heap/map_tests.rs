//! Maps against `BTreeMap`, with one bit of the hash per level and with colliding keys: deep trees, and collision nodes
//! at their ends.

use super::*;
use std::collections::BTreeMap;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// The first integers with equal hashes.
const PAIRS: [[i64; 2]; 6] = [
    [83_975, 174_235],
    [188_706, 199_262],
    [52_465, 203_802],
    [142_437, 213_907],
    [86_254, 218_948],
    [171_702, 235_939],
];

/// Integers in pairs with equal hashes.
fn colliding(h: &Heap) -> Vec<i64> {
    for [one, other] in PAIRS {
        let hash = |key| h.hash(Value::Int(key)).expect("a hash");
        assert_eq!(hash(one), hash(other), "the hash has changed: look for other pairs");
    }
    PAIRS.concat()
}

fn check<'h>(h: &'h Heap, map: &'h Map<'h>, model: &BTreeMap<i64, i64>, keys: &[i64]) {
    assert_eq!(map.len(), model.len());
    for &key in keys {
        let got = map.get(h, Value::Int(key)).expect("a value or none");
        let got = got.map(|v| if let Value::Int(i) = v { i } else { i64::MIN });
        assert_eq!(got, model.get(&key).copied(), "key {key}");
    }
    let entries: Vec<(i64, i64)> = map
        .entries(h)
        .expect("entries")
        .iter()
        .map(|(k, v)| if let (Value::Int(k), Value::Int(v)) = (k, v) { (k, v) } else { (i64::MIN, 0) })
        .collect();
    assert_eq!(entries, model.iter().map(|(k, v)| (*k, *v)).collect::<Vec<_>>());
}

#[test]
fn every_version_of_a_map_is_like_its_model() {
    let h = Heap::new(1, usize::MAX);
    let mut keys = colliding(&h);
    keys.extend(-90..90);
    let mut random = Random(1);
    let mut versions = vec![(h.empty_map().expect("a map"), BTreeMap::new())];
    let (rounds, apart, large) = if cfg!(miri) { (250, 50, SMALL) } else { (3_000, 7, SMALL + SMALL / 2) };
    for round in 0..rounds {
        let at = if random.below(8) > 0 { versions.len() - 1 } else { random.below(versions.len() as u64) as usize };
        let (map, mut model) = versions[at].clone();
        let key = keys[random.below(keys.len() as u64) as usize];
        // Alternates between growing and shrinking.
        let map = if random.below(10) < if round / 300 % 2 == 0 { 7 } else { 3 } {
            model.insert(key, round);
            h.assoc(map, Value::Int(key), Value::Int(round)).expect("a map")
        } else {
            model.remove(&key);
            h.dissoc(map, Value::Int(key)).expect("a map")
        };
        versions.push((map, model));
    }
    assert!(versions.iter().any(|v| v.1.len() > large), "no version is a tree");
    for (map, model) in versions.iter().step_by(apart) {
        check(&h, map, model, &keys);
    }
}

#[test]
fn a_map_built_at_once_is_like_one_built_by_and_by() {
    let h = Heap::new(1, usize::MAX);
    let mut keys = colliding(&h);
    keys.extend(0..if cfg!(miri) { 50 } else { 200 });
    let mut random = Random(2);
    let sizes: &[usize] = if cfg!(miri) { &[SMALL, 40] } else { &[1, SMALL, SMALL + 1, 40, 150, 400] };
    for &size in sizes {
        let builder = h.map_builder(0).expect("a builder");
        let (mut map, mut model) = (h.empty_map().expect("a map"), BTreeMap::new());
        for i in 0..size as i64 {
            let key = keys[random.below(keys.len() as u64) as usize];
            builder.insert(&h, Value::Int(key), Value::Int(i)).expect("room");
            map = h.assoc(map, Value::Int(key), Value::Int(i)).expect("a map");
            model.insert(key, i);
        }
        let built = builder.finish(&h).expect("a map");
        check(&h, built, &model, &keys);
        check(&h, map, &model, &keys);
        assert!(h.equal(Value::Map(built), Value::Map(map)).expect("an answer"));
    }
}

/// Names, some of which are keyword/string pairs or differ only in hyphens and underscores.
fn names(h: &Heap) -> Vec<(bool, String, Value<'_>)> {
    let long = "a-b_".repeat(20);
    let names = ["a", "b", "a-b", "a_b", "a-b-c", "a_b-c", "a_b_c", &long, &long.replace('-', "_")];
    let more = (0..20).map(|i| format!("k-{i}"));
    let names = names.iter().map(|name| (*name).to_owned()).chain(more);
    let both = names.flat_map(|name| [(true, name.clone()), (false, name)]);
    both.map(|(keyword, name)| {
        let value = if keyword { h.keyword(&name) } else { h.str(&name) };
        (keyword, name, value.expect("room"))
    })
    .collect()
}

type Named = BTreeMap<(bool, String), i64>;

/// The rule of `counterpart.rs`, restated.
fn meant(model: &Named, keyword: bool, name: &str) -> (bool, String) {
    let spelt = name.replace('-', "_");
    let all = [(keyword, name), (!keyword, name), (keyword, &*spelt), (!keyword, &*spelt)];
    let written = if keyword { &all[..] } else { &all[..2] };
    let key = written.iter().map(|(keyword, name)| (*keyword, (*name).to_owned())).find(|key| model.contains_key(key));
    key.unwrap_or((keyword, name.to_owned()))
}

#[test]
fn counterparts_are_found_in_maps_of_every_size() {
    let h = Heap::new(1, usize::MAX);
    let names = names(&h);
    let mut random = Random(3);
    let mut trees = 0;
    for size in [3, SMALL, 2 * SMALL, 4 * SMALL] {
        let (mut map, mut model) = (h.empty_map().expect("a map"), Named::new());
        for round in 0..2_000 {
            let (keyword, name, key) = &names[random.below(names.len() as u64) as usize];
            let here = meant(&model, *keyword, name);
            let at = map.meant(&h, *key).expect("a key");
            let is = |value: Value<'_>| match value {
                Value::Keyword(_, s) => here.0 && s.text() == here.1,
                Value::Str(s) => !here.0 && s.text() == here.1,
                _ => false,
            };
            assert!(is(at), "{name} as a keyword {keyword} means {here:?}");
            if model.len() < size && random.below(10) < 7 {
                // Half of the keys are inserted exactly as written: both of a pair may exist.
                let exact = random.below(2) == 0;
                let key_of = if exact { (*keyword, name.clone()) } else { here };
                model.insert(key_of, round);
                map = match exact {
                    true => h.assoc(map, *key, Value::Int(round)).expect("a map"),
                    false => h.assoc_meant(map, map, *key, Value::Int(round)).expect("a map"),
                };
            } else {
                model.remove(&here);
                map = h.dissoc(map, at).expect("a map");
            }
            trees += usize::from(map.shape().is_none());
            assert_eq!(map.len(), model.len());
            let got = map.get(&h, *key).expect("a value or none");
            assert_eq!(got.and_then(Value::as_f64), model.get(&(*keyword, name.clone())).map(|n| *n as f64));
        }
    }
    assert!(trees > 1_000, "{trees} trees");
}

#[test]
fn a_vector_is_found_as_a_key_wherever_it_is_one() {
    let h = Heap::new(1, usize::MAX);
    for size in [0, 1, SMALL as i64 - 1, 100] {
        let mut map = h.empty_map().expect("a map");
        for i in 0..size {
            map = h.assoc(map, Value::Int(i), Value::Nil).expect("a map");
        }
        let key = h.vector(&[Value::Int(1), Value::Int(2)]).expect("a vector");
        assert!(map.get_vector(&h, key).expect("none").is_none());
        let with = h.assoc(map, key, Value::Int(7)).expect("a map");
        assert!(matches!(with.get_vector(&h, key), Ok(Some(Value::Int(7)))));
        let built = h.map(with.entries(&h).expect("entries").iter().collect::<Vec<_>>().into_iter()).expect("a map");
        assert!(matches!(built, Value::Map(m) if matches!(m.get_vector(&h, key), Ok(Some(Value::Int(7))))));
        let without = h.dissoc(with, key).expect("a map");
        assert!(without.get_vector(&h, key).expect("none").is_none());
    }
}
