//! The checkout page: amount, payment methods and the state of the payment, on one screen.

use askama::Template;
use engine::{
    ledger::TxId,
    money::{Currency, Money},
};
use http::StatusCode;
use proto::{
    ApiError,
    v1::{Disposition, Payment},
};
use warp::reply::Response;

use crate::facade::{
    http::{call::Call, compression::send_as_is},
    pages::{
        checkout::phase::{Phase, PhaseText, version},
        html::{self, chosen_language, language, link},
        wallets::{Qr, Wanted},
        words::{LANGUAGES, Lang, Words, fill},
    },
    record::{self, cancellation},
};

/// Seconds until the redirect to the shop.
const ONWARD_SECONDS: u32 = 5;
/// How long a page with an undecided cancellation hides the link back to the shop.
const LEAVE_AFTER_MS: u64 = 20_000;
/// Seconds between refreshes of a page without script.
const RELOAD_SECONDS: u32 = 15;

/// The visitor's display options, from the query string.
pub(crate) struct Look {
    lang: Lang,
    /// Whether the URL contains the language, so that links must keep it.
    is_chosen: bool,
    /// Whether automatic updates and redirects are disabled.
    still: bool,
    /// The transaction id with which a wallet returned; unverified.
    is_returning: bool,
}

impl Look {
    /// Parses the query string of a request.
    pub(crate) fn of(call: &Call) -> Self {
        let query = call.query();
        // Ignores anything that is not a transaction id, such as an unfilled placeholder.
        let is_returning = query.get("tx").and_then(TxId::parse).is_some();
        Self {
            lang: language(call),
            is_chosen: chosen_language(call).is_some(),
            still: query.get("still").is_some(),
            is_returning,
        }
    }

    /// Returns the language.
    pub(crate) const fn words(&self) -> Words {
        Words(self.lang)
    }
}

/// A session with the access of one visitor.
pub(crate) struct View<'a> {
    pub(crate) payment: &'a Payment,
    /// The URL of this page.
    pub(crate) url: String,
    /// The URL for wallets, which may disclose it to their operator: it contains the public id.
    pub(crate) return_url: String,
    /// The path of this page.
    pub(crate) path: String,
    pub(crate) token: Option<String>,
    /// Whether the visitor may report wallets and cancel.
    pub(crate) reports: bool,
    /// Whether everything is shown, or only state and amount.
    pub(crate) whole: bool,
    pub(crate) look: Look,
}

impl View<'_> {
    /// Returns the URL of the same page with the same options.
    pub(crate) fn reload_path(&self) -> String {
        self.address(self.look.is_chosen.then_some(self.look.lang), self.look.still)
    }

    fn address(&self, lang: Option<Lang>, still: bool) -> String {
        let parts = [lang.map(|lang| ("lang", lang.tag())), still.then_some(("still", "1"))];
        let mut address = self.path.clone();
        for (count, (name, value)) in parts.into_iter().flatten().enumerate() {
            address.push(if count == 0 { '?' } else { '&' });
            address.push_str(name);
            address.push('=');
            address.push_str(value);
        }
        address
    }
}

#[derive(Template)]
#[template(path = "checkout.html")]
struct CheckoutPage<'a> {
    w: Words,
    id: &'a str,
    phase: &'static str,
    version: String,
    text: PhaseText,
    steps: Vec<Step>,
    notice: Option<&'a str>,
    live: bool,
    still: bool,
    is_test: bool,
    whole: bool,
    merchant: &'a str,
    initials: String,
    icon_url: Option<&'a str>,
    description: &'a str,
    amount: String,
    currency: &'static str,
    usd: String,
    rate_at: Option<Instant>,
    path: &'a str,
    reload_path: String,
    still_path: String,
    lang_query: String,
    chosen_query: String,
    reload_seconds: u32,
    languages: Vec<Language>,
    token: &'a str,
    reports: bool,
    is_returning: bool,
    expires_at: Instant,
    seconds_left: u64,
    pay: Option<Pay<'a>>,
    can_cancel: bool,
    can_restart: bool,
    receipt: Option<Receipt<'a>>,
    onward: Option<Onward<'a>>,
    onward_seconds: u32,
    leave: Option<Leave<'a>>,
    help: String,
    support_url: Option<&'a str>,
}

struct Step {
    name: &'static str,
    is_done: bool,
    is_now: bool,
}

struct Language {
    tag: &'static str,
    name: &'static str,
    path: String,
    is_current: bool,
}

/// A time in machine-readable and human-readable form.
struct Instant {
    exact: String,
    words: String,
}

