//! A PostgreSQL server of the test's own, on a socket in a folder that goes with it, and on a port where it is to speak TLS.
//! `initdb` and `postgres` are Debian's (`apt install postgresql`); a test that needs them fails without. The benchmarks have
//! this file, too.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long a server may take to start.
const START: Duration = Duration::from_secs(60);

/// The port in the name of a socket that nobody else has.
const SOCKET_PORT: u16 = 5_432;

/// A running server. It stops when dropped.
pub struct PostgresProcess {
    folder: TempDir,
    port: u16,
    process: Child,
}

impl PostgresProcess {
    /// Starts one without databases of anybody.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same with settings, `name=value`, which come after the tests' own.
    pub fn start_with(settings: &[&str]) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), SOCKET_PORT, settings)
    }

    /// Starts one that listens on a port of this machine, too, and speaks TLS there with a certificate and its key. Clients may
    /// show certificates of an authority.
    pub fn start_encrypted(certificate: &Path, key: &Path, authority: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = vec!["listen_addresses=localhost".to_owned(), "ssl=on".to_owned()];
        for (setting, file) in [("ssl_cert_file", certificate), ("ssl_key_file", key), ("ssl_ca_file", authority)] {
            // A key that others may read is refused.
            let own = folder.path().join(setting);
            std::fs::copy(file, &own).unwrap();
            std::fs::set_permissions(&own, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
            settings.push(format!("{setting}={}", own.display()));
        }
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
        Self::start_in(folder, port, &settings)
    }

    fn start_in(folder: TempDir, port: u16, settings: &[&str]) -> Self {
        let programs = programs();
        // The server does not run as root.
        let is_root =
            PathBuf::from("/proc/self").metadata().is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
        if is_root {
            assert!(Command::new("chown").args(["-R", "postgres"]).arg(folder.path()).status().unwrap().success());
        }
        let command = |program: &str| {
            let program = programs.join(program);
            if !is_root {
                return Command::new(program);
            }
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--"]).arg(program);
            command
        };
        let data = folder.path().join("data");
        let made = command("initdb")
            .args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "-D"])
            .arg(&data)
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut server = command("postgres");
        server.arg("-D").arg(&data).args(["-c", "listen_addresses=", "-c", "fsync=off", "-c"]);
        server.arg(format!("unix_socket_directories={}", folder.path().display()));
        server.arg("-c").arg(format!("port={port}")).args(settings.iter().flat_map(|setting| ["-c", *setting]));
        let process = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let started = Self { folder, port, process };
        let deadline = Instant::now() + START;
        while !started.psql("postgres", "SELECT 1").is_ok_and(|answer| answer.trim() == "1") {
            assert!(Instant::now() < deadline, "PostgreSQL did not start");
            // It is asked again.
            std::thread::sleep(Duration::from_millis(50));
        }
        started
    }

    /// Makes an empty database and returns the URL by which a catalog is opened in it.
    pub fn new_database(&self, name: &str) -> String {
        self.psql("postgres", &format!("CREATE DATABASE {name}")).unwrap();
        let socket = self.folder.path().display().to_string().replace('/', "%2F");
        format!("postgres://postgres@{socket}:{}/{name}", self.port)
    }

    /// The port of one that was started to speak TLS.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of its socket, for other clients.
    pub fn socket(&self) -> &Path {
        self.folder.path()
    }

    /// Lets all of its processes stand still, as those of a machine that hangs, until what is returned is dropped.
    pub fn suspend(&self) -> SuspendedPostgres {
        let of_server = "SELECT string_agg(pid::text, ' ') FROM pg_stat_activity WHERE pid <> pg_backend_pid()";
        let mut processes: Vec<String> =
            self.psql("postgres", of_server).unwrap().split_whitespace().map(str::to_owned).collect();
        // The one that takes new connections stops first.
        processes.insert(0, self.server_process().expect("it runs"));
        // A program that started it stops with it, and does not go on by itself.
        processes.push(self.process.id().to_string());
        let suspended = SuspendedPostgres { processes };
        suspended.signal("STOP");
        suspended
    }

    /// The process that takes connections, also where another program started it.
    #[expect(clippy::disallowed_methods, reason = "a test may wait for the disk")]
    fn server_process(&self) -> Option<String> {
        let file = std::fs::read_to_string(self.folder.path().join("data/postmaster.pid")).ok()?;
        file.lines().next().map(str::to_owned)
    }

    /// What `psql` prints for a statement, without decoration.
    pub fn psql(&self, database: &str, sql: &str) -> Result<String, String> {
        let answer = Command::new(programs().join("psql"))
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-h"])
            .arg(self.folder.path())
            .args(["-p", &self.port.to_string(), "-d", database, "-c", sql])
            .output()
            .unwrap();
        match answer.status.success() {
            true => Ok(String::from_utf8_lossy(&answer.stdout).into_owned()),
            false => Err(String::from_utf8_lossy(&answer.stderr).into_owned()),
        }
    }
}

impl Drop for PostgresProcess {
    fn drop(&mut self) {
        if let Some(process) = self.server_process() {
            let _ = Command::new("kill").args(["-QUIT", process.as_str()]).status();
        }
        // A program that started it may stop itself once more after it went on: it saw late that the server had stopped.
        while let Ok(None) = self.process.try_wait() {
            let _ = Command::new("kill").args(["-s", "CONT", &self.process.id().to_string()]).status();
        }
    }
}

/// The processes of a server, which stand still.
pub struct SuspendedPostgres {
    processes: Vec<String>,
}

impl SuspendedPostgres {
    fn signal(&self, name: &str) {
        // One of them may have ended meanwhile.
        let _ = Command::new("kill").args(["-s", name]).args(&self.processes).status();
    }
}

impl Drop for SuspendedPostgres {
    fn drop(&mut self) {
        self.signal("CONT");
    }
}

/// The folder of the newest PostgreSQL that is installed.
fn programs() -> PathBuf {
    let mut found: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|version| Some(version.ok()?.path().join("bin")))
        .filter(|bin| bin.join("initdb").is_file())
        .collect();
    found.sort();
    found.pop().expect("PostgreSQL is not installed: apt install postgresql")
}
