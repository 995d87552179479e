//! Delivers webhooks from the outbox: signs, posts, records the attempt, and waits for what is due next.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use engine::{
    ids::{DeliveryId, MerchantId, PaymentId},
    merchant::Merchant,
    mutant,
    time::Timestamp,
    webhook::{Attempt, Delivery, Next},
};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use storage::{Batch, CommitError, Write};

use crate::{
    context::Context,
    environment::{WebhookRequest, WebhookResponse},
    timer::{Task, Timer},
};

/// Attempts under way at once, in all and for one merchant.
const MAX_IN_FLIGHT: usize = 256;
const MAX_PER_MERCHANT: usize = 8;
/// Due deliveries looked at in one round.
const LOOK_AHEAD: usize = 2_048;
/// The outbox is looked at this often even if nobody rings, in case another engine put something in.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// How long a delivery whose attempt could not be recorded is left alone.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) enum Msg {
    /// Look at the outbox.
    Look,
    /// An attempt is over and recorded, or its record failed; the next one is due then.
    Done(DeliveryId, Option<Timestamp>),
}

pub(crate) struct Webhooks {
    pub(crate) context: Arc<Context>,
}

pub(crate) struct Outbox {
    /// Deliveries under way.
    in_flight: BTreeMap<DeliveryId, (MerchantId, PaymentId)>,
    /// Deliveries that are due and wait for a place, in order.
    ready: BTreeMap<(Timestamp, DeliveryId), Delivery>,
    /// Whether the store has more that is due than was read.
    has_more: bool,
    _bell: Task,
    alarm: Option<(Timestamp, Timer)>,
}

impl Actor for Webhooks {
    type Msg = Msg;
    type State = Outbox;
    type Arguments = ();

    async fn pre_start(&self, myself: ActorRef<Msg>, (): ()) -> Result<Outbox, ActorProcessingErr> {
        myself.cast(Msg::Look)?;
        let context = Arc::clone(&self.context);
        let bell = Task::spawn(async move {
            loop {
                context.outbox_bell.notified().await;
                if myself.cast(Msg::Look).is_err() {
                    return;
                }
            }
        });
        Ok(Outbox { in_flight: BTreeMap::new(), ready: BTreeMap::new(), has_more: false, _bell: bell, alarm: None })
    }

    async fn handle(&self, myself: ActorRef<Msg>, message: Msg, outbox: &mut Outbox) -> Result<(), ActorProcessingErr> {
        let is_news = match message {
            Msg::Look => true,
            Msg::Done(delivery, next_at) => {
                outbox.in_flight.remove(&delivery);
                if let Some(next_at) = next_at {
                    self.set_alarm(&myself, outbox, next_at);
                }
                outbox.has_more
            }
        };
        // While many are ready, what else is due can only be later than they are.
        if is_news && !(outbox.has_more && outbox.ready.len() >= LOOK_AHEAD / 2) {
            self.read_due(&myself, outbox).await?;
        }
        self.start_ready(&myself, outbox);
        Ok(())
    }
}

impl Webhooks {
    async fn read_due(&self, myself: &ActorRef<Msg>, outbox: &mut Outbox) -> Result<(), ActorProcessingErr> {
        let now = self.context.now();
        let due = self.context.env.store.due_deliveries(now, LOOK_AHEAD).await?;
        outbox.has_more = due.len() == LOOK_AHEAD;
        for delivery in due {
            if !outbox.in_flight.contains_key(&delivery.id) {
                outbox.ready.insert((delivery.due_at, delivery.id), delivery);
            }
        }
        let next = self.context.env.store.next_delivery_after(now).await?;
        outbox.alarm = None;
        self.set_alarm(myself, outbox, next.unwrap_or(now + MAX_WAIT).min(now + MAX_WAIT));
        Ok(())
    }

    /// Looks again at `at`, unless it will earlier.
    fn set_alarm(&self, myself: &ActorRef<Msg>, outbox: &mut Outbox, at: Timestamp) {
        if outbox.alarm.as_ref().is_none_or(|(set_for, _)| at < *set_for) {
            let wait = at.since(self.context.now());
            outbox.alarm = Some((at, Timer::send(myself, wait, Msg::Look)));
        }
    }

    /// Starts what may start: so many at once in all and for one merchant, and one after the other for one payment.
    fn start_ready(&self, myself: &ActorRef<Msg>, outbox: &mut Outbox) {
        let mut per_merchant = BTreeMap::<MerchantId, usize>::new();
        let mut busy_payments = BTreeSet::new();
        for (merchant, payment) in outbox.in_flight.values() {
            *per_merchant.entry(*merchant).or_default() += 1;
            busy_payments.insert(*payment);
        }
        let room = MAX_IN_FLIGHT.saturating_sub(outbox.in_flight.len());
        let mut starting = Vec::new();
        for (key, delivery) in &outbox.ready {
            if starting.len() == room {
                break;
            }
            let merchants = per_merchant.entry(delivery.merchant).or_default();
            if mutant!("retries-forgotten") && delivery.attempts > 0 {
                continue;
            }
            let is_free = busy_payments.insert(delivery.payment) || mutant!("events-race");
            if *merchants < MAX_PER_MERCHANT && is_free {
                *merchants += 1;
                starting.push(*key);
            }
        }
        for key in starting {
            let Some(delivery) = outbox.ready.remove(&key) else { continue };
            outbox.in_flight.insert(delivery.id, (delivery.merchant, delivery.payment));
            self.start(myself.clone(), delivery);
        }
    }

