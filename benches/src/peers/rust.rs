//! The floor: what the work takes in Rust, written by hand, over `serde_json::Value` and over types. Without limits.
//!
//! It runs in a program of its own (`examples/floor.rs`): starlark turns on a feature of `serde_json` that makes numbers texts.

use super::{Answer, Data, Task, Work, Workload};
use serde::{Deserialize, Serialize};

/// How the orders are held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// As values that may be anything.
    Value,
    /// As structures whose texts are borrowed.
    Typed,
}

/// A row of the pipeline's answer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    country: String,
    orders: f64,
    revenue: f64,
    largest: f64,
}

impl Row {
    /// The sums of others may differ in the last digits that they write.
    pub(super) fn is_like(&self, other: &Row) -> bool {
        let near = |a: f64, b: f64| (a - b).abs() <= b.abs() * 1e-9;
        self.country == other.country
            && self.orders == other.orders
            && near(self.revenue, other.revenue)
            && near(self.largest, other.largest)
    }

    /// Takes an order into the row of its country.
    fn add(rows: &mut Vec<Row>, country: &str, total: f64) {
        if total <= 20.0 {
            return;
        }
        match rows.iter_mut().find(|row| row.country == country) {
            Some(row) => {
                row.orders += 1.0;
                row.revenue += total;
                row.largest = row.largest.max(total);
            }
            None => rows.push(Row { country: country.to_owned(), orders: 1.0, revenue: total, largest: total }),
        }
    }

    fn sorted(mut rows: Vec<Row>) -> Vec<Row> {
        rows.sort_by(|a, b| b.revenue.total_cmp(&a.revenue));
        rows
    }
}

fn text_of(rows: &[Row]) -> Answer {
    serde_json::to_string(rows).expect("rows are JSON")
}

/// The work of a workload; `None` for what has no meaning without an interpreter.
pub fn work<'a>(held: Held, workload: Workload, data: &'a Data) -> Option<Work<'a>> {
    let (orders, text) = (&data.orders, &data.text);
    Some(match (workload, held) {
        (Workload::CompiledInside, Held::Value) => {
            let orders = value::orders(orders);
            Box::new(move || text_of(&value::pipeline(&orders)))
        }
        (Workload::CompiledInside, Held::Typed) => {
            let orders = typed::orders(orders);
            Box::new(move || text_of(&typed::pipeline(&orders)))
        }
        (Workload::CompiledBring, Held::Value) => Box::new(|| text_of(&value::pipeline(&value::orders(orders)))),
        (Workload::CompiledBring, Held::Typed) => Box::new(|| text_of(&typed::pipeline(&typed::orders(orders)))),
        (Workload::Import, Held::Value) => Box::new(|| {
            std::hint::black_box(value::orders(orders));
            Answer::new()
        }),
        (Workload::Import, Held::Typed) => Box::new(|| {
            std::hint::black_box(typed::orders(orders));
            Answer::new()
        }),
        (Workload::Long(Task::Json), Held::Value) => Box::new(|| value::json(text).to_string()),
        (Workload::Long(Task::Json), Held::Typed) => Box::new(|| typed::json(text).to_string()),
        (Workload::Long(task), Held::Typed) => long(task)?,
        _ => return None,
    })
}

/// The long programs without data. What they count to is hidden from the compiler, which would work it out.
fn long<'a>(task: Task) -> Option<Work<'a>> {
    let program: fn(u64) -> u64 = match task {
        Task::Fib => fib,
        Task::Loop => sum_in_a_loop,
        Task::Closures => closures,
        Task::Strings => strings,
        Task::Join => join,
        Task::Sort => sort,
        Task::Mandelbrot => mandelbrot,
        Task::Pipeline | Task::Json => return None,
    };
    let size = match task {
        Task::Fib => 27,
        Task::Loop => 5_000_000,
        Task::Closures => 1_000_000,
        Task::Sort => 300_000,
        _ => 200_000,
    };
    Some(Box::new(move || program(std::hint::black_box(size)).to_string()))
}

fn fib(n: u64) -> u64 {
    if n < 2 { n } else { fib(n - 1) + fib(n - 2) }
}

/// Without the black box the sum would be a formula.
fn sum_in_a_loop(n: u64) -> u64 {
    let (mut i, mut sum) = (0, 0);
    while i < n {
        sum += std::hint::black_box(i);
        i += 1;
    }
    sum
}

fn closures(n: u64) -> u64 {
    (0..n).map(|x| std::hint::black_box(x) * 3).filter(|x| x % 2 == 0).sum()
}

fn strings(n: u64) -> u64 {
    let keys: std::collections::HashMap<String, u64> = (0..n).map(|i| (format!("key-{i}"), i)).collect();
    (0..n).map(|i| keys[&format!("key-{i}")]).sum()
}

