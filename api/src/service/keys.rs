//! API keys, the audit log, and whole lists for export.

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
    enums,
    payments::{ids_of, page_size, place_of},
    whole_list,
};

/// Rows of an export that are read at once.
const CHUNK: usize = 100;

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

/// Refuses the revocation or replacement of a key that has a scope which the caller lacks: otherwise a stolen key of few
/// scopes could lock the merchant out.
fn require_scopes_of(merchant: &Merchant, key: KeyId, scopes: Scopes) -> Result<(), ApiError> {
    let is_covered = merchant.keys.iter().find(|one| one.id == key).is_none_or(|one| one.scopes.is_subset(scopes));
    is_covered.then_some(()).ok_or_else(|| {
        ApiError::with_message(Reason::InsufficientScope, "the key to replace or revoke has scopes that this key lacks")
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
        let (merchant, _) = self.named(&request, &request.get_ref().merchant_id, Scope::MerchantWrite).await?;
        let (keys, may_roll) = (self.keys_of(&merchant), self.engine.merchants.allows_key_roll());
        Ok(Response::new(v1::ListApiKeysResponse { keys, may_roll }))
    }

    async fn create_api_key(
        &self,
        request: Request<v1::CreateApiKeyRequest>,
    ) -> Result<Response<v1::CreateApiKeyResponse>, Status> {
        let asked = request.get_ref();
        let (merchant, asking) = self.named(&request, &asked.merchant_id, Scope::MerchantWrite).await?;
        let (name, scopes) =
            match (key_name(&asked.name), Scopes::parse(&enums::words_of(&asked.scopes, v1::ApiKeyScope::rest_name))) {
                (Ok(name), Ok(scopes)) => (name, scopes),
                (name, scopes) => {
                    let wrong = [name.err(), scopes.err()].into_iter().flatten().collect();
                    return Err(convert::invalid(wrong).into());
                }
            };
        if !scopes.is_subset(asking.scopes) {
            let message = "must be among the scopes of the key that asks";
            return Err(ApiError::new(Reason::InsufficientScope).and_field("scopes", message).into());
        }
        let (key, text) = asking.engine.merchants.create_api_key(merchant.id, &name, scopes).await.map_err(error)?;
        Ok(Response::new(v1::CreateApiKeyResponse { key: Some(record(&key)), api_key: text }))
    }

    async fn revoke_api_key(
        &self,
        request: Request<v1::RevokeApiKeyRequest>,
    ) -> Result<Response<v1::RevokeApiKeyResponse>, Status> {
        let (merchant, asking) = self.named(&request, &request.get_ref().merchant_id, Scope::MerchantWrite).await?;
        let key = key_id(&request.get_ref().key_id)?;
        if key == asking.key {
            return Err(ApiError::new(Reason::ApiKeyInUse).into());
        }
        require_scopes_of(&merchant, key, asking.scopes)?;
        asking.engine.merchants.revoke_api_key(merchant.id, key).await.map_err(error)?;
        let merchant = self.engine.merchants.get(merchant.id).await.map_err(error)?;
        let (keys, may_roll) = (self.keys_of(&merchant), self.engine.merchants.allows_key_roll());
        Ok(Response::new(v1::RevokeApiKeyResponse { keys, may_roll }))
    }

    async fn roll_api_key(
        &self,
        request: Request<v1::RollApiKeyRequest>,
    ) -> Result<Response<v1::RollApiKeyResponse>, Status> {
        let (merchant, asking) = self.named(&request, &request.get_ref().merchant_id, Scope::MerchantWrite).await?;
        let hours = convert::required("overlapHours", request.get_ref().overlap_hours)?;
        if hours > MAX_OVERLAP_HOURS {
            let message = format!("must be a whole number from 0 to {MAX_OVERLAP_HOURS}");
            return Err(ApiError::field("overlapHours", message).into());
        }
        let old = key_id(&request.get_ref().key_id)?;
        require_scopes_of(&merchant, old, asking.scopes)?;
        let overlap = Duration::from_secs(u64::from(hours) * 3_600);
        let (key, text, until) =
            asking.engine.merchants.roll_api_key(merchant.id, old, overlap).await.map_err(error)?;
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
        let asked = request.into_inner();
        let limit = page_size(asked.page_size)?;
        let before = place_of(&asked.page_token)?;
        let merchant = asked.merchant_id.map(|id| id.parse::<MerchantId>());
        let merchant = merchant.transpose().map_err(|_| ApiError::field("merchantId", "must be a merchant's id"))?;
        let query = AuditQuery { before, limit: limit as usize + 1, merchant };
        let mut entries = self.engine.operations.audit(query).await.map_err(error)?;
        let has_more = entries.len() > limit as usize;
        entries.truncate(limit as usize);
        let last = entries.last().filter(|_| has_more);
        let next_page_token = last.map(|entry| entry.seq.to_string()).unwrap_or_default();
        Ok(Response::new(v1::ListAuditResponse { entries: entries.into_iter().map(told).collect(), next_page_token }))
    }
}

fn told(entry: Entry) -> v1::AuditEntry {
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
        let asked = request.into_inner();
        let query = MerchantQuery {
            at: PageAt::Number(1),
            limit: CHUNK,
            query: Some(asked.query).filter(|query| !query.is_empty()),
            active: asked.active,
            on_hold: asked.flagged,
        };
        let (engine, network) = (self.engine.clone(), self.engine.network());
        let merchants = whole_list::rows(move |at| {
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
        let asked = request.into_inner();
        let ids = ids_of(&asked.ids)?;
        let names_nothing = !asked.ids.is_empty() && ids.is_empty();
        let query = PaymentQuery {
            merchant: merchant.id,
            at: PageAt::Number(1),
            limit: CHUNK,
            states: asked.statuses.into_iter().map(convert::read_state).collect::<Result<_, _>>()?,
            from: asked.created_from.map(|time| convert::instant("createdFrom", time)).transpose()?,
            to: asked.created_to.map(|time| convert::instant("createdTo", time)).transpose()?,
            currency: asked.currency.map(convert::read_currency).transpose()?,
            min_units: asked.min_amount_units,
            max_units: asked.max_amount_units,
            unusual: asked.unusual,
            ids,
            query: asked.query,
        };
        if names_nothing {
            return Ok(Response::new(stream::empty().boxed()));
        }
        let engine = self.engine.clone();
        let payments = whole_list::rows(move |at| {
            let (engine, query) = (engine.clone(), PaymentQuery { at, ..query.clone() });
            async move { engine.payments.list(query).await }
        });
        let engine = self.engine.clone();
        let payments =
            payments.map(move |row| Ok(RecordResponse::from_record(convert::payment(row?, &merchant, engine.now()))));
        Ok(Response::new(payments.boxed()))
    }
}
