//! API keys, the audit log, and exports.

use std::time::Duration;

use engine::{
    api_key::{MAX_OVERLAP_HOURS, key_name},
    audit::{Entry, FieldChange},
    ids::{KeyId, MerchantId},
    merchant::{ApiKey, Merchant, Scope, Scopes},
};
use futures_util::stream::{self, BoxStream, StreamExt};
use proto::{
    ApiError, Reason, RecordResponse,
    v1::{
        self, api_key_service_server::ApiKeyService, audit_log_service_server::AuditLogService,
        export_service_server::ExportService,
    },
};
use storage::{AuditQuery, MerchantQuery, PageAt, PaymentQuery};
use tonic::{Request, Response, Status};

use super::{
    Service,
    convert::{self, error},
    enums, page_stream,
    page_token::Filters,
    payments::{numeric_token, page_size, read_ids},
};

/// Rows that an export reads per page.
const CHUNK: usize = 100;

/// Converts the record of an API key, without the key itself.
fn record(key: &ApiKey) -> v1::ApiKey {
    v1::ApiKey {
        id: key.id.to_string(),
        name: key.name.clone(),
        prefix: key.prefix.clone(),
        last4: key.last4.clone(),
        scopes: key.scopes.iter().map(|scope| enums::scope(scope).into()).collect(),
        created_at: Some(convert::timestamp(key.created_at)),
        last_used_at: key.last_used_at.map(convert::timestamp),
        expires_at: key.expires_at.map(convert::timestamp),
    }
}

fn key_id(text: &str) -> Result<KeyId, ApiError> {
    text.parse().map_err(|_| ApiError::with_message(Reason::NotFound, "no such API key"))
}

/// Checks that the caller's scopes include all scopes of a key to be revoked or replaced: otherwise a stolen key with few
/// scopes could lock the merchant out.
///
/// # Errors
/// `INSUFFICIENT_SCOPE` if the caller lacks a scope of the key.
fn require_scopes_of(merchant: &Merchant, key: KeyId, scopes: Scopes) -> Result<(), ApiError> {
    let is_covered = merchant.keys.iter().find(|one| one.id == key).is_none_or(|one| one.scopes.is_subset(scopes));
    is_covered.then_some(()).ok_or_else(|| {
        ApiError::with_message(
            Reason::InsufficientScope,
            "the key to be revoked or replaced has scopes that the caller's key lacks",
        )
    })
}

impl Service {
    fn keys_of(&self, merchant: &Merchant) -> Vec<v1::ApiKey> {
        let now = self.engine.now();
        merchant.keys.iter().filter(|key| key.is_valid(now)).map(record).collect()
    }
}

#[tonic::async_trait]
impl ApiKeyService for Service {
    async fn list_api_keys(
        &self,
        request: Request<v1::ListApiKeysRequest>,
    ) -> Result<Response<v1::ListApiKeysResponse>, Status> {
        let (merchant, _) =
            self.target_merchant(&request, &request.get_ref().merchant_id, Scope::MerchantWrite).await?;
        let (keys, may_roll) = (self.keys_of(&merchant), self.engine.merchants.allows_key_roll());
        Ok(Response::new(v1::ListApiKeysResponse { keys, may_roll }))
    }

    async fn create_api_key(
        &self,
        request: Request<v1::CreateApiKeyRequest>,
    ) -> Result<Response<v1::CreateApiKeyResponse>, Status> {
        let message = request.get_ref();
        let (merchant, principal) = self.target_merchant(&request, &message.merchant_id, Scope::MerchantWrite).await?;
        let (name, scopes) = match (
            key_name(&message.name),
            Scopes::parse(&enums::names(&message.scopes, v1::ApiKeyScope::rest_name)),
        ) {
            (Ok(name), Ok(scopes)) => (name, scopes),
            (name, scopes) => {
                let violations = [name.err(), scopes.err()].into_iter().flatten().collect();
                return Err(convert::invalid(violations).into());
            }
        };
        if !scopes.is_subset(principal.scopes) {
            let violation = "must be a subset of the scopes of the caller's key";
            return Err(ApiError::new(Reason::InsufficientScope).and_field("scopes", violation).into());
        }
        let (key, text) = principal.engine.merchants.create_api_key(merchant.id, &name, scopes).await.map_err(error)?;
        Ok(Response::new(v1::CreateApiKeyResponse { key: Some(record(&key)), api_key: text }))
    }

