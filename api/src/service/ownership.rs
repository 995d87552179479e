//! Proof of ownership of a merchant's ledger account, and changes of a proven account.

use engine::{
    account::AccountName,
    hive::{Form, Signature, uri},
    ids::MerchantId,
    merchant::Scope,
    money::{Currency, Money},
    ownership::{Action, MAX_SIGNATURES, Nonce},
};
use proto::{
    ApiError, Reason, record_response,
    v1::{self, account_proof_service_server::AccountProofService},
};
use tonic::{Request, Response, Status};

use super::{
    Service,
    convert::{self, error},
};

/// The amount of a transfer that proves ownership: the smallest possible.
const PROOF_AMOUNT: Money = Money::new(1, Currency::Hbd);

#[tonic::async_trait]
impl AccountProofService for Service {
    async fn issue_account_challenge(
        &self,
        request: Request<v1::IssueAccountChallengeRequest>,
    ) -> Result<Response<v1::IssueAccountChallengeResponse>, Status> {
        let message = request.get_ref();
        let (merchant, principal) = self.target_merchant_any_scope(&request, &message.merchant_id).await?;
        if !message.cancel {
            principal.require_scope_for(merchant.id, Scope::MerchantPayout)?;
        }
        let account = message.hive_account.as_deref().map(account).transpose()?;
        let issued =
            principal.engine.merchants.issue_challenge(merchant.id, account, message.cancel).await.map_err(error)?;
        let challenge = issued.challenge;
        let operation = uri::transfer(Some(&challenge.account), &challenge.account, PROOF_AMOUNT, &issued.memo);
        let mut operation_json = String::new();
        operation.write(&mut operation_json, Form::Condenser);
        let uri = uri::sign_op(&operation, &uri::Params::default());
        Ok(Response::new(v1::IssueAccountChallengeResponse {
            hive_account: challenge.account.to_string(),
            action: super::enums::action(challenge.action).into(),
            new_hive_account: match challenge.action {
                Action::ChangeTo(account) => Some(account.to_string()),
                Action::Verify | Action::Cancel => None,
            },
            text: issued.text,
            digest: hex(&issued.digest),
            nonce: challenge.nonce.to_string(),
            issued_at: Some(convert::timestamp(challenge.issued_at)),
            expires_at: Some(convert::timestamp(challenge.expires_at)),
            signatures: u32::try_from(challenge.keys.len()).unwrap_or(u32::MAX),
            memo: issued.memo,
            operation_json,
            hivesigner_url: uri::hivesigner(&uri),
            uri,
        }))
    }

    async fn submit_account_proof(
        &self,
        request: Request<v1::SubmitAccountProofRequest>,
    ) -> Result<Response<v1::SubmitAccountProofResponse>, Status> {
        let message = request.get_ref();
        let (merchant, principal) = self.target_merchant_any_scope(&request, &message.merchant_id).await?;
        let nonce = Nonce::parse(&message.nonce);
        let nonce = nonce.ok_or_else(|| ApiError::field("nonce", "must be 32 hex characters"))?;
        let is_cancellation = merchant.challenge(nonce).is_ok_and(|challenge| challenge.action == Action::Cancel);
        if !is_cancellation {
            principal.require_scope_for(merchant.id, Scope::MerchantPayout)?;
        }
        if message.signatures.is_empty() || message.signatures.len() > MAX_SIGNATURES {
            return Err(ApiError::field("signatures", format!("must be 1 to {MAX_SIGNATURES} signatures")).into());
        }
        let mut signatures = Vec::new();
        for (index, text) in message.signatures.iter().enumerate() {
            let invalid = || ApiError::field(format!("signatures[{index}]"), "must be 130 hex characters");
            signatures.push(Signature::parse(text).ok_or_else(invalid)?);
        }
        let proof =
            principal.engine.merchants.answer_challenge(merchant.id, nonce, &signatures).await.map_err(error)?;
        Ok(Response::new(v1::SubmitAccountProofResponse {
            merchant: Some(convert::merchant(&proof.merchant, self.engine.network())),
            complete: proof.is_complete,
            signatures: u32::try_from(proof.keys).unwrap_or(u32::MAX),
        }))
    }

    async fn cancel_account_change(
        &self,
        request: Request<v1::CancelAccountChangeRequest>,
    ) -> Result<Response<v1::CancelAccountChangeResponse>, Status> {
        let (merchant, principal) =
            self.target_merchant(&request, &request.get_ref().merchant_id, Scope::MerchantPayout).await?;
        let merchant = principal.engine.merchants.cancel_account_change(merchant.id).await.map_err(error)?;
        Ok(record_response(convert::merchant(&merchant, self.engine.network())))
    }

    async fn verify_merchant(
        &self,
        request: Request<v1::VerifyMerchantRequest>,
    ) -> Result<Response<v1::VerifyMerchantResponse>, Status> {
        let message = request.into_inner();
        let unknown = || ApiError::with_message(Reason::NotFound, "no such merchant");
        let id: MerchantId = message.merchant_id.parse().map_err(|_| unknown())?;
        let account = message.hive_account.as_deref().map(account).transpose()?;
        let merchant = self.engine.merchants.vouch_for(id, account).await.map_err(error)?;
        Ok(record_response(convert::merchant(&merchant, self.engine.network())))
    }
}

fn account(name: &str) -> Result<AccountName, ApiError> {
    AccountName::parse(name).map_err(|error| ApiError::field("hiveAccount", error.to_string()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
