//! Per-caller rate limits by IP address and by merchant, open streams, and the lockout of who guesses API keys.

mod accepted;
mod bounded;
mod client;
mod clock;
mod rate;

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use engine::mutant;
use governor::{RateLimiter, middleware::StateInformationMiddleware};
use http::{HeaderMap, HeaderValue, Method};
use ipnet::IpNet;
use proto::{ApiError, Reason};
use tracing::warn;

pub(crate) use self::accepted::{Accepted, AcceptedKeys};
use self::{
    accepted::digest,
    bounded::{Bounded, LockedOut},
    clock::Steady,
};

pub use self::{
    clock::Now,
    rate::{NoRate, Rate},
};

/// Which limits a request counts against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rates {
    /// None: health checks.
    Unlimited,
    /// Reads or writes of a merchant, or of an IP address without a key.
    Calls,
    /// Calls, and exports.
    Export,
    /// Calls, and test events.
    WebhookTest,
    /// Calls, and deliveries that are sent again.
    Redeliver,
    /// Registrations from an IP address.
    Registration,
    /// Visits of the checkout from an IP address.
    Checkout,
    /// Payments that are verified or settled for an IP address, or calls of the merchant whose key is sent.
    X402,
}

/// What stands between the facade and the world.
#[derive(Debug, Default)]
pub struct Edge {
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Origins whose web pages may send API keys.
    pub key_origins: Vec<String>,
    /// The limits in force; none: everybody may do as much as they can.
    pub limits: Option<Limits>,
}

impl Edge {
    /// Returns the address of the one who asks.
    pub(crate) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        client::address_of(peer, headers, &self.trusted_proxies)
    }

    /// Says whether web pages of an origin may send API keys.
    pub(crate) fn trusts_with_keys(&self, origin: &HeaderValue) -> bool {
        self.key_origins.iter().any(|trusted| trusted.as_bytes() == origin.as_bytes())
    }

    /// Takes a place among the open streams; it is free again when the permit goes.
    pub(crate) fn stream(&self, client: IpAddr) -> Result<Option<StreamPermit>, ApiError> {
        self.limits.as_ref().map(|limits| limits.streams.enter(client::key_of(client))).transpose()
    }

    /// Refuses an address that has used up its attempts to pay one session. Counts nothing.
    pub(crate) fn look_at_session(&self, session: &str, client: IpAddr) -> Result<(), ApiError> {
        let Some(limits) = &self.limits else { return Ok(()) };
        limits.check_session(session_key(session, client)).map_err(|limited| limited.error)
    }

    /// Counts an attempt of one address to pay one session: nobody uses up the attempts of others. Requests that run at
    /// once may exceed the limit; the rate of all payments of the address bounds them.
    pub(crate) fn count_attempt(&self, session: &str, client: IpAddr) {
        if let Some(limits) = &self.limits {
            limits.count_attempt(session_key(session, client));
        }
    }
}

/// Returns what the attempts of one address to pay one session are counted under.
fn session_key(session: &str, client: IpAddr) -> u128 {
    digest(&[&client::key_of(client).to_be_bytes()[..], session.as_bytes()].concat())
}

/// What is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Anonymous,
    Writes,
    Reads,
    Register,
    RegisterDaily,
    Checkout,
    X402,
    X402Session,
    Export,
    WebhookTest,
    Redeliver,
    BadKeys,
}

/// What is limited, the name of its policy in headers, and its setting.
const POLICIES: [(What, &str, &str); 12] = [
    (What::Anonymous, "anonymous", "limits.anonymous"),
    (What::Writes, "writes", "limits.api_writes"),
    (What::Reads, "reads", "limits.api_reads"),
    (What::Register, "register", "limits.register"),
    (What::RegisterDaily, "register-daily", "limits.register_daily"),
    (What::Checkout, "checkout", "limits.checkout"),
    (What::X402, "x402", "limits.x402"),
    (What::X402Session, "x402-session", "limits.x402_session"),
    (What::Export, "export", "limits.export"),
    (What::WebhookTest, "webhook-test", "limits.webhook_test"),
    (What::Redeliver, "redeliver", "limits.redeliver"),
    (What::BadKeys, "bad-keys", "limits.bad_keys"),
];

/// The limits of one facade. Each facade counts for itself.
#[derive(Debug)]
pub struct Limits {
    clock: Steady,
    policies: BTreeMap<What, Policy>,
    locked_out: LockedOut,
    lockout: Duration,
    /// Addresses without attempts left for a session, until they have one again.
    exhausted: LockedOut,
    streams: Arc<Streams>,
}

#[derive(Debug)]
struct Policy {
    name: &'static str,
    limiter: RateLimiter<u128, Bounded, Steady, StateInformationMiddleware>,
    burst: u32,
    /// How long an unused quota takes to become whole.
    window: Duration,
}

/// Streams that may be open at once.
#[derive(Debug, Clone, Copy)]
pub struct StreamLimits {
    /// To one address.
    pub per_ip: usize,
    /// Altogether.
    pub total: usize,
}

