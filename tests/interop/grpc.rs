//! Internal services in Python (grpcio, from generated code and by reflection) and Node (grpc-js) that call every
//! method of the gRPC port with valid and invalid input, and the examples of the documentation as printed.

use std::{
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use libtest_mimic::Trial;
use serde_json::{Value, json};
use tonic::transport::Channel;

use super::{clients::run, folder, prepare, prepare_python, with};
use crate::{
    documentation::blocks,
    grpc_access,
    harness::{Dev, LedgerProcess, Process, Receiver, Serve, Shop, until, until_ready},
};

/// Returns every test of this file.
pub(super) fn tests() -> Vec<Trial> {
    let title = |name| crate::title(module_path!(), name);
    vec![
        Trial::ignorable_test(title("python_calls_every_method_from_generated_code"), || {
            with(&python(), || consume(|work| in_python("generated", work)))
        }),
        Trial::ignorable_test(title("python_calls_every_method_by_reflection"), || {
            with(&python(), || consume(|work| in_python("reflection", work)))
        }),
        Trial::ignorable_test(title("node_calls_every_method"), || with(&node(), || consume(in_node))),
        Trial::ignorable_test(title("the_python_example_runs_as_printed"), || with(&python(), example_in_python)),
        Trial::ignorable_test(title("the_node_example_runs_as_printed"), || with(&node(), example_in_node)),
        Trial::ignorable_test(title("the_python_watch_survives_kills_and_a_restore"), || {
            with(&python(), watch_in_python)
        }),
        Trial::ignorable_test(title("the_python_example_watches_one_payment"), || with(&python(), watch_one_in_python)),
        Trial::ignorable_test(title("the_python_examples_resolve_and_refund_a_payment"), || {
            with(&python(), resolve_in_python)
        }),
        Trial::ignorable_test(title("the_node_watch_survives_kills_and_a_restore"), || with(&node(), watch_in_node)),
        Trial::ignorable_test(title("the_go_example_runs"), || with(&go(), example_in_go)),
        Trial::ignorable_test(title("the_python_example_runs_over_tls"), || with(&python(), tls_example_in_python)),
        Trial::ignorable_test(title("the_node_example_runs_over_tls"), || with(&node(), tls_example_in_node)),
        Trial::ignorable_test(title("the_go_example_runs_over_tls"), || with(&go(), tls_example_in_go)),
    ]
}

fn sources() -> PathBuf {
    folder().join("grpc")
}

fn environment() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/grpc"))
}

fn interface() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../proto"))
}

fn node() -> Option<String> {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    MISSING.get_or_init(|| prepare(&sources())).clone()
}

fn python() -> Option<String> {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    MISSING.get_or_init(|| prepare_python(&environment(), &sources().join("requirements.txt"))).clone()
}

/// Generates the Python code as the documentation describes.
fn generate(work: &Path) {
    let files = std::fs::read_dir(interface().join("hivetill/engine/v1")).expect("the interface");
    let files = files.map(|file| file.expect("a file").path());
    run(Command::new(environment().join("bin/python"))
        .args(["-m", "grpc_tools.protoc", "--python_out=.", "--grpc_python_out=."])
        .arg(format!("-I{}", interface().display()))
        .args(files)
        .current_dir(work));
}

fn in_python(mode: &str, work: &Path) -> Command {
    if mode == "generated" {
        generate(work);
    }
    let mut command = Command::new(environment().join("bin/python"));
    command.arg(sources().join("consumer.py")).arg(mode).arg(work).arg(sources().join("methods.json"));
    command
}

fn in_node(_: &Path) -> Command {
    let mut command = Command::new("node");
    command.arg(sources().join("consumer.mjs")).arg(interface()).arg(sources().join("methods.json"));
    command
}

const OPERATOR: &str = "--set=grpc.token=operator-0123456789-0123456789-0123456789";
const SERVICE: &str = "--set=grpc.service_token=service-0123456789-0123456789-0123456789";

fn value(setting: &str) -> &str {
    setting.rsplit('=').next().expect("a value")
}

