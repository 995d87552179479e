//! One purchase with a wallet: reserve, sign, submit, record the outcome. A repeated request repeats the stored payment.

use std::{sync::Arc, time::Duration};

use actors::{Presence, environment::Clock as _, system::SystemClock};
use engine::{
    hive::{Pack, PrivateKey},
    money::{Currency, Money},
    wallet::{State, Step},
    x402::MAX_HEADER_BYTES,
};
use reqwest::Client;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::{
    directory::Wallet,
    entry::{Entry, Outcome, Payment, Subject},
    failpoint,
    store::{Proposal, Reservation},
};
use crate::commands::payer::{
    account::check_account,
    exchange::{self, Response, conclude, merge, request_quote},
    failure::Failure,
    key::KeySource,
    ledger::{Ledger, Reached},
    quote::{Quote, Unacceptable, header_value, transaction_json},
    request::Request,
    submission::{self, Submission, Submitted},
};

/// Interval between checks for a decision.
const APPROVAL_POLL: Duration = Duration::from_millis(500);
/// Maximum number of base64 bytes that a signature adds to a payment header.
const SIGNATURE_BYTES: usize = 200;
/// Maximum number of bytes of a response that the ledger stores.
const MAX_RESPONSE_BYTES: usize = 64 * 1024;

/// A request to pay for with a wallet.
pub(in crate::commands) struct Purchase<'a> {
    pub(in crate::commands) wallet: &'a Wallet,
    pub(in crate::commands) request: &'a Request,
    /// A maximum below that of the policy.
    pub(in crate::commands) max: Option<Money>,
    /// Ledger nodes that replace those of the policy.
    pub(in crate::commands) nodes: &'a [String],
    /// A source of the key that replaces that of the policy.
    pub(in crate::commands) key: Option<KeySource>,
    /// Lifetime of the signed transaction.
    pub(in crate::commands) expires_in: Duration,
    /// Whether to show the price without signing.
    pub(in crate::commands) is_dry_run: bool,
    /// Called with progress messages.
    pub(in crate::commands) progress: &'a (dyn Fn(&str) + Sync),
}

/// The result of a reservation.
enum Attempt {
    /// There is a payment to submit.
    Submit(Box<Entry>),
    /// The request needs no payment, or none is permitted.
    Done,
    /// An operator must decide.
    NeedsApproval(u64, engine::wallet::Refusal),
}

