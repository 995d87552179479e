//! The checkout page: what each state says, and the page written on the server.

use askama::Template;
use engine::{money::Money, time::Timestamp};
use http::{HeaderValue, StatusCode, header};
use proto::{
    ApiError, Reason,
    v1::{Finality, Payment, PaymentException, PaymentStatus},
};
use serde::Serialize;
use warp::reply::Response;

use super::{
    Refusal, error, record,
    wallets::{Qr, Wanted},
};

/// Nothing from elsewhere but the merchant's logo; `form-action 'self'` fits because cancelling answers with a page of
/// ours, which then leads to the merchant.
const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: https:; \
                   connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Where a session is, as its customer sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Phase {
    Waiting,
    Part,
    Seen,
    Checking,
    Processing,
    Completed,
    Cancelled,
    Expired,
    Failed,
}

impl Phase {
    fn of(payment: &Payment) -> Self {
        let seen = payment.transfers.iter().any(|transfer| transfer.finality == Finality::Reversible as i32);
        match PaymentStatus::try_from(payment.status).unwrap_or(PaymentStatus::Unspecified) {
            PaymentStatus::Processing => Self::Processing,
            PaymentStatus::Completed => Self::Completed,
            PaymentStatus::Failed => Self::Failed,
            PaymentStatus::UserCancelled => Self::Cancelled,
            PaymentStatus::SystemCancelled => Self::Expired,
            PaymentStatus::Pending | PaymentStatus::Unspecified if seen => Self::Seen,
            PaymentStatus::Pending | PaymentStatus::Unspecified if payment.expired => Self::Checking,
            PaymentStatus::Pending | PaymentStatus::Unspecified if payment.amount_paid_units > 0 => Self::Part,
            PaymentStatus::Pending | PaymentStatus::Unspecified => Self::Waiting,
        }
    }

    const fn takes_money(self) -> bool {
        matches!(self, Self::Waiting | Self::Part)
    }

    const fn is_live(self) -> bool {
        matches!(self, Self::Waiting | Self::Part | Self::Seen | Self::Checking | Self::Processing)
    }

    const fn headline(self) -> &'static str {
        match self {
            Self::Waiting => "Waiting for your payment",
            Self::Part => "Part of the amount has arrived",
            Self::Seen => "Payment seen, finalising",
            Self::Checking => "Time is over",
            Self::Processing => "Payment on its way",
            Self::Completed => "Paid",
            Self::Cancelled => "Cancelled",
            Self::Expired => "Expired",
            Self::Failed => "Payment failed",
        }
    }

    fn message(self, payment: &Payment) -> String {
        let money = |units| Money::new(units, record::currency(payment.currency));
        let has = |exception: PaymentException| payment.exceptions.contains(&(exception as i32));
        let shop = &payment.merchant_name;
        match self {
            Self::Waiting if has(PaymentException::WrongCurrency) => {
                format!("A transfer in the wrong currency came. This needs {}.", money(payment.amount_units))
            }
            Self::Waiting => "This page changes by itself when your transfer is final.".to_owned(),
            Self::Part => format!(
                "{} of {} received. Send {} more.",
                money(payment.amount_paid_units),
                money(payment.amount_units),
                money(payment.amount_remaining_units)
            ),
            Self::Seen => "Your transfer stands in a block. It is final in a moment.".to_owned(),
            Self::Checking => "Checking the ledger for a transfer that came in time. Please do not pay now.".to_owned(),
            Self::Processing => "A signed payment was sent and waits for the ledger.".to_owned(),
            Self::Completed if payment.amount_overpaid_units > 0 => {
                format!("Thank you. {} too much was sent; {shop} can see that.", money(payment.amount_overpaid_units))
            }
            Self::Completed => "Thank you.".to_owned(),
            Self::Cancelled | Self::Expired | Self::Failed if payment.amount_late_units > 0 => {
                format!("A payment arrived afterwards. {shop} has been told.")
            }
            Self::Expired if payment.amount_paid_units > 0 => {
                format!(
                    "Its time ended with a part payment of {}. Please contact {shop}.",
                    money(payment.amount_paid_units)
                )
            }
            Self::Cancelled => "This payment was cancelled. Please do not pay it.".to_owned(),
            Self::Expired => "The time for this payment is over. Please do not pay it.".to_owned(),
            Self::Failed => "The signed payment did not reach the ledger in its time. No money moved.".to_owned(),
        }
    }
}