/// Runs a consumer against a gateway that it can ask to be killed, started and stopped.
#[track_caller]
fn consume(program: impl FnOnce(&Path) -> Command) {
    let work = crate::harness::folder("consumer");
    let mut command = program(&work);
    let setup = LedgerProcess::start(&work.join("chain"), "127.0.0.1:0");
    let data = work.join("data");
    let settings = |address| ["--grpc-listen", address, OPERATOR, SERVICE, "--set=keys.roll=true"];
    let Serve { api, mut process } = Serve::with(&data, &setup.ledger, &settings("127.0.0.1:0"));
    let address = process.log_after("gRPC port is ");
    let receiver = Receiver::start();
    let mut context = scene(&setup, &api, &format!("http://{address}"), &receiver);
    context["target"] = address.clone().into();
    context["methods"] = methods(&format!("http://{address}"));
    let mut consumer = command
        .env("HOME", &work)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the consumer starts");
    let mut stdin = consumer.stdin.take().expect("piped");
    let mut lines = BufReader::new(consumer.stdout.take().expect("piped")).lines();
    writeln!(stdin, "{context}").expect("it reads");
    let mut is_well = false;
    while let Some(Ok(line)) = lines.next() {
        match line.as_str() {
            "kill" => process.kill(),
            "start" => process = Process::start(&Serve::args(&data, &setup.ledger, &settings(&address))),
            "await" => {
                let api = crate::harness::Api::new(&format!("http://{}", process.log_after("listening on ")));
                until_ready(&api);
            }
            "stop" => process.signal("TERM"),
            "ok" => {
                is_well = true;
                break;
            }
            other => panic!("the consumer printed {other}"),
        }
        writeln!(stdin, "done").expect("it reads");
    }
    drop(stdin);
    let output = consumer.wait_with_output().expect("it ends");
    assert!(is_well && output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(process.wait().success(), "the server stops well after its callers have left");
}

/// Returns the methods that reflection lists.
fn methods(url: &str) -> Value {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let listed = runtime.block_on(async {
        let channel = Channel::from_shared(url.to_owned()).expect("a URL").connect().await.expect("the port responds");
        grpc_access::methods(channel, value(SERVICE)).await
    });
    json!(listed)
}

/// Creates the objects that the test table names: merchants, payments in several states, unmatched transfers, a proof.
#[track_caller]
fn scene(setup: &LedgerProcess, api: &crate::harness::Api, grpc: &str, receiver: &Receiver) -> Value {
    let (ledger, alice) = (&setup.ledger, setup.demo_account("alice"));
    let made =
        Process::start(&["admin", "--json", "--account", "hivetill.fees", "--engine-url", grpc, OPERATOR]).finish();
    let admin: Value = serde_json::from_str(&made.stdout).unwrap_or_else(|_| panic!("no admin: {made:?}"));
    let shop = Shop::open(api, ledger).prove();
    shop.set_webhook(receiver);
    let (other, prover) = (Shop::open(api, ledger), Shop::open(api, ledger));
    prover.update(&json!({ "restartEnabled": true })).ok(200);
    let expired = prover.open_with(
        &json!({ "amount": "1500", "currency": "HBD", "description": "A blue mug", "expiresInSeconds": 60 }),
    );
    ledger.advance(120);
    prover.until_status(&expired.id, "system_cancelled");
    let challenge = prover.challenge(&json!({}));
    let signature = prover.account.sign(challenge["text"].as_str().expect("a text"));
    let (overpaid, waiting) = (shop.open_payment(), shop.open_payment());
    ledger.transfer(&alice, &shop.account.name, "2.000 HBD", &overpaid.memo);
    ledger.transfer(&alice, &shop.account.name, "0.100 HBD", "a gift");
    ledger.transfer(&alice, &shop.account.name, "1.500 HBD", "for the mug");
    shop.until_status(&overpaid.id, "completed");
    let unmatched = until("two unmatched transfers", || {
        let list = shop.get("/api/public/unmatched?status=open").send().ok(200);
        list["data"].as_array().filter(|list| list.len() == 2).cloned()
    });
    json!({
        "operator_token": value(OPERATOR), "service_token": value(SERVICE),
        "api_key": shop.key, "merchant": shop.id, "other_merchant": other.id,
        "admin_key": admin["apiKey"], "second_account": ledger.account("second").name,
        "prover_key": prover.key, "prover_merchant": prover.id, "nonce": challenge["nonce"], "signature": signature,
        "overpaid_payment": overpaid.id, "waiting_payment": waiting.id, "expired_slug": expired.slug,
        "second_unmatched": unmatched[0]["id"], "unmatched": unmatched[1]["id"],
        "event": shop.get("/api/public/events").send().ok(200)["events"][0]["id"],
        "past": overpaid_at(&shop, &overpaid.id),
    })
}

/// Returns when a payment was created, to the second.
fn overpaid_at(shop: &Shop, id: &str) -> Value {
    let at = shop.payment(id)["createdAt"].as_str().expect("a time").to_owned();
    format!("{}Z", at.split('.').next().expect("seconds").trim_end_matches('Z')).into()
}

const PAGE: &str = "docs/how-to/use-grpc.md";

/// Returns the example in a language, what continues it, and the replacement of its insecure channel.
fn example_blocks<const N: usize>(language: &str) -> [String; N] {
    blocks(PAGE, language).try_into().unwrap_or_else(|_| panic!("{PAGE} has {N} blocks in {language}"))
}

/// Replaces the only occurrence of a text in a program.
#[track_caller]
fn replaced(program: &str, old: &str, new: &str) -> String {
    assert_eq!(program.matches(old).count(), 1, "{old} in {program}");
    program.replace(old, new)
}

/// Runs an example as a service with the service token, optionally over TLS with a client certificate.
#[track_caller]
fn example(command: &mut Command, is_tls: bool) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/certificates");
    let file = |name: &str| folder.join(name).display().to_string();
    let tls = [("cert", "server.pem"), ("key", "server.key"), ("client_ca", "authority.pem")];
    let tls = tls.map(|(setting, name)| format!("--set=grpc.tls_{setting}={}", file(name)));
    let settings = [OPERATOR, SERVICE].into_iter().chain(tls.iter().map(String::as_str).filter(|_| is_tls));
    let dev = Dev::with(&settings.collect::<Vec<_>>());
    let scheme = if is_tls { "https://" } else { "http://" };
    let target = dev.startup["grpc"].as_str().and_then(|url| url.strip_prefix(scheme)).expect("the port");
    // Node warns about IP addresses in TLS; the certificate contains name and address.
    let target = if is_tls { target.replace("127.0.0.1", "localhost") } else { target.to_owned() };
    run(command
        .env("GRPC_TARGET", target)
        .env("GRPC_CA", file("authority.pem"))
        .env("GRPC_CLIENT_CERT", file("client.pem"))
        .env("GRPC_CLIENT_KEY", file("client.key"))
        .env("GRPC_TOKEN", value(SERVICE))
        .env("API_KEY", dev.startup["merchant"]["apiKey"].as_str().expect("a key"))
        .env("PROTO", interface()))
}

