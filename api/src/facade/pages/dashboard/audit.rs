//! The audit log, for admins.

use askama::Template;
use http::StatusCode;
use proto::{ApiError, v1};
use warp::reply::Response;

use crate::facade::{
    http::{error, refusal::Refusal},
    pages::{
        dashboard::visit::{Frame, Visit, minute, problems},
        html,
    },
    record,
};

/// Entries per page.
const LIMIT: u32 = 50;

#[derive(Template)]
#[template(path = "dashboard/audit.html")]
struct AuditPage<'v> {
    frame: Frame<'v>,
    merchant_id: String,
    rows: Vec<Row>,
    next: Option<String>,
}

struct Row {
    at: String,
    action: String,
    merchant_id: String,
    subject: String,
    actor: String,
    key: String,
    ip: String,
    changes: Vec<String>,
}

impl Row {
    fn of(entry: &v1::AuditEntry) -> Self {
        let change = |change: &v1::AuditChange| match (&change.before, &change.after) {
            (None, None) => change.field.clone(),
            (before, after) => {
                let text = |side: &Option<String>| side.clone().unwrap_or_else(|| "none".to_owned());
                format!("{}: {} → {}", change.field, text(before), text(after))
            }
        };
        Self {
            at: minute(entry.at),
            action: entry.action.replace('_', " "),
            merchant_id: entry.merchant_id.clone(),
            subject: entry.subject.clone().filter(|subject| *subject != entry.merchant_id).unwrap_or_default(),
            actor: match &entry.actor_merchant_id {
                Some(actor) if *actor == entry.merchant_id => "itself".to_owned(),
                Some(actor) => actor.clone(),
                None => "without a key".to_owned(),
            },
            key: entry.actor_key_id.clone().unwrap_or_default(),
            ip: entry.ip.clone().unwrap_or_default(),
            changes: entry.changes.iter().map(change).collect(),
        }
    }
}

/// Returns entries of the audit log, newest first, for admins.
pub(super) async fn page(visit: &Visit<'_>) -> Result<Response, Refusal> {
    let query = visit.call.query();
    let merchant_id = query.get("merchantId").unwrap_or_default().trim().to_owned();
    let request = v1::ListAuditRequest {
        page_token: query.cursor(),
        page_size: LIMIT,
        merchant_id: Some(merchant_id.clone()).filter(|id| !id.is_empty()),
    };
    let found = visit.facade.engine.audit_log().list_audit(visit.request(request)).await.map_err(ApiError::from);
    let (status, found, wrong) = match found {
        Ok(found) => (StatusCode::OK, found.into_inner(), Vec::new()),
        Err(refused) if refused.http() == 400 => (error::status(&refused), Default::default(), problems(&refused)),
        Err(refused) => return Err(refused.into()),
    };
    let next = record::token(&found.next_page_token).map(|cursor| {
        let mut out = url::form_urlencoded::Serializer::new(String::new());
        out.append_pair("merchantId", &merchant_id).append_pair("cursor", cursor);
        format!("/dashboard/audit?{}", out.finish())
    });
    let rows = found.entries.iter().map(Row::of).collect();
    let page = AuditPage { frame: visit.frame("audit", wrong), merchant_id, rows, next };
    Ok(html::page(status, page.render(), None))
}