impl Purchase<'_> {
    /// Pays, or repeats the payment of an earlier run of the same request.
    ///
    /// # Errors
    /// [`Failure`]; its exit code shows whether money can have moved.
    pub(in crate::commands) async fn run(&self, report: &mut Value) -> Result<(), Failure> {
        report["payer"] = self.wallet.account().as_str().into();
        self.wallet.policy().check_host(self.request.host())?;
        // Without a key nothing is reserved.
        let key = if self.is_dry_run { None } else { Some(self.key()?) };
        let client = exchange::client()?;
        let ledger = self.wallet.ledger(self.nodes, Some(&self.request.url))?;
        if let Some(entry) = self.wallet.store.find(self.request.key()).await?
            && entry.state.counts()
        {
            let entry = self.wallet.look_up(&ledger, entry).await?;
            if entry.state.counts() {
                return self.resume(&client, &ledger, key.as_deref(), entry, report).await;
            }
        }
        let deadline = Instant::now() + self.wallet.file.approval_wait;
        loop {
            match self.attempt(&client, &ledger, key.as_deref(), report).await? {
                Attempt::Done => return Ok(()),
                Attempt::Submit(entry) => return self.resume(&client, &ledger, key.as_deref(), *entry, report).await,
                Attempt::NeedsApproval(id, refusal) => self.await_approval(id, refusal, deadline).await?,
            }
        }
    }

    fn key(&self) -> Result<Arc<PrivateKey>, Failure> {
        Ok(self.key.as_ref().map_or_else(|| self.wallet.key(), |source| source.read().map(Arc::new))?)
    }

    /// Requests the price and reserves it.
    async fn attempt(
        &self,
        client: &Client,
        ledger: &Ledger,
        key: Option<&PrivateKey>,
        report: &mut Value,
    ) -> Result<Attempt, Failure> {
        let quote = match request_quote(client, self.request, &self.currencies()?).await? {
            Response::Quoted(quote) => quote,
            Response::Free(response) => {
                report["status"] = "free".into();
                report["response"] = response;
                return Ok(Attempt::Done);
            }
        };
        merge(report, quote.describe());
        let account = self.wallet.account();
        quote.check(&account, self.max.unwrap_or(quote.total), SystemClock.now())?;
        (self.progress)(&format!("{}: {}", self.request.url, quote.sentence()));
        let Some(key) = key else {
            report["status"] = "offer".into();
            report["policy"] = self.verdict(&quote).await?;
            return Ok(Attempt::Done);
        };
        let Reached { anchor, account: payer, .. } = ledger.reach(account).await?;
        check_account(&payer, key, quote.total)?;
        quote.check_time(anchor.head_time)?;
        let nonce = exchange::new_nonce();
        let transaction = anchor.unsigned(quote.transfers(&account, &nonce), self.expires_in)?;
        let (header, payload) = quote.payload(&transaction, &nonce);
        if header_value(&payload)?.len() + SIGNATURE_BYTES > MAX_HEADER_BYTES {
            return Err(Unacceptable::TooLarge.into());
        }
        let tx_id = transaction.id(Pack::Legacy).to_string();
        let payment = Payment { tx_id, expires_at: transaction.expiration, header: header.to_owned(), payload };
        let proposal = Proposal {
            key: self.request.key(),
            subject: self.subject(&quote),
            spending: quote.spending(),
            payment,
            policy: self.wallet.policy(),
            clock: SystemClock.now(),
            head: anchor.head_time,
        };
        match self.wallet.store.reserve(proposal).await? {
            Reservation::Reserved(entry) | Reservation::Existing(entry) => Ok(Attempt::Submit(entry)),
            Reservation::NeedsApproval(id, refusal) => Ok(Attempt::NeedsApproval(id, refusal)),
            Reservation::Refused(refusal) => Err(refusal.into()),
        }
    }

    /// Returns the currencies to accept, in order.
    fn currencies(&self) -> Result<Vec<Currency>, Failure> {
        let permitted: Vec<Currency> = self.wallet.policy().currencies().collect();
        match self.max {
            Some(max) if !permitted.contains(&max.currency) => {
                Err(engine::wallet::Refusal::Currency(max.currency).into())
            }
            Some(max) => Ok(vec![max.currency]),
            None => Ok(permitted),
        }
    }

    fn subject(&self, quote: &Quote) -> Subject {
        Subject {
            request: self.request.key().to_string(),
            method: self.request.method.to_string(),
            url: self.request.url.to_string(),
            idempotency_key: self.request.idempotency_key().map(str::to_owned),
            description: quote.description.clone(),
            session_id: quote.session.clone(),
        }
    }

    /// Returns the verdict of the policy on a price now, without reserving it.
    async fn verdict(&self, quote: &Quote) -> Result<Value, Failure> {
        let (past, now) = self.wallet.store.counted(SystemClock.now()).await?;
        Ok(match self.wallet.policy().check(&quote.spending(), None, &past, now) {
            Ok(()) => json!({ "permitted": true }),
            Err(refusal) => {
                json!({ "permitted": false, "reason": refusal.as_str(), "message": refusal.to_string() })
            }
        })
    }

    async fn await_approval(
        &self,
        id: u64,
        refusal: engine::wallet::Refusal,
        deadline: Instant,
    ) -> Result<(), Failure> {
        (self.progress)(&format!("waiting for `hivetill wallet approve {id}`: {refusal}"));
        loop {
            match self.wallet.store.entry(id).await?.state {
                State::Approved => return Ok(()),
                State::Denied => return Err(engine::wallet::Refusal::ApprovalDenied.into()),
                _ if Instant::now() + APPROVAL_POLL > deadline => return Err(Failure::Approval { id, refusal }),
                _ => sleep(APPROVAL_POLL).await,
            }
        }
    }

    /// Signs an entry if it is unsigned, submits it, and records the outcome.
    async fn resume(
        &self,
        client: &Client,
        ledger: &Ledger,
        key: Option<&PrivateKey>,
        entry: Entry,
        report: &mut Value,
    ) -> Result<(), Failure> {
        report["entry"] = entry.id.into();
        merge(report, json!({ "amount": entry.describe()["amount"], "payTo": entry.describe()["payTo"] }));
        if entry.state == State::Paid {
            replay(&entry, report);
            return Ok(());
        }
        let Some(key) = key else {
            report["status"] = "offer".into();
            report["state"] = entry.state.as_str().into();
            return Ok(());
        };
        let entry = self.signed(ledger, key, entry).await?;
        let payment = entry.payment.as_ref().ok_or_else(|| self.damaged())?;
        let tx_id = payment.tx_id().map_err(|_| self.damaged())?;
        report["txId"] = tx_id.to_string().into();
        report["expiresAt"] = payment.expires_at.to_string().into();
        (self.progress)(&format!("signed {tx_id}; submitting it"));
        let node = ledger.reach(self.wallet.account()).await?.node;
        let value = header_value(&payment.payload)?;
        let submission = Submission { client, request: self.request, header: &payment.header, value, tx_id };
        let timeout = payment.expires_at.since(SystemClock.now());
        failpoint::reach("submitting");
        let submitted = submission.run(&node, payment.expires_at, timeout, self.progress).await;
        failpoint::reach("answered");
        let entry = self.record(ledger, entry, &submitted).await?;
        failpoint::reach("recorded");
        report["state"] = entry.state.as_str().into();
        conclude(submitted, tx_id, &self.request.url, report)
    }

    /// Returns the entry with a signature: the stored one, or a new one over the stored transaction.
    async fn signed(&self, ledger: &Ledger, key: &PrivateKey, entry: Entry) -> Result<Entry, Failure> {
        if entry.state != State::Reserved {
            return Ok(entry);
        }
        let payment = entry.payment.as_ref().ok_or_else(|| self.damaged())?;
        let mut transaction = payment.transaction().map_err(|_| self.damaged())?;
        transaction.sign(ledger.chain, Pack::Legacy, key);
        failpoint::reach("signing");
        let mut payload = payment.payload.clone();
        payload["payload"]["signedTransaction"] = transaction_json(&transaction);
        let entry = self.wallet.store.sign(entry.id, payload).await?;
        failpoint::reach("signed");
        Ok(entry)
    }

    fn damaged(&self) -> Failure {
        self.wallet.damaged().into()
    }

    async fn record(&self, ledger: &Ledger, entry: Entry, submitted: &Submitted) -> Result<Entry, Failure> {
        let store = &self.wallet.store;
        let outcome = Outcome {
            at: SystemClock.now(),
            reason: None,
            http_status: submitted.http_status,
            receipt: submitted.receipt.clone(),
            response: None,
        };
        let with_reason = |reason: &str| Outcome { reason: Some(reason.to_owned()), ..outcome.clone() };
        match &submitted.outcome {
            submission::Outcome::Paid { response } => {
                let is_small = response.to_string().len() <= MAX_RESPONSE_BYTES;
                let response = Some(response.clone()).filter(|_| is_small);
                Ok(store.conclude(entry.id, Step::Confirm, Outcome { response, ..outcome }).await?)
            }
            submission::Outcome::Settled => {
                Ok(store.conclude(entry.id, Step::FindInBlock, with_reason("duplicate_settlement")).await?)
            }
            submission::Outcome::Unpaid { reason, .. } | submission::Outcome::Unknown { reason } => {
                let entry = store.note(entry.id, with_reason(reason)).await?;
                self.wallet.look_up(ledger, entry).await
            }
            submission::Outcome::NeverSent { why } => Ok(store.note(entry.id, with_reason(why)).await?),
        }
    }
}

