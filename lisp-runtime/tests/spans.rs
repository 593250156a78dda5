//! Spans of the crate `tracing`: which there are, what they say, and what they never say.

use lisp_runtime::{Engine, Input, Limits, Tool, ToolCall, ToolError};
use std::collections::BTreeMap;
use std::fmt::{Debug, Write};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

/// A span as it was told.
#[derive(Clone, Debug, Default)]
struct Span {
    name: &'static str,
    parent: Option<u64>,
    fields: BTreeMap<&'static str, String>,
    entered: usize,
    closed: bool,
}

impl Visit for Span {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = String::new();
        write!(text, "{value:?}").unwrap();
        self.fields.insert(field.name(), text);
    }
}

/// Keeps all it is told.
#[derive(Clone, Default)]
struct Captures(Arc<Mutex<Vec<Span>>>);

thread_local! {
    static CURRENT: std::cell::RefCell<Vec<u64>> = const { std::cell::RefCell::new(Vec::new()) };
}

impl Captures {
    fn span<T>(&self, id: &Id, work: impl FnOnce(&mut Span) -> T) -> T {
        work(&mut self.0.lock().unwrap()[usize::try_from(id.into_u64()).unwrap() - 1])
    }

    fn take(&self) -> Vec<Span> {
        self.0.lock().unwrap().clone()
    }
}

impl Subscriber for Captures {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let current = CURRENT.with_borrow(|stack| stack.last().copied());
        let parent = if attributes.is_contextual() { current } else { attributes.parent().map(Id::into_u64) };
        let mut span = Span { name: attributes.metadata().name(), parent, ..Span::default() };
        attributes.record(&mut span);
        let mut all = self.0.lock().unwrap();
        all.push(span);
        Id::from_u64(all.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        self.span(span, |span| values.record(span));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut span = Span { name: "event", ..Span::default() };
        event.record(&mut span);
        self.0.lock().unwrap().push(span);
    }

    fn enter(&self, span: &Id) {
        CURRENT.with_borrow_mut(|stack| stack.push(span.into_u64()));
        self.span(span, |span| span.entered += 1);
    }

    fn exit(&self, _: &Id) {
        CURRENT.with_borrow_mut(Vec::pop);
    }

    fn try_close(&self, id: Id) -> bool {
        self.span(&id, |span| span.closed = true);
        true
    }
}

/// Texts of the program, its data, arguments, results, errors and prints begin so.
const SECRET: &str = "s3cret";

fn engine() -> Engine {
    Engine::builder()
        .limits(Limits::default())
        .tool("look", |call| {
            tracing::info_span!("of_the_tool").in_scope(|| ());
            Ok(format!("{SECRET}-result {}", call.json()))
        })
        .tool("fails", |_| Err::<(), _>(ToolError::new(format!("{SECRET}-error"))))
        .grant(Tool::new_async("later", |call: ToolCall| async move { Ok(format!("{SECRET}-later {}", call.json())) }))
        .build()
        .unwrap()
}

