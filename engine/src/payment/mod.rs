//! Payment sessions: states, stored snapshot and creation.

mod announce;
mod apply;
mod cancellation;
mod resolution;
mod restart;
mod totals;
mod view;

#[cfg(test)]
mod table_tests;

use std::{sync::Arc, time::Duration};

pub use announce::{Event, ExceptionEvent, RefundEvent};
pub use apply::{Command, Effect, Rejection, Transition};
pub use cancellation::{Cancellation, Canceller};
pub use resolution::{
    Acceptance, Assignment, NOTE_MAX_CHARS, Refund, RefundCalculator, RefundDue, RefundPlan, Resolution, ResolutionKind,
};
pub use restart::{RESTART_OF, RESTART_WINDOW, RestartRejection};
pub use totals::{DispositionTotals, LISTED_TRANSFERS_MAX, SHOWN_MEMO_MAX_CHARS, Totals, shown_memo};
pub use view::Exception;

use crate::{
    account::AccountName,
    fields::{self, Metadata, UrlRule, Violation},
    ids::{MerchantId, PaymentId, SlugToken},
    ledger::{ChainPosition, TxId},
    money::{Currency, FeePercent, HbdPrice, HivePrice, Money, usd_cents},
    mutant,
    time::Timestamp,
    x402::PayerProof,
};

/// The state of a payment. The last four are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Waiting for payment.
    Pending,
    /// A signed transaction was broadcast and its outcome is not known yet.
    Processing,
    /// Paid.
    Completed,
    /// The claimed transaction expired without being included in a block.
    Failed,
    /// The customer or the merchant cancelled it.
    UserCancelled,
    /// It expired.
    SystemCancelled,
}

impl State {
    /// Every state, in the order of the interface.
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::Processing, Self::Completed, Self::Failed, Self::UserCancelled, Self::SystemCancelled];

    /// Returns the wire name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Processing => "processing",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::UserCancelled => "user_cancelled",
            Self::SystemCancelled => "system_cancelled",
        }
    }

    /// Parses the wire name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Returns whether no command leaves this state.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        !matches!(self, Self::Pending | Self::Processing)
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The stored snapshot of a payment session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    /// The id; public, because it is part of the memo.
    pub id: PaymentId,
    /// The merchant.
    pub merchant: MerchantId,
    /// The version, incremented by every write; used for optimistic concurrency control.
    pub version: u64,
    /// The state.
    pub state: State,
    /// The previous state.
    pub previous_state: Option<State>,
    /// The sequence number of its last event; 1 at creation. Receivers ignore events with a lower sequence than the
    /// last received.
    pub sequence: u32,
    /// The secret token of its checkout URL.
    pub slug: SlugToken,
    /// The requested amount.
    pub amount: Money,
    /// Fee and price, fixed at creation.
    pub quote: Quote,
    /// The receiving account, fixed at creation, so that a later change of the merchant's account does not affect it.
    pub pay_to: AccountName,
    /// The description shown to the customer.
    pub description: String,
    /// The merchant's metadata.
    pub metadata: Metadata,
    /// The URL for the customer after payment.
    pub redirect_url: Option<String>,
    /// The URL for the customer after cancellation.
    pub cancel_url: Option<String>,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// The last block time that counts as in time, before the grace period.
    pub expires_at: Timestamp,
    /// The grace period after `expires_at`.
    pub grace: Duration,
    /// When it completed.
    pub completed_at: Option<Timestamp>,
    /// Whether it uses real money; false on a development ledger.
    pub livemode: bool,
    /// The listed transfers in order of detection: those of a claim, those that completed the payment and the newest
    /// others, at most [`LISTED_TRANSFERS_MAX`]. Their memos are truncated for display.
    pub transfers: Vec<Credit>,
    /// Totals of the transfers that are not listed; `None` if all are listed.
    pub unlisted: Option<Box<Totals>>,
    /// The claim of a signed transaction, until its outcome is final.
    pub claim: Option<Arc<Claim>>,
    /// The transaction that completed it.
    pub paid_by: Option<TxId>,
    /// The request to cancel it.
    pub cancellation: Option<Cancellation>,
    /// When its checkout page reported an opened wallet or a transaction id for the first time.
    pub wallet_opened_at: Option<Timestamp>,
    /// Whether the transaction that completed it was removed from the chain.
    pub is_reversed: bool,
    /// The merchant's decision about the exceptions.
    pub resolution: Option<Resolution>,
    /// The number of transfers at the last decision.
    pub decided_transfers: u64,
    /// The scope of the last acceptance; it remains in effect when new exceptions arise.
    pub accepted: Option<Acceptance>,
    /// Refunds in order of detection.
    pub refunds: Vec<Refund>,
    /// Whether it pays an invoice of the operator; such a payment is not a sale.
    pub is_invoice: bool,
}

/// Fee and price, fixed at creation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quote {
    /// The service's fee, smallest units of the payment's currency.
    pub fee_units: u64,
    /// How the fee is collected.
    pub fee_mode: FeeMode,
    /// The value of the amount, US cents.
    pub usd_cents: u64,
    /// The prices used for `usd_cents`; `None` for HBD at its peg.
    pub rate: Option<Rate>,
}

