//! Bodies of responses.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, combinators::BoxBody};

/// A body of a response; an error closes the connection, so that the client detects the incomplete response.
pub(super) type Body = BoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// Returns a complete body.
pub(super) fn full(text: impl Into<Bytes>) -> Body {
    Full::new(text.into()).map_err(|never: Infallible| match never {}).boxed()
}
