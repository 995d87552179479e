//! The rows of an embedded store as rows of a database. Records are copied as they are; secrets stay sealed.

use std::collections::{BTreeMap, BTreeSet};

use engine::{
    account::AccountName,
    billing::Month,
    event_list::{Epoch, Tail},
    idempotency::IdempotencyRecord,
    ids::{EndpointId, MerchantId, PaymentId},
    ledger::TxId,
    money::{Currency, Money},
    time::Timestamp,
};

use crate::{
    batch::Handling,
    duty::{Duty, EngineId},
    embedded::{
        fault::Fault,
        read::{deliveries::owner, unmatched},
        tables::meta,
        wal::{single, snapshot::Snapshot},
    },
    postgres::{
        commit::{
            merchants::ACCOUNT_NUMBER,
            outbox::{HEAD_SHAPE, head_cells},
            sums::{DAY_SHAPE, Sums, USAGE_SHAPE, WAIT_SHAPE, usage_cells},
        },
        table::Table,
        tables::{
            business::{AuditRow, ComplianceRow, IdempotencyRow, InvoiceRow, PeriodRow, ReconciledRow, SingleRow},
            duties::DutyRow,
            ledger::{ClaimRow, EntryKey, EntryRow, NameRow, UnmatchedRow, UseRow, named},
            merchants::{AccountRow, KeyRow, MerchantRow},
            payments::{PaymentRow, TransferRow, WordRow},
            webhooks::{AttemptRow, DeliveryRow, EndpointRow, EventRow, ListRow},
        },
        values::Cell,
        whole::Shape,
    },
    record::{self, codes::Code},
    store::error::OpenError,
};

/// Receives rows of a database, table by table.
pub(crate) type Put<'p> = &'p mut dyn FnMut(Shape, Vec<Cell>) -> Result<(), OpenError>;

/// The version of a row that was not written before.
const FIRST_VERSION: u64 = 1;
/// The slot of the sums of payments.
const SLOT: i16 = 0;

/// The single values that a database has, too, apart from notes.
const SINGLES: [&str; 6] =
    [meta::CURSOR, meta::RATE, meta::MASTER_KEY, meta::FEE_TIERS, meta::RECEIPT_KEYS, meta::EPOCHS];

/// Passes every row to `put`.
///
/// # Errors
/// [`OpenError::Corrupt`] for a record that does not decode; any error that `put` returns.
pub(crate) fn each_row(snapshot: &Snapshot, put: Put<'_>) -> Result<(), OpenError> {
    let mut sums = Sums::default();
    merchants(snapshot, put)?;
    accounts(snapshot, put)?;
    payments(snapshot, &mut sums, put)?;
    transfers(snapshot, put)?;
    words(snapshot, put)?;
    idempotency(snapshot, &mut sums, put)?;
    sums_rows(&sums, put)?;
    events(snapshot, put)?;
    deliveries(snapshot, put)?;
    claims(snapshot, put)?;
    unmatched_transfers(snapshot, put)?;
    ledger(snapshot, put)?;
    business(snapshot, put)?;
    singles(snapshot, put)
}

/// Returns how many rows [`each_row`] passes, apart from sums and single values.
pub(crate) fn count(snapshot: &Snapshot) -> Result<u64, OpenError> {
    const INDEXES: [&str; 22] = [
        "slugs",
        "payments_by_merchant",
        "payment_days",
        "payment_counts",
        "deadlines",
        "in_flight",
        "transfer_order",
        "accounts_added",
        "account_merchants",
        "proven_merchants",
        "pending_accounts",
        "retired_accounts",
        "idempotency_times",
        "event_ids",
        "event_times",
        "payment_deliveries",
        "event_deliveries",
        "undelivered",
        "outbox",
        "outbox_due",
        "pending_deliveries",
        "audit_by_merchant",
    ];
    let lengths = snapshot.lengths()?;
    Ok(lengths.iter().filter(|(table, _)| !INDEXES.contains(table)).map(|(_, rows)| rows).sum())
}

/// Returns the payment after which no words are in the search index.
pub(crate) fn search_cursor(snapshot: &Snapshot) -> Result<u128, OpenError> {
    Ok(crate::embedded::read::search::cursor(snapshot)?)
}

