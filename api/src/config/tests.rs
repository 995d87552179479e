//! Tests of the layers of settings and of their errors.

use engine::{
    compliance::{Limits as ComplianceLimits, Thresholds},
    quota::Quota,
};

use super::*;

fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("hivetill.toml");
    fs::write(&path, text).expect("written");
    (folder, path)
}

fn load(text: &str) -> Result<Config, ConfigError> {
    let (_folder, path) = file(text);
    Config::load(Layers { file: Some(path), ..Layers::default() })
}

#[test]
fn default_settings_are_the_engines_defaults_and_x402_settings_are_applied() {
    let defaults = Config::default().engine();
    let cents = |single_cents, daily_cents, monthly_cents| Thresholds { single_cents, daily_cents, monthly_cents };
    let limits =
        ComplianceLimits { hard: cents(1_000_000, 2_500_000, 10_000_000), soft: cents(100_000, 2_000_000, 8_000_000) };
    let contact = "the operator of this service".to_owned();
    let compliance = Some(actors::Compliance { limits, contact });
    let server = "127.0.0.1:8080".to_owned();
    let quota = Some(Quota { open_payments: 100_000, stored_bytes: 10_000_000_000 });
    let documented = actors::Settings { compliance, quota, server, ..actors::Settings::of(defaults.chain_id) };
    assert_eq!(format!("{defaults:?}"), format!("{documented:?}"));
    for (word, finality) in [
        ("accepted", ClaimFinality::Accepted),
        ("in_block", ClaimFinality::InBlock),
        ("irreversible", ClaimFinality::Irreversible),
    ] {
        let pairs = [
            &format!("x402.finality={word}"),
            "x402.max_expiration_seconds=60",
            "x402.irreversible_from_cents=7",
            "x402.only_registered=true",
            "x402.sign=false",
        ];
        let pairs = pairs.map(str::to_owned).to_vec();
        let config = Config::load(Layers { pairs, ..Layers::default() }).expect("good settings");
        let wanted = actors::X402Settings {
            max_expiration: Duration::from_secs(60),
            finality,
            irreversible_from_cents: 7,
            only_registered: true,
            signs: false,
        };
        assert_eq!(config.engine().x402, wanted);
    }
}

#[test]
fn later_layers_override_earlier_ones_and_sources_are_shown() {
    let (_folder, path) = file("network = \"dev\"\nfees.percent = 2.5\n[session]\nmax_active = 7\ngrace_seconds = 3\n");
    let layers = Layers {
        command: vec![("fees.percent", "1.5".to_owned()), ("webhooks.allow_insecure", "true".to_owned())],
        command_name: "dev",
        file: Some(path.clone()),
        environment: vec![
            ("HIVETILL_SESSION_MAX_ACTIVE".to_owned(), "8".to_owned()),
            ("HIVETILL_SESSION_GRACE_SECONDS".to_owned(), "4".to_owned()),
            ("HIVETILL_GRPC_TOKEN".to_owned(), "hush".repeat(8)),
            ("PATH".to_owned(), "/bin".to_owned()),
        ],
        pairs: vec!["session.grace_seconds=5".to_owned(), "ledger.nodes=http://a.example, http://b.example".to_owned()],
        flags: vec![("listen", "127.0.0.1:0".to_owned())],
    };
    let config = Config::load(layers).expect("good");
    assert_eq!(config.integer("session.max_active"), 8);
    assert_eq!(config.seconds("session.grace_seconds"), Duration::from_secs(5));
    assert_eq!(config.list("ledger.nodes"), ["http://a.example", "http://b.example"]);
    let shown = config.show();
    assert!(shown.contains("session.max_active = 8  # environment variable HIVETILL_SESSION_MAX_ACTIVE\n"), "{shown}");
    assert!(shown.contains(&format!("fees.percent = \"2.5\"  # file {}\n", path.display())));
    assert!(shown.contains("webhooks.allow_insecure = true  # default of dev\n"));
    assert!(shown.contains("listen = \"127.0.0.1:0\"  # flag\n"));
    assert!(shown.contains("log.level = \"info\"  # default\n"));
    assert!(shown.contains("# grpc.token is set and not shown"));
    assert!(!shown.contains("hush") && !format!("{config:?}").contains("hush"));
    let engine = config.engine();
    assert_eq!((engine.development, engine.fee_percent.ten_thousandths()), (true, 25_000));
}

#[test]
fn shown_settings_can_be_loaded() {
    let shown = Config::default().show();
    assert_eq!(load(&shown).expect("good").values.len(), TABLE.len());
}

#[test]
fn unknown_keys_are_refused_in_every_source() {
    for text in ["lisen = \"x\"", "[session]\nmax_actve = 1", "[sesion]\nmax_active = 1", "[session.max_active]\nx = 1"]
    {
        let error = load(text).expect_err(text).to_string();
        assert!(error.contains("lisen") || error.contains("max_act") || error.contains("sesion"), "{error}");
    }
    let environment = vec![("HIVETILL_LISEN".to_owned(), "x".to_owned())];
    let error = Config::load(Layers { environment, ..Layers::default() }).expect_err("unknown").to_string();
    assert!(error.contains("HIVETILL_LISEN"), "{error}");
    let environment = OTHER_VARIABLES.map(|name| (name.to_owned(), "x".to_owned())).to_vec();
    Config::load(Layers { environment, ..Layers::default() }).expect("other variables are ignored");
    let pairs = vec!["max_active=1".to_owned()];
    let error = Config::load(Layers { pairs, ..Layers::default() }).expect_err("unknown").to_string();
    assert!(error.contains("did you mean `session.max_active`?"), "{error}");
    let pairs = vec!["listen".to_owned()];
    assert!(matches!(Config::load(Layers { pairs, ..Layers::default() }), Err(ConfigError::NotAPair(_))));
}

#[test]
fn errors_of_types_and_ranges_contain_the_key() {
    for (text, key) in [
        ("[session]\nmax_active = \"7\"", "session.max_active"),
        ("[session]\nlifetime_seconds = 59", "session.lifetime_seconds"),
        ("[webhooks]\nallow_insecure = 1", "webhooks.allow_insecure"),
        ("[ledger]\nnodes = \"https://a.example\"", "ledger.nodes"),
        ("[ledger]\nnodes = [1]", "ledger.nodes"),
        ("listen = 8080", "listen"),
        ("[fees]\npercent = true", "fees.percent"),
    ] {
        let error = load(text).expect_err(text).to_string();
        assert!(error.contains(&format!("`{key}` must be")), "{error}");
    }
    assert!(matches!(load("listen ="), Err(ConfigError::NotToml { .. })));
    let missing = Layers { file: Some("/nonexistent/hivetill.toml".into()), ..Layers::default() };
    assert!(matches!(Config::load(missing), Err(ConfigError::Unreadable { .. })));
    assert!(matches!(load("[fees]\nmode = \"split\""), Err(ConfigError::Inconsistent(_))));
    for text in ["tls_cert = \"x\"", "tls_client_key = \"x\"", "tls_client_ca = \"x\""] {
        assert!(matches!(load(&format!("[grpc]\n{text}")), Err(ConfigError::Inconsistent(_))), "{text}");
    }
    let (one, other) = ("1".repeat(32), "2".repeat(32));
    let tokens = format!("[grpc]\ntoken = \"{one}\"\nprevious_service_token");
    assert!(matches!(load(&format!("{tokens} = \"{one}\"")), Err(ConfigError::Inconsistent(_))));
    load(&format!("{tokens} = \"{other}\"")).expect("two tokens");
}
