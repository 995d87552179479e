//! Lists of payments: order, pages, filters and search.

use serde_json::{Value, json};

use crate::harness::{Shop, shared};

crate::tests!(
    a_list_is_newest_first_and_twenty_long,
    pages_and_cursors_visit_every_payment_once,
    filters_return_only_matching_payments,
    a_search_finds_ids_descriptions_metadata_payers_and_transactions,
    a_list_shows_the_merchants_own_payments_only,
    page_and_limit_are_validated,
);

/// Returns the ids on a page.
fn ids(page: &Value) -> Vec<String> {
    let data = page["data"].as_array().expect("data");
    data.iter().map(|payment| payment["id"].as_str().expect("an id").to_owned()).collect()
}

fn list(shop: &Shop, query: &str) -> Value {
    shop.get(&format!("/api/public/payments{query}")).send().ok(200)
}

/// Opens payments and returns their ids, newest first. Of two created within a millisecond either may be first.
fn open(shop: &Shop, count: usize) -> Vec<String> {
    let mut ids: Vec<String> = (0..count).map(|_| shop.open_payment().id).collect();
    ids.sort_by(|left, right| right.cmp(left));
    ids
}

fn a_list_is_newest_first_and_twenty_long() {
    let shop = shared().shop();
    let empty = list(&shop, "");
    assert_eq!(empty["data"], json!([]));
    assert_eq!(page_numbers(&empty), (1, 20, 0, 0));
    let made = open(&shop, 21);
    for path in ["/api/public/payments", "/api/public/payments/list"] {
        let page = shop.get(path).send().ok(200);
        assert_eq!(ids(&page), made[..20]);
        assert_eq!(page_numbers(&page), (1, 20, 21, 2));
    }
    let record = &list(&shop, "")["data"][0];
    assert_eq!(*record, shop.payment(&made[0]), "an item is the whole record");
}

fn page_numbers(page: &Value) -> (u64, u64, u64, u64) {
    let number = |name: &str| page["pagination"][name].as_u64().unwrap_or_else(|| panic!("no {name} in {page}"));
    (number("page"), number("limit"), number("total"), number("totalPages"))
}

