//! Texts of the runtime in the words of this package: what is a method in Rust, or a route of the service, has another name here.

use std::borrow::Cow;

/// Words of the runtime, and those of this package. A longer one comes before one that it contains.
const WORDS: &[(&str, &str)] = &[
    // What to do about a run that cannot go on.
    (
        "whoever runs it decides. In the host: approve or reject the call in the record of the run (Record::approve, \
         Record::reject) and resume it, or drive the run step by step (Engine::start)",
        "whoever runs it decides: start it with engine.start(...), and approve or reject the call of what that returns",
    ),
    (
        "a session cannot wait for approval: run the program as a durable run (POST /v1/runs), or in the host with Engine::start",
        "a session cannot wait for approval: run the program with engine.start(...)",
    ),
    (
        "find out, and settle it with Record::settle before the run resumes",
        "find out, and say what happened before the run resumes: record.reply(name, result), record.fail(name, message) or \
         record.not_made(name), with the name of an item of record.calls",
    ),
    ("with Engine::run or Engine::start", "with engine.run(...) or engine.start(...)"),
    (
        "it is external: only a run that its host drives step by step (Engine::start) replies to it; Tool::with_handler gives it a \
         function for other runs",
        "it is external: only a run of engine.start(...) replies to it; a tool with a function serves other runs",
    ),
    (
        "it is async: only a run of run_async or eval_async waits for it, or the host drives the run step by step (Engine::start)",
        "it is async, and nothing waits for it; run the program with engine.run_async(...)",
    ),
    (
        "it is answered by its client, which only the service supports (ptcl serve); elsewhere give it `returns`, `error` or `echo`",
        "it is answered by a client of the service; give it a function",
    ),
    // Records.
    ("; ptcl run --record FILE writes one, and Input::record", "; bytes(suspended.record) is one"),
    (
        "the record is sealed: Record::unseal reads it, and checks its seal",
        "the record is sealed, and this package does not read sealed records; store bytes(suspended.record) as it is",
    ),
    (" (Record::parse_within)", ""),
    (
        "; grant them to the engine, or give those that were the run's own again, by Input::tools, to Engine::resume_with or \
         Engine::open_record_given",
        "; resume it with an engine that has them: Engine(tools=[...])",
    ),
    (
        "Approve it as it is, or while the run goes on (Waiting::approve_with, Input::approvals)",
        "Approve it as it is, without arguments",
    ),
    (
        ", or raise the limit with RecordingBuilder::max_value_bytes",
        ", or run the program with engine.run(...), which records nothing",
    ),
    (
        ", or raise the limit with RecordingBuilder::max_bytes",
        ", or run the program with engine.run(...), which records nothing",
    ),
    ("give Input::run_id 1 to 128 visible", "give run_id= 1 to 128 visible"),
    // Limits, which have other units here.
    (
        "raise the limit timeout_ms for the resumed run (Input::limits_over)",
        "raise the timeout of the resumed run: engine.resume(record, limits=Limits(timeout=...))",
    ),
    (", or raise tool_threads (EngineBuilder::tool_threads, --tool-threads)", ""),
    (", or the engine has none (EngineBuilder::tool_threads is 0)", ""),
    ("raise the limits worker_heap_bytes or parallel_workers", "raise the limits worker_heap_mb or parallel_workers"),
    ("lower the limit heap_bytes", "lower the limit heap_mb"),
    ("raise the limit setup_heap_bytes", "raise the limit setup_heap_mb"),
    ("raise the limit worker_heap_bytes", "raise the limit worker_heap_mb"),
    ("raise the limit heap_bytes", "raise the limit heap_mb"),
    ("raise the limit parallel_timeout_ms", "raise the limit parallel_timeout"),
    ("raise the limit timeout_ms", "raise the limit timeout"),
    ("the limit setup_heap_bytes is", "the limit setup_heap_mb in bytes is"),
    ("bytes, the limit setup_heap_bytes", "bytes, the limit setup_heap_mb"),
    ("longer than timeout_ms, which is", "longer than the limit timeout, which is"),
    ("times timeout_ms,", "times the timeout,"),
    // Process isolation.
    (
        "this program's main must call lisp_sandbox::init() first; or name another template by Builder::template",
        "the template is not the program ptcl; pass its path as Engine(template=...)",
    ),
    (
        ", or its program does not call lisp_sandbox::init() first in main",
        ", or the template is not the program ptcl: pass its path as Engine(template=...)",
    ),
    ("raise Builder::forkers or ulimit -n, or have", "raise ulimit -n, or have"),
    (", or have fewer --jobs, runs", ", or have fewer runs"),
];

/// Returns a text of the runtime in the words of this package.
pub(crate) fn in_python(text: &str) -> Cow<'_, str> {
    let mut said = Cow::Borrowed(text);
    for (theirs, ours) in WORDS {
        if said.contains(theirs) {
            said = Cow::Owned(said.replace(theirs, ours));
        }
    }
    said
}

/// Returns a text of the runtime as users of this package read it.
#[pyo3::pyfunction]
pub(crate) fn reworded(text: &str) -> String {
    in_python(text).into_owned()
}
