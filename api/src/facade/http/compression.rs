//! Compression of text responses with gzip.
//!
//! Compression must not reveal secrets through the length of a response (BREACH): an attacker who makes a victim's
//! browser request a page that contains both a secret and text of the attacker's choice can guess the secret by
//! measuring. The responses that a browser gets with its own credentials, the pages of the dashboard, are therefore
//! never compressed, and neither is a checkout page that contains the token of a form. What remains is safe: the API
//! accepts no credentials that a browser adds by itself, and a checkout page contains no secret besides its slug, which
//! the request must know, and no text from the request.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use http::{
    HeaderMap, HeaderValue,
    header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, VARY},
};
use http_body_util::{BodyExt as _, Collected};
use hyper::body::Body as _;
use warp::reply::Response;

/// Sizes in bytes of the bodies that are compressed. A smaller one fits into one packet anyway, and a larger one would
/// keep a thread busy for too long.
const COMPRESSED_BYTES: std::ops::RangeInclusive<u64> = 1_024..=1_048_576;
/// The level for responses that are rendered for each request.
const LEVEL: u32 = 4;

/// Marks a response whose body is sent as it is: it is a file with its own encodings, or it contains a secret.
#[derive(Debug, Clone, Copy)]
struct SentAsIs;

/// Marks a response, so that it is not compressed.
pub(crate) fn send_as_is(response: &mut Response) {
    response.extensions_mut().insert(SentAsIs);
}

/// Compresses a text response if the client accepts it. Streams are sent as they are.
pub(crate) async fn compress(mut response: Response, request: &HeaderMap) -> Response {
    if !is_compressible(&response) {
        return response;
    }
    // Caches do not keep the others, so that it does not matter to them what a response depends on.
    if response.headers().get(CACHE_CONTROL).is_none_or(|control| !control.as_bytes().starts_with(b"no-store")) {
        varies(response.headers_mut());
    }
    if !accepts_gzip(request) {
        return response;
    }
    let (mut head, body) = response.into_parts();
    // The size is known, so the whole body is in memory: collecting it neither waits nor fails.
    let bytes = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
    head.headers.remove(CONTENT_LENGTH);
    encodes(&mut head.headers);
    Response::from_parts(head, gzip(&bytes, Compression::new(LEVEL)).into())
}

/// Records that the response depends on `Accept-Encoding`.
pub(crate) fn varies(headers: &mut HeaderMap) {
    headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
}

/// Records that the body is compressed.
pub(crate) fn encodes(headers: &mut HeaderMap) {
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
}

/// Compresses bytes with gzip. The output depends on the bytes and the level only.
pub(crate) fn gzip(bytes: &[u8], level: Compression) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 3), level);
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("writing to memory does not fail")
}

fn is_compressible(response: &Response) -> bool {
    let headers = response.headers();
    let is_fitting = response.body().size_hint().exact().is_some_and(|bytes| COMPRESSED_BYTES.contains(&bytes));
    let is_plain = !headers.contains_key(CONTENT_ENCODING) && response.extensions().get::<SentAsIs>().is_none();
    let media_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    is_fitting && is_plain && (media_type.starts_with("text/") || media_type.starts_with("application/json"))
}

/// Returns whether `Accept-Encoding` names gzip, or any encoding, with a weight above zero.
pub(crate) fn accepts_gzip(headers: &HeaderMap) -> bool {
    let mut accepts_any = false;
    for value in headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok()) {
        for item in value.split(',') {
            let mut parts = item.split(';').map(str::trim);
            let coding = parts.next().unwrap_or_default();
            let is_accepted = parts.all(|parameter| weight(parameter).is_some_and(|weight| weight > 0.0));
            if coding.eq_ignore_ascii_case("gzip") || coding.eq_ignore_ascii_case("x-gzip") {
                return is_accepted;
            }
            accepts_any |= coding == "*" && is_accepted;
        }
    }
    accepts_any
}

/// Parses the parameter `q`; `None` if it is another one or no number.
fn weight(parameter: &str) -> Option<f32> {
    let (name, value) = parameter.split_once('=')?;
    if name.trim_end().eq_ignore_ascii_case("q") { value.trim_start().parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn accepting(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(value))])
    }

    fn text(bytes: usize, media_type: &'static str) -> Response {
        let mut response = Response::new("a mug, ".repeat(bytes / 7 + 1)[..bytes].to_owned().into());
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
        response
    }

    async fn is_compressed(response: Response, accept: &'static str) -> bool {
        let whole = response.body().size_hint().exact();
        let response = compress(response, &accepting(accept)).await;
        let is_gzip = response.headers().get(CONTENT_ENCODING).is_some_and(|coding| coding == "gzip");
        assert_eq!(is_gzip, response.body().size_hint().exact() < whole);
        is_gzip
    }

    #[test]
    fn clients_choose_gzip_by_its_name_its_weight_or_any_encoding() {
        for good in
            ["gzip", "GZIP", "x-gzip", "br, gzip;q=0.1", "deflate, gzip, br", "*", "br;q=1.0, *;q=0.5", "gzip ; Q = 1"]
        {
            assert!(accepts_gzip(&accepting(good)), "{good}");
        }
        for bad in [
            "",
            "br",
            "identity",
            "gzip;q=0",
            "gzip; q=0.000",
            "*, gzip;q=0",
            "*;q=0",
            "gzip;q=x",
            "gzip;x=1",
            "gzipped",
        ] {
            assert!(!accepts_gzip(&accepting(bad)), "{bad}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }

    #[tokio::test]
    async fn text_of_some_size_is_compressed_and_everything_else_is_sent_as_it_is() {
        for media_type in ["text/html; charset=utf-8", "application/json", "text/csv"] {
            assert!(is_compressed(text(2_000, media_type), "gzip").await, "{media_type}");
        }
        assert!(!is_compressed(text(2_000, "image/png"), "gzip").await);
        assert!(!is_compressed(text(1_023, "text/html"), "gzip").await);
        assert!(!is_compressed(text(1_048_577, "text/html"), "gzip").await);
        assert!(!is_compressed(text(2_000, "text/html"), "br").await);
        let mut with_secret = text(2_000, "text/html");
        send_as_is(&mut with_secret);
        assert!(!is_compressed(with_secret, "gzip").await);
    }

    #[tokio::test]
    async fn a_compressed_body_is_the_same_text_and_caches_know_that_it_varies() {
        let response = compress(text(5_000, "text/html"), &accepting("gzip")).await;
        assert_eq!(response.headers().get(VARY).expect("a header"), "Accept-Encoding");
        let bytes = response.into_body().collect().await.expect("a body").to_bytes();
        let mut text_of = String::new();
        flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text_of).expect("gzip");
        assert_eq!((text_of.len(), text_of.starts_with("a mug, a mug")), (5_000, true));
        let plain = compress(text(5_000, "text/html"), &HeaderMap::new()).await;
        assert_eq!(plain.headers().get(VARY).expect("a header"), "Accept-Encoding", "the plain one, too");
        let mut private = text(5_000, "text/html");
        private.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        assert!(!compress(private, &accepting("gzip")).await.headers().contains_key(VARY), "no cache keeps it");
    }
}
