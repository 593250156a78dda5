//! A service of a test, and clients that say exactly what they want.

#![allow(unreachable_pub, missing_docs, dead_code, reason = "for tests, each of which uses a part")]

use rustix::process::{Pid, Signal};
use serde_json::Value;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// A folder of a test, which goes with it.
pub struct Dir(PathBuf);

impl Dir {
    pub fn new(name: &str) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ptc-serve-{}-{number}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Dir(path)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    pub fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.0.join(name), text).unwrap();
        self.path(name)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Gives programs a minute, unless the configuration says how long they may take: machines are busy.
fn patient(config: &str) -> String {
    let (minute, limits) = ("timeout_ms = 60000\n", "[limits]\n");
    let is_said = |section: &str| section.split("\n[").next().unwrap().contains("timeout_ms");
    let has_short_ceiling = config.split("timeout_ms = ").skip(1).any(|rest| {
        rest.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse::<u64>().is_ok_and(|time| time < 60_000)
    });
    match config.split_once(limits) {
        _ if has_short_ceiling => config.to_owned(),
        Some((_, section)) if is_said(section) => config.to_owned(),
        Some((before, section)) => format!("{before}{limits}{minute}{section}"),
        None => format!("{config}\n{limits}{minute}"),
    }
}

/// A service of a test.
pub struct Server {
    child: Child,
    /// Its host and port, or `unix:` and the path of its socket.
    pub address: String,
    /// What it has logged before.
    pub logged: String,
    log: Arc<Mutex<String>>,
    _dir: Option<Dir>,
}

/// The command.
pub fn ptcl() -> Command {
    // PTCL names another build, for figures.
    Command::new(std::env::var_os("PTCL").unwrap_or_else(|| env!("CARGO_BIN_EXE_ptcl").into()))
}

type Answered = (u16, HashMap<String, String>, Value);

impl Server {
    /// Starts one with these options; with a store of its own unless they name one.
    pub fn start(options: &[&str]) -> Self {
        let mut command = ptcl();
        let dir = Dir::new("store");
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        if !options.contains(&"--store") {
            command.args(["--store", &dir.path("ptc.db")]);
        }
        let config = options.iter().position(|option| *option == "--config");
        let text = config.map_or_else(String::new, |at| std::fs::read_to_string(options[at + 1]).unwrap());
        let patient = dir.write("patient.toml", &patient(&text));
        let others =
            options.iter().enumerate().filter(|(at, _)| config.is_none_or(|config| *at != config && *at != config + 1));
        command.args(others.map(|(_, option)| option)).args(["--config", &patient]);
        let mut server = Server::of(&mut command);
        server._dir = Some(dir);
        server
    }

    /// The service or worker that a command starts.
    pub fn of(command: &mut Command) -> Self {
        Server::try_of(command).unwrap_or_else(|line| panic!("{line}"))
    }

