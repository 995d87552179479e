//! The checkout in a browser: wallets, cancellation, redirects, accessibility.

use serde_json::{Value, json};

use super::chrome::Tab;
use crate::harness::{Dev, Opened, Shop, shared};

super::journeys!(
    a_payment_in_keychain_completes_and_redirects_to_the_shop,
    closing_keychain_sends_nothing_and_allows_a_retry,
    other_keychain_errors_warn_against_paying_again,
    a_wallet_that_never_responds_leaves_the_other_ways_open,
    opening_a_wallet_hides_the_cancellation_and_is_reported,
    no_wallet_opens_for_a_payment_that_is_being_cancelled,
    returning_from_a_wallet_shows_the_receipt,
    a_late_keychain_extension_is_detected,
    without_keychain_its_button_stays_hidden,
    a_collected_fee_is_signed_in_keychain_as_two_transfers,
    a_partial_payment_shows_a_new_code_for_the_remaining_amount,
    without_event_streams_the_page_polls,
    without_scripts_a_customer_pays_and_sees_it,
    an_open_page_shows_the_expiry,
    the_countdown_covers_the_whole_lifetime_and_announces_nothing,
    times_are_shown_in_the_time_zone_and_language_of_the_visitor,
    a_wallet_link_that_opens_nothing_is_explained,
    a_lost_connection_is_shown_and_the_page_catches_up,
    a_customer_can_cancel_and_stop_the_redirect,
    the_checkout_is_usable_with_the_keyboard,
    merchant_texts_are_never_executed,
    long_texts_emoji_and_mixed_directions_fit_every_width,
    nothing_blocks_the_first_paint,
    the_page_keeps_its_budget_on_a_slow_network,
    the_page_cannot_be_framed,
);

/// Opens a payment with a redirect to a page of this machine.
fn order(shop: &Shop) -> Opened {
    let back = |how: &str| format!("{}/livez?{how}", shop.api.base);
    shop.open_with(&json!({
        "amount": "1500", "currency": "HBD", "description": "A blue mug",
        "redirectUrl": back("thanks"), "cancelUrl": back("basket"),
    }))
}

fn address(shop: &Shop, payment: &Opened) -> String {
    format!("{}/for/{}", shop.api.base, payment.slug)
}

/// Signs and broadcasts a request to Keychain as the extension does, and returns its response.
fn sign(dev: &Dev, request: &Value) -> Value {
    let text = |member: &str| request[member].as_str().unwrap_or_default();
    let transfers: Vec<(String, String, String)> = match text("type") {
        "transfer" => {
            vec![(text("to").into(), format!("{} {}", text("amount"), text("currency")), text("memo").into())]
        }
        _ => request["operations"]
            .as_array()
            .expect("operations")
            .iter()
            .map(|operation| {
                let part = |member: &str| operation[1][member].as_str().expect("a text").to_owned();
                assert_eq!((&operation[0], part("from")), (&json!("transfer"), text("account").to_owned()));
                (part("to"), part("amount"), part("memo"))
            })
            .collect(),
    };
    let transfers: Vec<(&str, &str, &str)> =
        transfers.iter().map(|(a, b, c)| (a.as_str(), b.as_str(), c.as_str())).collect();
    let tx_id = dev.ledger.try_transfers(&dev.demo_account("alice"), &transfers).expect("the node takes it");
    json!({ "success": true, "error": null, "result": { "id": tx_id, "tx_id": tx_id, "confirmed": true }, "message": "sent" })
}

async fn a_payment_in_keychain_completes_and_redirects_to_the_shop() {
    let (dev, shop) = (shared(), shared().shop());
    let payment = order(&shop);
    let tab = Tab::open().await;
    tab.install_keychain(0).await;
    tab.goto(&address(&shop, &payment)).await;
    tab.shows("Waiting for your payment").await;
    tab.click("#keychain-pay").await;
    let builder = tab.asked().await;
    assert_eq!((&builder["to"], &builder["amount"]), (&json!(shop.account.name), &json!("1.500")));
    assert_eq!((&builder["memo"], &builder["currency"]), (&json!(payment.memo), &json!("HBD")));
    assert_eq!((&builder["account"], &builder["enforce"]), (&Value::Null, &json!(false)));
    tab.shows("Please confirm in Keychain.").await;
    assert!(tab.eval::<bool>("document.getElementById('keychain-pay').disabled").await, "one request at a time");
    tab.response(&builder, &sign(dev, &builder)).await;
    tab.shows("Paid").await;
    tab.shows("You will be redirected to 127.0.0.1 in 5 seconds.").await;
    tab.until("an announcement", "document.getElementById('live').textContent.startsWith('Paid.')").await;
    let record = shop.until_status(&payment.id, "completed");
    let tx = record["internalId"].as_str().expect("its transaction");
    assert!(tab.text().await.contains(tx) && tab.eval::<String>("document.title").await.starts_with("Paid"));
    tab.is_clean();
    tab.until("the way back", "location.search === '?thanks'").await;
}

