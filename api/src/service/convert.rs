//! Conversions between types of the engine and protobuf messages: records, requests, errors.

use actors::EngineError;
use engine::{
    account::AccountName,
    event_list::CursorError,
    fields::{Metadata, MetadataValue, Violation},
    hive::Network,
    ids::PaymentId,
    ledger::memo_of,
    merchant::{KeyRejection, Merchant},
    money::{Currency, Money},
    ownership::{self, PendingChange, VerificationMethod, VerificationStatus},
    payment::{
        Cancellation, Canceller, Credit, Disposition, Exception, FeeMode, Finality, Payment, Refund, Rejection,
        Resolution, ResolutionKind, RestartRejection, Route, State,
    },
    quota::QuotaExceeded,
    time::Timestamp,
};
use proto::{
    ApiError, Reason,
    v1::{self, PaymentStatusReason, metadata_value::Value},
};
use storage::{DayVolume, ListedMerchant, Volume};

/// Converts an error of the engine.
pub(super) fn error(error: EngineError) -> ApiError {
    match error {
        EngineError::Unauthenticated => Reason::InvalidApiKey.into(),
        EngineError::Forbidden => Reason::ForbiddenMerchant.into(),
        EngineError::AdminOnly => Reason::AdminRequired.into(),
        EngineError::InactiveMerchant => Reason::InactiveMerchant.into(),
        EngineError::OnHold { contact } => {
            let message = format!("this account is on hold: contact {contact} for identity verification");
            ApiError::with_message(Reason::ComplianceHold, message)
        }
        EngineError::Quota(reached @ QuotaExceeded::OpenPayments { .. }) => {
            ApiError::with_message(Reason::TooManyOpenPayments, reached.to_string())
        }
        EngineError::Quota(reached @ QuotaExceeded::StoredBytes { .. }) => {
            ApiError::with_message(Reason::StoredBytesReached, reached.to_string())
        }
        EngineError::Invalid(violations) => invalid(violations),
        EngineError::UnknownAccount(account) => ApiError::new(Reason::UnknownAccount)
            .and_field("hiveAccount", format!("the ledger has no account {account}")),
        EngineError::PaymentNotFound => ApiError::with_message(Reason::NotFound, "no such payment"),
        EngineError::MerchantNotFound => ApiError::with_message(Reason::NotFound, "no such merchant"),
        EngineError::NotProven { account, status } => not_proven(&account, status),
        EngineError::Ownership(rejection) => ownership(&rejection),
        EngineError::RegistrationClosed => Reason::RegistrationClosed.into(),
        EngineError::NoOperator => Reason::BillingNotConfigured.into(),
        EngineError::TransferNotFound => ApiError::with_message(Reason::NotFound, "no such unmatched transfer"),
        EngineError::TransferAssigned(payment) => {
            ApiError::with_message(Reason::TransferAssigned, format!("the transfer is already assigned to {payment}"))
        }
        EngineError::TransferSettled(resource) => transfer_settled(&resource),
        EngineError::DeliveryNotFound => ApiError::with_message(Reason::NotFound, "no such delivery"),
        EngineError::EventForgotten => {
            ApiError::with_message(Reason::NotFound, "the event is older than the retention")
        }
        EngineError::Misplaced(invalid @ CursorError::OutOfRange { .. }) => {
            ApiError::new(Reason::CursorOutOfRange).and_field("after", invalid.to_string())
        }
        EngineError::Misplaced(invalid @ CursorError::EpochMismatch { resume_from }) => {
            ApiError::with_message(Reason::CursorOfAnotherEpoch, invalid.to_string())
                .with_next_cursor(resume_from.to_string())
        }
        EngineError::NoEndpoint => Reason::NoWebhookEndpoint.into(),
        EngineError::EndpointNotFound => ApiError::with_message(Reason::NotFound, "no such webhook endpoint"),
        EngineError::TooManyEndpoints => Reason::TooManyWebhookEndpoints.into(),
        EngineError::Rejected(rejection) => rejected(&rejection),
        EngineError::Restart(rejection) => not_restarted(rejection),
        EngineError::Key(KeyRejection::NotFound) => ApiError::with_message(Reason::NotFound, "no such API key"),
        EngineError::Key(KeyRejection::TooMany) => Reason::TooManyApiKeys.into(),
        EngineError::Key(KeyRejection::Last) => Reason::ApiKeyInUse.into(),
        EngineError::TooManySecrets { .. } => ApiError::with_message(Reason::TooManyWebhookSecrets, error.to_string()),
        EngineError::NoKeyRoll => Reason::KeyRollDisabled.into(),
        EngineError::TooManyIdempotencyKeys => Reason::TooManyIdempotencyKeys.into(),
        EngineError::KeyReused => Reason::IdempotencyKeyReused.into(),
        EngineError::IdentifierReused => Reason::PaymentIdentifierReused.into(),
        EngineError::LedgerUnavailable => Reason::NodeUnavailable.into(),
        EngineError::NoRate => Reason::RateUnavailable.into(),
        EngineError::HbdOffPeg => Reason::HbdOffPeg.into(),
        // A retry does not help until the client closes a stream.
        EngineError::TooManyStreams => {
            let message = "the merchant has the maximum number of event streams; close one";
            ApiError { retry_after_seconds: None, ..ApiError::with_message(Reason::RateLimited, message) }
        }
        EngineError::Overloaded => Reason::Overloaded.into(),
        EngineError::Contended => Reason::Conflict.into(),
        EngineError::Unavailable | EngineError::StoreFailed => Reason::StoreUnavailable.into(),
        damaged @ EngineError::Damaged { .. } => ApiError::with_message(
            Reason::RecordDamaged,
            format!("{damaged} and is not served; the operator of this server must repair it"),
        ),
    }
}