/// What the page's script reads: the status answer, and what to show.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Live<'a> {
    id: &'a str,
    status: &'static str,
    completed_at: Option<record::Text<Timestamp>>,
    expired: bool,
    sequence: u64,
    phase: Phase,
    headline: &'static str,
    message: String,
    amount_remaining: record::Text<u64>,
}

impl<'a> Live<'a> {
    /// Writes what a visitor may see: everything, or no more than state and amount.
    pub(super) fn of(payment: &'a Payment, whole: bool) -> Self {
        let phase = Phase::of(payment);
        Self {
            id: &payment.id,
            status: record::status_word(payment.status),
            completed_at: payment.completed_at_ms.map(|at| record::Text(record::instant(at))),
            expired: payment.expired,
            sequence: payment.sequence,
            phase,
            headline: phase.headline(),
            message: if whole { phase.message(payment) } else { String::new() },
            amount_remaining: record::Text(payment.amount_remaining_units),
        }
    }
}

/// A session as one visitor may see it.
pub(super) struct View<'a> {
    payment: &'a Payment,
    /// The address wallets come back to.
    url: String,
    /// The address of this page, without the host.
    path: String,
    token: Option<String>,
    /// Whether everything is shown, or only state and amount.
    whole: bool,
}

impl<'a> View<'a> {
    pub(super) const fn new(
        payment: &'a Payment,
        url: String,
        path: String,
        token: Option<String>,
        whole: bool,
    ) -> Self {
        Self { payment, url, path, token, whole }
    }

    /// Returns the address that shows the same visitor as much as now, whatever becomes of the session.
    pub(super) fn reload_path(&self) -> String {
        match &self.token {
            Some(token) if self.whole => format!("{}?t={token}", self.path),
            _ => self.path.clone(),
        }
    }
}

#[derive(Template)]
#[template(path = "checkout.html")]
struct CheckoutPage<'a> {
    phase: &'static str,
    headline: &'static str,
    message: String,
    notice: Option<&'a str>,
    live: bool,
    livemode: bool,
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
    reload_path: &'a str,
    token: &'a str,
    expires_at: Instant,
    pay: Option<Pay<'a>>,
    can_cancel: bool,
    tx_id: Option<&'a str>,
    onward: Option<Onward>,
}

/// A time for programs and for people.
struct Instant {
    exact: String,
    words: String,
}

impl Instant {
    fn of(wire_ms: i64) -> Self {
        let instant = record::instant(wire_ms);
        let to_the_minute = instant.to_ledger().chars().take(16).collect::<String>();
        Self { exact: instant.to_string(), words: format!("{} UTC", to_the_minute.replace('T', " ")) }
    }
}

/// Everything a payer needs.
struct Pay<'a> {
    to: &'a str,
    amount: String,
    number: String,
    currency: &'static str,
    memo: &'a str,
    hive_uri: String,
    hivesigner_url: String,
    qr: Option<Qr>,
}

/// The way back to the merchant.
struct Onward {
    url: String,
    automatic: bool,
}

#[derive(Template)]
#[template(path = "message.html")]
struct MessagePage<'a> {
    title: &'a str,
    message: &'a str,
    request_id: &'a str,
}

