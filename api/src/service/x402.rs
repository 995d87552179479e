//! x402 payments: conversion of requests, and of verdicts and receipts; signed offers and receipts.

use std::sync::Arc;

use actors::{Caller, Settled, Target, X402Error, X402Request};
use engine::{
    account::AccountName,
    hive::{Fault, Transaction},
    ids::PaymentId,
    ledger::TxId,
    merchant::Scope,
    money::Money,
    payment::Payment,
    time::Timestamp,
    x402::{AcceptedRequirements, PaymentPayload, Reason, Refused, Requirements, Version},
};
use proto::{
    ApiError,
    v1::{
        self, checkout_session::Session, settle_payment_response::Outcome, verify_payment_response::Verdict,
        x402_payment, x402_service_server::X402Service,
    },
};
use tokio::sync::{Semaphore, SemaphorePermit};
use tonic::{Request, Response, Status};

use super::{
    Service,
    convert::{self, error},
    payments::idempotency_key,
};

/// Maximum size of a nonce in bytes, equal to the limit of the JSON payload.
const MAX_NONCE_BYTES: usize = 256;

/// Acquires a permit without waiting.
///
/// # Errors
/// `OVERLOADED` if none is free.
fn acquire(permits: &Semaphore) -> Result<SemaphorePermit<'_>, ApiError> {
    permits.try_acquire().map_err(|_| ApiError::new(proto::Reason::Overloaded))
}

#[tonic::async_trait]
impl X402Service for Service {
    async fn verify_payment(
        &self,
        request: Request<v1::VerifyPaymentRequest>,
    ) -> Result<Response<v1::VerifyPaymentResponse>, Status> {
        let _permit = acquire(&self.x402.verifying)?;
        let verified = match read(request.into_inner().payment.unwrap_or_default())? {
            Ok(request) => self.engine.x402.verify(&request).await,
            Err(refused) => Err(refused.into()),
        };
        let verdict = match verified {
            Ok(payer) => Verdict::Valid(v1::X402Valid { payer: payer.to_string() }),
            Err(X402Error::Refused(refused)) => Verdict::Refused(refusal(refused)),
            Err(X402Error::Unavailable(unavailable)) => return Err(error(unavailable).into()),
        };
        Ok(Response::new(v1::VerifyPaymentResponse { verdict: Some(verdict) }))
    }

    async fn settle_payment(
        &self,
        request: Request<v1::SettlePaymentRequest>,
    ) -> Result<Response<v1::SettlePaymentResponse>, Status> {
        let _permit = acquire(&self.x402.settling)?;
        let caller = self.x402_caller(&request).await?;
        let message = request.into_inner();
        let read = read(message.payment.unwrap_or_default())?;
        let page = message.resource.as_ref().map(|resource| check_page(resource, &read)).transpose()?.flatten();
        let settled = match read {
            Ok(request) => self.engine.x402.settle_for(&request, &caller).await,
            Err(refused) => Err(refused.into()),
        };
        let outcome = match settled {
            Ok(settled) => {
                let signed = match page {
                    Some(page) => self.signed_receipt(page, &settled).await,
                    None => None,
                };
                Outcome::Settled(receipt(&settled, signed))
            }
            Err(X402Error::Refused(refused)) => Outcome::Refused(refusal(refused)),
            Err(X402Error::Unavailable(unavailable)) => return Err(error(unavailable).into()),
        };
        Ok(Response::new(v1::SettlePaymentResponse { outcome: Some(outcome) }))
    }

    async fn sign_offer(
        &self,
        request: Request<v1::SignOfferRequest>,
    ) -> Result<Response<v1::SignOfferResponse>, Status> {
        let resource = request.into_inner().resource.unwrap_or_default();
        check_base_url(&resource)?;
        let (payment, url) = self.checkout_page(&resource).await?;
        let offer = self.engine.x402.sign_offer(&payment, &url).await.map_err(error)?;
        Ok(Response::new(v1::SignOfferResponse { offer }))
    }

    async fn get_receipt_keys(
        &self,
        _: Request<v1::GetReceiptKeysRequest>,
    ) -> Result<Response<v1::GetReceiptKeysResponse>, Status> {
        let keys = self.engine.x402.public_receipt_keys().await.map_err(error)?;
        let public_keys = keys.iter().map(|key| key.to_vec().into()).collect();
        Ok(Response::new(v1::GetReceiptKeysResponse { public_keys }))
    }

