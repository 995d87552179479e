//! One attempt to deliver a webhook: reads the merchant's current record, signs, sends, records.

use engine::{
    mutant,
    time::Timestamp,
    webhook::{Attempt, Delivery, RetryDecision, Secrets, Trigger, body_digest},
};
use storage::{Batch, CommitError, EventRecord, HoldReason, Write};

use crate::{
    context::Context,
    environment::{WebhookRequest, WebhookResponse},
};

/// The result of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempted {
    /// The receiver has it.
    Taken,
    /// It failed, and that is recorded; or the endpoint must not get it.
    NotTaken,
    /// The result could not be recorded.
    NotRecorded,
}

/// Makes the due attempt.
pub(crate) async fn attempt(context: &Context, delivery: Delivery) -> Result<Attempted, CommitError> {
    let store = &context.env.store;
    let unreadable = |error: storage::ReadError| {
        context.read_failed(&error);
        CommitError::Unavailable(error.to_string())
    };
    let content = store.webhook_content(delivery.merchant, delivery.event_seq).await;
    // Without its merchant's record it cannot be signed now. Without its event there is nothing to send.
    let Some((merchant, event)) = context.sound(content).map_err(unreadable)? else {
        return Ok(Attempted::NotRecorded);
    };
    let (Some(merchant), Some(event)) = (merchant, event) else {
        return store.commit(Batch::of(Write::Undeliverable(delivery))).await.map(|()| Attempted::NotTaken);
    };
    // A deleted endpoint gets nothing any more.
    let Some(target) = merchant.target(delivery.endpoint) else {
        return store.commit(Batch::of(Write::Undeliverable(delivery))).await.map(|()| Attempted::NotTaken);
    };
    let is_sent = target.is_enabled || delivery.trigger != Trigger::Auto;
    let Some(url) = target.url.filter(|_| is_sent) else {
        let reason = HoldReason::NoEndpoint { merchant_version: Some(merchant.version) };
        return store.commit(Batch::of(Write::Hold { delivery, reason })).await.map(|()| Attempted::NotTaken);
    };
    let started_at = context.env.clock.now();
    let body_sha256 = body_digest(&event.body);
    let request = request(context, target.secrets, &delivery, event, url.to_owned(), started_at);
    let endpoint = host_and_path(&request.url);
    let request_headers = shown(&request.headers);
    context.env.probe.reach("webhook: signed, not sent");
    let WebhookResponse { outcome, snippet } = context.env.webhooks.post(request).await;
    context.env.probe.reach("webhook: sent, not recorded");
    let wall_end = context.env.clock.now();
    // Receivers verify the signature by the wall clock; the schedule uses the engine's time, like the events.
    let ended_at = context.now();
    let random = u16::from_be_bytes(context.env.entropy.bytes());
    let next = delivery.after(outcome, ended_at, random);
    let number = delivery.attempts + 1;
    context.metrics.attempted(outcome.as_str(), wall_end.since(started_at));
    tracing::info!(
        delivery.id = %delivery.id, event.id = %delivery.event, attempt = number, outcome = outcome.as_str(), ?next,
        "webhook for {}: attempt {number} {}", delivery.payment, outcome.as_str()
    );
    if next == RetryDecision::DisableEndpoint {
        let id = delivery.endpoint;
        tracing::warn!(merchant.id = %merchant.id, endpoint.id = %id, "webhook endpoint {id} responded 410 Gone: disabled");
    }
    let next_attempt_at = match next {
        RetryDecision::RetryAt(at) => Some(at),
        RetryDecision::Delivered | RetryDecision::GiveUp | RetryDecision::DisableEndpoint => None,
    };
    let attempt = Attempt {
        delivery: delivery.id,
        event: delivery.event,
        merchant: delivery.merchant,
        number,
        trigger: delivery.trigger,
        endpoint,
        scheduled_at: delivery.due_at,
        started_at,
        ended_at,
        duration_ms: u64::try_from(wall_end.since(started_at).as_millis()).unwrap_or(u64::MAX),
        outcome,
        request_headers,
        response_snippet: snippet,
        next_attempt_at,
        body_sha256,
    };
    store.commit(Batch::of(Write::Attempt { delivery, attempt })).await?;
    Ok(if next == RetryDecision::Delivered { Attempted::Taken } else { Attempted::NotTaken })
}

fn request(
    context: &Context,
    secrets: &Secrets,
    delivery: &Delivery,
    event: EventRecord,
    url: String,
    now: Timestamp,
) -> WebhookRequest {
    let prefix = &context.settings.webhook_header_prefix;
    let EventRecord { body, kind, .. } = event;
    let signed = secrets.sign(delivery.event, &body, now);
    let mut headers = vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("user-agent".to_owned(), "Hivetill-Webhooks/1".to_owned()),
        (format!("{prefix}-Timestamp"), signed.timestamp_ms.to_string()),
        (format!("{prefix}-Signature"), signed.legacy),
        (format!("{prefix}-Event"), kind.as_str().to_owned()),
        (format!("{prefix}-Delivery"), delivery.id.to_string()),
        (format!("{prefix}-Attempt"), (delivery.attempts + 1).to_string()),
        ("webhook-id".to_owned(), signed.standard_id),
        ("webhook-timestamp".to_owned(), signed.standard_timestamp_s.to_string()),
        ("webhook-signature".to_owned(), signed.standard),
    ];
    for (count, previous) in (1..).zip(signed.legacy_previous) {
        let number = if count == 1 { String::new() } else { format!("-{count}") };
        headers.push((format!("{prefix}-Signature-Previous{number}"), previous));
    }
    WebhookRequest { url, headers, body, timeout: context.settings.webhook_timeout }
}

/// The logged headers: they must not permit to repeat the request.
fn shown(headers: &[(String, String)]) -> Vec<(String, String)> {
    let shown = headers.iter().map(|(name, value)| {
        let is_secret = name.to_ascii_lowercase().contains("signature") && !mutant!("delivery-log-has-signatures");
        (name.clone(), if is_secret { "[redacted]".to_owned() } else { value.clone() })
    });
    shown.collect()
}

/// Host and path: a query may contain a secret of the receiver.
fn host_and_path(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['?', '#']).next().unwrap_or_default().to_owned()
}
