//! The indexes of payments and deliveries: lists, daily sums, search words.

use engine::{
    ids::PaymentId,
    ledger::TxId,
    mutant,
    webhook::{Delivery, DeliveryRecord, DeliveryState},
};

use crate::{
    embedded::{
        commit::group::Group,
        fault::Fault,
        read::{
            days,
            delivery_list::is_listed,
            listed::{self, Facets},
            search::{self, refund_words_of, transfer_words_of},
        },
    },
    record::{
        self,
        codes::Code,
        summary::{Summary, facet},
        sums::DaySums,
    },
};

/// Adds a new payment, or a change of its summary, to the daily sums.
pub(crate) fn count_day(group: &mut Group<'_>, merchant: u128, id: u128, before: Option<&Summary>, after: &Summary) {
    if before == Some(after) || (before.is_some() && mutant!("day-not-counted")) {
        return;
    }
    let day = group.days.entry((merchant, days::day_of(id))).or_default();
    if let Some(before) = before {
        day.subtract(before);
    }
    day.add(after);
}

/// Writes the changed daily sums. The lists are written before.
pub(crate) fn write_days(group: &mut Group<'_>) -> Result<(), Fault> {
    for (key, change) in std::mem::take(&mut group.days) {
        let mut sums = days::read(group.tables.snapshot(), key)?.map(Option::unwrap_or_default);
        if let Some(sums) = &mut sums {
            sums.merge(&change);
        }
        let sums = match sums.filter(DaySums::is_valid) {
            Some(sums) => sums,
            None => days::recount(group.tables.snapshot(), key, Facets::ALL, &listed::ANY_ID)?,
        };
        group.tables.payment_days().insert(key, record::sums_to_bytes(&sums).as_slice());
    }
    Ok(())
}

/// Writes the summary of a payment; `before` is the replaced one.
pub(crate) fn list_payment(
    group: &mut Group<'_>,
    merchant: u128,
    id: u128,
    before: Option<Summary>,
    after: &Summary,
) -> Result<(), Fault> {
    let table = group.tables.payments_by_merchant();
    let (place, bytes) = (facet(after), record::summary_to_bytes(after));
    let place_before = before.map(|before| facet(&before));
    if let Some(gone) = place_before.filter(|before| *before != place && !mutant!("listed-twice")) {
        table.remove((merchant, gone, id))?;
    }
    // Most changes of a payment leave its summary as it is, and an unmodified page is not written.
    let may_stand = place_before == Some(place);
    if !may_stand || table.get_intact((merchant, place, id))?.is_none_or(|stored| *stored.value() != bytes) {
        table.insert((merchant, place, id), &bytes);
    }
    Ok(())
}

/// Removes the search words of a payment's deleted metadata. The stored record still has the metadata; `left` is the
/// new record.
pub(crate) fn remove_metadata_words(group: &mut Group<'_>, id: PaymentId, left: &[u8]) -> Result<(), Fault> {
    let read = |bytes: &[u8]| record::payment_from_bytes(id, bytes).map_err(Fault::damaged("payments", id));
    let Some(bytes) = group.tables.payments().get(id.bits())? else { return Ok(()) };
    let (before, after) = (read(bytes.value())?, read(left)?);
    let mut kept = search::words_of(&after);
    kept.extend(refund_words_of(&after));
    // The words of its transfers stay, even if the metadata contained the same words.
    let transfers = group.tables.transfers();
    for entry in transfers.range((id.bits(), &[0; 20], 0)..=(id.bits(), &[u8::MAX; 20], u32::MAX))? {
        let (key, bytes) = entry?;
        let name = || TxId(*key.value().1).to_string();
        let credit = record::transfer_from_bytes(key.value(), bytes.value());
        let credit = transfers.skip_damaged(credit.map_err(|why| Fault::inconsistent("transfers", name(), why)))?;
        kept.extend(credit.iter().flat_map(transfer_words_of));
    }
    for word in search::words_of(&before).difference(&kept) {
        group.tables.search().remove((before.merchant.bits(), word.as_str(), id.bits()))?;
    }
    Ok(())
}

/// Writes the index rows of a delivery; `before` is its previous state.
pub(crate) fn list_delivery(
    group: &mut Group<'_>,
    before: Option<DeliveryState>,
    after: &DeliveryRecord,
) -> Result<(), Fault> {
    let Delivery { id, event, payment, merchant, .. } = after.delivery;
    if before.is_none() {
        group.tables.payment_deliveries().insert((payment.bits(), id.bits()), ());
        group.tables.event_deliveries().insert((event.bits(), id.bits()), ());
    }
    if before == Some(after.state) {
        return Ok(());
    }
    let undelivered = group.tables.undelivered();
    if let Some(before) = before.filter(|before| is_listed(*before)) {
        undelivered.remove((merchant.bits(), before.number(), id.bits()))?;
    }
    if is_listed(after.state) {
        undelivered.insert((merchant.bits(), after.state.number(), id.bits()), ());
    }
    Ok(())
}