fn not_restarted(rejection: RestartRejection) -> ApiError {
    match rejection {
        RestartRejection::Disabled => Reason::RestartDisabled.into(),
        _ => ApiError::with_message(Reason::PaymentNotRestartable, rejection.to_string()),
    }
}

fn not_proven(account: &AccountName, status: VerificationStatus) -> ApiError {
    let message = match status {
        VerificationStatus::Stale => {
            format!("the active authority of @{account} has changed since you proved ownership; prove it again")
        }
        VerificationStatus::Unverified | VerificationStatus::Verified => {
            format!("prove ownership of @{account} first")
        }
    };
    ApiError::with_message(Reason::AccountNotProven, message)
}

fn transfer_settled(resource: &str) -> ApiError {
    let resource: String = resource.chars().take(200).collect();
    let message = format!("the transfer was settled by x402 for {resource}: a sale cannot pay a payment");
    ApiError::with_message(Reason::TransferSettled, message)
}

fn ownership(rejection: &ownership::Rejection) -> ApiError {
    let message = rejection.to_string();
    match rejection {
        ownership::Rejection::OtherAccount(_) => ApiError::field("hiveAccount", message),
        ownership::Rejection::NothingPending => Reason::NoPendingAccount.into(),
        ownership::Rejection::UnknownChallenge => ApiError::with_message(Reason::NotFound, message),
        ownership::Rejection::Expired { .. } => ApiError::with_message(Reason::ChallengeExpired, message),
        ownership::Rejection::Signature { index } => ApiError::field(
            format!("signatures[{index}]"),
            "must be a signature of the challenge's text by a key of the account's active authority",
        ),
        ownership::Rejection::OpenAuthority => ApiError::field("signatures", message),
        ownership::Rejection::TooManyChanges { .. } => Reason::TooManyAccountChanges.into(),
    }
}

const fn account_verification(status: VerificationStatus) -> v1::AccountVerification {
    match status {
        VerificationStatus::Unverified => v1::AccountVerification::Unverified,
        VerificationStatus::Verified => v1::AccountVerification::Verified,
        VerificationStatus::Stale => v1::AccountVerification::Stale,
    }
}