impl Instant {
    fn of(wire: impl Into<Option<proto::time::Timestamp>>) -> Self {
        let instant = record::instant(wire);
        let to_the_minute = instant.to_ledger().chars().take(16).collect::<String>();
        Self { exact: instant.to_string(), words: format!("{} UTC", to_the_minute.replace('T', " ")) }
    }
}

/// The payment instructions.
struct Pay<'a> {
    to: &'a str,
    amount: String,
    number: String,
    currency: &'static str,
    memo: &'a str,
    warn_currency: String,
    hive_uri: String,
    hivesigner_url: String,
    qr: Option<Qr>,
    split: Option<Split<'a>>,
    program_url: Option<&'a str>,
    sent: bool,
}

/// The fee as a separate transfer, which needs the payer's name before it is signed.
struct Split<'a> {
    net: String,
    fee_to: &'a str,
    fee: String,
    fee_memo: String,
}

/// The receipt.
struct Receipt<'a> {
    received: Option<String>,
    from: Option<&'a str>,
    at: Option<Instant>,
    tx_id: Option<&'a str>,
}

/// The link back to the merchant. The script follows it automatically if it saw the payment become final. A page that
/// was loaded in a final state only shows the link, because anyone can create a payment that redirects anywhere.
struct Onward<'a> {
    url: &'a str,
    words: String,
    notice: Option<String>,
}

/// The link back while a cancellation is undecided.
struct Leave<'a> {
    url: &'a str,
    words: String,
    /// How long it stays hidden.
    wait_ms: u64,
}

/// Returns the page of a session.
///
/// # Errors
/// `internal` where the payment's currency is unknown.
pub(crate) fn checkout(status: StatusCode, view: &View<'_>, notice: Option<&str>) -> Result<Response, ApiError> {
    let (payment, look) = (view.payment, &view.look);
    let (phase, w) = (Phase::of(payment), look.words());
    let money = record::price(payment)?;
    let still_path = view.address(look.is_chosen.then_some(look.lang), true);
    let icon_url = payment.merchant_icon_url.as_deref().filter(|_| view.whole);
    let page = CheckoutPage {
        w,
        id: &payment.id,
        phase: phase.as_str(),
        version: version(payment, view.whole),
        text: PhaseText::of(payment, w, view.whole)?,
        steps: steps(phase, w),
        notice,
        live: phase.is_live(),
        still: look.still,
        is_test: !payment.livemode,
        whole: view.whole,
        merchant: &payment.merchant_name,
        initials: initials(&payment.merchant_name),
        icon_url,
        description: &payment.description,
        amount: look.lang.number(money),
        currency: money.currency.code(),
        usd: look.lang.usd(payment.usd_cents),
        rate_at: payment.rate_at.map(Instant::of),
        path: &view.path,
        reload_path: view.reload_path(),
        still_path,
        lang_query: format!("?lang={}", look.lang.tag()),
        chosen_query: if look.is_chosen { format!("?lang={}", look.lang.tag()) } else { String::new() },
        reload_seconds: RELOAD_SECONDS,
        languages: languages(view),
        token: view.token.as_deref().unwrap_or_default(),
        reports: view.reports && phase.takes_money(),
        is_returning: look.is_returning,
        expires_at: Instant::of(payment.expires_at),
        seconds_left: millis_between(payment.read_at, payment.expires_at) / 1_000,
        pay: phase.takes_money().then(|| pay(view, phase, money.currency)),
        can_cancel: phase.takes_money() && view.reports && !look.is_returning && is_untouched(payment),
        can_restart: payment.restartable && view.whole,
        receipt: (phase == Phase::Completed && view.whole).then(|| receipt(payment, money.currency, look.lang)),
        onward: onward(view, phase),
        onward_seconds: ONWARD_SECONDS,
        leave: leave(view, phase),
        help: fill(w.help(), &[("shop", &payment.merchant_name)]),
        support_url: payment.merchant_support_url.as_deref().filter(|_| view.whole).and_then(link),
    };
    let mut response = html::page(status, page.render(), icon_url);
    if view.token.is_some() {
        send_as_is(&mut response);
    }
    Ok(response)
}

fn steps(phase: Phase, w: Words) -> Vec<Step> {
    let names = [w.step_waiting(), w.step_confirming(), w.step_paid()];
    let Some(now) = phase.steps() else { return Vec::new() };
    let is_over = now + 1 == names.len();
    let steps = names.into_iter().enumerate();
    steps.map(|(at, name)| Step { name, is_done: at < now || is_over, is_now: at == now }).collect()
}

