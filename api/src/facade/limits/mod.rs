//! Per-caller rate limits by IP address and merchant, limits of open streams, and the lockout after invalid API keys.

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
    bounded::{Bounded, Lockouts},
    clock::MonotonicClock,
};

pub use self::{
    clock::Now,
    rate::{InvalidRate, Rate},
};

/// The limits that a request counts against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rates {
    /// None, for health checks.
    Unlimited,
    /// Reads or writes of a merchant, or calls of an IP address without an API key.
    Calls,
    /// Reads or writes, and exports.
    Export,
    /// Reads or writes, and test events.
    WebhookTest,
    /// Reads or writes, and redeliveries.
    Redeliver,
    /// Registrations from an IP address.
    Registration,
    /// Requests of the checkout from an IP address.
    Checkout,
    /// x402 calls of an IP address, or, with an API key, calls of its merchant.
    X402,
}

/// Access control in front of the handlers: proxies, origins and limits.
#[derive(Debug, Default)]
pub struct Edge {
    /// Proxies whose `X-Forwarded-For` is trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// Origins whose web pages may send API keys.
    pub key_origins: Vec<String>,
    /// The limits; `None` turns them off.
    pub limits: Option<Limits>,
}

impl Edge {
    /// Returns the IP address of the client.
    pub(crate) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        client::client_ip(peer, headers, &self.trusted_proxies)
    }

    /// Returns whether web pages of an origin may send API keys.
    pub(crate) fn allows_keys_from(&self, origin: &HeaderValue) -> bool {
        self.key_origins.iter().any(|trusted| trusted.as_bytes() == origin.as_bytes())
    }

    /// Takes a permit for an open stream, which ends when the permit is dropped.
    ///
    /// # Errors
    /// `rate_limited` if the client has the maximum of open streams.
    pub(crate) fn stream(&self, client: IpAddr) -> Result<Option<StreamPermit>, ApiError> {
        self.limits.as_ref().map(|limits| limits.streams.enter(client::key_of(client))).transpose()
    }

    /// Counts a payment that a customer starts again, at the rate of its merchant's own writes.
    ///
    /// # Errors
    /// `rate_limited` if the rate is reached.
    pub(crate) fn count_restart(&self, merchant_id: &str) -> Result<(), ApiError> {
        let Some(limits) = &self.limits else { return Ok(()) };
        // Counted separately from the writes, so that customers cannot use up the merchant's own.
        let caller = digest(&[&b"restart "[..], merchant_id.as_bytes()].concat());
        limits.check(LimitKind::Writes, caller).map(drop).map_err(|limited| limited.error)
    }

    /// Checks whether an IP address has attempts left to pay a session, without counting one.
    ///
    /// # Errors
    /// `rate_limited` if it has none.
    pub(crate) fn check_attempts(&self, session: &str, client: IpAddr) -> Result<(), ApiError> {
        let Some(limits) = &self.limits else { return Ok(()) };
        limits.check_session(session_key(session, client)).map_err(|limited| limited.error)
    }

    /// Counts an attempt of an IP address to pay a session, so that no client can use up the attempts of others. Concurrent
    /// requests may exceed the limit; the rate of x402 calls of the IP address bounds them.
    pub(crate) fn count_attempt(&self, session: &str, client: IpAddr) {
        if let Some(limits) = &self.limits {
            limits.count_attempt(session_key(session, client));
        }
    }
}

/// Returns the limiter's key of an IP address and a session.
fn session_key(session: &str, client: IpAddr) -> u128 {
    digest(&[&client::key_of(client).to_be_bytes()[..], session.as_bytes()].concat())
}

/// A limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum LimitKind {
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

/// Each limit with its policy name in headers and its setting.
const POLICIES: [(LimitKind, &str, &str); 12] = [
    (LimitKind::Anonymous, "anonymous", "limits.anonymous"),
    (LimitKind::Writes, "writes", "limits.api_writes"),
    (LimitKind::Reads, "reads", "limits.api_reads"),
    (LimitKind::Register, "register", "limits.register"),
    (LimitKind::RegisterDaily, "register-daily", "limits.register_daily"),
    (LimitKind::Checkout, "checkout", "limits.checkout"),
    (LimitKind::X402, "x402", "limits.x402"),
    (LimitKind::X402Session, "x402-session", "limits.x402_session"),
    (LimitKind::Export, "export", "limits.export"),
    (LimitKind::WebhookTest, "webhook-test", "limits.webhook_test"),
    (LimitKind::Redeliver, "redeliver", "limits.redeliver"),
    (LimitKind::BadKeys, "bad-keys", "limits.bad_keys"),
];

