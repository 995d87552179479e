//! The way into the dashboard: who visits, whether the form is theirs, and which page answers.

use engine::mutant;
use http::{Method, StatusCode};
use proto::{ApiError, Carried, Reason, v1};
use warp::reply::Response;

use super::{
    account, audit,
    login::{LOGIN, admit_stranger, is_from_here, log_in, login_page, visitor, with_cookie},
    merchant, merchants, nodes, overview, payment, payments, settings, unmatched,
    visit::Visit,
    webhooks,
};
use crate::facade::{
    http::{call::Call, query::Query, refusal::Refusal, state::Facade},
    pages::html,
    rest::export::Format,
};

/// Answers every address below `/dashboard`; `path` is what stands after it.
pub(crate) async fn serve(facade: &Facade, mut call: Call, path: &str) -> Result<Response, Refusal> {
    let path: Vec<&str> = if path.is_empty() { Vec::new() } else { path.split('/').collect() };
    if path.iter().any(|part| part.is_empty()) {
        return Err(Reason::UnknownRoute.into());
    }
    let path = &path[..];
    let Some(desk) = &facade.desk else { return Err(Reason::UnknownRoute.into()) };
    let is_post = call.method == Method::POST;
    if !is_post && call.method != Method::GET {
        return Err(Refusal::method("GET, POST"));
    }
    if is_post && !is_from_here(&call) {
        return Err(Reason::InvalidFormToken.into());
    }
    if path == ["login"] {
        if is_post {
            return log_in(facade, desk, call).await;
        }
        admit_stranger(facade, &call)?;
        return Ok(login_page(facade, &call, None).await);
    }
    let Some((token, session)) = visitor(desk, &call) else {
        admit_stranger(facade, &call)?;
        return Ok(html::see_other(LOGIN));
    };
    call.caller.api_key = Some(session.key.clone());
    if let Some(limits) = &facade.edge.limits {
        limits.admit_visit(&session.merchant_id, !is_post, path)?;
    }
    let form = if is_post { call.form().await? } else { Query::parse("") };
    let is_ours = desk.sessions.is_form_token(&token, form.get("token").unwrap_or_default());
    if is_post && !is_ours && !mutant!("facade-dashboard-token-not-checked") {
        return Err(Reason::InvalidFormToken.into());
    }
    if is_post && path == ["logout"] {
        match form.get("everywhere") {
            Some(_) => desk.sessions.close_all(&session.merchant_id),
            None if mutant!("facade-logout-leaves-the-session") => {}
            None => desk.sessions.close(&token),
        }
        return Ok(with_cookie(html::see_other(LOGIN), "", 0));
    }
    let request = call.caller.request(v1::GetCurrentMerchantRequest {});
    let merchant = match facade
        .engine
        .merchants()
        .get_current_merchant(request)
        .await
        .and_then(Carried::carried)
        .map_err(ApiError::from)
    {
        Ok(merchant) => merchant,
        // The key has been replaced: who holds only the old one is a stranger.
        Err(refused) if refused.reason == Reason::InvalidApiKey => {
            desk.sessions.close(&token);
            return Ok(with_cookie(html::see_other(LOGIN), "", 0));
        }
        Err(refused) => return Err(refused.into()),
    };
    let visit = Visit { facade, desk, call, token, merchant, form };
    match (is_post, path) {
        (false, []) => overview::page(&visit).await,
        (false, ["payments"]) => payments::page(&visit).await,
        (false, ["payments.csv"]) => payments::export(&visit, Format::Csv { bom: false }).await,
        (false, ["payments.json"]) => payments::export(&visit, Format::Json).await,
        (false, ["payments", "new"]) => Ok(payment::form(&visit, StatusCode::OK, Vec::new())),
        (true, ["payments", "new"]) => payment::create(&visit).await,
        (false, ["payments", id]) => payment::page(&visit, id, Vec::new()).await,
        (true, ["payments", id, "cancel"]) => payment::cancel(&visit, id).await,
        (true, ["payments", id, "pay"]) => payment::pay(&visit, id).await,
        (true, ["payments", id, "delete-metadata"]) => payment::delete_metadata(&visit, id).await,
        (true, ["payments", id, "delete-note"]) => payment::delete_note(&visit, id).await,
        (true, ["payments", id, "resolve"]) => unmatched::resolve(&visit, id).await,
        (false, ["payments", id, "refund"]) => unmatched::refund(&visit, id).await,
        (false, ["unmatched"]) => unmatched::list(&visit).await,
        (false, ["unmatched", id]) => unmatched::one(&visit, id, Vec::new()).await,
        (true, ["unmatched", id, "assign"]) => unmatched::assign(&visit, id).await,
        (true, ["unmatched", id, "ignore"]) => unmatched::ignore(&visit, id).await,
        (false, ["account"]) => Ok(account::page(&visit)),
        (true, ["account", "challenge"]) => account::challenge(&visit).await,
        (true, ["account", "prove"]) => account::prove(&visit).await,
        (true, ["account", "cancel"]) => account::cancel(&visit).await,
        (false, ["webhooks"]) => webhooks::page(&visit, Vec::new()).await,
        (true, ["webhooks", "test"]) => webhooks::test(&visit).await,
        (true, ["webhooks", "enable"]) => webhooks::enable(&visit).await,
        (true, ["webhooks", "replay"]) => webhooks::replay(&visit).await,
        (false, ["webhooks", id]) => webhooks::delivery(&visit, id).await,
        (true, ["webhooks", id, "redeliver"]) => webhooks::redeliver(&visit, id).await,
        (false, ["settings"]) => settings::page(&visit, StatusCode::OK, Vec::new()).await,
        (true, ["settings"]) => settings::save(&visit).await,
        (true, ["settings", "secret"]) => settings::new_secret(&visit).await,
        (true, ["settings", "keys", id, "roll"]) => settings::roll_key(&visit, id).await,
        (false, ["merchants"]) => merchants::page(&visit).await,
        (false, ["merchants.csv"]) => merchants::export(&visit, Format::Csv { bom: false }).await,
        (false, ["merchants.json"]) => merchants::export(&visit, Format::Json).await,
        (false, ["audit"]) => audit::page(&visit).await,
        (false, ["nodes"]) => nodes::page(&visit).await,
        (false, ["merchants", id]) => merchant::page(&visit, id, None).await,
        (true, ["merchants", id, "clear"]) => merchant::clear(&visit, id).await,
        (true, ["merchants", id, "limits"]) => merchant::set_limits(&visit, id).await,
        (true, ["merchants", id, "active"]) => merchants::set_active(&visit, id).await,
        (true, ["merchants", id, "key"]) => merchants::new_key(&visit, id).await,
        _ => Err(Reason::UnknownRoute.into()),
    }
}
