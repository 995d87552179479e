//! Verification of a store: its pages, records, indexes and totals.
//!
//! Every record is decoded. Every index is compared with its records row by row and by length, so that missing and
//! surplus rows are found.

mod duties;
mod lengths;
mod merchants;

use std::{collections::BTreeMap, path::Path};

use engine::{
    billing::{Month, Sale},
    ids::{EndpointId, MerchantId, PaymentId},
    ledger::TxId,
    payment::{Credit, Payment, Totals, shown_memo},
    webhook::{DeliveryState, Trigger},
    x402::Purpose,
};
use redb::ReadableDatabase;

use self::lengths::compare_length;
use crate::{
    batch::Handling,
    embedded::{
        commit::{audit::EncodedEntry, prepared},
        damage::DamagedRows,
        fault::Fault,
        maintenance::directory,
        read::{days, unmatched},
        tables::{self, BYTES_COUNT, DayKey, KEYS_COUNT, SCHEMA_VERSION, meta},
        wal::{
            single,
            snapshot::{Epoch, Snapshot},
        },
    },
    record::{self, codes::Code, indexed::PaymentFacts, summary::facet, sums::DaySums},
    store::{
        error::{OpenError, ReadError},
        report::Report,
    },
};

/// Page cache for the file, bytes.
const CACHE_BYTES: usize = 64 * 1024 * 1024;

/// Verifies the file of a closed store. Sealed secrets stay sealed.
///
/// # Errors
/// Those of opening the file; visit [`OpenError`].
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

/// Verifies the file of a closed store of any schema version.
pub(crate) fn unversioned(path: &Path) -> Result<Report, OpenError> {
    directory::catch_panic(path, || read_through(path))
}

fn read_through(path: &Path) -> Result<Report, OpenError> {
    let mut database = directory::builder(CACHE_BYTES).open(path).map_err(OpenError::database(path))?;
    let are_pages_sound = database.check_integrity().map_err(OpenError::database(path))?;
    let snapshot = database.begin_read().map_err(Fault::from)?;
    let schema = directory::version_of(&snapshot)?;
    let missing = tables::missing(&snapshot)?;
    let mut report = match missing.is_empty() {
        true => self::snapshot(&Snapshot::of(Epoch::of(&snapshot, &DamagedRows::default())?))?,
        false => Report::default(),
    };
    for name in missing {
        report.find("table", name, "missing");
    }
    report.schema = schema;
    report.hold(are_pages_sound, "pages", path.display(), "wrong checksums, repaired");
    Ok(report)
}

/// Verifies a snapshot on a thread of its own.
///
/// # Errors
/// [`ReadError::Failed`] when the disk fails.
pub(crate) async fn on_a_thread(snapshot: Snapshot) -> Result<Report, ReadError> {
    let (sender, report) = tokio::sync::oneshot::channel();
    let work = move || drop(sender.send(self::snapshot(&snapshot)));
    let spawned = std::thread::Builder::new().name("verifier".to_owned()).spawn(work);
    spawned.map_err(|error| ReadError::Failed(error.to_string()))?;
    let report = report.await.map_err(|_| ReadError::Failed("the verification panicked".to_owned()))?;
    Ok(report?)
}

/// Verifies a snapshot.
pub(crate) fn snapshot(snapshot: &Snapshot) -> Result<Report, Fault> {
    let mut report = Report { schema: SCHEMA_VERSION, tables: snapshot.lengths()?, ..Report::default() };
    // The reads below skip damaged rows.
    snapshot.each_damaged(&mut |table, key| report.find(table, key, tables::CHECKSUM))?;
    let (mut counts, mut sales) = (BTreeMap::new(), BTreeMap::new());
    payments(snapshot, &mut report, &mut counts, &mut sales)?;
    months(snapshot, &mut report, &sales)?;
    merchants::verify(snapshot, &mut report)?;
    idempotency(snapshot, &mut report, &mut counts)?;
    compare_counts(snapshot, &mut report, &counts)?;
    events(snapshot, &mut report)?;
    deliveries(snapshot, &mut report)?;
    claims(snapshot, &mut report)?;
    unmatched_by_payment(snapshot, &mut report)?;
    singles(snapshot, &mut report)?;
    duties::verify(snapshot, &mut report)?;
    Ok(report)
}

type Counts = BTreeMap<(u128, u32), u64>;