fn emit<T: Table>(key: &T::Key, row: &T, put: Put<'_>) -> Result<(), OpenError> {
    put(Shape::of::<T>(), T::key_cells(key).into_iter().chain(row.cells()).collect())
}

fn sums_rows(sums: &Sums, put: Put<'_>) -> Result<(), OpenError> {
    for (merchant, counts) in &sums.usage {
        put(USAGE_SHAPE, usage_cells(*merchant, *counts, SLOT))?;
    }
    sums.totals.day_rows(SLOT).try_for_each(|cells| put(DAY_SHAPE, cells))?;
    sums.totals.wait_rows(SLOT).try_for_each(|cells| put(WAIT_SHAPE, cells))
}

fn payments(snapshot: &Snapshot, sums: &mut Sums, put: Put<'_>) -> Result<(), OpenError> {
    for entry in snapshot.payments().iter()? {
        let (key, bytes) = entry?;
        let (_, row) = PaymentRow::decoded(key.value(), bytes.value().to_vec())?;
        sums.payment(key.value(), &row.facts);
        emit(&key.value(), &row, put)?;
    }
    Ok(())
}

fn transfers(snapshot: &Snapshot, put: Put<'_>) -> Result<(), OpenError> {
    let payments = snapshot.payments();
    // The transfers of a payment follow one another.
    let mut last = None;
    for entry in snapshot.transfers().iter()? {
        let (key, bytes) = entry?;
        let (id, tx_id, op_in_tx) = key.value();
        let merchant = match last {
            Some((payment, merchant)) if payment == id => merchant,
            _ => {
                let name = PaymentId::from_bits(id);
                let missing = || Fault::inconsistent("transfers", name, "its payment does not exist");
                let payment = payments.get(id)?.ok_or_else(missing)?;
                let facts = record::payment_facts(payment.value()).map_err(Fault::damaged("payments", name))?;
                MerchantId::from_bits(facts.merchant)
            }
        };
        last = Some((id, merchant));
        let credit = record::transfer_from_bytes(key.value(), bytes.value());
        let credit = credit.map_err(Fault::damaged("transfers", TxId(*tx_id)))?;
        emit(&(id, *tx_id, op_in_tx), &TransferRow { credit, merchant }, put)?;
    }
    Ok(())
}

fn words(snapshot: &Snapshot, put: Put<'_>) -> Result<(), OpenError> {
    for entry in snapshot.search().iter()? {
        let (key, _) = entry?;
        let (merchant, word, payment) = key.value();
        emit(&(merchant, word.to_owned(), payment), &WordRow, put)?;
    }
    Ok(())
}

fn merchants(snapshot: &Snapshot, put: Put<'_>) -> Result<(), OpenError> {
    for entry in snapshot.merchants().iter()? {
        let (key, bytes) = entry?;
        emit(&key.value(), &MerchantRow::decoded(key.value(), bytes.value().to_vec())?, put)?;
    }
    for entry in snapshot.api_keys().iter()? {
        let (key, merchant) = entry?;
        emit(key.value(), &KeyRow(merchant.value()), put)?;
    }
    Ok(())
}

fn accounts(snapshot: &Snapshot, put: Put<'_>) -> Result<(), OpenError> {
    let mut numbers = BTreeMap::new();
    for entry in snapshot.accounts_added().iter()? {
        let (number, account) = entry?;
        // An account that was watched again has its last place.
        numbers.insert(account.value().to_owned(), number.value());
    }
    let retired = snapshot.retired_accounts();
    let mut last = numbers.values().copied().max().unwrap_or(0);
    for entry in snapshot.accounts().iter()? {
        let (key, since) = entry?;
        let name = key.value();
        let account = AccountName::parse(name).map_err(|why| Fault::inconsistent("accounts", name, why))?;
        // The list of a store that is older than the list lacks its first accounts.
        let number = numbers.get(name).copied().unwrap_or_else(|| {
            last += 1;
            last
        });
        let watched_since = Timestamp::from_millis(since.value());
        let unwatch_at = retired.get(name)?.map(|until| Timestamp::from_millis(until.value()));
        let version = since.value().max(FIRST_VERSION);
        emit(&account, &AccountRow { version, number, watched_since, unwatch_at }, put)?;
    }
    if last > 0 {
        single(ACCOUNT_NUMBER, last.to_be_bytes().to_vec(), put)?;
    }
    Ok(())
}