fn example_in_python() {
    let [program, continued, _] = example_blocks("python");
    let report = python_example(&format!("{program}\n{continued}"), false);
    let listed: Vec<&str> = report.lines().skip(3).collect();
    let first = report.split(' ').next().expect("the id of the first payment");
    assert!(listed.iter().any(|line| line.ends_with(" 4712")), "{report}");
    assert!(listed.iter().any(|line| line.trim() == first), "{report}");
}

fn tls_example_in_python() {
    let [program, _, secure] = example_blocks("python");
    let insecure = "channel = grpc.insecure_channel(os.environ[\"GRPC_TARGET\"])\n";
    let report = python_example(&replaced(&program, insecure, &secure), true);
    assert_eq!(report.lines().count(), 3, "{report}");
}

#[track_caller]
fn python_example(program: &str, is_tls: bool) -> String {
    let work = crate::harness::folder("example");
    generate(&work);
    std::fs::write(work.join("example.py"), program).expect("written");
    let report = example(Command::new(environment().join("bin/python")).arg("example.py").current_dir(&work), is_tls);
    let lines: Vec<&str> = report.lines().collect();
    assert!(lines.len() >= 3 && lines[0].starts_with("pay_"), "{report}");
    assert_eq!(lines[1..3], ["INVALID_ARGUMENT", "['amount_units', 'description']"], "{report}");
    report
}

