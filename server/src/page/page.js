"use strict";

// Whatever programs and people wrote goes into the page as text, never as HTML, and nothing in it hides or changes the order of the rest.
const $ = (id) => document.getElementById(id);
const hidden = /[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;
const unit = (at) => `\\u${at.charCodeAt(0).toString(16).padStart(4, "0")}`;
const visible = (text) => String(text).replace(hidden, (found) => found.split("").map(unit).join(""));
const put = (id, text) => { $(id).textContent = visible(text); };
const make = (tag, text = "", more = {}) => Object.assign(document.createElement(tag), { textContent: visible(text) }, more);
const show = (id, text) => { put(id, text); $(id).hidden = text === ""; };

const examples = {
  "Totals by group": ['(->> data/orders\n     (group-by :country)\n     (map (fn [[country orders]] [country (sum-by :total orders)]))\n     (into {}))',
    '{"orders": [{"country": "DE", "total": 20}, {"country": "FR", "total": 5}, {"country": "DE", "total": 7.5}]}'],
  "Printing while it runs": ['(doseq [n (range 3)]\n  (println "line" n)\n  (tool/wait {}))\n:done', ""],
  "A mistake": ['(let [prices [1 2 3]]\n  (reduce + (map inc (concat prices [nil]))))', ""],
  "A call for you to answer": ['(str "It is " (tool/ask {:question "What is the weather?"}) ".")', ""],
};
// Tools that the page itself grants, where a program names them.
const granted = {
  wait: { returns: null, delay_ms: 400 },
  ask: { client: true },
};

let running = null;

function headers() {
  const token = $("token").value.trim();
  return token ? { "Content-Type": "application/json", Authorization: `Bearer ${token}` } : { "Content-Type": "application/json" };
}

async function problemOf(response) {
  try {
    const problem = await response.json();
    return `${problem.status} ${problem.title}: ${problem.detail}`;
  } catch {
    return `${response.status} ${response.statusText}`;
  }
}

async function ask(method, path, body) {
  const response = await fetch(path, { method, headers: headers(), body: body && JSON.stringify(body) });
  if (!response.ok) throw new Error(await problemOf(response));
  return response.json();
}

function request() {
  const program = $("program").value;
  const request = { program };
  const data = $("data").value.trim();
  if (data) {
    try {
      request.data = JSON.parse(data);
    } catch (error) {
      throw new Error(`The data is not JSON: ${error.message}`);
    }
  }
  for (const [name, tool] of Object.entries(granted)) {
    if (program.includes(`tool/${name}`)) (request.tools ??= {})[name] = tool;
  }
  return request;
}

// Faults of the program that are known without running it, and what to write instead.
function tell({ warnings = [], error }) {
  const at = ({ line, column }) => (line ? `${line}:${column} ` : "");
  const lines = warnings.map((warning) => `${at(warning)}${warning.message}${warning.repair ? `: ${warning.repair}` : ""}`);
  if (error) lines.unshift(`${at(error)}${error.message}${error.hint ? `: ${error.hint}` : ""}`);
  $("told").replaceChildren(...lines.map((line) => make("li", line)));
  $("told").hidden = lines.length === 0;
}

let edits = 0;

// Checks the program when its field is left. Where that is not possible, nothing is told.
async function edited() {
  const edit = ++edits;
  if (running) return;
  try {
    const report = await ask("POST", "/v1/check", request());
    if (edit === edits) tell(report);
  } catch {
    if (edit === edits) tell({});
  }
}

function clear(status) {
  for (const id of ["prints", "value"]) show(id, "");
  for (const id of ["error", "calls", "figures"]) $(id).hidden = true;
  $("calls").querySelector("tbody").replaceChildren();
  put("status", status);
}

async function run() {
  if (running) return;
  let wanted;
  try {
    wanted = request();
  } catch (error) {
    clear("");
    return fail(error.message);
  }
  clear("Running");
  edits++;
  tell({});
  running = new AbortController();
  $("run").disabled = true;
  $("stop").disabled = false;
  try {
    const response = await fetch("/v1/run?stream", { method: "POST", headers: headers(), body: JSON.stringify(wanted), signal: running.signal });
    if (!response.ok) throw new Error(await problemOf(response));
    for await (const [kind, data] of events(response.body)) heard(kind, data, wanted.program);
  } catch (error) {
    if (error.name === "AbortError") $("status").textContent = "Stopped";
    else fail(error.message);
  }
  running = null;
  $("run").disabled = false;
  $("stop").disabled = true;
  look();
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    const parts = text.split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const field = (name) => part.split("\n").filter((line) => line.startsWith(`${name}: `)).map((line) => line.slice(name.length + 2)).join("\n");
      if (field("data")) yield [field("event"), JSON.parse(field("data"))];
    }
  }
}

function heard(kind, data, program) {
  switch (kind) {
    case "print":
      show("prints", `${$("prints").textContent}${data.line}\n`);
      break;
    case "call":
      // A run that is stopped while it waits ends its calls, to make them again.
      if (data.status === "unknown") break;
      put("status", data.status === "begun" ? `Calling tool/${data.name}` : "Running");
      break;
    case "waiting":
      $("status").textContent = "Suspended: see the pending calls below";
      look();
      break;
    case "problem":
      fail(`${data.status} ${data.title}: ${data.detail}`);
      break;
    case "answer":
      answer(data, program);
  }
}

function fail(message) {
  $("status").textContent = "Failed to run";
  put("message", message);
  for (const id of ["place", "hint"]) $(id).textContent = "";
  $("place").hidden = true;
  $("error").hidden = false;
}

