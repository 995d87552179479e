//! Merchants that read their records page by page: responses match what is durable.

use actors::{After, Report};
use engine::{
    event_list::{Cursor, CursorError},
    ledger::ChainPosition,
    payment::{Credit, shown_memo},
};
use storage::{AuditQuery, EventRecord, MerchantQuery, Unmatched};

use engine::ids::EndpointId;

use super::*;
use crate::{model::completed_cents, observer::Observer};

/// Rows of a page.
const PAGE: usize = 7;
/// Maximum pages read of one list.
const PAGES: usize = 40;

/// A merchant that reads. What it reads is compared with what is durable, unless that changes meanwhile.
struct Reader<'a> {
    sim: &'a Arc<Simulation>,
    engine: &'a Running,
    id: MerchantId,
    /// How many commits there were when it began.
    commits: u64,
}

pub(super) async fn read_records(sim: &Arc<Simulation>, engine: &Running, id: MerchantId) -> Again {
    let Ok(merchant) = engine.merchants.get(id).await else { return Again::In(2_000) };
    let commits = sim.observe(|observer| observer.commits);
    let reader = Reader { sim, engine, id, commits };
    match reader.all(&merchant).await {
        Ok(()) => {
            sim.mark("a merchant reads its records");
            Again::No
        }
        Err(_) => Again::In(2_000),
    }
}

