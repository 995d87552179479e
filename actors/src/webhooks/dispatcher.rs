//! Delivers webhooks from the outbox, in a fair order. Every endpoint has a queue of its own.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use engine::{
    ids::{DeliveryId, EndpointId, PaymentId},
    mutant,
    time::Timestamp,
    webhook::{Delivery, EndpointHealth, Trigger},
};
use ractor::{Actor, ActorProcessingErr, ActorRef, MessagingErr};
use storage::{Batch, Due, DueWork, Duty, HoldReason, Passed, ReadError, Write};
use tokio::time::Instant;

use crate::{
    context::Context,
    duties::Work,
    timer::{Task, Timer},
    webhooks::{
        attempt::{Attempted, attempt},
        notifier::Notifier,
    },
};

/// Maximum concurrent attempts, in total and per endpoint.
const MAX_IN_FLIGHT: usize = 256;
const MAX_PER_ENDPOINT: usize = 8;
/// Maximum rate of attempts per endpoint, and burst after a pause.
const PER_SECOND: u32 = 25;
/// Maximum number of endpoints in one round, and of deliveries of each.
const QUEUES_AT_ONCE: usize = 256;
const DELIVERIES_AT_ONCE: usize = 64;
/// How long the first attempt of an event waits for earlier events of its payment.
const MAX_WAIT_FOR_EARLIER: Duration = Duration::from_secs(30);
/// Interval of reading the outbox without a notification, in case another engine added a delivery.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// The same while other engines add deliveries.
const MAX_WAIT_AMONG_OTHERS: Duration = Duration::from_secs(1);
/// Backoff of a delivery whose attempt could not be recorded.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) enum Msg {
    /// Read the outbox.
    Look,
    /// The alarm is due: read the outbox.
    Alarm,
    /// An attempt is finished and recorded, or its record failed.
    Done { endpoint: EndpointId, delivery: DeliveryId, attempted: Attempted },
}

pub(crate) struct Dispatcher {
    pub(crate) context: Arc<Context>,
    pub(crate) notifier: Arc<Notifier>,
}

pub(crate) struct Outbox {
    queues: BTreeMap<EndpointId, Queue>,
    /// Attempts in progress, in total.
    in_flight: usize,
    wakeup: Wakeup,
    _forwarder: Task,
    alarm: Option<(Timestamp, Timer)>,
}

/// Requests a read of the outbox, once for all requests before it.
#[derive(Clone)]
struct Wakeup {
    webhooks: ActorRef<Msg>,
    is_requested: Arc<AtomicBool>,
}

impl Wakeup {
    fn request(&self) -> Result<(), MessagingErr<Msg>> {
        if self.is_requested.swap(true, Ordering::AcqRel) { Ok(()) } else { self.webhooks.cast(Msg::Look) }
    }

    /// Marks the start of a read: later requests need another one.
    fn take(&self) {
        if !mutant!("webhooks-wait-for-the-timer") {
            self.is_requested.swap(false, Ordering::AcqRel);
        }
    }
}

/// The queue of one endpoint.
#[derive(Default)]
struct Queue {
    /// Attempts in progress, with the payment of each.
    in_flight: BTreeMap<DeliveryId, PaymentId>,
    /// The due deliveries that were read, in order.
    ready: BTreeMap<(Timestamp, DeliveryId), Due>,
    /// Whether no other delivery was due at the last read, and the queue is still complete: later ones request a read,
    /// or wait for the alarm.
    is_complete: bool,
    /// Deliveries in backoff, because they could not be recorded.
    backoff: BTreeMap<DeliveryId, Timestamp>,
    health: EndpointHealth,
    bucket: TokenBucket,
}

/// A token bucket: a rate per second, and a burst of one second.
#[derive(Default)]
struct TokenBucket {
    /// When the bucket is full again.
    full_at: Option<Instant>,
}

impl TokenBucket {
    const TOKEN: Duration = Duration::from_millis(1_000 / PER_SECOND as u64);