function answer(data, program) {
  const how = data.outcome === "fail" ? "Ended with (fail ...)" : data.verdict === "ok" ? `Done in ${(data.usage.duration_us / 1000).toFixed(1)} ms` : `Ended: ${data.verdict}`;
  put("status", how);
  tell({ warnings: data.warnings });
  show("prints", data.prints.join("\n"));
  if (data.verdict === "ok") show("value", data.text ?? "");
  if (data.error) {
    const { reason, message, line, column, end_line, end_column, hint } = data.error;
    put("message", `${reason}: ${message}`);
    put("hint", hint ?? "");
    const source = line && program.split("\n")[line - 1];
    $("place").hidden = source === undefined || source === null;
    if (source) {
      const from = [...source].slice(0, column - 1).map((char) => (char === "\t" ? "\t" : " ")).join("");
      const most = [...source].length - column + 1;
      const width = end_line === line ? Math.max(1, end_column - column) : Math.max(1, most);
      put("place", `${line} | ${source}\n${" ".repeat(String(line).length)} | ${from}${"^".repeat(width)}`);
    }
    $("error").hidden = false;
  }
  const rows = data.ledger.map((call) => {
    const row = make("tr");
    const result = call.error ?? (call.result === undefined ? "" : JSON.stringify(call.result));
    for (const text of [call.name, JSON.stringify(call.arguments), call.status, result, `${(call.duration_us / 1000).toFixed(1)} ms`]) row.append(make("td", text));
    return row;
  });
  $("calls").querySelector("tbody").replaceChildren(...rows);
  $("calls").hidden = rows.length === 0;
  const { fuel, duration_us, compute_us, heap_peak_bytes } = data.usage;
  const figures = { fuel: fuel.toLocaleString(), time: `${(duration_us / 1000).toFixed(1)} ms`, computing: `${(compute_us / 1000).toFixed(1)} ms`, memory: `${Math.ceil(heap_peak_bytes / 1000)} kB`, run: data.run_id };
  $("figures").replaceChildren(...Object.entries(figures).map(([name, text]) => {
    const pair = make("div");
    pair.append(make("dt", name), make("dd", text));
    return pair;
  }));
  $("figures").hidden = false;
}

function ago(ms) {
  const minutes = Math.floor((Date.now() - ms) / 60000);
  return minutes < 1 ? "less than a minute" : minutes < 120 ? `${minutes} minutes` : `${Math.floor(minutes / 60)} hours`;
}

function waitingCall({ run_id: run, created_ms }, call) {
  const box = make("div", "", { className: "call" });
  box.dataset.key = keyOf(run, call);
  box.append(make("p", call.question ?? `tool/${call.name} waits for its result`), make("pre", `tool/${call.name} ${JSON.stringify(call.arguments, null, 1)}`));
  const form = make("form");
  const said = make("p", "", { className: "wrong" });
  const say = async (reply) => {
    try {
      await ask("POST", `/v1/runs/${run}/calls/${encodeURIComponent(call.call)}`, { ...reply, phase: call.phase });
      box.remove();
      look();
    } catch (error) {
      said.textContent = visible(error.message);
    }
  };
  if (call.question) {
    const why = make("input", "", { placeholder: "reason", ariaLabel: "Reason" });
    form.append(make("button", "Approve", { type: "button", className: "main", onclick: () => say({ approve: true }) }), why,
      make("button", "Reject", { type: "button", onclick: () => say({ reject: why.value || "rejected" }) }));
  } else {
    const result = make("input", "", { placeholder: 'result as JSON, such as "sunny"', ariaLabel: "Result as JSON", className: "json" });
    const send = () => {
      try {
        say({ result: JSON.parse(result.value) });
      } catch (error) {
        said.textContent = visible(`Not JSON: ${error.message}`);
      }
    };
    form.onsubmit = (event) => { event.preventDefault(); send(); };
    form.append(result, make("button", "Send result", { className: "main" }),
      make("button", "Send as error", { type: "button", onclick: () => say({ error: { message: result.value || "the call failed" } }) }));
  }
  box.append(form, said, make("p", `run ${run}, call ${call.call}, submitted ${ago(created_ms)} ago`, { className: "quiet" }));
  return box;
}

function keyOf(run, call) {
  return `${run}/${call.call}/${call.phase}`;
}

async function look() {
  let runs;
  try {
    ({ runs } = await ask("GET", "/v1/runs?status=waiting&limit=50"));
  } catch (error) {
    put("none", error.message);
    $("none").hidden = false;
    return;
  }
  // What somebody is filling in stays as it is.
  const known = new Map([...$("waiting").children].map((box) => [box.dataset.key, box]));
  const boxes = runs.flatMap((run) => run.calls.map((call) => known.get(keyOf(run.run_id, call)) ?? waitingCall(run, call)));
  if (boxes.length !== known.size || boxes.some((box) => !known.has(box.dataset.key))) $("waiting").replaceChildren(...boxes);
  $("none").textContent = "None";
  $("none").hidden = boxes.length > 0;
}

function choose(name) {
  [$("program").value, $("data").value] = examples[name];
  if (examples[name][1]) $("data").closest("details").open = true;
  edits++;
  tell({});
}

$("examples").append(...Object.keys(examples).map((name) => make("option", name)));
$("examples").onchange = () => choose($("examples").value);
choose($("examples").value);
for (const id of ["program", "data"]) $(id).onchange = edited;
$("run").onclick = run;
$("stop").onclick = () => running?.abort();
// The address that `ptcl mcp` prints has the token in its fragment, which no server sees.
const given = new URLSearchParams(location.hash.slice(1)).get("token");
if (given) {
  sessionStorage.setItem("token", given);
  history.replaceState(null, "", location.pathname);
}
$("token").value = sessionStorage.getItem("token") ?? "";
$("token").onchange = () => { sessionStorage.setItem("token", $("token").value); look(); };
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    run();
  }
});
look();
setInterval(look, 3000);
