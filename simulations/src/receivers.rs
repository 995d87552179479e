//! The merchants' webhook receivers: they verify each webhook, and fail in every documented way.

pub(crate) mod transport;

use std::time::Duration;

use engine::webhook::Outcome;

use crate::{
    options::{Fault, Setup},
    random::Random,
    script::OutageKind,
};

/// The number of the first second endpoint.
const SECOND_ENDPOINTS: usize = 100;

/// The state of the receivers.
pub(crate) struct Receivers {
    random: Random,
    outages: Vec<(u64, OutageKind)>,
    /// Whether outages last for hours and days.
    is_long: bool,
}

/// A receiver's response to a request.
struct PostOutcome {
    wait_ms: u64,
    outcome: Outcome,
    is_accepted: bool,
    fault: Option<&'static str>,
}

impl Receivers {
    pub(crate) fn new(random: &Random, setup: &Setup) -> Self {
        let outages = vec![(0, OutageKind::Refused); setup.merchants];
        Self { random: random.fork("receivers"), outages, is_long: setup.days > 0 }
    }

    /// Makes a receiver unreachable for a while.
    pub(crate) fn fail_until(&mut self, merchant: usize, kind: OutageKind, until_ms: u64) -> bool {
        let Some(outage) = self.outages.get_mut(merchant) else { return false };
        *outage = (until_ms, kind);
        true
    }

    /// Makes every receiver reachable again.
    pub(crate) fn heal(&mut self) {
        self.outages.iter_mut().for_each(|outage| outage.0 = 0);
    }

    /// Draws which receiver becomes unreachable at this block.
    pub(crate) fn roll(&mut self, rate: u32) -> Option<(usize, OutageKind, u64)> {
        if !self.random.chance(rate) {
            return None;
        }
        let kinds = [
            OutageKind::Status(500),
            OutageKind::Status(404),
            OutageKind::Timeout,
            OutageKind::Refused,
            OutageKind::Dns,
        ];
        let merchant = self.random.index(self.outages.len());
        let (kind, for_ms) = (*self.random.pick(&kinds), self.random.between(5_000, 600_000));
        let times = if self.is_long { *self.random.pick(&[20, 100, 600]) } else { 1 };
        Some((merchant, kind, for_ms * times))
    }

    fn post_outcome(
        &mut self,
        merchant: usize,
        now_ms: u64,
        webhook_ms: u64,
        timeout_ms: u64,
        rate: impl Fn(Fault) -> u32,
    ) -> PostOutcome {
        let random = &mut self.random;
        let wait_ms = random.wait_ms(webhook_ms);
        let refused = |status, retry_after| Outcome::Refused { status, retry_after };
        let (until, kind) = self.outages.get(merchant).copied().unwrap_or((0, OutageKind::Refused));
        if now_ms < until {
            let (wait_ms, outcome, is_accepted) = match kind {
                OutageKind::Status(status) => (wait_ms, refused(status, None), false),
                OutageKind::Timeout => (timeout_ms, Outcome::Timeout, true),
                OutageKind::Refused => (0, Outcome::ConnectionRefused, false),
                OutageKind::Dns => (0, Outcome::Dns, false),
            };
            return PostOutcome { wait_ms, outcome, is_accepted, fault: Some("webhook.outage") };
        }
        if random.chance(rate(Fault::HookTimeout)) {
            let fault = Some(Fault::HookTimeout.as_str());
            return PostOutcome { wait_ms: timeout_ms, outcome: Outcome::Timeout, is_accepted: true, fault };
        }
        if random.chance(rate(Fault::HookReset)) {
            let (is_accepted, fault) = (random.chance(500_000), Some(Fault::HookReset.as_str()));
            let outcome = *random.pick(&[Outcome::ConnectionReset, Outcome::Tls]);
            return PostOutcome { wait_ms, outcome, is_accepted, fault };
        }
        if random.chance(rate(Fault::HookGone)) {
            return PostOutcome {
                wait_ms,
                outcome: refused(410, None),
                is_accepted: false,
                fault: Some(Fault::HookGone.as_str()),
            };
        }
        if random.chance(rate(Fault::HookStatus)) {
            let status = *random.pick(&[500, 502, 503, 401, 404, 302, 429]);
            let retry_after = matches!(status, 429 | 503).then(|| Duration::from_secs(random.between(1, 900)));
            let is_accepted = status == 500 && random.chance(300_000);
            return PostOutcome {
                wait_ms,
                outcome: refused(status, retry_after),
                is_accepted,
                fault: Some(Fault::HookStatus.as_str()),
            };
        }
        PostOutcome { wait_ms, outcome: Outcome::Accepted { status: 204 }, is_accepted: true, fault: None }
    }
}

/// Names a session for a report.
pub(crate) fn name_of(session: Option<u32>) -> String {
    session.map_or_else(|| "an unknown session".to_owned(), |session| format!("session {session}"))
}

fn describe(outcome: Outcome) -> String {
    outcome.status().map_or_else(|| outcome.as_str().to_owned(), |status| status.to_string())
}

/// Returns the URL of a merchant's endpoint.
pub(crate) fn url_of(merchant: usize) -> String {
    format!("https://shop-{merchant}.example/hook?token=of-the-shop")
}

/// Returns the URL of a merchant's second endpoint, a receiver without outages; `path` is a part of it.
pub(crate) fn second_url_of(merchant: usize, path: &str) -> String {
    format!("https://shop-{}.example/{path}?token=of-the-books", SECOND_ENDPOINTS + merchant)
}

fn merchant_of(url: &str) -> usize {
    url.trim_start_matches("https://shop-").split('.').next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// Returns the beginning of the body of a receiver's response.
pub(crate) fn snippet_of(outcome: Outcome) -> String {
    outcome.status().map_or_else(String::new, |status| format!("status {status} of the shop"))
}