    async fn revoke_api_key(
        &self,
        request: Request<v1::RevokeApiKeyRequest>,
    ) -> Result<Response<v1::RevokeApiKeyResponse>, Status> {
        let (merchant, principal) =
            self.target_merchant(&request, &request.get_ref().merchant_id, Scope::MerchantWrite).await?;
        let key = key_id(&request.get_ref().key_id)?;
        if key == principal.key {
            return Err(ApiError::new(Reason::ApiKeyInUse).into());
        }
        require_scopes_of(&merchant, key, principal.scopes)?;
        principal.engine.merchants.revoke_api_key(merchant.id, key).await.map_err(error)?;
        let merchant = self.engine.merchants.get(merchant.id).await.map_err(error)?;
        let (keys, may_roll) = (self.keys_of(&merchant), self.engine.merchants.allows_key_roll());
        Ok(Response::new(v1::RevokeApiKeyResponse { keys, may_roll }))
    }

    async fn roll_api_key(
        &self,
        request: Request<v1::RollApiKeyRequest>,
    ) -> Result<Response<v1::RollApiKeyResponse>, Status> {
        let (merchant, principal) =
            self.target_merchant(&request, &request.get_ref().merchant_id, Scope::MerchantWrite).await?;
        let hours = convert::required("overlapHours", request.get_ref().overlap_hours)?;
        if hours > MAX_OVERLAP_HOURS {
            let message = format!("must be a whole number from 0 to {MAX_OVERLAP_HOURS}");
            return Err(ApiError::field("overlapHours", message).into());
        }
        let old = key_id(&request.get_ref().key_id)?;
        require_scopes_of(&merchant, old, principal.scopes)?;
        let overlap = Duration::from_secs(u64::from(hours) * 3_600);
        let (key, text, until) =
            principal.engine.merchants.roll_api_key(merchant.id, old, overlap).await.map_err(error)?;
        Ok(Response::new(v1::RollApiKeyResponse {
            key: Some(record(&key)),
            api_key: text,
            previous_valid_until: until.map(convert::timestamp),
        }))
    }
}

#[tonic::async_trait]
impl AuditLogService for Service {
    async fn list_audit(
        &self,
        request: Request<v1::ListAuditRequest>,
    ) -> Result<Response<v1::ListAuditResponse>, Status> {
        self.admin(&request).await?;
        let message = request.into_inner();
        let limit = page_size(message.page_size)?;
        let filters = v1::ListAuditRequest { page_size: 0, page_token: String::new(), ..message.clone() };
        let filters = Filters::of(&filters);
        let before = numeric_token(filters.read(&message.page_token)?)?;
        let merchant = message.merchant_id.map(|id| id.parse::<MerchantId>());
        let merchant = merchant.transpose().map_err(|_| ApiError::field("merchantId", "must be a merchant's id"))?;
        let query = AuditQuery { before, limit: limit as usize + 1, merchant };
        let mut entries = self.engine.operations.audit(query).await.map_err(error)?;
        let has_more = entries.len() > limit as usize;
        entries.truncate(limit as usize);
        let last = entries.last().filter(|_| has_more);
        let next_page_token = filters.token(last.map(|entry| entry.seq.to_string()).unwrap_or_default());
        let entries = entries.into_iter().map(audit_entry).collect();
        Ok(Response::new(v1::ListAuditResponse { entries, next_page_token }))
    }
}

