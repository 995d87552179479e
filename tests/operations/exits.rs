//! Shutdown: in time when requested, and with a reason and its own exit code after a failure.

use std::{
    fs,
    io::Write,
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use serde_json::json;

use crate::harness::{Api, LedgerProcess, Process, Serve, Shop, Stopwatch, folder, order, until, until_ready};

crate::tests!(
    a_missing_store_is_never_replaced_by_a_new_one,
    permanent_failures_are_not_restarted,
    a_file_size_limit_stops_the_gateway_and_loses_no_acknowledged_write,
    a_gateway_without_nodes_starts_and_credits_later,
    shutdown_is_timely_despite_open_streams_and_webhooks,
    sighup_is_ignored_and_a_low_limit_of_open_files_is_reported,
);

/// Returns every test of this module; tests that this machine does not support are ignored.
pub(super) fn all() -> Vec<libtest_mimic::Trial> {
    let name = |name: &str| crate::title(module_path!(), name);
    let full = libtest_mimic::Trial::test(
        name("a_full_file_system_stops_the_gateway_and_loses_no_acknowledged_write"),
        || {
            a_full_file_system_stops_the_gateway_and_loses_no_acknowledged_write();
            Ok(())
        },
    );
    let denied = libtest_mimic::Trial::test(name("missing_permissions_have_their_own_exit_code"), || {
        missing_permissions_have_their_own_exit_code();
        Ok(())
    });
    let mut all = tests();
    all.push(full.with_ignored_flag(!can_mount()));
    all.push(denied.with_ignored_flag(third_party().is_none()));
    all
}

const BINARY: &str = env!("CARGO_BIN_EXE_hivetill");
const PRICE: &str = "1.500 HBD";

pub(super) fn sh(script: &str) -> bool {
    Command::new("sh").args(["-c", script]).output().is_ok_and(|output| output.status.success())
}

pub(super) fn can_mount() -> bool {
    let place = folder("mount");
    let place = place.display();
    sh(&format!("mount -t tmpfs -o size=1m tmpfs {place} && umount {place}"))
}

/// Returns a command that runs the binary as a user without access to the test's files.
fn third_party() -> Option<String> {
    let as_nobody = format!("setpriv --reuid 65534 --regid 65534 --clear-groups {BINARY}");
    if !sh("test $(id -u) = 0") {
        return Some(BINARY.to_owned());
    }
    sh(&format!("{as_nobody} --version")).then_some(as_nobody)
}

fn ledger() -> (LedgerProcess, PathBuf) {
    let folder = folder("ends");
    (LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0"), folder)
}

/// Starts `serve` in a shell after a preparation.
fn serve_after(prepare: &str, data: &Path, ledger: &LedgerProcess) -> Serve {
    let args: Vec<String> = Serve::args(data, &ledger.ledger, &[]).into_iter().map(|arg| format!("'{arg}'")).collect();
    let script = format!("{prepare}; exec {BINARY} {}", args.join(" "));
    let mut process = Process::program("sh", &folder("cwd"), &["-c", &script]);
    let api = Api::new(&format!("http://{}", process.log_after("listening on ")));
    until_ready(&api);
    Serve { api, process }
}

/// Creates payments until the gateway rejects them; returns the ids of the created ones.
#[track_caller]
fn fill(shop: &Shop) -> Vec<String> {
    let mut body = order();
    body["description"] = json!("x".repeat(250));
    let mut made = Vec::new();
    until("the disk to be full", || {
        for _ in 0..200 {
            match shop.post("/api/public/payments", &body).try_send() {
                Ok(response) if response.status == 201 => {
                    made.push(response.json()["id"].as_str().expect("an id").to_owned());
                }
                Ok(response) => {
                    response.refused(503, "store_unavailable");
                    return Some(());
                }
                Err(_) => return Some(()),
            }
        }
        None
    });
    made
}

/// Asserts that the gateway exits because the disk is full, and that the next one has every payment.
#[track_caller]
fn nothing_is_lost(mut full: Serve, shop: &Shop, made: &[String], restart: impl FnOnce() -> Serve) {
    let status = full.process.wait();
    assert_eq!(status.code(), Some(8), "{}", full.process.log());
    assert!(full.process.log().contains("disk full"), "{}", full.process.log());
    assert!(!made.is_empty());
    let serve = restart();
    let shop = Shop { api: serve.api.clone(), ..shop.clone() };
    for id in made {
        assert_eq!(shop.payment(id)["status"], "pending");
    }
    shop.open_payment();
}

fn a_file_size_limit_stops_the_gateway_and_loses_no_acknowledged_write() {
    let (ledger, folder) = ledger();
    let data = folder.join("data");
    // The signal would end the process before it could log the reason; service managers ignore it, too.
    let serve = serve_after("trap '' XFSZ; ulimit -f 4096", &data, &ledger);
    let shop = Shop::open(&serve.api, &ledger.ledger);
    let made = fill(&shop);
    nothing_is_lost(serve, &shop, &made, || Serve::start(&data, &ledger.ledger));
}

/// Unmounts when dropped.
pub(super) struct Mounted(pub(super) PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        sh(&format!("umount -l {}", self.0.display()));
    }
}

fn a_full_file_system_stops_the_gateway_and_loses_no_acknowledged_write() {
    let (ledger, folder) = ledger();
    let disk = folder.join("disk");
    fs::create_dir(&disk).expect("made");
    assert!(sh(&format!("mount -t tmpfs -o size=4m,mode=0700 tmpfs {}", disk.display())));
    let mounted = Mounted(disk.clone());
    let data = disk.join("data");
    let serve = serve_after("true", &data, &ledger);
    let shop = Shop::open(&serve.api, &ledger.ledger);
    let made = fill(&shop);
    nothing_is_lost(serve, &shop, &made, || {
        assert!(sh(&format!("mount -o remount,size=64m {}", disk.display())));
        Serve::start(&data, &ledger.ledger)
    });
    drop(mounted);
}

fn missing_permissions_have_their_own_exit_code() {
    let (ledger, folder) = ledger();
    let data = folder.join("data");
    let mut serve = Serve::start(&data, &ledger.ledger);
    assert!(serve.process.stop().success());
    let file = data.join("hivetill.redb");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).expect("ours");
    fs::set_permissions(&data, fs::Permissions::from_mode(0o500)).expect("ours");
    let run = third_party().expect("this test is ignored otherwise");
    let secret = folder.join("secret");
    fs::write(&secret, "11".repeat(32)).expect("written");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).expect("ours");
    let sealed = format!("serve --listen 127.0.0.1:0 --set=master_key_file={}", secret.display());
    for command in ["verify", "serve --listen 127.0.0.1:0", sealed.as_str()] {
        let script = format!("exec {run} {command} --data {}", data.display());
        let ended = Process::program("sh", &folder, &["-c", &script]).finish();
        assert_eq!(ended.code, Some(9), "{command}: {ended:?}");
        assert!(ended.stderr.contains("permission denied"), "{command}: {ended:?}");
    }
    fs::set_permissions(&data, fs::Permissions::from_mode(0o700)).expect("ours");
}