const fn proof_method(method: VerificationMethod) -> v1::AccountProofMethod {
    match method {
        VerificationMethod::Signature => v1::AccountProofMethod::Signature,
        VerificationMethod::Transfer => v1::AccountProofMethod::Transfer,
        VerificationMethod::Operator => v1::AccountProofMethod::Operator,
    }
}

fn pending_account(pending: &PendingChange) -> v1::PendingAccount {
    v1::PendingAccount {
        hive_account: pending.account.to_string(),
        requested_at: Some(timestamp(pending.requested_at)),
        effective_at: Some(timestamp(pending.effective_at)),
        current_proven: pending.current.is_some(),
        new_proven: pending.new.is_some(),
    }
}

fn rejected(rejection: &Rejection) -> ApiError {
    let reason = match rejection {
        Rejection::NotPending { .. }
        | Rejection::AlreadyCancelled { .. }
        | Rejection::NotDue { .. }
        | Rejection::NoSuchClaim { .. }
        | Rejection::Unchanged { .. }
        | Rejection::ForeignTransfer { .. }
        | Rejection::TooManyRefunds { .. } => Reason::PaymentNotPending,
        Rejection::Expired { .. } => Reason::PaymentExpired,
        Rejection::Cancelling { .. } => Reason::SessionCancelling,
        Rejection::Detected { .. } => Reason::PaymentDetected,
        Rejection::InFlight { .. } => Reason::PaymentInFlight,
        Rejection::NothingToResolve { .. } => Reason::NothingToResolve,
        Rejection::Open { .. } => Reason::PaymentOpen,
    };
    ApiError::with_message(reason, rejection.to_string())
}

/// Returns the error of invalid fields.
pub(super) fn invalid(violations: Vec<Violation>) -> ApiError {
    let error = ApiError::new(Reason::ValidationFailed);
    violations.into_iter().fold(error, |error, violation| error.and_field(violation.field, violation.message))
}

/// Returns the error of invalid fields of a merchant: `REFUSED_ACCOUNT` if the only violation is an account that cannot
/// receive payments, else `VALIDATION_FAILED`.
pub(super) fn invalid_merchant(account: Option<&str>, violations: Vec<Violation>) -> ApiError {
    let is_refused = account.is_some_and(|name| AccountName::parse(name).is_ok_and(|account| account.cannot_receive()));
    let mut error = invalid(violations);
    if is_refused && error.fields.len() == 1 {
        error.reason = Reason::RefusedAccount;
    }
    error
}

/// Returns the value of a required field. Such fields are optional in protobuf, because their default value has a meaning.
///
/// # Errors
/// `VALIDATION_FAILED` if it is absent.
pub(super) fn required<T>(field: &str, value: Option<T>) -> Result<T, ApiError> {
    value.ok_or_else(|| ApiError::field(field, "is required"))
}

/// Converts a time.
pub(super) fn timestamp(instant: Timestamp) -> proto::time::Timestamp {
    proto::time::from_millis(instant.millis())
}

/// Reads the time of a field.
pub(super) fn instant(field: &str, time: proto::time::Timestamp) -> Result<Timestamp, ApiError> {
    let millis = proto::time::to_millis(time);
    millis.map(Timestamp::from_millis).ok_or_else(|| ApiError::field(field, "must be a time from 1970 to 9999"))
}

pub(super) const fn currency(currency: Currency) -> v1::Currency {
    match currency {
        Currency::Hive => v1::Currency::Hive,
        Currency::Hbd => v1::Currency::Hbd,
    }
}

/// Returns the error of a call without the required API key.
pub(super) fn missing_api_key() -> ApiError {
    ApiError::with_message(Reason::InvalidApiKey, "the API key is missing: send it in `x-api-key`")
}

