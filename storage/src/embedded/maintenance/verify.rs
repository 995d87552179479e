//! Verifies a store: its pages, records, indexes and totals.
//!
//! Every record is read; every index is held against the records it is made of, row by row and by its length, so that
//! nothing is missing in it and nothing is too much.

use std::{collections::BTreeMap, path::Path};

use engine::{
    billing::{Month, Sale},
    ids::{MerchantId, PaymentId},
    ledger::TxId,
    payment::{Credit, Payment, Totals, shown_memo},
    webhook::{DeliveryState, Trigger},
    x402::{ClaimOutcome, Purpose},
};
use redb::{Key, ReadableDatabase, Value};

use crate::{
    batch::Handling,
    embedded::{
        commit::{audit::Audited, prepared},
        damage::Damages,
        fault::Fault,
        maintenance::directory,
        read::{days, unmatched},
        tables::{self, BYTES_COUNT, DayKey, KEYS_COUNT, SCHEMA_VERSION, meta},
        wal::{
            single,
            snapshot::{Epoch, Snapshot},
            view::View,
        },
    },
    record::{self, codes::Code, indexed::PaymentFacts, summary::facet, sums::DaySums},
    store::{
        error::{OpenError, ReadError},
        report::Report,
    },
};

/// Memory for pages of the file.
const CACHE_BYTES: usize = 64 * 1024 * 1024;

/// Verifies a store's file that nobody has open. Secrets that are sealed stay sealed; everything else is read.
///
/// # Errors
/// Where it cannot be opened at all; see [`OpenError`].
pub fn file(path: &Path) -> Result<Report, OpenError> {
    if !path.try_exists().map_err(OpenError::io(path))? {
        return Err(OpenError::Missing(path.to_owned()));
    }
    let report = unversioned(path)?;
    if report.schema > SCHEMA_VERSION {
        return Err(OpenError::SchemaNewer { found: report.schema, known: SCHEMA_VERSION });
    }
    Ok(report)
}

/// The same for a store whose version this program need not know.
pub(crate) fn unversioned(path: &Path) -> Result<Report, OpenError> {
    directory::guarded(path, || read_through(path))
}

fn read_through(path: &Path) -> Result<Report, OpenError> {
    let mut database = directory::builder(CACHE_BYTES).open(path).map_err(OpenError::database(path))?;
    let are_pages_sound = database.check_integrity().map_err(OpenError::database(path))?;
    let snapshot = database.begin_read().map_err(Fault::from)?;
    let schema = directory::version_of(&snapshot)?;
    let missing = tables::missing(&snapshot)?;
    let mut report = match missing.is_empty() {
        true => self::snapshot(&Snapshot::of(Epoch::of(&snapshot, &Damages::default())?))?,
        false => Report::default(),
    };
    for name in missing {
        report.find("table", name, "it is missing");
    }
    report.schema = schema;
    report.hold(are_pages_sound, "pages", path.display(), "their checksums did not agree and were repaired");
    Ok(report)
}

/// Verifies a store as one commit left it, on a thread of its own.
///
/// # Errors
/// [`ReadError::Failed`] when the disk fails.
pub(crate) async fn on_a_thread(snapshot: Snapshot) -> Result<Report, ReadError> {
    let (sender, report) = tokio::sync::oneshot::channel();
    let work = move || drop(sender.send(self::snapshot(&snapshot)));
    let spawned = std::thread::Builder::new().name("verifier".to_owned()).spawn(work);
    spawned.map_err(|error| ReadError::Failed(error.to_string()))?;
    let report = report.await.map_err(|_| ReadError::Failed("the verification crashed".to_owned()))?;
    Ok(report?)
}

