//! Random programs over random data: what a check says never happens does not happen, and what a run notes has not happened.

use lisp_runtime::{Check, Engine, Input};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;

const NAMES: [&str; 10] = ["total", "totals", "totla", "status", "statsu", "id", "ids", "name", "nmae", "user-name"];
const LITERALS: [&str; 9] = [":paid", "\"paid\"", "7", "\"7\"", "nil", ":total", "\"total\"", "1.5", "true"];

/// A place where a key is read, or values are compared.
struct Spot {
    start: usize,
    end: usize,
    key: Option<&'static str>,
}

/// A program, and the same program printing the number of each spot where a key was found or a comparison held.
struct Pair {
    random: u64,
    plain: String,
    told: String,
    spots: Vec<Spot>,
    /// The local names of rows.
    rows: Vec<String>,
}

impl Pair {
    fn below(&mut self, count: usize) -> usize {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) as usize % count
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn both(&mut self, text: &str) {
        self.plain.push_str(text);
        self.told.push_str(text);
    }

    /// Writes a form that is a spot: what comes of it prints the number.
    fn spot(&mut self, key: Option<&'static str>, form: impl FnOnce(&mut Pair)) {
        let (number, start) = (self.spots.len(), self.plain.len());
        self.spots.push(Spot { start, end: start, key });
        self.told.push_str("(let [v ");
        form(self);
        let holds = if key.is_some() { "(some? v)" } else { "v" };
        let _ = write!(self.told, "] (if {holds} (do (println {number}) v) v))");
        self.spots[number].end = self.plain.len();
    }

    /// A key as a function.
    fn key_function(&mut self) {
        let key = self.pick(&NAMES);
        let (number, start) = (self.spots.len(), self.plain.len());
        let _ = write!(self.plain, ":{key}");
        let _ = write!(self.told, "(fn [m] (let [v (:{key} m)] (if (some? v) (do (println {number}) v) v)))");
        self.spots.push(Spot { start, end: self.plain.len(), key: Some(key) });
    }

    fn literal(&mut self) {
        let literal = self.pick(&LITERALS);
        self.both(literal);
    }

    fn name(&mut self) {
        let name = self.pick(&NAMES);
        self.both(&format!(":{name}"));
    }

    fn function_of_row(&mut self, body: impl FnOnce(&mut Pair)) {
        let name = format!("r{}", self.rows.len());
        self.both(&format!("(fn [{name}] "));
        self.rows.push(name);
        body(self);
        self.rows.pop();
        self.both(")");
    }

    fn rows(&mut self, depth: usize) {
        match if depth == 0 { self.below(2) } else { self.below(9) } {
            0 => self.both("data/rows"),
            1 => self.both("data/more"),
            2 => {
                self.both("(filter ");
                self.function_of_row(|pair| pair.test(depth - 1));
                self.both(" ");
                self.rows(depth - 1);
                self.both(")");
            }
            3 => {
                self.both("(map ");
                self.function_of_row(|pair| pair.row(depth - 1));
                self.both(" ");
                self.rows(depth - 1);
                self.both(")");
            }
            4 => {
                let name = self.pick(&["(sort-by ", "(filter ", "(distinct-by "]);
                self.both(name);
                self.key_function();
                self.both(" ");
                self.rows(depth - 1);
                self.both(")");
            }
            5 => {
                self.both("(mapcat second (group-by ");
                self.key_function();
                self.both(" ");
                self.rows(depth - 1);
                self.both("))");
            }
            6 => {
                self.both("(conj (vec ");
                self.rows(depth - 1);
                self.both(") ");
                self.row(depth - 1);
                self.both(")");
            }
            7 => {
                self.both("(concat ");
                self.rows(depth - 1);
                self.both(" ");
                self.rows(depth - 1);
                self.both(")");
            }
            _ => {
                self.both("(take 1 ");
                self.rows(depth - 1);
                self.both(")");
            }
        }
    }

