//! What a payment is for: an HTTP request, or a call of a tool of an MCP server.

use engine::{
    money::Currency,
    wallet::{Host, RequestKey},
};
use reqwest::{Client, Url};

use super::{
    exchange::{self, Response},
    failure::Failure,
    request::Request,
    tool_call::ToolCall,
};

/// What a payment is for.
#[derive(Debug, Clone)]
pub(in crate::commands) enum Target {
    /// An HTTP request.
    Http(Request),
    /// A call of a tool of an MCP server.
    Tool(ToolCall),
}

impl Target {
    const fn request(&self) -> &Request {
        match self {
            Self::Http(request) => request,
            Self::Tool(call) => &call.request,
        }
    }

    /// Returns the URL of the request, or of the MCP server.
    pub(in crate::commands) const fn url(&self) -> &Url {
        &self.request().url
    }

    /// Returns host and port of the server.
    pub(in crate::commands) fn host(&self) -> Host<'_> {
        self.request().host()
    }

    /// Returns the idempotency key.
    pub(in crate::commands) fn idempotency_key(&self) -> Option<&str> {
        self.request().idempotency_key()
    }

    /// Returns the identity: targets with equal identities are one purchase.
    pub(in crate::commands) fn key(&self) -> RequestKey {
        match self {
            Self::Http(request) => request.key(),
            Self::Tool(call) => call.key(),
        }
    }

    /// Returns method and URL for reports; the URL of a tool has its name as the fragment.
    pub(in crate::commands) fn describe(&self) -> (String, String) {
        match self {
            Self::Http(request) => (request.method.to_string(), request.url.to_string()),
            Self::Tool(call) => (super::tool_call::METHOD.to_owned(), call.url().to_string()),
        }
    }

    /// Requests the price without a payment.
    ///
    /// # Errors
    /// [`Failure`].
    pub(in crate::commands) async fn quote(
        &self,
        client: &Client,
        currencies: &[Currency],
    ) -> Result<Response, Failure> {
        match self {
            Self::Http(request) => exchange::request_quote(client, request, currencies).await,
            Self::Tool(call) => call.quote(client, currencies).await,
        }
    }
}