/// Answers with a session's page.
pub(super) fn checkout(status: StatusCode, view: &View<'_>, notice: Option<&str>) -> Response {
    let payment = view.payment;
    let phase = Phase::of(payment);
    let money = Money::new(payment.amount_units, record::currency(payment.currency));
    let reload_path = view.reload_path();
    let onward = match phase {
        Phase::Completed => payment.redirect_url.clone().map(|url| Onward { url, automatic: true }),
        Phase::Cancelled => payment.cancel_url.clone().map(|url| Onward { url, automatic: true }),
        Phase::Expired | Phase::Failed => payment.cancel_url.clone().map(|url| Onward { url, automatic: false }),
        _ => None,
    };
    let page = CheckoutPage {
        phase: phase_word(phase),
        headline: phase.headline(),
        message: if view.whole { phase.message(payment) } else { String::new() },
        notice,
        live: phase.is_live(),
        livemode: payment.livemode,
        whole: view.whole,
        merchant: &payment.merchant_name,
        initials: initials(&payment.merchant_name),
        icon_url: payment.merchant_icon_url.as_deref(),
        description: &payment.description,
        amount: decimal(money),
        currency: money.currency.code(),
        usd: format!("{}.{:02}", payment.usd_cents / 100, payment.usd_cents % 100),
        rate_at: payment.rate_at_ms.map(Instant::of),
        path: &view.path,
        reload_path: &reload_path,
        token: view.token.as_deref().unwrap_or_default(),
        expires_at: Instant::of(payment.expires_at_ms),
        pay: phase.takes_money().then(|| pay(view)),
        can_cancel: phase.takes_money() && payment.amount_paid_units == 0,
        tx_id: payment.tx_id.as_deref(),
        onward: onward.filter(|_| view.whole),
    };
    html(status, page.render())
}

fn pay<'a>(view: &View<'a>) -> Pay<'a> {
    let payment = view.payment;
    let rest = Money::new(payment.amount_remaining_units, record::currency(payment.currency));
    let wanted = Wanted { to: payment.pay_to.clone(), amount: rest.to_string(), memo: payment.memo.clone() };
    let hive_uri = wanted.hive_uri();
    Pay {
        to: &payment.pay_to,
        number: decimal(rest),
        currency: rest.currency.code(),
        amount: wanted.amount.clone(),
        memo: &payment.memo,
        hivesigner_url: wanted.hivesigner_url(&view.url),
        qr: Qr::of(&hive_uri),
        hive_uri,
    }
}