    async fn rotate_receipt_key(
        &self,
        _: Request<v1::RotateReceiptKeyRequest>,
    ) -> Result<Response<v1::RotateReceiptKeyResponse>, Status> {
        let public_key = self.engine.x402.rotate_receipt_key().await.map_err(error)?;
        Ok(Response::new(v1::RotateReceiptKeyResponse { public_key: public_key.to_vec().into() }))
    }
}

/// The checkout page for which a receipt is signed.
struct ReceiptPage<'a> {
    session: PaymentId,
    resource: &'a v1::X402Resource,
}

/// Maximum size of a base URL in bytes.
const MAX_BASE_URL_BYTES: usize = 2_048;

/// Checks the base URL of a checkout page, no stricter than the setting `base_url` of a facade is checked: payments depend on it.
///
/// # Errors
/// `VALIDATION_FAILED`.
fn check_base_url(resource: &v1::X402Resource) -> Result<(), ApiError> {
    let text = resource.base_url.as_str();
    let is_url = url::Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    if is_url && !text.ends_with('/') && text.len() <= MAX_BASE_URL_BYTES {
        return Ok(());
    }
    let message = format!("must be an http or https URL of at most {MAX_BASE_URL_BYTES} bytes, without a trailing /");
    Err(ApiError::field("resource.baseUrl", message))
}

/// Returns the page for which the receipt of a settlement is signed; `None` for a payment that is refused anyway.
///
/// # Errors
/// `VALIDATION_FAILED` for requirements of another server, which alone can sign receipts for its resources.
fn check_page<'a>(
    resource: &'a v1::X402Resource,
    read: &Result<X402Request, Refused>,
) -> Result<Option<ReceiptPage<'a>>, ApiError> {
    check_base_url(resource)?;
    match read {
        Ok(X402Request { target: Target::Session(session), .. }) => {
            Ok(Some(ReceiptPage { session: *session, resource }))
        }
        Ok(_) => Err(ApiError::field("resource", "must not be set for payment requirements of another server")),
        Err(_) => Ok(None),
    }
}

impl Service {
    /// Returns the payment of a checkout page and the URL of the page.
    async fn checkout_page(&self, resource: &v1::X402Resource) -> Result<(Arc<Payment>, String), ApiError> {
        let (payment, _) = self.checkout(resource.session.as_ref()).await?;
        let base = &resource.base_url;
        let url = match resource.session.as_ref().and_then(|session| session.session.as_ref()) {
            Some(Session::Slug(_)) => format!("{base}/for/{}", payment.slug_text()),
            _ => format!("{base}/checkout/{}", payment.id),
        };
        Ok((payment, url))
    }

    /// Returns the signed receipt of a settled payment; `None` without one. The payment is made: nothing here may fail.
    async fn signed_receipt(&self, page: ReceiptPage<'_>, settled: &Settled) -> Option<String> {
        let signed = match self.checkout_page(page.resource).await {
            Ok((payment, url)) if payment.id == page.session => {
                self.engine.x402.sign_receipt(settled, &payment, &url).await.map_err(error)
            }
            Ok(_) => Err(ApiError::field("resource.session", "is another payment")),
            Err(error) => Err(error),
        };
        signed.unwrap_or_else(|error| {
            tracing::warn!(tx_id = %settled.tx_id, %error, "no receipt signed for {}: {error}", settled.tx_id);
            None
        })
    }

    /// Returns the seller and the idempotency key of a request; both are optional.
    ///
    /// # Errors
    /// If an idempotency key would be ignored: it needs the seller's API key, and a repeated payment of a session returns
    /// the same receipt without one.
    async fn x402_caller(&self, request: &Request<v1::SettlePaymentRequest>) -> Result<Caller, ApiError> {
        let key = idempotency_key(request)?;
        let refuse = |message: &str| Err(ApiError::field("Idempotency-Key", message));
        let target = request.get_ref().payment.as_ref().and_then(|payment| payment.target.as_ref());
        if key.is_some() && matches!(target, Some(x402_payment::Target::SessionId(_))) {
            return refuse("is not supported for a session: omit it; a repeated payment returns the same receipt");
        }
        if proto::caller::api_key(request).is_none() {
            return match key {
                Some(_) => refuse("needs the seller's API key: add the API key, or omit the idempotency key"),
                None => Ok(Caller::default()),
            };
        }
        let seller = Some(self.caller(request, Scope::PaymentsRead).await?.id);
        Ok(Caller { seller, key })
    }
}