fn example_in_node() {
    let [program, _] = example_blocks("js");
    node_example(&program, false);
}

fn tls_example_in_node() {
    let [program, secure] = example_blocks("js");
    let program = replaced(&program, "grpc.credentials.createInsecure()", "credentials");
    let imports = "import loader from \"@grpc/proto-loader\";\n";
    node_example(&replaced(&program, imports, &format!("{imports}{secure}")), true);
}

#[track_caller]
fn node_example(program: &str, is_tls: bool) {
    let work = crate::harness::folder("example");
    std::os::unix::fs::symlink(sources().join("node_modules"), work.join("node_modules")).expect("a link");
    std::fs::write(work.join("example.mjs"), program).expect("written");
    let report = example(Command::new("node").arg("example.mjs").current_dir(&work), is_tls);
    let lines: Vec<&str> = report.lines().collect();
    assert!(lines.len() == 2 && lines[0].starts_with("pay_"), "{report}");
    assert_eq!(lines[1], "PAYMENT_STATUS_PENDING", "{report}");
}

fn watch_in_python() {
    let [program, ..] = py_blocks();
    let work = crate::harness::folder("watch");
    generate(&work);
    std::fs::write(work.join("watch.py"), program).expect("written");
    watch_survives(&work, &format!("{} watch.py", environment().join("bin/python").display()));
}

/// Returns the programs that watch events, watch a payment, resolve a payment, and refund one.
fn py_blocks() -> [String; 4] {
    example_blocks("py")
}

/// Runs the program that watches a payment while the engine is killed, until the payment is final.
fn watch_one_in_python() {
    let [_, program, ..] = py_blocks();
    let work = crate::harness::folder("watch-one");
    generate(&work);
    std::fs::write(work.join("watch.py"), program).expect("written");
    let setup = LedgerProcess::start(&work.join("chain"), "127.0.0.1:0");
    let settings = |address| ["--grpc-listen", address, OPERATOR, SERVICE];
    let data = work.join("data");
    let Serve { api, mut process } = Serve::with(&data, &setup.ledger, &settings("127.0.0.1:0"));
    let address = process.log_after("gRPC port is ");
    let mut shop = Shop::open(&api, &setup.ledger);
    let payment = shop.open_payment();
    let script = format!(
        "GRPC_TARGET={address} GRPC_TOKEN={} API_KEY={} exec {} watch.py {}",
        value(SERVICE),
        shop.key,
        environment().join("bin/python").display(),
        payment.id
    );
    let mut program = Process::program("sh", &work, &["-c", &script]);
    program.until_printed("PAYMENT_STATUS_PENDING");
    process.kill();
    let mut process = Process::start(&Serve::args(&data, &setup.ledger, &settings(&address)));
    shop.api = crate::harness::Api::new(&format!("http://{}", process.log_after("listening on ")));
    until_ready(&shop.api);
    program.until_printed("PAYMENT_STATUS_PENDING");
    shop.cancelled(&payment.id);
    program.until_printed("PAYMENT_STATUS_USER_CANCELLED");
    let ended = program.finish();
    assert!(ended.success, "{ended:?}");
}