impl Reader<'_> {
    async fn all(&self, merchant: &Merchant) -> Result<(), EngineError> {
        self.events().await?;
        self.deliveries().await?;
        self.incoming(merchant).await?;
        self.transfers().await?;
        self.bills().await?;
        self.operations().await?;
        check_report(self.sim, self.engine, self.id, &self.engine.merchants.compliance(self.id).await?);
        self.inspect().await
    }

    /// Checks what was read against what it should be.
    fn check<T: PartialEq + std::fmt::Debug>(&self, name: &'static str, found: &T, expected: &T) {
        self.sim.observe(|observer| {
            if observer.commits != self.commits || observer.was_damaged || found == expected {
                observer.passes(name);
            } else {
                observer.violate(name, format!("{found:?} is read, and should be {expected:?}"), None);
            }
        });
    }

    /// Reads a merchant's events: page by page, after an event, and after places that are not in the list.
    async fn events(&self) -> Result<(), EngineError> {
        let Self { sim, engine, id, .. } = *self;
        let name = "event-pages-are-complete";
        let (mut after, mut found) = (After::Beginning, Vec::<EventRecord>::new());
        for _ in 0..PAGES {
            let page = engine.webhooks.events(id, after, PAGE).await?;
            let last = page.events.last().map(|event| event.seq);
            let is_whole = page.events.len() == PAGE || !page.has_more;
            let is_next = last.is_none_or(|last| page.next.seq == last) && page.next.epoch == page.epoch;
            found.extend(page.events);
            self.check(name, &(is_whole, is_next), &(true, true));
            after = After::Cursor(page.next);
            if !page.has_more {
                break;
            }
        }
        let After::Cursor(end) = after else { return Ok(()) };
        let expected: Vec<EventRecord> = sim.observe(|observer| {
            let own = observer.events.values().filter(|event| event.merchant == id && event.seq <= end.seq);
            own.filter(|event| event.at >= observer.model.events_from).cloned().collect()
        });
        // Events that may be deleted are optional.
        found.retain(|event| sim.observe(|observer| event.at >= observer.model.events_from));
        let places = |events: &[EventRecord]| events.iter().map(|event| (event.seq, event.id)).collect::<Vec<_>>();
        self.check(name, &places(&found), &places(&expected));
        self.check(name, &(found == expected), &true);
        if let Some(middle) = expected.get(expected.len() / 2) {
            let page = engine.webhooks.events(id, After::Event(middle.id), PAGE).await?;
            let rest = &expected[expected.len() / 2 + 1..];
            // Events are ordered by position, not always by time: some of those in between may be deleted.
            let kept: Vec<_> = page.events.into_iter().filter(|event| rest.contains(event)).collect();
            self.check(name, &kept.as_slice(), &&rest[..kept.len()]);
            self.check(name, &(kept.is_empty() && !rest.is_empty() && !page.has_more), &false);
            let (event, _) = engine.webhooks.event(id, middle.id).await?;
            self.check(name, &event, middle);
        }
        let beyond = Cursor { seq: end.seq + 1_000, ..end };
        let refused = engine.webhooks.events(id, After::Cursor(beyond), PAGE).await;
        let is_refused = matches!(refused, Err(EngineError::Misplaced(CursorError::OutOfRange { .. })));
        let others =
            sim.observe(|observer| observer.events.values().find(|event| event.merchant != id).map(|event| event.id));
        let is_hidden = match others {
            Some(other) => {
                engine.webhooks.event(id, other).await.is_err()
                    && engine.webhooks.events(id, After::Event(other), PAGE).await.is_err()
            }
            None => true,
        };
        self.check(name, &(is_refused, is_hidden), &(true, true));
        Ok(())
    }

    /// Reads the newest deliveries with their attempts and bodies, and the health of the endpoint.
    async fn deliveries(&self) -> Result<(), EngineError> {
        let Self { sim, engine, id, .. } = *self;
        let name = "deliveries-are-as-attempted";
        let newest: Vec<_> = sim.observe(|observer| {
            let own = observer.model.deliveries.values().rev().filter(|record| record.delivery.merchant == id);
            own.take(PAGE).cloned().collect()
        });
        for expected in &newest {
            let delivery = expected.delivery.id;
            let (record, attempts) = engine.webhooks.delivery(id, delivery).await?;
            self.check(name, &record, expected);
            let count = sim.observe(|observer| observer.model.attempts_of(expected.delivery.event, delivery));
            self.check(name, &attempts.len(), &count);
            let body = engine.webhooks.delivery_body(&expected.delivery).await?;
            let kept = sim.observe(|observer| {
                let event = observer
                    .events
                    .get(&expected.delivery.event)
                    .filter(|event| event.at >= observer.model.events_from);
                event.map(|event| event.body.clone())
            });
            if kept.is_some() {
                self.check(name, &body, &kept);
            }
        }
        let found = engine.webhooks.endpoint(id, EndpointId::default_of(id)).await?;
        let expected = sim.observe(|observer| {
            let known =
                observer.endpoints.get(&EndpointId::default_of(id)).map(|seen| seen.known.clone()).unwrap_or_default();
            (observer.merchants.get(&id).and_then(|merchant| merchant.webhook_url.clone()), known)
        });
        self.check("endpoints-are-as-attempted", &(found.url, found.health.clone()), &expected);
        let listed = engine.webhooks.endpoints(id).await?;
        let listed: Vec<_> = listed.into_iter().skip(1).map(|state| (state.id, state.url, state.health)).collect();
        let expected: Vec<_> = sim.observe(|observer| {
            let endpoints = observer.merchants.get(&id).map(|merchant| merchant.endpoints.clone()).unwrap_or_default();
            let seen = |id: EndpointId| observer.endpoints.get(&id).map(|seen| seen.known.clone()).unwrap_or_default();
            endpoints.into_iter().map(|endpoint| (endpoint.id, Some(endpoint.url), seen(endpoint.id))).collect()
        });
        self.check("endpoints-are-as-attempted", &listed, &expected);
        let failing = found.health.failing_since.map(|since| engine.now().since(since).as_secs() / 3_600);
        let warning = match failing {
            Some(72..) => Some("failing_72h"),
            Some(24..) => Some("failing_24h"),
            _ => None,
        };
        self.check("endpoints-are-as-attempted", &found.warning.map(|warning| warning.as_str()), &warning);
        Ok(())
    }

    /// Reads the transfers that match no payment, and the sales, page by page.
    async fn incoming(&self, merchant: &Merchant) -> Result<(), EngineError> {
        let Self { sim, engine, .. } = *self;
        let account = merchant.hive_account;
        let (expected, sales) = sim.observe(|observer| observer.incoming(merchant));
        let (mut before, mut found) = (None, Vec::<Unmatched>::new());
        for _ in 0..PAGES {
            let is_open = |unmatched: &Unmatched| unmatched.handling == Handling::Open;
            let page = match engine.payments.unmatched_where(merchant, before, PAGE, is_open).await {
                Ok(page) => page,
                Err(EngineError::NotProven { .. }) => break,
                Err(error) => return Err(error),
            };
            sim.observe(|observer| observer.reads_unmatched(merchant, &page.rows));
            found.extend(page.rows);
            before = page.next;
            if before.is_none() {
                let open: Vec<_> = expected.iter().filter(|one| one.handling == Handling::Open).cloned().collect();
                self.check("unmatched-are-as-handled", &found, &open);
                break;
            }
        }
        let (mut before, mut found) = (None, Vec::<ChainPosition>::new());
        for _ in 0..PAGES {
            let page = engine.payments.sales(merchant, before, PAGE).await?;
            found.extend(page.rows.iter().map(|sale| sale.transfer.position));
            before = page.next;
            if before.is_none() {
                self.check("sales-are-their-sellers", &found, &sales);
                break;
            }
        }
        let Some(first) = expected.iter().find(|one| one.transfer.to == account) else { return Ok(()) };
        match engine.payments.candidates(merchant, first.transfer.position).await {
            Ok(candidates) => {
                let found: Vec<_> = candidates.iter().map(|candidate| candidate.payment.id).collect();
                // Only the newest of many payments near a transfer are considered.
                if sim.observe(|observer| observer.payments.len()) <= 150 {
                    let expected = sim.observe(|observer| observer.candidates(merchant, first));
                    self.check("candidates-fit-their-transfer", &found, &expected);
                }
            }
            Err(EngineError::NotProven { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Reads the transfers of the payment that has most of them, page by page.
    async fn transfers(&self) -> Result<(), EngineError> {
        let Self { sim, engine, id, .. } = *self;
        let most = sim.observe(|observer| {
            let own = observer.payments.values().filter(|known| known.payment.merchant == id);
            let counted = own.filter_map(|known| Some((observer.rows.get(&known.payment.id)?.len(), known.payment.id)));
            counted.max()
        });
        let Some((_, payment)) = most else { return Ok(()) };
        let mut expected: Vec<Credit> = sim.observe(|observer| observer.rows[&payment].values().cloned().collect());
        expected.sort_unstable_by_key(|credit| std::cmp::Reverse(credit.seq));
        for credit in &mut expected {
            credit.memo = shown_memo(std::mem::take(&mut credit.memo));
        }
        let (mut found, mut before) = (Vec::<Credit>::new(), None);
        loop {
            let page = engine.payments.transfers(id, payment, before, PAGE).await?;
            let Some(last) = page.last() else { break };
            before = Some(last.seq);
            found.extend(page);
        }
        self.check("transfer-pages-are-complete", &found, &expected);
        Ok(())
    }

    /// Reads what a merchant is billed, and the totals of its days.
    async fn bills(&self) -> Result<(), EngineError> {
        let Self { sim, engine, id, .. } = *self;
        let summary = engine.operations.billing_summary(id).await?;
        let month = engine::billing::Month::of(engine.now());
        let expected = sim.observe(|observer| {
            let usage = observer.model.periods.get(&(month, id)).map(|period| period.usage).unwrap_or_default();
            (month, usage, observer.model.tiers.as_ref().map(|tiers| tiers.tiers.clone()))
        });
        let tiers = expected.2.clone().map(|_| summary.tiers.clone());
        self.check("usage-counts-once", &(summary.current.month, summary.current.usage, tiers), &expected);
        let overview = engine.operations.billing_overview().await?;
        let is_operator = sim.engine_settings().billing.merchant == Some(id);
        let is_listed = overview.accounts.iter().any(|(merchant, _)| merchant.id == id);
        let has_periods = sim.observe(|observer| observer.model.periods.values().any(|period| period.merchant == id));
        self.check("usage-counts-once", &is_listed, &(has_periods && !is_operator));
        let today = engine.now().millis() / 86_400_000;
        let volume = engine.payments.volume(id, 3).await?;
        let days: Vec<_> = volume.days.iter().map(|day| day.day).collect();
        self.check("volume-follows-from-payments", &days, &vec![today - 2, today - 1, today]);
        Ok(())
    }

    /// Reads the audit log, the reconciled days, and the list of merchants.
    async fn operations(&self) -> Result<(), EngineError> {
        let Self { sim, engine, id, .. } = *self;
        let entries = engine.operations.audit(AuditQuery { before: None, limit: PAGE, merchant: Some(id) }).await?;
        if let [first, .., last] = &entries[..] {
            let older = engine
                .operations
                .audit(AuditQuery { before: Some(first.seq), limit: PAGE, merchant: Some(id) })
                .await?;
            self.check(
                "audit-log-is-complete",
                &older.first().map(|entry| entry.seq),
                &entries.get(1).map(|entry| entry.seq),
            );
            self.check("audit-log-is-complete", &(first.seq > last.seq), &true);
        }
        let days = engine.operations.reconciliation(None, PAGE).await?;
        let expected: Vec<_> = sim.observe(|observer| observer.reconciled.values().rev().take(PAGE).cloned().collect());
        self.check("every-day-is-listed", &days, &expected);
        for (active, on_hold) in [(Some(true), None), (Some(false), None), (None, Some(true)), (None, None)] {
            let query = MerchantQuery { active, on_hold, ..MerchantQuery::all(100) };
            let found = engine.merchants.list(query).await?;
            let ids: Vec<_> = found.items.iter().map(|listed| listed.merchant.id).collect();
            let expected = sim.observe(|observer| observer.listed_merchants(active, on_hold));
            self.check("merchants-are-listed", &(ids, found.total), &(expected.clone(), expected.len() as u64));
        }
        Ok(())
    }

    /// The operator reads a payment.
    async fn inspect(&self) -> Result<(), EngineError> {
        let Self { sim, engine, id, .. } = *self;
        let newest = sim.observe(|observer| {
            observer.payments.values().rev().find(|known| known.payment.merchant == id).map(|known| known.payment.id)
        });
        let Some(payment) = newest else { return Ok(()) };
        let (read, rows) = engine.payments.inspect(payment).await?;
        let is_ordered = rows.is_sorted_by_key(|credit| credit.seq);
        sim.observe(|observer| {
            let is_logged =
                observer.model.audit.iter().rev().take(PAGE).any(|entry| {
                    entry.action == "payment_read" && entry.subject.as_deref() == Some(&*payment.to_string())
                });
            if read.id == payment && is_ordered && is_logged {
                observer.passes("changes-are-audited");
            } else {
                let text = format!("{payment} was inspected: in the audit log {is_logged}, in order {is_ordered}");
                observer.violate("changes-are-audited", text, Some(payment));
            }
        });
        Ok(())
    }
}

/// Checks the compliance status that the operator reads of a merchant.
pub(super) fn check_report(sim: &Simulation, engine: &Running, id: MerchantId, report: &Report) {
    let now = engine.now();
    let limits = sim.script.setup.policies.limits();
    sim.observe(|observer| {
        let status = observer.model.compliance.get(&id).cloned().unwrap_or_default();
        let cents = |hours| completed_cents(&status, now, hours);
        let is_right = report.status.hold == status.hold
            && report.status.limits == status.limits
            && (report.daily_cents, report.monthly_cents) == (cents(24), cents(720))
            && report.defaults == limits;
        if is_right || observer.was_damaged {
            observer.passes("volume-follows-from-payments");
        } else {
            let text = format!("{id} is reported as {report:?} and has {status:?}");
            observer.violate("volume-follows-from-payments", text, None);
        }
    });
}

impl Observer {
    /// Returns the transfers to a merchant's account that match no payment and are no sales, and its sales, newest first.
    fn incoming(&self, merchant: &Merchant) -> (Vec<Unmatched>, Vec<ChainPosition>) {
        let account = merchant.hive_account;
        let sale_of = |unmatched: &Unmatched| {
            self.known_claim(unmatched.transfer.tx_id).and_then(|claimed| claimed.sale()).map(|sale| sale.seller)
        };
        let own =
            self.model.unmatched.iter().rev().filter(|((to, _), _)| *to == account).map(|(_, unmatched)| unmatched);
        let is_owner = merchant.ownership.proof.is_some();
        let is_shown = |seller: Option<MerchantId>| match seller {
            Some(seller) if seller == merchant.id => true,
            Some(seller) if self.provers(&account).any(|owner| owner == seller) => false,
            _ => is_owner,
        };
        let (mut unmatched, mut sales) = (Vec::new(), Vec::new());
        for one in own {
            match sale_of(one) {
                None => unmatched.push(one.clone()),
                Some(seller) if is_shown(seller) => sales.push(one.transfer.position),
                Some(_) => {}
            }
        }
        (unmatched, sales)
    }

    /// Returns the candidate payments of an unmatched transfer, the likeliest first.
    fn candidates(&self, merchant: &Merchant, unmatched: &Unmatched) -> Vec<PaymentId> {
        let transfer = &unmatched.transfer;
        let (from, to) =
            (transfer.block_time.minus(Duration::from_secs(172_800)), transfer.block_time + Duration::from_secs(60));
        let mut scored: Vec<(u8, PaymentId)> = Vec::new();
        for payment in self.payments.values().map(|known| &known.payment) {
            let is_near = payment.merchant == merchant.id
                && (from..=to).contains(&payment.id.created_at())
                && (payment.amount == transfer.money || payment.needs_attention())
                && payment.pay_to == transfer.to;
            let units = transfer.money.units;
            let is_same_amount = payment.amount.currency == transfer.money.currency
                && (payment.amount.units == units || payment.remaining_units() == units);
            let is_same_payer = payment.transfers.iter().any(|credit| credit.from == transfer.from);
            let is_on_time = payment.created_at <= transfer.block_time + Duration::from_secs(3)
                && transfer.block_time <= payment.expires_at + payment.grace;
            if is_near && (is_same_amount || is_same_payer) {
                let score = 4 * u8::from(is_same_amount) + 2 * u8::from(is_on_time) + u8::from(is_same_payer);
                scored.push((score, payment.id));
            }
        }
        scored.sort_unstable_by_key(|(score, id)| std::cmp::Reverse((*score, id.bits())));
        scored.into_iter().take(20).map(|(_, id)| id).collect()
    }

    /// Returns the merchants of a list, newest first.
    fn listed_merchants(&self, active: Option<bool>, on_hold: Option<bool>) -> Vec<MerchantId> {
        let is_listed = |merchant: &&Merchant| {
            active.is_none_or(|active| merchant.is_active == active)
                && on_hold.is_none_or(|on_hold| self.has_hold(merchant.id) == on_hold)
        };
        self.merchants.values().rev().filter(is_listed).map(|merchant| merchant.id).collect()
    }
}
