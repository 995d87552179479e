//! Unmatched transfers, decisions about exceptions, and refunds.

use std::sync::Arc;

use actors::Sale;
use engine::{
    account::AccountName,
    fields::{self, Violation},
    hive::Form,
    ledger::{ChainPosition, TxId},
    merchant::{Merchant, Scope},
    money::{MAX_AMOUNT_UNITS, Money},
    payment::{NOTE_MAX_CHARS, Resolution, shown_memo},
};
use proto::{
    ApiError, Reason, record_response,
    v1::{self, UnmatchedStatus, unmatched_transfer_service_server::UnmatchedTransferService},
};
use storage::{Handling, Unmatched, UnmatchedReason};
use tonic::{Request, Response, Status};

use super::{
    Service,
    convert::{self, error},
    page::{Filters, invalid_token, page_size},
};

/// Maximum number of amounts owed in a response; only the largest are returned.
const MAX_OWED: usize = 100;

impl Service {
    /// Converts a payment of the caller to its protobuf message.
    fn payment_message(&self, payment: engine::payment::Payment, merchant: &Merchant) -> v1::Payment {
        convert::payment(payment, merchant, self.engine.now())
    }
}

#[tonic::async_trait]
impl UnmatchedTransferService for Service {
    async fn list_unmatched(
        &self,
        request: Request<v1::ListUnmatchedRequest>,
    ) -> Result<Response<v1::ListUnmatchedResponse>, Status> {
        let merchant = self.caller(&request, Scope::PaymentsRead).await?;
        let message = request.into_inner();
        let limit = page_size(message.page_size)? as usize;
        let mut filters = v1::ListUnmatchedRequest { page_size: 0, page_token: String::new(), ..message.clone() };
        filters.statuses.sort_unstable();
        let filters = Filters::of(&filters);
        let token = Some(filters.read(&message.page_token)?).filter(|token| !token.is_empty());
        let before = token.map(|token| parse_id(token).ok_or_else(invalid_token)).transpose()?;
        let statuses = message.statuses;
        let known = |status: &i32| {
            UnmatchedStatus::try_from(*status).is_ok_and(|status| status != UnmatchedStatus::Unspecified)
        };
        if !statuses.iter().all(known) {
            return Err(ApiError::field("statuses", "must be open, ignored or assigned").into());
        }
        let is_wanted = |found: &Unmatched| {
            let status: i32 = status(&found.handling).into();
            statuses.is_empty() || statuses.contains(&status)
        };
        let part = self.engine.payments.unmatched_where(&merchant, before, limit, is_wanted).await.map_err(error)?;
        let transfers = part.rows.into_iter().map(transfer).collect();
        let next_page_token = filters.token(part.next.map(|next| next.to_string()).unwrap_or_default());
        Ok(Response::new(v1::ListUnmatchedResponse { transfers, next_page_token }))
    }

    async fn list_sales(
        &self,
        request: Request<v1::ListSalesRequest>,
    ) -> Result<Response<v1::ListSalesResponse>, Status> {
        let merchant = self.caller(&request, Scope::PaymentsRead).await?;
        let message = request.into_inner();
        let limit = page_size(message.page_size)? as usize;
        let token = Some(message.page_token.as_str()).filter(|token| !token.is_empty());
        let before = token.map(|token| parse_id(token).ok_or_else(invalid_token)).transpose()?;
        let part = self.engine.payments.sales(&merchant, before, limit).await.map_err(error)?;
        let sales = part.rows.into_iter().map(sale).collect();
        Ok(Response::new(v1::ListSalesResponse {
            sales,
            next_page_token: part.next.map(|next| next.to_string()).unwrap_or_default(),
        }))
    }

    async fn get_unmatched(
        &self,
        request: Request<v1::GetUnmatchedRequest>,
    ) -> Result<Response<v1::GetUnmatchedResponse>, Status> {
        let merchant = self.caller(&request, Scope::PaymentsRead).await?;
        let position = read_id(&request.get_ref().id)?;
        Ok(record_response(transfer(self.engine.payments.unmatched_at(&merchant, position).await.map_err(error)?)))
    }

    async fn list_candidates(
        &self,
        request: Request<v1::ListCandidatesRequest>,
    ) -> Result<Response<v1::ListCandidatesResponse>, Status> {
        let merchant = self.caller(&request, Scope::PaymentsRead).await?;
        let position = read_id(&request.get_ref().id)?;
        let candidates = self.engine.payments.candidates(&merchant, position).await.map_err(error)?;
        let candidate = |candidate: actors::Candidate| v1::Candidate {
            same_payer: candidate.is_same_payer,
            same_amount: candidate.is_same_amount,
            on_time: candidate.is_on_time,
            payment: Some(self.payment_message(candidate.payment, &merchant)),
        };
        let candidates = candidates.into_iter().map(candidate).collect();
        Ok(Response::new(v1::ListCandidatesResponse { candidates }))
    }