fn idempotency(snapshot: &Snapshot, sums: &mut Sums, put: Put<'_>) -> Result<(), OpenError> {
    for entry in snapshot.idempotency().iter()? {
        let (key, bytes) = entry?;
        let (merchant, digest) = key.value();
        let id = MerchantId::from_bits(merchant);
        let read: Result<IdempotencyRecord, _> = record::idempotency_from_bytes(id, *digest, bytes.value());
        let row = IdempotencyRow(read.map_err(Fault::damaged("idempotency", id))?);
        sums.key(merchant);
        emit(&(merchant, *digest), &row, put)?;
    }
    Ok(())
}

fn events(snapshot: &Snapshot, put: Put<'_>) -> Result<(), OpenError> {
    for entry in snapshot.events().iter()? {
        let (key, bytes) = entry?;
        let place = key.value();
        let named = format!("{} of {}", place.1, MerchantId::from_bits(place.0));
        let event = record::event_from_bytes(place, bytes.value()).map_err(Fault::damaged("events", named))?;
        emit(&place, &EventRow::of(event), put)?;
    }
    for entry in snapshot.event_seqs().iter()? {
        let (merchant, tail) = entry?;
        let (last, epoch, last_before_epoch) = tail.value();
        let tail = Tail { last, epoch: Epoch::from_bits(epoch), last_before_epoch };
        emit(&merchant.value(), &ListRow(tail), put)?;
    }
    Ok(())
}

fn deliveries(snapshot: &Snapshot, put: Put<'_>) -> Result<(), OpenError> {
    for entry in snapshot.deliveries().iter()? {
        let (key, bytes) = entry?;
        let logged = crate::postgres::tables::webhooks::logged(key.value(), bytes.value())?;
        emit(&key.value(), &DeliveryRow { version: FIRST_VERSION, logged }, put)?;
    }
    for entry in snapshot.outbox_heads().iter()? {
        let (endpoint, due_ms) = entry?;
        let endpoint = EndpointId::from_bits(endpoint.value());
        let Some(merchant) = owner(snapshot, endpoint)? else { continue };
        put(HEAD_SHAPE, head_cells(endpoint.bits(), merchant.bits(), Timestamp::from_millis(due_ms.value())))?;
    }
    for entry in snapshot.attempts().iter()? {
        let (key, bytes) = entry?;
        let read = record::attempt_from_bytes(key.value(), bytes.value());
        let attempt = read.map_err(Fault::damaged("attempts", format!("{:?}", key.value())))?;
        emit(&key.value(), &AttemptRow(attempt), put)?;
    }
    for entry in snapshot.endpoints().iter()? {
        let (id, bytes) = entry?;
        let health = crate::postgres::tables::webhooks::health(id.value(), bytes.value())?;
        emit(&id.value(), &EndpointRow { version: FIRST_VERSION, health }, put)?;
    }
    Ok(())
}

fn claims(snapshot: &Snapshot, put: Put<'_>) -> Result<(), OpenError> {
    for entry in snapshot.claims().iter()? {
        let (key, bytes) = entry?;
        let claim = crate::postgres::tables::ledger::claim(*key.value(), bytes.value())?;
        emit(key.value(), &ClaimRow { version: claim.at.millis(), claim }, put)?;
    }
    for entry in snapshot.nonces().iter()? {
        let (digest, tx_id) = entry?;
        emit(digest.value(), &NameRow(*tx_id.value()), put)?;
    }
    let assigned = snapshot.assigned();
    for entry in snapshot.claims().iter()? {
        let (key, bytes) = entry?;
        let claim = crate::postgres::tables::ledger::claim(*key.value(), bytes.value())?;
        let payment = assigned.get(key.value())?.map(|payment| payment.value());
        emit(key.value(), &UseRow { version: claim.at.millis(), assigned: payment }, put)?;
    }
    for entry in assigned.iter()? {
        let (tx_id, payment) = entry?;
        if !snapshot.claims().has(tx_id.value())? {
            let row = UseRow { version: FIRST_VERSION, assigned: Some(payment.value()) };
            emit(tx_id.value(), &row, put)?;
        }
    }
    Ok(())
}