/// Reads a currency.
///
/// # Errors
/// `VALIDATION_FAILED` if it is unspecified or unknown.
pub(super) fn read_currency(number: i32) -> Result<Currency, ApiError> {
    match v1::Currency::try_from(number) {
        Ok(v1::Currency::Hive) => Ok(Currency::Hive),
        Ok(v1::Currency::Hbd) => Ok(Currency::Hbd),
        _ => Err(ApiError::field("currency", "must be CURRENCY_HIVE or CURRENCY_HBD (REST: HIVE or HBD)")),
    }
}

pub(super) const fn state(state: State) -> v1::PaymentStatus {
    match state {
        State::Pending => v1::PaymentStatus::Pending,
        State::Processing => v1::PaymentStatus::Processing,
        State::Completed => v1::PaymentStatus::Completed,
        State::Failed => v1::PaymentStatus::Failed,
        State::UserCancelled => v1::PaymentStatus::UserCancelled,
        State::SystemCancelled => v1::PaymentStatus::SystemCancelled,
    }
}

/// Reads a payment state.
///
/// # Errors
/// `VALIDATION_FAILED` if it is unspecified or unknown.
pub(super) fn read_state(number: i32) -> Result<State, ApiError> {
    let unknown = || ApiError::field("statuses", "must be one of the six payment states");
    let wanted = v1::PaymentStatus::try_from(number).map_err(|_| unknown())?;
    State::ALL.into_iter().find(|known| state(*known) == wanted).ok_or_else(unknown)
}

const fn exception(exception: Exception) -> v1::PaymentException {
    match exception {
        Exception::Underpaid => v1::PaymentException::Underpaid,
        Exception::Overpaid => v1::PaymentException::Overpaid,
        Exception::PaidAgain => v1::PaymentException::PaidAgain,
        Exception::PaidLate => v1::PaymentException::PaidLate,
        Exception::PaidAfterCancel => v1::PaymentException::PaidAfterCancel,
        Exception::PaidAfterFailure => v1::PaymentException::PaidAfterFailure,
        Exception::WrongCurrency => v1::PaymentException::WrongCurrency,
        Exception::SelfTransfer => v1::PaymentException::SelfTransfer,
        Exception::Manual => v1::PaymentException::Manual,
        Exception::SettlementReversed => v1::PaymentException::SettlementReversed,
    }
}

/// Reads metadata.
///
/// # Errors
/// `VALIDATION_FAILED` if a value is neither a text nor a list.
pub(super) fn read_metadata(
    entries: std::collections::BTreeMap<String, v1::MetadataValue>,
) -> Result<Metadata, ApiError> {
    let read = |(key, value): (String, v1::MetadataValue)| match value.value {
        Some(Value::Text(text)) => Ok((key, MetadataValue::Text(text))),
        Some(Value::List(list)) => Ok((key, MetadataValue::List(list.items))),
        None => Err(ApiError::field(format!("metadata.{key}"), "must be a string or an array of strings")),
    };
    entries.into_iter().map(read).collect()
}

fn metadata(metadata: Metadata) -> std::collections::BTreeMap<String, v1::MetadataValue> {
    let write = |value| match value {
        MetadataValue::Text(text) => Value::Text(text),
        MetadataValue::List(items) => Value::List(v1::TextList { items }),
    };
    metadata.into_iter().map(|(key, value)| (key, v1::MetadataValue { value: Some(write(value)) })).collect()
}

pub(super) fn money(money: Money) -> v1::Money {
    v1::Money { units: money.units, currency: currency(money.currency).into() }
}