    async fn assign_unmatched(
        &self,
        request: Request<v1::AssignUnmatchedRequest>,
    ) -> Result<Response<v1::AssignUnmatchedResponse>, Status> {
        let principal = self.principal(&request, Some(Scope::PaymentsWrite)).await?;
        let merchant = &principal.merchant;
        let position = read_id(&request.get_ref().id)?;
        let payment = convert::payment_id(&request.get_ref().payment_id)?;
        let payment = principal.engine.payments.assign(merchant, position, payment, principal.key.to_string()).await;
        let payment = payment.map_err(error)?;
        Ok(record_response(self.payment_message(Arc::unwrap_or_clone(payment), merchant)))
    }

    async fn ignore_unmatched(
        &self,
        request: Request<v1::IgnoreUnmatchedRequest>,
    ) -> Result<Response<v1::IgnoreUnmatchedResponse>, Status> {
        let principal = self.principal(&request, Some(Scope::PaymentsWrite)).await?;
        let merchant = &principal.merchant;
        let message = request.into_inner();
        let note = note(&message.note)?;
        let position = read_id(&message.id)?;
        let ignored = principal.engine.payments.ignore(merchant, position, principal.key.to_string(), note).await;
        Ok(record_response(transfer(ignored.map_err(error)?)))
    }

    async fn resolve_payment(
        &self,
        request: Request<v1::ResolvePaymentRequest>,
    ) -> Result<Response<v1::ResolvePaymentResponse>, Status> {
        let principal = self.principal(&request, Some(Scope::PaymentsWrite)).await?;
        let merchant = &principal.merchant;
        let message = request.into_inner();
        let id = convert::payment_id(&message.payment_id)?;
        let tx_id =
            |text: String| TxId::parse(&text).ok_or_else(|| ApiError::field("txId", "must be 40 hex characters"));
        let resolution = Resolution {
            kind: convert::read_resolution(message.kind)?,
            by: principal.key.to_string(),
            at: self.engine.now(),
            note: note(&message.note)?,
            tx_id: message.tx_id.map(tx_id).transpose()?,
        };
        let payment = principal.engine.payments.resolve(merchant, id, resolution).await.map_err(error)?;
        Ok(record_response(self.payment_message(Arc::unwrap_or_clone(payment), merchant)))
    }

    async fn prepare_refund(
        &self,
        request: Request<v1::PrepareRefundRequest>,
    ) -> Result<Response<v1::PrepareRefundResponse>, Status> {
        let merchant = self.caller(&request, Scope::PaymentsRead).await?;
        let message = request.into_inner();
        let payment =
            self.engine.payments.get(merchant.id, convert::payment_id(&message.payment_id)?).await.map_err(error)?;
        let currency = match message.currency {
            Some(currency) => convert::read_currency(currency)?,
            None => payment.amount.currency,
        };
        let money = match message.amount_units {
            Some(units) if (1..=MAX_AMOUNT_UNITS).contains(&units) => Some(Money::new(units, currency)),
            Some(_) => {
                return Err(ApiError::field("amount", format!("must be between 1 and {MAX_AMOUNT_UNITS}")).into());
            }
            None => None,
        };
        let to = message.to_account.map(|name| AccountName::parse(&name)).transpose();
        let to = to.map_err(|error| ApiError::field("to", error.to_string()))?;
        let mut owed = self.engine.payments.owed(&payment).await.map_err(error)?;
        let plan = payment.refund_plan(&owed, to, money).map_err(|violation| convert::invalid(vec![violation]))?;
        let mut operation_json = String::new();
        plan.operation().write(&mut operation_json, Form::Condenser);
        let uri = plan.uri();
        if owed.len() > MAX_OWED {
            owed.sort_by_key(|line| std::cmp::Reverse(line.money.units));
            owed.truncate(MAX_OWED);
        }
        Ok(Response::new(v1::PrepareRefundResponse {
            payment_id: message.payment_id,
            from_account: plan.from.to_string(),
            to_account: plan.to.to_string(),
            amount: Some(convert::money(plan.money)),
            memo: plan.memo,
            operation_json,
            hivesigner_url: engine::hive::uri::hivesigner(&uri),
            uri,
            owed: owed
                .into_iter()
                .map(|line| v1::Owed { to_account: line.to.to_string(), amount: Some(convert::money(line.money)) })
                .collect(),
        }))
    }
}