    /// The same, or what it says when it does not start.
    pub fn try_of(command: &mut Command) -> Result<Self, String> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let mut logged = String::new();
        let address = loop {
            let mut line = String::new();
            if lines.read_line(&mut line).unwrap() == 0 {
                child.wait().unwrap();
                return Err(logged);
            }
            let address = line.trim().strip_prefix("listening on ");
            if let Some(address) = address.or_else(|| line.trim().strip_prefix("working; metrics at ")) {
                break address.strip_prefix("http://").unwrap_or(address).to_owned();
            }
            logged += &line;
        };
        let log = Arc::<Mutex<String>>::default();
        let its = log.clone();
        std::thread::Builder::new()
            .spawn(move || {
                for line in lines.lines().map_while(Result::ok) {
                    println!("service: {line}");
                    *its.lock().unwrap() += &format!("{line}\n");
                }
            })
            .unwrap();
        Ok(Server { child, address, logged, log, _dir: None })
    }

    /// Returns what it has logged since, once it has logged this.
    pub fn log_with(&self, what: &str) -> String {
        let begun = Instant::now();
        loop {
            let log = self.log.lock().unwrap().clone();
            if log.contains(what) {
                return log;
            }
            assert!(begun.elapsed() < Duration::from_secs(100), "waited 100 s for {what} in the log: {log}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Reads a stream from a mark up to an end after it.
    pub fn until_said(&self, path: &str, mark: &str, end: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(100))).unwrap();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).unwrap();
        let (mut came, mut buffer) = (String::new(), [0; 4096]);
        loop {
            if let Some((said, _)) = came.split_once(mark).and_then(|(_, behind)| behind.split_once(end)) {
                return said.to_owned();
            }
            let read = stream.read(&mut buffer).unwrap();
            assert!(read > 0, "it broke off: {came}");
            came.push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
    }

    /// Sends bytes and takes what comes until the connection ends.
    pub fn raw(&self, bytes: &[u8]) -> Vec<u8> {
        raw(&self.address, bytes)
    }

    pub fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answered {
        request(&self.address, method, path, headers, body)
    }

    pub fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let (status, _, answer) = self.send("POST", path, &[], body.to_string().as_bytes());
        (status, answer)
    }

    pub fn text(&self, path: &str) -> String {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        String::from_utf8(self.raw(request.as_bytes())).unwrap()
    }

    /// The state of a run once it is so.
    pub fn state_when(&self, run: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let state = self.send("GET", run, &[], b"").2;
            if is_so(&state) {
                return state;
            }
            assert!(begun.elapsed() < Duration::from_secs(200), "waited 200 s for {run}: {state}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn until(&self, max: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < max, "waited {max:?} for {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Posts and reads server-sent events until `more` says no.
    pub fn stream(&self, path: &str, body: &Value, more: impl FnMut(&str, &Value) -> bool) {
        let body = body.to_string();
        let length = body.len();
        self.events(
            &format!("POST {path} HTTP/1.0\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n{body}"),
            more,
        );
    }

    pub fn get_stream(&self, path: &str, more: impl FnMut(&str, &Value) -> bool) {
        self.events(&format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n"), more);
    }

    /// Reads events. With HTTP/1.0 they come as they are, without chunks.
    fn events(&self, request: &str, mut more: impl FnMut(&str, &Value) -> bool) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut kind = String::new();
        for line in BufReader::new(stream).lines() {
            let line = line.unwrap();
            if let Some(name) = line.strip_prefix("event: ") {
                name.clone_into(&mut kind);
            }
            if let Some(data) = line.strip_prefix("data: ") {
                let data = serde_json::from_str(data).unwrap();
                if !more(&kind, &data) || kind == "answer" || kind == "problem" {
                    return;
                }
            }
        }
        panic!("the events broke off");
    }

    /// Kills one of the processes that it has made: a template, or the process of a run.
    pub fn kill_a_process(&self, random: &mut Random) {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
        let children: String = threads
            .filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("children")).ok())
            .collect::<Vec<_>>()
            .join(" ");
        let children: Vec<i32> = children.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
        if !children.is_empty() {
            let which = usize::try_from(random.below(children.len() as u64)).unwrap();
            // It may be gone.
            let _ = rustix::process::kill_process(Pid::from_raw(children[which]).unwrap(), Signal::KILL);
        }
    }

    /// A figure of its own.
    pub fn figure(&self, name: &str) -> u64 {
        let figures = self.text("/metrics");
        let line = figures.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|number| number.trim().parse().ok()).unwrap_or_else(|| panic!("no {name} in {figures}"))
    }

    /// The files, sockets and pipes that it has open.
    pub fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Resident memory.
    pub fn memory_kb(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// SIGTERM.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn exit_code(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a command that does not start. Returns its exit code, and what it writes to standard error.
pub fn refused(command: &mut Command) -> (Option<i32>, String) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

/// The state of a run with its answer.
pub fn finished(server: &Server, run: &str) -> Value {
    server.state_when(run, |state| state["answer"].is_object())
}

fn raw(address: &str, bytes: &[u8]) -> Vec<u8> {
    exchange(TcpStream::connect(address).unwrap(), bytes, Duration::from_secs(20))
}

fn exchange(mut stream: TcpStream, bytes: &[u8], patience: Duration) -> Vec<u8> {
    stream.set_read_timeout(Some(patience)).unwrap();
    // A service that has heard enough may have closed its side.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

/// Sends a request on a connection of its own.
pub fn request(address: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answered {
    parse(&raw(address, &request_bytes(method, path, headers, body)))
}

/// Sends a request to a service that may die or stand still. Without a whole answer there is none.
pub fn try_request(address: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Option<Answered> {
    let patience = Duration::from_secs(3);
    let stream = TcpStream::connect_timeout(&address.parse().unwrap(), patience).ok()?;
    let answer = exchange(stream, &request_bytes(method, path, headers, body), patience);
    let (status, headers, body) = parse(&answer);
    (status != 0 && !body.is_null()).then_some((status, headers, body))
}

fn request_bytes(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    [head.as_bytes(), body].concat()
}

/// The status of an answer; 0 when there is none.
pub fn status(answer: &[u8]) -> u16 {
    let text = String::from_utf8_lossy(answer);
    text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

/// Status, headers, and the body as JSON.
pub fn parse(answer: &[u8]) -> Answered {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let headers = head.lines().skip(1).filter_map(|line| {
        let (name, value) = line.split_once(": ")?;
        Some((name.to_lowercase(), value.to_owned()))
    });
    (status(answer), headers.collect(), serde_json::from_str(body).unwrap_or(Value::Null))
}

/// The digest of a token, as the configuration has it.
pub fn sha256_hex(text: &str) -> String {
    let mut child =
        Command::new("sha256sum").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("sha256sum is there");
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap().stdout;
    String::from_utf8(out).unwrap()[..64].to_owned()
}

/// A call that a tool server has taken.
#[derive(Clone, Copy, Debug)]
pub struct Made {
    pub n: u64,
    /// How often it came, with one key.
    pub times: usize,
    /// Whether its answer was an error.
    pub failed: bool,
}

/// What a tool server was asked to do.
#[derive(Debug, Default)]
struct Asked {
    /// The calls by their idempotency keys.
    by_key: HashMap<String, Made>,
    effects: HashMap<(u64, u64), usize>,
    /// The trace of the last call with each `k`.
    traces: HashMap<u64, String>,
}

/// A tool that pays, and counts how often. It takes its time. At `/flaky` it fails for every odd `n`.
pub struct ToolServer {
    pub port: u16,
    asked: Arc<Mutex<Asked>>,
    is_held: Arc<AtomicBool>,
}

impl ToolServer {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked: Arc<Mutex<Asked>> = Arc::default();
        let is_held = Arc::<AtomicBool>::default();
        let its = (asked.clone(), is_held.clone());
        let serve = move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (asked, is_held) = its.clone();
                std::thread::Builder::new().spawn(move || pay(stream, &asked, &is_held)).unwrap();
            }
        };
        std::thread::Builder::new().spawn(serve).unwrap();
        ToolServer { port, asked, is_held }
    }

    /// Holds its answers back until this is called with false. It has paid by then.
    pub fn hold(&self, is_held: bool) {
        self.is_held.store(is_held, Ordering::SeqCst);
    }

    /// The configuration of a service that has the tool.
    pub fn config(&self, policy: &str) -> String {
        ToolServer::config_of(self.port, policy)
    }

    /// The same, for a server of another kind.
    pub fn config_of(port: u16, policy: &str) -> String {
        let question = if policy == "ask" { "question = \"Pay {n}?\"\n" } else { "" };
        format!(
            "[tools.pay]\nurl = \"http://127.0.0.1:{port}/pay\"\neffect = \"write\"\npolicy = \"{policy}\"\n{question}\
             input = {{type = \"object\", properties = {{k = {{type = \"integer\"}}, n = {{type = \"integer\"}}}}, \
             required = [\"k\", \"n\"]}}\n[network]\nallow_private = [\"127.0.0.1:{port}\"]\n"
        )
    }

    /// The call with a key, when it was made.
    pub fn made(&self, key: &str) -> Option<Made> {
        self.asked.lock().unwrap().by_key.get(key).copied()
    }

    /// All calls that were made, by their keys.
    pub fn all_made(&self) -> HashMap<String, Made> {
        self.asked.lock().unwrap().by_key.clone()
    }

    /// The trace that a call with this `k` was part of.
    pub fn trace(&self, k: u64) -> Option<String> {
        self.asked.lock().unwrap().traces.get(&k).cloned()
    }

    /// How often it has paid.
    pub fn count(&self, k: u64, n: u64) -> usize {
        self.asked.lock().unwrap().effects.get(&(k, n)).copied().unwrap_or(0)
    }
}

/// A request to a tool: its target, its headers by their names in lower case, and its body.
fn read_request(reader: &mut impl BufRead) -> Option<(String, HashMap<String, String>, Vec<u8>)> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return None;
        }
        match line.trim() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let target = lines.first()?.split(' ').nth(1)?.to_owned();
    let headers = lines.iter().filter_map(|line| line.split_once(": "));
    let headers: HashMap<String, String> =
        headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
    let mut body = vec![0; headers.get("content-length").map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    Some((target, headers, body))
}

fn pay(stream: TcpStream, asked: &Mutex<Asked>, is_held: &AtomicBool) {
    let mut reader = BufReader::new(stream);
    while let Some((target, headers, body)) = read_request(&mut reader) {
        let argument = |name: &str| {
            let in_query = target.split(['?', '&']).find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
            let in_body = || serde_json::from_slice::<Value>(&body).unwrap()[name].as_u64();
            in_query.map(|text| text.parse().unwrap()).or_else(in_body).unwrap()
        };
        let (k, n) = (argument("k"), argument("n"));
        let failed = target.starts_with("/flaky") && n % 2 == 1;
        {
            let mut asked = asked.lock().unwrap();
            let key = headers.get("idempotency-key").cloned().unwrap_or_default();
            asked.by_key.entry(key).or_insert(Made { n, times: 0, failed }).times += 1;
            asked.traces.extend(headers.get("traceparent").map(|trace| (k, trace.clone())));
            *asked.effects.entry((k, n)).or_default() += 1;
        }
        std::thread::sleep(Duration::from_millis(10 + 7 * (k % 3)));
        while is_held.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let (status, body) = match failed {
            true => ("409 Conflict", format!("{{\"odd\":{n}}}")),
            false => ("200 OK", format!("{{\"n\":{n}}}")),
        };
        let head =
            format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
        if reader.get_mut().write_all(format!("{head}{body}").as_bytes()).is_err() {
            return;
        }
    }
}

/// Numbers that are the same in each run of a test.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, max: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % max
    }
}
