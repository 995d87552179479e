//! A PostgreSQL cluster for a test: in a temporary folder, on a Unix socket, not as root, with `fsync` on. It stops with the process
//! that started it.

use std::{
    ffi::OsStr,
    fs,
    io::{BufRead, BufReader},
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

/// The user that owns every cluster.
pub(crate) const USER: &str = "till";

/// The programs of PostgreSQL, and the user to run them as.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    folder: PathBuf,
    /// The user and group to run as if this process runs as root, which the server refuses.
    owner: Option<(u32, u32)>,
}

impl Programs {
    /// Finds the programs.
    ///
    /// # Errors
    /// What is missing.
    pub(crate) fn find() -> Result<Self, String> {
        let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let mut folders: Vec<PathBuf> = installed.map(|version| version.path().join("bin")).collect();
        // The newest version first.
        folders.sort_by_key(|folder| std::cmp::Reverse(version_of(folder)));
        let path = std::env::var_os("PATH").unwrap_or_default();
        folders.extend(std::env::split_paths(&path));
        let has_all = |folder: &&PathBuf| ["initdb", "postgres", "psql"].iter().all(|name| folder.join(name).is_file());
        let folder = folders.iter().find(has_all).ok_or("no initdb, postgres and psql: install postgresql")?.clone();
        Ok(Self { folder, owner: owner()? })
    }

    /// Returns a command that runs one of the programs.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(self.folder.join(program.as_ref()));
        self.confine(&mut command);
        command
    }

    /// Returns a command that runs another program as the user of the servers.
    pub(crate) fn confined(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        self.confine(&mut command);
        command
    }

    fn confine(&self, command: &mut Command) {
        if let Some((user, group)) = self.owner {
            command.uid(user).gid(group);
        }
        command.current_dir("/").env("LC_ALL", "C");
    }
}

/// Returns the number of a version by its folder.
fn version_of(folder: &Path) -> u32 {
    let version = folder.parent().and_then(Path::file_name).and_then(OsStr::to_str);
    version.and_then(|version| version.parse().ok()).unwrap_or(0)
}

/// Returns the owner of the server's files if this process runs as root.
fn owner() -> Result<Option<(u32, u32)>, String> {
    use std::os::unix::fs::MetadataExt;
    let me = fs::metadata("/proc/self").map_err(|error| error.to_string())?.uid();
    if me != 0 {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd").map_err(|error| error.to_string())?;
    let find = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut numbers = line.split(':').skip(2).map(|number| number.parse::<u32>());
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    };
    find("postgres")
        .or_else(|| find("nobody"))
        .map(Some)
        .ok_or_else(|| "no user but root: the server refuses it".to_owned())
}

/// A running cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    programs: Programs,
    folder: tempfile::TempDir,
    server: Option<Child>,
    databases: AtomicUsize,
    log: Arc<Mutex<Vec<String>>>,
}

impl Cluster {
    /// Creates a cluster and starts it. `settings` are server settings, such as `max_connections=20`.
    ///
    /// # Panics
    /// If the programs fail.
    pub(crate) fn start(programs: &Programs, settings: &[&str]) -> Self {
        let folder = tempfile::Builder::new().prefix("till-pg").tempdir().expect("a temporary folder");
        if let Some((user, group)) = programs.owner {
            chown(folder.path(), Some(user), Some(group)).expect("a folder of the server's user");
        }
        let data = folder.path().join("data");
        let made = programs
            .command("initdb")
            .args(["--auth-local=trust", "--auth-host=scram-sha-256", "--no-sync", "--encoding=UTF8", "--locale=C"])
            .args(["--data-checksums", "--username", USER, "--pgdata"])
            .arg(&data)
            .output()
            .expect("initdb runs");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        let mut cluster = Self {
            programs: programs.clone(),
            folder,
            server: None,
            databases: AtomicUsize::new(0),
            log: Arc::default(),
        };
        cluster.run(settings);
        cluster
    }