    /// Returns the time until the next token.
    fn wait(&self, now: Instant) -> Duration {
        if mutant!("endpoint-not-paced") {
            return Duration::ZERO;
        }
        let allowed = now + Self::TOKEN * (PER_SECOND - 1);
        self.full_at.map_or(Duration::ZERO, |full_at| full_at.saturating_duration_since(allowed))
    }

    fn take(&mut self, now: Instant) {
        self.full_at = Some(self.full_at.map_or(now, |full_at| full_at.max(now)) + Self::TOKEN);
    }

    fn is_full(&self, now: Instant) -> bool {
        self.full_at.is_none_or(|full_at| full_at <= now)
    }
}

impl Queue {
    /// Returns the maximum number of concurrent attempts.
    fn width(&self) -> usize {
        match self.health.is_breaker_open() && !mutant!("no-breaker") {
            true => 1,
            false if mutant!("double-endpoint-concurrency") => 2 * MAX_PER_ENDPOINT,
            false => MAX_PER_ENDPOINT,
        }
    }

    fn is_full(&self) -> bool {
        self.in_flight.len() >= self.width()
    }

    /// Returns whether reading further due deliveries is useful: one could start.
    fn wants_more(&self, now: Timestamp, instant: Instant) -> bool {
        let is_limited = !self.ready.is_empty() && !self.bucket.wait(instant).is_zero();
        !self.is_full() && !is_limited && self.next(now, instant).is_err()
    }

    /// Returns the deliveries that may start now; otherwise the minimum time to wait.
    fn next(&self, now: Timestamp, instant: Instant) -> Result<(Timestamp, DeliveryId), Option<Duration>> {
        if self.is_full() {
            return Err(None);
        }
        let pause = self.bucket.wait(instant);
        if !pause.is_zero() && !self.ready.is_empty() {
            return Err(Some(pause));
        }
        let mut wait: Option<Duration> = None;
        for (key, due) in &self.ready {
            let delivery = &due.delivery;
            if mutant!("no-retries") && delivery.attempts > 0 {
                continue;
            }
            // Events of one payment are sent one at a time, and the first attempt of each after the event before it.
            let is_busy = self.in_flight.values().any(|payment| *payment == delivery.payment);
            if is_busy && !mutant!("events-of-a-session-overlap") {
                continue;
            }
            let may_start_at = delivery.due_at + MAX_WAIT_FOR_EARLIER;
            let next_wait = due.follows && delivery.attempts == delivery.schedule_from && now < may_start_at;
            if next_wait && !mutant!("events-of-a-session-overlap") {
                let left = may_start_at.since(now);
                wait = Some(wait.map_or(left, |wait| wait.min(left)));
                continue;
            }
            return Ok(*key);
        }
        Err(wait)
    }
}

impl Actor for Dispatcher {
    type Msg = Msg;
    type State = Outbox;
    type Arguments = ();

    async fn pre_start(&self, myself: ActorRef<Msg>, (): ()) -> Result<Outbox, ActorProcessingErr> {
        let wakeup = Wakeup { webhooks: myself, is_requested: Arc::default() };
        wakeup.request()?;
        let (notifier, outside) = (Arc::clone(&self.notifier), wakeup.clone());
        let forwarder = Task::spawn(async move {
            loop {
                notifier.outbox_change().await;
                if outside.request().is_err() {
                    return;
                }
            }
        });
        Ok(Outbox { queues: BTreeMap::new(), in_flight: 0, wakeup, _forwarder: forwarder, alarm: None })
    }