    fn row(&mut self, depth: usize) {
        match if depth == 0 { 0 } else { self.below(9) } {
            0..=2 => match self.rows.last().cloned() {
                Some(name) if depth == 0 || self.below(4) > 0 => self.both(&name),
                _ => {
                    self.both("(first ");
                    self.rows(depth.saturating_sub(1));
                    self.both(")");
                }
            },
            3 => {
                self.both("(assoc ");
                self.row(depth - 1);
                self.both(" ");
                self.name();
                self.both(" ");
                self.scalar(depth - 1);
                self.both(")");
            }
            4 => {
                self.both("(merge ");
                self.row(depth - 1);
                self.both(" ");
                self.row(depth - 1);
                self.both(")");
            }
            5 => {
                self.both("{");
                self.name();
                self.both(" ");
                self.scalar(depth - 1);
                self.both("}");
            }
            6 => {
                let name = self.pick(&["(dissoc ", "(select-keys "]);
                self.both(name);
                self.row(depth - 1);
                self.both(if name == "(dissoc " { " " } else { " [" });
                self.name();
                self.both(if name == "(dissoc " { ")" } else { "])" });
            }
            7 => {
                self.both("(update ");
                self.row(depth - 1);
                self.both(" ");
                self.name();
                self.both(" identity)");
            }
            _ => {
                self.both("(if ");
                self.test(depth - 1);
                self.both(" ");
                self.row(depth - 1);
                self.both(" ");
                self.row(depth - 1);
                self.both(")");
            }
        }
    }

    fn scalar(&mut self, depth: usize) {
        match if depth == 0 { self.below(4) } else { self.below(10) } {
            0 => self.literal(),
            1..=3 => {
                let key = self.pick(&NAMES);
                let (before, after) = match self.below(3) {
                    0 => ("(get ".to_owned(), format!(" :{key})")),
                    1 => ("(get-in ".to_owned(), format!(" [:{key}])")),
                    _ => (format!("(:{key} "), ")".to_owned()),
                };
                self.spot(Some(key), |pair| {
                    pair.both(&before);
                    pair.row(depth.saturating_sub(1));
                    pair.both(&after);
                });
            }
            4 => {
                self.both("(or ");
                self.scalar(depth - 1);
                self.both(" ");
                self.scalar(depth - 1);
                self.both(")");
            }
            5 => {
                self.both("(if ");
                self.test(depth - 1);
                self.both(" ");
                self.scalar(depth - 1);
                self.both(" ");
                self.scalar(depth - 1);
                self.both(")");
            }
            6 => {
                self.both("(reduce (fn [a r] (or a ");
                self.rows.push("r".to_owned());
                self.scalar(depth - 1);
                self.rows.pop();
                self.both(")) nil ");
                self.rows(depth - 1);
                self.both(")");
            }
            7 => {
                self.both("(loop [n 2 x ");
                self.scalar(depth - 1);
                self.both("] (if (pos? n) (recur (dec n) ");
                self.scalar(depth - 1);
                self.both(") x))");
            }
            8 => {
                self.both("(let [f ");
                self.function_of_row(|pair| pair.scalar(depth - 1));
                self.both("] (or (f ");
                self.row(depth - 1);
                self.both(") (f ");
                self.row(depth - 1);
                self.both(")))");
            }
            _ => {
                let key = self.pick(&NAMES);
                self.both("(let [{:keys [");
                let (number, start) = (self.spots.len(), self.plain.len());
                self.spots.push(Spot { start, end: start + key.len(), key: Some(key) });
                self.both(&format!("{key}]}} "));
                self.row(depth - 1);
                self.both("] ");
                let _ = write!(self.told, "(if (some? {key}) (println {number})) ");
                self.both(&format!("{key})"));
            }
        }
    }

    fn test(&mut self, depth: usize) {
        match if depth == 0 { 0 } else { self.below(7) } {
            0..=2 => self.spot(None, |pair| {
                pair.both("(= ");
                pair.scalar(depth.saturating_sub(1));
                pair.both(" ");
                pair.literal();
                pair.both(")");
            }),
            3 => self.spot(None, |pair| {
                pair.both("(contains? #{:paid ");
                let other = pair.pick(&["\"paid\"", ":open", ":id", "\"7\""]);
                pair.both(other);
                pair.both("} ");
                pair.scalar(depth - 1);
                pair.both(")");
            }),
            4 => self.spot(None, |pair| {
                pair.both("(case ");
                pair.scalar(depth - 1);
                let constant = pair.pick(&[":paid", "\"paid\"", "(:paid :open)"]);
                pair.both(&format!(" {constant} true false)"));
            }),
            5 => {
                self.both("(some ");
                self.function_of_row(|pair| pair.test(depth - 1));
                self.both(" ");
                self.rows(depth - 1);
                self.both(")");
            }
            _ => {
                self.both("(nil? ");
                self.scalar(depth - 1);
                self.both(")");
            }
        }
    }