/// Prices in US dollars and when they were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// The witnesses' price of HIVE.
    pub price: HivePrice,
    /// The price of HBD on the internal market, if known; otherwise HBD counts as one US dollar.
    pub hbd: Option<HbdPrice>,
    /// When they were read from the ledger.
    pub at: Timestamp,
}

/// How the service's fee is collected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeeMode {
    /// Billed monthly; a payment is one transfer (F1).
    Invoice,
    /// Collected with the payment as a second transfer to this account (F2).
    Split {
        /// The account that collects fees.
        account: AccountName,
    },
}

/// The finality of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finality {
    /// A fork removed its block.
    Orphaned,
    /// In a reversible block, or accepted by a node.
    Reversible,
    /// In an irreversible block.
    Irreversible,
}

/// The disposition of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// Counts toward the amount.
    Counted,
    /// Received after the payment had completed.
    Surplus,
    /// The block is later than the deadline.
    Late,
    /// The block is later than the cutoff of a cancellation request.
    AfterCancel,
    /// Received after the payment had failed.
    AfterFailure,
    /// In the other currency.
    WrongCurrency,
    /// Sent by the receiving account itself.
    SelfTransfer,
    /// The transfer of the fee to the fee account.
    Fee,
}

impl Disposition {
    /// Every disposition, in the order of their totals.
    pub const ALL: [Self; 8] = [
        Self::Counted,
        Self::Surplus,
        Self::Late,
        Self::AfterCancel,
        Self::AfterFailure,
        Self::WrongCurrency,
        Self::SelfTransfer,
        Self::Fee,
    ];

    /// Returns the wire name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counted => "counted",
            Self::Surplus => "surplus",
            Self::Late => "late",
            Self::AfterCancel => "after_cancel",
            Self::AfterFailure => "after_failure",
            Self::WrongCurrency => "wrong_currency",
            Self::SelfTransfer => "self",
            Self::Fee => "fee",
        }
    }
}

/// How a transfer was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// Sent by the payer's wallet and found by the scanner.
    Wallet,
    /// Submitted by an agent as a signed transaction.
    X402,
    /// Assigned manually by the merchant.
    Manual,
}

/// A transfer credited to a payment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credit {
    /// The sequence number among the payment's transfers in order of detection, from 1.
    pub seq: u64,
    /// The transaction that contains it.
    pub tx_id: TxId,
    /// The operation's index in its transaction.
    pub op_in_tx: u32,
    /// The block it was last seen in; `None` while it is only accepted by a node.
    pub block: Option<CreditBlock>,
    /// The sender.
    pub from: AccountName,
    /// The recipient.
    pub to: AccountName,
    /// The amount.
    pub money: Money,
    /// The memo as stored on the chain.
    pub memo: String,
    /// The finality.
    pub finality: Finality,
    /// The disposition.
    pub disposition: Disposition,
    /// How it was received.
    pub route: Route,
    /// Whether the memo differs from the plain `pos-<id>`.
    pub memo_normalized: bool,
}

/// The block of a credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreditBlock {
    /// The position on the chain.
    pub position: ChainPosition,
    /// The block time.
    pub time: Timestamp,
}

/// The claim of a signed transaction for one payment. It is durable before the transaction is broadcast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The transaction id for the serialization that its signatures verify for; the replay protection key.
    pub tx_id: TxId,
    /// The payer's nonce, unique among the claims of one payee.
    pub nonce: String,
    /// The payer's `payment-identifier`, unique among the claims of one payee.
    pub identifier: Option<String>,
    /// Recognizes the payer when it presents the payment again.
    pub proof: PayerProof,
    /// The payer.
    pub payer: AccountName,
    /// The verified transfers.
    pub transfers: Vec<ClaimedTransfer>,
    /// The signed transaction as JSON, ready to be broadcast again.
    pub signed_json: String,
    /// The expiration of the transaction.
    pub expiration: Timestamp,
    /// When it was claimed.
    pub claimed_at: Timestamp,
    /// The finality that completes the payment.
    pub finality: ClaimFinality,
}

/// One transfer of a claimed transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedTransfer {
    /// The operation's index in the transaction.
    pub op_in_tx: u32,
    /// The recipient.
    pub to: AccountName,
    /// The amount.
    pub money: Money,
    /// The memo.
    pub memo: String,
}

/// The finality that completes an x402 payment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimFinality {
    /// Accepted by a node.
    Accepted,
    /// In a block.
    InBlock,
    /// In an irreversible block.
    Irreversible,
}

/// A validated payment request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// The amount.
    pub amount: Money,
    /// The description.
    pub description: String,
    /// The metadata.
    pub metadata: Metadata,
    /// The URL for the customer after payment.
    pub redirect_url: Option<String>,
    /// The URL for the customer after cancellation.
    pub cancel_url: Option<String>,
    /// The lifetime; `None` for the default.
    pub lifetime: Option<Duration>,
}

