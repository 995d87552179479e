//! The admin pages of the dashboard: merchants, the audit log, and the ledger nodes.

use serde_json::json;

use crate::{
    dashboard::Visitor,
    harness::{Dev, shared},
};

crate::tests!(
    merchants_are_filtered_and_exported_completely,
    the_audit_log_is_read_and_filtered,
    a_flagged_merchant_is_listed_cleared_and_given_limits,
    nodes_and_scanner_are_shown,
    only_admins_see_the_admin_pages
);

/// Settings with compliance limits only: ten dollars for one payment.
pub(crate) const LIMITED: [&str; 7] = [
    "--limits=production",
    "--set=limits.register=",
    "--set=limits.api_reads=",
    "--set=limits.api_writes=",
    "--set=limits.export=",
    "--set=limits.compliance_single_cents=1000",
    "--set=limits.compliance_contact=help@pay.example",
];

fn admin() -> Visitor {
    let dev = shared();
    Visitor::log_in(&dev.api, dev.admin_key())
}

fn merchants_are_filtered_and_exported_completely() {
    let dev = Dev::start();
    let admin = Visitor::log_in(&dev.api, dev.admin_key());
    let shops: Vec<_> = (0..22).map(|_| dev.shop()).collect();
    shops[0].update(&json!({ "name": "=Formula, \"Ltd\"" })).ok(200);
    admin.done(&format!("/dashboard/merchants/{}/active", shops[1].id), &[("active", "false")]);
    let rows = |page: &str| page.matches("/active\"").count();
    // The demo shop and the admin exist already.
    for (filter, on_page, whole) in [
        ("", 20, 24),
        ("limit=50", 24, 24),
        ("limit=100&active=active", 23, 23),
        ("limit=7", 20, 24),
        ("page=2", 4, 24),
        ("active=inactive", 1, 1),
        ("query=formula", 1, 1),
        ("query=nobody-has-this", 0, 0),
    ] {
        let page = admin.page(&format!("/dashboard/merchants?{filter}"));
        assert_eq!(rows(&page), on_page, "{filter}");
        assert!(page.contains(&format!("{whole} merchants")), "{filter}: {page}");
        let json = admin.get(&format!("/dashboard/merchants.json?{filter}")).json();
        assert_eq!(json.as_array().map(Vec::len), Some(whole), "{filter}");
    }
    let csv = admin.get("/dashboard/merchants.csv?query=formula");
    assert!(csv.header("content-disposition").is_some_and(|value| value.starts_with("attachment")));
    assert!(csv.text().contains("\"'=Formula, \"\"Ltd\"\"\""), "{}", csv.text());
    let visitor = Visitor::of(&shops[2]);
    assert_eq!(
        (visitor.get("/dashboard/merchants.csv").status, visitor.get("/dashboard/merchants.json").status),
        (403, 403)
    );
}

fn the_audit_log_is_read_and_filtered() {
    let (shop, other) = (shared().shop(), shared().shop());
    let admin = admin();
    Visitor::of(&shop).done("/dashboard/settings", &[("name", "<b>Mugs</b>"), ("hiveAccount", &shop.account.name)]);
    admin.done(&format!("/dashboard/merchants/{}/active", other.id), &[("active", "false")]);
    let page = admin.page(&format!("/dashboard/audit?merchantId={}", shop.id));
    assert!(page.contains("merchant updated") && page.contains("→ &#60;b&#62;Mugs&#60;/b&#62;"), "{page}");
    assert!(page.contains("<td>itself") && !page.contains(&other.id), "{page}");
    assert!(admin.page("/dashboard/audit").contains(&other.id));
    let wrong = admin.get("/dashboard/audit?merchantId=nobody");
    assert!(wrong.status == 400 && wrong.text().contains("merchantId must be"), "{}", wrong.text());
    let mut seen = 0;
    let mut next = Some("/dashboard/audit".to_owned());
    while let Some(path) = next.filter(|_| seen < 500) {
        let page = admin.page(&path);
        seen += page.matches("<tr><td>").count();
        let link = page.split("href=\"").find(|rest| rest.contains("cursor=")).and_then(|rest| rest.split('"').next());
        next = link.map(|link| link.replace("&#38;", "&"));
    }
    assert!(seen >= 4, "every entry is on some page: {seen}");
}