async fn closing_keychain_sends_nothing_and_allows_a_retry() {
    let shop = shared().shop();
    let payment = order(&shop);
    let tab = Tab::open().await;
    tab.install_keychain(0).await;
    tab.goto(&address(&shop, &payment)).await;
    for error in ["user_cancel", "ignored", "incomplete"] {
        tab.click("#keychain-pay").await;
        let request = tab.asked().await;
        assert!(tab.eval::<bool>("document.getElementById('cancel-box').hidden").await, "a wallet is open");
        tab.response(&request, &json!({ "success": false, "error": error, "message": "Not <b>sent</b>" })).await;
        tab.until("the words", "document.getElementById('answer').textContent.startsWith('Nothing was sent.')").await;
        assert!(!tab.eval::<bool>("document.getElementById('keychain-pay').disabled").await);
        assert!(!tab.eval::<bool>("document.getElementById('cancel-box').hidden").await);
        tab.eval::<bool>("document.getElementById('answer').textContent = '', true").await;
    }
    assert_eq!(shop.payment(&payment.id)["status"], "pending");
    assert!(!tab.is_asked());
    tab.is_clean();
}

async fn other_keychain_errors_warn_against_paying_again() {
    let shop = shared().shop();
    for error in [json!({}), json!("broadcast_error"), json!("timeout"), Value::Null, json!("user_cancelled")] {
        let payment = order(&shop);
        let tab = Tab::open().await;
        tab.install_keychain(0).await;
        tab.goto(&address(&shop, &payment)).await;
        tab.click("#keychain-pay").await;
        let request = tab.asked().await;
        tab.response(&request, &json!({ "success": false, "error": error, "message": "Failed to <b>fetch</b>" })).await;
        tab.shows("We are checking the ledger. Please do not pay again. Keychain reports: Failed to <b>fetch</b>")
            .await;
        assert!(!tab.text().await.contains("Nothing was sent"), "{error}");
        assert!(tab.eval::<bool>("document.getElementById('keychain-pay').disabled").await, "{error}");
        assert!(tab.eval::<bool>("document.getElementById('ways').hidden").await, "{error}");
        assert!(tab.eval::<bool>("document.getElementById('cancel-box').hidden").await, "{error}");
        if error == json!("timeout") {
            tab.look("pay-not-confirmed").await;
            // A node had accepted it despite the error.
            shared().ledger.transfer(&shared().demo_account("bob"), &shop.account.name, "1.500 HBD", &payment.memo);
            tab.shows("Your payment is final.").await;
        }
        tab.is_clean();
    }
}

async fn a_wallet_that_never_responds_leaves_the_other_ways_open() {
    let (dev, shop) = (shared(), shared().shop());
    let payment = order(&shop);
    let tab = Tab::open().await;
    tab.install_keychain(0).await;
    let url = address(&shop, &payment);
    tab.goto(&url).await;
    tab.click("#keychain-pay").await;
    tab.asked().await;
    tab.shows("Please confirm in Keychain.").await;
    let others =
        "['open-wallet', 'hivesigner', 'manual', 'qr'].every(id => document.getElementById(id).checkVisibility())";
    assert!(tab.eval::<bool>(others).await, "another device can pay");
    assert!(tab.eval::<bool>("document.getElementById('cancel-box').hidden").await, "the wallet may still send it");
    // The customer reloads the page and tries again, then pays from another device.
    tab.goto(&url).await;
    tab.click("#keychain-pay").await;
    assert_eq!(tab.asked().await["memo"], json!(payment.memo));
    dev.ledger.transfer(&dev.demo_account("bob"), &shop.account.name, "1.500 HBD", &payment.memo);
    tab.shows("Your payment is final.").await;
    assert!(!tab.is_asked());
    tab.is_clean();
}

