//! A shop's customer service: 16 tools by their JSON Schema, a policy on every call, approvals, and records.
//!
//! `cargo run -p ptc-lisp-runtime --example retail` does the 115 tasks of tau-bench's retail environment (`examples/retail`), each
//! on a fresh copy of the shop's database and in three ways:
//!
//! - directly: the functions of `tools.rs` are called with the arguments of the task, and nothing else has a part in it;
//! - step by step: a program is made of the task and driven from call to call; calls that the policy asks about are approved on the spot;
//! - recorded: the engine calls the tools, the program ends where it needs an approval, and goes on from its record.
//!
//! The three databases must be equal, and have the fingerprint that tau-bench's own functions leave behind.

mod tools;

use lisp_runtime::tools::{AskedCall, Effect, PolicyDecision};
use lisp_runtime::{Engine, Input, Outcome, Progress, Reason, Recording, Tool, ToolCall, ToolError};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tools::{Answer, Shop};

/// What the names of the tools begin with that change something.
const WRITES: [&str; 4] = ["cancel_", "exchange_", "modify_", "return_"];
/// The task that is done for another customer than the one it names.
const MISNAMED: (&str, &str) = ("retail/test/64", "james_sanchez_3954");
/// Items worth more than this are not returned or exchanged before somebody has approved it.
const MAX: f64 = 1_000.0;

type Fallible<T> = Result<T, Box<dyn Error>>;

/// A task: who the customer is, what has to be done, and the SHA-256 (its first 16 digits) of the database afterwards.
#[derive(Deserialize)]
struct Task {
    id: String,
    user_id: String,
    database: String,
    actions: Vec<Action>,
}

#[derive(Deserialize)]
struct Action {
    name: String,
    kwargs: Map<String, Value>,
}

/// The service: the database behind the tools, and what was done with it.
struct Service {
    shop: Shop,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    calls: usize,
    writes: usize,
    failures: usize,
    approvals: usize,
}

impl Service {
    /// Serves a call, as a tool does.
    fn serve(&mut self, call: &ToolCall) -> Result<Value, ToolError> {
        let answer = self.shop.call(call.name(), &call.arguments()?);
        self.counts.calls += 1;
        self.counts.writes += usize::from(writes(call.name()));
        self.counts.failures += usize::from(answer.is_err());
        answer.map_err(ToolError::new)
    }
}

fn writes(tool: &str) -> bool {
    WRITES.iter().any(|verb| tool.starts_with(verb))
}

/// The service, as tools and policy share it.
#[derive(Clone)]
struct Desk(Arc<Mutex<Service>>);

