//! Two processes, engine and facade, return the same responses as one.

use serde_json::{Value, json};

use crate::{
    dashboard::Visitor,
    golden,
    harness::{Api, LedgerProcess, Process, Shop, Split, folder, order, until, until_ready},
};

crate::tests!(
    two_processes_have_the_same_responses_as_one,
    a_facade_keeps_running_without_its_engine,
    a_facade_with_a_wrong_token_reports_its_own_configuration,
    a_facade_with_plain_http_to_a_tls_port_logs_the_cause,
    a_login_is_valid_at_every_facade_until_it_ends,
    a_lockout_counts_over_all_facades,
);

fn setup() -> (LedgerProcess, Split) {
    let folder = folder("split");
    let ledger = LedgerProcess::start(&folder.join("chain"), "127.0.0.1:0");
    let split = Split::start(&folder.join("data"), &ledger.ledger);
    (ledger, split)
}

fn two_processes_have_the_same_responses_as_one() {
    let (ledger, split) = setup();
    let args = ["admin", "--json", "--account", "hivetill.fees", "--engine-url", &split.grpc];
    let token = format!("--set=grpc.token={}", split.token());
    let args: Vec<&str> = args.into_iter().chain([token.as_str()]).collect();
    let made = Process::start(&args).finish();
    assert!(made.success, "{made:?}");
    let admin: Value = serde_json::from_str(&made.stdout).expect("a line of JSON");
    // The golden files are the transcripts of one process, also in a run that updates them.
    for (name, text) in golden::record(&split.api, &ledger.ledger, admin["apiKey"].as_str().expect("a key")) {
        golden::compare(name, &text);
    }
}

fn a_facade_keeps_running_without_its_engine() {
    let (ledger, mut split) = setup();
    let shop = Shop::open(&split.api, &ledger.ledger);
    let payment = shop.open_payment();
    split.engine.kill();
    for request in [shop.get("/api/public/payments"), shop.post("/api/public/payments", &order())] {
        let refused = request.send();
        refused.refused(503, "engine_unavailable");
        assert!(refused.header("retry-after").is_some());
    }
    let page = split.api.get(&format!("/for/{}", payment.slug)).header("accept", "text/html").send();
    assert!(page.status == 503 && page.text().contains("<html"), "{}", page.text());
    assert_eq!(split.api.get("/livez").send().status, 200);
    assert_eq!(split.api.get("/api/health").send().status, 503);
    let address = split.grpc.strip_prefix("http://").expect("plain").to_owned();
    let (engine, _) = Split::engine(&split.data, &ledger.ledger, &address);
    split.engine = engine;
    until_ready(&split.api);
    ledger.ledger.transfer(&ledger.demo_account("alice"), &shop.account.name, "1.500 HBD", &payment.memo);
    shop.until_status(&payment.id, "completed");
    assert!(split.facade.stop().success());
}

fn a_facade_with_a_wrong_token_reports_its_own_configuration() {
    let (ledger, split) = setup();
    let shop = Shop::open(&split.api, &ledger.ledger);
    let url = format!("--engine-url={}", split.grpc);
    let mut wrong = Process::start(&[
        "facade",
        "--listen",
        "127.0.0.1:0",
        &url,
        "--set=grpc.token=a-wrong-token-of-32-characters-or-more",
    ]);
    let api = Api::new(&format!("http://{}", wrong.log_after("listening on ")));
    let response = until("a response", || api.get("/api/public/merchants/me").bearer(&shop.key).try_send().ok());
    response.refused(503, "engine_access_denied");
    assert_eq!(
        wrong.log_after("connection to the engine failed: the engine rejected the access token; set the same "),
        "grpc.token"
    );
    let none = Process::start(&["facade", "--listen", "127.0.0.1:0", &url]).finish();
    assert!(!none.success && none.stderr.contains("token"), "{none:?}");
    assert_eq!(shop.get("/api/public/payments").send().ok(200)["data"], json!([]));
}

