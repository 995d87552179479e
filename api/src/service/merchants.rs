//! Merchants: registration, their own record, and the work of admins.

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
    payments::{page_after, page_size, wrong_token},
};

/// Hours an old webhook secret may still sign.
const GRACE_MAX_HOURS: u32 = 168;

impl Service {
    async fn make(
        &self,
        ip: Option<String>,
        asked: v1::RegisterMerchantRequest,
        is_admin: bool,
    ) -> Result<v1::RegisterMerchantResponse, Status> {
        let actor = Actor { ip, ..Actor::default() };
        let registration = Registration::check(&asked.name, &asked.hive_account, asked.icon_url.as_deref());
        let refused = |violations| convert::wrong_merchant(Some(&asked.hive_account), violations);
        let registration = registration.map_err(refused)?;
        let made = self.engine.by(actor).merchants.register(registration, is_admin).await.map_err(error)?;
        Ok(v1::RegisterMerchantResponse {
            merchant: Some(convert::merchant(&made.merchant, self.engine.network())),
            api_key: made.api_key,
            webhook_secret: made.secret.reveal().to_owned(),
        })
    }
}

/// Reads a change of an optional text.
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
        Ok(Response::new(self.make(ip, request.into_inner(), false).await?))
    }

    async fn register_admin(
        &self,
        request: Request<v1::RegisterAdminRequest>,
    ) -> Result<Response<v1::RegisterAdminResponse>, Status> {
        let ip = ip_of(&request);
        let v1::RegisterAdminRequest { name, hive_account, icon_url } = request.into_inner();
        let made = self.make(ip, v1::RegisterMerchantRequest { name, hive_account, icon_url }, true).await?;
        Ok(Response::new(v1::RegisterAdminResponse {
            merchant: made.merchant,
            api_key: made.api_key,
            webhook_secret: made.webhook_secret,
        }))
    }

    async fn get_current_merchant(
        &self,
        request: Request<v1::GetCurrentMerchantRequest>,
    ) -> Result<Response<v1::GetCurrentMerchantResponse>, Status> {
        let asking = self.asking(&request, None).await?;
        Ok(record_response(convert::merchant(&asking.merchant, self.engine.network())))
    }

    async fn get_merchant(
        &self,
        request: Request<v1::GetMerchantRequest>,
    ) -> Result<Response<v1::GetMerchantResponse>, Status> {
        let asking = self.asking(&request, None).await?;
        let id = &request.get_ref().merchant_id;
        if *id == asking.merchant.id.to_string() {
            return Ok(record_response(convert::merchant(&asking.merchant, self.engine.network())));
        }
        let (merchant, _) = self.named(&request, id, Scope::Admin).await?;
        Ok(record_response(convert::merchant(&merchant, self.engine.network())))
    }

    async fn update_merchant(
        &self,
        request: Request<v1::UpdateMerchantRequest>,
    ) -> Result<Response<v1::UpdateMerchantResponse>, Status> {
        let (merchant, asking) = self.named_any(&request, &request.get_ref().merchant_id).await?;
        let asked = request.into_inner();
        let has_others = asked.name.is_some()
            || asked.icon_url.is_some()
            || asked.webhook_url.is_some()
            || asked.webhook_events.is_some()
            || asked.support_url.is_some()
            || asked.x402_enabled.is_some();
        if asked.hive_account.is_some() {
            asking.needs_for(merchant.id, Scope::MerchantPayout)?;
        }
        if has_others || asked.hive_account.is_none() {
            asking.needs_for(merchant.id, Scope::MerchantWrite)?;
        }
        let account = asked.hive_account.clone();
        let raw = RawUpdate {
            name: asked.name,
            hive_account: asked.hive_account,
            icon_url: asked.icon_url.map(|change| text_change("iconUrl", change)).transpose()?,
            webhook_url: asked.webhook_url.map(|change| text_change("webhookUrl", change)).transpose()?,
            webhook_events: asked
                .webhook_events
                .map(|events| super::enums::words_of(&events.types, v1::EventType::rest_name)),
            support_url: asked.support_url.map(|change| text_change("supportUrl", change)).transpose()?,
            x402_enabled: asked.x402_enabled,
        };
        let refused = |violations| convert::wrong_merchant(account.as_deref(), violations);
        let update = Update::check(raw, self.engine.webhooks.allows_insecure()).map_err(refused)?;
        let merchant = asking.engine.merchants.update(merchant.id, update).await.map_err(error)?;
        Ok(record_response(convert::merchant(&merchant, self.engine.network())))
    }

    async fn rotate_webhook_secret(
        &self,
        request: Request<v1::RotateWebhookSecretRequest>,
    ) -> Result<Response<v1::RotateWebhookSecretResponse>, Status> {
        let (merchant, asking) = self.named(&request, &request.get_ref().merchant_id, Scope::MerchantWrite).await?;
        let hours = required("graceHours", request.get_ref().grace_hours)?;
        if hours > GRACE_MAX_HOURS {
            let message = format!("must be a whole number from 0 to {GRACE_MAX_HOURS}");
            return Err(ApiError::field("graceHours", message).into());
        }
        let grace = Duration::from_secs(u64::from(hours) * 3_600);
        let (secret, until) = asking.engine.merchants.rotate_webhook_secret(merchant.id, grace).await.map_err(error)?;
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
        let asked = request.into_inner();
        let limit = page_size(asked.page_size)?;
        let at = match asked.page_token.as_str() {
            "" => PageAt::Number(page_after(asked.skip, limit)?),
            token => PageAt::After(decode(token).ok_or_else(wrong_token)?),
        };
        let query = MerchantQuery {
            at,
            limit: limit as usize,
            query: Some(asked.query).filter(|query| !query.is_empty()),
            active: asked.active,
            on_hold: asked.flagged,
        };
        let found = self.engine.merchants.list(query).await.map_err(error)?;
        let merchants =
            found.items.iter().map(|listed| convert::listed_merchant(listed, self.engine.network())).collect();
        let is_full = found.items.len() == limit as usize;
        let passed = asked.skip.saturating_add(u64::from(limit));
        let has_more = is_full && (!asked.page_token.is_empty() || passed < found.total);
        let last = found.items.last().filter(|_| has_more).map(|listed| encode(listed.merchant.id.bits()));
        let next_page_token = last.map(|token| String::from_utf8_lossy(&token).into_owned()).unwrap_or_default();
        Ok(Response::new(v1::ListMerchantsResponse { merchants, next_page_token, total_size: found.total }))
    }

    async fn set_merchant_active(
        &self,
        request: Request<v1::SetMerchantActiveRequest>,
    ) -> Result<Response<v1::SetMerchantActiveResponse>, Status> {
        self.admin(&request).await?;
        let (merchant, asking) = self.named(&request, &request.get_ref().merchant_id, Scope::Admin).await?;
        let active = required("active", request.get_ref().active)?;
        let merchant = asking.engine.merchants.set_active(merchant.id, active).await.map_err(error)?;
        Ok(record_response(convert::merchant(&merchant, self.engine.network())))
    }

    async fn reissue_api_key(
        &self,
        request: Request<v1::ReissueApiKeyRequest>,
    ) -> Result<Response<v1::ReissueApiKeyResponse>, Status> {
        self.admin(&request).await?;
        let (merchant, asking) = self.named(&request, &request.get_ref().merchant_id, Scope::Admin).await?;
        let (merchant, api_key) = asking.engine.merchants.reissue_api_key(merchant.id).await.map_err(error)?;
        Ok(Response::new(v1::ReissueApiKeyResponse {
            merchant: Some(convert::merchant(&merchant, self.engine.network())),
            api_key,
        }))
    }
}
