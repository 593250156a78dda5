//! A PostgreSQL server of the tests' own, on loopback, with its data in a temporary directory.
//!
//! A shell waits for the end of the test process, however it ends, stops the server and removes the directory.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Once, OnceLock};

/// The user of the database, and its password.
pub(crate) const USER: &str = "ptc";
pub(crate) const PASSWORD: &str = "se:cr@t";

/// A running server. It is stopped when this is dropped or the process ends.
pub(crate) struct Postgres {
    binaries: PathBuf,
    directory: PathBuf,
    port: u16,
    guardian: Child,
}

/// Returns the server that all tests of a process share, or `None` with a line if PostgreSQL is not installed.
///
/// # Panics
/// If it is not installed although the environment has `PTC_NEEDS_POSTGRES=1`.
pub(crate) fn shared() -> Option<&'static Postgres> {
    static SHARED: OnceLock<Option<Postgres>> = OnceLock::new();
    // A crash of the machine is not tested: without fsync it is the same, and faster.
    SHARED.get_or_init(|| Postgres::start("fsync = off", None)).as_ref()
}

impl Postgres {
    /// Starts a server with settings of `postgresql.conf`, and with a certificate and its key if it has TLS. Returns `None`
    /// with a line if PostgreSQL is not installed.
    ///
    /// # Panics
    /// If the server does not start, or is not installed although the environment has `PTC_NEEDS_POSTGRES=1`.
    pub(crate) fn start(settings: &str, tls: Option<(&str, &str)>) -> Option<Postgres> {
        static SERVERS: AtomicU32 = AtomicU32::new(0);
        let Some(binaries) = binaries() else {
            let needed = std::env::var("PTC_NEEDS_POSTGRES").is_ok_and(|needed| needed == "1");
            assert!(!needed, "PostgreSQL is not installed: apt-get install postgresql");
            static ONCE: Once = Once::new();
            // Not captured, unlike `eprintln!`.
            let line = "tests skipped: PostgreSQL is not installed (apt-get install postgresql)\n";
            ONCE.call_once(|| std::io::stderr().write_all(line.as_bytes()).unwrap());
            return None;
        };
        let name = format!("ptc-postgres-{}-{}", std::process::id(), SERVERS.fetch_add(1, Ordering::Relaxed));
        let directory = std::env::temp_dir().join(name);
        fs::create_dir(&directory).unwrap();
        let port = free_port();
        let guardian = guard(&binaries, &directory);
        let server = Postgres { binaries, directory, port, guardian };
        let mut config = format!(
            "port = {port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = ''\nmax_connections = 300\n\
             shared_buffers = 64MB\nlogging_collector = off\n{settings}\n"
        );
        fs::write(server.directory.join("password"), PASSWORD).unwrap();
        if let Some((certificate, key)) = tls {
            fs::write(server.directory.join("certificate.pem"), certificate).unwrap();
            fs::write(server.directory.join("key.pem"), key).unwrap();
            run(Command::new("chmod").arg("600").arg(server.directory.join("key.pem")));
            config += "ssl = on\nssl_cert_file = '../certificate.pem'\nssl_key_file = '../key.pem'\n";
        }
        if let Some(user) = other_user() {
            run(Command::new("chown").args(["-R", user]).arg(&server.directory));
        }
        let (data, password) = (server.data(), server.directory.join("password"));
        let password = format!("--pwfile={}", password.display());
        let options = ["-N", "-A", "scram-sha-256", "-U", USER, "--encoding=UTF8", "--locale=C", &password, "-D"];
        run(server.command("initdb").args(options).arg(&data));
        // As root another user owns the file: it is appended to, not replaced.
        let mut file = fs::OpenOptions::new().append(true).open(data.join("postgresql.conf")).unwrap();
        file.write_all(config.as_bytes()).unwrap();
        server.control(&["start"]);
        Some(server)
    }

    fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    fn command(&self, program: &str) -> Command {
        as_user(&self.binaries.join(program))
    }

    fn control(&self, what: &[&str]) {
        let log = self.directory.join("log");
        run(self.command("pg_ctl").arg("-D").arg(self.data()).arg("-l").arg(log).args(["-w", "-t", "60"]).args(what));
    }

    /// Returns the port on 127.0.0.1.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Returns the address of a database, without options.
    pub(crate) fn address(&self, database: &str) -> String {
        format!("postgres://{USER}:se%3Acr%40t@127.0.0.1:{}/{database}", self.port)
    }