fn languages(view: &View<'_>) -> Vec<Language> {
    let language = |(lang, tag, name)| Language {
        tag,
        name,
        path: view.address(Some(lang), view.look.still),
        is_current: lang == view.look.lang,
    };
    LANGUAGES.into_iter().map(language).collect()
}

fn pay<'a>(view: &'a View<'a>, phase: Phase, currency: Currency) -> Pay<'a> {
    let payment = view.payment;
    let rest = Money::new(payment.amount_remaining_units, currency);
    let wanted = Wanted { to: payment.pay_to.clone(), amount: rest.to_string(), memo: payment.memo.clone() };
    let hive_uri = wanted.hive_uri();
    Pay {
        to: &payment.pay_to,
        number: decimal(rest),
        currency: rest.currency.code(),
        amount: wanted.amount.clone(),
        memo: &payment.memo,
        warn_currency: fill(view.look.words().warn_currency(), &[("currency", rest.currency.code())]),
        hivesigner_url: wanted.hivesigner_url(&view.return_url),
        qr: Qr::of(&hive_uri),
        hive_uri,
        split: split(payment, currency),
        program_url: payment.x402_enabled.then_some(view.url.as_str()),
        sent: view.look.is_returning && phase == Phase::Waiting,
    }
}

/// The two transfers of a collected fee; once a part has arrived, the rest is one transfer to the merchant.
fn split(payment: &Payment, currency: Currency) -> Option<Split<'_>> {
    let fee_to = payment.fee_account.as_deref().filter(|_| payment.amount_paid_units == 0)?;
    let money = |units| Money::new(units, currency).to_string();
    let net = money(payment.net_units);
    Some(Split { net, fee_to, fee: money(payment.fee_units), fee_memo: format!("fee-{}", payment.id) })
}

fn receipt(payment: &Payment, currency: Currency, lang: Lang) -> Receipt<'_> {
    let counted = |transfer: &&proto::v1::Transfer| transfer.disposition == Disposition::Counted as i32;
    let completed_it = |transfer: &&proto::v1::Transfer| payment.tx_id.as_ref() == Some(&transfer.tx_id);
    let mut all = payment.transfers.iter().filter(counted);
    let payer = all.clone().find(completed_it).or_else(|| all.next());
    let received = Money::new(payment.amount_paid_units, currency);
    Receipt {
        received: (payment.amount_paid_units != payment.amount_units).then(|| lang.money(received)),
        from: payer.map(|transfer| transfer.from_account.as_str()),
        at: payment.completed_at.map(Instant::of),
        tx_id: payment.tx_id.as_deref(),
    }
}

fn onward<'a>(view: &'a View<'a>, phase: Phase) -> Option<Onward<'a>> {
    let payment = view.payment;
    let (url, automatic) = match phase {
        Phase::Completed => (&payment.redirect_url, true),
        Phase::Cancelled => (&payment.cancel_url, true),
        Phase::Expired | Phase::Failed => (&payment.cancel_url, false),
        _ => return None,
    };
    let url = url.as_deref().filter(|_| view.whole).and_then(link)?;
    let words = fill(view.look.words().return_to(), &[("shop", &payment.merchant_name)]);
    let host = url::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
    let notice = host.filter(|_| automatic && !view.look.still);
    let seconds = ONWARD_SECONDS.to_string();
    let notice = notice.map(|host| fill(view.look.words().going(), &[("host", &host), ("seconds", &seconds)]));
    Some(Onward { url, words, notice })
}

/// Returns the milliseconds from one instant to a later one.
fn millis_between(from: Option<proto::time::Timestamp>, to: Option<proto::time::Timestamp>) -> u64 {
    record::instant(to).millis().saturating_sub(record::instant(from).millis())
}

fn leave<'a>(view: &'a View<'a>, phase: Phase) -> Option<Leave<'a>> {
    let payment = view.payment;
    let request = cancellation::undecided(payment).filter(|_| phase == Phase::Cancelling)?;
    let url = payment.cancel_url.as_deref().filter(|_| view.whole).and_then(link)?;
    let words = fill(view.look.words().return_to(), &[("shop", &payment.merchant_name)]);
    let wait_ms = LEAVE_AFTER_MS.saturating_sub(millis_between(request.requested_at, payment.read_at));
    Some(Leave { url, words, wait_ms })
}

/// Returns whether no transfer arrived and no wallet was opened.
const fn is_untouched(payment: &Payment) -> bool {
    payment.amount_paid_units == 0 && payment.wallet_opened_at.is_none()
}

/// The amount without its currency, which some wallets require separately.
fn decimal(money: Money) -> String {
    let text = money.to_string();
    text.split(' ').next().unwrap_or_default().to_owned()
}

