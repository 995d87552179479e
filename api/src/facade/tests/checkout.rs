//! The customer's page: who sees what, and who may cancel.

use proto::v1;
use serde_json::json;

use super::Site;
use crate::facade::fake_engine::{PAYMENT, SLUG};

#[tokio::test]
async fn the_page_is_for_browsers_and_discloses_nothing() {
    let site = Site::open().await;
    let slug = format!("/for/{SLUG}");
    for path in [slug.clone(), format!("/checkout/{PAYMENT}")] {
        // The public id shows an open session itself once money was seen.
        site.fake.set(|payment| payment.transfers = vec![v1::Transfer::default(); usize::from(path != slug)]);
        let page = site.browse(&path).await;
        assert_eq!(page.status, 200, "{path}");
        let payer = ["hive://sign/op/", "hivesigner.com", "<noscript>", PAYMENT];
        for needed in ["Blue Mugs", "Two mugs", "10.500", "blue.mugs"].into_iter().chain(payer) {
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
    let page = site.browse(&format!("/checkout/{PAYMENT}")).await.body;
    for hidden in [SLUG, "token", "<form", "/cancel"] {
        assert!(!page.contains(hidden), "the public id leads to no {hidden}");
    }
    for path in [&slug, &format!("/checkout/{PAYMENT}")] {
        let page = site.browse(path).await.body;
        let back = page.split("redirect_uri=").nth(1).and_then(|rest| rest.split('"').next()).expect("a way back");
        assert!(back.ends_with(&format!("checkout%2F{PAYMENT}%3Ftx%3D%7B%7Bid%7D%7D")), "no secret: {back}");
    }

    assert_eq!(site.send("GET", "/for/unknown", "", "").await.error().0, 404);
    let missing = site.browse("/for/unknown").await;
    assert_eq!((missing.status, missing.body.contains("Payment not found")), (404, true));
    assert_eq!(site.browse("/checkout/pay_x").await.status, 404);
    for (file, kind) in [("checkout.js", "text/javascript"), ("checkout.css", "text/css")] {
        assert!(site.get(&format!("/assets/{file}")).await.header("content-type").is_some_and(|t| t.starts_with(kind)));
    }
}

#[tokio::test]
async fn while_nothing_was_seen_the_id_moves_a_browser_to_the_slug() {
    let site = Site::open().await;
    let moved = site.browse(&format!("/checkout/{PAYMENT}?lang=de&utm_source=x")).await;
    assert_eq!((moved.status, moved.header("location")), (303, Some(&*format!("/for/{SLUG}?lang=de"))));
    let page = site.browse(&format!("/for/{SLUG}")).await;
    let cookie = page.header("set-cookie").expect("a cookie");
    assert!(cookie.contains(&format!("Path=/checkout/{PAYMENT};")) && cookie.contains("HttpOnly; SameSite=Lax"));
    let pair = cookie.split(';').next().expect("its value").to_owned();
    site.fake.set(|payment| {
        payment.status = v1::PaymentStatus::Completed.into();
        payment.transfers = vec![v1::Transfer::default()];
    });
    // A wallet leads back to the id: who saw the page by its slug is known, and nobody else.
    let back = format!("/checkout/{PAYMENT}?tx=0123456789012345678901234567890123456789");
    assert_eq!(site.browse(&back).await.status, 200);
    let known = site.send("GET", &back, &format!("accept: text/html\r\ncookie: {pair}\r\n"), "").await;
    let slug = format!("/for/{SLUG}?tx=0123456789012345678901234567890123456789");
    assert_eq!((known.status, known.header("location")), (303, Some(&*slug)));
    let other = format!("accept: text/html\r\ncookie: {}\r\n", pair.replace('=', "=00"));
    assert_eq!(site.send("GET", &back, &other, "").await.status, 200);
}

#[tokio::test]
async fn pages_of_the_main_network_have_no_test_banner() {
    let site = Site::open().await;
    site.fake.set(|payment| payment.livemode = true);
    for path in [format!("/for/{SLUG}"), "/for/nothing".to_owned()] {
        let page = site.browse(&path).await.body;
        assert!(page.contains("</main>") && !page.contains("id=\"test-mode\""), "{path}: {page}");
    }
    site.fake.set(|payment| payment.livemode = false);
    assert!(site.browse(&format!("/for/{SLUG}")).await.body.contains("id=\"test-mode\""));
}

#[tokio::test]
async fn only_a_transaction_id_shows_that_a_transfer_was_sent() {
    let site = Site::open().await;
    let page = async |tx: &str| site.browse(&format!("/for/{SLUG}?tx={tx}")).await.body;
    assert!(page("0123456789abcdef0123456789abcdef01234567").await.contains("role=\"status\">Sent."));
    for bad in ["", "%7B%7Bid%7D%7D", "{{id}}", "1", "0123456789abcdef0123456789abcdef0123456", "%3Cb%3E"] {
        assert!(!page(bad).await.contains("role=\"status\">Sent."), "{bad}");
    }
}

#[tokio::test]
async fn a_page_opened_after_the_end_does_not_redirect() {
    let site = Site::open().await;
    site.fake.set(|payment| payment.status = v1::PaymentStatus::Completed.into());
    let page = site.browse(&format!("/for/{SLUG}")).await.body;
    assert!(page.contains("id=\"onward\" href=\"https://shop.example/ok\"") && !page.contains("http-equiv"));
    assert!(page.contains("You will be redirected to shop.example in 5 seconds."), "for the script that saw it end");
}

#[tokio::test]
async fn a_page_that_is_being_cancelled_takes_nothing_and_offers_the_way_back_after_20_seconds() {
    let site = Site::open().await;
    let show_cancelling_at = |now_ms: u64| {
        site.fake.set(|payment| {
            payment.cancel_url = Some("https://shop.example/basket".to_owned());
            payment.read_at = Some(proto::time::from_millis(now_ms));
            let requested_at = Some(proto::time::from_millis(1_000_000));
            payment.cancellation = Some(v1::Cancellation { requested_at, ..v1::Cancellation::default() });
        });
    };
    show_cancelling_at(1_005_000);
    let page = site.browse(&format!("/for/{SLUG}")).await.body;
    assert!(page.contains("Cancelling…") && page.contains("hidden data-after-ms=\"15000\""), "{page}");
    for gone in ["hive://", "keychain-pay", "/cancel\""] {
        assert!(!page.contains(gone), "{gone}");
    }
    show_cancelling_at(1_020_000);
    let page = site.browse(&format!("/for/{SLUG}")).await.body;
    assert!(page.contains("id=\"leave\" href=\"https://shop.example/basket\"") && !page.contains("data-after-ms"));
    let live = site.send("GET", &format!("/for/{SLUG}/status"), "", "").await.json();
    assert_eq!((&live["phase"], &live["status"]), (&json!("cancelling"), &json!("pending")));
}

#[tokio::test]
async fn a_page_whose_wallet_was_opened_offers_no_cancellation() {
    let site = Site::open().await;
    let slug = format!("/for/{SLUG}");
    assert!(site.browse(&slug).await.body.contains("id=\"cancel-yes\""));
    let is_returning = format!("{slug}?tx=0123456789abcdef0123456789abcdef01234567");
    assert!(!site.browse(&is_returning).await.body.contains("cancel-yes"));
    let reported = site.send("POST", &format!("{slug}/wallet"), "", "").await;
    assert_eq!(reported.json(), json!({ "id": PAYMENT, "status": "pending", "cancelRequested": false }));
    site.fake.set(|payment| payment.wallet_opened_at = Some(proto::time::from_millis(1)));
    assert!(!site.browse(&slug).await.body.contains("cancel-yes"));
}

#[tokio::test]
async fn the_public_id_shows_only_state_and_amount_of_a_finished_session() {
    let site = Site::open().await;
    site.fake.set(|payment| payment.status = v1::PaymentStatus::Completed.into());
    let finished = site.browse(&format!("/checkout/{PAYMENT}")).await.body;
    assert!(finished.contains("Paid") && finished.contains("10.500"));
    let exact = site.send("GET", &format!("/checkout/{PAYMENT}/status"), "", "").await.json();
    site.fake.set(|payment| {
        payment.amount_overpaid_units = 5;
        payment.amount_late_units = 7;
        payment.sequence += 2;
        payment.exceptions = vec![v1::PaymentException::Overpaid.into(), v1::PaymentException::PaidLate.into()];
    });
    let over = site.send("GET", &format!("/checkout/{PAYMENT}/status"), "", "").await.json();
    assert_eq!(over, exact, "the public id does not show that more was paid, or later");
    assert_eq!(site.browse(&format!("/checkout/{PAYMENT}")).await.body, finished);
    let live = site.send("GET", &format!("/checkout/{PAYMENT}/status"), "", "").await.body;
    let events = site.send("GET", &format!("/checkout/{PAYMENT}/events"), "", "").await.body;
    for hidden in ["Two mugs", "shop.example", "Blue Mugs", SLUG] {
        assert!(!finished.contains(hidden) && !live.contains(hidden) && !events.contains(hidden), "{hidden}");
    }
    assert!(site.send("GET", &format!("/for/{SLUG}/status"), "", "").await.body.contains("Blue Mugs"));
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
    let page = site.browse(&format!("/for/{SLUG}")).await;
    let cookie = page.header("set-cookie").expect("a cookie");
    let token = cookie.split(['=', ';']).nth(1).expect("its value");
    let browser = format!("{form}accept: text/html\r\n");
    let expected = site.send("POST", &by_id, form, &format!("token={token}")).await.json();
    assert_eq!(expected, json!({ "id": PAYMENT, "status": "user_cancelled", "cancelRequested": true }));
    let response = site.send("POST", &by_id, &browser, &format!("token={token}")).await;
    assert_eq!((response.status, response.header("location")), (303, Some(&*format!("/for/{SLUG}"))));

    let by_slug = format!("/for/{SLUG}/cancel");
    let response = site.send("POST", &by_slug, "accept: application/json\r\n", "").await;
    let expected = json!({ "id": PAYMENT, "status": "user_cancelled", "cancelRequested": true });
    assert_eq!((response.status, response.json()), (200, expected), "no more than the page's visitor may know");
    let response = site.send("POST", &by_slug, &browser, "").await;
    assert_eq!((response.status, response.header("location")), (303, Some(&*format!("/for/{SLUG}"))));

    site.fake.set(|payment| payment.status = v1::PaymentStatus::Completed.into());
    assert_eq!(site.send("POST", &by_slug, "", "").await.error(), (409, "payment_not_pending".to_owned(), Vec::new()));
    let page = site.send("POST", &by_slug, &browser, "").await;
    assert_eq!((page.status, page.body.contains("can no longer be cancelled")), (409, true));
}

#[tokio::test]
async fn an_expired_page_offers_to_start_again_where_the_engine_allows_it() {
    let site = Site::open().await;
    let slug = format!("/for/{SLUG}");
    let restart = async |accept: &str| {
        let headers = format!("accept: {accept}\r\n");
        site.send("POST", &format!("{slug}/restart?lang=de"), &headers, "").await
    };
    site.fake.set(|payment| payment.status = v1::PaymentStatus::SystemCancelled.into());
    assert!(!site.browse(&slug).await.body.contains("/restart"));
    assert_eq!(restart("application/json").await.error().1, "payment_not_restartable");
    let refused = restart("text/html").await;
    assert_eq!((refused.status, refused.body.contains("Diese Zahlung kann nicht neu begonnen werden.")), (409, true));
    site.fake.set(|payment| payment.restartable = true);
    let page = site.browse(&format!("{slug}?lang=de")).await.body;
    assert!(page.contains(&format!("action=\"{slug}/restart?lang=de\"")) && page.contains("Neu beginnen"), "{page}");
    let third_party = site.browse(&format!("/checkout/{PAYMENT}")).await.body;
    assert!(!third_party.contains("/restart"), "the public id shows state and amount only");
    let moved = restart("text/html").await;
    assert_eq!((moved.status, moved.header("location")), (303, Some(&*format!("{slug}-again?lang=de"))));
    let made = restart("application/json").await;
    assert_eq!((made.status, &made.json()["slug"]), (200, &json!(format!("{SLUG}-again"))));
    for body in ["", "token=00"] {
        let headers = "content-type: application/x-www-form-urlencoded\r\n";
        let forged = site.send("POST", &format!("/checkout/{PAYMENT}/restart"), headers, body).await;
        assert_eq!(forged.error().1, "invalid_form_token", "{body}");
    }
}