    async fn handle(&self, myself: ActorRef<Msg>, message: Msg, outbox: &mut Outbox) -> Result<(), ActorProcessingErr> {
        let now = self.context.now();
        let next = match message {
            Msg::Look => {
                outbox.wakeup.take();
                self.look(outbox, now).await?
            }
            Msg::Alarm => {
                outbox.alarm = None;
                self.look(outbox, now).await?
            }
            Msg::Done { endpoint, delivery, attempted } => {
                self.end(outbox, endpoint, delivery, attempted);
                if !outbox.queues.get(&endpoint).is_some_and(|queue| queue.is_complete) {
                    // Others may have finished, too: one read is enough for all of them.
                    return Ok(outbox.wakeup.request()?);
                }
                None
            }
        };
        let wait = self.start_ready(&myself, outbox, now);
        let longest = now + if self.context.duties.is_alone() { MAX_WAIT } else { MAX_WAIT_AMONG_OTHERS };
        let at = wait.map_or(longest, |wait| now + wait).min(next.unwrap_or(longest)).min(longest);
        if outbox.alarm.as_ref().is_none_or(|(set_for, _)| at < *set_for) {
            outbox.alarm = Some((at, Timer::send(&myself, at.since(now), Msg::Alarm)));
        }
        Ok(())
    }
}

impl Dispatcher {
    fn end(&self, outbox: &mut Outbox, endpoint: EndpointId, delivery: DeliveryId, attempted: Attempted) {
        let Some(queue) = outbox.queues.get_mut(&endpoint) else { return };
        let Some(payment) = queue.in_flight.remove(&delivery) else { return };
        outbox.in_flight -= 1;
        if attempted == Attempted::NotRecorded {
            queue.backoff.insert(delivery, self.context.now() + AFTER_FAILURE);
        }
        // The health of the endpoint, or the state of the payment's other events, may be outdated: read it again.
        let has_followers = queue.ready.values().any(|due| due.delivery.payment == payment);
        if attempted != Attempted::Taken || queue.health.is_breaker_open() || has_followers {
            queue.ready.clear();
            queue.is_complete = false;
        }
    }

    /// Reads due deliveries; returns when to read again. Attempts in progress are kept in memory: an unreachable store
    /// must not stop the actor.
    async fn look(&self, outbox: &mut Outbox, now: Timestamp) -> Result<Option<Timestamp>, ActorProcessingErr> {
        match self.read_due(outbox, now).await {
            Err(error) if matches!(error.downcast_ref(), Some(ReadError::Unavailable(_))) => {
                Ok(Some(now + AFTER_FAILURE))
            }
            next => next,
        }
    }

    /// Reads due deliveries of queues with free capacity. Returns when the next delivery is due.
    async fn read_due(&self, outbox: &mut Outbox, now: Timestamp) -> Result<Option<Timestamp>, ActorProcessingErr> {
        let store = &self.context.env.store;
        let (instant, buckets) = (Instant::now(), self.context.duties.buckets());
        outbox.queues.retain(|endpoint, queue| {
            if !buckets.has_endpoint(*endpoint) {
                // Another engine delivers what was not started here.
                queue.ready.clear();
                queue.backoff.clear();
            }
            // Endpoints that are not read now may have sent a request that is not repeated.
            queue.is_complete = false;
            queue.backoff.retain(|_, until| now < *until);
            !queue.in_flight.is_empty()
                || !queue.ready.is_empty()
                || !queue.backoff.is_empty()
                || !queue.bucket.is_full(instant)
        });
        let busy = outbox.queues.iter().filter(|(_, queue)| !queue.wants_more(now, instant));
        let busy: BTreeSet<EndpointId> = busy.map(|(endpoint, _)| *endpoint).collect();
        let ready = outbox.queues.values().filter(|queue| queue.next(now, instant).is_ok()).count();
        if let Some(capacity) = QUEUES_AT_ONCE.checked_sub(ready).filter(|capacity| *capacity > 0) {
            let known = outbox.queues.values().flat_map(|queue| queue.in_flight.keys().chain(queue.backoff.keys()));
            let passed = Passed { buckets, endpoints: busy, deliveries: known.copied().collect() };
            for work in store.due_work(now, capacity, DELIVERIES_AT_ONCE, passed).await? {
                self.take_in(outbox, work).await?;
            }
        }
        let backoff = outbox.queues.values().flat_map(|queue| queue.backoff.values()).min().copied();
        let next = store.next_delivery_after(now).await?;
        Ok(next.into_iter().chain(backoff).min())
    }

