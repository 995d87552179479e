//! `/.well-known/jwks.json`: the public keys of signed offers and receipts.

use engine::x402::key_set as document_of;
use http::{HeaderValue, StatusCode, header};
use proto::v1;
use warp::reply::Response;

use crate::facade::http::{call::Call, refusal::Refusal, response, state::Facade};

/// A verifier finds a new key within a minute; until then the key id of a signature contains the key.
const CACHING: HeaderValue = HeaderValue::from_static("public, max-age=60");

/// Returns the key set: the current key first, then every earlier one.
pub(crate) async fn key_set(facade: &Facade, call: Call) -> Result<Response, Refusal> {
    let request = call.caller.request(v1::GetReceiptKeysRequest {});
    let keys = facade.engine.x402().get_receipt_keys(request).await?.into_inner().public_keys;
    let keys = keys.iter().filter_map(|key| <[u8; 32]>::try_from(&key[..]).ok());
    let mut response = response::json(StatusCode::OK, &document_of(keys));
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, CACHING);
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    Ok(response)
}
