//! Checks of an x402 payment in order of precedence: cheap and local checks first.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{Reason, Refused, Version};
use crate::{
    account::AccountName,
    hive::{
        Asset, Authority, Authorized, ChainId, Denied, Operation, Pack, Refusal, Role, Transaction, Transfer, check,
    },
    ids::PaymentId,
    ledger::{MEMO_PREFIX, MemoMatch, TxId, match_fee_memo, match_memo, memo_of},
    money::{Currency, Money},
    mutant,
    payment::{ClaimedTransfer, FeeMode, Payment},
    time::Timestamp,
};

/// Minimum time until the expiration: the next block must be in time.
const LEAST_TIME_LEFT: Duration = Duration::from_secs(3);
/// Maximum signatures of a transaction: the maximum number of members of an authority. Each requires a key recovery.
pub(super) const MAX_SIGNATURES: usize = 40;
/// The prefix of memos with the payload's nonce.
const NONCE_MEMO: &str = "x402:";

/// The memos that are accepted for a payment target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoRule {
    /// `pos-<this session>`, or `x402:<nonce>`.
    Session(PaymentId),
    /// Any memo without a session id; an `x402:` memo must contain the nonce.
    Requirements,
}

/// The expected transfers of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expected {
    /// The payee.
    pub pay_to: AccountName,
    /// The amount for the payee.
    pub net: Money,
    /// The fee account and the fee in smallest units, if the fee is split.
    pub fee: Option<(AccountName, u64)>,
    /// The rule for the memo.
    pub memo: MemoRule,
}

impl Expected {
    /// Returns the expected transfers of a session.
    #[must_use]
    pub fn of_session(payment: &Payment) -> Self {
        let (net, fee) = match &payment.quote.fee_mode {
            FeeMode::Invoice => (payment.amount.units, None),
            FeeMode::Split { account } => (payment.net_units(), Some((*account, payment.quote.fee_units))),
        };
        Self {
            pay_to: payment.pay_to,
            net: Money::new(net, payment.amount.currency),
            fee,
            memo: MemoRule::Session(payment.id),
        }
    }
}

/// A transaction that passed the local checks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckedPayment {
    /// The payer.
    pub payer: AccountName,
    /// The transfers, in order.
    pub transfers: Vec<ClaimedTransfer>,
}

impl Expected {
    /// Runs the local checks: operations, sender, recipients, currency, amount, memo, expiration. A refusal does not
    /// name the payer, because no signature is verified yet. `now` is the later of the head block's time and the wall
    /// clock.
    ///
    /// # Errors
    /// [`Refused`] of the first check that fails.
    pub fn check(
        &self,
        transaction: &Transaction,
        version: Version,
        nonce: &str,
        now: Timestamp,
        max_expiration: Duration,
    ) -> Result<CheckedPayment, Refused> {
        let transfers = self.check_operations(transaction)?;
        let payer = check_sender(&transfers)?;
        self.check_self_payment(&payer)?;
        let (net, fee) = self.check_recipients(&transfers)?;
        self.check_currency(&transfers)?;
        self.check_amounts(net, fee, version)?;
        self.check_memo(net, nonce)?;
        if let Some(fee) = fee {
            self.check_fee_memo(fee)?;
        }
        check_broadcastable(transaction)?;
        check_expiration(transaction.expiration, now, max_expiration)?;
        let claimed = transfers.iter().zip(0..).map(|(transfer, op_in_tx)| {
            Ok(ClaimedTransfer {
                op_in_tx,
                to: account(&transfer.to)?,
                money: transfer.amount.money().ok_or_else(operations)?,
                memo: transfer.memo.clone(),
            })
        });
        Ok(CheckedPayment { transfers: claimed.collect::<Result<_, Refused>>()?, payer })
    }

