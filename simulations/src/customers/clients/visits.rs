//! What clients do at the interface beside opening and cancelling: reading, and what they may not do.

use super::{
    orders::{key_of, slug_of},
    *,
};

impl Client<'_> {
    pub(super) async fn visit(&self, visit: Visit) -> Again {
        let Some(known) = self.world.people().sessions.get(&self.session).cloned() else { return Again::In(5_000) };
        let Some(key) = key_of(self.world, known.merchant) else { return Again::No };
        match visit {
            Visit::Read => self.read(&known, &key).await,
        }
        Again::No
    }

    /// Reads a session, whole, its state alone, and as its customer sees it.
    async fn read(&self, known: &Session, key: &str) {
        let path = format!("/api/public/payments/{}", known.id);
        let before = self.world.standing(known.id);
        let whole = self.send("GET", &path, key, None).await;
        if whole.status == 200 {
            let told = json_of(&whole);
            self.hold_state(known.id, before, told["status"].as_str().unwrap_or_default());
            let is_it = told["id"] == known.id.to_string()
                && told["merchantId"] == known.merchant.to_string()
                && told["amount"]["value"] == known.amount.units.to_string()
                && told["payTo"] == known.pay_to.to_string();
            self.hold("answers-are-durable", known.id, is_it, || format!("{} is told to be {told}", known.id));
        }
        let before = self.world.standing(known.id);
        let state = self.send("GET", &format!("{path}/status"), key, None).await;
        if state.status == 200 {
            self.hold_state(known.id, before, json_of(&state)["status"].as_str().unwrap_or_default());
        }
        let Some(slug) = slug_of(self.world, known.id) else { return };
        let before = self.world.standing(known.id);
        let live = self.send("GET", &format!("/for/{slug}/status"), "", None).await;
        if live.status == 200 {
            self.hold_state(known.id, before, json_of(&live)["status"].as_str().unwrap_or_default());
        }
        for reply in [whole, state, live] {
            let is_known = match reply.status {
                200 | 503 => true,
                // A new key is on its way to its merchant.
                401 => true,
                _ => false,
            };
            self.hold("nothing-valid-is-refused", known.id, is_known, || {
                format!("{} cannot be read: {} {:?}", known.id, reply.status, reason_of(&reply))
            });
        }
    }
}