    fn data(&mut self) -> Value {
        let keys: Vec<&str> = (0..3).map(|_| self.pick(&NAMES)).collect();
        let rows = (0..1 + self.below(4)).map(|_| {
            let mut row = Map::new();
            for key in &keys {
                let value = self.pick(&[0, 1, 2, 2, 2, 3, 4, 5, 6]);
                let value =
                    [json!(7), json!("7"), json!("paid"), json!(null), json!(1.5), json!("total"), json!(":paid")]
                        [value]
                        .clone();
                if self.below(5) > 0 {
                    row.insert(key.replace('-', "_"), value);
                }
            }
            Value::Object(row)
        });
        Value::Array(rows.collect())
    }
}

/// The program with this number, with its data.
fn pair(number: u64) -> (Pair, Value, Value) {
    let random = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut pair = Pair { random, plain: String::new(), told: String::new(), spots: Vec::new(), rows: Vec::new() };
    let (rows, more) = (pair.data(), pair.data());
    pair.both("[(mapv ");
    pair.function_of_row(|pair| pair.scalar(4));
    pair.both(" ");
    pair.rows(2);
    pair.both(") ");
    pair.scalar(4);
    pair.both("]");
    (pair, rows, more)
}

/// How many programs: `PTC_CHECKED_PROGRAMS`.
#[test]
fn what_is_found_and_noted_is_never_contradicted() {
    let programs = std::env::var("PTC_CHECKED_PROGRAMS").ok().and_then(|text| text.parse().ok()).unwrap_or(2_000);
    let engine = |check| Engine::builder().check(check).build().expect("an engine");
    let (checks, runs) = (engine(Check::Warn), engine(Check::Off));
    let (mut found, mut noted) = (0, 0);
    for number in 0..programs {
        let (pair, rows, more) = pair(number);
        let input = || Input::new().data("rows", &rows).data("more", &more);
        let checked = checks.eval(&pair.plain, input());
        let happened: Vec<usize> =
            runs.eval(&pair.told, input()).prints.iter().filter_map(|line| line.parse().ok()).collect();
        let shown = || format!("{number}: {}\n{rows}\n{more}\n{:?}", pair.plain, checked.warnings());
        for warning in checked.warnings() {
            let at = warning.position.expect("a position");
            let (start, end) = (at.column as usize - 1, at.end_column as usize - 1);
            // Keys that are removed or selected are found missing too; these are no spots.
            let holds = |spot: &&Spot| match spot.key.is_some() {
                true => spot.start == start && spot.end == end,
                false => spot.start <= start && end <= spot.end,
            };
            match warning.kind.name() {
                "unknown_key" | "never_equal" => {
                    let key = warning.kind.name() == "unknown_key";
                    let spots = pair.spots.iter().filter(holds).filter(|spot| spot.key.is_some() == key);
                    let Some(spot) = spots.min_by_key(|spot| spot.end - spot.start) else { continue };
                    let spot = pair.spots.iter().position(|one| std::ptr::eq(one, spot));
                    assert!(!happened.iter().any(|one| Some(*one) == spot), "{}", shown());
                    found += 1;
                }
                "key_never_found" => {
                    let name = warning.message.split(' ').next().unwrap_or_default();
                    let is_found =
                        |spot: &usize| pair.spots[*spot].key.is_some_and(|key| name.strip_prefix(':') == Some(key));
                    assert!(!happened.iter().any(is_found), "{}", shown());
                    noted += 1;
                }
                _ => {}
            }
        }
    }
    println!("{programs} programs, {found} findings, {noted} notes");
    assert!(found > programs / 20 && noted > programs / 500, "{found} findings, {noted} notes of {programs} programs");
}
