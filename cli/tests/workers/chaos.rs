//! Two fronts and four workers with one database, or one process with one file, while processes are killed and paused,
//! the tools hang, connections break, the database crashes and the disk is full. `CHAOS_SECONDS` says for how long. Every run
//! that was acknowledged ends once, as it would have undisturbed; every effect happens once, or a client was asked about it.

use super::kinds::{self, KINDS, VARIANTS};
use super::postgres::Postgres;
use super::{Cluster, PATIENT, config};
use crate::service::{Dir, Random, Server, ToolServer, ptcl, try_request};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

/// How many runs are under way at once.
const UNDER_WAY: usize = 120;
/// What a process may grow by while it runs: it keeps nothing of what is done.
const MORE_MEMORY_KB: u64 = 64 << 10;

/// What clients know.
struct World<'a> {
    tool: &'a ToolServer,
    /// The addresses of the fronts.
    fronts: RwLock<Vec<String>>,
    /// Kind and `k` of the runs that were acknowledged, by their IDs.
    runs: Mutex<HashMap<String, (usize, usize)>>,
    /// The keys of calls of which nobody knew what had come.
    asked: Mutex<BTreeSet<String>>,
    done: AtomicUsize,
    /// No more runs are submitted.
    is_closing: AtomicBool,
    is_over: AtomicBool,
}

impl World<'_> {
    fn runs(&self) -> std::sync::MutexGuard<'_, HashMap<String, (usize, usize)>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed) || thread::panicking()
    }

    /// Sends a request to one of the fronts, whatever becomes of it.
    fn send(
        &self,
        random: &mut Random,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: &Value,
    ) -> Option<(u16, Value)> {
        let front = {
            let fronts = self.fronts.read().unwrap_or_else(PoisonError::into_inner);
            fronts[usize::try_from(random.below(fronts.len() as u64)).unwrap()].clone()
        };
        let header = key.map(|key| ("Idempotency-Key", key));
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, _, answer) = try_request(&front, method, path, header.as_slice(), body.as_bytes())?;
        match status {
            // A front that stands still or whose database is away.
            408 | 429 | 503 => None,
            status => Some((status, answer)),
        }
    }

    /// Submits runs until it is told to stop.
    fn submit(&self, seed: u64) {
        let mut random = Random(seed);
        for number in 0.. {
            while self.runs().len() > self.done.load(Ordering::Relaxed) + UNDER_WAY
                && !self.is_closing.load(Ordering::Relaxed)
            {
                thread::sleep(Duration::from_millis(10));
            }
            let (kind, k) = (random.below(KINDS as u64), random.below(VARIANTS as u64));
            let (kind, k) = (usize::try_from(kind).unwrap(), usize::try_from(k).unwrap());
            let key = format!("{seed}-{number}");
            let mut times = 1 + random.below(8) / 7;
            while times > 0 {
                if self.is_closing.load(Ordering::Relaxed) || self.is_over() {
                    return;
                }
                let answer = self.send(&mut random, "POST", "/v1/runs", Some(&key), &kinds::request(kind, k));
                let Some((status, state)) = answer else { continue };
                assert_eq!(status, 202, "{state}");
                times -= 1;
                let run_id = state["run_id"].as_str().unwrap().to_owned();
                if let Some(known) = self.runs().insert(run_id, (kind, k)) {
                    assert_eq!(known, (kind, k));
                }
            }
        }
    }

    /// Answers calls until all is done.
    fn answer(&self, seed: u64) {
        let mut random = Random(seed);
        while !self.is_over() {
            thread::sleep(Duration::from_millis(10));
            let Some((200, list)) =
                self.send(&mut random, "GET", "/v1/runs?status=waiting&limit=50", None, &Value::Null)
            else {
                continue;
            };
            for run in list["runs"].as_array().unwrap() {
                let run_id = run["run_id"].as_str().unwrap();
                for call in run["calls"].as_array().unwrap() {
                    let (reply, is_unknown) = kinds::reply(self.tool, run_id, call);
                    let call = call["call"].as_str().unwrap();
                    if is_unknown {
                        self.asked.lock().unwrap().insert(format!("{run_id}/{call}"));
                    }
                    let path = format!("/v1/runs/{run_id}/calls/{call}");
                    let answer = self.send(&mut random, "POST", &path, None, &reply);
                    // Another client may have answered, or the run has gone on without an answer.
                    assert!(answer.as_ref().is_none_or(|(status, _)| [200, 404, 409].contains(status)), "{answer:?}");
                }
            }
        }
    }

    /// Returns the answers of all runs, when they have them.
    fn wait(&self, patience: Duration) -> HashMap<String, Value> {
        let (mut random, mut answers, begun) = (Random(5), HashMap::new(), Instant::now());
        let runs: Vec<String> = self.runs().keys().cloned().collect();
        while answers.len() < runs.len() {
            for run_id in &runs {
                if answers.contains_key(run_id) {
                    continue;
                }
                let state = self.send(&mut random, "GET", &format!("/v1/runs/{run_id}"), None, &Value::Null);
                let Some((status, state)) = state else { continue };
                assert_eq!(status, 200, "a run that was acknowledged: {state}");
                assert!(state["status"] != "stuck", "{state}");
                if state["answer"].is_object() {
                    answers.insert(run_id.clone(), state["answer"].clone());
                }
                assert!(begun.elapsed() < patience, "{} of {} runs are done: {state}", answers.len(), runs.len());
            }
        }
        answers
    }

    /// Returns the number of runs that are not done.
    fn under_way(&self, random: &mut Random) -> Option<usize> {
        let count = |status| {
            let path = format!("/v1/runs?status={status}&limit=1000");
            let (status, list) = self.send(random, "GET", &path, None, &Value::Null)?;
            assert_eq!(status, 200, "{list}");
            Some(list["runs"].as_array().unwrap().len())
        };
        ["queued", "running", "waiting", "stuck"].into_iter().map(count).sum()
    }

    /// Counts the runs that are done, for those who submit.
    fn count(&self, random: &mut Random) {
        if let Some(under_way) = self.under_way(random) {
            self.done.store(self.runs().len().saturating_sub(under_way), Ordering::Relaxed);
        }
    }
}