fn a_facade_with_plain_http_to_a_tls_port_logs_the_cause() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("--engine-url=http://{}", listener.local_addr().expect("bound"));
    crate::harness::background(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // A TLS server responds to bytes that are not a ClientHello with an alert and closes.
            let _ = std::io::Read::read(&mut &stream, &mut [0; 64]);
            let _ = std::io::Write::write_all(&mut &stream, &[0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x16]);
        }
    });
    let mut facade = Process::start(&[
        "facade",
        "--listen",
        "127.0.0.1:0",
        &url,
        "--set=grpc.token=a-wrong-token-of-32-characters-or-more",
    ]);
    let api = Api::new(&format!("http://{}", facade.log_after("listening on ")));
    let response = until("a response", || api.get("/api/health").try_send().ok());
    response.refused(503, "engine_unavailable");
    assert_eq!(facade.log_after("engine_url must start with "), "https");
}

/// Starts another facade of an engine.
fn another_facade(split: &Split, more: &[&str]) -> (Process, Api) {
    let (url, token) = (format!("--engine-url={}", split.grpc), format!("--set=grpc.token={}", split.token()));
    let fixed = ["facade", "--listen=127.0.0.1:0", &url, &token];
    let mut facade = Process::start(&[fixed.as_slice(), more].concat());
    let api = Api::new(&format!("http://{}", facade.log_after("listening on ")));
    until_ready(&api);
    (facade, api)
}

fn a_login_is_valid_at_every_facade_until_it_ends() {
    let (ledger, split) = setup();
    let shop = Shop::open(&split.api, &ledger.ledger);
    let (_second, api) = another_facade(&split, &["--set=limits.profile=off"]);
    let is_out = |visitor: &Visitor| {
        let response = visitor.get("/dashboard");
        (response.status, response.header("location").map(str::to_owned)) == (303, Some("/dashboard/login".to_owned()))
    };
    let here = Visitor::log_in(&split.api, &shop.key);
    let there = here.at(&api);
    assert!(there.page("/dashboard/settings").contains("1 open"));
    // The form token is valid there, too.
    assert!(there.send("/dashboard/settings/secret", &[("graceHours", "1")]).text().contains("whsec_"));
    assert_eq!(there.done("/dashboard/logout", &[]), "/dashboard/login");
    assert!(is_out(&here) && is_out(&there));

    let (one, two) = (Visitor::log_in(&split.api, &shop.key), Visitor::log_in(&api, &shop.key));
    let other = Visitor::of(&Shop::open(&api, &ledger.ledger));
    assert!(one.at(&api).page("/dashboard/settings").contains("2 open"));
    one.at(&api).done("/dashboard/logout", &[("everywhere", "1")]);
    assert!([&one, &two].into_iter().all(|visitor| is_out(visitor) && is_out(&visitor.at(&api))));
    other.at(&split.api).page("/dashboard");

    // A login outlives its facade, and ends with its key.
    let (mut third, api) = another_facade(&split, &["--set=limits.profile=off"]);
    let kept = Visitor::log_in(&api, &shop.key);
    third.kill();
    kept.at(&split.api).page("/dashboard");
    let args = ["admin", "--json", "--account", "hivetill.fees", "--engine-url", &split.grpc];
    let token = format!("--set=grpc.token={}", split.token());
    let made = Process::start(&[args.as_slice(), &[token.as_str()]].concat()).finish();
    let made: Value = serde_json::from_str(&made.stdout).expect("a line of JSON");
    let path = format!("/api/admin/merchants/{}/api-key", shop.id);
    split.api.post(&path, &json!({})).bearer(made["apiKey"].as_str().expect("a key")).send().ok(200);
    assert!(is_out(&kept.at(&split.api)));
}

fn a_lockout_counts_over_all_facades() {
    let (ledger, split) = setup();
    let shop = Shop::open(&split.api, &ledger.ledger);
    let limits = ["--set=limits.bad_keys=6/day", "--set=limits.anonymous="];
    let facades = [another_facade(&split, &limits), another_facade(&split, &limits)];
    let me = |api: &Api, key: &str| api.get("/api/public/merchants/me").bearer(key).send();
    let wrong = |number: usize| format!("sk_live_{number:048}");
    for number in 0..6 {
        me(&facades[number % 2].1, &wrong(number)).refused(401, "invalid_api_key");
    }
    for (_, api) in &facades {
        let locked = me(api, &wrong(7));
        locked.refused(429, "rate_limited");
        assert!(locked.header("retry-after").is_some());
        // Even a valid key would reveal that it is valid.
        me(api, &shop.key).refused(429, "rate_limited");
    }
    let (_third, api) = another_facade(&split, &limits);
    me(&api, &shop.key).refused(429, "rate_limited");
    me(&split.api, &shop.key).ok(200);
}