pub(super) fn transfer(credit: Credit) -> v1::Transfer {
    let finality = match credit.finality {
        Finality::Orphaned => v1::Finality::Orphaned,
        Finality::Reversible => v1::Finality::Reversible,
        Finality::Irreversible => v1::Finality::Irreversible,
    };
    let disposition = match credit.disposition {
        Disposition::Counted => v1::Disposition::Counted,
        Disposition::Surplus => v1::Disposition::Surplus,
        Disposition::Late => v1::Disposition::Late,
        Disposition::AfterCancel => v1::Disposition::AfterCancel,
        Disposition::AfterFailure => v1::Disposition::AfterFailure,
        Disposition::WrongCurrency => v1::Disposition::WrongCurrency,
        Disposition::SelfTransfer => v1::Disposition::Self_,
        Disposition::Fee => v1::Disposition::Fee,
    };
    let route = match credit.route {
        Route::Wallet => v1::Route::Wallet,
        Route::X402 => v1::Route::X402,
        Route::Manual => v1::Route::Manual,
    };
    v1::Transfer {
        tx_id: credit.tx_id.to_string(),
        op_index: credit.op_in_tx,
        block_num: credit.block.map(|block| block.position.block_num),
        block_time: credit.block.map(|block| timestamp(block.time)),
        from_account: credit.from.to_string(),
        to_account: credit.to.to_string(),
        amount: Some(money(credit.money)),
        memo: credit.memo,
        finality: finality.into(),
        disposition: disposition.into(),
        route: route.into(),
        memo_normalized: credit.memo_normalized,
    }
}

fn refund(refund: &Refund) -> v1::Refund {
    v1::Refund {
        tx_id: refund.tx_id.to_string(),
        op_index: refund.op_in_tx,
        amount: Some(money(refund.money)),
        at: Some(timestamp(refund.at)),
    }
}

const RESOLUTIONS: [(ResolutionKind, v1::ResolutionKind); 3] = [
    (ResolutionKind::Accepted, v1::ResolutionKind::Accepted),
    (ResolutionKind::Refunded, v1::ResolutionKind::Refunded),
    (ResolutionKind::Ignored, v1::ResolutionKind::Ignored),
];

/// Reads a decision.
///
/// # Errors
/// `VALIDATION_FAILED` if it is unspecified or unknown.
pub(super) fn read_resolution(number: i32) -> Result<ResolutionKind, ApiError> {
    let known = RESOLUTIONS.into_iter().find(|(_, known)| *known as i32 == number);
    known.map(|(kind, _)| kind).ok_or_else(|| ApiError::field("kind", "must be RESOLUTION_KIND_ACCEPTED, RESOLUTION_KIND_REFUNDED or RESOLUTION_KIND_IGNORED (REST: accepted, refunded or ignored)"))
}

fn resolution(resolution: &Resolution) -> v1::Resolution {
    let kind = RESOLUTIONS.into_iter().find(|(known, _)| *known == resolution.kind).map(|(_, kind)| kind);
    v1::Resolution {
        kind: kind.unwrap_or_default().into(),
        by: resolution.by.clone(),
        at: Some(timestamp(resolution.at)),
        note: resolution.note.clone(),
        tx_id: resolution.tx_id.map(|tx_id| tx_id.to_string()),
    }
}

fn cancellation(request: Cancellation) -> v1::Cancellation {
    let by = match request.by {
        Canceller::Customer => v1::CancelledBy::Customer,
        Canceller::Merchant => v1::CancelledBy::Merchant,
    };
    v1::Cancellation {
        by: by.into(),
        requested_at: Some(timestamp(request.requested_at)),
        cutoff: Some(timestamp(request.cutoff)),
        dropped_at: request.dropped_at.map(timestamp),
    }
}

/// Returns the reason of a payment's state; `Unspecified` while it is pending.
const fn status_reason(payment: &Payment) -> PaymentStatusReason {
    let by = match &payment.cancellation {
        Some(request) => Some(request.by),
        None => None,
    };
    match (payment.state, by) {
        (State::Pending, _) => PaymentStatusReason::Unspecified,
        (State::Processing, _) => PaymentStatusReason::SettlementPending,
        (State::Completed, _) => PaymentStatusReason::Paid,
        (State::Failed, _) => PaymentStatusReason::TransactionExpired,
        (State::UserCancelled, Some(Canceller::Merchant)) => PaymentStatusReason::CancelledByMerchant,
        (State::UserCancelled, _) => PaymentStatusReason::CancelledByCustomer,
        (State::SystemCancelled, _) => PaymentStatusReason::Expired,
    }
}