fn join(n: u64) -> u64 {
    let pieces: Vec<String> = (0..n).map(|i| format!("item-{i}={}", i * 7)).collect();
    pieces.join(",").len() as u64
}

fn sort(n: u64) -> u64 {
    let numbers = std::iter::successors(Some(42u64), |x| Some(x * 16_807 % 2_147_483_647));
    let mut numbers: Vec<u64> = numbers.take(n as usize).collect();
    // A comparator would be the same code.
    numbers.sort();
    numbers[numbers.len() / 2]
}

/// The picture has 200 lines and columns, whatever the size.
fn mandelbrot(_: u64) -> u64 {
    let escape = |cx: f64, cy: f64| {
        let (mut x, mut y, mut i) = (0.0, 0.0, 0);
        while i < 50 && x * x + y * y <= 4.0 {
            (x, y) = (x * x - y * y + cx, 2.0 * x * y + cy);
            i += 1;
        }
        i
    };
    let line =
        |py: u32| -> u64 { (0..200).map(|px| escape(f64::from(px) / 100.0 - 1.5, f64::from(py) / 100.0 - 1.0)).sum() };
    (0..200).map(line).sum()
}

/// Over `serde_json::Value`.
mod value {
    use super::Row;
    use serde_json::{Value, json};

    pub(super) fn orders(json: &str) -> Value {
        serde_json::from_str(json).expect("orders")
    }

    fn items(of: &Value) -> impl Iterator<Item = &Value> {
        of.as_array().into_iter().flatten()
    }

    pub(super) fn pipeline(orders: &Value) -> Vec<Row> {
        let mut rows = Vec::new();
        for order in items(orders).filter(|order| matches!(order["status"].as_str(), Some("shipped" | "paid"))) {
            let line_total = |line: &Value| Some(line["qty"].as_f64()? * line["price"].as_f64()?);
            let total = items(&order["items"]).filter_map(line_total).sum();
            Row::add(&mut rows, order["country"].as_str().unwrap_or_default(), total);
        }
        Row::sorted(rows)
    }

    pub(super) fn json(text: &str) -> usize {
        let data: Value = serde_json::from_str(text).expect("orders");
        let row = |order: &Value| {
            let qty: u64 = items(&order["items"]).filter_map(|line| line["qty"].as_u64()).sum();
            json!({ "id": order["id"], "country": order["country"], "qty": qty })
        };
        let rows: Vec<Value> = items(&data["orders"]).map(row).collect();
        json!({ "rows": rows }).to_string().len()
    }
}

/// Over structures whose texts are borrowed.
pub(super) mod typed {
    use super::Row;
    use serde::{Deserialize, Serialize};

    #[derive(Deserialize)]
    pub(crate) struct Order<'a> {
        id: u64,
        status: &'a str,
        country: &'a str,
        items: Vec<Line>,
    }

    #[derive(Deserialize)]
    struct Line {
        qty: u64,
        price: f64,
    }

    #[derive(Deserialize)]
    struct All<'a> {
        #[serde(borrow)]
        orders: Vec<Order<'a>>,
    }

    #[derive(Serialize)]
    struct Short<'a> {
        id: u64,
        country: &'a str,
        qty: u64,
    }

    #[derive(Serialize)]
    struct Rows<'a> {
        rows: Vec<Short<'a>>,
    }

    pub(crate) fn orders(json: &str) -> Vec<Order<'_>> {
        serde_json::from_str(json).expect("orders")
    }

    pub(crate) fn pipeline(orders: &[Order<'_>]) -> Vec<Row> {
        let mut rows = Vec::new();
        for order in orders.iter().filter(|order| matches!(order.status, "shipped" | "paid")) {
            let total = order.items.iter().map(|line| line.qty as f64 * line.price).sum();
            Row::add(&mut rows, order.country, total);
        }
        Row::sorted(rows)
    }

    pub(crate) fn json(text: &str) -> usize {
        let all: All<'_> = serde_json::from_str(text).expect("orders");
        let rows = all.orders.iter().map(|order| Short {
            id: order.id,
            country: order.country,
            qty: order.items.iter().map(|line| line.qty).sum(),
        });
        serde_json::to_string(&Rows { rows: rows.collect() }).expect("rows are JSON").len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_types_have_the_same_answers() {
        let orders = crate::orders(100);
        let (values, types) = (value::pipeline(&value::orders(&orders)), typed::pipeline(&typed::orders(&orders)));
        assert_eq!(values.len(), 6);
        assert!(values.iter().zip(&types).all(|(a, b)| a.is_like(b)), "{values:?} {types:?}");
        let text = format!("{{\"orders\":{orders}}}");
        assert_eq!(value::json(&text), typed::json(&text));
    }
}
