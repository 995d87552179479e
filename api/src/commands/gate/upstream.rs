//! Forwarding to the server behind the gate, with bodies that stream both ways.

use std::{net::IpAddr, time::Duration};

use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header, request::Parts};
use hyper::body::Incoming;
use reqwest::{Client, Url, redirect::Policy};

use super::{offer::Settled, routes::Price};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of bytes of the response to a tool call.
const MAX_TOOL_RESPONSE: usize = 4 << 20;
const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Headers of one connection, which a proxy does not forward.
const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
];
/// Headers that the upstream must not receive from a client: payments are bearer tokens, the method decides the price,
/// and the others are set by the gate itself.
const WITHHELD: [&str; 12] = [
    "x-payment",
    "payment-signature",
    "x-http-method-override",
    "x-http-method",
    "x-method-override",
    "x-original-url",
    "x-rewrite-url",
    "forwarded",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-hivetill-payer",
    "x-hivetill-transaction",
];

/// The server behind the gate.
#[derive(Debug, Clone)]
pub(super) struct Upstream {
    client: Client,
    base: Url,
    timeout: Duration,
}

impl Upstream {
    pub(super) fn new(base: Url, timeout: Duration) -> Result<Self, reqwest::Error> {
        let client = Client::builder().redirect(Policy::none()).connect_timeout(CONNECT_TIMEOUT).no_proxy().build()?;
        Ok(Self { client, base, timeout })
    }

    /// Forwards a request; returns the head of the response with a body that streams.
    ///
    /// # Errors
    /// Why there is no response.
    pub(super) async fn forward(
        &self,
        head: &Parts,
        body: Incoming,
        client_ip: IpAddr,
        paid: Option<(&Price, &Settled)>,
    ) -> Result<Response<reqwest::Body>, String> {
        let mut url = self.url(head.uri.path());
        url.set_query(head.uri.query());
        let mut headers = forwarded(&head.headers);
        for name in WITHHELD {
            headers.remove(name);
        }
        let host = headers.remove(header::HOST).or_else(|| HeaderValue::from_str(head.uri.host()?).ok());
        if let Some(host) = host {
            headers.insert("x-forwarded-host", host);
        }
        insert_origin(&mut headers, client_ip, paid);
        let request = self.client.request(head.method.clone(), url).headers(headers).body(reqwest::Body::wrap(body));
        match tokio::time::timeout(self.timeout, request.send()).await {
            Ok(Ok(response)) => {
                let mut response: Response<reqwest::Body> = response.into();
                *response.headers_mut() = forwarded(response.headers());
                Ok(response)
            }
            Ok(Err(error)) => Err(error.without_url().to_string()),
            Err(_) => Err(self.timed_out()),
        }
    }

    /// Posts the arguments of a tool as JSON; returns the status and the text of the response.
    ///
    /// # Errors
    /// Why there is no response, or none that a tool call can return.
    pub(super) async fn call(
        &self,
        path: &str,
        arguments: String,
        client_ip: IpAddr,
        paid: Option<(&Price, &Settled)>,
    ) -> Result<(StatusCode, String), String> {
        let mut headers = HeaderMap::from_iter([(header::CONTENT_TYPE, JSON), (header::ACCEPT, JSON)]);
        insert_origin(&mut headers, client_ip, paid);
        let request = self.client.post(self.url(path)).headers(headers).body(arguments);
        let exchange = async {
            let failed = |error: reqwest::Error| error.without_url().to_string();
            let mut response = request.send().await.map_err(failed)?;
            let (status, mut body) = (response.status(), Vec::new());
            while let Some(chunk) = response.chunk().await.map_err(failed)? {
                body.extend_from_slice(&chunk);
                if body.len() > MAX_TOOL_RESPONSE {
                    return Err(format!("the response has more than {MAX_TOOL_RESPONSE} bytes"));
                }
            }
            let text = String::from_utf8(body).map_err(|_| "the response is not UTF-8 text".to_owned())?;
            Ok((status, text))
        };
        tokio::time::timeout(self.timeout, exchange).await.unwrap_or_else(|_| Err(self.timed_out()))
    }

    fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path().trim_end_matches('/')));
        url
    }

    fn timed_out(&self) -> String {
        format!("no response after {} s", self.timeout.as_secs())
    }
}

/// Adds the client's IP address, and for a settled payment its facts.
fn insert_origin(headers: &mut HeaderMap, client_ip: IpAddr, paid: Option<(&Price, &Settled)>) {
    let before = headers.get("x-forwarded-for").and_then(|value| value.to_str().ok()).map(|value| format!("{value}, "));
    if let Ok(chain) = HeaderValue::from_str(&format!("{}{client_ip}", before.unwrap_or_default())) {
        headers.insert("x-forwarded-for", chain);
    }
    let Some((price, settled)) = paid else { return };
    let own = [
        ("x-hivetill-payer", &settled.payer),
        ("x-hivetill-transaction", &settled.tx_id),
        ("x-hivetill-amount", &price.amount.to_string()),
    ];
    for (name, value) in own {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
}

/// Returns the headers that a proxy forwards.
fn forwarded(headers: &HeaderMap) -> HeaderMap {
    let listed: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|names| names.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let mut forwarded = headers.clone();
    for name in HOP_BY_HOP.iter().chain(&listed) {
        forwarded.remove(name);
    }
    forwarded
}

/// Returns the path and query of a request.
pub(super) fn target<B>(request: &Request<B>) -> String {
    request.uri().path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_one_connection_are_not_forwarded() {
        let mut headers = HeaderMap::new();
        for (name, value) in
            [("connection", "close, x-secret"), ("x-secret", "1"), ("te", "trailers"), ("accept", "*/*")]
        {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let left: Vec<String> = forwarded(&headers).keys().map(ToString::to_string).collect();
        assert_eq!(left, ["accept"]);
    }
}