/// What a process without any disturbance answers, by kind and `k`.
fn undisturbed(tool: &ToolServer, config: &str) -> HashMap<(usize, usize), Value> {
    let dir = crate::service::Dir::new("undisturbed");
    let server = Server::start(&["--config", &dir.write("service.toml", config)]);
    let world = World::new(tool, vec![server.address.clone()]);
    let mut wanted = HashMap::new();
    for (kind, k) in (0..KINDS).flat_map(|kind| (0..VARIANTS).map(move |k| (kind, k))) {
        let (status, state) = server.post("/v1/runs", &kinds::request(kind, k));
        assert_eq!(status, 202, "{state}");
        world.runs().insert(state["run_id"].as_str().unwrap().to_owned(), (kind, k));
    }
    let answers = thread::scope(|scope| {
        scope.spawn(|| world.answer(3));
        let answers = world.wait(PATIENT);
        world.is_over.store(true, Ordering::Relaxed);
        answers
    });
    assert!(world.asked.lock().unwrap().is_empty());
    for (run_id, run) in &*world.runs() {
        wanted.insert(*run, answers[run_id].clone());
    }
    wanted
}

impl<'a> World<'a> {
    fn new(tool: &'a ToolServer, fronts: Vec<String>) -> Self {
        World {
            tool,
            fronts: RwLock::new(fronts),
            runs: Mutex::default(),
            asked: Mutex::default(),
            done: AtomicUsize::new(0),
            is_closing: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        }
    }
}

/// The processes that share a store, and what happens to the store.
trait Site {
    /// The processes that serve HTTP: the first ones.
    const FRONTS: usize;
    const PROCESSES: usize;

    fn command(&self, number: usize) -> Command;

    /// Does something to the store. Returns what.
    fn disturb(&self, random: &mut Random) -> &'static str;

    /// Returns the journal of a run, for a person.
    fn journal(&self, run_id: &str) -> String;
}

impl Site for Cluster<'_> {
    const FRONTS: usize = 2;
    const PROCESSES: usize = 6;

    fn command(&self, number: usize) -> Command {
        let isolation = if number.is_multiple_of(2) { "in-process" } else { "process" };
        match number < Self::FRONTS {
            true => self.command("serve", &["--no-worker", "--isolation", "in-process"]),
            false => self.command("worker", &["--slots", "8", "--isolation", isolation]),
        }
    }

    fn disturb(&self, random: &mut Random) -> &'static str {
        if random.below(4) > 0 {
            self.server.terminate(&self.database);
            return "times all connections ended";
        }
        self.server.restart();
        "restarts of the database"
    }

    fn journal(&self, run_id: &str) -> String {
        let lines =
            "select string_agg(first || ': ' || convert_from(text, 'UTF8'), '' order by first) from ptc_lisp.lines";
        self.sql(&format!("{lines} where run_id = '{run_id}'"))
    }
}

/// A store in a file, on a disk of its own if this process may mount one.
struct File {
    dir: Dir,
    config: String,
    disk: Option<PathBuf>,
}

