//! What the observer knows of the store, apart from the chain and from responses: a restored store takes it back.

use super::*;

macro_rules! durable {
    ($($field:ident: $type:ty,)*) => {
        /// A snapshot of what is durable.
        #[derive(Clone)]
        pub struct Durable { $($field: $type,)* }

        impl Observer {
            /// Returns a snapshot of what is durable.
            #[must_use]
            pub fn durable(&self) -> Durable {
                Durable { $($field: self.$field.clone(),)* }
            }

            /// Records that the store is restored to a snapshot.
            pub fn restored(&mut self, durable: Durable) {
                self.forgets_claims(&durable);
                // The chain is not restored.
                let keys = self.proofs.keys();
                $(self.$field = durable.$field;)*
                self.proofs.set_keys(keys);
                self.restored_ms = self.now_ms;
                self.unknown_commits.clear();
                self.posts_in_flight.clear();
                self.receiver_responses.clear();
                self.dirty = self.payments.keys().copied().collect();
            }
        }
    };
}

durable! {
    payments: Index<PaymentId, Known>,
    rows: BTreeMap<PaymentId, Rows>,
    merchants: BTreeMap<MerchantId, Merchant>,
    accounts: Watched,
    reconciled: BTreeMap<Timestamp, Day>,
    events: Index<EventId, EventRecord>,
    event_seqs: BTreeMap<MerchantId, u64>,
    deliveries: Index<DeliveryId, DeliveryState>,
    claims: Index<TxId, ClaimRecord>,
    nonces: Index<(AccountName, String), TxId>,
    cursor: Option<Cursor>,
    first_cursor: Option<Cursor>,
    unmatched: BTreeMap<(TxId, u32), Unmatched>,
    credited: Index<(TxId, u32), PaymentId>,
    assignments: BTreeMap<(TxId, u32), PaymentId>,
    assignments_by_hand: BTreeSet<(TxId, u32)>,
    shown: BTreeMap<TxId, Presentations>,
    sold: BTreeMap<TxId, Sold>,
    reported: IndexSet<TxId>,
    released_claims: IndexSet<TxId>,
    accepted: BTreeMap<PaymentId, BTreeSet<(TxId, u32)>>,
    endpoint_set_ms: BTreeMap<EndpointId, u64>,
    other_engine: BTreeSet<PaymentId>,
    hbd_read: Readings<u64>,
    hive_read: Readings<HivePrice>,
    endpoints: BTreeMap<EndpointId, EndpointSeen>,
    remembered: BTreeMap<(MerchantId, [u8; 32]), PaymentId>,
    opened: BTreeMap<u32, PaymentId>,
    proofs: Proofs,
    model: StoreModel,
}

impl Observer {
    /// Records the claims that the store knew until now and will not know: they were broadcast, unless they were refused.
    fn forgets_claims(&mut self, durable: &Durable) {
        let is_lost = |tx_id: &&TxId| {
            !durable.claims.contains_key(*tx_id)
                && !self.refused.contains(*tx_id)
                && !self.released_claims.contains(*tx_id)
        };
        let lost: Vec<TxId> = self.claims.keys().filter(is_lost).copied().collect();
        self.forgotten.extend(lost);
    }
}