/// Verifies a store as one commit left it.
pub(crate) fn snapshot(snapshot: &Snapshot) -> Result<Report, Fault> {
    let mut report = Report { schema: SCHEMA_VERSION, tables: snapshot.lengths()?, ..Report::default() };
    // What follows passes over them.
    snapshot.each_damaged(&mut |table, key| report.find(table, key, tables::CHECKSUM))?;
    let (mut counts, mut sales) = (BTreeMap::new(), BTreeMap::new());
    payments(snapshot, &mut report, &mut counts, &mut sales)?;
    months(snapshot, &mut report, &sales)?;
    merchants(snapshot, &mut report)?;
    idempotency(snapshot, &mut report, &mut counts)?;
    same_counts(snapshot, &mut report, &counts)?;
    events(snapshot, &mut report)?;
    deliveries(snapshot, &mut report)?;
    claims(snapshot, &mut report)?;
    unmatched_by_payment(snapshot, &mut report)?;
    singles(snapshot, &mut report)?;
    Ok(report)
}

/// Holds an index's length against how many rows it should have.
fn same_length(
    report: &mut Report,
    table: &'static str,
    index: &View<'_, impl Key + 'static, impl Value + 'static>,
    wanted: u64,
) -> Result<(), Fault> {
    let rows = index.len()?;
    report.hold(rows == wanted, table, rows, &format!("{wanted} rows were expected"));
    Ok(())
}

type Counts = BTreeMap<(u128, u32), u64>;

/// How many payments of a merchant completed, and their worth in US cents.
type Sales = BTreeMap<u128, (u64, u64)>;

fn payments(snapshot: &Snapshot, report: &mut Report, counts: &mut Counts, sales: &mut Sales) -> Result<(), Fault> {
    let (slugs, listed) = (snapshot.slugs(), snapshot.payments_by_merchant());
    let (deadlines, in_flight) = (snapshot.deadlines(), snapshot.in_flight());
    let (merchants, claims) = (snapshot.merchants(), snapshot.claims());
    let (mut rows, mut pending, mut undecided, mut transfer_rows) = (0, 0, 0, 0);
    let mut days = BTreeMap::<DayKey, DaySums>::new();
    for entry in snapshot.payments().iter()? {
        let (key, bytes) = entry?;
        let (bits, id) = (key.value(), PaymentId::from_bits(key.value()));
        rows += 1;
        let Some(payment) = report.read("payments", id, record::payment_from_bytes(id, bytes.value())) else {
            continue;
        };
        let facts = PaymentFacts::of(&payment, bytes.value());
        *counts.entry((facts.merchant, facts.state.number())).or_default() += 1;
        *counts.entry((facts.merchant, BYTES_COUNT)).or_default() += facts.bytes;
        if let Some(sale) = Sale::of(&payment) {
            let (payments, cents) = sales.entry(facts.merchant).or_default();
            (*payments, *cents) = (*payments + 1, cents.saturating_add(sale.usd_cents));
        }
        let has_slug = slugs.get_sound(facts.slug)?.is_some_and(|named| named.value() == bits);
        report.hold(has_slug, "slugs", id, "the payment's checkout address does not lead to it");
        let key = (facts.merchant, facet(&facts.summary), bits);
        let summary = record::summary_to_bytes(&facts.summary);
        let is_listed = listed.get_sound(key)?.is_some_and(|stored| *stored.value() == summary);
        report.hold(is_listed, "payments_by_merchant", id, "the list does not say of it what its record says");
        let reads_back = record::payment_facts(bytes.value()).as_ref() == Ok(&facts);
        report.hold(reads_back, "payments", id, "what indexes know of it is not what it is");
        days.entry((facts.merchant, days::day_of(bits))).or_default().add(&facts.summary);
        if let Some(deadline_ms) = facts.deadline_ms {
            pending += 1;
            let is_due = deadlines.get_sound((deadline_ms, bits))?.is_some();
            report.hold(is_due, "deadlines", id, "it is pending and would never expire");
        }
        if facts.is_in_flight {
            undecided += 1;
            let is_known = in_flight.get_sound(bits)?.is_some();
            report.hold(is_known, "in_flight", id, "the chain has something to decide and nobody would ask");
        }
        let has_merchant = merchants.get_sound(facts.merchant)?.is_some();
        report.hold(has_merchant, "payments", id, "there is no such merchant");
        if let Some(claim) = &payment.claim {
            report.hold(claims.get_sound(&claim.tx_id.0)?.is_some(), "claims", id, "its claim is not claimed");
        }
        transfer_rows += transfers(snapshot, report, &payment)?;
        if let Some(contradiction) = report.books.enter(&payment) {
            report.find("reconciled_days", id, contradiction);
        }
    }
    same_length(report, "slugs", &slugs, rows)?;
    same_length(report, "payments_by_merchant", &listed, rows)?;
    same_days(snapshot, report, &days)?;
    same_length(report, "deadlines", &deadlines, pending)?;
    same_length(report, "in_flight", &in_flight, undecided)?;
    same_length(report, "transfers", &snapshot.transfers(), transfer_rows)?;
    same_length(report, "transfer_order", &snapshot.transfer_order(), transfer_rows)
}

