//! A payment session: its states, what is kept of it, and how it opens.

mod announce;
mod apply;
mod cancellation;
mod resolution;
mod totals;
mod view;

#[cfg(test)]
mod table_tests;

use std::{sync::Arc, time::Duration};

pub use announce::{Event, ExceptionEvent};
pub use apply::{Command, Effect, Rejection, Transition};
pub use cancellation::{Cancellation, Canceller};
pub use resolution::{
    Acceptance, Assignment, NOTE_MAX_CHARS, Refund, RefundCalculator, RefundDue, RefundPlan, Resolution, ResolutionKind,
};
pub use totals::{DispositionTotals, LISTED_TRANSFERS_MAX, SHOWN_MEMO_MAX_CHARS, Totals, shown_memo};
pub use view::Exception;

use crate::{
    account::AccountName,
    fields::{self, Metadata, UrlRule, Violation},
    ids::{MerchantId, PaymentId, SlugToken},
    ledger::{ChainPosition, TxId},
    money::{Currency, FeePercent, HbdPrice, HivePrice, Money, usd_cents},
    time::Timestamp,
    x402::PayerProof,
};

/// Where a session stands. The last four never change again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// Waiting for money.
    Pending,
    /// A signed transaction was handed to the network and its outcome is not known yet.
    Processing,
    /// Paid.
    Completed,
    /// The one transaction that was to pay it did not happen.
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

/// A payment session as it is stored: one snapshot holds everything that is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payment {
    /// Its id; public, for it stands in the memo.
    pub id: PaymentId,
    /// Whose it is.
    pub merchant: MerchantId,
    /// How often it was written; what a writer must have read to replace it.
    pub version: u64,
    /// Where it stands.
    pub state: State,
    /// Where it stood before.
    pub previous_state: Option<State>,
    /// Counts its announced states; creation is 1. Receivers drop what is older than what they have.
    pub sequence: u32,
    /// The secret half of its checkout address.
    pub slug: SlugToken,
    /// What is asked for.
    pub amount: Money,
    /// Fee and price, fixed at creation.
    pub quote: Quote,
    /// Where the money goes, fixed at creation: a later change of the merchant's account orphans nobody.
    pub pay_to: AccountName,
    /// What the customer reads.
    pub description: String,
    /// What the merchant attached.
    pub metadata: Metadata,
    /// Where the customer goes after paying.
    pub redirect_url: Option<String>,
    /// Where the customer goes after cancelling.
    pub cancel_url: Option<String>,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// The last block time that is on time.
    pub expires_at: Timestamp,
    /// How much later than `expires_at` a block may still be.
    pub grace: Duration,
    /// When it completed.
    pub completed_at: Option<Timestamp>,
    /// Whether it is real money: false on a development ledger.
    pub livemode: bool,
    /// The transfers it lists, in the order we learnt of them: those of a claim, those that completed it and the newest
    /// others, at most [`LISTED_TRANSFERS_MAX`] together. Their memos are cut to what is shown.
    pub transfers: Vec<Credit>,
    /// What the transfers come to that it has and does not list; none where it lists all.
    pub unlisted: Option<Box<Totals>>,
    /// The signed transaction it has been claimed for, until the chain has decided its fate for good.
    pub claim: Option<Arc<Claim>>,
    /// The transaction that completed it.
    pub paid_by: Option<TxId>,
    /// The request to cancel it.
    pub cancellation: Option<Cancellation>,
    /// When its checkout page reported an opened wallet or a transaction id for the first time.
    pub wallet_opened_at: Option<Timestamp>,
    /// Whether the transaction that completed it has vanished from the chain since.
    pub is_reversed: bool,
    /// What the merchant decided about its exceptions.
    pub resolution: Option<Resolution>,
    /// How many transfers it had when its exceptions were last decided about.
    pub decided_transfers: u64,
    /// What the merchant accepted as it came; it stays accepted when something new has to be decided about.
    pub accepted: Option<Acceptance>,
    /// What was sent back to its payers, in the order we learnt of it.
    pub refunds: Vec<Refund>,
    /// Whether it collects a merchant's fees for the operator: such a session is no sale.
    pub is_invoice: bool,
}

/// What was fixed at creation about fee and price.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quote {
    /// The service's fee, smallest units of the payment's currency.
    pub fee_units: u64,
    /// How the fee is taken.
    pub fee_mode: FeeMode,
    /// The amount's worth in US cents.
    pub usd_cents: u64,
    /// The prices `usd_cents` was made with, and when they were read; none for HBD at its peg.
    pub rate: Option<Rate>,
}

/// Prices in US dollars and when they were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// The witnesses' price of HIVE.
    pub price: HivePrice,
    /// The price of HBD on the internal market, where there is one; without it HBD counts as one dollar.
    pub hbd: Option<HbdPrice>,
    /// When they were read from the ledger.
    pub at: Timestamp,
}