/// Starts `serve` and returns its exit code and output.
fn refused(data: &Path, ledger: &LedgerProcess, more: &[&str]) -> (Option<i32>, String) {
    let args: Vec<_> = Serve::args(data, &ledger.ledger, more).into_iter().filter(|arg| arg != "--init").collect();
    let ended = Process::start(&args).finish();
    (ended.code, ended.stderr)
}

fn a_missing_store_is_never_replaced_by_a_new_one() {
    let (ledger, folder) = ledger();
    let data = folder.join("data");
    let (code, report) = refused(&data, &ledger, &[]);
    assert!(code == Some(10) && report.contains("--init") && !data.exists(), "{code:?} {report}");
    let mut serve = Serve::start(&data, &ledger.ledger);
    let shop = Shop::open(&serve.api, &ledger.ledger);
    let payment = shop.open_payment();
    serve.process.kill();
    let (file, away) = (data.join("hivetill.redb"), folder.join("away"));
    fs::rename(&file, &away).expect("moved");
    let logs = || ["hivetill.wal", "hivetill.wal2"].map(|name| fs::read(data.join(name)).expect("the log"));
    let before = logs();
    let (code, report) = refused(&data, &ledger, &[]);
    assert!(code == Some(10) && report.contains("is gone"), "{code:?} {report}");
    // Even with `--init` it creates no store next to the log of another.
    let ended = Process::start(&Serve::args(&data, &ledger.ledger, &[])).finish();
    assert!(ended.code == Some(10) && ended.stderr.contains("is gone"), "{ended:?}");
    assert!(logs() == before && !file.exists());
    fs::rename(&away, &file).expect("put back");
    let serve = Serve::start(&data, &ledger.ledger);
    assert_eq!(Shop { api: serve.api.clone(), ..shop }.payment(&payment.id)["status"], "pending");
}

fn permanent_failures_are_not_restarted() {
    let unit = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/deploy/hivetill.service"));
    let unit = unit.expect("the unit");
    let line = unit.lines().find_map(|line| line.strip_prefix("RestartPreventExitStatus=")).expect("a list");
    let is_left_alone = |code: i32| line.split(' ').any(|listed| listed == code.to_string());
    let (ledger, folder) = ledger();
    let (data, key) = (folder.join("data"), folder.join("key"));
    fs::write(&key, "11".repeat(32)).expect("written");
    let key = format!("--set=master_key_file={}", key.display());
    let mut serve = Serve::with(&data, &ledger.ledger, &[&key]);
    assert!(serve.process.stop().success());
    let wrong = folder.join("wrong");
    fs::write(&wrong, "22".repeat(32)).expect("written");
    let bad = folder.join("bad");
    fs::write(&bad, "no key").expect("written");
    for (file, words) in [(wrong, "another master key"), (bad, "64 hex"), (folder.join("none"), "file not found")] {
        let (code, report) = refused(&data, &ledger, &[&format!("--set=master_key_file={}", file.display())]);
        assert!(code == Some(3) && report.contains(words), "{code:?} {report}");
        assert!(is_left_alone(3));
    }
    let (code, report) = refused(&data, &ledger, &[]);
    assert!(code == Some(3) && report.contains("master key"), "{code:?} {report}");
    let unmet = ["--set=ledger.min_agreeing_nodes=2", &key];
    let (code, report) = refused(&data, &ledger, &unmet);
    assert!(code == Some(3) && report.contains("ledger.min_agreeing_nodes: 2 nodes must agree"), "{code:?} {report}");
    assert!(is_left_alone(9) && is_left_alone(10));
}

