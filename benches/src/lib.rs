//! The workloads: programs and data. A peer gets the same algorithm, written as its users would write it.

use std::fmt::Write;

pub mod datasets;
pub mod hand;
#[cfg(feature = "jaq")]
pub mod jaq;
pub mod peers;
pub mod timing;

/// The smallest program.
pub const ONE_LINER: &str = "(+ 1 2)";

/// What a model writes for a question about orders: filter, group, sum, sort. 15 lines.
pub const PIPELINE: &str = include_str!("../programs/pipeline.clj");

/// Calls.
pub const FIB: &str = include_str!("../programs/fib.clj");

/// A loop over integers.
pub const LOOP: &str = include_str!("../programs/loop.clj");

/// Order records as JSON text, always the same.
pub fn orders(count: usize) -> String {
    let mut random = Random(42);
    let mut text = String::from("[");
    for id in 0..count {
        let status = ["shipped", "paid", "pending", "cancelled"][random.below(4)];
        let country = ["SE", "DE", "FR", "JP", "BR", "US"][random.below(6)];
        let separator = if id == 0 { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            r#"{separator}{{"id":{id},"customer":"C{:03}","status":"{status}","country":"{country}","items":["#,
            random.below(500)
        );
        for item in 0..1 + random.below(4) {
            let separator = if item == 0 { "" } else { "," };
            let (sku, qty, cents) = (random.below(60), 1 + random.below(5), 100 + random.below(9_900));
            let _ = write!(
                text,
                r#"{separator}{{"sku":"S-{sku}","qty":{qty},"price":{}.{:02}}}"#,
                cents / 100,
                cents % 100
            );
        }
        text.push_str("]}");
    }
    text.push(']');
    text
}

/// A program of many definitions, ten lines each: functions, constants, and calls of those before.
pub fn definitions(count: usize) -> String {
    let mut text = String::new();
    for i in 0..count {
        let before = i.saturating_sub(1);
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            r#"(def limit-{i} {{:name "step {i}" :most {i} :tags [:a-{i} "b" 2.5]}})
(defn keep-{i}? "Is the row within the limit?" [{{:keys [total status] :or {{total 0}}}}]
  (and (<= total (:most limit-{i}))
       (not= status "cancelled")))
(defn step-{i} [rows & more]
  (let [kept (filter keep-{i}? rows)
        sums (for [[k v] (group-by :country kept) :when (seq v)] [k (sum-by :total v)])]
    (cond-> (into {{}} sums)
      (seq more) (assoc :more (map #(str "n" % {i}) more)))))
(def result-{i} (or (get limit-{before} :gone) (step-{i} [{{:total {i} :country "SE"}}] 1)))
"#
        );
    }
    text
}

/// What this process has in memory; 0 where the system does not say.
pub fn resident_kilobytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|rest| rest.trim().trim_end_matches(" kB").trim().parse().ok()).unwrap_or(0.0)
}

/// A linear congruential generator: the data must be the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lisp_runtime::{Engine, Input, Limits};

    #[test]
    fn the_programs_answer() {
        let limits = Limits::default().with_loop_iterations(0).with_timeout_ms(60_000);
        let engine = Engine::builder().limits(limits).build().expect("an engine");
        let eval = |program: &str| engine.eval(program, Input::new().json("orders", orders(100)));
        assert_eq!(eval(ONE_LINER).value::<i64>(), Ok(3));
        assert_eq!(eval(&FIB.replace("27", "15")).value::<i64>(), Ok(610));
        assert_eq!(eval(&LOOP.replace("5000000", "1000")).value::<i64>(), Ok(499_500));
        let rows = eval(PIPELINE);
        assert!(rows.json().is_some_and(|json| json.contains("revenue")), "{:?}", rows.problem());
        assert_eq!(PIPELINE.lines().count(), 15);
        let many = definitions(100);
        assert_eq!(many.lines().count(), 1_000);
        let last = format!("{many}\n(get result-99 \"SE\")");
        assert_eq!(eval(&last).value::<i64>(), Ok(99));
    }
}