impl File {
    fn new(config: &str) -> Self {
        let dir = Dir::new("chaos");
        let config = dir.write("service.toml", config);
        let disk = PathBuf::from(dir.path("disk"));
        std::fs::create_dir(&disk).unwrap();
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=256m", "tmpfs"]).arg(&disk).output();
        let is_mounted = mount.is_ok_and(|mount| mount.status.success());
        if !is_mounted {
            println!("the disk is never full: no file system can be mounted here");
        }
        File { dir, config, disk: is_mounted.then_some(disk) }
    }

    fn store(&self) -> String {
        let dir = self.disk.as_deref().unwrap_or(Path::new(&self.dir.path("disk"))).to_owned();
        dir.join("ptc.db").to_str().unwrap().to_owned()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if let Some(disk) = &self.disk {
            let _ = Command::new("umount").arg("-l").arg(disk).status();
        }
    }
}

impl Site for File {
    const FRONTS: usize = 1;
    const PROCESSES: usize = 1;

    fn command(&self, _: usize) -> Command {
        let mut command = ptcl();
        command.args(["serve", "--listen", "127.0.0.1:0", "--isolation", "process"]);
        command.args(["--store", &self.store(), "--config", &self.config]);
        command
    }

    fn disturb(&self, random: &mut Random) -> &'static str {
        let Some(disk) = &self.disk else { return "disks that cannot be full" };
        let filler = disk.join("filler");
        // What is left, to the last page.
        let _ = std::fs::write(&filler, vec![0; 256 << 20]);
        thread::sleep(Duration::from_millis(random.below(2_000)));
        std::fs::remove_file(&filler).unwrap();
        "times a full disk"
    }
}

/// The processes, and what is done to them.
struct Chaos<'a, S> {
    site: &'a S,
    world: &'a World<'a>,
    /// Fronts first.
    processes: Vec<(Server, bool)>,
    /// The memory of each process when it was first looked at, with its ID.
    memory: HashMap<u32, u64>,
    growth: u64,
    random: Random,
    done: HashMap<&'static str, usize>,
}

impl<S: Site> Chaos<'_, S> {
    fn start(site: &S, number: usize) -> Server {
        let begun = Instant::now();
        loop {
            match Server::try_of(&mut site.command(number)) {
                Ok(server) => return server,
                // The database may be on its way back.
                Err(why) => assert!(begun.elapsed() < PATIENT, "{why}"),
            }
        }
    }

    /// Picks a process.
    fn pick(&mut self) -> usize {
        usize::try_from(self.random.below(S::PROCESSES as u64)).unwrap()
    }

    fn restart(&mut self, number: usize) {
        let server = Chaos::start(self.site, number);
        if number < S::FRONTS {
            self.world.fronts.write().unwrap()[number].clone_from(&server.address);
        }
        self.processes[number] = (server, true);
    }

    fn kill(&mut self, number: usize) {
        self.processes[number].0.kill();
        self.restart(number);
    }

    fn step(&mut self) {
        thread::sleep(Duration::from_millis(20 + self.random.below(200)));
        let (one, other) = (self.pick(), self.pick());
        let what = match self.random.below(16) {
            0..=5 => {
                self.kill(one);
                "processes killed"
            }
            6..=9 => {
                self.processes[one].0.signal(Signal::STOP);
                thread::sleep(Duration::from_millis(100 + self.random.below(2_400)));
                if one != other && self.random.below(2) == 0 {
                    self.kill(other);
                }
                self.processes[one].0.signal(Signal::CONT);
                "processes paused"
            }
            10 | 11 => {
                self.processes[one].0.terminate();
                assert_eq!(self.processes[one].0.exit_code(), Some(0));
                self.restart(one);
                "processes drained"
            }
            12 => {
                self.world.tool.hold(true);
                thread::sleep(Duration::from_millis(self.random.below(3_000)));
                self.world.tool.hold(false);
                "times the tools hung"
            }
            _ => self.site.disturb(&mut self.random),
        };
        *self.done.entry(what).or_default() += 1;
        self.look_at_memory();
        self.world.count(&mut self.random);
    }

    fn look_at_memory(&mut self) {
        for (server, is_new) in &mut self.processes {
            // What it takes to start is not growth.
            if std::mem::take(is_new) {
                continue;
            }
            let now = server.memory_kb();
            let before = *self.memory.entry(server.id()).or_insert(now);
            self.growth = self.growth.max(now.saturating_sub(before));
        }
    }
}

fn from_environment(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
}

const CONFIG: &str = "drain_seconds = 5\n";