async fn opening_a_wallet_hides_the_cancellation_and_is_reported() {
    let shop = shared().shop();
    let payment = order(&shop);
    let tab = Tab::open().await;
    tab.install_keychain(0).await;
    let url = address(&shop, &payment);
    tab.goto(&url).await;
    assert!(!tab.eval::<bool>("document.getElementById('cancel-box').hidden").await);
    tab.click("#keychain-pay").await;
    tab.asked().await;
    // The report is durable before the wallet opens.
    assert!(shop.payment(&payment.id)["walletOpenedAt"].is_string());
    tab.goto(&url).await;
    tab.shows("Choose how to pay").await;
    assert!(tab.eval::<bool>("document.getElementById('cancel-box') === null").await, "another page knows it, too");
    let asked = shop.cancel(&payment.id).ok(200);
    let at = |member: &str| engine::time::Timestamp::parse(asked[member].as_str().unwrap()).unwrap();
    assert_eq!(at("cutoff").since(at("cancelRequestedAt")), std::time::Duration::from_secs(5), "20 blocks");
    tab.is_clean();
}

async fn no_wallet_opens_for_a_payment_that_is_being_cancelled() {
    let dev = Dev::start();
    let shop = dev.shop();
    let payment = order(&shop);
    let tab = Tab::open().await;
    tab.without_streams().await;
    tab.install_keychain(0).await;
    tab.goto(&address(&shop, &payment)).await;
    dev.ledger.hold_irreversibility(true);
    // The page does not know of the cancellation when the customer clicks.
    shop.cancel(&payment.id).ok(200);
    tab.eval::<bool>("document.getElementById('keychain-pay')?.click(), true").await;
    tab.shows("Cancelling…").await;
    assert!(!tab.is_asked(), "no wallet was opened");
    tab.forgive();
}

async fn returning_from_a_wallet_shows_the_receipt() {
    let (dev, shop) = (shared(), shared().shop());
    let payment = order(&shop);
    let tab = Tab::open().await;
    tab.goto(&address(&shop, &payment)).await;
    let link: String = tab.eval("document.getElementById('hivesigner').href").await;
    assert!(!link.contains(&payment.slug) && link.contains(&payment.id), "no secret for a third party: {link}");
    let tx = dev.ledger.transfer(&dev.demo_account("bob"), &shop.account.name, "1.500 HBD", &payment.memo);
    shop.until_status(&payment.id, "completed");
    let back = format!("{}/checkout/{}?tx=", shop.api.base, payment.id);
    tab.goto(&format!("{back}{tx}")).await;
    tab.shows("Receipt").await;
    tab.until("the link to the shop", "document.getElementById('onward') !== null").await;
    tokio::time::sleep(std::time::Duration::from_millis(5_500)).await;
    assert!(tab.url().await.contains("/for/"), "a page opened after the final state does not redirect");
    tab.is_clean();
    let third_party = Tab::open().await;
    third_party.goto(&format!("{back}{tx}")).await;
    third_party.shows("Paid").await;
    assert!(!third_party.text().await.contains("Receipt"));
    third_party.is_clean();
}

async fn a_late_keychain_extension_is_detected() {
    let shop = shared().shop();
    let payment = order(&shop);
    let tab = Tab::open().await;
    tab.install_keychain(700).await;
    tab.goto(&address(&shop, &payment)).await;
    assert!(tab.eval::<bool>("isHiddenAtFirst").await);
    tab.click("#keychain-pay").await;
    assert_eq!(tab.asked().await["memo"], json!(payment.memo));
    tab.is_clean();
}

async fn without_keychain_its_button_stays_hidden() {
    let shop = shared().shop();
    let payment = order(&shop);
    let tab = Tab::open().await;
    tab.goto(&address(&shop, &payment)).await;
    tab.shows("Hive Keychain was not found in this browser.").await;
    assert!(tab.eval::<bool>("document.getElementById('keychain').hidden").await);
    let links: Vec<String> = tab
        .eval("['qr','open-wallet'].map(n => document.querySelector('.' + n + ', #' + n).getAttribute('href'))")
        .await;
    assert!(links.iter().all(|link| link.starts_with("hive://sign/op/")) && links[0] == links[1], "{links:?}");
    tab.is_clean();
}