/// One request as far as limits go.
pub(crate) struct Asked<'a> {
    pub(crate) method: &'a Method,
    pub(crate) rates: Rates,
    pub(crate) client: IpAddr,
    /// The digest of the merchant whose key it carries.
    pub(crate) merchant: Option<u128>,
    /// Whether it shows a payment.
    pub(crate) pays: bool,
}

/// Where a caller stands with one policy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing {
    name: &'static str,
    burst: u32,
    window: Duration,
    remaining: u32,
    reset: Duration,
}

/// A request that is too much.
#[derive(Debug)]
pub(crate) struct Limited {
    pub(crate) error: ApiError,
    pub(crate) standings: Vec<Standing>,
}

impl Limits {
    /// Limits by the rates of the settings named in this file; a setting without a rate limits nothing.
    pub fn new(now: Now, rate_of: impl Fn(&str) -> Option<Rate>, lockout: Duration, streams: StreamLimits) -> Self {
        let clock = Steady::of(now);
        let policy = |(what, name, setting): (What, &'static str, &str)| {
            let quota = rate_of(setting)?.quota();
            let limiter = RateLimiter::new(quota, Bounded::new(), clock.clone());
            let (burst, window) = (quota.burst_size().get(), quota.burst_size_replenished_in());
            Some((what, Policy { name, limiter, burst, window }))
        };
        let policies = POLICIES.into_iter().filter_map(policy).collect();
        let streams = Arc::new(Streams { limits: streams, open: Mutex::default() });
        let (locked_out, exhausted) = (LockedOut::default(), LockedOut::default());
        Self { policies, clock, locked_out, lockout, exhausted, streams }
    }

    /// Counts a request against every policy that is meant for it, or refuses it.
    pub(crate) fn admit(&self, asked: &Asked<'_>) -> Result<Vec<Standing>, Limited> {
        let client = client::key_of(asked.client);
        let mut standings = Vec::new();
        for (what, who) in policies_of(asked, client) {
            match self.check(what, who) {
                Ok(standing) => standings.extend(standing),
                Err(mut limited) => {
                    limited.standings.splice(0..0, standings);
                    return Err(limited);
                }
            }
        }
        Ok(standings)
    }

    /// Counts a request whose merchant is not known yet, or refuses it. An address that showed too many wrong keys may
    /// show none: an answer to any would tell the good from the bad.
    pub(crate) fn admit_unknown_key(&self, client: IpAddr) -> Result<(), Limited> {
        let who = client::key_of(client);
        self.check_lock(who)?;
        self.check(What::Anonymous, who).map(drop)
    }

    /// Counts a visit of the dashboard by somebody who is not logged in.
    pub(crate) fn admit_stranger(&self, client: IpAddr) -> Result<(), ApiError> {
        self.check(What::Anonymous, client::key_of(client)).map(drop).map_err(|limited| limited.error)
    }

    /// Counts a visit of the dashboard as a request of the visitor's merchant.
    pub(crate) fn admit_visit(&self, merchant_id: &str, is_read: bool, rates: Rates) -> Result<(), ApiError> {
        let who = digest(merchant_id.as_bytes());
        let special = match rates {
            Rates::WebhookTest => Some(What::WebhookTest),
            Rates::Redeliver => Some(What::Redeliver),
            Rates::Export => Some(What::Export),
            _ => None,
        };
        let whats = [Some(if is_read { What::Reads } else { What::Writes }), special];
        whats
            .into_iter()
            .flatten()
            .try_for_each(|what| self.check(what, who).map(drop).map_err(|limited| limited.error))
    }

    fn check(&self, what: What, who: u128) -> Result<Option<Standing>, Limited> {
        let Some(policy) = self.policies.get(&what) else { return Ok(None) };
        let standing = |remaining, reset| Standing {
            name: policy.name,
            burst: policy.burst,
            window: policy.window,
            remaining,
            reset,
        };
        match policy.limiter.check_key(&who) {
            Ok(state) => {
                let remaining = state.remaining_burst_capacity();
                let missing = policy.burst.saturating_sub(remaining);
                Ok(Some(standing(remaining, policy.window * missing / policy.burst)))
            }
            Err(refused) => {
                let wait = refused.wait_time_from(governor::clock::Clock::now(&self.clock));
                Err(Limited { error: too_many(wait), standings: vec![standing(0, wait)] })
            }
        }
    }

    /// Notes that a key of this address was none of ours. After too many the address may show no key at all for a
    /// while: an answer to any would tell the good from the bad.
    pub(crate) fn note_bad_key(&self, client: IpAddr) {
        let who = client::key_of(client);
        let is_last = match self.check(What::BadKeys, who) {
            Ok(standing) => standing.is_some_and(|standing| standing.remaining == 0),
            Err(_) => true,
        };
        if is_last {
            let lockout = u64::try_from(self.lockout.as_nanos()).unwrap_or(u64::MAX);
            self.locked_out.insert(who, self.clock.nanos().saturating_add(lockout));
            warn!(client.ip = %client, "{client} sent too many wrong API keys and is locked out");
        }
    }