fn resolve_in_python() {
    let [.., program, refund] = py_blocks();
    let work = crate::harness::folder("resolve");
    generate(&work);
    std::fs::write(work.join("resolve.py"), program).expect("written");
    std::fs::write(work.join("refund.py"), refund).expect("written");
    let setup = LedgerProcess::start(&work.join("chain"), "127.0.0.1:0");
    let settings = ["--grpc-listen", "127.0.0.1:0", OPERATOR, SERVICE];
    let Serve { api, mut process } = Serve::with(&work.join("data"), &setup.ledger, &settings);
    let address = process.log_after("gRPC port is ");
    let shop = Shop::open(&api, &setup.ledger);
    let payment = shop.open_payment();
    setup.ledger.transfer(&setup.demo_account("alice"), &shop.account.name, "2.000 HBD", &payment.memo);
    shop.until_status(&payment.id, "completed");
    assert_eq!(shop.payment(&payment.id)["needsAttention"], true);
    let python = |arguments: &[&str]| {
        run(Command::new(environment().join("bin/python"))
            .args(arguments)
            .current_dir(&work)
            .env("GRPC_TARGET", &address)
            .env("GRPC_TOKEN", value(SERVICE))
            .env("API_KEY", &shop.key))
    };
    let report = python(&["refund.py", &payment.id]);
    let (operation, uri) = report.trim().split_once('\n').expect("two lines");
    let operation: Value = serde_json::from_str(operation).expect("JSON");
    let memo = operation[1]["memo"].as_str().expect("a memo");
    assert!(memo == format!("refund-{}", payment.id) && uri.starts_with("hive://sign/op/"), "{report}");
    assert_eq!((&operation[1]["to"], &operation[1]["amount"]), (&json!("alice"), &json!("0.500 HBD")));
    let tx_id = setup.ledger.transfer(&shop.account, "alice", "0.500 HBD", memo);
    shop.until(&payment.id, "refunded", |payment| payment["amountRefunded"] == "500");
    assert_eq!(python(&["refund.py", &payment.id, &tx_id]).trim(), format!("{} False", payment.id));
    assert_eq!(shop.payment(&payment.id)["resolution"]["kind"], "refunded");
    assert_eq!(python(&["resolve.py", &payment.id]).trim(), format!("{} False", payment.id));
    assert_eq!(shop.payment(&payment.id)["resolution"]["kind"], "accepted");
    drop(process);
}

fn watch_in_node() {
    let [program] = &blocks(PAGE, "mjs")[..] else { panic!("{PAGE} has one block in mjs") };
    let work = crate::harness::folder("watch");
    std::os::unix::fs::symlink(sources().join("node_modules"), work.join("node_modules")).expect("a link");
    std::fs::write(work.join("watch.mjs"), program).expect("written");
    watch_survives(&work, "node watch.mjs");
}

/// Runs a program that watches events while the engine is killed, the program is killed, and the store is restored from
/// a backup: it must print every cancelled payment.
#[track_caller]
fn watch_survives(work: &Path, command: &str) {
    let setup = LedgerProcess::start(&work.join("chain"), "127.0.0.1:0");
    let (data, backup, again) = (work.join("data"), work.join("backup"), work.join("again"));
    let settings = |address| ["--grpc-listen", address, OPERATOR, SERVICE];
    let Serve { api, mut process } = Serve::with(&data, &setup.ledger, &settings("127.0.0.1:0"));
    let address = process.log_after("gRPC port is ");
    let mut shop = Shop::open(&api, &setup.ledger);
    let serve_again = |data: &Path| {
        let mut process = Process::start(&Serve::args(data, &setup.ledger, &settings(&address)));
        let api = crate::harness::Api::new(&format!("http://{}", process.log_after("listening on ")));
        until_ready(&api);
        (process, api)
    };
    let script = format!(
        "GRPC_TARGET={address} GRPC_TOKEN={} API_KEY={} PROTO={} exec {command}",
        value(SERVICE),
        shop.key,
        interface().display()
    );
    let watch = || Process::program("sh", work, &["-c", &script]);
    let mut program = watch();
    let cancel = |shop: &Shop, program: &mut Process| {
        let payment = shop.open_payment();
        shop.cancelled(&payment.id);
        program.until_printed(&format!("{} PAYMENT_STATUS_USER_CANCELLED", payment.id));
    };
    cancel(&shop, &mut program);
    process.kill();
    (process, shop.api) = serve_again(&data);
    cancel(&shop, &mut program);
    program.kill();
    program = watch();
    cancel(&shop, &mut program);
    let copy = |command: &str, flags: &[String]| {
        let arguments: Vec<&str> = std::iter::once(command).chain(flags.iter().map(String::as_str)).collect();
        let ended = Process::start(&arguments).finish();
        assert!(ended.success, "{ended:?}");
    };
    let flag = |name: &str, path: &Path| format!("--{name}={}", path.display());
    copy("backup", &[flag("data", &data), flag("to", &backup), OPERATOR.to_owned()]);
    cancel(&shop, &mut program);
    process.kill();
    copy("restore", &[flag("data", &again), flag("from", &backup)]);
    std::fs::copy(data.join("master-key"), again.join("master-key")).expect("the key is kept beside the backup");
    (process, shop.api) = serve_again(&again);
    cancel(&shop, &mut program);
    assert!(program.has_ended().is_none(), "{}", program.log());
    drop(process);
}