async fn a_collected_fee_is_signed_in_keychain_as_two_transfers() {
    let dev = Dev::with(&["--set=fees.mode=split", "--set=fees.account=hivetill.fees"]);
    let shop = dev.shop();
    let payment = order(&shop);
    let tab = Tab::open().await;
    tab.install_keychain(0).await;
    tab.goto(&address(&shop, &payment)).await;
    tab.click("#keychain-pay").await;
    tab.shows("Please enter your account first.").await;
    tab.fill("#payer", " @Alice ").await;
    tab.look("pay-split").await;
    tab.click("#keychain-pay").await;
    let request = tab.asked().await;
    assert_eq!((&request["account"], &request["key"]), (&json!("alice"), &json!("Active")));
    let sent: Vec<(&Value, &Value)> =
        request["operations"].as_array().expect("two").iter().map(|op| (&op[1]["to"], &op[1]["amount"])).collect();
    let (shop_account, net, fees, fee) =
        (json!(shop.account.name), json!("1.478 HBD"), json!("hivetill.fees"), json!("0.022 HBD"));
    assert_eq!(sent, [(&shop_account, &net), (&fees, &fee)]);
    tab.response(&request, &sign(&dev, &request)).await;
    tab.shows("Your payment is final.").await;
    tab.is_clean();
}

async fn a_partial_payment_shows_a_new_code_for_the_remaining_amount() {
    let (dev, shop) = (shared(), shared().shop());
    let payment = order(&shop);
    let bob = dev.demo_account("bob");
    let tab = Tab::open().await;
    tab.goto(&address(&shop, &payment)).await;
    let code = "document.querySelector('.qr path').getAttribute('d')";
    let before: String = tab.eval(code).await;
    dev.ledger.transfer(&bob, &shop.account.name, "0.500 HBD", &payment.memo);
    tab.shows("0.500 HBD of 1.500 HBD received. Please send 1.000 HBD more.").await;
    assert_ne!(tab.eval::<String>(code).await, before);
    let link: String = tab.eval("decodeURIComponent(document.getElementById('hivesigner').href)").await;
    assert!(link.contains("amount=1.000 HBD"), "{link}");
    assert_eq!(tab.eval::<String>("document.getElementById('pay-amount').textContent").await, "1.000 HBD");
    dev.ledger.transfer(&bob, &shop.account.name, "1.000 HBD", &payment.memo);
    tab.shows("Your payment is final.").await;
    tab.is_clean();
}

async fn without_event_streams_the_page_polls() {
    let (dev, shop) = (shared(), shared().shop());
    let payment = order(&shop);
    let tab = Tab::open().await;
    tab.without_streams().await;
    tab.goto(&address(&shop, &payment)).await;
    dev.ledger.transfer(&dev.demo_account("bob"), &shop.account.name, "1.500 HBD", &payment.memo);
    tab.shows("Your payment is final.").await;
    tab.is_clean();
}

async fn without_scripts_a_customer_pays_and_sees_it() {
    let (dev, shop) = (shared(), shared().shop());
    let payment = order(&shop);
    let tab = Tab::open().await;
    tab.without_scripts().await;
    let url = address(&shop, &payment);
    tab.goto(&url).await;
    tab.shows("Choose how to pay").await;
    tab.click("#manual summary").await;
    tab.shows(&payment.memo).await;
    assert!(!tab.text().await.contains("Hive Keychain"), "no button that does nothing");
    tab.look_without_checker("pay-without-scripts").await;
    dev.ledger.transfer(&dev.demo_account("bob"), &shop.account.name, "1.500 HBD", &payment.memo);
    // The page refreshes automatically.
    tab.shows("Your payment is final.").await;
    tab.shows("Return to").await;
    assert!(!tab.eval::<String>("document.head.innerHTML").await.contains("refresh"), "nothing happens by itself");
    let times: Vec<String> =
        tab.eval("[...document.querySelectorAll('main time')].map(time => time.textContent)").await;
    assert!(!times.is_empty() && times.iter().all(|time| time.ends_with(" UTC")), "{times:?}");
    tab.is_clean();
}