fn unmatched_transfers(snapshot: &Snapshot, put: Put<'_>) -> Result<(), OpenError> {
    for entry in snapshot.unmatched().iter()? {
        let (key, bytes) = entry?;
        let unmatched = unmatched::read(key.value(), bytes.value())?;
        let place = (*unmatched.account(), unmatched.transfer.position);
        let waits_for = named(&unmatched).filter(|_| unmatched.handling == Handling::Open);
        emit(&place, &UnmatchedRow { version: FIRST_VERSION, unmatched, waits_for }, put)?;
    }
    Ok(())
}

fn ledger(snapshot: &Snapshot, put: Put<'_>) -> Result<(), OpenError> {
    for entry in snapshot.ledger_entries().iter()? {
        let (key, value) = entry?;
        let (name, at_ms, tx_id, op_in_tx, kind, payment) = key.value();
        let (units, number) = value.value();
        let damaged = |why: String| Fault::inconsistent("ledger_entries", name, why);
        let account = AccountName::parse(name).map_err(|why| damaged(why.to_string()))?;
        let currency = Currency::from_number(number).ok_or_else(|| damaged(format!("{number} is no currency")))?;
        let key = EntryKey(at_ms, *tx_id, op_in_tx, kind, payment);
        emit(&(account, key), &EntryRow(Money::new(units, currency)), put)?;
    }
    for entry in snapshot.reconciled_days().iter()? {
        let (from, bytes) = entry?;
        let from = Timestamp::from_millis(from.value());
        let day = record::day_from_bytes(bytes.value()).map_err(Fault::damaged("reconciled_days", from))?;
        emit(&from, &ReconciledRow::of(FIRST_VERSION, &day), put)?;
    }
    Ok(())
}

fn business(snapshot: &Snapshot, put: Put<'_>) -> Result<(), OpenError> {
    for entry in snapshot.compliance_statuses().iter()? {
        let (merchant, bytes) = entry?;
        let status = crate::postgres::tables::business::compliance(merchant.value(), bytes.value())?;
        emit(&merchant.value(), &ComplianceRow { version: FIRST_VERSION, status }, put)?;
    }
    for entry in snapshot.billing().iter()? {
        let (key, bytes) = entry?;
        let (number, merchant) = key.value();
        let id = MerchantId::from_bits(merchant);
        let no_month = || Fault::inconsistent("billing", id, format_args!("{number} is not a month"));
        let month = Month::from_number(number).ok_or_else(no_month)?;
        let read = record::period_from_bytes(id, month, bytes.value());
        let period = read.map_err(Fault::damaged("billing", format!("{month} of {id}")))?;
        emit(&(merchant, number), &PeriodRow { version: FIRST_VERSION, period }, put)?;
    }
    for entry in snapshot.invoice_sessions().iter()? {
        let (payment, period) = entry?;
        let (number, merchant) = period.value();
        emit(&payment.value(), &InvoiceRow(number, merchant), put)?;
    }
    for entry in snapshot.audit().iter()? {
        let (seq, bytes) = entry?;
        let read = record::audit_from_bytes(seq.value(), bytes.value());
        emit(&seq.value(), &AuditRow(read.map_err(Fault::damaged("audit", seq.value()))?), put)?;
    }
    for entry in snapshot.duties().iter()? {
        let (name, held) = entry?;
        let name = name.value();
        let duty = Duty::parse(name).ok_or_else(|| Fault::inconsistent("duties", name, "there is no such duty"))?;
        let (term, holder) = held.value();
        let holder = (holder != 0).then(|| EngineId::from_bits(holder));
        emit(&duty, &DutyRow { term, holder }, put)?;
    }
    Ok(())
}

fn singles(snapshot: &Snapshot, put: Put<'_>) -> Result<(), OpenError> {
    let table = snapshot.meta();
    let mut names = BTreeSet::new();
    for entry in table.iter()? {
        let (name, _) = entry?;
        // Each value has two rows, of which one may be damaged.
        names.insert(single::first(name.value()).to_owned());
    }
    for name in names.iter().filter(|name| SINGLES.contains(&name.as_str()) || meta::is_note(name)) {
        if let Some(value) = single::read(&table, name)? {
            single(name, value, put)?;
        }
    }
    Ok(())
}

fn single(name: &str, value: Vec<u8>, put: Put<'_>) -> Result<(), OpenError> {
    emit(&name.to_owned(), &SingleRow { version: FIRST_VERSION, value }, put)
}