    fn check_operations<'a>(&self, transaction: &'a Transaction) -> Result<Vec<&'a Transfer>, Refused> {
        let wanted = if self.fee.is_some() { 2 } else { 1 };
        let transfers: Vec<_> = transaction
            .operations
            .iter()
            .filter_map(|operation| match operation {
                Operation::Transfer(transfer) => Some(transfer),
                _ => None,
            })
            .collect();
        let given = if mutant!("extra-transfers-are-accepted") {
            transfers.len().min(wanted)
        } else {
            transaction.operations.len()
        };
        if given != wanted || transfers.len() < wanted {
            let message = format!("exactly {wanted} transfer operation(s) and nothing else are required");
            return Err(Refused::new(Reason::Operations, message));
        }
        Ok(transfers)
    }

    fn check_self_payment(&self, payer: &AccountName) -> Result<(), Refused> {
        let collects = self.fee.as_ref().is_some_and(|(account, _)| account == payer);
        if *payer == self.pay_to || collects {
            return Err(Refused::new(Reason::SelfPayment, "the payer is the one to be paid"));
        }
        Ok(())
    }

    /// Matches the transfers as a set: one for each recipient, in any order.
    fn check_recipients<'a>(
        &self,
        transfers: &[&'a Transfer],
    ) -> Result<(&'a Transfer, Option<&'a Transfer>), Refused> {
        let one_to = |account: &AccountName| {
            let mut to = transfers.iter().filter(|transfer| transfer.to == account.as_str());
            match (to.next(), to.next()) {
                (Some(transfer), None) => Ok(*transfer),
                _ => Err(Refused::new(
                    Reason::RecipientMismatch,
                    format_args!("exactly one transfer must go to {account}"),
                )),
            }
        };
        let net = one_to(&self.pay_to)?;
        let fee = self.fee.as_ref().map(|(account, _)| one_to(account)).transpose()?;
        Ok((net, fee))
    }

    fn check_currency(&self, transfers: &[&Transfer]) -> Result<(), Refused> {
        let wanted = self.net.currency;
        let symbol = Asset::from(self.net).symbol;
        let same = |transfer: &&Transfer| {
            let is_fee = mutant!("currency-of-fee-not-checked") && transfer.to != self.pay_to.as_str();
            is_fee || transfer.amount.symbol == symbol
        };
        if transfers.iter().all(same) || mutant!("currency-of-agents-not-checked") {
            Ok(())
        } else {
            Err(Refused::new(Reason::AssetMismatch, format_args!("every transfer must be in {wanted}")))
        }
    }

    fn check_amounts(&self, net: &Transfer, fee: Option<&Transfer>, version: Version) -> Result<(), Refused> {
        let check = |transfer: &Transfer, wanted: u64| {
            let given = transfer.amount.money().map_or(0, |money| money.units);
            let wanted_text = Money::new(wanted, self.net.currency);
            match version {
                _ if given < wanted && !mutant!("amount-not-checked") => {
                    Err(Refused::new(Reason::Amount, format_args!("{} must get {wanted_text}", transfer.to)))
                }
                Version::V2 if given != wanted => Err(Refused::new(
                    Reason::AmountMismatch,
                    format_args!("{} must get exactly {wanted_text}", transfer.to),
                )),
                _ => Ok(()),
            }
        };
        check(net, self.net.units)?;
        match (fee, &self.fee) {
            (Some(transfer), Some((_, units))) if !mutant!("fee-amount-not-checked") => check(transfer, *units),
            _ => Ok(()),
        }
    }

    fn check_memo(&self, net: &Transfer, nonce: &str) -> Result<(), Refused> {
        let memo = net.memo.as_str();
        let holds_nonce = memo.strip_prefix(NONCE_MEMO).map(|held| held == nonce);
        let fits = match self.memo {
            MemoRule::Session(session) => {
                memo == memo_of(session) || (holds_nonce == Some(true) && is_hex_nonce(nonce))
            }
            MemoRule::Requirements => holds_nonce != Some(false) && !names_a_session(memo),
        };
        if fits || mutant!("memo-not-checked") {
            return Ok(());
        }
        let wanted = match self.memo {
            MemoRule::Session(session) => format!("the memo must be {} (or x402:<nonce>)", memo_of(session)),
            MemoRule::Requirements => "the memo names something else".to_owned(),
        };
        Err(Refused::new(Reason::MemoMismatch, wanted))
    }

    /// The memo of the fee must contain the id of this session and no other; additional text is allowed.
    fn check_fee_memo(&self, fee: &Transfer) -> Result<(), Refused> {
        let MemoRule::Session(session) = self.memo else { return Ok(()) };
        if mutant!("fee-memo-not-checked") {
            return Ok(());
        }
        match match_fee_memo(&fee.memo) {
            MemoMatch::Exact(named) | MemoMatch::Normalized(named) if named == session => Ok(()),
            _ => Err(Refused::new(
                Reason::MemoMismatch,
                format_args!("the memo of the fee must name {session}, such as fee-{session}"),
            )),
        }
    }
}

/// Returns whether the memo contains the session id. Without it the transfer could pay any session.
#[must_use]
pub fn is_bound(expected: &Expected, checked: &CheckedPayment) -> bool {
    let MemoRule::Session(session) = expected.memo else { return false };
    checked.transfers.iter().any(|transfer| transfer.to == expected.pay_to && transfer.memo == memo_of(session))
}

/// Returns whether a memo contains, or could be matched to, a session id. Encrypted memos are never matched.
fn names_a_session(memo: &str) -> bool {
    memo.starts_with(MEMO_PREFIX) || !matches!(match_memo(memo), MemoMatch::None | MemoMatch::Encrypted)
}