/// Reports the stored result of a request that is paid.
fn replay(entry: &Entry, report: &mut Value) {
    let stored = entry.receipt();
    for member in ["txId", "receipt", "response", "httpStatus", "sessionId", "description"] {
        report[member] = stored[member].clone();
    }
    report["status"] = "paid".into();
    report["state"] = entry.state.as_str().into();
    report["replayed"] = true.into();
    report["paidAt"] = stored["outcomeAt"].clone();
}

impl Wallet {
    /// Looks up an open entry whose transaction has expired: it is in a block, or its amount is released.
    pub(in crate::commands) async fn look_up(&self, ledger: &Ledger, entry: Entry) -> Result<Entry, Failure> {
        let Some(payment) = entry.payment.as_ref().filter(|_| entry.state.is_open()) else { return Ok(entry) };
        if payment.expires_at > SystemClock.now() {
            return Ok(entry);
        }
        let tx_id = payment.tx_id().map_err(|_| self.damaged())?;
        let (step, reason) = match ledger.presence(tx_id, payment.expires_at).await? {
            Presence::InBlock => (Step::FindInBlock, "in_block"),
            Presence::Absent => (Step::ProveAbsent, "transaction_expired"),
            Presence::Unknown => return Ok(entry),
        };
        let outcome = Outcome { at: SystemClock.now(), reason: Some(reason.to_owned()), ..Outcome::default() };
        Ok(self.store.conclude(entry.id, step, outcome).await?)
    }
}