/// The number of a merchant's completed payments, and their amount in US cents.
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
        let has_slug = slugs.get_intact(facts.slug)?.is_some_and(|named| named.value() == bits);
        report.hold(has_slug, "slugs", id, "no entry for the payment's slug");
        let key = (facts.merchant, facet(&facts.summary), bits);
        let summary = record::summary_to_bytes(&facts.summary);
        let is_listed = listed.get_intact(key)?.is_some_and(|stored| *stored.value() == summary);
        report.hold(is_listed, "payments_by_merchant", id, "the entry is missing or differs from the record");
        let reads_back = record::payment_facts(bytes.value()).as_ref() == Ok(&facts);
        report.hold(reads_back, "payments", id, "the facts for its indexes differ from the record");
        days.entry((facts.merchant, days::day_of(bits))).or_default().add(&facts.summary);
        if let Some(deadline_ms) = facts.deadline_ms {
            pending += 1;
            let is_due = deadlines.get_intact((deadline_ms, bits))?.is_some();
            report.hold(is_due, "deadlines", id, "no entry: the payment would never expire");
        }
        if facts.is_in_flight {
            undecided += 1;
            let is_known = in_flight.get_intact(bits)?.is_some();
            report.hold(is_known, "in_flight", id, "no entry: nothing would follow the payment's transaction");
        }
        let has_merchant = merchants.get_intact(facts.merchant)?.is_some();
        report.hold(has_merchant, "payments", id, "its merchant does not exist");
        if let Some(claim) = &payment.claim {
            report.hold(claims.get_intact(&claim.tx_id.0)?.is_some(), "claims", id, "no record of the payment's claim");
        }
        transfer_rows += transfers(snapshot, report, &payment)?;
        if let Some(inconsistency) = report.totals.enter(&payment) {
            report.find("payments", id, inconsistency);
        }
    }
    compare_length(report, "slugs", &slugs, rows)?;
    compare_length(report, "payments_by_merchant", &listed, rows)?;
    compare_days(snapshot, report, &days)?;
    compare_length(report, "deadlines", &deadlines, pending)?;
    compare_length(report, "in_flight", &in_flight, undecided)?;
    compare_length(report, "transfers", &snapshot.transfers(), transfer_rows)?;
    compare_length(report, "transfer_order", &snapshot.transfer_order(), transfer_rows)
}

/// Compares the daily sums with the payments. A day without payments has no row.
fn compare_days(snapshot: &Snapshot, report: &mut Report, counted: &BTreeMap<DayKey, DaySums>) -> Result<(), Fault> {
    let table = snapshot.payment_days();
    for (key, sums) in counted {
        let name = format!("day {} of {}", key.1, MerchantId::from_bits(key.0));
        let Some(bytes) = table.get_intact(*key)? else {
            report.find("payment_days", name, "the row is missing");
            continue;
        };
        let stored = report.read("payment_days", &name, record::sums_from_bytes(bytes.value()));
        report.hold(
            stored.is_none_or(|stored| stored == *sums),
            "payment_days",
            &name,
            "the sums differ from the payments",
        );
    }
    compare_length(report, "payment_days", &table, counted.len() as u64)
}

/// Compares the transfers of a payment with the list and the totals in its record; returns the number of rows.
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
            .get_intact((bits, credit.seq))?
            .is_some_and(|found| found.value() == (&credit.tx_id.0, credit.op_in_tx));
        report.hold(is_in_order, "transfer_order", &name, "no entry for the transfer");
        if let Some(shown) = payment.listed(credit.tx_id, credit.op_in_tx) {
            listed += 1;
            let memo = shown_memo(credit.memo.clone());
            report.hold(*shown == Credit { memo, ..credit }, "transfers", &name, "differs from the payment's record");
        }
    }
    report.hold(listed == payment.transfers.len(), "transfers", id, "a listed transfer is missing");
    report.hold(totals == payment.totals(), "transfers", id, "the totals differ from the payment's record");
    Ok(rows)
}

