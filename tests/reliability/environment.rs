//! The state that every client of a campaign shares: the current URLs of gateway and ledger, counts, and violations.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use engine::hive::Pack;

use super::print_progress;
use crate::harness::{Api, Ledger, Payer, RequestBuilder, Response, Stopwatch, TIMEOUT, pause};

/// Pause before a retry.
const AGAIN: Duration = Duration::from_millis(25);

/// Maximum time for which a kill waits for the response that it should follow.
const A_MOMENT: Duration = Duration::from_millis(800);

/// The current URLs and the results so far.
pub(super) struct Environment {
    gateway: Mutex<Option<Api>>,
    ledger: Mutex<Ledger>,
    ended: AtomicBool,
    counts: Mutex<BTreeMap<&'static str, u64>>,
    violations: Mutex<Vec<String>>,
}

impl Environment {
    pub(super) fn new(ledger: &Ledger) -> Self {
        Self {
            gateway: Mutex::default(),
            ledger: Mutex::new(ledger.clone()),
            ended: AtomicBool::new(false),
            counts: Mutex::default(),
            violations: Mutex::default(),
        }
    }

    /// Sets the URL of the gateway; none while it is dead.
    pub(super) fn move_gateway(&self, api: Option<&Api>) {
        *locked(&self.gateway) = api.cloned();
    }

    /// Sets the URL of the ledger.
    pub(super) fn move_ledger(&self, ledger: &Ledger) {
        *locked(&self.ledger) = ledger.clone();
    }

    pub(super) fn ledger(&self) -> Ledger {
        locked(&self.ledger).clone()
    }

    /// Lets the clients finish their current work.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    pub(super) fn count(&self, what: &'static str) {
        *locked(&self.counts).entry(what).or_default() += 1;
    }

    pub(super) fn counts(&self) -> BTreeMap<&'static str, u64> {
        locked(&self.counts).clone()
    }

    /// Waits until the count increases, or until a timeout.
    pub(super) fn until_next(&self, what: &str) {
        let counted = || locked(&self.counts).get(what).copied();
        let (before, watch) = (counted(), Stopwatch::start());
        while counted() == before && watch.elapsed() < A_MOMENT {
            pause(Duration::from_micros(50));
        }
    }

    /// Records a violation.
    pub(super) fn record_violation(&self, what: impl fmt::Display) {
        print_progress(&format!("VIOLATION: {what}"));
        locked(&self.violations).push(what.to_string());
    }

    pub(super) fn violations(&self) -> Vec<String> {
        locked(&self.violations).clone()
    }

    /// Sends a request once the gateway has a URL. None without a complete response: the outcome is unknown.
    pub(super) fn ask_once(&self, request: impl Fn(&Api) -> RequestBuilder) -> Option<Response> {
        let watch = Stopwatch::start();
        while watch.elapsed() < TIMEOUT {
            let Some(api) = locked(&self.gateway).clone() else {
                pause(AGAIN);
                continue;
            };
            let response = request(&api).try_send().ok();
            match &response {
                None => self.count("responses cut off"),
                Some(response) if response.status >= 500 && response.status != 503 => {
                    self.record_violation(format!("{} {}", response.status, response.text()));
                }
                Some(response) if response.status < 300 => self.count("acknowledged responses"),
                Some(_) => {}
            }
            return response;
        }
        self.record_violation(format!("no gateway for {TIMEOUT:?}"));
        None
    }

    /// Repeats a request until there is a response, as a client does after a broken connection or 503.
    pub(super) fn request(&self, request: impl Fn(&Api) -> RequestBuilder) -> Option<Response> {
        let watch = Stopwatch::start();
        while watch.elapsed() < TIMEOUT {
            if let Some(response) = self.ask_once(&request).filter(|response| response.status != 503) {
                return Some(response);
            }
            self.count("retries");
            pause(AGAIN);
        }
        self.record_violation(format!("no response for {TIMEOUT:?}"));
        None
    }

    /// Pays from a wallet: signs, and broadcasts the same bytes until a node accepts them. Returns the transaction's
    /// id.
    pub(super) fn pay(&self, payer: &Payer, to: &str, units: u64, memo: &str) -> Option<String> {
        let amount = hbd(units);
        let watch = Stopwatch::start();
        let mut signed = None;
        while watch.elapsed() < TIMEOUT {
            let ledger = self.ledger();
            signed = signed.or_else(|| ledger.try_signed(payer, &[(to, &amount, memo)]));
            let Some(transaction) = &signed else {
                pause(AGAIN);
                continue;
            };
            match ledger.try_broadcast(transaction) {
                None => pause(AGAIN),
                Some(Ok(())) => {
                    self.count("transfers sent");
                    return Some(transaction.id(Pack::Legacy).to_string());
                }
                // The response to the first attempt was lost.
                Some(Err(error)) if error.to_string().to_lowercase().contains("duplicate") => {
                    return Some(transaction.id(Pack::Legacy).to_string());
                }
                Some(Err(error)) => {
                    self.record_violation(format!("the ledger refuses a transfer: {error}"));
                    return None;
                }
            }
        }
        self.record_violation(format!("no ledger for {TIMEOUT:?}"));
        None
    }
}

/// Formats an amount as the ledger does.
pub(super) fn hbd(units: u64) -> String {
    format!("{}.{:03} HBD", units / 1000, units % 1000)
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