    /// Adds due deliveries to the queue of their endpoint; holds those that must not be sent, and gives up those to a
    /// deleted endpoint.
    async fn take_in(&self, outbox: &mut Outbox, work: DueWork) -> Result<(), ActorProcessingErr> {
        let store = &self.context.env.store;
        let endpoint = work.endpoint;
        // Deliveries wait until the merchant's record can be read.
        let Some(record) = work.record else { return Ok(()) };
        let target = record.target(endpoint);
        let has_url = target.is_some_and(|target| target.url.is_some());
        let is_switched_on = target.is_some_and(|target| target.is_enabled);
        let reason = match has_url && is_switched_on {
            true => HoldReason::Disabled,
            false => HoldReason::NoEndpoint { merchant_version: Some(record.version) },
        };
        let queue = outbox.queues.entry(endpoint).or_default();
        let is_mutated = mutant!("breaker-holds-deliveries") && work.health.is_breaker_open();
        let is_enabled = is_switched_on && work.health.is_enabled() && !is_mutated;
        let is_whole = work.deliveries.len() < DELIVERIES_AT_ONCE;
        queue.health = work.health;
        queue.is_complete = is_whole;
        queue.ready.clear();
        let mut held = Batch::default();
        for due in work.deliveries {
            let id = due.delivery.id;
            // Test events are sent to a disabled endpoint, too.
            if has_url && (is_enabled || due.delivery.trigger != Trigger::Auto) {
                queue.ready.insert((due.delivery.due_at, id), due);
            } else if target.is_none() {
                held = held.and(Write::Undeliverable(due.delivery));
            } else {
                held = held.and(Write::Hold { delivery: due.delivery, reason });
            }
        }
        let count = held.writes.len();
        if count == 0 {
            return Ok(());
        }
        match store.commit(held).await {
            Ok(()) => {
                tracing::info!(endpoint.id = %endpoint, count, "{count} webhooks to {endpoint} held");
                if !is_whole {
                    outbox.wakeup.request()?;
                }
            }
            // They are still in the outbox, and read again.
            Err(error) => {
                self.context.commit_failed(&error);
                tracing::warn!(endpoint.id = %endpoint, %error, "cannot hold the webhooks to {endpoint}: {error}");
            }
        }
        Ok(())
    }

    /// Starts permitted attempts, to endpoints with the fewest attempts in progress first. Returns the minimum time
    /// until a waiting one may start.
    fn start_ready(&self, myself: &ActorRef<Msg>, outbox: &mut Outbox, now: Timestamp) -> Option<Duration> {
        let instant = Instant::now();
        let mut next_wait: Option<Duration> = None;
        let mut turns = BTreeSet::new();
        for (endpoint, queue) in &outbox.queues {
            match queue.next(now, instant) {
                Ok((due_at, _)) => drop(turns.insert((queue.in_flight.len(), due_at, *endpoint))),
                Err(wait) => next_wait = next_wait.into_iter().chain(wait).min(),
            }
        }
        let (mut begun, least) = (Vec::new(), self.context.settings.webhook_timeout);
        while outbox.in_flight < MAX_IN_FLIGHT
            && let Some((_, _, endpoint)) = turns.pop_first()
        {
            let Some(queue) = outbox.queues.get_mut(&endpoint) else { continue };
            let Ok(key) = queue.next(now, instant) else { continue };
            // A webhook that would outlast the lease is not started: another engine may send it then.
            let Some(work) = self.context.duties.begin(Duty::webhooks_of(endpoint), least) else {
                next_wait = next_wait.into_iter().chain([MAX_WAIT_AMONG_OTHERS]).min();
                continue;
            };
            let Some(due) = queue.ready.remove(&key) else { continue };
            queue.bucket.take(instant);
            queue.in_flight.insert(due.delivery.id, due.delivery.payment);
            outbox.in_flight += 1;
            begun.push((due.delivery, work));
            match queue.next(now, instant) {
                Ok((due_at, _)) => drop(turns.insert((queue.in_flight.len(), due_at, endpoint))),
                Err(wait) => next_wait = next_wait.into_iter().chain(wait).min(),
            }
        }
        if self.context.duties.is_alone() {
            begun.into_iter().for_each(|(delivery, work)| self.start(myself.clone(), delivery, work));
        } else if !begun.is_empty() {
            self.claim(myself.clone(), begun);
        }
        next_wait
    }

