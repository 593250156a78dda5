//! Random programs of parallel calls whose workers fail, and their tools, limits and answers, for tests at both modes.

use lisp_runtime::tools::{AskedCall, Effect, PolicyDecision};
use lisp_runtime::{Amounts, Budget, Engine, EngineBuilder, Input, Limits, LimitsRequest, Outcome, Tool, ToolError};
use std::fmt::Write;

/// Random numbers that are the same each time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
}

/// Makes a program; `i` is the number of the worker that is around.
pub(crate) struct Maker {
    dice: Dice,
    /// How many parallel calls there are so far.
    calls: u64,
}

impl Maker {
    pub(crate) fn program(seed: u64) -> String {
        let mut maker = Maker { dice: Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1), calls: 0 };
        let mut program = String::from("(def i 0) ");
        for n in 0..=maker.dice.roll(3) {
            let form = maker.parallel(0);
            let form = if maker.dice.roll(4) == 0 { form } else { maker.caught(&form) };
            let _ = write!(program, "(def r{n} {form}) ");
        }
        let _ = write!(program, "(tool/pure {{:n {}}}) [r0 i]", maker.dice.roll(6));
        program
    }

    fn caught(&mut self, form: &str) -> String {
        let end = if self.dice.roll(2) == 0 { "(finally (println :finally i))" } else { "" };
        format!("(try {form} (catch Exception e (println :caught (:reason e)) (:message e)) {end})")
    }

    fn parallel(&mut self, depth: u64) -> String {
        self.calls += 1;
        let count = 1 + self.dice.roll(6);
        if self.dice.roll(4) == 0 {
            let bodies: Vec<String> =
                (0..count).map(|at| format!("(fn [] (let [i {at}] {}))", self.body(depth))).collect();
            return format!("(pcalls {})", bodies.join(" "));
        }
        format!("(pmap (fn [i] {}) (range {count}))", self.body(depth))
    }

    fn body(&mut self, depth: u64) -> String {
        let steps: Vec<String> = (0..=self.dice.roll(3)).map(|_| self.step(depth)).collect();
        format!("(do {})", steps.join(" "))
    }

    fn step(&mut self, depth: u64) -> String {
        let (n, m) = (self.dice.roll(7), 2 + self.dice.roll(4));
        match self.dice.roll(16) {
            14 => format!(
                "(loop [k 0] (when (< k (* {m} (mod (+ i {n}) 4))) (tool/pure {{:n (+ k (* 100 i))}}) (recur (inc k))))"
            ),
            15 => format!(
                "(loop [k 0] (when (< k {n}) (tool/{} {{:n (+ k i)}}) (recur (inc k))))",
                ["few", "asked", "kept"][n as usize % 3]
            ),
            0 | 1 => format!("(println :line i {n})"),
            2 => format!("(tool/pure {{:n (+ i {n})}})"),
            3 => format!("(tool/kept {{:n (mod i {m})}})"),
            4 => format!("(tool/fails {{:n (+ i {n})}})"),
            5 => format!("(tool/kept-fails {{:n (mod i {m})}})"),
            6 | 7 => format!("(when (= (mod i {m}) {}) (/ {n} 0))", n % m),
            8 => format!("(when (= i {n}) (throw (ex-info \"thrown\" {{:i i}})))"),
            9 => format!("(reduce + (range (* 150 (- 6 i) {n})))"),
            10 => format!("(loop [k 0] (if (< k (* 40 (inc (mod i {m})))) (recur (inc k)) k))"),
            11 => format!("(do (def i (+ i {n})) (when (= i 8) (fail i)) i)"),
            12 if depth < 2 && self.calls < 6 => self.parallel(depth + 1),
            13 if depth < 2 && self.calls < 6 => {
                let inner = self.parallel(depth + 1);
                self.caught(&inner)
            }
            _ => {
                let inner = format!("(tool/fails {{:n (* i {n})}})");
                self.caught(&inner)
            }
        }
    }
}

