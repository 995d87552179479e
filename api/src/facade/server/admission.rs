//! Who may go on: rates by address before a caller is known and by merchant afterwards, and keys before bodies.

use std::net::IpAddr;

use http::{HeaderMap, Method};
use proto::{ApiError, IntoRecord, Reason, v1};

use crate::facade::{
    http::{auth, call::Call, state::Facade},
    limits::{Accepted, Asked, Limited, Standing},
    routes::router::Found,
};

impl Facade {
    /// Counts a request against the limits that are meant for it, and checks its key before its body is read. Returns
    /// where the caller stands, too.
    pub(crate) async fn admit(
        &self,
        call: &Call,
        found: &Found<'_>,
        pays: bool,
    ) -> (Result<(), ApiError>, Vec<Standing>) {
        if *call.sent_method() == Method::OPTIONS {
            return (Ok(()), Vec::new());
        }
        let merchant = match self.authenticate(call, found).await {
            Ok(accepted) => accepted.map(|accepted| accepted.merchant),
            Err(Limited { error, standings }) => return (Err(error), standings),
        };
        let Some(limits) = &self.edge.limits else { return (Ok(()), Vec::new()) };
        let rates = found.rates();
        match limits.admit(&Asked { method: call.sent_method(), rates, client: call.client(), merchant, pays }) {
            Ok(standings) => (Ok(()), standings),
            Err(Limited { error, standings }) => (Err(error), standings),
        }
    }

    /// Finds out whose key a request carries, where one is needed and its header has the right form. A key that worked
    /// lately is believed until the engine sees it; a change's key is checked first, because its body comes next.
    async fn authenticate(&self, call: &Call, found: &Found<'_>) -> Result<Option<Accepted>, Limited> {
        if !found.checks_key() {
            return Ok(None);
        }
        let Ok(key) = auth::api_key(call.headers()) else { return Ok(None) };
        let known = self.accepted_keys.get(key.as_bytes());
        let is_read = matches!(call.method, Method::GET);
        if let Some(known) = known.filter(|known| is_read || known.is_fresh()) {
            return Ok(Some(known));
        }
        if let Some(limits) = self.edge.limits.as_ref().filter(|_| known.is_none()) {
            limits.admit_unknown_key(call.client())?;
        }
        let mut caller = call.caller.clone();
        caller.api_key = Some(key.clone());
        let request = caller.request(v1::GetCurrentMerchantRequest {});
        let merchant = self.engine.merchants().get_current_merchant(request).await;
        match merchant.and_then(IntoRecord::into_record).map_err(ApiError::from) {
            Ok(merchant) => Ok(Some(self.accepted_keys.insert(key.as_bytes(), &merchant.id))),
            Err(error) => Err(Limited { error, standings: Vec::new() }),
        }
    }

    /// Notes that a key was refused; after too many its address is locked out. A header of the wrong form is no guess.
    pub(crate) fn note_refused_key(&self, headers: &HeaderMap, client: IpAddr, reason: Reason) {
        let Ok(key) = auth::api_key(headers) else { return };
        if reason != Reason::InvalidApiKey {
            return;
        }
        self.accepted_keys.remove(key.as_bytes());
        if let Some(limits) = &self.edge.limits {
            limits.note_bad_key(client);
        }
    }
}
