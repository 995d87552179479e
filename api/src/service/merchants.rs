//! Merchants: registration, updates, and administration.

use std::time::Duration;

use engine::{
    audit::Actor,
    ids::{decode, encode},
    merchant::{RawUpdate, Registration, Scope, Update},
};
use proto::{
    ApiError, record_response,
    v1::{self, merchant_service_server::MerchantService, text_change::Change},
};
use storage::{MerchantQuery, PageAt};
use tonic::{Request, Response, Status};

use super::{
    Service,
    convert::{self, error, required},
    ip_of,
    page::{Filters, invalid_token, page_after, page_size},
};

/// Maximum number of hours that a replaced webhook secret remains valid.
const GRACE_MAX_HOURS: u32 = 168;

/// Reads how long a replaced webhook secret remains valid.
///
/// # Errors
/// `INVALID_ARGUMENT` if it is missing or too long.
pub(super) fn grace(hours: Option<u32>) -> Result<Duration, ApiError> {
    let hours = required("graceHours", hours)?;
    if hours > GRACE_MAX_HOURS {
        return Err(ApiError::field("graceHours", format!("must be a whole number from 0 to {GRACE_MAX_HOURS}")));
    }
    Ok(Duration::from_secs(u64::from(hours) * 3_600))
}

impl Service {
    /// Registers a merchant from the IP address `ip`.
    async fn register(
        &self,
        ip: Option<String>,
        message: v1::RegisterMerchantRequest,
        is_admin: bool,
    ) -> Result<v1::RegisterMerchantResponse, Status> {
        let actor = Actor { ip, ..Actor::default() };
        let registration = Registration::check(&message.name, &message.hive_account, message.icon_url.as_deref());
        let invalid = |violations| convert::invalid_merchant(Some(&message.hive_account), violations);
        let registration = registration.map_err(invalid)?;
        let registered = self.engine.by(actor).merchants.register(registration, is_admin).await.map_err(error)?;
        Ok(v1::RegisterMerchantResponse {
            merchant: Some(convert::merchant(&registered.merchant, self.engine.network())),
            api_key: registered.api_key,
            webhook_secret: registered.secret.reveal().to_owned(),
        })
    }
}

/// Reads a change of an optional text: the new text, or `None` if the text is removed.
fn text_change(field: &str, change: v1::TextChange) -> Result<Option<String>, ApiError> {
    match required(field, change.change)? {
        Change::Value(text) => Ok(Some(text)),
        Change::Remove(()) => Ok(None),
    }
}

#[tonic::async_trait]
impl MerchantService for Service {
    async fn register_merchant(
        &self,
        request: Request<v1::RegisterMerchantRequest>,
    ) -> Result<Response<v1::RegisterMerchantResponse>, Status> {
        let ip = ip_of(&request);
        Ok(Response::new(self.register(ip, request.into_inner(), false).await?))
    }

    async fn register_admin(
        &self,
        request: Request<v1::RegisterAdminRequest>,
    ) -> Result<Response<v1::RegisterAdminResponse>, Status> {
        let ip = ip_of(&request);
        let v1::RegisterAdminRequest { name, hive_account, icon_url } = request.into_inner();
        let registered = self.register(ip, v1::RegisterMerchantRequest { name, hive_account, icon_url }, true).await?;
        Ok(Response::new(v1::RegisterAdminResponse {
            merchant: registered.merchant,
            api_key: registered.api_key,
            webhook_secret: registered.webhook_secret,
        }))
    }

    async fn get_current_merchant(
        &self,
        request: Request<v1::GetCurrentMerchantRequest>,
    ) -> Result<Response<v1::GetCurrentMerchantResponse>, Status> {
        let principal = self.principal(&request, None).await?;
        Ok(record_response(convert::merchant(&principal.merchant, self.engine.network())))
    }

    async fn get_merchant(
        &self,
        request: Request<v1::GetMerchantRequest>,
    ) -> Result<Response<v1::GetMerchantResponse>, Status> {
        let principal = self.principal(&request, None).await?;
        let id = &request.get_ref().merchant_id;
        if *id == principal.merchant.id.to_string() {
            return Ok(record_response(convert::merchant(&principal.merchant, self.engine.network())));
        }
        let (merchant, _) = self.target_merchant(&request, id, Scope::Admin).await?;
        Ok(record_response(convert::merchant(&merchant, self.engine.network())))
    }