/// Validates a note, which may be empty.
///
/// # Errors
/// `VALIDATION_FAILED` if it is too long or has control characters.
fn note(text: &str) -> Result<String, ApiError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(String::new());
    }
    fields::text("note", text, NOTE_MAX_CHARS).map_err(|violation: Violation| convert::invalid(vec![violation]))
}

/// Parses the id of a transfer; `None` for any other text.
fn parse_id(text: &str) -> Option<ChainPosition> {
    let mut numbers = text.split('-').map(|number| number.parse::<u32>().ok());
    let position =
        ChainPosition { block_num: numbers.next()??, tx_in_block: numbers.next()??, op_in_tx: numbers.next()?? };
    // Leading zeros and signs would be a second id of the same transfer.
    (numbers.next().is_none() && position.to_string() == text).then_some(position)
}

/// Reads the id of a transfer.
///
/// # Errors
/// `NOT_FOUND` if it is not an id.
fn read_id(text: &str) -> Result<ChainPosition, ApiError> {
    parse_id(text).ok_or_else(|| ApiError::with_message(Reason::NotFound, "no such unmatched transfer"))
}

const fn reason(reason: UnmatchedReason) -> v1::UnmatchedReason {
    match reason {
        UnmatchedReason::NoSession => v1::UnmatchedReason::NoSession,
        UnmatchedReason::AmbiguousMemo => v1::UnmatchedReason::AmbiguousMemo,
        UnmatchedReason::EncryptedMemo => v1::UnmatchedReason::EncryptedMemo,
        UnmatchedReason::UnknownSession => v1::UnmatchedReason::UnknownSession,
        UnmatchedReason::OtherAccount => v1::UnmatchedReason::OtherAccount,
        UnmatchedReason::UnsupportedOperation => v1::UnmatchedReason::UnsupportedOperation,
    }
}

const fn status(handling: &Handling) -> UnmatchedStatus {
    match handling {
        Handling::Open => UnmatchedStatus::Open,
        Handling::Assigned { .. } => UnmatchedStatus::Assigned,
        Handling::Ignored { .. } => UnmatchedStatus::Ignored,
    }
}

fn transfer(unmatched: Unmatched) -> v1::UnmatchedTransfer {
    let transfer = unmatched.transfer;
    let mut message = v1::UnmatchedTransfer {
        id: transfer.position.to_string(),
        tx_id: transfer.tx_id.to_string(),
        op_index: transfer.position.op_in_tx,
        block_num: transfer.position.block_num,
        block_time: Some(convert::timestamp(transfer.block_time)),
        from_account: transfer.from.to_string(),
        to_account: transfer.to.to_string(),
        amount: Some(convert::money(transfer.money)),
        memo: shown_memo(transfer.memo),
        reason: reason(unmatched.reason).into(),
        status: status(&unmatched.handling).into(),
        ..v1::UnmatchedTransfer::default()
    };
    match unmatched.handling {
        Handling::Open => {}
        Handling::Assigned { payment, by, at } => {
            message.payment_id = Some(payment.to_string());
            (message.handled_by, message.handled_at) = (Some(by), Some(convert::timestamp(at)));
        }
        Handling::Ignored { by, at, note } => {
            message.note = Some(note);
            (message.handled_by, message.handled_at) = (Some(by), Some(convert::timestamp(at)));
        }
    }
    message
}

fn sale(Sale { transfer, resource, claimed_at, .. }: Sale) -> v1::Sale {
    v1::Sale {
        id: transfer.position.to_string(),
        tx_id: transfer.tx_id.to_string(),
        op_index: transfer.position.op_in_tx,
        block_num: transfer.position.block_num,
        block_time: Some(convert::timestamp(transfer.block_time)),
        payer: transfer.from.to_string(),
        pay_to: transfer.to.to_string(),
        amount: Some(convert::money(transfer.money)),
        memo: shown_memo(transfer.memo),
        resource,
        claimed_at: Some(convert::timestamp(claimed_at)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfer_ids_round_trip_and_other_texts_are_rejected() {
        let position = ChainPosition { block_num: 4_294_967_295, tx_in_block: 0, op_in_tx: 7 };
        assert_eq!(parse_id(&position.to_string()), Some(position));
        for invalid in ["", "1", "1-2", "1-2-3-4", "1-2-x", "+1-2-3", "01-2-3", "1-2-4294967296", "1--3", "-1-2-3"] {
            assert_eq!(parse_id(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn reasons_have_the_names_of_the_store() {
        for known in UnmatchedReason::ALL {
            assert_eq!(reason(known).as_str_name().to_lowercase(), format!("unmatched_reason_{}", known.as_str()));
        }
    }
}