    /// Starts the server and waits until it accepts connections.
    ///
    /// # Panics
    /// If it does not start.
    pub(crate) fn run(&mut self, settings: &[&str]) {
        // A shell waits for the end of its input, which comes with the end of the process that started it, and stops the server.
        let script = "\"$@\" 2>&1 & server=$!; cat >/dev/null; kill -QUIT $server; wait $server";
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).arg(self.programs.folder.join("postgres")).arg("-D").arg(self.data());
        command.arg("-k").arg(self.folder.path());
        let own = ["listen_addresses=", "fsync=on", "shared_buffers=64MB", "max_connections=60", "log_line_prefix="];
        for setting in own.iter().chain(settings) {
            command.args(["-c", setting]);
        }
        self.programs.confine(&mut command);
        let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the server starts");
        let log = BufReader::new(server.stdout.take().expect("its output is piped"));
        let mut lines = log.lines().map_while(Result::ok);
        let mut before = String::new();
        let ready = lines.find(|line| {
            before.push_str(line);
            before.push('\n');
            line.contains("database system is ready to accept")
        });
        assert!(ready.is_some(), "the server does not start:\n{before}");
        let log = Arc::clone(&self.log);
        std::thread::Builder::new()
            .name("server log".to_owned())
            .spawn(move || lines.for_each(|line| log.lock().unwrap_or_else(PoisonError::into_inner).push(line)))
            .expect("a thread");
        self.server = Some(server);
    }

    /// Creates a standby of a running cluster and starts it.
    ///
    /// # Panics
    /// If the programs fail.
    pub(crate) fn standby(&self) -> Self {
        let folder = tempfile::Builder::new().prefix("till-pg").tempdir().expect("a temporary folder");
        if let Some((user, group)) = self.programs.owner {
            chown(folder.path(), Some(user), Some(group)).expect("a folder of the server's user");
        }
        let programs = self.programs.clone();
        let mut standby = Self { programs, folder, server: None, databases: AtomicUsize::new(0), log: Arc::default() };
        standby.follow(self);
        standby
    }

    /// Replaces the files of a server that has failed by those of another, and starts it as a standby of that one, at its address as
    /// before.
    ///
    /// # Panics
    /// If the programs fail.
    pub(crate) fn follow(&mut self, primary: &Self) {
        self.stop();
        if self.data().exists() {
            fs::remove_dir_all(self.data()).expect("the files of a stopped server");
        }
        primary.back_up(&self.data(), &["--write-recovery-conf"]);
        self.run(&[]);
    }

    /// Copies the files of a running server into a new folder, as a base backup with the log that it needs.
    ///
    /// # Panics
    /// If the program fails.
    pub(crate) fn back_up(&self, to: &Path, options: &[&str]) {
        let copied = self
            .programs
            .command("pg_basebackup")
            .args(["--checkpoint=fast", "--no-sync", "--username", USER, "--host"])
            .arg(self.folder.path())
            .arg("--pgdata")
            .arg(to)
            .args(options)
            .output()
            .expect("pg_basebackup runs");
        assert!(copied.status.success(), "pg_basebackup: {}", String::from_utf8_lossy(&copied.stderr));
    }

    /// Starts a cluster whose files come from a base backup. `prepare` gets the folder of the files before the server starts.
    ///
    /// # Panics
    /// If the server does not start.
    pub(crate) fn restore(programs: &Programs, backup: &Path, prepare: impl FnOnce(&Self)) -> Self {
        let folder = tempfile::Builder::new().prefix("till-pg").tempdir().expect("a temporary folder");
        if let Some((user, group)) = programs.owner {
            chown(folder.path(), Some(user), Some(group)).expect("a folder of the server's user");
        }
        let programs = programs.clone();
        let mut cluster = Self { programs, folder, server: None, databases: AtomicUsize::new(0), log: Arc::default() };
        // Copied as the server's user, who owns the files then.
        let copied =
            cluster.programs.confined("cp").arg("-a").arg(backup).arg(cluster.data()).output().expect("cp runs");
        assert!(copied.status.success(), "cp: {}", String::from_utf8_lossy(&copied.stderr));
        prepare(&cluster);
        cluster.run(&[]);
        cluster
    }

    /// Makes commits wait for a standby.
    pub(crate) fn wait_for_standby(&self) {
        self.sql("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'");
        self.sql("postgres", "SELECT pg_reload_conf()");
        // A new connection has what the server has passed on to the others.
        let is_set = || self.sql("postgres", "SHOW synchronous_standby_names") == "*";
        assert!((0..1_000).any(|_| is_set()), "the server reads its settings again");
    }

    /// Makes a standby the primary.
    pub(crate) fn promote(&self) {
        assert_eq!(self.sql("postgres", "SELECT pg_promote()"), "t");
    }

    /// Stops the server without a checkpoint, like a crash.
    pub(crate) fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            drop(server.stdin.take());
            let _ = server.wait();
        }
    }

    /// Returns the lines that the server has logged since the last call.
    pub(crate) fn take_log(&self) -> Vec<String> {
        std::mem::take(&mut self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the folder of the server's socket.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the folder of the server's files.
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Writes a file that only the server can read into its folder.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub(crate) fn add_file(&self, name: &str, content: &[u8]) {
        let path = self.data().join(name);
        fs::write(&path, content).expect("a new file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a file of ours");
        if let Some((user, group)) = self.programs.owner {
            chown(&path, Some(user), Some(group)).expect("a file of the server's user");
        }
    }

    /// Returns the URL of a database.
    pub(crate) fn url(&self, database: &str) -> String {
        format!("postgres://{USER}@{}/{database}", self.host())
    }

    /// Returns the URL of a database of a cluster and its standby.
    pub(crate) fn url_with(&self, standby: &Self, database: &str) -> String {
        format!("postgres://{USER}@{},{}/{database}", self.host(), standby.host())
    }

    fn host(&self) -> String {
        self.folder.path().to_string_lossy().replace('/', "%2F")
    }

    /// Runs SQL in a database and returns what it prints.
    ///
    /// # Panics
    /// If it fails.
    pub(crate) fn sql(&self, database: &str, sql: &str) -> String {
        let ran = self
            .programs
            .command("psql")
            .args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1"])
            .args(["--username", USER, "--dbname", database, "--command", sql, "--host"])
            .arg(self.folder.path())
            .output()
            .expect("psql runs");
        assert!(ran.status.success(), "{sql}: {}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8_lossy(&ran.stdout).trim().to_owned()
    }

    /// Creates a database, empty or as a copy of another, and returns its name.
    pub(crate) fn create_database(&self, template: Option<&str>) -> String {
        let name = format!("till{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let template = template.map(|template| format!(" TEMPLATE {template}")).unwrap_or_default();
        self.sql("postgres", &format!("CREATE DATABASE {name}{template}"));
        name
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop();
    }
}
