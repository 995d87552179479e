//! Clients that wait for changes: of a payment, and of a merchant's events.

use actors::After;

use super::*;

/// How long a client waits in total, milliseconds.
const WAITS_MS: u64 = 600_000;
/// Maximum latency until a change reaches a watcher without faults, milliseconds.
const AT_ONCE_MS: u64 = 1_000;
/// How long a stream may lag behind.
const MISSING_MS: u64 = 6_000;

/// Watches a payment: each snapshot is newer than the one before and was durable, and the last one is final.
pub(super) async fn watch_payment(sim: &Arc<Simulation>, engine: &Running, id: PaymentId) -> Again {
    let Ok(mut watch) = engine.payments.watch(id).await else { return Again::In(2_000) };
    let until_ms = sim.now_ms() + WAITS_MS;
    let begun_ms = sim.now_ms();
    let mut seen: Option<Arc<Payment>> = None;
    while sim.now_ms() < until_ms {
        let left = Duration::from_millis(until_ms - sim.now_ms());
        let Ok(next) = tokio::time::timeout(left, watch.next()).await else { break };
        if next.is_none() && sim.is_stopping() {
            return Again::No;
        }
        let flaw = sim.observe(|observer| {
            let durable = observer.payments.get(&id).map(|known| Arc::clone(&known.payment));
            match (&next, &seen, durable) {
                (Some(next), Some(seen), _) if next.version <= seen.version => {
                    Some(format!("version {} follows {}", next.version, seen.version))
                }
                (Some(next), _, durable) if durable.as_ref().is_none_or(|durable| durable.version < next.version) => {
                    Some(format!("version {} is sent before it is durable", next.version))
                }
                (Some(next), _, Some(durable)) if next.version == durable.version && **next != *durable => {
                    Some(format!("version {} differs from the durable one", next.version))
                }
                (Some(next), Some(_), Some(durable)) if next.version == durable.version => {
                    let written_ms = observer.latency.written_at(id).unwrap_or(0);
                    let is_late = written_ms > begun_ms && observer.now_ms > written_ms + AT_ONCE_MS;
                    let text = || format!("version {} is sent {} ms late", next.version, observer.now_ms - written_ms);
                    (is_late && observer.prompt_ms.is_some()).then(text)
                }
                (None, Some(seen), _) if !seen.state.is_terminal() => {
                    Some(format!("it ends while it is {}", seen.state))
                }
                _ => None,
            }
        });
        // A watcher that is far behind is removed, too: no simulated client is.
        sim.observe(|observer| match flaw {
            Some(text) if !observer.was_damaged => observer.violate("watches-show-changes", text, Some(id)),
            _ => observer.passes("watches-show-changes"),
        });
        match next {
            Some(next) => seen = Some(next),
            None => {
                sim.mark("a watch of a payment ends with a final state");
                return Again::No;
            }
        }
    }
    // Nothing is omitted: what has been durable for a while has been sent.
    let shown = seen.map_or(0, |seen| seen.version);
    sim.observe(|observer| {
        let Some(known) = observer.payments.get(&id) else { return };
        let written_ms = observer.latency.written_at(id).unwrap_or(0);
        let is_missed = known.payment.version > shown && observer.now_ms > written_ms + MISSING_MS;
        if is_missed && observer.prompt_ms.is_some() && !observer.was_damaged {
            let text = format!(
                "version {} is the newest that was sent, and {} has been durable since {written_ms} ms",
                shown, known.payment.version
            );
            observer.violate("watches-show-changes", text, Some(id));
        }
    });
    Again::No
}

/// Watches a merchant's events for some minutes: each arrives once, in order, without a gap, and equals the durable one.
pub(super) async fn watch_events(sim: &Arc<Simulation>, engine: &Running, merchant: MerchantId) -> Again {
    let from_start = (sim.now_ms() / 1_000).is_multiple_of(2);
    let after = from_start.then_some(After::Beginning);
    let known = |sim: &Simulation| sim.observe(|observer| observer.event_seqs.get(&merchant).copied().unwrap_or(0));
    let first_ms = sim.now_ms();
    let before = known(sim);
    let Ok(mut watch) = engine.webhooks.watch_events(merchant, after).await else { return Again::In(5_000) };
    let mut last = watch.position().seq;
    let fits = if from_start { last == 0 } else { (before..=known(sim)).contains(&last) };
    if !fits {
        let text = format!("a watch begins after {last}, and there were {before} events");
        sim.observe(|observer| observer.violate("event-streams-are-complete", text, None));
    }
    while sim.now_ms() < first_ms + WAITS_MS {
        let Ok(events) = watch.next().await else { return Again::In(5_000) };
        for event in &events {
            sim.observe(|observer| {
                let stored_ms = observer.stored_ms(event.id);
                let took_ms = observer.now_ms.saturating_sub(stored_ms);
                let is_late = stored_ms > first_ms && took_ms > AT_ONCE_MS && observer.prompt_ms.is_some();
                if is_late && !observer.was_damaged {
                    let text = format!("event {} is sent after {took_ms} ms", event.seq);
                    observer.violate("event-streams-are-complete", text, None);
                }
                let durable = observer.events.get(&event.id);
                let is_deleted = observer.events.values().any(|one| {
                    one.merchant == merchant
                        && one.seq > last
                        && one.seq < event.seq
                        && one.at >= observer.model.events_from
                });
                let is_right = durable == Some(event) && event.merchant == merchant && event.seq > last && !is_deleted;
                if is_right || observer.was_damaged {
                    observer.passes("event-streams-are-complete");
                } else {
                    let text = format!("event {} follows {last} in a stream, durable is {durable:?}", event.seq);
                    observer.violate("event-streams-are-complete", text, None);
                }
            });
            last = event.seq;
        }
        if !events.is_empty() {
            sim.mark("a stream delivers an event");
        }
        let newest = known(sim);
        let is_behind = sim.observe(|observer| {
            let is_old = |event: &storage::EventRecord| {
                event.merchant == merchant
                    && event.seq > last
                    && observer.stored_ms(event.id) + MISSING_MS < observer.now_ms
            };
            // A full page is followed by another one immediately.
            let is_whole = events.len() < 100;
            is_whole && observer.prompt_ms.is_some() && !observer.was_damaged && observer.events.values().any(is_old)
        });
        if is_behind {
            let text = format!("a stream is at {last}, and event {newest} was announced a while ago");
            sim.observe(|observer| observer.violate("event-streams-are-complete", text, None));
        }
    }
    Again::No
}
