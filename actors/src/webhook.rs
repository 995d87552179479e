//! Delivers webhooks from the outbox: signs, posts, records the attempt, and waits for what is due next.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use engine::{
    ids::{DeliveryId, MerchantId, PaymentId},
    merchant::Merchant,
    time::Timestamp,
    webhook::{Attempt, Delivery, Next},
};
use ractor::{Actor, ActorProcessingErr, ActorRef, concurrency::JoinHandle};
use storage::{Batch, CommitError, Write};

use crate::{
    context::Context,
    environment::{WebhookRequest, WebhookResponse},
    timer::Timer,
};

/// Attempts under way at once, in all and for one merchant.
const MAX_IN_FLIGHT: usize = 256;
const MAX_PER_MERCHANT: usize = 8;
/// Due deliveries looked at in one round.
const LOOK_AHEAD: usize = 2_048;
/// The outbox is looked at this often even if nobody rings, in case another engine put something in.
const MAX_WAIT: Duration = Duration::from_secs(30);
/// How long a delivery whose attempt crashed is left alone.
const AFTER_CRASH: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) enum Msg {
    /// Look at the outbox.
    Look,
    /// An attempt is over and recorded, or its record failed.
    Done(DeliveryId),
}

pub(crate) struct Webhooks {
    pub(crate) context: Arc<Context>,
}

pub(crate) struct InFlight {
    deliveries: BTreeMap<DeliveryId, (MerchantId, PaymentId)>,
    bell: JoinHandle<()>,
    _alarm: Option<Timer>,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.bell.abort();
    }
}

impl Actor for Webhooks {
    type Msg = Msg;
    type State = InFlight;
    type Arguments = ();

    async fn pre_start(&self, myself: ActorRef<Msg>, (): ()) -> Result<InFlight, ActorProcessingErr> {
        myself.cast(Msg::Look)?;
        let context = Arc::clone(&self.context);
        let bell = tokio::spawn(async move {
            loop {
                context.outbox_bell.notified().await;
                if myself.cast(Msg::Look).is_err() {
                    return;
                }
            }
        });
        Ok(InFlight { deliveries: BTreeMap::new(), bell, _alarm: None })
    }

    async fn handle(
        &self,
        myself: ActorRef<Msg>,
        message: Msg,
        state: &mut InFlight,
    ) -> Result<(), ActorProcessingErr> {
        if let Msg::Done(delivery) = message {
            state.deliveries.remove(&delivery);
        }
        self.start_due(&myself, state).await?;
        self.set_alarm(&myself, state).await
    }
}

impl Webhooks {
    async fn start_due(&self, myself: &ActorRef<Msg>, state: &mut InFlight) -> Result<(), ActorProcessingErr> {
        let now = self.context.now();
        let due = self.context.env.store.due_deliveries(now, LOOK_AHEAD).await?;
        let mut per_merchant = BTreeMap::<MerchantId, usize>::new();
        let mut busy_payments = BTreeSet::new();
        for (merchant, payment) in state.deliveries.values() {
            *per_merchant.entry(*merchant).or_default() += 1;
            busy_payments.insert(*payment);
        }
        for delivery in due {
            if state.deliveries.len() >= MAX_IN_FLIGHT {
                break;
            }
            let merchants = per_merchant.entry(delivery.merchant).or_default();
            let is_free = !state.deliveries.contains_key(&delivery.id)
                && *merchants < MAX_PER_MERCHANT
                // The events of one payment go out one after the other.
                && !busy_payments.contains(&delivery.payment);
            if is_free {
                *merchants += 1;
                busy_payments.insert(delivery.payment);
                state.deliveries.insert(delivery.id, (delivery.merchant, delivery.payment));
                let (context, myself) = (Arc::clone(&self.context), myself.clone());
                tokio::spawn(async move {
                    let id = delivery.id;
                    let attempt = tokio::spawn(async move {
                        attempt(&context, delivery).await.inspect_err(|e| context.give_up_on(e))
                    });
                    match attempt.await {
                        Ok(Ok(())) => {}
                        Ok(Err(error)) => tracing::warn!(delivery.id = %id, %error, "delivery {id}: {error}"),
                        Err(crash) => {
                            tracing::error!(delivery.id = %id, %crash, "delivery {id} crashed");
                            tokio::time::sleep(AFTER_CRASH).await;
                        }
                    }
                    let _ = myself.cast(Msg::Done(id));
                });
            }
        }
        Ok(())
    }

    async fn set_alarm(&self, myself: &ActorRef<Msg>, state: &mut InFlight) -> Result<(), ActorProcessingErr> {
        let now = self.context.now();
        let next = self.context.env.store.next_delivery_at().await?;
        // What is due and not started waits for a place, which an ending attempt announces.
        let wait = next.filter(|at| *at > now).map_or(MAX_WAIT, |at| at.since(now).min(MAX_WAIT));
        state._alarm = Some(Timer::send(myself, wait, Msg::Look));
        Ok(())
    }
}

/// One attempt: read the merchant as it is now, sign, post, record.
async fn attempt(context: &Context, delivery: Delivery) -> Result<(), CommitError> {
    let store = &context.env.store;
    let unreadable = |error: storage::ReadError| CommitError::Unknown(error.to_string());
    let merchant = store.merchant(delivery.merchant).await.map_err(unreadable)?;
    let event = store.event(delivery.merchant, delivery.event_seq).await.map_err(unreadable)?;
    let (Some(merchant), Some(event)) = (merchant, event) else {
        return store.commit(Batch::of(Write::Undeliverable(delivery))).await;
    };
    let Some(url) = merchant.webhook_url.clone() else {
        return store.commit(Batch::of(Write::Undeliverable(delivery))).await;
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
        next_attempt_at: match next {
            Next::RetryAt(at) => Some(at),
            Next::Delivered | Next::GiveUp | Next::DisableEndpoint => None,
        },
    };
    store.commit(Batch::of(Write::Attempt { delivery, attempt })).await
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