/// Holds the sums of days against what the payments come to; a day without a payment has no row.
fn same_days(snapshot: &Snapshot, report: &mut Report, counted: &BTreeMap<DayKey, DaySums>) -> Result<(), Fault> {
    let stored = snapshot.payment_days();
    for (key, sums) in counted {
        let name = format!("day {} of {}", key.1, MerchantId::from_bits(key.0));
        let Some(bytes) = stored.get_sound(*key)? else {
            report.find("payment_days", name, "it is not there");
            continue;
        };
        let says = report.read("payment_days", &name, record::sums_from_bytes(bytes.value()));
        report.hold(
            says.is_none_or(|says| says == *sums),
            "payment_days",
            &name,
            "it is not what its payments come to",
        );
    }
    same_length(report, "payment_days", &stored, counted.len() as u64)
}

/// Holds the transfers of a payment against what its record lists and sums up; returns how many rows there are.
fn transfers(snapshot: &Snapshot, report: &mut Report, payment: &Payment) -> Result<u64, Fault> {
    let order = snapshot.transfer_order();
    let (bits, id) = (payment.id.bits(), payment.id);
    let (mut totals, mut rows, mut listed) = (Totals::default(), 0, 0);
    for entry in snapshot.transfers().range((bits, &[0; 20], 0)..=(bits, &[u8::MAX; 20], u32::MAX))? {
        let (key, bytes) = entry?;
        rows += 1;
        let name = format!("{} of {id}", TxId(*key.value().1));
        let Some(credit) = report.read("transfers", &name, record::transfer_from_bytes(key.value(), bytes.value()))
        else {
            continue;
        };
        totals.add(&credit);
        let is_in_order = order
            .get_sound((bits, credit.seq))?
            .is_some_and(|found| found.value() == (&credit.tx_id.0, credit.op_in_tx));
        report.hold(is_in_order, "transfer_order", &name, "the list of transfers does not lead to it");
        if let Some(shown) = payment.listed(credit.tx_id, credit.op_in_tx) {
            listed += 1;
            let memo = shown_memo(credit.memo.clone());
            report.hold(*shown == Credit { memo, ..credit }, "transfers", &name, "its payment's record differs");
        }
    }
    report.hold(listed == payment.transfers.len(), "transfers", id, "one that the record lists is not there");
    report.hold(totals == payment.totals(), "transfers", id, "they do not add up to what the record says");
    Ok(rows)
}

