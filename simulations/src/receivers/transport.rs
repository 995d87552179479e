//! Webhook requests of the engine to the receivers.

use actors::environment::{WebhookRequest, WebhookResponse, WebhookTransport};
use futures_util::future::BoxFuture;

use super::{describe, merchant_of, name_of, snippet_of};
use crate::{simulation::Seam, trace::Source};

/// The webhook transport of a simulation.
pub(crate) struct SimWebhooks(pub(crate) Seam);

impl WebhookTransport for SimWebhooks {
    fn post(&self, request: WebhookRequest) -> BoxFuture<'_, WebhookResponse> {
        Box::pin(async move {
            let sim = &self.0.sim;
            if sim.has_shared_store() {
                let (number, paused) = (self.0.process.number, self.0.process.paused());
                sim.observe(|observer| observer.webhook_claimed(number, &request.headers, &request.body, paused));
            }
            self.0.alive().await;
            let now = self.0.wall();
            let received = sim.observe(|observer| observer.webhook_received(&request.headers, &request.body, now));
            let merchant = merchant_of(&request.url);
            let post_outcome = {
                let (now_ms, webhook_ms) = (sim.now_ms(), sim.script.setup.webhook_ms);
                let timeout_ms = u64::try_from(request.timeout.as_millis()).unwrap_or(u64::MAX);
                sim.receivers().post_outcome(merchant, now_ms, webhook_ms, timeout_ms, |fault| sim.rate(fault))
            };
            if let Some((_, attempt, payment, status)) = &received {
                let session = payment.and_then(|payment| sim.session(payment));
                sim.event(Source::Webhook, "webhook.sent", session, u64::from(*attempt), || {
                    format!("attempt {attempt} reports to shop {merchant} that {} is {status}", name_of(session))
                });
            }
            sim.sleep(post_outcome.wait_ms).await;
            if let Some(fault) = post_outcome.fault {
                sim.fault(Source::Webhook, fault, merchant as u64, || {
                    format!("shop {merchant} responds: {}", describe(post_outcome.outcome))
                });
            }
            if let Some((delivery, attempt, payment, status)) = received {
                sim.observe(|observer| {
                    observer.receiver_responded(delivery, attempt, post_outcome.outcome, post_outcome.is_accepted);
                });
                let session = payment.and_then(|payment| sim.session(payment));
                if post_outcome.is_accepted {
                    sim.event(Source::Merchant, "webhook.received", session, u64::from(attempt), || {
                        format!("shop {merchant} gets the webhook that {} is {status}", name_of(session))
                    });
                    if !post_outcome.outcome.is_success() {
                        sim.mark("a webhook is processed and its response lost");
                    }
                }
            }
            let snippet = snippet_of(post_outcome.outcome);
            WebhookResponse { outcome: post_outcome.outcome, snippet }
        })
    }
}