fn audit_entry(entry: Entry) -> v1::AuditEntry {
    let change =
        |change: FieldChange| v1::AuditChange { field: change.field, before: change.before, after: change.after };
    v1::AuditEntry {
        seq: entry.seq,
        at: Some(convert::timestamp(entry.at)),
        actor_merchant_id: entry.actor.merchant.map(|id| id.to_string()),
        actor_key_id: entry.actor.key.map(|id| id.to_string()),
        ip: entry.actor.ip,
        action: entry.action,
        merchant_id: entry.merchant.to_string(),
        subject: entry.subject,
        changes: entry.changes.into_iter().map(change).collect(),
    }
}

#[tonic::async_trait]
impl ExportService for Service {
    type ExportMerchantsStream = BoxStream<'static, Result<v1::ExportMerchantsResponse, Status>>;

    async fn export_merchants(
        &self,
        request: Request<v1::ExportMerchantsRequest>,
    ) -> Result<Response<Self::ExportMerchantsStream>, Status> {
        self.admin(&request).await?;
        let message = request.into_inner();
        let query = MerchantQuery {
            at: PageAt::Number(1),
            limit: CHUNK,
            query: Some(message.query).filter(|query| !query.is_empty()),
            active: message.active,
            on_hold: message.flagged,
        };
        let (engine, network) = (self.engine.clone(), self.engine.network());
        let merchants = page_stream::rows(move |at| {
            let (engine, query) = (engine.clone(), MerchantQuery { at, ..query.clone() });
            async move { engine.merchants.list(query).await }
        });
        let row =
            move |row: Result<_, Status>| Ok(RecordResponse::from_record(convert::listed_merchant(&row?, network)));
        Ok(Response::new(merchants.map(row).boxed()))
    }

    type ExportWebhookDeliveriesStream = BoxStream<'static, Result<v1::ExportWebhookDeliveriesResponse, Status>>;

    async fn export_webhook_deliveries(
        &self,
        request: Request<v1::ExportWebhookDeliveriesRequest>,
    ) -> Result<Response<Self::ExportWebhookDeliveriesStream>, Status> {
        Ok(Response::new(self.exported_deliveries(request).await?))
    }

    type ExportPaymentsStream = BoxStream<'static, Result<v1::ExportPaymentsResponse, Status>>;

    async fn export_payments(
        &self,
        request: Request<v1::ExportPaymentsRequest>,
    ) -> Result<Response<Self::ExportPaymentsStream>, Status> {
        let merchant = self.caller(&request, Scope::PaymentsRead).await?;
        let message = request.into_inner();
        let ids = read_ids(&message.ids)?;
        // An empty filter would select all payments.
        let matches_none = !message.ids.is_empty() && ids.is_empty();
        let query = PaymentQuery {
            merchant: merchant.id,
            at: PageAt::Number(1),
            limit: CHUNK,
            states: message.statuses.into_iter().map(convert::read_state).collect::<Result<_, _>>()?,
            from: message.created_from.map(|time| convert::instant("createdFrom", time)).transpose()?,
            to: message.created_to.map(|time| convert::instant("createdTo", time)).transpose()?,
            currency: message.currency.map(convert::read_currency).transpose()?,
            min_units: message.min_amount_units,
            max_units: message.max_amount_units,
            unusual: message.unusual,
            ids,
            query: message.query,
        };
        if matches_none {
            return Ok(Response::new(stream::empty().boxed()));
        }
        let engine = self.engine.clone();
        let payments = page_stream::rows(move |at| {
            let (engine, query) = (engine.clone(), PaymentQuery { at, ..query.clone() });
            async move { engine.payments.list(query).await }
        });
        let engine = self.engine.clone();
        let payments =
            payments.map(move |row| Ok(RecordResponse::from_record(convert::payment(row?, &merchant, engine.now()))));
        Ok(Response::new(payments.boxed()))
    }
}