/// An unvalidated payment request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawDraft {
    /// The amount, smallest units.
    pub amount_units: u64,
    /// The currency.
    pub currency: Currency,
    /// See [`Draft::description`].
    pub description: String,
    /// See [`Draft::metadata`].
    pub metadata: Metadata,
    /// See [`Draft::redirect_url`].
    pub redirect_url: Option<String>,
    /// See [`Draft::cancel_url`].
    pub cancel_url: Option<String>,
    /// See [`Draft::lifetime`].
    pub expires_in_seconds: Option<u64>,
}

impl Draft {
    /// Validates the input of a caller.
    ///
    /// # Errors
    /// Every invalid field.
    pub fn check(raw: RawDraft) -> Result<Self, Vec<Violation>> {
        let redirect = |field: &str, url: &Option<String>| match url {
            Some(url) => fields::url(field, url, UrlRule::Redirect),
            None => Ok(()),
        };
        let in_range = |seconds| fields::LIFETIME_SECONDS.contains(&seconds);
        let description = fields::text("description", &raw.description, fields::DESCRIPTION_MAX_CHARS);
        let checks = [
            Money::requested(raw.amount_units, raw.currency).map(drop).map_err(|e| Violation::new("amount", e)),
            description.as_ref().map(drop).map_err(Violation::clone),
            fields::metadata(&raw.metadata),
            redirect("redirectUrl", &raw.redirect_url),
            redirect("cancelUrl", &raw.cancel_url),
            if raw.expires_in_seconds.is_none_or(in_range) {
                Ok(())
            } else {
                Err(Violation::new("expiresInSeconds", "must be between 60 and 86400"))
            },
        ];
        let violations: Vec<_> = checks.into_iter().filter_map(Result::err).collect();
        let Some(description) = description.ok().filter(|_| violations.is_empty()) else { return Err(violations) };
        Ok(Self {
            amount: Money::new(raw.amount_units, raw.currency),
            description,
            metadata: raw.metadata,
            redirect_url: raw.redirect_url,
            cancel_url: raw.cancel_url,
            lifetime: raw.expires_in_seconds.map(Duration::from_secs),
        })
    }
}

/// The terms that the service adds to a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// The merchant.
    pub merchant: MerchantId,
    /// The receiving account.
    pub pay_to: AccountName,
    /// The fee percentage.
    pub fee_percent: FeePercent,
    /// How the fee is collected.
    pub fee_mode: FeeMode,
    /// The current prices.
    pub rate: Option<Rate>,
    /// The default lifetime.
    pub default_lifetime: Duration,
    /// The grace period after the expiry.
    pub grace: Duration,
    /// Whether it uses real money.
    pub livemode: bool,
}

/// A payment in HIVE requires a price, and none is known yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no price of HIVE is known yet")]
pub struct NoRate;

impl Payment {
    /// Opens a payment session.
    ///
    /// # Errors
    /// [`NoRate`] for an amount in HIVE before a price was read.
    pub fn open(draft: Draft, terms: Terms, id: PaymentId, slug: SlugToken, now: Timestamp) -> Result<Self, NoRate> {
        let amount = draft.amount;
        let rate = match amount.currency {
            Currency::Hive => terms.rate.map(|rate| Rate { hbd: None, ..rate }),
            Currency::Hbd => terms.rate.filter(|rate| rate.hbd.is_some()),
        };
        let usd_cents = usd_cents(amount, rate.map(|rate| rate.price), rate.and_then(|rate| rate.hbd)).ok_or(NoRate)?;
        let fee_units = terms.fee_percent.fee_of(amount.units);
        let fee_mode = match terms.fee_mode {
            FeeMode::Split { account } if fee_units > 0 && fee_units < amount.units && account != terms.pay_to => {
                FeeMode::Split { account }
            }
            // There is nothing to split.
            _ => FeeMode::Invoice,
        };
        Ok(Self {
            id,
            merchant: terms.merchant,
            version: 1,
            state: State::Pending,
            previous_state: None,
            sequence: 1,
            slug,
            amount,
            quote: Quote { fee_units, fee_mode, usd_cents, rate },
            pay_to: terms.pay_to,
            description: draft.description,
            metadata: draft.metadata,
            redirect_url: draft.redirect_url,
            cancel_url: draft.cancel_url,
            created_at: now,
            updated_at: now,
            expires_at: now
                + draft.lifetime.filter(|_| !mutant!("ordered-lifetime-ignored")).unwrap_or(terms.default_lifetime),
            grace: if mutant!("grace-not-kept") { Duration::ZERO } else { terms.grace },
            completed_at: None,
            livemode: terms.livemode,
            transfers: Vec::new(),
            unlisted: None,
            claim: None,
            paid_by: None,
            cancellation: None,
            wallet_opened_at: None,
            is_reversed: false,
            resolution: None,
            decided_transfers: 0,
            accepted: None,
            refunds: Vec::new(),
            is_invoice: false,
        })
    }
}
