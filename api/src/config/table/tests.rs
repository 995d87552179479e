//! Tests of the table of settings.

use super::*;

#[test]
fn defaults_are_valid_and_names_are_unique() {
    for key in TABLE {
        assert_eq!(key.check(key.default), Ok(()), "{}", key.name);
        assert_eq!(TABLE.iter().filter(|other| other.variable() == key.variable()).count(), 1, "{}", key.name);
        assert!(key.doc.ends_with('.') && !key.doc.contains('|'), "{}", key.name);
    }
}

#[test]
fn values_outside_their_range_are_refused() {
    for (name, bad) in [
        ("network", "testnet"),
        ("chain_id", "beeab0de"),
        ("listen", "localhost"),
        ("listen", ""),
        ("base_url", "pay.example"),
        ("base_url", "ftp://pay.example"),
        ("ledger.nodes", ""),
        ("ledger.nodes", "https://a.example,,https://b.example"),
        ("session.lifetime_seconds", "59"),
        ("session.lifetime_seconds", "86401"),
        ("session.lifetime_seconds", "+60"),
        ("session.max_active", "0"),
        ("fees.percent", "1.23456"),
        ("fees.percent", "101"),
        ("fees.account", "No"),
        ("billing.merchant_id", "mer_1"),
        ("billing.due_days", "0"),
        ("webhooks.allow_insecure", "yes"),
        ("webhooks.header_prefix", "X Hivetill"),
        ("grpc.token", "abc"),
        ("grpc.token", "0123456789012345678901234567890"),
        ("grpc.service_token", "a space between 32 characters or more"),
        ("grpc.previous_token", "ünd kein ASCII, wie ein Kopf es braucht"),
        ("log.level", "loud"),
        ("cors.key_origins", "https://admin.example/"),
        ("cors.key_origins", "*"),
    ] {
        let key = find(name).unwrap_or_else(|| panic!("{name} is declared"));
        assert!(key.check(bad).is_err_and(|requirement| requirement.starts_with("must be ")), "{name} = {bad:?}");
    }
}

#[test]
fn the_reference_page_is_current() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/settings.md");
    let page = std::fs::read_to_string(path).unwrap_or_default();
    assert!(page == reference(), "run: cargo run -- config --reference > docs/reference/settings.md");
}