fn initials(name: &str) -> String {
    name.split_whitespace().filter_map(|word| word.chars().next()).take(2).flat_map(char::to_uppercase).collect()
}

#[cfg(test)]
mod tests {
    use proto::v1::PaymentStatus;

    use super::*;
    use crate::facade::http::compression::compress;

    fn payment(status: PaymentStatus) -> Payment {
        Payment {
            id: "pay_1".to_owned(),
            status: status.into(),
            currency: proto::v1::Currency::Hbd.into(),
            amount_units: 10_500,
            amount_remaining_units: 10_500,
            description: "Blue <Mugs> & \"more\"".to_owned(),
            merchant_name: "Blue <Mugs>".to_owned(),
            pay_to: "blue.mugs".to_owned(),
            memo: "pos-pay_1".to_owned(),
            redirect_url: Some("https://shop.example/ok".to_owned()),
            ..Payment::default()
        }
    }

    fn look(lang: Lang) -> Look {
        Look { lang, is_chosen: true, still: false, is_returning: false }
    }

    fn view(payment: &Payment, look: Look, whole: bool) -> View<'_> {
        let (url, path) = ("https://x/checkout/pay_1".to_owned(), "/checkout/pay_1".to_owned());
        let return_url = url.clone();
        View { payment, url, return_url, path, token: Some("tok".to_owned()), reports: true, whole, look }
    }

    async fn text(view: &View<'_>) -> String {
        let response = checkout(StatusCode::OK, view, None).expect("a page");
        let body = http_body_util::BodyExt::collect(response.into_body()).await.expect("a body").to_bytes();
        String::from_utf8(body.to_vec()).expect("UTF-8")
    }

    #[tokio::test]
    async fn an_open_page_has_everything_a_payer_needs_and_escapes_what_it_shows() {
        let payment = payment(PaymentStatus::Pending);
        let page = text(&view(&payment, look(Lang::English), true)).await;
        for needed in ["10.500", "HBD", "blue.mugs", "pos-pay_1", "hive://sign/op/", "hivesigner.com/sign/", "<path"] {
            assert!(page.contains(needed), "{needed}");
        }
        assert!(!page.contains("<script>") && !page.contains("Blue <Mugs>"));
    }

    #[tokio::test]
    async fn every_state_is_written_in_every_language_below_its_size() {
        for (lang, tag, name) in LANGUAGES {
            for status in 1..=6 {
                let payment = Payment { status, ..payment(PaymentStatus::Pending) };
                let page = text(&view(&payment, look(lang), true)).await;
                assert!(
                    page.contains(&format!("<html lang=\"{tag}\" dir=\"{}\"", lang.direction())) && page.contains(name),
                    "{tag} {status}"
                );
                assert!(page.len() < 40_000, "{} bytes", page.len());
            }
        }
    }

    #[tokio::test]
    async fn a_page_with_a_form_token_is_not_compressed() {
        let payment = payment(PaymentStatus::Pending);
        let gzip =
            http::HeaderMap::from_iter([(http::header::ACCEPT_ENCODING, http::HeaderValue::from_static("gzip"))]);
        for has_token in [true, false] {
            let token = has_token.then(|| "tok".to_owned());
            let view = View { token, ..view(&payment, look(Lang::English), true) };
            let response = checkout(StatusCode::OK, &view, None).expect("a page");
            let response = compress(response, &gzip).await;
            assert_eq!(response.headers().contains_key("content-encoding"), !has_token);
        }
    }

    #[tokio::test]
    async fn limited_access_to_a_final_session_shows_only_state_and_amount() {
        let payment = payment(PaymentStatus::Completed);
        let page = text(&view(&payment, look(Lang::English), false)).await;
        assert!(page.contains("Paid") && page.contains("10.500"));
        for hidden in ["shop.example", "mugs", "Mugs", "tok"] {
            assert!(!page.contains(hidden), "{hidden}");
        }
        let page = text(&view(&payment, look(Lang::English), true)).await;
        assert!(page.contains("https://shop.example/ok"));
    }

    #[tokio::test]
    async fn no_link_runs_a_script() {
        let bad = || Some("javascript:alert(1)".to_owned());
        let payment = Payment {
            redirect_url: bad(),
            cancel_url: bad(),
            merchant_support_url: Some("data:text/html,x".to_owned()),
            merchant_icon_url: bad(),
            ..payment(PaymentStatus::Completed)
        };
        let page = text(&view(&payment, look(Lang::English), true)).await;
        assert!(!page.contains("href=\"javascript:") && !page.contains("href=\"data:"), "{page}");
    }
}
