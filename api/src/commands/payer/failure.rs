//! The failures of a payment: messages, exit codes and reasons for scripts.

use actors::environment::NodeError;
use engine::{
    ledger::TxId,
    wallet::{self as rules},
};
use reqwest::Url;
use serde_json::Value;

use super::{account::AccountError, key::NoKey, quote::Unacceptable, request::BadRequest};
use crate::{
    commands::{signing::Unsignable, wallet::error::Error as WalletError},
    config::ConfigError,
};

/// The failure of a payment, or an unknown outcome.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// No key is available for signing.
    #[error(transparent)]
    Key(#[from] NoKey),
    /// The command line does not describe a valid request.
    #[error(transparent)]
    Request(#[from] BadRequest),
    /// `--payment` does not match the account.
    #[error("--payment {0}")]
    Payment(String),
    /// The header is a bearer token: anyone who reads it can submit it first.
    #[error("{0} uses plain http to another host; use --allow-http to pay there anyway")]
    PlainHttp(Url),
    /// Settings cannot be used.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// The HTTP client cannot be created.
    #[error("cannot create a client: {0}")]
    Setup(#[from] reqwest::Error),
    /// The wallet cannot be used.
    #[error(transparent)]
    Wallet(#[from] WalletError),
    /// The wallet's policy does not permit the payment.
    #[error("refused: {0}")]
    Policy(#[from] rules::Refusal),
    /// The wallet's policy requires an approval.
    #[error(
        "refused: {refusal}. Run `hivetill wallet approve {id}` and repeat the same request, or `hivetill wallet deny {id}`"
    )]
    Approval {
        /// The wallet's entry.
        id: u64,
        /// The amount and the threshold.
        refusal: rules::Refusal,
    },
    /// The offer is not acceptable.
    #[error("refused: {0}")]
    Unacceptable(#[from] Unacceptable),
    /// The URL redirects.
    #[error(
        "refused: the URL redirects to {0}, and payments do not follow redirects. Check that URL and use it directly"
    )]
    Redirect(String),
    /// The offer cannot be written as a transaction.
    #[error("refused: {0}")]
    Unsignable(#[from] Unsignable),
    /// The account cannot pay the offer.
    #[error("refused: {0}")]
    Account(#[from] AccountError),
    /// The server is unreachable.
    #[error("{url} is unreachable: {why}")]
    Server {
        /// The URL.
        url: Url,
        /// The cause.
        why: String,
    },
    /// The ledger is unreachable.
    #[error("cannot query the ledger: the node {0}")]
    Ledger(#[from] NodeError),
    /// The server returned an error without payment requirements.
    #[error("the server refused: HTTP {status}{}", .reason.as_ref().map(|word| format!(", {word}")).unwrap_or_default())]
    NotOffered {
        /// HTTP status.
        status: u16,
        /// The reason in the response.
        reason: Option<String>,
    },
    /// A tool call failed without payment requirements.
    #[error("the tool refused: {reason}{}", if .message.is_empty() { String::new() } else { format!(" ({message})") })]
    Tool {
        /// The reason.
        reason: String,
        /// The message of the tool, or nothing.
        message: String,
    },
    /// Another payment of this session is in flight, possibly of an earlier run.
    #[error("another payment is in flight ({reason}{}): wait for its outcome before you pay", .tx_id.as_ref().map(|id| format!(", {id}")).unwrap_or_default())]
    Busy {
        /// The reason in the response.
        reason: String,
        /// The transaction, if the response contains it.
        tx_id: Option<String>,
    },
    /// The payment was submitted and refused, or expired.
    #[error("not paid: {reason}{}", .message.as_ref().map(|message| format!(" ({message})")).unwrap_or_default())]
    Unpaid {
        /// The reason.
        reason: String,
        /// A sentence.
        message: Option<String>,
    },
    /// The payment was submitted, and its outcome is unknown.
    #[error("unknown whether the payment succeeded ({reason}): look up {tx_id} before you pay again")]
    Unknown {
        /// The transaction.
        tx_id: TxId,
        /// The last reason received.
        reason: String,
    },
    /// The payment was settled before, and the server does not serve it again.
    #[error("{0} was settled before: do not submit it again and do not sign another payment; contact the seller")]
    Settled(TxId),
    /// Standard output is closed.
    #[error("cannot write: {0}")]
    Output(#[from] std::io::Error),
}

impl Failure {
    /// Returns the exit code.
    pub(in crate::commands) const fn exit_code(&self) -> u8 {
        match self {
            Self::Output(_) | Self::Setup(_) => 1,
            Self::Wallet(error) => {
                if error.is_usage() {
                    2
                } else {
                    1
                }
            }
            Self::Key(_) | Self::Request(_) | Self::Payment(_) | Self::PlainHttp(_) | Self::Config(_) => 2,
            Self::Unacceptable(_)
            | Self::Redirect(_)
            | Self::Policy(_)
            | Self::Approval { .. }
            | Self::Unsignable(_)
            | Self::Account(_) => 10,
            Self::NotOffered { .. } | Self::Tool { .. } | Self::Unpaid { .. } => 11,
            Self::Unknown { .. } | Self::Busy { .. } => 12,
            Self::Server { .. } | Self::Ledger(_) => 13,
            Self::Settled(_) => 14,
        }
    }

    const fn status(&self) -> &'static str {
        match self.exit_code() {
            11 => "unpaid",
            12 => "unknown",
            13 => "unreachable",
            14 => "settled",
            _ => "refused",
        }
    }

    /// Returns the reason for scripts.
    pub(in crate::commands) fn reason(&self) -> String {
        match self {
            Self::Key(why) => why.as_str().into(),
            Self::Request(_) => "bad_request".into(),
            Self::Payment(_) => "bad_payment".into(),
            Self::PlainHttp(_) => "plain_http".into(),
            Self::Config(_) => "bad_settings".into(),
            Self::Setup(_) | Self::Output(_) => "failed".into(),
            Self::Wallet(error) => error.as_str().into(),
            Self::Policy(refusal) | Self::Approval { refusal, .. } => refusal.as_str().into(),
            Self::Unacceptable(why) => why.as_str().into(),
            Self::Redirect(_) => "redirect".into(),
            Self::Unsignable(_) => "not_a_transfer".into(),
            Self::Account(why) => why.as_str().into(),
            Self::Server { .. } => "server_unreachable".into(),
            Self::Ledger(_) => "ledger_unreachable".into(),
            Self::Settled(_) => engine::x402::Reason::DuplicateSettlement.as_str().into(),
            Self::NotOffered { status, reason } => reason.clone().unwrap_or_else(|| format!("http_{status}")),
            Self::Tool { reason, .. }
            | Self::Unpaid { reason, .. }
            | Self::Unknown { reason, .. }
            | Self::Busy { reason, .. } => reason.clone(),
        }
    }

    /// Adds status, reason, message and further facts to a report.
    pub(in crate::commands) fn describe(&self, report: &mut Value) {
        report["status"] = self.status().into();
        report["reason"] = self.reason().into();
        report["message"] = self.to_string().into();
        match self {
            Self::Busy { tx_id: Some(tx_id), .. } => report["txId"] = tx_id.as_str().into(),
            Self::Approval { id, .. } => report["approvalId"] = (*id).into(),
            Self::Policy(rules::Refusal::Limit { limit, used, available_at, .. }) => {
                report["limit"] = limit.to_string().into();
                report["used"] = used.to_string().into();
                report["availableAt"] = available_at.map(|at| at.to_string()).into();
            }
            _ => {}
        }
    }
}
