//! Access to the dashboard: authentication, CSRF protection, and redirects to the login.

use engine::mutant;
use http::Method;
use proto::{ApiError, IntoRecord, Reason, v1};
use warp::reply::Response;

use super::{
    login::{self, LOGIN, admit_anonymous, is_from_here, login_page, visitor, with_cookie},
    visit::Visit,
};
use crate::facade::{
    http::{
        call::Call,
        query::Query,
        refusal::Refusal,
        route::{Access, PLACEHOLDERS_MAX, Responding},
        sessions::{self, DashboardState, Session, Token},
        state::Facade,
    },
    limits::Rates,
    pages::html,
};

/// Handles a request of a visitor; the second argument has the values of the path's placeholders.
pub(super) type Page = for<'v> fn(&'v Visit<'v>, [&'v str; PLACEHOLDERS_MAX]) -> Responding<'v>;

/// Shows a page to an authorized visitor.
pub(super) async fn enter(
    facade: &Facade,
    mut call: Call,
    (access, rates): (Access, Rates),
    values: [&str; PLACEHOLDERS_MAX],
    page: Page,
) -> Result<Response, Refusal> {
    let dashboard = open(facade, &call)?;
    let Some((token, session)) = visitor(facade, &call).await? else { return to_login(facade, &call) };
    let form = admit(facade, &mut call, (&token, &session), rates).await?;
    let request = call.caller.request(v1::GetCurrentMerchantRequest {});
    let found = facade.engine.merchants().get_current_merchant(request).await;
    let merchant = match found.and_then(IntoRecord::into_record).map_err(ApiError::from) {
        Ok(merchant) => merchant,
        // The session's key was replaced: the session is no longer valid.
        Err(refused) if refused.reason == Reason::InvalidApiKey => {
            sessions::close(&facade.engine, &call.caller, &token).await?;
            return Ok(with_cookie(html::see_other(LOGIN), "", 0));
        }
        Err(refused) => return Err(refused.into()),
    };
    if access == Access::VisitingAdmin && !merchant.admin {
        return Err(Reason::AdminRequired.into());
    }
    let visit = Visit { facade, dashboard, call, token, merchant, form };
    page(&visit, values).await
}

/// Shows the login page.
pub(super) async fn show_login(facade: &Facade, call: Call) -> Result<Response, Refusal> {
    open(facade, &call)?;
    admit_anonymous(facade, &call)?;
    Ok(login_page(facade, &call, None).await)
}

/// Opens a session with the key of the form.
pub(super) async fn log_in(facade: &Facade, call: Call) -> Result<Response, Refusal> {
    let dashboard = open(facade, &call)?;
    login::log_in(facade, dashboard, call).await
}

/// Closes the session, or every session of its merchant.
pub(super) async fn log_out(facade: &Facade, mut call: Call) -> Result<Response, Refusal> {
    open(facade, &call)?;
    let Some((token, session)) = visitor(facade, &call).await? else { return to_login(facade, &call) };
    let form = admit(facade, &mut call, (&token, &session), Rates::Calls).await?;
    match form.get("everywhere") {
        Some(_) => {
            let request = call.caller.request(v1::CloseAllDashboardSessionsRequest { session_id: token.id() });
            facade.engine.facades().close_all_dashboard_sessions(request).await?;
        }
        None if mutant!("facade-logout-keeps-the-session") => {}
        None => sessions::close(&facade.engine, &call.caller, &token).await?,
    }
    Ok(with_cookie(html::see_other(LOGIN), "", 0))
}

/// Returns 404 to visitors for unknown paths, and redirects other clients to the login.
pub(super) async fn unknown(facade: &Facade, call: Call) -> Result<Response, Refusal> {
    if call.path().split('/').skip(2).any(str::is_empty) {
        return Err(Reason::UnknownRoute.into());
    }
    let page: Page = |_, _| Box::pin(async { Err(Reason::UnknownRoute.into()) });
    enter(facade, call, (Access::Visitor, Rates::Calls), [""; PLACEHOLDERS_MAX], page).await
}

/// Returns the state of the dashboard, if it is enabled and the request may originate from one of its pages.
fn open<'f>(facade: &'f Facade, call: &Call) -> Result<&'f DashboardState, Refusal> {
    let Some(dashboard) = &facade.dashboard else { return Err(Reason::UnknownRoute.into()) };
    if call.method != Method::POST && call.method != Method::GET {
        return Err(Refusal::method("GET, POST"));
    }
    if call.method == Method::POST && !is_from_here(call) {
        return Err(Reason::InvalidFormToken.into());
    }
    Ok(dashboard)
}

/// Redirects to the login.
fn to_login(facade: &Facade, call: &Call) -> Result<Response, Refusal> {
    admit_anonymous(facade, call)?;
    Ok(html::see_other(LOGIN))
}

/// Counts the request against the limits of its merchant, and reads the form, which must contain the session's token.
async fn admit(
    facade: &Facade,
    call: &mut Call,
    (token, session): (&Token, &Session),
    rates: Rates,
) -> Result<Query, Refusal> {
    call.caller.api_key = Some(session.key.clone());
    let is_post = call.method == Method::POST;
    if let Some(limits) = &facade.edge.limits {
        limits.admit_visit(&session.merchant_id, !is_post, rates)?;
    }
    let form = if is_post { call.form().await? } else { Query::parse("") };
    let is_ours = token.is_form_token(form.get("token").unwrap_or_default());
    if is_post && !is_ours && !mutant!("facade-dashboard-token-not-checked") {
        return Err(Reason::InvalidFormToken.into());
    }
    Ok(form)
}