    /// Claims deliveries before they are sent: one commit, which the store rejects if another engine has taken one of their
    /// buckets.
    fn claim(&self, myself: ActorRef<Msg>, begun: Vec<(Delivery, Work)>) {
        let dispatcher = Self { context: Arc::clone(&self.context), notifier: Arc::clone(&self.notifier) };
        tokio::spawn(async move {
            let ids: Vec<_> = begun.iter().map(|(delivery, _)| (delivery.endpoint, delivery.id)).collect();
            let guards: BTreeMap<Duty, Write> =
                begun.iter().filter_map(|(_, work)| Some((work.duty, work.term.guard()?))).collect();
            let context = Arc::clone(&dispatcher.context);
            // A separate task, so that a crash of the claim is detected: nothing was sent.
            let claimed = tokio::spawn(async move {
                let claimed = context.env.store.commit(guards.into_values().collect()).await;
                context.env.probe.reach("webhook: claimed, not sent");
                claimed.inspect_err(|error| context.commit_failed(error))
            });
            let is_claimed = match claimed.await {
                Ok(claimed) => claimed.is_ok() || mutant!("deposed-holder-sends"),
                Err(crash) => {
                    tracing::error!(%crash, "the claim of {} deliveries crashed", ids.len());
                    false
                }
            };
            if is_claimed {
                begun.into_iter().for_each(|(delivery, work)| dispatcher.start(myself.clone(), delivery, work));
                return;
            }
            drop(begun);
            for (endpoint, delivery) in ids {
                let _ = myself.cast(Msg::Done { endpoint, delivery, attempted: Attempted::NotRecorded });
            }
        });
    }

    fn start(&self, myself: ActorRef<Msg>, delivery: Delivery, work: Work) {
        let context = Arc::clone(&self.context);
        tokio::spawn(async move {
            // The bucket is released afterwards.
            let _work = work;
            let (id, endpoint) = (delivery.id, delivery.endpoint);
            // A separate task, so that a crash of the attempt is detected.
            let for_attempt = Arc::clone(&context);
            let attempted = tokio::spawn(async move {
                attempt(&for_attempt, delivery).await.inspect_err(|error| for_attempt.commit_failed(error))
            });
            let attempted = match attempted.await {
                Ok(Ok(attempted)) => attempted,
                // It is still in the outbox, and due.
                Ok(Err(error)) => {
                    tracing::warn!(delivery.id = %id, %error, "delivery {id}: {error}");
                    Attempted::NotRecorded
                }
                Err(crash) => {
                    tracing::error!(delivery.id = %id, %crash, "delivery {id} crashed");
                    Attempted::NotRecorded
                }
            };
            let _ = myself.cast(Msg::Done { endpoint, delivery: id, attempted });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_bucket_gives_a_seconds_worth_at_once_and_then_one_by_one() {
        let mut bucket = TokenBucket::default();
        let now = Instant::now();
        for _ in 0..PER_SECOND {
            assert_eq!(bucket.wait(now), Duration::ZERO);
            bucket.take(now);
        }
        assert_eq!(bucket.wait(now), TokenBucket::TOKEN);
        assert_eq!(bucket.wait(now + TokenBucket::TOKEN), Duration::ZERO);
        assert!(!bucket.is_full(now) && bucket.is_full(now + Duration::from_secs(1)));
    }
}