/// How the service's fee is taken.
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

/// How sure a transfer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finality {
    /// It was seen in a block that a fork has since removed.
    Orphaned,
    /// It is in a block that can still change, or accepted by a node and on its way into one.
    Reversible,
    /// It is in a block that cannot change.
    Irreversible,
}

/// What a transfer does for the session it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// It counts toward the amount.
    Counted,
    /// It came when the session was already paid.
    Surplus,
    /// Its block is later than the session's expiry.
    Late,
    /// Its block is later than the cutoff of a request to cancel.
    AfterCancel,
    /// It came after the session failed.
    AfterFailure,
    /// It is in the other currency.
    WrongCurrency,
    /// The merchant paid itself.
    SelfTransfer,
    /// It is the fee's own transfer to the fee account.
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

    /// Returns its word.
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

/// How a transfer came to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// The payer's wallet sent it; the scanner found it.
    Wallet,
    /// An agent handed it to us signed.
    X402,
    /// The merchant assigned it by hand.
    Manual,
}

/// A transfer attached to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credit {
    /// Its place in the order we learnt of the payment's transfers, from 1.
    pub seq: u64,
    /// The transaction that holds it.
    pub tx_id: TxId,
    /// The operation's index in its transaction.
    pub op_in_tx: u32,
    /// The block it was last seen in; none while it is only accepted by a node.
    pub block: Option<CreditBlock>,
    /// Who paid.
    pub from: AccountName,
    /// Who received.
    pub to: AccountName,
    /// How much.
    pub money: Money,
    /// The memo, as the chain keeps it.
    pub memo: String,
    /// How sure it is.
    pub finality: Finality,
    /// What it does for the session.
    pub disposition: Disposition,
    /// How it came.
    pub route: Route,
    /// Whether the memo was more than the plain `pos-<id>`.
    pub memo_normalized: bool,
}

/// The block of a credit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CreditBlock {
    /// Where in the chain.
    pub position: ChainPosition,
    /// The block's time.
    pub time: Timestamp,
}

/// A signed transaction that one session, and no other, may be paid by. It is durable before it is broadcast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The id under the packing its signatures verify for; the true replay key.
    pub tx_id: TxId,
    /// The payer's nonce, unique among the claims of one payee.
    pub nonce: String,
    /// The payer's own name for the payment, unique among the claims of one payee.
    pub identifier: Option<String>,
    /// What its payer is recognized by when it shows the payment again.
    pub proof: PayerProof,
    /// Who signed.
    pub payer: AccountName,
    /// The transfers it holds, as verified.
    pub transfers: Vec<ClaimedTransfer>,
    /// The signed transaction as JSON, ready to be broadcast again.
    pub signed_json: String,
    /// The chain takes it until then.
    pub expiration: Timestamp,
    /// When it was claimed.
    pub claimed_at: Timestamp,
    /// What completes the session.
    pub finality: ClaimFinality,
}

/// One transfer of a claimed transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimedTransfer {
    /// The operation's index in the transaction.
    pub op_in_tx: u32,
    /// Who receives.
    pub to: AccountName,
    /// How much.
    pub money: Money,
    /// The memo.
    pub memo: String,
}

/// The evidence an x402 payment completes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimFinality {
    /// A node took the transaction.
    Accepted,
    /// It is in a block.
    InBlock,
    /// It is in a block that cannot change.
    Irreversible,
}

/// What a merchant asks for, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draft {
    /// How much.
    pub amount: Money,
    /// What for.
    pub description: String,
    /// Anything the merchant wants back.
    pub metadata: Metadata,
    /// Where to after paying.
    pub redirect_url: Option<String>,
    /// Where to after cancelling.
    pub cancel_url: Option<String>,
    /// How long the session lives; none for the service's default.
    pub lifetime: Option<Duration>,
}

/// What a merchant asks for, unchecked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawDraft {
    /// Smallest units.
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

/// What the service adds to a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    /// Whose session it will be.
    pub merchant: MerchantId,
    /// Where the money goes.
    pub pay_to: AccountName,
    /// The fee.
    pub fee_percent: FeePercent,
    /// How the fee is taken.
    pub fee_mode: FeeMode,
    /// The newest price of HIVE.
    pub rate: Option<Rate>,
    /// How long a session lives where the draft does not say.
    pub default_lifetime: Duration,
    /// How much later than the expiry a block may still be.
    pub grace: Duration,
    /// Whether it is real money.
    pub livemode: bool,
}

/// A HIVE session needs a price in dollars, and none was ever read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no price of HIVE is known yet")]
pub struct NoRate;

impl Payment {
    /// Opens a session.
    ///
    /// # Errors
    /// [`NoRate`] for a HIVE amount before any price was read.
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
            // Nothing to split: one transfer says it all.
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
            expires_at: now + draft.lifetime.unwrap_or(terms.default_lifetime),
            grace: terms.grace,
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
