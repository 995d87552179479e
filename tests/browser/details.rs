//! Details of the checkout in a browser: the order of the ways to pay, the copy buttons, the logo, and each note of an
//! open page.

use serde_json::json;

use super::{chrome::Tab, references};
use crate::harness::{Opened, Shop, shared};

super::journeys!(
    the_ways_to_pay_have_their_order,
    account_amount_and_memo_are_copied_to_the_clipboard,
    a_logo_that_does_not_load_shows_the_initials,
    every_note_of_an_open_page_is_accessible,
);

/// Opens the page of a new payment.
async fn open_page(shop: &Shop, tab: &Tab) -> Opened {
    let payment = shop.open_payment();
    tab.goto(&format!("{}/for/{}", shop.api.base, payment.slug)).await;
    tab.shows("Choose how to pay").await;
    payment
}

async fn the_ways_to_pay_have_their_order() {
    let shop = shared().shop();
    let visible = "['keychain-pay', 'open-wallet', 'hivesigner', 'manual', 'program'] \
                   .map(id => document.getElementById(id)).filter(way => way.checkVisibility())";
    let from_top = format!(
        "{visible}.sort((a, b) => a.getBoundingClientRect().top - b.getBoundingClientRect().top).map(way => way.id)"
    );
    for (has_keychain, width) in [(true, 1_280), (true, 375), (false, 375)] {
        let tab = Tab::open().await;
        tab.size(width, false).await;
        if has_keychain {
            tab.install_keychain(0).await;
        }
        open_page(&shop, &tab).await;
        let wanted = ["keychain-pay", "open-wallet", "hivesigner", "manual", "program"];
        let wanted = if has_keychain { &wanted[..] } else { &wanted[1..] };
        let are_shown = format!("{visible}.length === {}", wanted.len());
        tab.until("every way to pay", &are_shown).await;
        assert_eq!(tab.eval::<Vec<String>>(&from_top).await, wanted, "{width} px");
        // A callback would break Keychain's app.
        let link: String = tab.eval("document.getElementById('open-wallet').getAttribute('href')").await;
        assert!(link.starts_with("hive://sign/op/") && !link.contains('?'), "{link}");
        let code_is_beside = "document.getElementById('scan').getBoundingClientRect().top < document.getElementById('hivesigner').getBoundingClientRect().top";
        assert_eq!(tab.eval::<bool>(code_is_beside).await, width == 1_280, "{width} px");
        tab.is_clean();
    }
}

async fn account_amount_and_memo_are_copied_to_the_clipboard() {
    let shop = shared().shop();
    let tab = Tab::open().await;
    tab.with_clipboard().await;
    let payment = open_page(&shop, &tab).await;
    tab.click("#manual summary").await;
    let fields =
        [("#pay-to", shop.account.name.as_str()), ("#pay-amount", "1.500"), ("#pay-memo", payment.memo.as_str())];
    for (field, wanted) in fields {
        let button = format!("{field} + button");
        tab.click(&button).await;
        let is_copied = format!("document.querySelector({}).textContent === 'Copied'", json!(button));
        tab.until("a confirmation", &is_copied).await;
        assert_eq!(tab.eval::<String>("navigator.clipboard.readText()").await, wanted, "{field}");
    }
    tab.until(
        "the names of the buttons",
        "[...document.querySelectorAll('#manual .copy')].every(button => button.textContent === 'Copy')",
    )
    .await;
    // A browser that does not allow it selects the text.
    let refuse = "Object.defineProperty(navigator.clipboard, 'writeText', { value: () => Promise.reject(new Error('refused')) }), true";
    tab.eval::<bool>(refuse).await;
    tab.click("#pay-memo + button").await;
    let is_selected = format!("getSelection().toString() === {}", json!(payment.memo));
    tab.until("the selected memo", &is_selected).await;
    tab.is_clean();
}

async fn a_logo_that_does_not_load_shows_the_initials() {
    let shop = shared().shop();
    shop.update(&json!({ "name": "Blue mug shop", "iconUrl": "https://127.0.0.1:9/logo.png" })).ok(200);
    let tab = Tab::open().await;
    open_page(&shop, &tab).await;
    tab.until("the error", "(logo => logo.complete && logo.naturalWidth === 0)(document.querySelector('.logo img'))")
        .await;
    tab.look("pay-logo-not-loaded").await;
    let broken = tab.picture_of(".logo").await;
    let initials: String =
        tab.eval("document.querySelector('.logo img').remove(), document.querySelector('.logo').textContent").await;
    assert_eq!(initials.trim(), "BM");
    let without = tab.picture_of(".logo").await;
    let difference = references::difference(&tab, &broken, &without).await;
    // The browser's sign of a broken image differs by 5.
    assert!(difference < 1.5, "the initials look different: {difference}");
    tab.forgive();
}

async fn every_note_of_an_open_page_is_accessible() {
    let shop = shared().shop();
    let tab = Tab::open().await;
    tab.install_keychain(0).await;
    open_page(&shop, &tab).await;
    tab.click("#keychain-pay").await;
    let request = tab.asked().await;
    tab.shows("Please confirm in Keychain.").await;
    tab.look("pay-in-keychain").await;
    tab.response(&request, &json!({ "success": false, "error": "user_cancel", "message": "No" })).await;
    tab.shows("Nothing was sent.").await;
    tab.look("pay-nothing-sent").await;
    tab.is_clean();
    let tab = Tab::open().await;
    open_page(&shop, &tab).await;
    // Chromium has no program for the scheme, and this one does not even ask.
    tab.eval::<bool>(
        "document.getElementById('open-wallet').addEventListener('click', event => event.preventDefault()), true",
    )
    .await;
    tab.click("#open-wallet").await;
    tab.shows("No wallet opened.").await;
    tab.look("pay-no-wallet").await;
    tab.is_clean();
    tab.offline(true).await;
    tab.shows("Connection lost. Reconnecting…").await;
    tab.look("pay-offline").await;
    tab.offline(false).await;
    tab.until("the connection", "document.getElementById('connection').hidden").await;
    // Requests without a connection are errors of the browser.
    tab.forgive();
}
