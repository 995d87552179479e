//! Admission of requests: rate limits by IP address and merchant, and verification of API keys before bodies are read.

use std::{net::IpAddr, time::Duration};

use http::{HeaderMap, Method};
use proto::{ApiError, Caller, IntoRecord, Reason, v1};

use crate::facade::{
    http::{auth, call::Call, state::Facade},
    limits::{Accepted, Limited, QuotaState, RequestInfo},
    routes::router::RouteMatch,
};

impl Facade {
    /// Verifies the API key of a request before its body is read, and counts the request against its limits. Also returns the
    /// quotas for the headers.
    pub(crate) async fn admit(
        &self,
        call: &Call,
        route_match: &RouteMatch<'_>,
        pays: bool,
    ) -> (Result<(), ApiError>, Vec<QuotaState>) {
        if *call.sent_method() == Method::OPTIONS {
            return (Ok(()), Vec::new());
        }
        let merchant = match self.authenticate(call, route_match).await {
            Ok(accepted) => accepted.map(|accepted| accepted.merchant),
            Err(Limited { error, quotas }) => return (Err(error), quotas),
        };
        let Some(limits) = &self.edge.limits else { return (Ok(()), Vec::new()) };
        let rates = route_match.rates();
        match limits.admit(&RequestInfo { method: call.sent_method(), rates, client: call.client(), merchant, pays }) {
            Ok(quotas) => (Ok(()), quotas),
            Err(Limited { error, quotas }) => (Err(error), quotas),
        }
    }

    /// Returns the authenticated key, if the route requires one and its header is well-formed. For reads, a key that was
    /// accepted within a day is trusted until the engine verifies it; for writes it is verified first, because the body is
    /// read before the engine sees the key.
    async fn authenticate(&self, call: &Call, route_match: &RouteMatch<'_>) -> Result<Option<Accepted>, Limited> {
        if !route_match.requires_key_check() {
            return Ok(None);
        }
        let Ok(key) = auth::api_key(call.headers()) else { return Ok(None) };
        let known = self.accepted_keys.get(key.as_bytes());
        let is_read = matches!(call.method, Method::GET);
        if let Some(known) = known.filter(|known| is_read || known.is_fresh()) {
            return Ok(Some(known));
        }
        if known.is_none() {
            self.admit_unknown_key(&call.caller, call.client()).await?;
        }
        let mut caller = call.caller.clone();
        caller.api_key = Some(key.clone());
        let request = caller.request(v1::GetCurrentMerchantRequest {});
        let merchant = self.engine.merchants().get_current_merchant(request).await;
        match merchant.and_then(IntoRecord::into_record).map_err(ApiError::from) {
            Ok(merchant) => Ok(Some(self.accepted_keys.insert(key.as_bytes(), &merchant.id))),
            Err(error) => Err(Limited { error, quotas: Vec::new() }),
        }
    }

    /// Records a refused API key, which counts towards the lockout of the IP address. A malformed header does not count.
    pub(crate) async fn record_refused_key(&self, headers: &HeaderMap, client: IpAddr, reason: Reason) {
        let Ok(key) = auth::api_key(headers) else { return };
        if reason != Reason::InvalidApiKey {
            return;
        }
        self.accepted_keys.remove(key.as_bytes());
        self.record_invalid_key(&Caller::default(), client).await;
    }

    /// Counts a request with an API key that this facade has not seen lately. A lockout counts at every facade.
    ///
    /// # Errors
    /// `rate_limited` if the IP address is locked out or its limit is reached.
    pub(crate) async fn admit_unknown_key(&self, caller: &Caller, client: IpAddr) -> Result<(), Limited> {
        let Some(limits) = &self.edge.limits else { return Ok(()) };
        limits.admit_unknown_key(client)?;
        let Some(policy) = limits.lockout_policy() else { return Ok(()) };
        let request = caller.request(v1::GetLockoutRequest { client: policy.client(client) });
        // Without an engine no key can be verified anyway, so that an error reveals none.
        if let Ok(found) = self.engine.facades().get_lockout(request).await {
            limits.lock_out(client, found.into_inner().remaining_ms.map(Duration::from_millis));
        }
        limits.check_lockout(client)
    }

    /// Counts an invalid API key of an IP address, here and over all facades.
    pub(crate) async fn record_invalid_key(&self, caller: &Caller, client: IpAddr) {
        let Some(limits) = &self.edge.limits else { return };
        limits.record_invalid_key(client);
        let Some(policy) = limits.lockout_policy() else { return };
        let request = caller.request(policy.record(client));
        // While no engine responds, the count of this facade decides.
        if let Ok(counted) = self.engine.facades().record_invalid_key(request).await {
            limits.lock_out(client, counted.into_inner().remaining_ms.map(Duration::from_millis));
        }
    }
}