fn is_hex_nonce(nonce: &str) -> bool {
    nonce.len() == 32 && nonce.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn check_sender(transfers: &[&Transfer]) -> Result<AccountName, Refused> {
    let from = transfers.first().map(|transfer| &transfer.from).ok_or_else(operations)?;
    let payer = account(from)?;
    if transfers.iter().all(|transfer| transfer.from == *from) {
        Ok(payer)
    } else {
        Err(Refused::new(Reason::SenderMismatch, "both transfers must come from one account"))
    }
}

/// Rejects transactions that no node would accept before they are claimed: a memo that is too long, or that hived would
/// parse differently from what was signed.
fn check_broadcastable(transaction: &Transaction) -> Result<(), Refused> {
    transaction.validate().map_err(|error| Refused::new(Reason::Operations, error))?;
    if transaction.survives_json() {
        Ok(())
    } else {
        Err(Refused::new(Reason::MemoMismatch, "a memo has control characters that the chain cannot read from JSON"))
    }
}

fn check_expiration(expiration: Timestamp, now: Timestamp, max_expiration: Duration) -> Result<(), Refused> {
    let least = if mutant!("two-minute-expirations-are-refused") { Duration::from_secs(120) } else { LEAST_TIME_LEFT };
    let nearest =
        if mutant!("nearest-expiration-refused") { now + least + Duration::from_secs(1) } else { now + least };
    if expiration <= nearest {
        return Err(Refused::new(
            Reason::PaymentExpired,
            format_args!("the transaction expires at {expiration}, too soon"),
        ));
    }
    if expiration > now + max_expiration && !mutant!("far-expirations-are-accepted") {
        let message = format!("the transaction expires more than {} s from now", max_expiration.as_secs());
        return Err(Refused::new(Reason::ExpirationTooFar, message));
    }
    Ok(())
}

fn account(name: &str) -> Result<AccountName, Refused> {
    AccountName::parse(name).map_err(|error| Refused::new(Reason::Operations, error))
}

fn operations() -> Refused {
    Refused::new(Reason::Operations, "a transfer of HIVE or HBD is required")
}

/// Verifies the signatures against the payer's authority: for the legacy digest first, because wallets sign it, then
/// for the HF26 digest.
///
/// # Errors
/// [`Denied::unknown`] accounts to fetch, inside `Err(Ok(_))`; a [`Refused`] inside `Err(Err(_))`.
pub fn authorize(
    transaction: &Transaction,
    payer: &AccountName,
    chain: ChainId,
    accounts: &BTreeMap<AccountName, Authority>,
) -> Result<Authorized, Result<Denied, Refused>> {
    if transaction.signatures.len() > MAX_SIGNATURES {
        let message = format!("{} signatures; at most {MAX_SIGNATURES} are read", transaction.signatures.len());
        return Err(Err(Refused::new(Reason::Signature, message)));
    }
    let required = BTreeSet::from([(Role::Active, *payer)]);
    let attempt = |pack| -> Result<Authorized, Refusal> {
        let keys = transaction.recover(chain, pack)?;
        check(&required, accounts, &keys)?;
        Ok(Authorized { pack, tx_id: transaction.id(pack), keys })
    };
    // Without signatures both serializations are valid, and the chain uses the one it tries first.
    let order = if transaction.signatures.is_empty() { [Pack::Hf26, Pack::Legacy] } else { [Pack::Legacy, Pack::Hf26] };
    let first = match attempt(order[0]) {
        Ok(authorized) => return Ok(authorized),
        Err(refusal) => refusal,
    };
    let second = match attempt(order[1]) {
        Ok(authorized) => return Ok(authorized),
        Err(refusal) => refusal,
    };
    match (first, second) {
        (Refusal::Authority(first), Refusal::Authority(second))
            if !first.unknown.is_empty() || !second.unknown.is_empty() =>
        {
            let unknown = first.unknown.union(&second.unknown).cloned().collect();
            Err(Ok(Denied { unknown, ..second }))
        }
        (Refusal::Authority(denied), _) => Err(Err(Refused::new(Reason::Authority, denied))),
        (first, _) => Err(Err(Refused::new(Reason::Signature, first))),
    }
}

/// Checks the payer's balance. Only the chain decides definitively.
///
/// # Errors
/// [`Reason::InsufficientFunds`].
pub fn check_balance(checked: &CheckedPayment, balances: &[Money]) -> Result<(), Refused> {
    for currency in Currency::ALL {
        let sent = checked.transfers.iter().filter(|transfer| transfer.money.currency == currency);
        let needed = sent.fold(0u64, |sum, transfer| sum.saturating_add(transfer.money.units));
        let has = balances.iter().find(|balance| balance.currency == currency).map_or(0, |balance| balance.units);
        if needed > has && !mutant!("balance-not-checked") {
            let (needed, has) = (Money::new(needed, currency), Money::new(has, currency));
            let message = format!("{} has {has} and needs {needed}", checked.payer);
            return Err(Refused::new(Reason::InsufficientFunds, message).by(&checked.payer));
        }
    }
    Ok(())
}

/// Returns the two possible ids of a transaction; the id is the one whose serialization its signatures verify for.
#[must_use]
pub fn candidate_ids(transaction: &Transaction) -> [TxId; 2] {
    [transaction.id(Pack::Legacy), transaction.id(Pack::Hf26)]
}