fn source(tool: &str) -> String {
    format!(
        "(def {SECRET}-name 1) (println \"{SECRET}-print\" data/x)
         (pmap (fn [i] (tool/{tool} {{:a \"{SECRET}-argument\" :i i}})) (range 2))
         (try (tool/fails {{:{SECRET}-key 1}}) (catch Exception e (ex-message e)))
         \"{SECRET}-value\""
    )
}

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn input() -> Input<'static> {
    let setup = engine().compile(&format!("(def {SECRET}-setup \"{SECRET}\")")).unwrap();
    Input::new()
        .json("x", format!("\"{SECRET}-data\""))
        .memory(format!("{{\"m\": \"{SECRET}-memory\"}}"))
        .setup(&setup)
        .run_id("r1")
        .traceparent(TRACE)
}

fn check(spans: &[Span], tool: &str) {
    let names: Vec<&str> = spans.iter().map(|span| span.name).collect();
    let count = |name: &str| names.iter().filter(|known| **known == name).count();
    assert_eq!([count("run"), count("set_up"), count("parallel"), count("tool_call")], [1, 1, 1, 3], "{names:?}");
    let run = names.iter().position(|name| *name == "run").unwrap();
    let fields = &spans[run].fields;
    let says = |fields: &BTreeMap<&'static str, String>, name: &str| fields.get(name).cloned().unwrap_or_default();
    assert_eq!((says(fields, "run_id"), says(fields, "traceparent")), ("\"r1\"".into(), format!("\"{TRACE}\"")));
    assert_eq!((says(fields, "verdict"), says(fields, "tool_calls")), ("\"ok\"".into(), "3".into()));
    for figure in ["fuel", "heap_peak_bytes", "workers_peak", "duration_us"] {
        assert!(says(fields, figure).parse::<u64>().unwrap() > 0, "{figure}");
    }
    let calls: Vec<&Span> = spans.iter().filter(|span| span.name == "tool_call").collect();
    for (call, (name, status)) in calls.iter().zip([(tool, "ok"), (tool, "ok"), ("fails", "error")]) {
        assert_eq!(call.parent, Some(run as u64 + 1));
        assert_eq!(
            (says(&call.fields, "tool"), says(&call.fields, "status")),
            (format!("{name:?}"), format!("{status:?}"))
        );
        assert!(call.entered > 0);
    }
    assert_eq!(says(&calls[2].fields, "place"), "2");
    assert!(spans.iter().filter(|span| span.name != "event").all(|span| span.closed), "{spans:?}");
    let all = format!("{spans:?}");
    assert!(!all.contains(SECRET) && !all.contains("println"), "{all}");
}

#[test]
fn spans_have_names_places_figures_and_verdicts_and_no_texts() {
    let (program, input) = (source("look"), input());
    let captures = Captures::default();
    tracing::subscriber::with_default(captures.clone(), || {
        // On the thread of the run, where the subscriber is.
        let engine = Engine::builder().without_threads().grant_all(tools()).build().unwrap();
        let outcome = engine.eval(&program, input);
        assert!(outcome.is_success(), "{:?}", outcome.problem());
        drop(outcome);
    });
    let spans = captures.take();
    check(&spans, "look");
    assert_eq!(spans.iter().filter(|span| span.name == "compile").count(), 1);
    // What a tool does is within its call.
    let own = spans.iter().find(|span| span.name == "of_the_tool").unwrap();
    assert_eq!(spans[usize::try_from(own.parent.unwrap()).unwrap() - 1].name, "tool_call");
}

fn tools() -> lisp_runtime::Tools {
    let engine = engine();
    let mut tools = lisp_runtime::Tools::new();
    for tool in engine.tools().all() {
        tools.add(Tool::clone(tool)).unwrap();
    }
    tools
}

#[test]
fn futures_have_the_same_spans() {
    let (program, input) = (source("later"), input());
    let captures = Captures::default();
    tracing::subscriber::with_default(captures.clone(), || {
        let engine = Engine::builder().without_threads().grant_all(tools()).build().unwrap();
        let program = engine.compile(&program).unwrap();
        let mut run = pin!(engine.run_async(&program, input));
        let mut context = Context::from_waker(Waker::noop());
        let outcome = loop {
            if let Poll::Ready(outcome) = run.as_mut().poll(&mut context) {
                break outcome;
            }
        };
        assert!(outcome.is_success(), "{:?}", outcome.problem());
    });
    check(&captures.take(), "later");
}

#[test]
fn a_failed_run_says_why_by_a_stable_name() {
    for (source, reason) in [(format!("(inc \"{SECRET}\")"), "type_error"), (format!("(\"{SECRET}\""), "parse_error")] {
        let captures = Captures::default();
        tracing::subscriber::with_default(captures.clone(), || drop(engine().eval(&source, Input::new())));
        let spans = captures.take();
        let run = spans.iter().find(|span| span.name == "run").unwrap();
        assert_eq!((&*run.fields["verdict"], &*run.fields["reason"]), ("\"error\"", &*format!("{reason:?}")));
        assert!(!format!("{spans:?}").contains(SECRET));
    }
}