fn a_gateway_without_nodes_starts_and_credits_later() {
    let (ledger, folder) = ledger();
    let data = folder.join("data");
    let mut serve = Serve::start(&data, &ledger.ledger);
    let shop = Shop::open(&serve.api, &ledger.ledger);
    let paid = shop.open_payment();
    ledger.ledger.disconnect(true);
    let params = json!({ "from": "alice", "to": shop.account.name, "amount": PRICE, "memo": paid.memo });
    ledger.ledger.order("transfer", &params);
    assert!(serve.process.stop().success());
    let serve = Serve::start_unready(&data, &ledger.ledger);
    let shop = Shop { api: serve.api.clone(), ..shop };
    until("a response", || serve.api.get("/livez").try_send().ok());
    assert_eq!(serve.api.get("/api/health").send().ok(200)["status"], "degraded");
    assert_eq!(serve.api.get("/readyz").send().status, 503);
    let blind = shop.open_payment();
    assert_eq!(shop.payment(&paid.id)["status"], "pending", "the outcome is unknown");
    let params = json!({ "from": "alice", "to": shop.account.name, "amount": PRICE, "memo": blind.memo });
    ledger.ledger.order("transfer", &params);
    ledger.ledger.disconnect(false);
    shop.until_status(&paid.id, "completed");
    shop.until_status(&blind.id, "completed");
    until_ready(&serve.api);
}

fn shutdown_is_timely_despite_open_streams_and_webhooks() {
    let (ledger, folder) = ledger();
    let data = folder.join("data");
    let mut serve = Serve::start(&data, &ledger.ledger);
    let shop = Shop::open(&serve.api, &ledger.ledger);
    // Accepts the connection and never responds.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/hook", silent.local_addr().expect("bound"));
    shop.update(&json!({ "webhookUrl": url })).ok(200);
    let address = serve.api.base.trim_start_matches("http://").to_owned();
    let watched = shop.open_payment();
    let paths = ["/api/public/events/stream".to_owned(), format!("/for/{}/events", watched.slug)];
    let streams: Vec<TcpStream> = paths
        .iter()
        .map(|path| {
            let mut stream = TcpStream::connect(&address).expect("it listens");
            let head = format!("GET {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {}\r\n\r\n", shop.key);
            stream.write_all(head.as_bytes()).expect("sent");
            stream
        })
        .collect();
    let mut half = TcpStream::connect(&address).expect("it listens");
    half.write_all(b"POST /api/public/payments HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{").expect("sent");
    shop.cancelled(&shop.open_payment().id);
    let (_hook, _) = silent.accept().expect("the webhook comes");
    let watch = Stopwatch::start();
    let status = serve.process.stop();
    assert!(status.success(), "{status:?}\n{}", serve.process.log());
    assert!(watch.elapsed() < Duration::from_secs(25), "{:?}\n{}", watch.elapsed(), serve.process.log());
    drop((streams, half));
    let serve = Serve::start(&data, &ledger.ledger);
    assert_eq!(Shop { api: serve.api.clone(), ..shop }.payment(&watched.id)["status"], "pending");
}

fn sighup_is_ignored_and_a_low_limit_of_open_files_is_reported() {
    let (ledger, folder) = ledger();
    let data = folder.join("data");
    // One more than the default limit of any system.
    let many = "--set=limits.connections=1000000";
    let mut serve = Serve::with(&data, &ledger.ledger, &[many, "--set=grpc.listen=0.0.0.0:0"]);
    let log = serve.process.log();
    let limit = fs::read_to_string(format!("/proc/{}/limits", serve.process.id())).expect("a process of ours");
    let line = limit.lines().find(|line| line.starts_with("Max open files")).expect("a limit");
    let numbers: Vec<&str> = line.split_whitespace().skip(3).take(2).collect();
    let is_enough = numbers[1] == "unlimited" || numbers[1].parse::<u64>().is_ok_and(|hard| hard >= 1_000_512);
    assert_eq!(log.contains("LimitNOFILE=1000512"), !is_enough, "{line}\n{log}");
    assert!(is_enough || numbers[0] == numbers[1], "it takes what it may have: {line}");
    assert!(log.contains("without TLS"), "an open gRPC port is reported\n{log}");
    serve.process.signal("HUP");
    until("the line of the signal", || serve.process.log().contains("SIGHUP").then_some(()));
    serve.process.signal("HUP");
    serve.api.get("/api/health").send().ok(200);
    assert!(serve.process.stop().success());
}