/// Compares usage in billing periods with completed payments: each payment counts once, in any month.
fn months(snapshot: &Snapshot, report: &mut Report, sales: &Sales) -> Result<(), Fault> {
    let (unsettled, sessions) = (snapshot.unsettled(), snapshot.invoice_sessions());
    let mut counted = Sales::new();
    let mut waiting = 0;
    for entry in snapshot.billing().iter()? {
        let (key, bytes) = entry?;
        let (number, bits) = key.value();
        let merchant = MerchantId::from_bits(bits);
        let Some(month) = Month::from_number(number) else {
            report.find("billing", merchant, format_args!("{number} is not a month"));
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
            report.hold(
                unsettled.get_intact(key.value())?.is_some(),
                "unsettled",
                &name,
                "no entry: the month would never be invoiced",
            );
        }
        if let Some((session, _)) = period.invoice.as_ref().and_then(|invoice| invoice.session.as_ref()) {
            let is_its = sessions.get_intact(session.bits())?.is_some_and(|found| found.value() == key.value());
            report.hold(
                is_its,
                "invoice_sessions",
                &name,
                "no entry: a payment of the invoice would not seal_secrets it",
            );
        }
    }
    for bits in sales.keys().chain(counted.keys().filter(|bits| !sales.contains_key(bits))) {
        let (sold, billed) =
            (sales.get(bits).copied().unwrap_or_default(), counted.get(bits).copied().unwrap_or_default());
        let message =
            format!("{} payments of {} cents completed, {} of {} cents counted", sold.0, sold.1, billed.0, billed.1);
        report.hold(sold == billed, "billing", MerchantId::from_bits(*bits), &message);
    }
    compare_length(report, "unsettled", &unsettled, waiting)
}

/// Compares the stored counts with the counted rows. A count of zero may be stored or not.
fn compare_counts(snapshot: &Snapshot, report: &mut Report, counted: &Counts) -> Result<(), Fault> {
    let table = snapshot.payment_counts();
    for (key, count) in counted {
        let stored = table.get_intact(*key)?.map_or(0, |count| count.value());
        let merchant = MerchantId::from_bits(key.0);
        report.hold(
            stored == *count,
            "payment_counts",
            merchant,
            &format!("code {}: {stored} stored, {count} counted", key.1),
        );
    }
    for entry in table.iter()? {
        let (key, count) = entry?;
        let is_none = counted.contains_key(&key.value()) || count.value() == 0;
        let merchant = MerchantId::from_bits(key.value().0);
        report.hold(
            is_none,
            "payment_counts",
            merchant,
            &format!("code {}: {} stored, 0 counted", key.value().1, count.value()),
        );
    }
    Ok(())
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
        if let Some(record) = report.read("idempotency", merchant, read) {
            let is_timed = times.get_intact((record.at.millis(), bits, digest))?.is_some();
            report.hold(
                is_timed,
                "idempotency_times",
                merchant,
                "no entry: one of the merchant's keys would never be deleted",
            );
        }
    }
    compare_length(report, "idempotency_times", &times, rows)
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
        let is_found = ids.get_intact(event.id.bits())?.is_some_and(|stored| stored.value() == place);
        report.hold(is_found, "event_ids", event.id, "no entry for the event");
        let is_timed = times.get_intact((event.at.millis(), event.id.bits()))?.is_some();
        report.hold(is_timed, "event_times", event.id, "no entry: the event would never be deleted");
        let is_counted = seqs.get_intact(place.0)?.is_some_and(|tail| tail.value().0 >= place.1);
        report.hold(is_counted, "event_seqs", event.id, "its sequence number would be used again");
    }
    for entry in snapshot.attempts().iter()? {
        let (key, bytes) = entry?;
        report.read("attempts", format!("{:?}", key.value()), record::attempt_from_bytes(key.value(), bytes.value()));
    }
    compare_length(report, "event_times", &times, rows)?;
    compare_length(report, "event_ids", &ids, rows)
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
        let is_listed = listed.get_intact(of_payment)?.is_some();
        report.hold(is_listed, "payment_deliveries", logged.delivery.id, "no entry for the delivery");
        let of_event = (logged.delivery.event.bits(), logged.delivery.id.bits());
        let is_listed = of_events.get_intact(of_event)?.is_some();
        report.hold(is_listed, "event_deliveries", logged.delivery.id, "no entry for the delivery");
        if logged.state != DeliveryState::Delivered {
            unfinished += 1;
            let place = (key.value().0, logged.state.number(), key.value().1);
            let is_listed = undelivered.get_intact(place)?.is_some();
            report.hold(is_listed, "undelivered", logged.delivery.id, "no entry for the delivery");
        }
        if logged.state != DeliveryState::Pending {
            continue;
        }
        let delivery = &logged.delivery;
        waiting += 1;
        let (endpoint, due_ms) = (delivery.endpoint.bits(), delivery.due_at.millis());
        let place = (endpoint, due_ms, delivery.event_seq, delivery.id.bits());
        report.hold(
            outbox.get_intact(place)?.is_some_and(|merchant| merchant.value() == delivery.merchant.bits()),
            "outbox",
            delivery.id,
            "no entry: the delivery would never be sent",
        );
        let head = heads.entry(endpoint).or_insert(due_ms);
        *head = due_ms.min(*head);
        if delivery.trigger == Trigger::Auto {
            waiting_auto += 1;
            let key = (delivery.payment.bits(), endpoint, delivery.event_seq, delivery.id.bits());
            report.hold(
                pending_deliveries.get_intact(key)?.is_some(),
                "pending_deliveries",
                delivery.id,
                "no entry: later events would not wait for the delivery",
            );
        }
    }
    let (stored_heads, due) = (snapshot.outbox_heads(), snapshot.outbox_due());
    for (endpoint, due_ms) in &heads {
        let is_head = stored_heads.get_intact(endpoint)?.is_some_and(|stored| stored.value() == *due_ms);
        let is_due = due.get_intact((*due_ms, *endpoint))?.is_some();
        let id = EndpointId::from_bits(*endpoint);
        report.hold(is_head && is_due, "outbox_heads", id, "wrong head: the queue would be read too late or never");
    }
    compare_length(report, "payment_deliveries", &listed, rows)?;
    compare_length(report, "event_deliveries", &of_events, rows)?;
    compare_length(report, "undelivered", &undelivered, unfinished)?;
    compare_length(report, "outbox", &outbox, waiting)?;
    compare_length(report, "pending_deliveries", &pending_deliveries, waiting_auto)?;
    compare_length(report, "outbox_heads", &stored_heads, heads.len() as u64)?;
    compare_length(report, "outbox_due", &due, heads.len() as u64)
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
        for name in prepared::unique_keys(&claimed) {
            names += 1;
            let stored = nonces.get_intact(&name)?;
            let is_its = stored.is_some_and(|stored| *stored.value() == tx_id.0);
            report.hold(is_its, "nonces", tx_id, "no entry: the claim's nonce or identifier could be used again");
        }
        if matches!(claimed.purpose, Purpose::Facilitated(_)) && claimed.outcome.is_open() {
            undecided += 1;
            report.hold(
                open.get_intact(&tx_id.0)?.is_some(),
                "facilitations",
                tx_id,
                "no entry: nothing would follow the claim's transaction",
            );
        }
    }
    compare_length(report, "nonces", &nonces, names)?;
    compare_length(report, "facilitations", &open, undecided)
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
        report.totals.enter_unmatched(unmatched.transfer.money);
        if let Handling::Assigned { .. } = &unmatched.handling {
            let is_taken = assigned.get_intact(&unmatched.transfer.tx_id.0)?.is_some();
            report.hold(is_taken, "assigned", &name, "no entry: the transaction could be claimed again");
        }
        if let (Some(id), Handling::Open) = (unmatched::named(&unmatched), &unmatched.handling) {
            rows += 1;
            let is_waiting = waiting.get_intact((id.bits(), account, block_num, tx_in_block, op_in_tx))?.is_some();
            report.hold(is_waiting, "unmatched_by_payment", name, "no entry: the transfer would not find its session");
        }
    }
    compare_length(report, "unmatched_by_payment", &waiting, rows)
}