impl Desk {
    fn with<T>(&self, work: impl FnOnce(&mut Service) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// An engine with the tools, made of what a list for function calling says of them.
    fn engine(&self, descriptions: &[Value]) -> Fallible<Engine> {
        let desk = self.clone();
        let mut builder = Engine::builder().policy(move |call: &AskedCall<'_>| desk.decide(call));
        for tool in descriptions {
            let text = |key: &str| tool[key].as_str().unwrap_or_default();
            let effect = if writes(text("name")) { Effect::Write } else { Effect::Read };
            let desk = self.clone();
            let tool =
                Tool::from_json_schema(text("name"), text("description"), &tool["parameters"].to_string(), None)?
                    .with_effect(effect)
                    // A program gets a failure as a value and goes on.
                    .tagged()
                    .with_handler(move |call| desk.with(|service| service.serve(call)));
            builder = builder.grant(tool);
        }
        Ok(builder.build()?)
    }

    /// The policy: customers may read, change what is theirs, and need an approval to cancel and for what is dear.
    fn decide(&self, call: &AskedCall<'_>) -> PolicyDecision {
        #[derive(Deserialize)]
        struct Asked {
            user_id: Option<String>,
            order_id: Option<String>,
            #[serde(default)]
            item_ids: Vec<String>,
        }
        if call.effect() == Effect::Read {
            return PolicyDecision::Allow;
        }
        let asked: Asked = match call.arguments() {
            Ok(asked) => asked,
            Err(error) => return PolicyDecision::Deny(error.to_string()),
        };
        let order_id = asked.order_id.unwrap_or_default();
        // The schemas allow other arguments too, so all that is named must be the customer's: an order of their own does not
        // open another's account.
        let of_others = |owner: Option<&str>| owner.is_some_and(|owner| call.tenant() != Some(owner));
        let (denied, worth) = self.with(|Service { shop, .. }| {
            let denied = of_others(asked.user_id.as_deref()) || of_others(shop.owner(&order_id));
            (denied, shop.worth(&order_id, &asked.item_ids))
        });
        if denied {
            PolicyDecision::Deny("it is not the customer's own".to_owned())
        } else if call.name() == "cancel_pending_order" {
            PolicyDecision::Ask(format!("cancel {order_id}?"))
        } else if worth > MAX {
            PolicyDecision::Ask(format!("{} for {worth:.2}?", call.name()))
        } else {
            PolicyDecision::Allow
        }
    }

    /// Runs a task's program and makes its calls; the customer's wishes are approved.
    fn step_by_step(&self, engine: &Engine, task: &Task) -> Fallible<Outcome> {
        let program = engine.compile(&task.program())?;
        let mut progress = engine.start(&program, Input::new().tenant(&task.user_id));
        loop {
            progress = match progress {
                Progress::ToolCall(waiting) => match self.with(|service| service.serve(waiting.call())) {
                    Ok(result) => waiting.reply(&result),
                    Err(error) => waiting.fail(error),
                },
                Progress::Approval(waiting) => {
                    let (id, call) = waiting.approvals().next().ok_or("an approval of nothing")?;
                    assert!(call.question().is_some_and(|question| question.ends_with('?')));
                    self.with(|service| service.counts.approvals += 1);
                    waiting.approve(id)
                }
                Progress::Done(outcome) => return Ok(*outcome),
            };
        }
    }

    /// Has the engine run a task's program and call the tools. Where it needs an approval its record has all that is needed to
    /// go on, then or a day later.
    fn recorded(&self, engine: &Engine, task: &Task) -> Fallible<Outcome> {
        let mut recording = Recording::new();
        let (mut program, mut input) = (engine.compile(&task.program())?, Input::new().record(&recording));
        loop {
            // A record does not say who the run is for.
            let outcome = engine.run(&program, input.tenant(&task.user_id));
            if outcome.problem().map(|problem| problem.reason()) != Some(Reason::ApprovalRequired) {
                return Ok(outcome);
            }
            let mut record = recording.record()?;
            for call in record.open_calls().iter().filter(|call| call.question.is_some()) {
                record.approve(&call.name, None)?;
                self.with(|service| service.counts.approvals += 1);
            }
            (program, input, recording) = engine.open_record(&record, &[])?;
        }
    }
}

impl Task {
    /// The task as a program: a vector of its calls.
    fn program(&self) -> String {
        let calls = self.actions.iter().map(|action| format!("(tool/{} {})", action.name, literal(&action.kwargs)));
        format!("[{}]", calls.collect::<Vec<_>>().join("\n "))
    }

    /// Does the task without a program. Returns the database and what the program is to return.
    fn directly(&self, shop: &Shop) -> (Shop, Value) {
        let mut shop = shop.clone();
        let answers = self.actions.iter().map(|Action { name, kwargs }| {
            let answer: Answer = shop.call(name, &Value::Object(kwargs.clone()));
            answer.map(|result| json!({ "ok": result })).unwrap_or_else(|why| {
                json!({"error": {"reason": "tool_error", "message": format!("tool/{name}: {why}"), "tool": name}})
            })
        });
        let answers = answers.collect();
        (shop, answers)
    }
}

/// Arguments as a program writes them. Strings, and arrays of strings, are written as in JSON: a comma is a space.
fn literal(arguments: &Map<String, Value>) -> String {
    let pairs = arguments.iter().map(|(key, argument)| format!(":{key} {argument}"));
    format!("{{{}}}", pairs.collect::<Vec<_>>().join(" "))
}

fn load<T: DeserializeOwned>(file: &str) -> Fallible<T> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/retail").join(file);
    Ok(serde_json::from_slice(&std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?)?)
}

/// The beginning of the SHA-256 of the database as JSON with sorted keys.
fn fingerprint(database: &Value) -> String {
    Sha256::digest(database.to_string()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn main() -> Fallible<()> {
    let untouched = Shop { users: load("users.json")?, orders: load("orders.json")?, products: load("products.json")? };
    let mut tasks: Vec<Task> = load("tasks.json")?;
    let desk = Desk(Arc::new(Mutex::new(Service { shop: untouched.clone(), counts: Counts::default() })));
    let engine = desk.engine(&load::<Vec<Value>>("tools.json")?)?;

    type Way = fn(&Desk, &Engine, &Task) -> Fallible<Outcome>;
    let mut ways = [
        ("step by step", Desk::step_by_step as Way, Counts::default(), Duration::ZERO),
        ("recorded", Desk::recorded, Counts::default(), Duration::ZERO),
    ];
    let mut changed = 0;
    for task in &mut tasks {
        if task.id == MISNAMED.0 {
            // In the name of the one it names it ends at the first thing that it would change.
            for (name, way, ..) in &ways {
                desk.with(|service| *service = Service { shop: untouched.clone(), counts: Counts::default() });
                let outcome = way(&desk, &engine, task)?;
                let reason = outcome.problem().map(|problem| problem.reason());
                assert_eq!(reason, Some(Reason::ToolDenied), "{}, {name}", task.id);
                assert!(desk.with(|service| service.shop == untouched), "{}, {name}: something was changed", task.id);
            }
            MISNAMED.1.clone_into(&mut task.user_id);
        }
        let (shop, answers) = task.directly(&untouched);
        let database = serde_json::to_value(&shop)?;
        assert_eq!(fingerprint(&database), task.database, "{}: tau-bench comes to another database", task.id);
        changed += usize::from(shop != untouched);
        for (name, way, counts, time) in &mut ways {
            desk.with(|service| *service = Service { shop: untouched.clone(), counts: *counts });
            let started = Instant::now();
            let outcome = way(&desk, &engine, task)?;
            *time += started.elapsed();
            if let Some(problem) = outcome.problem() {
                return Err(format!("{}, {name}: {}", task.id, problem.error).into());
            }
            *counts = desk.with(|service| service.counts);
            assert!(outcome.value::<Value>()? == answers, "{}, {name}: the answers differ", task.id);
            let after = desk.with(|service| serde_json::to_value(&service.shop))?;
            assert!(after == database, "{}, {name}: the databases differ", task.id);
        }
    }

    assert_eq!((tasks.len(), changed), (115, 104));
    for (name, _, counts, time) in ways {
        assert_eq!(counts, Counts { calls: 582, writes: 178, failures: 24, approvals: 56 }, "{name}");
        println!(
            "{} tasks {name}, {} calls, {} writes, {} approvals, all databases equal; {} ms",
            tasks.len(),
            counts.calls,
            counts.writes,
            counts.approvals,
            time.as_millis()
        );
    }
    Ok(())
}
