//! The merchant's Hive account: verification, challenges, and a pending change.

use askama::Template;
use http::StatusCode;
use proto::{ApiError, Reason, v1};
use warp::reply::Response;

use crate::facade::{
    http::{error, refusal::Refusal},
    pages::{
        dashboard::visit::{Frame, Visit, minute, problems},
        html,
        wallets::Qr,
    },
    record,
};

#[derive(Template)]
#[template(path = "dashboard/account.html")]
struct AccountPage<'v> {
    frame: Frame<'v>,
    account: &'v str,
    verification: &'static str,
    /// When and how ownership was proven.
    proven: Option<String>,
    pending: Option<Pending>,
    challenge: Option<Challenge>,
}

/// A pending change.
struct Pending {
    account: String,
    requested: String,
    effective: String,
    current_proven: bool,
    new_proven: bool,
}

impl Pending {
    fn of(wire: &v1::PendingAccount) -> Self {
        Self {
            account: wire.hive_account.clone(),
            requested: minute(wire.requested_at),
            effective: minute(wire.effective_at),
            current_proven: wire.current_proven,
            new_proven: wire.new_proven,
        }
    }
}

/// The text or the transfer to sign.
struct Challenge {
    account: String,
    text: String,
    nonce: String,
    memo: String,
    uri: String,
    hivesigner_url: String,
    expires: String,
    signatures: u32,
    qr: Option<Qr>,
}

impl Challenge {
    fn of(wire: v1::IssueAccountChallengeResponse) -> Self {
        Self {
            qr: Qr::of(&wire.uri),
            account: wire.hive_account,
            text: wire.text,
            nonce: wire.nonce,
            memo: wire.memo,
            uri: wire.uri,
            hivesigner_url: wire.hivesigner_url,
            expires: minute(wire.expires_at),
            signatures: wire.signatures,
        }
    }
}

fn shown(visit: &Visit<'_>, status: StatusCode, challenge: Option<Challenge>, wrong: Vec<String>) -> Response {
    let merchant = &visit.merchant;
    let means = match merchant.account_verified_by() {
        v1::AccountProofMethod::Signature => " by signature",
        v1::AccountProofMethod::Transfer => " by transfer",
        v1::AccountProofMethod::Operator => " by the operator",
        v1::AccountProofMethod::Unspecified => "",
    };
    let page = AccountPage {
        account: &merchant.hive_account,
        verification: record::verification_word(merchant.account_verification()),
        proven: merchant.account_verified_at.map(|at| format!("on {} (UTC){means}", minute(at))),
        pending: merchant.pending_account.as_ref().map(Pending::of),
        challenge,
        frame: visit.frame("account", wrong),
    };
    html::page(status, page.render(), None)
}

/// Returns the page of the account.
pub(super) fn page(visit: &Visit<'_>) -> Response {
    shown(visit, StatusCode::OK, None, Vec::new())
}

/// Redirects a merchant whose request needs a proof to the page of the account.
pub(super) fn instead(visit: &Visit<'_>, refused: ApiError) -> Result<Response, Refusal> {
    match refused.reason {
        Reason::AccountNotProven => Ok(shown(visit, StatusCode::FORBIDDEN, None, problems(&refused))),
        _ => Err(refused.into()),
    }
}

async fn issued(visit: &Visit<'_>) -> Result<Challenge, ApiError> {
    let hive_account = visit.form.get("hiveAccount").map(|name| name.trim().to_owned());
    let request =
        v1::IssueAccountChallengeRequest { merchant_id: visit.merchant.id.clone(), hive_account, cancel: false };
    let mut proofs = visit.facade.engine.account_proofs();
    Ok(Challenge::of(proofs.issue_account_challenge(visit.request(request)).await?.into_inner()))
}

/// Issues a challenge and shows it.
pub(super) async fn challenge(visit: &Visit<'_>) -> Result<Response, Refusal> {
    match issued(visit).await {
        Ok(challenge) => Ok(shown(visit, StatusCode::OK, Some(challenge), Vec::new())),
        Err(refused) if refused.http() < 500 => Ok(shown(visit, error::status(&refused), None, problems(&refused))),
        Err(refused) => Err(refused.into()),
    }
}

/// Submits signatures; shows the challenge again while more are needed.
pub(super) async fn prove(visit: &Visit<'_>) -> Result<Response, Refusal> {
    let text = |name: &str| visit.form.get(name).unwrap_or_default().to_owned();
    let signatures = text("signatures").split_whitespace().map(str::to_owned).collect();
    let request = v1::SubmitAccountProofRequest {
        merchant_id: visit.merchant.id.clone(),
        nonce: text("nonce").trim().to_owned(),
        signatures,
    };
    let response = visit.facade.engine.account_proofs().submit_account_proof(visit.request(request)).await;
    match response.map_err(ApiError::from) {
        Ok(response) if response.get_ref().complete => Ok(html::see_other("/dashboard/account?done=proven")),
        Ok(_) => challenge(visit).await,
        Err(refused) if refused.http() < 500 => {
            let again = issued(visit).await.ok();
            Ok(shown(visit, error::status(&refused), again, problems(&refused)))
        }
        Err(refused) => Err(refused.into()),
    }
}

/// Cancels a pending change.
pub(super) async fn cancel(visit: &Visit<'_>) -> Result<Response, Refusal> {
    let request = v1::CancelAccountChangeRequest { merchant_id: visit.merchant.id.clone() };
    let cancelled = visit.facade.engine.account_proofs().cancel_account_change(visit.request(request)).await;
    match cancelled.map_err(ApiError::from) {
        Ok(_) => Ok(html::see_other("/dashboard/account?done=kept")),
        Err(refused) if refused.http() < 500 => Ok(shown(visit, error::status(&refused), None, problems(&refused))),
        Err(refused) => Err(refused.into()),
    }
}
