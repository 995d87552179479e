//! The exchange with the server that both kinds of payments share, with and without a wallet: request the price, and
//! report the result of a submission.

use std::time::Duration;

use actors::{environment::Entropy, system::SystemEntropy};
use engine::{ledger::TxId, money::Currency};
use reqwest::{Client, Url, header::LOCATION, redirect::Policy};
use serde_json::Value;

use super::{
    failure::Failure,
    ledger::is_here,
    quote::{Quote, Unacceptable},
    request::Request,
    submission::{self, Outcome, Submitted},
};

/// Timeout of one exchange with the server: a gateway keeps a request open for 20 s, others wait for a block.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Creates a client that follows no redirect: it could submit the payment to another server.
pub(in crate::commands) fn client() -> Result<Client, Failure> {
    Ok(Client::builder().redirect(Policy::none()).timeout(TIMEOUT).build()?)
}

/// Returns a new random nonce.
pub(in crate::commands) fn new_nonce() -> String {
    hex::encode((&SystemEntropy as &dyn Entropy).bytes::<16>())
}

/// The response to a request without a payment.
pub(in crate::commands) enum Response {
    /// A price.
    Quoted(Box<Quote>),
    /// The requested content: there is nothing to pay.
    Free(Value),
}

/// Requests a URL without a payment. Of several offers returns the first in one of `currencies`, in their order.
pub(in crate::commands) async fn request_quote(
    client: &Client,
    request: &Request,
    currencies: &[Currency],
) -> Result<Response, Failure> {
    let url = &request.url;
    let response = request.begin(client).send().await.map_err(|error| unreachable_or_malformed(url, error))?;
    let status = response.status().as_u16();
    let headers = response.headers().clone();
    let body = submission::read(response).await.map_err(|error| unreachable_or_malformed(url, error))?;
    match status {
        402 => choose(currencies, |currency| Quote::read(&headers, &body, currency)),
        200..=299 => Ok(Response::Free(submission::shown(&body))),
        300..=399 => {
            let to = headers.get(LOCATION).and_then(|to| to.to_str().ok()).unwrap_or("nowhere");
            Err(Failure::Redirect(to.to_owned()))
        }
        409 if submission::is_under_way(&body) => Err(Failure::Busy {
            reason: submission::word_of(&body).unwrap_or_default(),
            tx_id: submission::shown(&body)["txId"].as_str().map(str::to_owned),
        }),
        _ => Err(Failure::NotOffered { status, reason: submission::word_of(&body) }),
    }
}

/// Returns the first offer in one of `currencies`, in their order.
pub(super) fn choose(
    currencies: &[Currency],
    read: impl Fn(Currency) -> Result<Quote, Unacceptable>,
) -> Result<Response, Failure> {
    let quotes: Vec<_> = currencies.iter().map(|currency| (*currency, read(*currency))).collect();
    let is_wanted = |(currency, quote): &&(Currency, Result<Quote, Unacceptable>)| {
        quote.as_ref().is_ok_and(|quote| quote.total.currency == *currency)
    };
    let found = quotes.iter().find(is_wanted).or(quotes.first());
    let quote = found.map_or(Err(Unacceptable::NoOffer), |(_, quote)| quote.clone())?;
    Ok(Response::Quoted(Box::new(quote)))
}

/// An oversized response head is an unreadable offer; any other error is a network error.
fn unreachable_or_malformed(url: &Url, error: reqwest::Error) -> Failure {
    let why = submission::causes(&error.without_url());
    if why.contains("message head is too large") {
        return Unacceptable::Malformed("response head").into();
    }
    Failure::Server { url: url.clone(), why }
}

/// Adds the result of a submission to a report.
///
/// # Errors
/// [`Failure`] unless the payment was confirmed.
pub(in crate::commands) fn conclude(
    submitted: Submitted,
    tx_id: TxId,
    url: &Url,
    report: &mut Value,
) -> Result<(), Failure> {
    report["attempts"] = submitted.attempts.into();
    if let Some(status) = submitted.http_status {
        report["httpStatus"] = status.into();
    }
    if let Some(receipt) = submitted.receipt {
        report["receipt"] = receipt;
    }
    match submitted.outcome {
        Outcome::Paid { response } => {
            if let Some(report) = report.as_object_mut() {
                report.remove("payment");
            }
            report["status"] = "paid".into();
            report["response"] = response;
            Ok(())
        }
        Outcome::Unpaid { reason, message } => Err(Failure::Unpaid { reason, message }),
        Outcome::Unknown { reason } => Err(Failure::Unknown { tx_id, reason }),
        Outcome::Settled => Err(Failure::Settled(tx_id)),
        Outcome::NeverSent { why } => Err(Failure::Server { url: url.clone(), why }),
    }
}

/// Adds the fields of one object to another.
pub(in crate::commands) fn merge(into: &mut Value, from: Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        into.extend(from);
    }
}

/// Refuses plain http to another host.
pub(in crate::commands) fn check_transport(url: &Url, allow_http: bool) -> Result<(), Failure> {
    if url.scheme() == "http" && !is_here(url) && !allow_http { Err(Failure::PlainHttp(url.clone())) } else { Ok(()) }
}