    /// Creates a database that no other test has, and returns its name.
    pub(crate) fn create_database(&self) -> String {
        static DATABASES: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("create database {name}"));
        name
    }

    /// Runs SQL, and returns the columns of its rows with `|` between them.
    ///
    /// # Panics
    /// If it fails.
    pub(crate) fn sql(&self, database: &str, sql: &str) -> String {
        let mut psql = Command::new(self.binaries.join("psql"));
        psql.args([
            "-X",
            "-q",
            "-At",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            "127.0.0.1",
            "-U",
            USER,
            "-d",
            database,
            "-c",
            sql,
        ]);
        psql.arg("-p").arg(self.port.to_string()).env("PGPASSWORD", PASSWORD);
        run(&mut psql).trim().to_owned()
    }

    /// Restarts the server as after a crash.
    pub(crate) fn restart(&self) {
        self.control(&["restart", "-m", "immediate"]);
    }

    /// Ends all connections to a database.
    pub(crate) fn terminate(&self, database: &str) {
        let sql = format!("select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = '{database}'");
        self.sql("postgres", &sql);
    }

    /// Sends a signal to the server and all its processes.
    pub(crate) fn signal(&self, signal: &str) {
        let first = fs::read_to_string(self.data().join("postmaster.pid")).unwrap();
        let first = first.lines().next().unwrap().to_owned();
        let children = run(Command::new("ps").args(["-o", "pid=", "--ppid", &first]));
        let mut kill = Command::new("kill");
        kill.arg(format!("-{signal}")).arg(&first).args(children.split_whitespace());
        // One of them may have ended since.
        let _ = kill.stderr(Stdio::null()).status().unwrap();
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        drop(self.guardian.stdin.take());
        let _ = self.guardian.wait();
    }
}

/// Starts the shell that stops the server when its input ends.
fn guard(binaries: &Path, directory: &Path) -> Child {
    let script = "cat > /dev/null
        read -r server < \"$2/data/postmaster.pid\" && kill -CONT \"$server\"
        \"$1/pg_ctl\" -D \"$2/data\" -m immediate stop
        rm -rf \"$2\"";
    let mut shell = as_user(Path::new("/bin/sh"));
    shell.args(["-c", script, "guardian"]).arg(binaries).arg(directory);
    // A signal to the tests' process group does not reach it.
    std::os::unix::process::CommandExt::process_group(&mut shell, 0);
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Returns a port that nobody uses, and that the system gives to no client: it is free again after a restart.
fn free_port() -> u16 {
    static TRIES: AtomicU32 = AtomicU32::new(0);
    loop {
        let n = std::process::id().wrapping_mul(31).wrapping_add(TRIES.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(15_000 + n % 15_000).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Returns the directory of the newest version that is installed.
fn binaries() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut versions: Vec<_> =
        versions.filter_map(|version| version.file_name().to_str()?.parse::<u32>().ok()).collect();
    versions.sort_unstable();
    let debian = versions.into_iter().rev().map(|version| format!("/usr/lib/postgresql/{version}/bin").into());
    let others = ["/usr/bin", "/usr/local/bin", "/usr/pgsql/bin"].into_iter().map(PathBuf::from);
    debian.chain(others).find(|directory: &PathBuf| directory.join("initdb").exists())
}

/// Returns the user that the server runs as, if this process is root: PostgreSQL refuses that.
fn other_user() -> Option<&'static str> {
    static USER: OnceLock<Option<&'static str>> = OnceLock::new();
    *USER.get_or_init(|| {
        let is_root = run(Command::new("id").arg("-u")).trim() == "0";
        let exists = |user: &&str| Command::new("id").arg(user).output().is_ok_and(|id| id.status.success());
        ["postgres", "nobody"].into_iter().find(exists).filter(|_| is_root)
    })
}

fn as_user(program: &Path) -> Command {
    let mut command = match other_user() {
        Some(user) => {
            let mut command = Command::new("setpriv");
            let group = run(Command::new("id").args(["-g", user]));
            command.args(["--reuid", user, "--regid", group.trim(), "--clear-groups", "--"]).arg(program);
            command
        }
        None => Command::new(program),
    };
    command.current_dir("/").stdin(Stdio::null());
    command
}

/// Runs a command, and returns what it prints.
///
/// # Panics
/// If it fails.
fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}