/// The directory of Go sources in Debian's packages.
const GO_PATH: &str = "/usr/share/gocode";

/// Returns what is missing for Go: the compiler, the protoc plugins, or grpc-go.
fn go() -> Option<String> {
    let has = |name: &str| run_quietly(Command::new("sh").args(["-c", &format!("command -v {name}")]));
    let missing = ["go", "protoc", "protoc-gen-go", "protoc-gen-go-grpc"].into_iter().find(|name| !has(name));
    // Generated code needs this version of the library; grpc-go also accepts an older one.
    let libraries = ["google.golang.org/grpc/call.go", "github.com/golang/protobuf/proto/registry.go"];
    let has_libraries = libraries.iter().all(|file| Path::new(GO_PATH).join("src").join(file).is_file());
    let packages = "golang-google-grpc-dev and golang-github-golang-protobuf-1-5-dev are not installed";
    missing.map(|name| format!("{name} is not installed")).or_else(|| (!has_libraries).then(|| packages.to_owned()))
}

fn run_quietly(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn example_in_go() {
    let [program, _] = example_blocks("go");
    let connected = "grpc.Dial(os.Getenv(\"GRPC_TARGET\"), grpc.WithInsecure())";
    go_example(&replaced(&program, GO_CONNECTION, connected), None);
}

fn tls_example_in_go() {
    let [program, secure] = example_blocks("go");
    let connected = "grpc.Dial(os.Getenv(\"GRPC_TARGET\"), grpc.WithTransportCredentials(secure()))";
    go_example(&replaced(&program, GO_CONNECTION, connected), Some(&secure));
}

const GO_CONNECTION: &str =
    "grpc.NewClient(os.Getenv(\"GRPC_TARGET\"), grpc.WithTransportCredentials(insecure.NewCredentials()))";

#[track_caller]
fn go_example(program: &str, secure: Option<&str>) {
    let work = crate::harness::folder("example");
    let out = work.join("src");
    std::fs::create_dir_all(&out).expect("a folder");
    let [commands] = &blocks(PAGE, "sh")[..] else { panic!("{PAGE} has one block of commands") };
    run(Command::new("bash")
        .args(["-eu", "-c", commands])
        .env("OUT", &out)
        .current_dir(interface().parent().expect("the workspace")));
    let program = replaced(program, "\t\"google.golang.org/grpc/credentials/insecure\"\n", "");
    let files = [("example.go", Some(program.as_str())), ("tls.go", secure)];
    let files = files.into_iter().filter_map(|(name, text)| text.map(|text| (name, text)));
    for (name, text) in files.clone() {
        std::fs::write(work.join(name), text).expect("written");
    }
    run(Command::new("go")
        .args(["build", "-o", "example"])
        .args(files.map(|(name, _)| name))
        .env("GO111MODULE", "off")
        .env("GOFLAGS", "-p=1")
        .env("GOPATH", format!("{}:{GO_PATH}", work.display()))
        .env("GOCACHE", concat!(env!("CARGO_MANIFEST_DIR"), "/../target/go"))
        .current_dir(&work));
    let report = example(&mut Command::new(work.join("example")), secure.is_some());
    let lines: Vec<&str> = report.lines().collect();
    assert!(lines.len() == 5 && lines[0].starts_with("pay_"), "{report}");
    assert_eq!(lines[1..], ["InvalidArgument", "VALIDATION_FAILED", "amount_units", "description"], "{report}");
}