/// Converts a payment. `now` decides whether it has expired.
pub(super) fn payment(payment: Payment, merchant: &Merchant, now: Timestamp) -> v1::Payment {
    let tx_id = payment.paid_by.or(payment.claim.as_ref().map(|claim| claim.tx_id));
    let claim = payment.claim.as_ref().filter(|_| !payment.state.is_terminal());
    let fee_account = match &payment.quote.fee_mode {
        FeeMode::Split { account } => Some(account.to_string()),
        FeeMode::Invoice => None,
    };
    v1::Payment {
        id: payment.id.to_string(),
        merchant_id: payment.merchant.to_string(),
        status: state(payment.state).into(),
        slug: payment.slug_text(),
        currency: currency(payment.amount.currency).into(),
        amount_units: payment.amount.units,
        fee_units: payment.quote.fee_units,
        net_units: payment.net_units(),
        usd_cents: payment.quote.usd_cents,
        rate_at: payment.quote.rate.map(|rate| timestamp(rate.at)),
        created_at: Some(timestamp(payment.created_at)),
        updated_at: Some(timestamp(payment.updated_at)),
        expires_at: Some(timestamp(payment.expires_at)),
        completed_at: payment.completed_at.map(timestamp),
        pay_to: payment.pay_to.to_string(),
        memo: memo_of(payment.id),
        merchant_name: merchant.name.clone(),
        merchant_icon_url: merchant.icon_url.clone(),
        merchant_support_url: merchant.support_url.clone(),
        amount_paid_units: payment.received_units(),
        amount_remaining_units: payment.remaining_units(),
        amount_overpaid_units: payment.overpaid_units(),
        amount_late_units: payment.late_units(),
        amount_refunded_units: payment.refunded_units(),
        exceptions: payment.exceptions().into_iter().map(|e| exception(e).into()).collect(),
        refunds: payment.refunds.iter().map(refund).collect(),
        resolution: payment.resolution.as_ref().map(resolution),
        needs_attention: payment.needs_attention(),
        sequence: u64::from(payment.sequence),
        previous_status: payment.previous_state.map_or(0, |previous| state(previous).into()),
        status_reason: status_reason(&payment).into(),
        expired: payment.is_expired(now),
        tx_id: tx_id.map(|id| id.to_string()),
        livemode: payment.livemode,
        tx_hint: None,
        claim_tx_id: claim.map(|claim| claim.tx_id.to_string()),
        fee_account,
        x402_enabled: merchant.x402_enabled,
        merchant_active: merchant.is_active,
        read_at: Some(timestamp(now)),
        cancellation: payment.cancellation.map(cancellation),
        wallet_opened_at: payment.wallet_opened_at.map(timestamp),
        detected: payment.state == State::Pending && payment.seen_units() >= payment.amount.units,
        transfer_count: payment.transfer_count(),
        restartable: merchant.restart_enabled && merchant.is_active && payment.check_restart(now).is_ok(),
        description: payment.description,
        metadata: metadata(payment.metadata),
        redirect_url: payment.redirect_url,
        cancel_url: payment.cancel_url,
        transfers: payment.transfers.into_iter().map(transfer).collect(),
    }
}

/// Converts the totals of payments by day.
pub(super) fn volume(volume: Volume) -> v1::GetVolumeResponse {
    let day = |day: DayVolume| v1::DayVolume {
        day: Some(proto::time::from_millis(day.day.saturating_mul(86_400_000))),
        opened: day.opened,
        completed: day.completed,
        ended: day.ended,
        hive_units: day.hive_units,
        hbd_units: day.hbd_units,
        usd_cents: day.usd_cents,
    };
    let median = volume.median_wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
    v1::GetVolumeResponse { days: volume.days.into_iter().map(day).collect(), median_ms_to_pay: median }
}