    fn check_session(&self, who: u128) -> Result<(), Limited> {
        let now = self.clock.nanos();
        let Some(until) = self.exhausted.until(who, now) else { return Ok(()) };
        Err(Limited { error: too_many(Duration::from_nanos(until.saturating_sub(now))), standings: Vec::new() })
    }

    fn count_attempt(&self, who: u128) {
        let wait = match self.check(What::X402Session, who) {
            Ok(None) => return,
            Ok(Some(standing)) if standing.remaining > 0 => return,
            // The last one: the next is there when the quota has regained one of its burst.
            Ok(Some(standing)) => standing.window / standing.burst,
            Err(limited) => limited.standings.first().map_or(Duration::ZERO, |standing| standing.reset),
        };
        let wait = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        self.exhausted.insert(who, self.clock.nanos().saturating_add(wait));
    }

    fn check_lock(&self, client: u128) -> Result<(), Limited> {
        let now = self.clock.nanos();
        let Some(until) = self.locked_out.until(client, now) else { return Ok(()) };
        let mut error = too_many(Duration::from_nanos(until.saturating_sub(now)));
        error.message = "too many wrong API keys came from your address".into();
        Err(Limited { error, standings: Vec::new() })
    }
}

fn too_many(wait: Duration) -> ApiError {
    let mut error = ApiError::new(Reason::RateLimited);
    error.retry_after_seconds = Some(whole_seconds(wait).max(1));
    error
}

fn whole_seconds(duration: Duration) -> u32 {
    let whole = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    u32::try_from(whole).unwrap_or(u32::MAX)
}

/// Returns the policies of a request, and as whom each counts it.
fn policies_of(asked: &Asked<'_>, client: u128) -> Vec<(What, u128)> {
    let special = match (asked.rates, asked.merchant) {
        (Rates::Unlimited, _) => return Vec::new(),
        (Rates::Registration, _) => return vec![(What::Register, client), (What::RegisterDaily, client)],
        (Rates::Checkout, _) if mutant!("facade-checkout-is-unlimited") => return Vec::new(),
        // The session is counted once the payment is known to be well-formed.
        (Rates::Checkout, _) if asked.pays => return vec![(What::Checkout, client), (What::X402, client)],
        (Rates::Checkout, _) => return vec![(What::Checkout, client)],
        // A seller that sends its key is counted as a merchant.
        (Rates::X402, None) => return vec![(What::X402, client)],
        (Rates::Calls | Rates::X402, _) => None,
        (Rates::Export, _) => Some(What::Export),
        (Rates::WebhookTest, _) => Some(What::WebhookTest),
        (Rates::Redeliver, _) => Some(What::Redeliver),
    };
    let Some(merchant) = asked.merchant else { return vec![(What::Anonymous, client)] };
    let is_read = matches!(*asked.method, Method::GET | Method::HEAD);
    let calls = if is_read { What::Reads } else { What::Writes };
    [Some(calls), special].into_iter().flatten().map(|what| (what, merchant)).collect()
}

/// Tells a caller where it stands (draft-ietf-httpapi-ratelimit-headers).
pub(crate) fn write_headers(standings: &[Standing], headers: &mut HeaderMap) {
    if standings.is_empty() {
        return;
    }
    let list = |item: &dyn Fn(&Standing) -> String| standings.iter().map(item).collect::<Vec<_>>().join(", ");
    let policy = list(&|s: &Standing| format!("\"{}\";q={};w={}", s.name, s.burst, whole_seconds(s.window).max(1)));
    let state = list(&|s: &Standing| format!("\"{}\";r={};t={}", s.name, s.remaining, whole_seconds(s.reset)));
    for (name, value) in [("ratelimit-policy", policy), ("ratelimit", state)] {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
}

#[derive(Debug)]
struct Streams {
    limits: StreamLimits,
    /// Open streams by address; at most as many entries as streams altogether.
    open: Mutex<(usize, BTreeMap<u128, usize>)>,
}

impl Streams {
    fn enter(self: &Arc<Self>, client: u128) -> Result<StreamPermit, ApiError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let own = open.1.get(&client).copied().unwrap_or(0);
        if own >= self.limits.per_ip || open.0 >= self.limits.total {
            let mut error = too_many(Duration::from_secs(15));
            error.message = "too many streams are open; close one, or ask for the status".into();
            return Err(error);
        }
        open.0 += 1;
        open.1.insert(client, own + 1);
        Ok(StreamPermit { streams: Arc::clone(self), client })
    }
}

/// A place among the open streams.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    streams: Arc<Streams>,
    client: u128,
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut open = self.streams.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.0 = open.0.saturating_sub(1);
        match open.1.get(&self.client).copied() {
            Some(own) if own > 1 => drop(open.1.insert(self.client, own - 1)),
            _ => drop(open.1.remove(&self.client)),
        }
    }
}

#[cfg(test)]
mod tests;
