//! A process of the binary: started, observed, and always killed at the end.

use std::{
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use serde_json::Value;

use super::{
    databases,
    wait::{background, until},
};

/// A running `hivetill`, killed when dropped.
pub(crate) struct Process {
    child: Child,
    title: String,
    stdout: Arc<Mutex<Vec<String>>>,
    stderr: Arc<Mutex<Vec<String>>>,
}

impl Process {
    /// Starts the binary with these arguments, without any setting of this machine.
    pub(crate) fn start<A: AsRef<str>>(args: &[A]) -> Self {
        Self::start_in(&folder("cwd"), args)
    }

    /// Starts it in a directory.
    pub(crate) fn start_in<A: AsRef<str>>(folder: &Path, args: &[A]) -> Self {
        let mut args: Vec<&str> = args.iter().map(AsRef::as_ref).collect();
        let settings = databases::settings_of(&args, folder, Self::migrate);
        args.extend(settings.iter().map(String::as_str));
        let mut command = Command::new(env!("CARGO_BIN_EXE_hivetill"));
        command.args(&args).current_dir(folder).env_clear().env("TMPDIR", root());
        Self::spawn(command, format!("hivetill {}", args.join(" ")))
    }

    /// Applies the schema to a new database.
    fn migrate(url: &str) {
        let finished = Self::start(&["migrate", &format!("--set=store.url={url}")]).finish();
        assert!(finished.success, "{finished:?}");
    }

    /// Starts another program, whose home directory is `folder`.
    pub(crate) fn program(name: &str, folder: &Path, args: &[&str]) -> Self {
        let mut command = Command::new(name);
        command.args(args).current_dir(folder).env("HOME", folder).env("TMPDIR", root());
        // Environment variables of the test run must not configure the gateways that the program starts.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_encoded_bytes().starts_with(b"HIVETILL_")) {
            command.env_remove(name);
        }
        Self::spawn(command, format!("{name} {}", args.join(" ")))
    }

    fn spawn(mut command: Command, title: String) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        Guard::get().send('+', child.id());
        let stdout = lines(child.stdout.take().expect("piped"));
        let stderr = lines(child.stderr.take().expect("piped"));
        Self { child, title, stdout, stderr }
    }

    /// Waits for the line of JSON with which a command reports that it is ready.
    pub(crate) fn ready(&mut self) -> Value {
        let title = self.title.clone();
        until(&format!("the first line of `{title}`"), || {
            if let Some(line) = locked(&self.stdout).iter().find(|line| line.starts_with('{')) {
                return Some(serde_json::from_str(line).expect("a line of JSON"));
            }
            let ended = self.child.try_wait().expect("a child of ours");
            assert!(ended.is_none(), "`{title}` ended: {ended:?}\n{}", self.log());
            None
        })
    }

    /// Waits for a line of its log with these words, and returns the word after them.
    pub(crate) fn log_after(&mut self, words: &str) -> String {
        let title = self.title.clone();
        until(&format!("`{words}` in the log of `{title}`"), || {
            let log = self.log();
            if let Some((_, rest)) = log.split_once(words) {
                let end = rest.find(|c: char| c.is_whitespace() || matches!(c, ')' | ',')).unwrap_or(rest.len());
                return Some(rest[..end].to_owned());
            }
            let ended = self.child.try_wait().expect("a child of ours");
            assert!(ended.is_none(), "`{title}` ended: {ended:?}\n{}", self.log());
            None
        })
    }

    /// Waits until it has printed a line with these words.
    pub(crate) fn until_printed(&mut self, words: &str) {
        let title = self.title.clone();
        until(&format!("`{words}` from `{title}`"), || {
            if locked(&self.stdout).iter().any(|line| line.contains(words)) {
                return Some(());
            }
            let ended = self.child.try_wait().expect("a child of ours");
            assert!(ended.is_none(), "`{title}` ended: {ended:?}\n{}", self.log());
            None
        });
    }

    /// Returns its process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns its exit status, if it has exited.
    pub(crate) fn has_ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("a child of ours")
    }

    /// Kills it with SIGKILL.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        Guard::get().send('-', self.child.id());
    }

    /// Stops it with SIGTERM and returns its exit status.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        self.signal("TERM");
        self.wait()
    }

    /// Sends a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status();
        assert!(sent.expect("kill is there").success(), "cannot send {name} to `{}`", self.title);
    }

    /// Runs a function while every thread of the process is stopped and none waits inside the kernel.
    pub(crate) fn while_halted(&self, act: impl FnOnce()) {
        self.signal("STOP");
        let threads = format!("/proc/{}/task", self.child.id());
        let stands = |thread: std::io::Result<std::fs::DirEntry>| {
            let stat = std::fs::read_to_string(thread.ok()?.path().join("stat")).ok()?;
            // The state follows the name, which may contain any character.
            stat.rsplit_once(") ").filter(|(_, state)| state.starts_with('T')).map(|_| ())
        };
        until("every thread to stand still", || std::fs::read_dir(&threads).ok()?.map(stands).collect::<Option<()>>());
        act();
        self.signal("CONT");
    }

    /// Waits until it exits.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let title = self.title.clone();
        let status = until(&format!("the end of `{title}`"), || self.child.try_wait().expect("a child of ours"));
        Guard::get().send('-', self.child.id());
        status
    }

    /// Waits until it exits and returns its status and its output.
    pub(crate) fn finish(mut self) -> Finished {
        let status = self.wait();
        // The readers see the end of the pipes shortly after the end of the process.
        for pipe in [&self.stdout, &self.stderr] {
            until("the end of its output", || (Arc::strong_count(pipe) == 1).then_some(()));
        }
        let (success, code) = (status.success(), status.code());
        Finished { success, code, stdout: locked(&self.stdout).join("\n"), stderr: locked(&self.stderr).join("\n") }
    }

    /// Returns the lines that it has printed so far.
    pub(crate) fn printed(&self) -> Vec<String> {
        locked(&self.stdout).clone()
    }

    /// Returns its log so far.
    pub(crate) fn log(&self) -> String {
        locked(&self.stderr).join("\n")
    }
}

