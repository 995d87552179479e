//! Proof of a merchant's Hive account: challenge, signatures, and cancelling a pending change.

use engine::time::Timestamp;
use http::StatusCode;
use proto::{IntoRecord, v1};
use serde::Serialize;
use serde_json::value::RawValue;
use warp::reply::Response;

use crate::facade::{
    http::{call::Call, refusal::Refusal, response, state::Facade},
    record::{self, Text, instant},
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Challenge<'a> {
    hive_account: &'a str,
    action: String,
    text: &'a str,
    digest: &'a str,
    nonce: &'a str,
    issued_at: Text<Timestamp>,
    expires_at: Text<Timestamp>,
    signatures: u32,
    transfer: Transfer<'a>,
}

/// The transfer that proves the account instead of signatures.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Transfer<'a> {
    memo: &'a str,
    operation: Box<RawValue>,
    uri: &'a str,
    hivesigner_url: &'a str,
}

fn action(issued: &v1::IssueAccountChallengeResponse) -> String {
    match issued.action() {
        v1::AccountChallengeAction::Change => format!("change to {}", issued.new_hive_account()),
        v1::AccountChallengeAction::CancelChange => "cancel change".to_owned(),
        v1::AccountChallengeAction::Verify | v1::AccountChallengeAction::Unspecified => "verify".to_owned(),
    }
}

/// Issues a challenge, or returns the current one.
pub(crate) async fn challenge(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut body = call.optional_json().await?;
    let hive_account = body.optional_text("hiveAccount");
    let cancel = body.maybe_bool("cancel").unwrap_or_default();
    body.finish()?;
    let request = v1::IssueAccountChallengeRequest { merchant_id: id.to_owned(), hive_account, cancel };
    let issued = facade.engine.account_proofs().issue_account_challenge(call.caller.request(request)).await?;
    let issued = issued.into_inner();
    let body = Challenge {
        hive_account: &issued.hive_account,
        action: action(&issued),
        text: &issued.text,
        digest: &issued.digest,
        nonce: &issued.nonce,
        issued_at: Text(instant(issued.issued_at)),
        expires_at: Text(instant(issued.expires_at)),
        signatures: issued.signatures,
        transfer: Transfer {
            memo: &issued.memo,
            operation: RawValue::from_string(issued.operation_json.clone()).unwrap_or_default(),
            uri: &issued.uri,
            hivesigner_url: &issued.hivesigner_url,
        },
    };
    Ok(response::json(StatusCode::OK, &body))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Proven<'a> {
    complete: bool,
    signatures: u32,
    merchant: record::Merchant<'a>,
}

/// Proves the account with signatures of a challenge.
pub(crate) async fn prove(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut body = call.json().await?;
    let nonce = body.text("nonce");
    let signatures = body.texts("signatures");
    body.finish()?;
    let request = v1::SubmitAccountProofRequest { merchant_id: id.to_owned(), nonce, signatures };
    let proven = facade.engine.account_proofs().submit_account_proof(call.caller.request(request)).await?;
    let proven = proven.into_inner();
    let merchant = proven.merchant.unwrap_or_default();
    let body =
        Proven { complete: proven.complete, signatures: proven.signatures, merchant: record::Merchant::of(&merchant) };
    Ok(response::json(StatusCode::OK, &body))
}

/// Cancels a pending change of the account.
pub(crate) async fn cancel(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    let request = call.with_key()?.request(v1::CancelAccountChangeRequest { merchant_id: id.to_owned() });
    let merchant = facade.engine.account_proofs().cancel_account_change(request).await?.into_record()?;
    Ok(response::json(StatusCode::OK, &record::Merchant::of(&merchant)))
}