/// When an IP address is locked out. The engine counts over all facades.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LockoutPolicy {
    burst: u32,
    window: Duration,
    lockout: Duration,
}

impl LockoutPolicy {
    /// Returns the digest by which the engine knows a client.
    pub(crate) fn client(self, client: IpAddr) -> bytes::Bytes {
        digest(&client::key_of(client).to_be_bytes()).to_be_bytes().to_vec().into()
    }

    /// Returns the message that counts an invalid API key of a client.
    pub(crate) fn record(self, client: IpAddr) -> proto::v1::RecordInvalidKeyRequest {
        let millis = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        proto::v1::RecordInvalidKeyRequest {
            client: self.client(client),
            burst: self.burst,
            window_ms: millis(self.window),
            lockout_ms: millis(self.lockout),
        }
    }
}

/// The limits of one process. Several processes count separately, except lockouts.
#[derive(Debug)]
pub struct Limits {
    clock: MonotonicClock,
    policies: BTreeMap<LimitKind, Policy>,
    locked_out: Lockouts,
    lockout: Duration,
    /// IP addresses without attempts left for a session, until they have one again.
    exhausted: Lockouts,
    streams: Arc<OpenStreams>,
}

#[derive(Debug)]
struct Policy {
    name: &'static str,
    limiter: RateLimiter<u128, Bounded, MonotonicClock, StateInformationMiddleware>,
    burst: u32,
    /// Time until a used quota is fully replenished.
    window: Duration,
}

/// Maximum numbers of open streams.
#[derive(Debug, Clone, Copy)]
pub struct StreamLimits {
    /// Per IP address.
    pub per_ip: usize,
    /// In total.
    pub total: usize,
}

/// The properties of a request that decide its limits.
pub(crate) struct RequestInfo<'a> {
    pub(crate) method: &'a Method,
    pub(crate) rates: Rates,
    pub(crate) client: IpAddr,
    /// Digest of the id of the merchant that authenticated.
    pub(crate) merchant: Option<u128>,
    /// Whether it contains a payment.
    pub(crate) pays: bool,
}

/// The state of a caller's quota of one policy.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QuotaState {
    name: &'static str,
    burst: u32,
    window: Duration,
    remaining: u32,
    reset: Duration,
}

/// A request beyond a limit.
#[derive(Debug)]
pub(crate) struct Limited {
    pub(crate) error: ApiError,
    pub(crate) quotas: Vec<QuotaState>,
}

impl Limits {
    /// Creates limits with the rates of the settings in `POLICIES`; a setting without a rate is unlimited.
    pub fn new(now: Now, rate_of: impl Fn(&str) -> Option<Rate>, lockout: Duration, streams: StreamLimits) -> Self {
        let clock = MonotonicClock::of(now);
        let policy = |(kind, name, setting): (LimitKind, &'static str, &str)| {
            let quota = rate_of(setting)?.quota();
            let limiter = RateLimiter::new(quota, Bounded::new(), clock.clone());
            let (burst, window) = (quota.burst_size().get(), quota.burst_size_replenished_in());
            Some((kind, Policy { name, limiter, burst, window }))
        };
        let policies = POLICIES.into_iter().filter_map(policy).collect();
        let streams = Arc::new(OpenStreams { limits: streams, open: Mutex::default() });
        let (locked_out, exhausted) = (Lockouts::default(), Lockouts::default());
        Self { policies, clock, locked_out, lockout, exhausted, streams }
    }

    /// Counts a request against its limits.
    ///
    /// # Errors
    /// `rate_limited` if one of them is reached.
    pub(crate) fn admit(&self, request: &RequestInfo<'_>) -> Result<Vec<QuotaState>, Limited> {
        let client = client::key_of(request.client);
        let mut quotas = Vec::new();
        for (kind, caller) in policies_of(request, client) {
            match self.check(kind, caller) {
                Ok(quota) => quotas.extend(quota),
                Err(mut limited) => {
                    limited.quotas.splice(0..0, quotas);
                    return Err(limited);
                }
            }
        }
        Ok(quotas)
    }

