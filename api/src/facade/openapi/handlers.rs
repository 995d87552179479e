//! The OpenAPI document as JSON and as a page, and an introduction for agents.

use http::{HeaderValue, header};
use warp::reply::Response;

use super::{document::describe, page};
use crate::facade::http::{call::Call, file::File, refusal::Refusal, response, route::Route, state::Facade};

/// The page needs no script and no external resource.
const CSP: &str = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; \
                   frame-ancestors 'none'";

/// Returns the OpenAPI document.
pub(crate) async fn document(facade: &Facade, call: Call, routes: &[Route]) -> Result<Response, Refusal> {
    let made = || File::of(response::to_json(&describe(&facade.base_url, routes)));
    Ok(facade.documents.openapi.get_or_init(made).response(&call, "application/json"))
}

/// Returns the reference page, rendered here without a script.
pub(crate) async fn docs(facade: &Facade, call: Call, routes: &[Route]) -> Result<Response, Refusal> {
    let is_test = facade.network.is_test(&facade.engine, &call.caller).await;
    let kept = if is_test { &facade.documents.test_docs } else { &facade.documents.docs };
    let file = kept.get_or_init(|| File::of(page::render(&facade.base_url, is_test, routes).into_bytes()));
    let mut response = file.response(&call, "text/html; charset=utf-8");
    response.headers_mut().insert("content-security-policy", HeaderValue::from_static(CSP));
    response.headers_mut().insert("referrer-policy", HeaderValue::from_static("no-referrer"));
    Ok(response)
}

/// Returns an introduction for agents.
pub(crate) async fn llms(facade: &Facade) -> Result<Response, Refusal> {
    let base = &facade.base_url;
    let text_of = format!(
        "# Hivetill\n\n> A self-hosted payment gateway for HIVE and HBD on the Hive ledger. Non-custodial: money goes from \
         the payer's account to the merchant's.\n\n\
         ## Pay\n\n\
         - Request a payment's URL ({base}/for/{{slug}} or {base}/checkout/{{id}}) without `Accept: text/html`. The response \
         is 402 with x402 requirements. Sign the transfer and repeat the request with it in `X-PAYMENT` (version 1) or \
         `PAYMENT-SIGNATURE` (version 2).\n\
         - {base}/api/public/x402/supported: the supported kinds of payment.\n\n\
         ## Accept payments\n\n\
         - POST {base}/api/public/merchants/register {{\"name\",\"hiveAccount\"}}: the API key and the webhook secret are returned only \
         once.\n\
         - POST {base}/api/public/payments {{\"amount\":\"1500\",\"currency\":\"HBD\",\"description\"}} with \
         `Authorization: Bearer sk_live_…`: amounts are in the smallest unit, 1/1000. Send an `Idempotency-Key`.\n\
         - GET {base}/api/public/payments/{{id}}/status until `completed`, or receive a signed webhook.\n\n\
         ## Reference\n\n\
         - [{base}/openapi.json]({base}/openapi.json): every operation, OpenAPI 3.1\n\
         - [{base}/docs]({base}/docs): the same as a page\n"
    );
    Ok(text(text_of, "text/plain; charset=utf-8"))
}

fn text(body: String, media_type: &'static str) -> Response {
    let mut response = Response::new(body.into());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    response
}