    fn start(&self, myself: ActorRef<Msg>, delivery: Delivery) {
        let context = Arc::clone(&self.context);
        tokio::spawn(async move {
            let id = delivery.id;
            // A task of its own, so that a crash of the attempt is seen here.
            let for_attempt = Arc::clone(&context);
            let attempt = tokio::spawn(async move {
                attempt(&for_attempt, delivery).await.inspect_err(|error| for_attempt.give_up_on(error))
            });
            let next_at = match attempt.await {
                Ok(Ok(next_at)) => next_at,
                // It is still in the outbox, and due.
                Ok(Err(error)) => {
                    tracing::warn!(delivery.id = %id, %error, "delivery {id}: {error}");
                    Some(context.now() + AFTER_FAILURE)
                }
                Err(crash) => {
                    tracing::error!(delivery.id = %id, %crash, "delivery {id} crashed");
                    Some(context.now() + AFTER_FAILURE)
                }
            };
            let _ = myself.cast(Msg::Done(id, next_at));
        });
    }
}

/// One attempt: read the merchant as it is now, sign, post, record. Returns when the next is due.
async fn attempt(context: &Context, delivery: Delivery) -> Result<Option<Timestamp>, CommitError> {
    let store = &context.env.store;
    let unreadable = |error: storage::ReadError| CommitError::Unknown(error.to_string());
    let merchant = store.merchant(delivery.merchant).await.map_err(unreadable)?;
    let event = store.event(delivery.merchant, delivery.event_seq).await.map_err(unreadable)?;
    let (Some(merchant), Some(event)) = (merchant, event) else {
        return store.commit(Batch::of(Write::Undeliverable(delivery))).await.map(|()| None);
    };
    let Some(url) = merchant.webhook_url.clone() else {
        return store.commit(Batch::of(Write::Undeliverable(delivery))).await.map(|()| None);
    };
    let started_at = context.env.clock.now();
    let request = request(context, &merchant, &delivery, event.body, url, started_at);
    let endpoint = endpoint(&request.url);
    context.env.probe.reach("webhook: signed, not sent");
    let WebhookResponse { outcome, snippet } = context.env.webhooks.post(request).await;
    context.env.probe.reach("webhook: sent, not recorded");
    let ended_at = context.env.clock.now();
    let random = u16::from_be_bytes(context.env.entropy.bytes());
    // Receivers judge the signature by the wall clock; the schedule runs on the engine's own time, like the events.
    let next = delivery.after(outcome, context.now(), random);
    let number = delivery.attempts + 1;
    tracing::info!(
        delivery.id = %delivery.id, event.id = %delivery.event, attempt = number, outcome = outcome.word(), ?next,
        "webhook for {}: attempt {number} {}", delivery.payment, outcome.word()
    );
    let next_attempt_at = match next {
        Next::RetryAt(at) => Some(at),
        Next::Delivered | Next::GiveUp | Next::DisableEndpoint => None,
    };
    let attempt = Attempt {
        delivery: delivery.id,
        event: delivery.event,
        merchant: delivery.merchant,
        number,
        endpoint,
        started_at,
        duration_ms: u64::try_from(ended_at.since(started_at).as_millis()).unwrap_or(u64::MAX),
        outcome,
        response_snippet: snippet,
        next_attempt_at,
    };
    store.commit(Batch::of(Write::Attempt { delivery, attempt })).await.map(|()| next_attempt_at)
}

fn request(
    context: &Context,
    merchant: &Merchant,
    delivery: &Delivery,
    body: Vec<u8>,
    url: String,
    now: Timestamp,
) -> WebhookRequest {
    let prefix = &context.settings.webhook_header_prefix;
    let signed = merchant.secrets.sign(delivery.event, &body, now);
    let mut headers = vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("user-agent".to_owned(), "Hivetill-Webhooks/1".to_owned()),
        (format!("{prefix}-Timestamp"), signed.timestamp_ms.to_string()),
        (format!("{prefix}-Signature"), signed.legacy),
        (format!("{prefix}-Event"), "payment.status_changed".to_owned()),
        (format!("{prefix}-Delivery"), delivery.id.to_string()),
        (format!("{prefix}-Attempt"), (delivery.attempts + 1).to_string()),
        ("webhook-id".to_owned(), signed.standard_id),
        ("webhook-timestamp".to_owned(), signed.standard_timestamp_s.to_string()),
        ("webhook-signature".to_owned(), signed.standard),
    ];
    if let Some(previous) = signed.legacy_previous {
        headers.push((format!("{prefix}-Signature-Previous"), previous));
    }
    WebhookRequest { url, headers, body, timeout: context.settings.webhook_timeout }
}

/// Host and path: a query may hold a secret of the receiver's.
fn endpoint(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['?', '#']).next().unwrap_or_default().to_owned()
}