fn receipt(settled: &Settled, signed: Option<String>) -> v1::X402Settled {
    v1::X402Settled {
        tx_id: settled.tx_id.to_string(),
        payer: settled.payer.to_string(),
        block_num: settled.block_num,
        amount: Some(convert::money(settled.amount)),
        is_replay: settled.is_replay,
        receipt: signed,
    }
}

fn refusal(refused: Refused) -> v1::X402Refusal {
    v1::X402Refusal {
        reason: reason(refused.reason).into(),
        message: refused.message,
        payer: refused.payer.map(|payer| payer.to_string()),
        tx_id: refused.tx_id.as_ref().map(TxId::to_string),
    }
}

fn reason(reason: Reason) -> v1::X402Reason {
    let name = format!("X402_REASON_{}", reason.as_str().to_uppercase());
    v1::X402Reason::from_str_name(&name).unwrap_or(v1::X402Reason::Unspecified)
}

/// Reads a payment. An invalid payment is a refusal (the inner result).
///
/// # Errors
/// `VALIDATION_FAILED` if the payment has no target.
fn read(payment: v1::X402Payment) -> Result<Result<X402Request, Refused>, ApiError> {
    let missing = || ApiError::field("sessionId", "sessionId or paymentRequirements must be set");
    let target = payment.target.ok_or_else(missing)?;
    let read = || {
        let payload = read_payload(payment.x402_version, payment.nonce, &payment.signed_transaction, payment.accepted)?;
        let payload = PaymentPayload { identifier: payment.payment_identifier, ..payload };
        Ok(X402Request { target: read_target(target)?, payload })
    };
    Ok(read())
}

fn read_payload(
    version: u32,
    nonce: String,
    signed_transaction: &[u8],
    accepted: Option<v1::X402Accepted>,
) -> Result<PaymentPayload, Refused> {
    let invalid = |message: &str| Refused::new(Reason::InvalidPayload, message);
    let version = match version {
        1 => Version::V1,
        2 => Version::V2,
        other => {
            let message = format!("x402Version {other} is neither 1 nor 2");
            return Err(Refused::new(Reason::InvalidX402Version, message));
        }
    };
    if nonce.is_empty() || nonce.len() > MAX_NONCE_BYTES {
        return Err(invalid("nonce must have 1 to 256 bytes"));
    }
    let transaction = Transaction::from_signed_bytes(signed_transaction).map_err(|error| {
        let is_unknown_operation = matches!(error.fault, Fault::UnknownOperationId { .. });
        Refused::new(if is_unknown_operation { Reason::Operations } else { Reason::InvalidPayload }, error)
    })?;
    let accepted = match (version, accepted) {
        (Version::V1, _) => None,
        (Version::V2, Some(accepted)) => {
            Some(AcceptedRequirements { amount: accepted.amount, asset: accepted.asset, pay_to: accepted.pay_to })
        }
        (Version::V2, None) => return Err(invalid("accepted is missing")),
    };
    Ok(PaymentPayload { version, transaction, nonce, identifier: None, accepted })
}

fn read_target(target: x402_payment::Target) -> Result<Target, Refused> {
    match target {
        x402_payment::Target::SessionId(id) => match id.parse() {
            Ok(id) => Ok(Target::Session(id)),
            Err(_) => Err(Refused::new(Reason::SessionNotFound, "there is no such session")),
        },
        x402_payment::Target::Requirements(requirements) => {
            let invalid = |message: String| Refused::new(Reason::InvalidPaymentRequirements, message);
            let valid_before = |time| {
                let millis = proto::time::to_millis(time).map(Timestamp::from_millis);
                millis.ok_or_else(|| invalid("validBefore must be a time from 1970 to 9999".to_owned()))
            };
            let amount = requirements.amount.filter(|amount| amount.units > 0);
            let amount = amount.and_then(|amount| {
                let currency = convert::read_currency(amount.currency).ok()?;
                Some(Money::new(amount.units, currency))
            });
            Ok(Target::Requirements(Requirements {
                amount: amount.ok_or_else(|| invalid("amount must be a positive amount of HIVE or HBD".to_owned()))?,
                pay_to: AccountName::parse(&requirements.pay_to).map_err(|error| invalid(format!("payTo {error}")))?,
                resource: Requirements::resource(&requirements.resource)?,
                valid_before: requirements.valid_before.map(valid_before).transpose()?,
            }))
        }
    }
}

