//! Merchants and customers that call the facade: REST requests of shops and browsers. Each response is compared with what is
//! durable at that moment.

mod agents;
mod dashboard;
mod grpc;
mod invalid_requests;
mod orders;
mod reads;

use std::net::{IpAddr, Ipv4Addr};

use bytes::Bytes;
use engine::time::Timestamp;
use serde_json::Value;

pub(super) use self::agents::{settle_payment, verify_payment};
use super::*;
use crate::{
    front::{Endpoint, Reply, Request},
    script::FacadeCall,
    simulation::DurableState,
};

/// A client of the facade.
pub(super) struct Client<'a> {
    pub(super) sim: &'a Arc<Simulation>,
    /// The engine that it calls, and its facade.
    pub(super) engine: &'a Running,
    pub(super) endpoint: Arc<dyn Endpoint>,
    /// Its IP address.
    pub(super) ip: IpAddr,
    /// The session it is about.
    pub(super) session: u32,
    /// Whether it exceeds a rate limit.
    pub(super) exceeds_limit: bool,
}

/// Executes an action through the facade; none for actions that the facade does not have.
pub(super) async fn call(
    sim: &Arc<Simulation>,
    endpoint: &Arc<dyn Endpoint>,
    engine: &Running,
    action: &Action,
) -> Option<Again> {
    let client =
        |session: u32, ip| Client { sim, engine, endpoint: Arc::clone(endpoint), ip, session, exceeds_limit: false };
    Some(match *action {
        Action::Create { session, merchant, units, currency, lifetime_seconds } => {
            let order = orders::Order { session, merchant, money: Money::new(units, currency), lifetime_seconds };
            client(session, shop_ip(merchant)).create(engine, &order).await
        }
        Action::Cancel { session, by_merchant } => client(session, customer_ip(session)).cancel(by_merchant).await,
        Action::Assign { session } => client(session, customer_ip(session)).assign(engine).await,
        Action::CallFacade { session, call } => client(session, customer_ip(session)).call(call).await,
        _ => return None,
    })
}

/// Returns the IP address of a merchant's server.
fn shop_ip(merchant: usize) -> IpAddr {
    Ipv4Addr::new(10, 1, 0, u8::try_from(merchant).unwrap_or(u8::MAX)).into()
}

/// Returns the IP address of a session's customer.
fn customer_ip(session: u32) -> IpAddr {
    IpAddr::from(Ipv4Addr::from_bits(0x0a02_0000 + session))
}

impl Client<'_> {
    /// Sends a request as JSON, with a merchant's key.
    pub(super) async fn send(&self, method: &'static str, path: &str, key: &str, body: Option<&Value>) -> Reply {
        self.ask(request(self.ip, method, path, key, body)).await
    }

    /// Sends a request, and checks the properties of every response.
    pub(super) async fn ask(&self, request: Request) -> Reply {
        let shown = format!("{} {}", request.method, request.path);
        let could_fail = self.may_be_unavailable();
        let reply = self.endpoint.rest(request).await;
        // The content of a response is part of the trace, too.
        let detail = reply
            .body
            .iter()
            .fold(u64::from(reply.status), |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
        self.sim.event(Source::Merchant, "answered", Some(self.session), detail, || {
            format!("{shown} gets {}{}", reply.status, reason_of(&reply).map_or(String::new(), |r| format!(" {r}")))
        });
        let may_fail = could_fail || self.may_be_unavailable();
        self.check_response(&shown, &reply, may_fail);
        reply
    }

    /// Returns whether the engine may respond that it is unavailable.
    fn may_be_unavailable(&self) -> bool {
        self.sim.may_be_unavailable(&self.engine.process)
    }

    /// Returns the wall clock of the engine.
    fn wall(&self) -> Timestamp {
        self.sim.wall_of(&self.engine.process)
    }

    fn check_response(&self, shown: &str, reply: &Reply, may_fail: bool) {
        let reported = || format!("{shown} gets {}: {}", reply.status, text_of(reply));
        let waits = reply.header("retry-after").and_then(|seconds| seconds.parse::<u32>().ok()).filter(|s| *s > 0);
        self.sim.observe(|observer| {
            let is_excused = reply.status == 503 && may_fail && waits.is_some();
            if reply.status >= 500 && !is_excused {
                observer.violate("clients-see-no-failure", reported(), None);
            } else {
                observer.passes("clients-see-no-failure");
            }
            if reply.status == 429 && (!self.exceeds_limit || waits.is_none()) {
                observer.violate("limits-are-kept", reported(), None);
            }
        });
        if reply.status == 503 {
            self.sim.mark("a client gets Retry-After");
        }
    }

    /// Records that a response is wrong.
    pub(super) fn violate(&self, invariant: &'static str, text: String, payment: Option<PaymentId>) {
        self.sim.observe(|observer| observer.violate(invariant, text, payment));
    }

    /// Records whether a response is right.
    pub(super) fn hold(&self, invariant: &'static str, payment: PaymentId, holds: bool, seen: impl FnOnce() -> String) {
        self.sim.observe(|observer| match holds {
            true => observer.passes(invariant),
            false => observer.violate(invariant, seen(), Some(payment)),
        });
    }

    /// Checks a reported state against those that the payment had during the request.
    pub(super) fn hold_state(&self, id: PaymentId, before: Option<DurableState>, reported: &str) {
        let after = self.sim.durable_state(id);
        let known = [before, after].into_iter().flatten().map(|durable| durable.state);
        let mut passed: Vec<&str> = known.map(engine::payment::State::as_str).collect();
        // The session may have passed through this state meanwhile.
        if passed.first() == Some(&"pending")
            && passed.last().is_some_and(|last| ["completed", "failed"].contains(last))
        {
            passed.push("processing");
        }
        self.hold("reported-states-are-current", id, passed.contains(&reported), || {
            format!("{id} is reported as {reported:?} and was {passed:?} during the request")
        });
    }
}

/// Returns the order that created a session, according to the script.
fn order_of(sim: &Simulation, session: u32) -> Option<orders::Order> {
    sim.script.steps.iter().find_map(|step| match step.action {
        Action::Create { session: other, merchant, units, currency, lifetime_seconds } if other == session => {
            Some(orders::Order { session, merchant, money: Money::new(units, currency), lifetime_seconds })
        }
        _ => None,
    })
}

/// Builds a request of a shop.
pub(super) fn request(ip: IpAddr, method: &'static str, path: &str, key: &str, body: Option<&Value>) -> Request {
    let mut headers = Vec::new();
    if !key.is_empty() {
        headers.push(("authorization", format!("Bearer {key}")));
    }
    if body.is_some() {
        headers.push(("content-type", "application/json".to_owned()));
    }
    let body = body.map_or_else(Bytes::new, |body| body.to_string().into());
    Request { method, path: path.to_owned(), headers, body, client: ip }
}

/// Parses the body of a response.
pub(super) fn json_of(reply: &Reply) -> Value {
    serde_json::from_slice(&reply.body).unwrap_or_default()
}

/// Returns the reason of a refusal.
pub(super) fn reason_of(reply: &Reply) -> Option<String> {
    if reply.status < 400 {
        return None;
    }
    Some(json_of(reply)["reason"].as_str()?.to_owned())
}

fn text_of(reply: &Reply) -> String {
    String::from_utf8_lossy(&reply.body).chars().take(300).collect()
}