/// Holds what was counted for billing against the payments that completed: each counts once, in whatever month.
fn months(snapshot: &Snapshot, report: &mut Report, sales: &Sales) -> Result<(), Fault> {
    let (unsettled, sessions) = (snapshot.unsettled(), snapshot.invoice_sessions());
    let mut counted = Sales::new();
    let mut waiting = 0;
    for entry in snapshot.billing().iter()? {
        let (key, bytes) = entry?;
        let (number, bits) = key.value();
        let merchant = MerchantId::from_bits(bits);
        let Some(month) = Month::from_number(number) else {
            report.find("billing", merchant, format_args!("{number} is no month"));
            continue;
        };
        let name = format!("{month} of {merchant}");
        let Some(period) = report.read("billing", &name, record::period_from_bytes(merchant, month, bytes.value()))
        else {
            continue;
        };
        let (payments, cents) = counted.entry(bits).or_default();
        *payments += period.usage.payments;
        *cents = cents.saturating_add(period.usage.volume_cents);
        if period.is_unsettled() {
            waiting += 1;
            report.hold(unsettled.get_sound(key.value())?.is_some(), "unsettled", &name, "nobody would bill it");
        }
        if let Some((session, _)) = period.invoice.as_ref().and_then(|invoice| invoice.session.as_ref()) {
            let is_its = sessions.get_sound(session.bits())?.is_some_and(|found| found.value() == key.value());
            report.hold(is_its, "invoice_sessions", &name, "its payment would not settle it");
        }
    }
    for bits in sales.keys().chain(counted.keys().filter(|bits| !sales.contains_key(bits))) {
        let (sold, billed) =
            (sales.get(bits).copied().unwrap_or_default(), counted.get(bits).copied().unwrap_or_default());
        let says =
            format!("{} payments of {} cents completed, {} of {} are counted", sold.0, sold.1, billed.0, billed.1);
        report.hold(sold == billed, "billing", MerchantId::from_bits(*bits), &says);
    }
    same_length(report, "unsettled", &unsettled, waiting)
}

/// Holds the counts against what was counted; a count of none may be stored or not.
fn same_counts(snapshot: &Snapshot, report: &mut Report, counted: &Counts) -> Result<(), Fault> {
    let stored = snapshot.payment_counts();
    for (key, count) in counted {
        let says = stored.get_sound(*key)?.map_or(0, |count| count.value());
        let merchant = MerchantId::from_bits(key.0);
        report.hold(says == *count, "payment_counts", merchant, &format!("code {}: {says} of {count}", key.1));
    }
    for entry in stored.iter()? {
        let (key, count) = entry?;
        let is_none = counted.contains_key(&key.value()) || count.value() == 0;
        let merchant = MerchantId::from_bits(key.value().0);
        report.hold(is_none, "payment_counts", merchant, &format!("code {}: {} of 0", key.value().1, count.value()));
    }
    Ok(())
}