fn pages_and_cursors_visit_every_payment_once() {
    let shop = shared().shop();
    let made = open(&shop, 7);
    let pages: Vec<String> = (1..=4).flat_map(|page| ids(&list(&shop, &format!("?page={page}&limit=3")))).collect();
    assert_eq!(pages, made);
    assert_eq!(page_numbers(&list(&shop, "?page=4&limit=3")), (4, 3, 7, 3));

    let mut walked = Vec::new();
    let mut query = "?limit=3".to_owned();
    loop {
        let page = list(&shop, &query);
        walked.extend(ids(&page));
        // A new payment shifts pages by number, but not by cursor.
        shop.open_payment();
        let is_first = !query.contains("cursor");
        for name in ["total", "totalPages"] {
            assert_eq!(page["pagination"][name].is_u64(), is_first, "{name} of {page}");
        }
        match page["pagination"]["nextCursor"].as_str().or_else(|| page["nextCursor"].as_str()) {
            Some(cursor) => query = format!("?limit=3&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(walked, made);
    shop.get("/api/public/payments?cursor=nonsense").send().wrong(&["cursor"]);
    let page = list(&shop, "?limit=1&status=pending,completed");
    let cursor =
        page["pagination"]["nextCursor"].as_str().or_else(|| page["nextCursor"].as_str()).expect("a next page");
    list(&shop, &format!("?limit=2&status=completed,pending&cursor={cursor}"));
    for other in ["", "&status=pending", "&status=pending,completed&currency=HIVE"] {
        shop.get(&format!("/api/public/payments?limit=1{other}&cursor={cursor}")).send().wrong(&["cursor"]);
    }
}

fn filters_return_only_matching_payments() {
    let dev = shared();
    let shop = dev.shop();
    let (open, cancelled, over) = (shop.open_payment(), shop.open_payment(), shop.open_payment());
    let hive = shop.open_with(&json!({ "amount": "5", "currency": "HIVE", "description": "in hive" }));
    shop.cancelled(&cancelled.id);
    dev.ledger.transfer(&dev.demo_account("alice"), &shop.account.name, "2.000 HBD", &over.memo);
    let over_record = shop.until_status(&over.id, "completed");
    let from = over_record["createdAt"].as_str().unwrap();
    for (query, wanted) in [
        ("?status=pending", vec![&hive.id, &open.id]),
        ("?status=user_cancelled", vec![&cancelled.id]),
        ("?status=completed,user_cancelled", vec![&over.id, &cancelled.id]),
        ("?status=completed&status=user_cancelled", vec![&over.id, &cancelled.id]),
        ("?status=failed", vec![]),
        ("?currency=HIVE", vec![&hive.id]),
        ("?currency=HBD&status=pending", vec![&open.id]),
        ("?unusual=true", vec![&over.id]),
        (&format!("?from={from}"), vec![&hive.id, &over.id]),
        (&format!("?ids={},{},pay_00000000000000000000000000,junk", open.id, hive.id), vec![&hive.id, &open.id]),
        ("?ids=junk", vec![]),
        ("?minAmount=1501", vec![]),
        ("?minAmount=6&maxAmount=1500", vec![&over.id, &cancelled.id, &open.id]),
        ("?maxAmount=5", vec![&hive.id]),
    ] {
        let page = list(&shop, query);
        assert_eq!(ids(&page).iter().collect::<Vec<_>>(), wanted, "{query}");
        assert_eq!(page["pagination"]["total"], wanted.len(), "{query}");
    }
    for (query, field) in [
        ("status=paid", "status"),
        ("currency=BTC", "currency"),
        ("from=yesterday", "from"),
        ("to=1", "to"),
        ("unusual=maybe", "unusual"),
        ("minAmount=1.5", "minAmount"),
        ("maxAmount=-1", "maxAmount"),
    ] {
        shop.get(&format!("/api/public/payments?{query}")).send().wrong(&[field]);
    }
}

fn a_search_finds_ids_descriptions_metadata_payers_and_transactions() {
    let shop = shared().shop();
    let mug = shop.open_with(&json!({
        "amount": "5", "currency": "HBD", "description": "Blue Mug, large", "metadata": { "orderId": "ord-4711" },
    }));
    let pot = shop.open_with(&json!({
        "amount": "5", "currency": "HBD", "description": "Tea pot", "metadata": { "tags": ["ceramic", "gift"] },
    }));
    for (query, wanted) in [
        ("blue%20mug", vec![&mug.id]),
        ("BLUE", vec![&mug.id]),
        ("4711", vec![&mug.id]),
        ("ceramic", vec![&pot.id]),
        (&pot.id, vec![&pot.id]),
        ("nothing-like-it", vec![]),
    ] {
        let found = crate::harness::until(&format!("the search for {query}"), || {
            let found = ids(&list(&shop, &format!("?query={query}")));
            (found.iter().collect::<Vec<_>>() == wanted).then_some(found)
        });
        assert_eq!(found.len(), wanted.len());
    }
    let dev = shared();
    let payer = dev.ledger.account("finder");
    let tx_id = dev.ledger.transfer(&payer, &shop.account.name, "0.005 HBD", &pot.memo);
    shop.until_status(&pot.id, "completed");
    for query in [&payer.name, &tx_id] {
        assert_eq!(ids(&list(&shop, &format!("?query={query}"))), [pot.id.as_str()], "{query}");
    }
    let long = "x".repeat(201);
    shop.get(&format!("/api/public/payments?query={long}")).send().wrong(&["query"]);
}

fn a_list_shows_the_merchants_own_payments_only() {
    let (shop, other) = (shared().shop(), shared().shop());
    let payment = shop.open_payment();
    assert_eq!(list(&other, "")["data"], json!([]));
    assert_eq!(list(&other, &format!("?ids={}", payment.id))["data"], json!([]));
    assert_eq!(list(&other, &format!("?query={}", payment.id))["data"], json!([]));
    for path in ["", "/status"] {
        let path = format!("/api/public/payments/{}{path}", payment.id);
        other.get(&path).send().refused(404, "not_found");
    }
    other.cancel(&payment.id).refused(404, "not_found");
    assert_eq!(shop.payment(&payment.id)["status"], "pending");
}

fn page_and_limit_are_validated() {
    let shop = shared().shop();
    for limit in ["1", "20", "100"] {
        assert_eq!(list(&shop, &format!("?limit={limit}"))["pagination"]["limit"].to_string(), limit);
    }
    for bad in ["0", "101", "-1", "1.5", "ten", "", "1e2", "99999999999999999999"] {
        shop.get(&format!("/api/public/payments?limit={bad}")).send().wrong(&["limit"]);
    }
    for bad in ["0", "-1", "1.5", "one", "", "99999999999999999999"] {
        shop.get(&format!("/api/public/payments?page={bad}")).send().wrong(&["page"]);
    }
    shop.get("/api/public/payments?page=0&limit=0&status=x").send().wrong(&["limit", "page", "status"]);
    assert_eq!(list(&shop, "?page=1000000")["data"], json!([]));
}
