//! One key set of several engines: they sign offers with the same key.

use serde_json::Value;

use crate::{
    harness::{Api, Shop, background, until},
    x402,
};

use super::{
    cluster::{Cluster, Programs},
    fleet::{FacadeProcess, Fleet, database},
};

/// Returns the ids of the published keys.
#[track_caller]
fn key_ids(api: &Api) -> Vec<Value> {
    let set = api.get("/.well-known/jwks.json").send().ok(200);
    set["keys"].as_array().expect("keys").iter().map(|key| key["kid"].clone()).collect()
}

/// Engines that create the first key at the same moment end with one key; it remains when the one that created it is gone.
pub(super) fn engines_that_start_together_sign_with_one_key(programs: &Programs) {
    let cluster = Cluster::start(programs, &[]);
    let mut fleet = Fleet::start(&database(&cluster), 2);
    let facades = [0, 1].map(|number| FacadeProcess::start([fleet.engines[number].url.clone()], &[]));
    let reads = [0, 1].map(|number| {
        let api = facades[number].api.clone();
        background(move || key_ids(&api))
    });
    let [first, second] = reads.map(|read| read.join().expect("the key set is read"));
    assert_eq!((first.len(), &first), (1, &second));
    let shop = Shop::open(&facades[0].api, &fleet.ledger.ledger);
    for facade in &facades {
        let shop = Shop { api: facade.api.clone(), ..shop.clone() };
        assert_eq!(x402::signing_key(&shop), first[0]);
    }
    fleet.engines[0].process.kill();
    let shop = Shop { api: facades[1].api.clone(), ..shop };
    let signing = until("the other engine to sign", || {
        let payment = shop.api.get("/readyz").try_send().ok().filter(|response| response.status == 200);
        payment.map(|_| x402::signing_key(&shop))
    });
    assert_eq!((signing, key_ids(&shop.api)), (first[0].clone(), first));
}