fn merchants(snapshot: &Snapshot, report: &mut Report) -> Result<(), Fault> {
    let (keys, accounts) = (snapshot.api_keys(), snapshot.accounts());
    let by_account = snapshot.account_merchants();
    let proven = snapshot.proven_merchants();
    let pending = snapshot.pending_accounts();
    let (mut digests, mut owners) = (0, (0, 0, 0));
    for entry in snapshot.merchants().iter()? {
        let (key, bytes) = entry?;
        let id = MerchantId::from_bits(key.value());
        let facts = report.read("merchants", id, record::merchant_facts(bytes.value()));
        for digest in facts.iter().flat_map(|facts| &facts.digests) {
            digests += 1;
            let is_its = keys.get_sound(digest)?.is_some_and(|holder| holder.value() == id.bits());
            report.hold(is_its, "api_keys", id, "one of its keys does not lead to it");
        }
        // What is sealed stays sealed: a backup can be verified without its master key.
        if let Some(merchant) = report.read("merchants", id, record::merchant_to_json(id, bytes.value())) {
            let account = merchant["hiveAccount"].as_str().unwrap_or_default();
            report.hold(accounts.get_sound(account)?.is_some(), "accounts", id, "its account is not watched");
        }
        if let Some(facts) = facts {
            owners.0 += 1;
            let key = (facts.account.as_str(), id.bits());
            report.hold(
                by_account.get_sound(key)?.is_some(),
                "account_merchants",
                id,
                "it is not found by its account",
            );
            if facts.is_proven {
                owners.1 += 1;
                report.hold(
                    proven.get_sound(key)?.is_some(),
                    "proven_merchants",
                    id,
                    "its limits would not bind others",
                );
            }
            if let Some(due_at) = facts.pending_due_at {
                owners.2 += 1;
                let is_found = pending.get_sound((due_at.millis(), id.bits()))?.is_some();
                report.hold(is_found, "pending_accounts", id, "its change of account would never take effect");
            }
        }
    }
    for entry in snapshot.endpoints().iter()? {
        let (key, bytes) = entry?;
        report.read("endpoints", MerchantId::from_bits(key.value()), record::endpoint_from_bytes(bytes.value()));
    }
    same_length(report, "api_keys", &keys, digests)?;
    same_length(report, "account_merchants", &by_account, owners.0)?;
    same_length(report, "proven_merchants", &proven, owners.1)?;
    same_length(report, "pending_accounts", &pending, owners.2)?;
    let on_hold = snapshot.on_hold();
    let mut held = 0;
    for entry in snapshot.compliance_statuses().iter()? {
        let (key, bytes) = entry?;
        let id = MerchantId::from_bits(key.value());
        let standing = report.read("compliance_statuses", id, record::compliance_from_bytes(bytes.value()));
        if standing.is_some_and(|standing| standing.hold.is_some()) {
            held += 1;
            report.hold(on_hold.get_sound(id.bits())?.is_some(), "on_hold", id, "nobody would look at its hold");
        }
    }
    same_length(report, "on_hold", &on_hold, held)
}

fn idempotency(snapshot: &Snapshot, report: &mut Report, counts: &mut Counts) -> Result<(), Fault> {
    let times = snapshot.idempotency_times();
    let mut rows = 0;
    for entry in snapshot.idempotency().iter()? {
        let (key, bytes) = entry?;
        let (bits, digest) = key.value();
        let merchant = MerchantId::from_bits(bits);
        rows += 1;
        *counts.entry((bits, KEYS_COUNT)).or_default() += 1;
        let read = record::idempotency_from_bytes(merchant, *digest, bytes.value());
        if let Some(remembered) = report.read("idempotency", merchant, read) {
            let is_timed = times.get_sound((remembered.at.millis(), bits, digest))?.is_some();
            report.hold(is_timed, "idempotency_times", merchant, "one of its keys would never be forgotten");
        }
    }
    same_length(report, "idempotency_times", &times, rows)
}

fn events(snapshot: &Snapshot, report: &mut Report) -> Result<(), Fault> {
    let (ids, times, seqs) = (snapshot.event_ids(), snapshot.event_times(), snapshot.event_seqs());
    let mut rows = 0;
    for entry in snapshot.events().iter()? {
        let (key, bytes) = entry?;
        let place = key.value();
        rows += 1;
        let Some(event) = report.read("events", place.1, record::event_from_bytes(place, bytes.value())) else {
            continue;
        };
        let is_found = ids.get_sound(event.id.bits())?.is_some_and(|stored| stored.value() == place);
        report.hold(is_found, "event_ids", event.id, "the event is not found by its id");
        let is_timed = times.get_sound((event.at.millis(), event.id.bits()))?.is_some();
        report.hold(is_timed, "event_times", event.id, "it would never be forgotten");
        let is_counted = seqs.get_sound(place.0)?.is_some_and(|tail| tail.value().0 >= place.1);
        report.hold(is_counted, "event_seqs", event.id, "its place would be given again");
    }
    for entry in snapshot.attempts().iter()? {
        let (key, bytes) = entry?;
        report.read("attempts", format!("{:?}", key.value()), record::attempt_from_bytes(key.value(), bytes.value()));
    }
    same_length(report, "event_times", &times, rows)?;
    same_length(report, "event_ids", &ids, rows)
}

