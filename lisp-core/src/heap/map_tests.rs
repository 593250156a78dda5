//! Maps against `BTreeMap`, with one bit of the hash a level and with keys whose hashes collide: deep trees, and nodes
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

/// The first integers of the same hash.
const PAIRS: [[i64; 2]; 6] = [
    [83_975, 174_235],
    [188_706, 199_262],
    [52_465, 203_802],
    [142_437, 213_907],
    [86_254, 218_948],
    [171_702, 235_939],
];

/// Integers in pairs of the same hash.
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
    keys.extend(-30..30);
    let mut random = Random(1);
    let mut versions = vec![(h.empty_map().expect("a map"), BTreeMap::new())];
    for round in 0..if cfg!(miri) { 330 } else { 3_000 } {
        let at = if random.below(8) > 0 { versions.len() - 1 } else { random.below(versions.len() as u64) as usize };
        let (map, mut model) = versions[at].clone();
        let key = keys[random.below(keys.len() as u64) as usize];
        // Growing and shrinking by turns.
        let map = if random.below(10) < if round / 300 % 2 == 0 { 7 } else { 3 } {
            model.insert(key, round);
            h.assoc(map, Value::Int(key), Value::Int(round)).expect("a map")
        } else {
            model.remove(&key);
            h.dissoc(map, Value::Int(key)).expect("a map")
        };
        versions.push((map, model));
    }
    assert!(versions.iter().any(|v| v.1.len() > 2 * SMALL), "no version is a tree");
    for (map, model) in versions.iter().step_by(7) {
        check(&h, map, model, &keys);
    }
}

#[test]
fn a_map_built_at_once_is_like_one_built_by_and_by() {
    let h = Heap::new(1, usize::MAX);
    let mut keys = colliding(&h);
    keys.extend(0..200);
    let mut random = Random(2);
    for size in [1, SMALL, SMALL + 1, 40, 150, if cfg!(miri) { 1 } else { 400 }] {
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
