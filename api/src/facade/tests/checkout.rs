//! The customer's page: who sees what, and who may cancel.

use proto::v1;
use serde_json::json;

use super::Site;
use crate::facade::fake::{PAYMENT, SLUG};

#[tokio::test]
async fn the_page_is_for_browsers_and_tells_nothing_on() {
    let site = Site::open().await;
    let slug = format!("/for/{SLUG}");
    for path in [slug.clone(), format!("/checkout/{PAYMENT}")] {
        let page = site.browse(&format!("{path}?step=pay")).await;
        for needed in ["Blue Mugs", "10.500", "blue.mugs", PAYMENT, "hive://sign/op/", "hivesigner.com", "<noscript>"] {
            assert!(page.body.contains(needed), "{path}: {needed}");
        }
        let page = site.browse(&path).await;
        assert_eq!(page.status, 200, "{path}");
        for needed in ["Blue Mugs", "Two mugs", "10.500", "blue.mugs", "<noscript>"] {
            assert!(page.body.contains(needed), "{path}: {needed}");
        }
        for (name, value) in [
            ("content-type", "text/html; charset=utf-8"),
            ("cache-control", "no-store"),
            ("referrer-policy", "no-referrer"),
            ("x-robots-tag", "noindex, nofollow"),
            ("x-content-type-options", "nosniff"),
            ("vary", "Accept, X-Payment, Payment-Signature, Accept-Language"),
        ] {
            assert_eq!(page.header(name), Some(value), "{name}");
        }
        let csp = page.header("content-security-policy").expect("a policy");
        assert!(csp.starts_with("default-src 'none'; script-src 'self'") && !csp.contains("unsafe"));
        assert!(
            !page.body.contains("style=\"") && !page.body.contains("onclick"),
            "a strict policy forbids inline code"
        );
    }
    let page = site.browse(&format!("/checkout/{PAYMENT}?step=pay")).await.body;
    let token = page.split("name=\"token\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a token");
    assert!(page.contains(&format!("%3Ft%3D{token}%26tx%3D")), "a wallet leads back to the whole page");
    assert!(!page.contains(SLUG), "the id must not lead to the slug");

    assert_eq!(site.send("GET", "/for/unknown", "", "").await.error().0, 404);
    let missing = site.browse("/for/unknown").await;
    assert_eq!((missing.status, missing.body.contains("No such payment")), (404, true));
    assert_eq!(site.browse("/checkout/pay_x").await.status, 404);
    for (file, kind) in [("checkout.js", "text/javascript"), ("checkout.css", "text/css")] {
        assert!(site.get(&format!("/assets/{file}")).await.header("content-type").is_some_and(|t| t.starts_with(kind)));
    }
}

#[tokio::test]
async fn a_strangers_id_shows_of_a_finished_session_state_and_amount_only() {
    let site = Site::open().await;
    let open = site.browse(&format!("/checkout/{PAYMENT}")).await.body;
    let token = open.split("name=\"token\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a token");
    site.fake.set(|payment| payment.status = v1::PaymentStatus::Completed.into());
    let finished = site.browse(&format!("/checkout/{PAYMENT}")).await.body;
    assert!(finished.contains("Paid") && finished.contains("10.500"));
    site.fake.set(|payment| payment.amount_overpaid_units = 5);
    let live = site.send("GET", &format!("/checkout/{PAYMENT}/status"), "", "").await.body;
    let events = site.send("GET", &format!("/checkout/{PAYMENT}/events"), "", "").await.body;
    for hidden in ["Two mugs", "shop.example", "Blue Mugs", SLUG] {
        assert!(!finished.contains(hidden) && !live.contains(hidden) && !events.contains(hidden), "{hidden}");
    }
    assert!(site.send("GET", &format!("/for/{SLUG}/status"), "", "").await.body.contains("Blue Mugs"));
    // Who saw the page while it was open is led on to the shop.
    let known = site.browse(&format!("/checkout/{PAYMENT}?t={token}")).await.body;
    assert!(known.contains("https://shop.example/ok"));
    assert!(site.browse(&format!("/for/{SLUG}")).await.body.contains("https://shop.example/ok"));
}

#[tokio::test]
async fn the_live_status_is_polled_or_streamed() {
    let site = Site::open().await;
    for base in [format!("/for/{SLUG}"), format!("/checkout/{PAYMENT}")] {
        let live = site.send("GET", &format!("{base}/status"), "", "").await;
        let body = live.json();
        assert_eq!(
            (&body["status"], &body["phase"], &body["id"]),
            (&json!("pending"), &json!("waiting"), &json!(PAYMENT))
        );
        assert_eq!(live.header("cache-control"), Some("no-store"));
        let stream = site.send("GET", &format!("{base}/events"), "accept: text/event-stream\r\n", "").await;
        assert_eq!(stream.header("content-type"), Some("text/event-stream"));
        assert!(
            stream.body.contains("event:status") && stream.body.contains("id:1") && stream.body.contains("retry:3000")
        );
    }
    assert_eq!(site.send("GET", "/for/unknown/status", "", "").await.error().0, 404);
}

#[tokio::test]
async fn a_customer_cancels_by_the_link_and_by_id_only_with_the_pages_token() {
    let site = Site::open().await;
    let by_id = format!("/checkout/{PAYMENT}/cancel");
    let form = "content-type: application/x-www-form-urlencoded\r\n";
    for body in ["", "token=", "token=00000000000000000000000000000000"] {
        assert_eq!(site.send("POST", &by_id, form, body).await.error().1, "invalid_form_token", "{body}");
    }
    let page = site.browse(&format!("/checkout/{PAYMENT}")).await.body;
    let token = page.split("name=\"token\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a token");
    let browser = format!("{form}accept: text/html\r\n");
    let answer = site.send("POST", &by_id, &browser, &format!("token={token}")).await;
    assert_eq!((answer.status, answer.header("location")), (303, Some(&*format!("/checkout/{PAYMENT}?t={token}"))));

    let by_slug = format!("/for/{SLUG}/cancel");
    let answer = site.send("POST", &by_slug, "accept: application/json\r\n", "").await;
    assert_eq!((answer.status, answer.json()["status"].clone()), (200, json!("user_cancelled")));
    let answer = site.send("POST", &by_slug, &browser, "").await;
    assert_eq!((answer.status, answer.header("location")), (303, Some(&*format!("/for/{SLUG}"))));

    site.fake.set(|payment| payment.status = v1::PaymentStatus::Completed.into());
    assert_eq!(site.send("POST", &by_slug, "", "").await.error(), (409, "payment_not_pending".to_owned(), Vec::new()));
    let page = site.send("POST", &by_slug, &browser, "").await;
    assert_eq!((page.status, page.body.contains("can no longer be cancelled")), (409, true));
}