/// The exit status of a process.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) success: bool,
    /// The exit code; none after a signal.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Drop for Process {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let lines = locked(&self.stderr);
            let last = lines.len().saturating_sub(25);
            let mut out = std::io::stderr().lock();
            let _ = writeln!(out, "--- the last lines of `{}`:\n{}\n---", self.title, lines[last..].join("\n"));
        }
        self.kill();
    }
}

fn lines(pipe: impl Read + Send + 'static) -> Arc<Mutex<Vec<String>>> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&lines);
    background(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            locked(&kept).push(line);
        }
    });
    lines
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a new directory of this run.
pub(crate) fn folder(name: &str) -> PathBuf {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let path = root().join(format!("{name}-{}", COUNT.fetch_add(1, Ordering::Relaxed)));
    std::fs::create_dir(&path).expect("a folder of our own");
    path
}

/// The directory of this run; all files are written below it.
fn root() -> &'static Path {
    static ROOT: OnceLock<PathBuf> = OnceLock::new();
    ROOT.get_or_init(|| tempfile::Builder::new().prefix("hivetill-tests-").tempdir().expect("a folder").keep())
}

/// Kills the remaining processes of this run.
pub(crate) fn end() {
    databases::end();
    Guard::get().close();
}

/// A shell that outlives the tests: kills their remaining processes and removes their directory.
struct Guard {
    stdin: Mutex<Option<ChildStdin>>,
    shell: Mutex<Child>,
}

/// Reads process ids from its input; kills them when its input ends.
const GUARD: &str = r#"
trap '' INT TERM HUP
pids=' '
while read -r sign pid; do
  case $sign in
    +) pids="$pids$pid " ;;
    -) case $pids in *" $pid "*) pids="${pids%% "$pid" *} ${pids#* "$pid" }" ;; esac ;;
  esac
done
for pid in $pids; do kill -9 "$pid" 2>/dev/null; done
rm -rf "$1"
"#;

impl Guard {
    fn get() -> &'static Self {
        static GUARD_PROCESS: OnceLock<Guard> = OnceLock::new();
        GUARD_PROCESS.get_or_init(|| {
            let mut shell = Command::new("sh")
                .args(["-c", GUARD, "guard"])
                .arg(root())
                .stdin(Stdio::piped())
                .spawn()
                .expect("sh is there");
            Self { stdin: Mutex::new(shell.stdin.take()), shell: Mutex::new(shell) }
        })
    }

    fn send(&self, sign: char, pid: u32) {
        if let Some(stdin) = locked(&self.stdin).as_mut() {
            let _ = writeln!(stdin, "{sign} {pid}");
        }
    }

    fn close(&self) {
        drop(locked(&self.stdin).take());
        let _ = locked(&self.shell).wait();
    }
}