    /// Counts a request with an API key that is not in the cache. An IP address that is locked out cannot use such keys,
    /// because the response would reveal which ones are valid.
    ///
    /// # Errors
    /// `rate_limited` if the IP address is locked out or its limit is reached.
    pub(crate) fn admit_unknown_key(&self, client: IpAddr) -> Result<(), Limited> {
        let caller = client::key_of(client);
        self.check_lock(caller)?;
        self.check(LimitKind::Anonymous, caller).map(drop)
    }

    /// Counts a request of the dashboard without a session.
    pub(crate) fn admit_anonymous(&self, client: IpAddr) -> Result<(), ApiError> {
        self.check(LimitKind::Anonymous, client::key_of(client)).map(drop).map_err(|limited| limited.error)
    }

    /// Counts a request of the dashboard against the limits of the visitor's merchant.
    pub(crate) fn admit_visit(&self, merchant_id: &str, is_read: bool, rates: Rates) -> Result<(), ApiError> {
        let caller = digest(merchant_id.as_bytes());
        let special = match rates {
            Rates::WebhookTest => Some(LimitKind::WebhookTest),
            Rates::Redeliver => Some(LimitKind::Redeliver),
            Rates::Export => Some(LimitKind::Export),
            _ => None,
        };
        let kinds = [Some(if is_read { LimitKind::Reads } else { LimitKind::Writes }), special];
        kinds
            .into_iter()
            .flatten()
            .try_for_each(|kind| self.check(kind, caller).map(drop).map_err(|limited| limited.error))
    }

    fn check(&self, kind: LimitKind, caller: u128) -> Result<Option<QuotaState>, Limited> {
        let Some(policy) = self.policies.get(&kind) else { return Ok(None) };
        let quota = |remaining, reset| QuotaState {
            name: policy.name,
            burst: policy.burst,
            window: policy.window,
            remaining,
            reset,
        };
        match policy.limiter.check_key(&caller) {
            Ok(state) => {
                let remaining = state.remaining_burst_capacity();
                let missing = policy.burst.saturating_sub(remaining);
                Ok(Some(quota(remaining, policy.window * missing / policy.burst)))
            }
            Err(refused) => {
                let wait = refused.wait_time_from(governor::clock::Clock::now(&self.clock));
                Err(Limited { error: too_many(wait), quotas: vec![quota(0, wait)] })
            }
        }
    }

    /// Returns when IP addresses are locked out; `None` if never.
    pub(crate) fn lockout_policy(&self) -> Option<LockoutPolicy> {
        let policy = self.policies.get(&LimitKind::BadKeys)?;
        Some(LockoutPolicy { burst: policy.burst, window: policy.window, lockout: self.lockout })
    }

    /// Locks an IP address out for as long as another facade does.
    pub(crate) fn lock_out(&self, client: IpAddr, remaining: Option<Duration>) {
        if let Some(remaining) = remaining {
            let remaining = u64::try_from(remaining.as_nanos()).unwrap_or(u64::MAX);
            self.locked_out.insert(client::key_of(client), self.clock.nanos().saturating_add(remaining));
        }
    }

    /// Checks that an IP address is not locked out.
    ///
    /// # Errors
    /// `rate_limited` if it is.
    pub(crate) fn check_lockout(&self, client: IpAddr) -> Result<(), Limited> {
        self.check_lock(client::key_of(client))
    }

    /// Counts an invalid API key of an IP address. After too many, the address is locked out for a while.
    pub(crate) fn record_invalid_key(&self, client: IpAddr) {
        let caller = client::key_of(client);
        let is_last = match self.check(LimitKind::BadKeys, caller) {
            Ok(quota) => quota.is_some_and(|quota| quota.remaining == 0),
            Err(_) => true,
        };
        if is_last {
            let lockout = u64::try_from(self.lockout.as_nanos()).unwrap_or(u64::MAX);
            self.locked_out.insert(caller, self.clock.nanos().saturating_add(lockout));
            warn!(client.ip = %client, "{client} sent too many invalid API keys and is locked out");
        }
    }

    fn check_session(&self, caller: u128) -> Result<(), Limited> {
        let now = self.clock.nanos();
        let Some(until) = self.exhausted.until(caller, now) else { return Ok(()) };
        Err(Limited { error: too_many(Duration::from_nanos(until.saturating_sub(now))), quotas: Vec::new() })
    }