/// Disturbs the processes of a site while runs are submitted and answered, and checks what came of the runs.
fn chaos<S: Site + Sync>(site: &S, tool: &ToolServer, wanted: &HashMap<(usize, usize), Value>) {
    let processes: Vec<_> = (0..S::PROCESSES).map(|number| (Chaos::start(site, number), true)).collect();
    let world = World::new(tool, processes[..S::FRONTS].iter().map(|(front, _)| front.address.clone()).collect());
    let mut chaos = Chaos {
        site,
        world: &world,
        processes,
        memory: HashMap::new(),
        growth: 0,
        random: Random(from_environment("CHAOS_SEED", 17)),
        done: HashMap::new(),
    };
    let (answers, took) = thread::scope(|scope| {
        let world = &world;
        let submit = (10..13).map(|seed| scope.spawn(move || world.submit(seed))).collect::<Vec<_>>();
        (20..22).for_each(|seed| drop(scope.spawn(move || world.answer(seed))));
        // Ends the threads also when this one fails.
        let _over = Over(&world.is_over);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(from_environment("CHAOS_SECONDS", 20)) {
            chaos.step();
        }
        world.is_closing.store(true, Ordering::Relaxed);
        // The last ones are acknowledged meanwhile.
        submit.into_iter().for_each(|thread| thread.join().unwrap());
        let answers = world.wait(3 * PATIENT);
        // Those that were stored without an acknowledgement end, too.
        let front = &chaos.processes[0].0;
        front.until(PATIENT, "all runs", || world.under_way(&mut Random(6)) == Some(0));
        (answers, begun.elapsed())
    });
    check(site, &world, wanted, &answers);
    chaos.look_at_memory();
    assert!(chaos.growth < MORE_MEMORY_KB, "a process grew by {} kB", chaos.growth);
    let mut figures: Vec<_> = chaos.done.iter().map(|(what, times)| format!("{times} {what}")).collect();
    figures.sort_unstable();
    let (made, asked) = (tool.all_made(), world.asked.lock().unwrap().len());
    let again = made.values().filter(|made| made.times > 1).count();
    println!(
        "{} runs in {:.1} s, {}, {asked} calls asked about, {again} of {} calls came twice, at most {} MB grown",
        answers.len(),
        took.as_secs_f64(),
        figures.join(", "),
        made.len(),
        chaos.growth >> 10
    );
}

#[test]
fn chaos_loses_nothing_and_repeats_nothing() {
    let Some(server) = Postgres::start("fsync = off", None) else { return };
    let tool = ToolServer::start();
    let config = config(1, CONFIG) + &kinds::tools(tool.port);
    let wanted = undisturbed(&tool, &config);
    let cluster = Cluster::new(&server, &config);
    chaos(&cluster, &tool, &wanted);
    let stored = cluster.sql("select count(*) from ptc_lisp.runs");
    assert_eq!(cluster.sql("select count(*) from ptc_lisp.answers"), stored);
}

#[test]
fn chaos_around_one_file_loses_nothing_and_repeats_nothing() {
    let tool = ToolServer::start();
    let config = config(1, CONFIG) + &kinds::tools(tool.port);
    let wanted = undisturbed(&tool, &config);
    let file = File::new(&config);
    chaos(&file, &tool, &wanted);
    let checked = ptcl().args(["store", "check", "--store", &file.store()]).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

/// Ends what waits for it, however this thread ends.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn check(
    site: &impl Site,
    world: &World<'_>,
    wanted: &HashMap<(usize, usize), Value>,
    answers: &HashMap<String, Value>,
) {
    let asked = world.asked.lock().unwrap();
    let asked_runs: HashSet<&str> = asked.iter().filter_map(|key| Some(key.split_once('/')?.0)).collect();
    for (run_id, run) in &*world.runs() {
        let was_asked = asked_runs.contains(run_id.as_str());
        let essence = |answer| kinds::essence(answer, was_asked);
        assert_eq!(essence(&answers[run_id]), essence(&wanted[run]), "run {run_id} of kind {run:?}");
    }
    let reads = |key: &str| {
        let run = key.split_once('/').and_then(|(run_id, _)| world.runs().get(run_id).copied());
        // Calls that read are made again without a question.
        run.is_none_or(|(kind, _)| [1, 7].contains(&kind))
    };
    for (key, made) in world.tool.all_made() {
        let is_right = made.times == 1 || asked.contains(&key) || reads(&key);
        let journal = || site.journal(key.split('/').next().unwrap_or_default());
        assert!(is_right, "{key} came {} times: {}", made.times, journal());
    }
}