fn a_flagged_merchant_is_listed_cleared_and_given_limits() {
    let dev = Dev::with(&LIMITED);
    let (shop, other) = (dev.shop(), dev.shop());
    let admin = Visitor::log_in(&dev.api, dev.admin_key());
    let path = format!("/dashboard/merchants/{}", shop.id);
    assert!(!admin.page("/dashboard/merchants?active=flagged").contains(&shop.id));
    let large = [("amount", "10.010"), ("currency", "HBD"), ("description", "A table")];
    let refused = Visitor::of(&shop).send("/dashboard/payments/new", &large);
    assert!(refused.status == 403 && refused.text().contains("help@pay.example"), "{}", refused.text());
    let list = admin.page("/dashboard/merchants?active=flagged");
    assert!(list.contains(&shop.id) && list.contains("1 merchants") && !list.contains(&other.id), "{list}");
    assert_eq!(admin.get("/dashboard/merchants.json?active=flagged").json().as_array().map(Vec::len), Some(1));
    let page = admin.page(&path);
    assert!(page.contains("On hold: one payment: $10.01, the limit is $10.00"), "{page}");
    assert_eq!(admin.send(&format!("{path}/clear"), &[("reason", " ")]).status, 400);
    let wrong = admin.send(&format!("{path}/limits"), &[("single", "lots"), ("daily", "5")]);
    assert!(wrong.status == 400 && wrong.text().contains("single must be dollars"), "{}", wrong.text());
    assert!(wrong.text().contains("value=\"lots\""), "the entered value is kept");
    let done = admin.done(&format!("{path}/clear"), &[("reason", "Passport <b>seen</b>")]);
    let page = admin.page(&done);
    assert!(page.contains("The hold was ended.") && page.contains("Passport &#60;b&#62;seen"), "{page}");
    admin.done(&format!("{path}/limits"), &[("single", "250"), ("daily", ""), ("monthly", "0")]);
    assert!(admin.page(&path).contains("value=\"250.00\""));
    Visitor::of(&shop).done("/dashboard/payments/new", &large);
    admin.done(&format!("{path}/limits"), &[("own", "none")]);
    assert!(admin.page(&path).contains("value=\"10.00\""));
    let audit = admin.page(&format!("/dashboard/audit?merchantId={}", shop.id));
    for action in ["merchant flagged", "compliance cleared", "compliance limits set"] {
        assert!(audit.contains(action), "{action}: {audit}");
    }
    let visitor = Visitor::of(&other);
    for action in ["clear", "limits"] {
        assert_eq!(visitor.send(&format!("{path}/{action}"), &[("reason", "me"), ("own", "none")]).status, 403);
    }
    assert_eq!((visitor.get(&path).status, admin.get("/dashboard/merchants/mer_x").status), (403, 404));
}

fn nodes_and_scanner_are_shown() {
    let dev = shared();
    let page = admin().page("/dashboard/nodes");
    assert!(page.contains("Node reachable") && page.contains("Scanned block") && page.contains("127.0.0.1"), "{page}");
    let nodes = dev.api.get("/api/admin/nodes").bearer(dev.admin_key()).send().ok(200);
    assert_eq!((&nodes["needed"], &nodes["data"][0]["failures"]), (&1.into(), &0.into()), "{nodes}");
    assert!(nodes["data"][0]["answeredAt"].is_string());
}

fn only_admins_see_the_admin_pages() {
    let shop = shared().shop();
    let visitor = Visitor::of(&shop);
    let front = visitor.page("/dashboard");
    for path in ["/dashboard/merchants", "/dashboard/audit", "/dashboard/nodes"] {
        assert!(!front.contains(path), "{path}");
        assert_eq!(visitor.get(path).status, 403, "{path}");
    }
    shop.get("/api/admin/nodes").send().refused(403, "admin_required");
}