async fn an_open_page_shows_the_expiry() {
    let dev = Dev::start();
    let shop = dev.shop();
    let payment = shop.open_with(&json!({
        "amount": "1500", "currency": "HBD", "description": "A blue mug", "expiresInSeconds": 240,
    }));
    let tab = Tab::open().await;
    tab.with_a_clock_to_push().await;
    tab.goto(&address(&shop, &payment)).await;
    tab.until(
        "the countdown of the last minutes",
        "/^[0-3]:[0-5][0-9] left$/.test(document.getElementById('countdown').textContent)",
    )
    .await;
    tab.look("pay-countdown").await;
    // Time passes for the ledger, which expires the payment, and for the page, which must notice by itself.
    dev.ledger.hold_irreversibility(true);
    dev.ledger.advance(241);
    tab.eval::<bool>("pushed = 241_000, true").await;
    tab.shows("Please do not pay now.").await;
    assert!(!tab.text().await.contains("Choose how to pay"), "nothing is left to pay with");
    tab.look("checking").await;
    dev.ledger.hold_irreversibility(false);
    tab.shows("This payment has expired.").await;
    assert_eq!(shop.payment(&payment.id)["status"], "system_cancelled");
    tab.is_clean();
}

async fn the_countdown_covers_the_whole_lifetime_and_announces_nothing() {
    let shop = shared().shop();
    let payment = shop.open_with(&json!({
        "amount": "1500", "currency": "HBD", "description": "A blue mug", "expiresInSeconds": 7_200,
    }));
    let tab = Tab::open().await;
    tab.with_a_clock_to_push().await;
    tab.goto(&address(&shop, &payment)).await;
    let shows = |pattern: &str, soon: bool| {
        format!(
            "(box => {pattern}.test(box.textContent) && box.classList.contains('soon') === {soon})(document.getElementById('countdown'))"
        )
    };
    tab.until("hours", &shows("/^1:5[0-9]:[0-5][0-9] left$/", false)).await;
    // The count ends 15 s early: five minutes are left to show when 315 s are left to pay.
    tab.eval::<bool>("pushed = 6_600_000, true").await;
    tab.until("minutes", &shows("/^9:[0-5][0-9] left$/", false)).await;
    tab.eval::<bool>("pushed = 7_000_000, true").await;
    tab.until("the last minutes", &shows("/^[0-3]:[0-5][0-9] left$/", true)).await;
    assert_eq!(tab.eval::<String>("document.getElementById('live').textContent").await, "", "no announcement");
    tab.is_clean();
}

async fn times_are_shown_in_the_time_zone_and_language_of_the_visitor() {
    let shop = shared().shop();
    let payment = order(&shop);
    let tab = Tab::open().await;
    tab.in_time_zone("Asia/Tokyo").await;
    tab.goto(&format!("{}?lang=de", address(&shop, &payment))).await;
    let time = "document.querySelector('.terms time')";
    let local = format!(
        "{time}.textContent === new Intl.DateTimeFormat('de', {{ dateStyle: 'medium', timeStyle: 'short', timeZone: 'Asia/Tokyo' }}).format(new Date({time}.dateTime))"
    );
    tab.until("the local time", &local).await;
    assert!(tab.eval::<String>(&format!("{time}.title")).await.ends_with(" UTC"));
    tab.shows("1,500 HBD").await;
    tab.shows("ca. 1,50\u{a0}$").await;
    // What a customer copies into a wallet is written as the ledger writes it.
    assert_eq!(tab.eval::<String>("document.getElementById('pay-amount').textContent").await, "1.500 HBD");
    tab.is_clean();
}

async fn a_wallet_link_that_opens_nothing_is_explained() {
    let shop = shared().shop();
    let payment = order(&shop);
    let tab = Tab::open().await;
    tab.size(320, false).await;
    tab.goto(&address(&shop, &payment)).await;
    assert!(!tab.eval::<bool>("document.getElementById('scan').open").await, "a phone shows its own wallet first");
    // Chromium has no program for the scheme, and this one does not even ask.
    tab.eval::<bool>(
        "document.getElementById('open-wallet').addEventListener('click', event => event.preventDefault()), true",
    )
    .await;
    tab.click("#open-wallet").await;
    tab.shows("No wallet opened. Scan the code with another device, or choose another way to pay.").await;
    assert!(tab.eval::<bool>("document.getElementById('scan').open").await);
    assert!(shop.payment(&payment.id)["walletOpenedAt"].is_string());
    tab.is_clean();
}