/// Answers a browser with a page that says what is wrong.
pub(super) fn refusal(refused: &ApiError, request_id: &str) -> Response {
    let title = match refused.http() {
        404 => "No such payment",
        503 => "Not available right now",
        _ => "This did not work",
    };
    let message = match refused.http() {
        404 => "Please check the link you followed, or ask the shop for a new one.",
        503 => "Please try again in a moment. If you have paid already, nothing is lost.",
        _ => &refused.message,
    };
    let mut response = html(error::status(refused), MessagePage { title, message, request_id }.render());
    if let Some(seconds) = refused.retry_after_seconds {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Leads a browser to another page of ours.
pub(super) fn see_other(path: &str) -> Response {
    let mut response = html(StatusCode::SEE_OTHER, Ok(String::new()));
    match HeaderValue::from_str(path) {
        Ok(path) => {
            response.headers_mut().insert(header::LOCATION, path);
        }
        Err(_) => *response.status_mut() = StatusCode::OK,
    }
    response
}

fn html(status: StatusCode, page: askama::Result<String>) -> Response {
    let Ok(page) = page else {
        return error::response(&ApiError::new(Reason::Internal), "");
    };
    let mut response = Response::new(page.into());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        ("content-type", "text/html; charset=utf-8"),
        ("content-security-policy", CSP),
        ("cache-control", "no-store"),
        // The slug in the address is a secret: no link tells it on.
        ("referrer-policy", "no-referrer"),
        ("x-robots-tag", "noindex, nofollow"),
        ("x-frame-options", "DENY"),
        ("cross-origin-opener-policy", "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Answers with the page's script or style.
pub(super) async fn asset(file: &str) -> Result<Response, Refusal> {
    let (content_type, text) = match file {
        "checkout.js" => ("text/javascript; charset=utf-8", include_str!("../../assets/checkout.js")),
        "checkout.css" => ("text/css; charset=utf-8", include_str!("../../assets/checkout.css")),
        _ => return Err(Reason::UnknownRoute.into()),
    };
    let mut response = Response::new(text.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    Ok(response)
}

const fn phase_word(phase: Phase) -> &'static str {
    match phase {
        Phase::Waiting => "waiting",
        Phase::Part => "part",
        Phase::Seen => "seen",
        Phase::Checking => "checking",
        Phase::Processing => "processing",
        Phase::Completed => "completed",
        Phase::Cancelled => "cancelled",
        Phase::Expired => "expired",
        Phase::Failed => "failed",
    }
}

/// The number without its currency, as wallets want it apart.
fn decimal(money: Money) -> String {
    let text = money.to_string();
    text.split(' ').next().unwrap_or_default().to_owned()
}

fn initials(name: &str) -> String {
    name.split_whitespace().filter_map(|word| word.chars().next()).take(2).flat_map(char::to_uppercase).collect()
}

#[cfg(test)]
mod tests {
    use proto::v1::Transfer;

    use super::*;

    fn payment(status: PaymentStatus) -> Payment {
        Payment {
            id: "pay_1".to_owned(),
            status: status.into(),
            currency: proto::v1::Currency::Hbd.into(),
            amount_units: 10_500,
            amount_remaining_units: 10_500,
            merchant_name: "Blue <Mugs>".to_owned(),
            description: "Two \"mugs\" & a <script>".to_owned(),
            pay_to: "blue.mugs".to_owned(),
            memo: "pos-pay_1".to_owned(),
            redirect_url: Some("https://shop.example/ok".to_owned()),
            ..Payment::default()
        }
    }

    async fn text(payment: &Payment, whole: bool) -> String {
        let view =
            View::new(payment, "https://x/checkout/pay_1".into(), "/checkout/pay_1".into(), Some("tok".into()), whole);
        let response = checkout(StatusCode::OK, &view, None);
        let body = http_body_util::BodyExt::collect(response.into_body()).await.expect("a body").to_bytes();
        String::from_utf8(body.to_vec()).expect("UTF-8")
    }

    #[test]
    fn every_state_has_its_phase() {
        let mut seen = payment(PaymentStatus::Pending);
        seen.transfers.push(Transfer { finality: Finality::Reversible.into(), ..Transfer::default() });
        let part = Payment { amount_paid_units: 500, ..payment(PaymentStatus::Pending) };
        let checking = Payment { expired: true, ..payment(PaymentStatus::Pending) };
        for (payment, phase) in [
            (payment(PaymentStatus::Pending), Phase::Waiting),
            (part, Phase::Part),
            (seen, Phase::Seen),
            (checking, Phase::Checking),
            (payment(PaymentStatus::Processing), Phase::Processing),
            (payment(PaymentStatus::Completed), Phase::Completed),
            (payment(PaymentStatus::UserCancelled), Phase::Cancelled),
            (payment(PaymentStatus::SystemCancelled), Phase::Expired),
            (payment(PaymentStatus::Failed), Phase::Failed),
        ] {
            assert_eq!(Phase::of(&payment), phase);
            assert_eq!(serde_json::to_string(&phase).expect("a word"), format!("\"{}\"", phase_word(phase)));
            assert!(!phase.headline().is_empty() && !phase.message(&payment).is_empty());
        }
    }

    #[tokio::test]
    async fn an_open_page_has_everything_a_payer_needs_and_escapes_what_it_shows() {
        let page = text(&payment(PaymentStatus::Pending), true).await;
        for needed in [
            "10.500",
            "HBD",
            "blue.mugs",
            "pos-pay_1",
            "hive://sign/op/",
            "https://hivesigner.com/sign/transfer?",
            "<path",
        ] {
            assert!(page.contains(needed), "{needed}");
        }
        assert!(!page.contains("<script>") && !page.contains("Blue <Mugs>"));
        assert!(page.len() < 60_000, "{} bytes", page.len());
    }

    #[tokio::test]
    async fn a_stranger_sees_of_a_finished_session_only_state_and_amount() {
        let page = text(&payment(PaymentStatus::Completed), false).await;
        assert!(page.contains("Paid") && page.contains("10.500"));
        for hidden in ["shop.example", "mugs", "Mugs", "tok"] {
            assert!(!page.contains(hidden), "{hidden}");
        }
        let page = text(&payment(PaymentStatus::Completed), true).await;
        assert!(page.contains("https://shop.example/ok"));
    }
}