pub(crate) fn with_tools(builder: EngineBuilder) -> Engine {
    let some = |n: i64| match n % 3 {
        2 => Err(ToolError::new(format!("no {n}"))),
        _ => Ok(n * 10),
    };
    builder
        .limits(Limits::default().with_timeout_ms(60_000).with_parallel_timeout_ms(60_000))
        .grant(Tool::new("pure", |call| Ok(call.get::<i64>("n")? + 1)).with_effect(Effect::Read))
        .grant(Tool::new("few", |call| Ok(call.get::<i64>("n")? + 3)).max_calls(FEW).with_effect(Effect::Read))
        .grant(Tool::new("asked", |call| Ok(call.get::<i64>("n")? + 4)).with_effect(Effect::Read))
        .grant(Tool::new("kept", |call| Ok(call.get::<i64>("n")? + 2)).cached().with_effect(Effect::Read))
        .grant(Tool::new("fails", move |call| some(call.get("n")?)).with_effect(Effect::Read))
        .grant(Tool::new("kept-fails", move |call| some(call.get("n")?)).cached().with_effect(Effect::Read))
        .policy(|call: &AskedCall<'_>| match call.name() == "asked" && call.calls() + call.calls_of_tool() > 25 {
            true => PolicyDecision::Deny(format!("{} calls", call.calls())),
            false => PolicyDecision::Allow,
        })
        .build()
        .unwrap()
}

/// How often a program may call `tool/few`.
const FEW: u64 = 24;

/// The limits of a program: most may make few calls of tools, so few that none is made ahead of its turn, or more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    calls: Option<u64>,
    /// Calls that are left in the budget.
    pub(crate) budget: Option<u64>,
}

impl Bounds {
    pub(crate) fn none() -> Bounds {
        Bounds { calls: None, budget: None }
    }

    pub(crate) fn of(seed: u64) -> Bounds {
        let mut dice = Dice(seed.wrapping_mul(0xD134_2543_DE82_EF95) | 1);
        let few = |dice: &mut Dice| [2 + dice.roll(7), 10 + dice.roll(20), 20 + dice.roll(60)][dice.roll(3) as usize];
        match dice.roll(8) {
            0..=3 => Bounds { calls: Some(few(&mut dice)), budget: None },
            4 | 5 => Bounds { calls: None, budget: Some(few(&mut dice)) },
            _ => Bounds::none(),
        }
    }

    pub(crate) fn limits(&self, window: u64) -> LimitsRequest {
        let mut asked = LimitsRequest::default();
        asked.set("parallel_window", window).unwrap();
        if let Some(calls) = self.calls {
            asked.set("tool_calls", calls).unwrap();
        }
        asked
    }

    /// The input of a run, which has a budget of its own.
    pub(crate) fn input(&self, window: u64) -> Input<'static> {
        let input = Input::new().limits(self.limits(window));
        match self.budget {
            Some(calls) => input.budget(&Budget::new(Amounts::new().with_calls(calls))),
            None => input,
        }
    }
}

/// All that an answer says but for times, and for what says how busy the machine was.
pub(crate) fn came_to(outcome: &Outcome) -> String {
    let problem = outcome.problem().map(|problem| {
        let error = &problem.error;
        (error.reason, error.message.clone(), error.hint.clone(), error.details.clone(), problem.position)
    });
    let calls: Vec<_> = outcome
        .ledger
        .iter()
        .map(|call| {
            let (status, error) = (call.status, call.error.clone());
            (
                call.name.clone(),
                call.arguments.text.clone(),
                status,
                call.refused,
                call.result.clone(),
                error,
                call.worker.clone(),
            )
        })
        .collect();
    format!(
        "{:?}\n{problem:?}\n{:?}\nfuel {}, {} calls\n{:?}\n{calls:#?}",
        outcome.text(),
        outcome.prints,
        outcome.usage.fuel,
        outcome.usage.tool_calls,
        outcome.memory(),
    )
}
