//! Backups: taken while the gateway runs, restored, verified, and never incomplete.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};

use crate::harness::{LedgerProcess, Process, Serve, Shop, Split, background, folder, order, pause, until};

crate::tests!(
    a_restored_backup_that_catches_up_has_the_totals_of_the_original,
    a_cursor_from_before_a_restore_is_rejected_with_the_cursor_to_resume_from,
    a_backup_under_load_contains_everything_acknowledged_before,
    a_backup_killed_at_any_moment_leaves_no_partial_file,
    a_backup_works_over_the_network_and_with_a_stopped_gateway,
    a_damaged_store_is_reported_and_not_started,
    an_export_contains_every_record_and_no_secret,
    compaction_preserves_the_totals,
    no_file_is_overwritten_without_a_flag,
);

const PRICE: &str = "1.500 HBD";

struct Setup {
    ledger: LedgerProcess,
    folder: PathBuf,
}

impl Setup {
    fn new() -> Self {
        let folder = folder("copies");
        Self { ledger: LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0"), folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    #[track_caller]
    fn serve(&self, data: &str) -> Serve {
        Serve::start(&self.path(data), &self.ledger.ledger)
    }

    #[track_caller]
    fn pay(&self, shop: &Shop, memo: &str) {
        let params = json!({ "from": "alice", "to": shop.account.name, "amount": PRICE, "memo": memo });
        self.ledger.ledger.order("transfer", &params);
    }
}

/// Runs a store command and returns its exit code and output.
#[track_caller]
fn hivetill(command: &str, flags: &[(&str, &Path)], more: &[&str]) -> (i32, String, String) {
    let mut args = vec![command.to_owned()];
    args.extend(flags.iter().map(|(flag, path)| format!("--{flag}={}", path.to_str().expect("a path"))));
    args.extend(more.iter().map(|more| (*more).to_owned()));
    let ended = Process::start(&args).finish();
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    (ended.code.expect("it ended by itself"), ended.stdout, ended.stderr)
}

/// Runs a store command that must succeed, and returns its line of JSON.
#[track_caller]
fn run_store(command: &str, flags: &[(&str, &Path)], more: &[&str]) -> Value {
    let more: Vec<&str> = more.iter().copied().chain(["--json"]).collect();
    let (code, stdout, stderr) = hivetill(command, flags, &more);
    assert_eq!(code, 0, "{stdout}{stderr}");
    serde_json::from_str(&stdout).expect("a line of JSON")
}

#[track_caller]
fn totals(data: &Path) -> Value {
    let report = run_store("verify", &[("data", data)], &[]);
    assert_eq!((&report["sound"], &report["findings"]), (&json!(true), &json!([])), "{report}");
    json!([report["payments"], report["unmatched"]])
}

fn back(shop: &Shop, serve: &Serve) -> Shop {
    Shop { api: serve.api.clone(), ..shop.clone() }
}

fn a_restored_backup_that_catches_up_has_the_totals_of_the_original() {
    let setup = Setup::new();
    let mut serve = setup.serve("data");
    let shop = Shop::open(&serve.api, &setup.ledger.ledger).prove();
    let [paid, late, open, cancelled] = [(); 4].map(|()| shop.open_payment());
    setup.pay(&shop, &paid.memo);
    shop.until_status(&paid.id, "completed");
    shop.cancelled(&cancelled.id);
    let report = run_store("backup", &[("data", &setup.path("data")), ("to", &setup.path("backup"))], &[]);
    assert_eq!(report["tables"]["payments"], 4);
    // Transfers after the backup are found when the restored gateway scans from its cursor.
    setup.pay(&shop, &late.memo);
    setup.pay(&shop, "a memo without an id");
    shop.until_status(&late.id, "completed");
    until("the unmatched transfer", || {
        let list = shop.get("/api/public/unmatched").send().ok(200);
        (list["data"].as_array()?.len() == 1).then_some(())
    });
    assert!(serve.process.stop().success());
    let original = totals(&setup.path("data"));

    run_store("restore", &[("data", &setup.path("again")), ("from", &setup.path("backup"))], &[]);
    assert_ne!(totals(&setup.path("again")), original, "the backup is older");
    fs::copy(setup.path("data").join("master-key"), setup.path("again").join("master-key")).expect("the kept copy");
    let mut serve = setup.serve("again");
    let shop = back(&shop, &serve);
    shop.until_status(&late.id, "completed");
    until("the unmatched transfer", || {
        let list = shop.get("/api/public/unmatched").send().ok(200);
        (list["data"].as_array()?.len() == 1).then_some(())
    });
    assert_eq!(shop.payment(&open.id)["status"], "pending");
    assert!(serve.process.stop().success());
    assert_eq!(totals(&setup.path("again")), original);
}

/// Returns the ids of the events after a cursor, and the next cursor.
#[track_caller]
fn events(shop: &Shop, after: &str) -> (Vec<String>, String) {
    let list = shop.get(&format!("/api/public/events?limit=100&after={after}")).send().ok(200);
    let ids = list["events"].as_array().expect("a list").iter().map(|event| event["id"].to_string());
    (ids.collect(), list["nextCursor"].as_str().expect("a cursor").to_owned())
}

/// Asserts that list and stream reject a cursor because of a restore, and returns the cursor with which to continue.
#[track_caller]
fn refused(shop: &Shop, after: &str) -> String {
    let body = shop.get(&format!("/api/public/events?after={after}")).send().refused(410, "cursor_of_another_epoch");
    let stream = shop.get("/api/public/events/stream").header("last-event-id", after).send();
    let streamed = stream.refused(410, "cursor_of_another_epoch");
    assert_eq!(streamed["nextCursor"], body["nextCursor"]);
    body["nextCursor"].as_str().expect("a cursor").to_owned()
}

fn a_cursor_from_before_a_restore_is_rejected_with_the_cursor_to_resume_from() {
    let setup = Setup::new();
    let mut serve = setup.serve("data");
    let shop = Shop::open(&serve.api, &setup.ledger.ledger);
    let quiet = Shop::open(&serve.api, &setup.ledger.ledger);
    let [first, second, third] = [(); 3].map(|()| shop.open_payment());
    shop.cancelled(&first.id);
    quiet.cancelled(&quiet.open_payment().id);
    run_store("backup", &[("data", &setup.path("data")), ("to", &setup.path("backup"))], &[]);
    for payment in [&second, &third] {
        setup.pay(&shop, &payment.memo);
        shop.until_status(&payment.id, "completed");
    }
    let (mut before, old) = events(&shop, "0");
    assert_eq!((before.len(), old.as_str()), (3, "3"));
    shop.get("/api/public/events?after=4").send().refused(400, "cursor_out_of_range");
    assert!(serve.process.stop().success());

    run_store("restore", &[("data", &setup.path("again")), ("from", &setup.path("backup"))], &[]);
    fs::copy(setup.path("data").join("master-key"), setup.path("again").join("master-key")).expect("the kept copy");
    let mut serve = setup.serve("again");
    let (shop, quiet) = (back(&shop, &serve), back(&quiet, &serve));
    // The list ends at 1, then grows beyond the old cursor with other events.
    let on = refused(&shop, &old);
    for payment in [&second, &third] {
        shop.until_status(&payment.id, "completed");
    }
    shop.cancelled(&shop.open_payment().id);
    assert_eq!((refused(&shop, &old), refused(&shop, "1"), refused(&shop, "99")), (on.clone(), on.clone(), on.clone()));
    let (after, next) = events(&shop, &on);
    assert_eq!(after.len(), 3, "what came after the backup, and one more");
    assert_eq!(BTreeSet::from_iter(&before[1..]), BTreeSet::from_iter(&after[..2]), "the same ids");
    assert_eq!(events(&shop, "0").0.len(), 4);
    assert_eq!(events(&shop, &next), (Vec::new(), next.clone()));
    before.truncate(1);
    assert_eq!(events(&quiet, &refused(&quiet, "1")).0, [""; 0], "nothing is repeated without need");
    let place = |by: u64| {
        let (epoch, place) = next.rsplit_once('-').expect("an epoch and a place");
        format!("{epoch}-{}", place.parse::<u64>().expect("a number") + by)
    };
    shop.get(&format!("/api/public/events?after={}", place(1))).send().refused(400, "cursor_out_of_range");
    assert!(serve.process.stop().success());

    // The same backup again, copied by hand: this store has no record of the epoch in between.
    fs::create_dir(setup.path("third")).expect("made");
    fs::copy(setup.path("backup"), setup.path("third").join("hivetill.redb")).expect("copied");
    fs::copy(setup.path("data").join("master-key"), setup.path("third").join("master-key")).expect("the kept copy");
    let serve = setup.serve("third");
    let shop = back(&shop, &serve);
    assert_eq!(events(&shop, &refused(&shop, &next)).0[0], before[0], "from the beginning");
    let again = refused(&shop, &old);
    assert_ne!(again, on);
    for payment in [&second, &third] {
        shop.until_status(&payment.id, "completed");
    }
    assert_eq!(events(&shop, &again).0.len(), 2);
}

fn a_backup_under_load_contains_everything_acknowledged_before() {
    let setup = Setup::new();
    let serve = setup.serve("data");
    let shop = Shop::open(&serve.api, &setup.ledger.ledger);
    let stop = Arc::new(AtomicBool::new(false));
    let before: Vec<String> = (0..50).map(|_| shop.open_payment().id).collect();
    let busy = {
        let (shop, stop) = (shop.clone(), Arc::clone(&stop));
        background(move || {
            let mut made = 0;
            while !stop.load(Ordering::SeqCst) {
                shop.post("/api/public/payments", &order()).send().ok(201);
                made += 1;
            }
            made
        })
    };
    let (data, backup) = (setup.path("data"), setup.path("backup"));
    for number in 0..3 {
        let to = backup.with_extension(number.to_string());
        let report = run_store("backup", &[("data", &data), ("to", &to)], &[]);
        assert!(report["tables"]["payments"].as_u64() >= Some(50), "{report}");
    }
    stop.store(true, Ordering::SeqCst);
    assert!(busy.join().expect("it went on") > 0, "the gateway stood still meanwhile");
    let (code, lines, stderr) = hivetill("export", &[("file", &backup.with_extension("0"))], &[]);
    assert_eq!(code, 0, "{stderr}");
    for id in before {
        assert!(lines.contains(&id), "{id} is not in the backup");
    }
}

fn a_backup_killed_at_any_moment_leaves_no_partial_file() {
    let setup = Setup::new();
    let serve = setup.serve("data");
    let shop = Shop::open(&serve.api, &setup.ledger.ledger);
    for _ in 0..100 {
        shop.open_payment();
    }
    let (data, to) = (setup.path("data"), setup.path("backup"));
    let (mut cut, mut whole) = (0, 0);
    for round in 0..24 {
        let flags = [("data", data.as_path()), ("to", to.as_path())];
        let args: Vec<String> =
            ["backup".to_owned()].into_iter().chain(flags.map(|(f, p)| format!("--{f}={}", p.display()))).collect();
        let mut process = Process::start(&args);
        pause(Duration::from_millis(6 * round));
        process.kill();
        if to.exists() {
            run_store("verify", &[("file", &to)], &[]);
            fs::remove_file(&to).expect("ours");
            whole += 1;
        } else {
            cut += 1;
        }
    }
    assert!(cut > 0, "every backup was done before it was killed ({whole})");
    run_store("backup", &[("data", &data), ("to", &to)], &[]);
    assert!(!setup.path("backup.partial").exists());
    shop.open_payment();
}

fn a_backup_works_over_the_network_and_with_a_stopped_gateway() {
    let setup = Setup::new();
    let mut split = Split::start(&setup.path("data"), &setup.ledger.ledger);
    let shop = Shop::open(&split.api, &setup.ledger.ledger);
    shop.open_payment();
    let (remote, local) = (setup.path("remote"), setup.path("local"));
    let url = format!("--engine-url={}", split.grpc);
    let token = format!("--set=grpc.token={}", split.token());
    let nowhere = setup.path("nowhere");
    let reported = run_store("backup", &[("data", &nowhere), ("to", &remote)], &[&url, &token]);
    let (code, _, stderr) = hivetill(
        "backup",
        &[("data", &nowhere), ("to", &local)],
        &[&url, "--set=grpc.token=a-wrong-token-of-32-characters-or-more"],
    );
    assert!(code == 1 && !local.exists(), "{code} {stderr}");
    assert!(split.engine.stop().success());
    let stopped = run_store("backup", &[("data", &setup.path("data")), ("to", &local)], &[]);
    assert_eq!(reported["payments"], stopped["payments"]);
    let (code, _, stderr) = hivetill("backup", &[("data", &nowhere), ("to", &setup.path("none"))], &[]);
    assert!(code == 5 && stderr.contains("no store") && !nowhere.join("hivetill.redb").exists(), "{code} {stderr}");
}

/// Returns the bytes of a backup in which one letter of every description is changed, and nothing else.
fn rotten(backup: &Path) -> Vec<u8> {
    let mut bytes = fs::read(backup).expect("the backup");
    let (word, wrong) = (b"A blue mug", b"A blue mud");
    let places: Vec<usize> = (0..bytes.len() - word.len()).filter(|at| bytes[*at..].starts_with(word)).collect();
    assert!(!places.is_empty());
    for at in places {
        bytes[at..at + word.len()].copy_from_slice(wrong);
    }
    bytes
}

/// Creates a data directory from such a backup, with the master key of the original.
pub(super) fn rot(backup: &Path, from: &Path, to: &Path) {
    fs::create_dir(to).expect("made");
    fs::write(to.join("hivetill.redb"), rotten(backup)).expect("written");
    fs::copy(from.join("master-key"), to.join("master-key")).expect("the kept copy");
}

fn a_damaged_store_is_reported_and_not_started() {
    let setup = Setup::new();
    let mut serve = setup.serve("data");
    let shop = Shop::open(&serve.api, &setup.ledger.ledger);
    let old: Vec<_> = (0..20).map(|_| shop.open_payment()).collect();
    let (data, backup) = (setup.path("data"), setup.path("backup"));
    run_store("backup", &[("data", &data), ("to", &backup)], &[]);
    assert!(serve.process.stop().success());
    let bytes = rotten(&backup);
    let damaged = setup.path("damaged");
    fs::write(&damaged, &bytes).expect("written");
    let (code, stdout, stderr) = hivetill("verify", &[("file", &damaged)], &[]);
    assert_eq!(code, 10, "{stdout}{stderr}");
    let (code, _, stderr) = hivetill("restore", &[("data", &setup.path("again")), ("from", &damaged)], &[]);
    assert!(code == 10 && !setup.path("again").join("hivetill.redb").exists(), "{code} {stderr}");
    let rotten = setup.path("rotten");
    rot(&backup, &data, &rotten);
    // New checksums over wrong bytes would hide the damage.
    let copy = setup.path("copy");
    for (command, flags) in [("compact", vec![]), ("backup", vec![("to", copy.as_path())])] {
        let flags: Vec<_> = [("data", rotten.as_path())].into_iter().chain(flags).collect();
        let (code, stdout, stderr) = hivetill(command, &flags, &[]);
        assert_eq!(code, 10, "{command}: {stdout}{stderr}");
    }
    assert!(!copy.exists());
    damaged_rows_are_reported_by_name(&setup, &rotten, &shop, &old[0].id);
    for (name, bytes) in [("garbage", vec![7; 8_192]), ("cut", bytes[..6_000].to_vec())] {
        let data = setup.path(name);
        fs::create_dir(&data).expect("made");
        fs::write(data.join("hivetill.redb"), bytes).expect("written");
        for command in ["verify", "compact"] {
            let (code, stdout, stderr) = hivetill(command, &[("data", &data)], &[]);
            assert_eq!(code, 10, "{command} {name}: {stdout}{stderr}");
        }
        let ended = Process::start(&Serve::args(&data, &setup.ledger.ledger, &[])).finish();
        assert_eq!(ended.code, Some(10), "{name}: {ended:?}");
        assert!(ended.stderr.contains("corrupt"), "{name}: {ended:?}");
    }
}

/// The gateway starts, serves intact rows, and reports damaged ones.
fn damaged_rows_are_reported_by_name(setup: &Setup, data: &Path, shop: &Shop, damaged: &str) {
    let mut serve = Serve::start(data, &setup.ledger.ledger);
    let shop = back(shop, &serve);
    let response = shop.get(&format!("/api/public/payments/{damaged}")).send();
    response.refused(500, "record_damaged");
    assert_eq!(shop.payment(&shop.open_payment().id)["status"], "pending", "others are served");
    assert_eq!(serve.api.get("/readyz").send().ok(200)["damagedRows"], 1);
    let (code, stdout, stderr) = hivetill("verify", &[("data", data)], &[]);
    assert_eq!(code, 10, "{stdout}{stderr}");
    let finding = format!("payments {damaged}: its checksum does not match");
    assert!(stdout.contains(&finding) && stderr.contains("findings in the store"), "{stdout}{stderr}");
    assert!(serve.process.log().contains(damaged), "{}", serve.process.log());
    assert!(serve.process.stop().success());
}

fn an_export_contains_every_record_and_no_secret() {
    let setup = Setup::new();
    let serve = setup.serve("data");
    let shop = Shop::open(&serve.api, &setup.ledger.ledger);
    let payment = shop.open_payment();
    setup.pay(&shop, &payment.memo);
    shop.until_status(&payment.id, "completed");
    let to = setup.path("export.jsonl");
    let (code, _, stderr) = hivetill("export", &[("data", &setup.path("data")), ("to", &to)], &[]);
    assert_eq!(code, 0, "{stderr}");
    let text = fs::read_to_string(&to).expect("the export");
    let records: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    let of = |kind: &str| records.iter().filter(|record| record["record"] == kind).collect::<Vec<_>>();
    let paid = of("payment")[0];
    assert_eq!((&paid["id"], &paid["status"]), (&json!(payment.id), &json!("completed")));
    assert_eq!((&paid["paidUnits"], &paid["transfers"][0]["from"]), (&json!("1500"), &json!("alice")));
    assert_eq!(of("merchant")[0]["hiveAccount"], shop.account.name);
    assert_eq!(of("event")[0]["body"]["data"]["paymentId"], payment.id);
    for kind in ["delivery", "cursor", "rate", "audit"] {
        assert!(!of(kind).is_empty(), "no {kind}");
    }
    for secret in [&shop.key, &shop.secret, "whsec_", "sk_live_"] {
        assert!(!text.contains(secret), "{secret}");
    }
    let (code, _, _) = hivetill("export", &[("data", &setup.path("data")), ("to", &to)], &[]);
    assert_eq!(code, 1, "the file is there");
}

fn compaction_preserves_the_totals() {
    let setup = Setup::new();
    let mut serve = setup.serve("data");
    let shop = Shop::open(&serve.api, &setup.ledger.ledger);
    for _ in 0..50 {
        shop.open_payment();
    }
    let data = setup.path("data");
    let (code, _, stderr) = hivetill("compact", &[("data", &data)], &[]);
    assert_eq!(code, 5, "the gateway runs: {stderr}");
    assert!(serve.process.stop().success());
    let before = (totals(&data), fs::metadata(data.join("hivetill.redb")).expect("there").len());
    let (code, stdout, stderr) = hivetill("compact", &[("data", &data)], &[]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    let after = (totals(&data), fs::metadata(data.join("hivetill.redb")).expect("there").len());
    assert_eq!(before.0, after.0);
    assert!(after.1 <= before.1, "{} became {}", before.1, after.1);
    let serve = setup.serve("data");
    back(&shop, &serve).open_payment();
}

fn no_file_is_overwritten_without_a_flag() {
    let setup = Setup::new();
    let mut serve = setup.serve("data");
    let shop = Shop::open(&serve.api, &setup.ledger.ledger);
    shop.open_payment();
    let (data, backup) = (setup.path("data"), setup.path("backup"));
    run_store("backup", &[("data", &data), ("to", &backup)], &[]);
    shop.open_payment();
    let (code, _, stderr) = hivetill("backup", &[("data", &data), ("to", &backup)], &[]);
    let remedy =
        "backup already exists, and a backup does not overwrite files: use another name with --to, or move the file";
    assert!(code == 1 && stderr.contains(remedy), "{code} {stderr}");
    assert_eq!(run_store("verify", &[("file", &backup)], &[])["tables"]["payments"], 1, "the first backup is kept");
    let (code, _, stderr) = hivetill("restore", &[("data", &data), ("from", &backup)], &["--replace"]);
    assert!(code == 5 && stderr.contains("in use"), "{code} {stderr}");
    assert_eq!(run_store("verify", &[("data", &data)], &[])["tables"]["payments"], 2, "while it runs");
    assert!(serve.process.stop().success());
    let (code, _, stderr) = hivetill("restore", &[("data", &data), ("from", &backup)], &[]);
    assert!(code == 1 && stderr.contains("--replace"), "{code} {stderr}");
    let report = run_store("restore", &[("data", &data), ("from", &backup)], &["--replace"]);
    assert_eq!(report["tables"]["payments"], 1);
    let kept = run_store("verify", &[("file", &data.join("hivetill.redb.replaced"))], &[]);
    assert_eq!(kept["tables"]["payments"], 2);
}