#[cfg(test)]
mod tests {
    use engine::{
        hive::{Asset, Operation, Symbol, Transfer},
        ids::PaymentId,
    };

    use super::*;
    use crate::facade::x402_request as request;

    fn payload() -> PaymentPayload {
        let transfer = Transfer {
            from: "agent".to_owned(),
            to: "blue.mugs".to_owned(),
            amount: Asset { units: 1_000, symbol: Symbol::Hbd },
            memo: "é\n".to_owned(),
        };
        let transaction = Transaction {
            ref_block_num: 1,
            ref_block_prefix: 2,
            expiration: Timestamp::from_seconds(1_763_647_200),
            operations: vec![Operation::Transfer(transfer)],
            signatures: vec![engine::hive::Signature([31; 65])],
        };
        PaymentPayload { version: Version::V1, transaction, nonce: "n".to_owned(), identifier: None, accepted: None }
    }

    #[test]
    fn reasons_of_the_engine_and_of_the_interface_correspond() {
        let numbers: std::collections::BTreeSet<i32> = Reason::ALL.iter().map(|known| reason(*known).into()).collect();
        let known = (1..1_000).filter(|number| v1::X402Reason::try_from(*number).is_ok());
        assert_eq!(numbers.into_iter().collect::<Vec<_>>(), known.collect::<Vec<_>>());
    }

    #[test]
    fn payments_round_trip() {
        let id = PaymentId::from_bits(7);
        let session = x402_payment::Target::SessionId(id.to_string());
        let sent = payload();
        let read_back = read(request(session.clone(), sent.clone())).unwrap().unwrap();
        assert_eq!(read_back, X402Request { target: Target::Session(id), payload: sent });
        let accepted = AcceptedRequirements { amount: "1000".into(), asset: "HBD".into(), pay_to: "blue.mugs".into() };
        let identifier = Some("an-identifier-16".to_owned());
        let sent = PaymentPayload { version: Version::V2, accepted: Some(accepted), identifier, ..payload() };
        assert_eq!(read(request(session, sent.clone())).unwrap().unwrap().payload, sent);
    }

    #[test]
    fn an_invalid_payment_is_a_refusal_and_a_missing_target_is_an_error() {
        let session = || x402_payment::Target::SessionId(PaymentId::from_bits(7).to_string());
        let good = || request(session(), payload());
        let refused = |payment: v1::X402Payment| read(payment).expect("a verdict").expect_err("a refusal").reason;
        assert_eq!(refused(v1::X402Payment { x402_version: 3, ..good() }), Reason::InvalidX402Version);
        assert_eq!(refused(v1::X402Payment { x402_version: 2, ..good() }), Reason::InvalidPayload);
        assert_eq!(refused(v1::X402Payment { nonce: String::new(), ..good() }), Reason::InvalidPayload);
        assert_eq!(refused(v1::X402Payment { nonce: "n".repeat(257), ..good() }), Reason::InvalidPayload);
        assert_eq!(refused(v1::X402Payment { signed_transaction: vec![1].into(), ..good() }), Reason::InvalidPayload);
        let unknown = x402_payment::Target::SessionId("pay_x".to_owned());
        assert_eq!(refused(v1::X402Payment { target: Some(unknown), ..good() }), Reason::SessionNotFound);
        let requirements = |units, pay_to: &str| {
            let amount = Some(v1::Money { units, currency: v1::Currency::Hbd.into() });
            let target = v1::X402Requirements { amount, pay_to: pay_to.to_owned(), ..v1::X402Requirements::default() };
            v1::X402Payment { target: Some(x402_payment::Target::Requirements(target)), ..good() }
        };
        assert!(read(requirements(1, "blue.mugs")).unwrap().is_ok());
        for (units, pay_to) in [(0, "blue.mugs"), (1, "No")] {
            assert_eq!(refused(requirements(units, pay_to)), Reason::InvalidPaymentRequirements, "{units} {pay_to}");
        }
        for resource in ["x".repeat(2_049), "\u{202e}".to_owned()] {
            let Some(x402_payment::Target::Requirements(valid)) = requirements(1, "blue.mugs").target else { panic!() };
            let target = x402_payment::Target::Requirements(v1::X402Requirements { resource, ..valid });
            let payment = v1::X402Payment { target: Some(target), ..good() };
            assert_eq!(refused(payment), Reason::InvalidPaymentRequirements);
        }
        assert_eq!(read(v1::X402Payment { target: None, ..good() }).expect_err("no target").http(), 400);
    }
}