fn audit(snapshot: &Snapshot, report: &mut Report) -> Result<(), Fault> {
    let listed = snapshot.audit_by_merchant();
    let mut rows = 0;
    for (expected, entry) in (1..).zip(snapshot.audit().iter()?) {
        let (key, bytes) = entry?;
        let seq = key.value();
        report.hold(seq == expected, "audit", seq, "gap before this entry");
        let Some(entry) = report.read("audit", seq, record::audit_from_bytes(seq, bytes.value())) else { continue };
        for merchant in EncodedEntry::of(entry).merchants() {
            rows += 1;
            let is_listed = listed.get_intact((merchant, seq))?.is_some();
            report.hold(is_listed, "audit_by_merchant", seq, "no entry for a merchant that it concerns");
        }
    }
    compare_length(report, "audit_by_merchant", &listed, rows)
}

fn singles(snapshot: &Snapshot, report: &mut Report) -> Result<(), Fault> {
    audit(snapshot, report)?;
    let names = snapshot.meta();
    let single = |name| Ok::<_, Fault>(names.skip_damaged(single::read(&names, name))?.flatten());
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
    if let Some(bytes) = single(meta::RECEIPT_KEYS)? {
        // The secret key stays sealed, so that a backup can be verified without its master key.
        report.read("meta", meta::RECEIPT_KEYS, record::receipt_keys_version(&bytes));
    }
    Ok(())
}