async fn a_lost_connection_is_shown_and_the_page_catches_up() {
    let (dev, shop) = (shared(), shared().shop());
    let payment = order(&shop);
    let tab = Tab::open().await;
    tab.goto(&address(&shop, &payment)).await;
    tab.shows("Choose how to pay").await;
    tab.click("#manual summary").await;
    tab.offline(true).await;
    tab.shows("Connection lost. Reconnecting…").await;
    dev.ledger.transfer(&dev.demo_account("bob"), &shop.account.name, "0.500 HBD", &payment.memo);
    shop.until(&payment.id, "part-paid", |record| record["amountPaid"] == "500");
    tab.offline(false).await;
    tab.shows("0.500 HBD of 1.500 HBD received. Please send 1.000 HBD more.").await;
    assert!(!tab.text().await.contains("Connection lost"));
    assert!(tab.eval::<bool>("document.getElementById('manual').open").await, "what was opened stays open");
    tab.forgive();
}

async fn a_customer_can_cancel_and_stop_the_redirect() {
    let shop = shared().shop();
    let payment = order(&shop);
    let tab = Tab::open().await;
    tab.goto(&format!("{}?lang=de", address(&shop, &payment))).await;
    tab.click("#cancel").await;
    tab.shows("Brechen Sie nicht ab, wenn Sie sie schon gesendet haben.").await;
    tab.look("cancel-confirmation").await;
    tab.click("#cancel-yes").await;
    tab.shows("Wird abgebrochen…").await;
    tab.shows("Diese Zahlung wurde abgebrochen.").await;
    tab.shows("Sie werden in 5 Sekunden zu 127.0.0.1 weitergeleitet.").await;
    tab.click("#onward-stay").await;
    tab.until("no notice", "document.getElementById('onward-box').hidden").await;
    assert_eq!(tab.eval::<String>("document.activeElement.id").await, "onward", "the focus is not lost");
    tokio::time::sleep(std::time::Duration::from_millis(5_500)).await;
    assert!(tab.url().await.contains("/for/"), "it stays");
    tab.click("#onward").await;
    tab.until("the basket", "location.search === '?basket'").await;
    assert_eq!(shop.payment(&payment.id)["status"], "user_cancelled");
    tab.is_clean();
}

async fn the_checkout_is_usable_with_the_keyboard() {
    let shop = shared().shop();
    let payment = order(&shop);
    let tab = Tab::open().await;
    tab.install_keychain(0).await;
    tab.goto(&address(&shop, &payment)).await;
    let focused = "document.activeElement.id || document.activeElement.tagName";
    let reach = async |id: &str| {
        for _ in 0..20 {
            tab.press("Tab").await;
            let outline: String = tab.eval("getComputedStyle(document.activeElement).outlineStyle").await;
            assert_ne!(outline, "none", "the focus can be seen");
            if tab.eval::<String>(focused).await == id {
                return;
            }
        }
        panic!("{id} cannot be reached");
    };
    tab.shows("Choose how to pay").await;
    tab.until("Keychain", "!document.getElementById('keychain').hidden").await;
    reach("keychain-pay").await;
    tab.press("Enter").await;
    let request = tab.asked().await;
    tab.response(&request, &sign(shared(), &request)).await;
    tab.shows("Your payment is final.").await;
    tab.is_clean();
}

async fn merchant_texts_are_never_executed() {
    let dev = shared();
    let shop = dev.shop();
    let evil = "\"><script>window.pwned=1</script><img src=x onerror=window.pwned=1>";
    shop.update(&json!({ "name": format!("Evil {evil}"), "supportUrl": "https://127.0.0.1:9/?\"><script>window.pwned=1</script>" })).ok(200);
    let payment = shop.open_with(&json!({
        "amount": "1500", "currency": "HBD", "description": format!("Mug {evil}"), "metadata": { "note": evil },
        "redirectUrl": "https://127.0.0.1:9/?\"><script>window.pwned=1</script>",
    }));
    let tab = Tab::open().await;
    tab.goto(&address(&shop, &payment)).await;
    tab.shows("<script>window.pwned=1</script>").await;
    assert!(tab.eval::<bool>("window.pwned === undefined && document.images.length === 0").await);
    dev.ledger.transfer(&dev.demo_account("bob"), &shop.account.name, "1.500 HBD", &payment.memo);
    tab.shows("Your payment is final.").await;
    assert!(tab.eval::<bool>("window.pwned === undefined && document.images.length === 0").await);
    tab.is_clean();
}