    async fn update_merchant(
        &self,
        request: Request<v1::UpdateMerchantRequest>,
    ) -> Result<Response<v1::UpdateMerchantResponse>, Status> {
        let (merchant, principal) = self.target_merchant_any_scope(&request, &request.get_ref().merchant_id).await?;
        let message = request.into_inner();
        let has_other_fields = message.name.is_some()
            || message.icon_url.is_some()
            || message.webhook_url.is_some()
            || message.webhook_events.is_some()
            || message.support_url.is_some()
            || message.x402_enabled.is_some()
            || message.restart_enabled.is_some();
        if message.hive_account.is_some() {
            principal.require_scope_for(merchant.id, Scope::MerchantPayout)?;
        }
        if has_other_fields || message.hive_account.is_none() {
            principal.require_scope_for(merchant.id, Scope::MerchantWrite)?;
        }
        let account = message.hive_account.clone();
        let raw = RawUpdate {
            name: message.name,
            hive_account: message.hive_account,
            icon_url: message.icon_url.map(|change| text_change("iconUrl", change)).transpose()?,
            webhook_url: message.webhook_url.map(|change| text_change("webhookUrl", change)).transpose()?,
            webhook_events: message
                .webhook_events
                .map(|events| super::enums::names(&events.types, v1::EventType::rest_name)),
            support_url: message.support_url.map(|change| text_change("supportUrl", change)).transpose()?,
            x402_enabled: message.x402_enabled,
            restart_enabled: message.restart_enabled,
        };
        let invalid = |violations| convert::invalid_merchant(account.as_deref(), violations);
        let update = Update::check(raw, self.engine.webhooks.allows_insecure()).map_err(invalid)?;
        let merchant = principal.engine.merchants.update(merchant.id, update).await.map_err(error)?;
        Ok(record_response(convert::merchant(&merchant, self.engine.network())))
    }

    async fn rotate_webhook_secret(
        &self,
        request: Request<v1::RotateWebhookSecretRequest>,
    ) -> Result<Response<v1::RotateWebhookSecretResponse>, Status> {
        let (merchant, principal) =
            self.target_merchant(&request, &request.get_ref().merchant_id, Scope::MerchantWrite).await?;
        let grace = grace(request.get_ref().grace_hours)?;
        let (secret, until) =
            principal.engine.merchants.rotate_webhook_secret(merchant.id, grace).await.map_err(error)?;
        Ok(Response::new(v1::RotateWebhookSecretResponse {
            webhook_secret: secret.reveal().to_owned(),
            previous_valid_until: until.map(convert::timestamp),
        }))
    }

    async fn list_merchants(
        &self,
        request: Request<v1::ListMerchantsRequest>,
    ) -> Result<Response<v1::ListMerchantsResponse>, Status> {
        self.admin(&request).await?;
        let message = request.into_inner();
        let limit = page_size(message.page_size)?;
        let filters = v1::ListMerchantsRequest { page_size: 0, skip: 0, page_token: String::new(), ..message.clone() };
        let filters = Filters::of(&filters);
        let at = match filters.read(&message.page_token)? {
            "" => PageAt::Number(page_after(message.skip, limit)?),
            token => PageAt::After(decode(token).ok_or_else(invalid_token)?),
        };
        let query = MerchantQuery {
            at,
            limit: limit as usize,
            query: Some(message.query).filter(|query| !query.is_empty()),
            active: message.active,
            on_hold: message.flagged,
        };
        let found = self.engine.merchants.list(query).await.map_err(error)?;
        let merchants =
            found.items.iter().map(|listed| convert::listed_merchant(listed, self.engine.network())).collect();
        let is_full = found.items.len() == limit as usize;
        let end = message.skip.saturating_add(u64::from(limit));
        let has_more = is_full && (!message.page_token.is_empty() || end < found.total);
        let last = found.items.last().filter(|_| has_more).map(|listed| encode(listed.merchant.id.bits()));
        let next_page_token = last.map(|token| String::from_utf8_lossy(&token).into_owned()).unwrap_or_default();
        let next_page_token = filters.token(next_page_token);
        Ok(Response::new(v1::ListMerchantsResponse { merchants, next_page_token, total_size: found.total }))
    }

    async fn set_merchant_active(
        &self,
        request: Request<v1::SetMerchantActiveRequest>,
    ) -> Result<Response<v1::SetMerchantActiveResponse>, Status> {
        self.admin(&request).await?;
        let (merchant, principal) =
            self.target_merchant(&request, &request.get_ref().merchant_id, Scope::Admin).await?;
        let active = required("active", request.get_ref().active)?;
        let merchant = principal.engine.merchants.set_active(merchant.id, active).await.map_err(error)?;
        Ok(record_response(convert::merchant(&merchant, self.engine.network())))
    }

    async fn reissue_api_key(
        &self,
        request: Request<v1::ReissueApiKeyRequest>,
    ) -> Result<Response<v1::ReissueApiKeyResponse>, Status> {
        self.admin(&request).await?;
        let (merchant, principal) =
            self.target_merchant(&request, &request.get_ref().merchant_id, Scope::Admin).await?;
        let (merchant, api_key) = principal.engine.merchants.reissue_api_key(merchant.id).await.map_err(error)?;
        Ok(Response::new(v1::ReissueApiKeyResponse {
            merchant: Some(convert::merchant(&merchant, self.engine.network())),
            api_key,
        }))
    }
}
