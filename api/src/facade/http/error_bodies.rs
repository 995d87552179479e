//! Adds the error body to the responses that hyper writes itself.
//!
//! Invalid HTTP requests never reach a handler: hyper responds with an empty body. This stream recognizes such a response
//! when it is written and replaces it with a complete error response.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};

use proto::{ApiError, Reason};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::facade::http::error;

/// A stream that completes empty error responses.
pub(crate) struct WithErrorBodies<S> {
    stream: S,
    /// The rest of a replacement response.
    replacement: Vec<u8>,
    written: usize,
}

impl<S> WithErrorBodies<S> {
    pub(crate) const fn new(stream: S) -> Self {
        Self { stream, replacement: Vec::new(), written: 0 }
    }
}

/// Returns the complete response for an empty error response of hyper. Responses of the facade have `x-request-id` and are
/// unchanged.
fn completed(bytes: &[u8]) -> Option<Vec<u8>> {
    if !bytes.starts_with(b"HTTP/1.1 4") && !bytes.starts_with(b"HTTP/1.0 4") {
        return None;
    }
    let head = std::str::from_utf8(bytes).ok()?;
    if !head.ends_with("\r\n\r\n") || head.to_ascii_lowercase().contains("x-request-id") {
        return None;
    }
    let reason = match head.get(9..12)? {
        "400" => Reason::BadRequest,
        "414" => Reason::UriTooLong,
        "431" => Reason::HeadersTooLarge,
        _ => return None,
    };
    let error = ApiError::new(reason);
    let body = error::body(&error, "");
    let mut response = format!(
        "HTTP/1.1 {}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        error::status(&error),
        body.len()
    )
    .into_bytes();
    response.extend_from_slice(&body);
    Some(response)
}

impl<S: AsyncWrite + Unpin> WithErrorBodies<S> {
    /// Writes the rest of the replacement.
    fn poll_replacement(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.replacement.len() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.replacement[self.written..]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.written += written;
        }
        Poll::Ready(Ok(()))
    }

    /// Replaces an empty error response; returns how many of its bytes count as written.
    fn replace(&mut self, bytes: &[u8]) -> Option<usize> {
        self.replacement = completed(bytes)?;
        self.written = 0;
        Some(bytes.len())
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WithErrorBodies<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_replacement(cx))?;
        if let Some(written) = self.replace(bytes) {
            return Poll::Ready(Ok(written));
        }
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_replacement(cx))?;
        if let [only] = slices
            && let Some(written) = self.replace(only)
        {
            return Poll::Ready(Ok(written));
        }
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_replacement(cx))?;
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_replacement(cx))?;
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WithErrorBodies<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}