    fn count_attempt(&self, caller: u128) {
        let wait = match self.check(LimitKind::X402Session, caller) {
            Ok(None) => return,
            Ok(Some(quota)) if quota.remaining > 0 => return,
            // That was the last one. The next is available when one of the burst is replenished.
            Ok(Some(quota)) => quota.window / quota.burst,
            Err(limited) => limited.quotas.first().map_or(Duration::ZERO, |quota| quota.reset),
        };
        let wait = u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX);
        self.exhausted.insert(caller, self.clock.nanos().saturating_add(wait));
    }

    fn check_lock(&self, client: u128) -> Result<(), Limited> {
        let now = self.clock.nanos();
        let Some(until) = self.locked_out.until(client, now) else { return Ok(()) };
        let mut error = too_many(Duration::from_nanos(until.saturating_sub(now)));
        error.message = "too many invalid API keys came from your IP address".into();
        Err(Limited { error, quotas: Vec::new() })
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

/// Returns the limits of a request, each with the caller that it counts for.
fn policies_of(request: &RequestInfo<'_>, client: u128) -> Vec<(LimitKind, u128)> {
    let special = match (request.rates, request.merchant) {
        (Rates::Unlimited, _) => return Vec::new(),
        (Rates::Registration, _) => return vec![(LimitKind::Register, client), (LimitKind::RegisterDaily, client)],
        (Rates::Checkout, _) if mutant!("facade-checkout-is-unlimited") => return Vec::new(),
        // Attempts to pay the session are counted once the payment is known to be well-formed.
        (Rates::Checkout, _) if request.pays => return vec![(LimitKind::Checkout, client), (LimitKind::X402, client)],
        (Rates::Checkout, _) => return vec![(LimitKind::Checkout, client)],
        // A seller with an API key is counted as a merchant.
        (Rates::X402, None) => return vec![(LimitKind::X402, client)],
        (Rates::Calls | Rates::X402, _) => None,
        (Rates::Export, _) => Some(LimitKind::Export),
        (Rates::WebhookTest, _) => Some(LimitKind::WebhookTest),
        (Rates::Redeliver, _) => Some(LimitKind::Redeliver),
    };
    let Some(merchant) = request.merchant else { return vec![(LimitKind::Anonymous, client)] };
    let is_read = matches!(*request.method, Method::GET | Method::HEAD);
    let calls = if is_read { LimitKind::Reads } else { LimitKind::Writes };
    [Some(calls), special].into_iter().flatten().map(|kind| (kind, merchant)).collect()
}

/// Writes the headers `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers).
pub(crate) fn write_headers(quotas: &[QuotaState], headers: &mut HeaderMap) {
    if quotas.is_empty() {
        return;
    }
    let list = |item: &dyn Fn(&QuotaState) -> String| quotas.iter().map(item).collect::<Vec<_>>().join(", ");
    let policy = list(&|s: &QuotaState| format!("\"{}\";q={};w={}", s.name, s.burst, whole_seconds(s.window).max(1)));
    let state = list(&|s: &QuotaState| format!("\"{}\";r={};t={}", s.name, s.remaining, whole_seconds(s.reset)));
    for (name, value) in [("ratelimit-policy", policy), ("ratelimit", state)] {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(name, value);
        }
    }
}

#[derive(Debug)]
struct OpenStreams {
    limits: StreamLimits,
    /// Open streams in total, and by IP address.
    open: Mutex<(usize, BTreeMap<u128, usize>)>,
}

impl OpenStreams {
    fn enter(self: &Arc<Self>, client: u128) -> Result<StreamPermit, ApiError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let own = open.1.get(&client).copied().unwrap_or(0);
        if own >= self.limits.per_ip || open.0 >= self.limits.total {
            let mut error = too_many(Duration::from_secs(15));
            error.message = "too many streams are open; close one, or poll the status instead".into();
            return Err(error);
        }
        open.0 += 1;
        open.1.insert(client, own + 1);
        Ok(StreamPermit { streams: Arc::clone(self), client })
    }
}

/// A permit for an open stream.
#[derive(Debug)]
pub(crate) struct StreamPermit {
    streams: Arc<OpenStreams>,
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
