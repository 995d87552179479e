//! Sums over days: what came in, how much of what was asked was paid, and how long it took.

use std::time::Duration;

use engine::{ids::time_ordered, money::Currency, payment::State, time::Timestamp};

use crate::{
    fault::Fault,
    queries::summary,
    query::{DayVolume, Volume, VolumeQuery},
    record::Summary,
    snapshot::Snapshot,
};

const DAY_MS: u64 = 86_400_000;

/// Adds up every payment of the days that were asked for, however many they are; no record is read.
pub(crate) fn volume(snapshot: &Snapshot, query: &VolumeQuery) -> Result<Volume, Fault> {
    let merchant = query.merchant.bits();
    let first = query.last_day.saturating_sub(query.days.saturating_sub(1));
    let mut volume = Volume {
        days: (first..=query.last_day).map(|day| DayVolume { day, ..DayVolume::default() }).collect(),
        median_wait: None,
    };
    let mut waits: Vec<u64> = Vec::new();
    // Ids are in order of the time they were made at.
    let start = |day: u64| time_ordered(Timestamp::from_millis(day.saturating_mul(DAY_MS)), [0; 10]);
    let range = (merchant, start(first))..(merchant, start(query.last_day.saturating_add(1)));
    let list = snapshot.payments_by_merchant();
    for entry in list.range::<(u128, u128)>(range)? {
        let (key, bytes) = entry?;
        let (_, id) = key.value();
        let Some(summary) = list.pass(summary(merchant, id, bytes.value()))? else { continue };
        let day = summary.created_at.millis() / DAY_MS;
        let place = day.checked_sub(first).and_then(|place| usize::try_from(place).ok());
        let sums = place.and_then(|place| volume.days.get_mut(place)).filter(|_| !summary.is_invoice);
        if let Some(sums) = sums {
            add(sums, &summary);
            let wait = summary.completed_at.map(|at| at.since(summary.created_at).as_millis());
            waits.extend(wait.and_then(|wait| u64::try_from(wait).ok()));
        }
    }
    let middle = waits.len() / 2;
    volume.median_wait = (!waits.is_empty()).then(|| Duration::from_millis(*waits.select_nth_unstable(middle).1));
    Ok(volume)
}

fn add(sums: &mut DayVolume, payment: &Summary) {
    sums.opened += 1;
    sums.ended += u64::from(payment.state.is_terminal());
    if payment.state != State::Completed {
        return;
    }
    sums.completed += 1;
    sums.usd_cents = sums.usd_cents.saturating_add(payment.usd_cents);
    let units = match payment.amount.currency {
        Currency::Hive => &mut sums.hive_units,
        Currency::Hbd => &mut sums.hbd_units,
    };
    *units = units.saturating_add(payment.amount.units);
}