async fn long_texts_emoji_and_mixed_directions_fit_every_width() {
    let dev = shared();
    let shop = dev.shop();
    let family = "👨\u{200d}👩\u{200d}👧\u{200d}👦";
    shop.update(&json!({ "name": format!("متجر {family} Mug-Shop") })).ok(200);
    for (name, description) in
        [("unbroken", "m".repeat(255)), ("mixed", format!("كوب <b>أزرق</b> {family} 1.500 HBD (מאג)"))]
    {
        let payment = shop.open_with(&json!({ "amount": "1500", "currency": "HBD", "description": description }));
        let tab = Tab::open().await;
        tab.install_keychain(0).await;
        tab.goto(&address(&shop, &payment)).await;
        tab.shows(&description).await;
        tab.shows("Pay with Hive Keychain").await;
        tab.look(&format!("pay-{name}")).await;
        dev.ledger.transfer(&dev.demo_account("bob"), &shop.account.name, "1.500 HBD", &payment.memo);
        tab.shows("Your payment is final.").await;
        tab.look(&format!("completed-{name}")).await;
        tab.is_clean();
    }
}

async fn nothing_blocks_the_first_paint() {
    let shop = shared().shop();
    let payment = order(&shop);
    let tab = Tab::open().await;
    tab.goto(&address(&shop, &payment)).await;
    tab.until("the first paint", "performance.getEntriesByName('first-contentful-paint').length").await;
    let blocking =
        "performance.getEntriesByType('resource').filter(r => r.renderBlockingStatus === 'blocking').map(r => r.name)";
    assert_eq!(tab.eval::<Vec<String>>(blocking).await, [""; 0]);
    tab.is_clean();
}

async fn the_page_keeps_its_budget_on_a_slow_network() {
    let shop = shared().shop();
    let payment = order(&shop);
    let tab = Tab::open().await;
    tab.slow_network().await;
    tab.install_keychain(0).await;
    tab.goto(&address(&shop, &payment)).await;
    tab.click("#keychain-pay").await;
    assert_eq!(tab.asked().await["memo"], json!(payment.memo));
    // What a customer waits for before the click works, in bytes and not in seconds, which depend on the machine:
    // the page, and one script that no other request delays.
    let loaded = "performance.getEntriesByType('resource').filter(r => r.initiatorType === 'script').map(r => new URL(r.name).pathname)";
    assert_eq!(tab.eval::<Vec<String>>(loaded).await, ["/assets/checkout.js"]);
    let bytes: u32 =
        tab.eval("performance.getEntries().reduce((sum, entry) => sum + (entry.transferSize || 0), 0)").await;
    assert!((5_000..=60_000).contains(&bytes), "{bytes} bytes");
    let compressed = "performance.getEntries().filter(e => e.entryType === 'navigation' || e.initiatorType === 'script').filter(e => e.encodedBodySize < e.decodedBodySize).map(e => e.entryType)";
    assert_eq!(tab.eval::<Vec<String>>(compressed).await, ["navigation", "resource"]);
    // In ms: one round trip each to connect, for the page and for the script, then 50 bytes each.
    assert!(3 * 400 + bytes / 50 <= 4_000, "{bytes} bytes");
    tab.is_clean();
}

async fn the_page_cannot_be_framed() {
    let shop = shared().shop();
    let payment = order(&shop);
    let tab = Tab::open().await;
    tab.goto(&format!("{}/livez", shop.api.base)).await;
    let address = address(&shop, &payment);
    let frame = format!(
        "new Promise(done => {{ const f = document.createElement('iframe'); f.onload = () => done(f.contentDocument === null); f.src = {}; document.body.append(f) }})",
        json!(address)
    );
    assert!(tab.eval::<bool>(&frame).await, "the browser shows an error in its place");
}
