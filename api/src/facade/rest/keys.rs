//! API keys of a merchant: list, create, revoke, roll; and the audit log for admins.

use engine::time::Timestamp;
use http::StatusCode;
use proto::v1;
use serde::Serialize;
use warp::reply::Response;

use crate::facade::{
    http::{call::Call, refusal::Refusal, response, state::Facade},
    record::{self, Text},
};

/// Maximum hours that a rolled key stays valid.
const OVERLAP_MAX_HOURS: u32 = 72;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Key<'a> {
    id: &'a str,
    name: &'a str,
    prefix: &'a str,
    last4: &'a str,
    scopes: Vec<&'static str>,
    created_at: Text<Timestamp>,
    last_used_at: Option<Text<Timestamp>>,
    expires_at: Option<Text<Timestamp>>,
}

impl<'a> Key<'a> {
    fn of(key: &'a v1::ApiKey) -> Self {
        Self {
            id: &key.id,
            name: &key.name,
            prefix: &key.prefix,
            last4: &key.last4,
            scopes: key.scopes().filter_map(v1::ApiKeyScope::rest_name).collect(),
            created_at: Text(record::instant(key.created_at)),
            last_used_at: key.last_used_at.map(|at| Text(record::instant(at))),
            expires_at: key.expires_at.map(|at| Text(record::instant(at))),
        }
    }
}

#[derive(Serialize)]
struct Keys<'a> {
    data: Vec<Key<'a>>,
}

fn listed(keys: &[v1::ApiKey]) -> Response {
    response::json(StatusCode::OK, &Keys { data: keys.iter().map(Key::of).collect() })
}

/// Returns the API keys of a merchant.
pub(crate) async fn list(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    let request = call.with_key()?.request(v1::ListApiKeysRequest { merchant_id: id.to_owned() });
    call.no_parameters()?;
    let keys = facade.engine.api_keys().list_api_keys(request).await?.into_inner();
    Ok(listed(&keys.keys))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Made<'a> {
    api_key: &'a str,
    key: Option<Key<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    previous_valid_until: Option<Text<Timestamp>>,
}

/// Creates an API key, which is returned only once.
pub(crate) async fn create(facade: &Facade, mut call: Call, id: &str) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut body = call.json().await?;
    let request = v1::CreateApiKeyRequest {
        merchant_id: id.to_owned(),
        name: body.optional_text("name").unwrap_or_default(),
        // Unknown scopes are left to the engine, which reports them together with other wrong fields.
        scopes: body
            .texts("scopes")
            .iter()
            .map(|word| v1::ApiKeyScope::from_rest_name(word).unwrap_or_default())
            .map(i32::from)
            .collect(),
    };
    body.finish()?;
    let made = facade.engine.api_keys().create_api_key(call.caller.request(request)).await?.into_inner();
    let key = made.key.as_ref().map(Key::of);
    Ok(response::json(StatusCode::CREATED, &Made { api_key: &made.api_key, key, previous_valid_until: None }))
}

/// Revokes an API key and returns the remaining ones.
pub(crate) async fn revoke(facade: &Facade, mut call: Call, id: &str, key: &str) -> Result<Response, Refusal> {
    let request = v1::RevokeApiKeyRequest { merchant_id: id.to_owned(), key_id: key.to_owned() };
    let request = call.with_key()?.request(request);
    let keys = facade.engine.api_keys().revoke_api_key(request).await?.into_inner();
    Ok(listed(&keys.keys))
}

/// Rolls an API key; the new key is returned only once.
pub(crate) async fn roll(facade: &Facade, mut call: Call, id: &str, key: &str) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut body = call.optional_json().await?;
    let overlap_hours = body.optional_integer("overlapHours", 0..=OVERLAP_MAX_HOURS).unwrap_or(0);
    body.finish()?;
    let overlap_hours = Some(overlap_hours);
    let request = v1::RollApiKeyRequest { merchant_id: id.to_owned(), key_id: key.to_owned(), overlap_hours };
    let made = facade.engine.api_keys().roll_api_key(call.caller.request(request)).await?.into_inner();
    let key = made.key.as_ref().map(Key::of);
    let previous_valid_until = made.previous_valid_until.map(|at| Text(record::instant(at)));
    Ok(response::json(StatusCode::OK, &Made { api_key: &made.api_key, key, previous_valid_until }))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    seq: u64,
    at: Text<Timestamp>,
    actor: Actor<'a>,
    action: &'a str,
    merchant_id: &'a str,
    subject: Option<&'a str>,
    changes: Vec<Change<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Actor<'a> {
    merchant_id: Option<&'a str>,
    key_id: Option<&'a str>,
    ip: Option<&'a str>,
}

#[derive(Serialize)]
struct Change<'a> {
    field: &'a str,
    before: Option<&'a str>,
    after: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Log<'a> {
    data: Vec<Entry<'a>>,
    next_cursor: Option<&'a str>,
}

impl<'a> Entry<'a> {
    fn of(entry: &'a v1::AuditEntry) -> Self {
        let change = |change: &'a v1::AuditChange| Change {
            field: &change.field,
            before: change.before.as_deref(),
            after: change.after.as_deref(),
        };
        Self {
            seq: entry.seq,
            at: Text(record::instant(entry.at)),
            actor: Actor {
                merchant_id: entry.actor_merchant_id.as_deref(),
                key_id: entry.actor_key_id.as_deref(),
                ip: entry.ip.as_deref(),
            },
            action: &entry.action,
            merchant_id: &entry.merchant_id,
            subject: entry.subject.as_deref(),
            changes: entry.changes.iter().map(change).collect(),
        }
    }
}

/// Returns audit events, newest first.
pub(crate) async fn audit(facade: &Facade, mut call: Call) -> Result<Response, Refusal> {
    call.with_key()?;
    let mut query = call.query();
    let page_token = query.cursor();
    let merchant_id = query.get("merchantId").map(str::to_owned);
    let request = v1::ListAuditRequest { page_size: query.limit(), page_token, merchant_id };
    query.finish()?;
    let log = facade.engine.audit_log().list_audit(call.caller.request(request)).await?.into_inner();
    let data = log.entries.iter().map(Entry::of).collect();
    Ok(response::json(StatusCode::OK, &Log { data, next_cursor: record::token(&log.next_page_token) }))
}