fn deliveries(snapshot: &Snapshot, report: &mut Report) -> Result<(), Fault> {
    let (outbox, pending_deliveries) = (snapshot.outbox(), snapshot.pending_deliveries());
    let listed = snapshot.payment_deliveries();
    let (of_events, undelivered) = (snapshot.event_deliveries(), snapshot.undelivered());
    let (mut rows, mut unfinished, mut waiting, mut waiting_auto) = (0, 0, 0, 0);
    let mut heads = BTreeMap::new();
    for entry in snapshot.deliveries().iter()? {
        let (key, bytes) = entry?;
        let read = record::delivery_from_bytes(key.value(), bytes.value());
        rows += 1;
        let Some(logged) = report.read("deliveries", key.value().1, read) else { continue };
        let of_payment = (logged.delivery.payment.bits(), logged.delivery.id.bits());
        let is_listed = listed.get_sound(of_payment)?.is_some();
        report.hold(is_listed, "payment_deliveries", logged.delivery.id, "its payment does not list it");
        let of_event = (logged.delivery.event.bits(), logged.delivery.id.bits());
        let is_listed = of_events.get_sound(of_event)?.is_some();
        report.hold(is_listed, "event_deliveries", logged.delivery.id, "its event does not list it");
        if logged.state != DeliveryState::Delivered {
            unfinished += 1;
            let place = (key.value().0, logged.state.number(), key.value().1);
            let is_listed = undelivered.get_sound(place)?.is_some();
            report.hold(is_listed, "undelivered", logged.delivery.id, "the list of its state does not have it");
        }
        if logged.state != DeliveryState::Pending {
            continue;
        }
        let delivery = &logged.delivery;
        waiting += 1;
        let (merchant, due_ms) = (delivery.merchant.bits(), delivery.due_at.millis());
        let place = (merchant, due_ms, delivery.event_seq, delivery.id.bits());
        report.hold(outbox.get_sound(place)?.is_some(), "outbox", delivery.id, "it waits and would never be sent");
        let head = heads.entry(merchant).or_insert(due_ms);
        *head = due_ms.min(*head);
        if delivery.trigger == Trigger::Auto {
            waiting_auto += 1;
            let key = (delivery.payment.bits(), delivery.event_seq, delivery.id.bits());
            report.hold(
                pending_deliveries.get_sound(key)?.is_some(),
                "pending_deliveries",
                delivery.id,
                "later events would not wait for it",
            );
        }
    }
    let (stored_heads, due) = (snapshot.outbox_heads(), snapshot.outbox_due());
    for (merchant, due_ms) in &heads {
        let is_head = stored_heads.get_sound(merchant)?.is_some_and(|stored| stored.value() == *due_ms);
        let is_due = due.get_sound((*due_ms, *merchant))?.is_some();
        let id = MerchantId::from_bits(*merchant);
        report.hold(is_head && is_due, "outbox_heads", id, "its queue would not be looked at in time");
    }
    same_length(report, "payment_deliveries", &listed, rows)?;
    same_length(report, "event_deliveries", &of_events, rows)?;
    same_length(report, "undelivered", &undelivered, unfinished)?;
    same_length(report, "outbox", &outbox, waiting)?;
    same_length(report, "pending_deliveries", &pending_deliveries, waiting_auto)?;
    same_length(report, "outbox_heads", &stored_heads, heads.len() as u64)?;
    same_length(report, "outbox_due", &due, heads.len() as u64)
}