/// Converts a merchant, without its secrets.
pub(super) fn merchant(merchant: &Merchant, network: Network) -> v1::Merchant {
    let key = merchant.keys.first();
    v1::Merchant {
        id: merchant.id.to_string(),
        name: merchant.name.clone(),
        hive_account: merchant.hive_account.to_string(),
        icon_url: merchant.icon_url.clone(),
        webhook_url: merchant.webhook_url.clone(),
        support_url: merchant.support_url.clone(),
        active: merchant.is_active,
        x402_enabled: merchant.x402_enabled,
        restart_enabled: merchant.restart_enabled,
        created_at: Some(timestamp(merchant.created_at)),
        admin: merchant.is_admin,
        api_key_last4: key.map(|key| key.last4.clone()).unwrap_or_default(),
        api_key_created_at: key.map(|key| timestamp(key.created_at)),
        api_key_last_used_at: key.and_then(|key| key.last_used_at).map(timestamp),
        flagged: None,
        account_verification: account_verification(merchant.ownership.verification_status()).into(),
        account_verified_at: merchant.ownership.proof.map(|proof| timestamp(proof.at)),
        account_verified_by: merchant.ownership.proof.map_or(0, |proof| proof_method(proof.method).into()),
        pending_account: merchant.ownership.pending.as_ref().map(pending_account),
        livemode: network.is_live(),
        network: ledger_network(network).into(),
        webhook_events: merchant.webhook_events.types().map(|kind| super::enums::event_type(kind).into()).collect(),
    }
}

/// Converts a merchant of an admin's list.
pub(super) fn listed_merchant(listed: &ListedMerchant, network: Network) -> v1::Merchant {
    v1::Merchant { flagged: Some(listed.is_on_hold), ..merchant(&listed.merchant, network) }
}

pub(super) const fn ledger_network(network: Network) -> v1::LedgerNetwork {
    match network {
        Network::Mainnet => v1::LedgerNetwork::Mainnet,
        Network::Testnet => v1::LedgerNetwork::Testnet,
        Network::Development => v1::LedgerNetwork::Development,
    }
}

/// Reads the id of a payment.
///
/// # Errors
/// `NOT_FOUND` if it is not an id.
pub(super) fn payment_id(text: &str) -> Result<PaymentId, ApiError> {
    text.parse().map_err(|_| ApiError::with_message(Reason::NotFound, "no such payment"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_round_trip_and_have_the_names_of_the_engine() {
        for known in State::ALL {
            let status = state(known);
            assert_eq!(read_state(status.into()).ok(), Some(known));
            assert_eq!(status.as_str_name().to_lowercase(), format!("payment_status_{}", known.as_str()));
        }
        for unknown in [0, 7, -1] {
            assert!(read_state(unknown).is_err() && read_currency(unknown).is_err());
        }
    }

    #[test]
    fn exceptions_have_the_names_of_the_engine() {
        for known in Exception::ALL {
            assert_eq!(exception(known).as_str_name().to_lowercase(), format!("payment_exception_{}", known.as_str()));
        }
    }

    #[test]
    fn metadata_round_trips() {
        let original: Metadata = [
            ("orderId".to_owned(), MetadataValue::Text("7".to_owned())),
            ("tags".to_owned(), MetadataValue::List(vec!["a".to_owned(), String::new()])),
            ("none".to_owned(), MetadataValue::List(Vec::new())),
        ]
        .into();
        assert_eq!(read_metadata(metadata(original.clone())), Ok(original));
        let empty = [("x".to_owned(), v1::MetadataValue { value: None })].into();
        assert_eq!(read_metadata(empty).map_err(|e| e.fields[0].field.clone()), Err("metadata.x".to_owned()));
    }
}