fn claims(snapshot: &Snapshot, report: &mut Report) -> Result<(), Fault> {
    let (nonces, open) = (snapshot.nonces(), snapshot.facilitations());
    let (mut names, mut undecided) = (0, 0);
    for entry in snapshot.claims().iter()? {
        let (key, bytes) = entry?;
        let tx_id = TxId(*key.value());
        let Some(claimed) = report.read("claims", tx_id, record::claimed_from_bytes(tx_id, bytes.value())) else {
            continue;
        };
        for name in prepared::names_of(&claimed) {
            names += 1;
            let stored = nonces.get_sound(&name)?;
            let is_its = stored.is_some_and(|stored| *stored.value() == tx_id.0);
            report.hold(is_its, "nonces", tx_id, "its nonce or identifier could be used again");
        }
        if matches!(claimed.purpose, Purpose::Facilitated(_)) && claimed.outcome == ClaimOutcome::Open {
            undecided += 1;
            report.hold(
                open.get_sound(&tx_id.0)?.is_some(),
                "facilitations",
                tx_id,
                "nobody would ask for its outcome",
            );
        }
    }
    same_length(report, "nonces", &nonces, names)?;
    same_length(report, "facilitations", &open, undecided)
}

fn unmatched_by_payment(snapshot: &Snapshot, report: &mut Report) -> Result<(), Fault> {
    let (waiting, assigned) = (snapshot.unmatched_by_payment(), snapshot.assigned());
    let mut rows = 0;
    for entry in snapshot.unmatched().iter()? {
        let (key, bytes) = entry?;
        let (account, block_num, tx_in_block, op_in_tx) = key.value();
        let name = format!("{:?}", key.value());
        let Some(unmatched) = report.read("unmatched", &name, record::unmatched_from_bytes(key.value(), bytes.value()))
        else {
            continue;
        };
        report.books.enter_unmatched(unmatched.transfer.money);
        if let Handling::Assigned { .. } = &unmatched.handling {
            let is_taken = assigned.get_sound(&unmatched.transfer.tx_id.0)?.is_some();
            report.hold(is_taken, "assigned", &name, "its transaction could be claimed for something else");
        }
        if let (Some(id), Handling::Open) = (unmatched::named(&unmatched), &unmatched.handling) {
            rows += 1;
            let is_waiting = waiting.get_sound((id.bits(), account, block_num, tx_in_block, op_in_tx))?.is_some();
            report.hold(is_waiting, "unmatched_by_payment", name, "it would not find its session");
        }
    }
    same_length(report, "unmatched_by_payment", &waiting, rows)
}

fn audit(snapshot: &Snapshot, report: &mut Report) -> Result<(), Fault> {
    let listed = snapshot.audit_by_merchant();
    let mut rows = 0;
    for (wanted, entry) in (1..).zip(snapshot.audit().iter()?) {
        let (key, bytes) = entry?;
        let seq = key.value();
        report.hold(seq == wanted, "audit", seq, "the log has a gap before it");
        let Some(entry) = report.read("audit", seq, record::audit_from_bytes(seq, bytes.value())) else { continue };
        for merchant in Audited::of(entry).merchants() {
            rows += 1;
            let is_listed = listed.get_sound((merchant, seq))?.is_some();
            report.hold(is_listed, "audit_by_merchant", seq, "a merchant it concerns would not see it");
        }
    }
    same_length(report, "audit_by_merchant", &listed, rows)
}

fn singles(snapshot: &Snapshot, report: &mut Report) -> Result<(), Fault> {
    audit(snapshot, report)?;
    let names = snapshot.meta();
    let single = |name| Ok::<_, Fault>(names.pass(single::read(&names, name))?.flatten());
    if let Some(bytes) = single(meta::CURSOR)? {
        let cursor = report.read("meta", meta::CURSOR, record::cursor_from_bytes(&bytes));
        report.scanned_block = cursor.map(|cursor| cursor.block_id.number());
    }
    if let Some(bytes) = single(meta::RATE)? {
        report.read("meta", meta::RATE, record::rate_from_bytes(&bytes));
    }
    if let Some(bytes) = single(meta::EPOCHS)? {
        report.read("meta", meta::EPOCHS, record::epochs_from_bytes(&bytes));
    }
    if let Some(bytes) = single(meta::FEE_TIERS)? {
        report.read("meta", meta::FEE_TIERS, record::schedule_from_bytes(&bytes));
    }
    Ok(())
}
