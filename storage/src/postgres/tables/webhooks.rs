//! Rows of events, their deliveries, the attempts made and the health of endpoints.

use engine::{
    event_list::{Epoch, Tail},
    ids::{DeliveryId, EndpointId, MerchantId},
    time::Timestamp,
    webhook::{Attempt, DeliveryRecord, DeliveryState, EndpointHealth},
};
use tokio_postgres::Row;

use crate::{
    batch::EventRecord,
    postgres::{
        fault::Fault,
        table::{Column, Table},
        values::{Cell, Id, Kind, Moment, column, unsigned},
        whole::{Whole, named},
    },
    record::{self, event::AttemptKey},
};

/// An event: only its id and its time are read, to know it again and to prune it.
#[derive(Debug, Clone)]
pub(crate) struct EventRow {
    pub(crate) id: u128,
    pub(crate) happened_at: Timestamp,
    /// None for a row that was loaded.
    event: Option<EventRecord>,
}

impl EventRow {
    /// Returns the row of an event.
    pub(crate) const fn of(event: EventRecord) -> Self {
        Self { id: event.id.bits(), happened_at: event.at, event: Some(event) }
    }

    /// Returns the event; none of a row that was loaded.
    pub(crate) const fn event(&self) -> Option<&EventRecord> {
        self.event.as_ref()
    }
}

impl Table for EventRow {
    type Key = (u128, u64);

    const NAME: &'static str = "events";
    const KEY: &'static [Column] = &[("merchant_id", Kind::Uuid), ("seq", Kind::Integer)];
    const VALUES: &'static [Column] = &[
        ("id", Kind::Uuid),
        ("payment_id", Kind::Uuid),
        ("kind", Kind::Text),
        ("happened_at", Kind::Time),
        ("record", Kind::Bytes),
    ];
    const READ: &'static [&'static str] = &["id", "happened_at"];

    fn key_cells((merchant, seq): &Self::Key) -> Vec<Cell> {
        vec![(*merchant).into(), (*seq).into()]
    }

    fn cells(&self) -> Vec<Cell> {
        let event = self.event.as_ref().expect("a row that is written was made of an event");
        vec![
            self.id.into(),
            event.payment.bits().into(),
            event.kind.as_str().into(),
            event.at.into(),
            record::event_to_bytes(event).into(),
        ]
    }

    fn read(row: &Row) -> Result<(Self::Key, Self), Fault> {
        let (Id(merchant), Id(id), Moment(happened_at)) = (column(row, 0)?, column(row, 2)?, column(row, 3)?);
        Ok(((merchant, unsigned(column(row, 1)?)), Self { id, happened_at, event: None }))
    }
}

impl Whole for EventRow {
    fn whole(row: &Row) -> Result<((u128, u64), Self), Fault> {
        let (key, _) = Self::read(row)?;
        let damaged = Fault::damaged("events", format!("{} of {}", key.1, MerchantId::from_bits(key.0)));
        let event = record::event_from_bytes(key, named(row, "record")?).map_err(damaged)?;
        Ok((key, Self::of(event)))
    }
}

/// The end of a merchant's list of events. Its last place only grows, which guards it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ListRow(pub(crate) Tail);

impl Table for ListRow {
    type Key = u128;

    const NAME: &'static str = "event_lists";
    const KEY: &'static [Column] = &[("merchant_id", Kind::Uuid)];
    const VALUES: &'static [Column] =
        &[("last_seq", Kind::Integer), ("epoch", Kind::Integer), ("last_before_epoch", Kind::Integer)];
    const READ: &'static [&'static str] = &["last_seq", "epoch", "last_before_epoch"];
    const GUARD: Option<&'static str> = Some("last_seq");

    fn key_cells(key: &u128) -> Vec<Cell> {
        vec![(*key).into()]
    }

    fn cells(&self) -> Vec<Cell> {
        let Tail { last, epoch, last_before_epoch } = self.0;
        // The bits of an epoch are random: they are kept whatever their sign.
        vec![last.into(), Cell::Integer(Some(epoch.bits().cast_signed())), last_before_epoch.into()]
    }

    fn guard(&self) -> u64 {
        self.0.last
    }

    fn read(row: &Row) -> Result<(u128, Self), Fault> {
        let Id(merchant) = column(row, 0)?;
        Ok((merchant, Self(tail(row, 1)?)))
    }
}

/// Reads the end of a list from three columns.
pub(crate) fn tail(row: &Row, first: usize) -> Result<Tail, Fault> {
    Ok(Tail {
        last: unsigned(column(row, first)?),
        epoch: Epoch::from_bits(column::<i64>(row, first + 1)?.cast_unsigned()),
        last_before_epoch: unsigned(column(row, first + 2)?),
    })
}

/// A delivery.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DeliveryRow {
    pub(crate) version: u64,
    pub(crate) logged: DeliveryRecord,
}

impl Table for DeliveryRow {
    /// Merchant and delivery.
    type Key = (u128, u128);

    const NAME: &'static str = "deliveries";
    const KEY: &'static [Column] = &[("merchant_id", Kind::Uuid), ("id", Kind::Uuid)];
    const VALUES: &'static [Column] = &[
        ("version", Kind::Integer),
        ("endpoint_id", Kind::Uuid),
        ("event_id", Kind::Uuid),
        ("event_seq", Kind::Integer),
        ("payment_id", Kind::Uuid),
        ("trigger", Kind::Text),
        ("state", Kind::Text),
        ("attempts", Kind::Integer),
        ("due_at", Kind::Time),
        ("record", Kind::Bytes),
    ];
    const READ: &'static [&'static str] = &["version", "record"];
    const GUARD: Option<&'static str> = Some("version");

    fn key_cells((merchant, id): &Self::Key) -> Vec<Cell> {
        vec![(*merchant).into(), (*id).into()]
    }

    fn cells(&self) -> Vec<Cell> {
        let delivery = &self.logged.delivery;
        let due_at = Some(delivery.due_at).filter(|_| self.logged.state == DeliveryState::Pending);
        vec![
            self.version.into(),
            delivery.endpoint.bits().into(),
            delivery.event.bits().into(),
            delivery.event_seq.into(),
            delivery.payment.bits().into(),
            delivery.trigger.as_str().into(),
            self.logged.state.as_str().into(),
            delivery.attempts.into(),
            due_at.into(),
            record::delivery_to_bytes(&self.logged).into(),
        ]
    }

    fn guard(&self) -> u64 {
        self.version
    }

    fn read(row: &Row) -> Result<(Self::Key, Self), Fault> {
        let (Id(merchant), Id(id)) = (column(row, 0)?, column(row, 1)?);
        let logged = logged((merchant, id), column(row, 3)?)?;
        Ok(((merchant, id), Self { version: unsigned(column(row, 2)?), logged }))
    }
}

/// Reads a delivery's record.
pub(crate) fn logged(key: (u128, u128), bytes: &[u8]) -> Result<DeliveryRecord, Fault> {
    record::delivery_from_bytes(key, bytes).map_err(Fault::damaged("deliveries", DeliveryId::from_bits(key.1)))
}

/// An attempt.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AttemptRow(pub(crate) Attempt);

impl Table for AttemptRow {
    type Key = AttemptKey;

    const NAME: &'static str = "attempts";
    const KEY: &'static [Column] = &[("event_id", Kind::Uuid), ("delivery_id", Kind::Uuid), ("number", Kind::Integer)];
    const VALUES: &'static [Column] =
        &[("merchant_id", Kind::Uuid), ("outcome", Kind::Text), ("started_at", Kind::Time), ("record", Kind::Bytes)];
    const READ: &'static [&'static str] = &["record"];

    fn key_cells((event, delivery, number): &AttemptKey) -> Vec<Cell> {
        vec![(*event).into(), (*delivery).into(), (*number).into()]
    }

    fn cells(&self) -> Vec<Cell> {
        vec![
            self.0.merchant.bits().into(),
            self.0.outcome.as_str().into(),
            self.0.started_at.into(),
            record::attempt_to_bytes(self.0.clone()).into(),
        ]
    }

    fn read(row: &Row) -> Result<(AttemptKey, Self), Fault> {
        let (Id(event), Id(delivery)) = (column(row, 0)?, column(row, 1)?);
        let key = (event, delivery, u32::try_from(unsigned(column(row, 2)?)).unwrap_or(u32::MAX));
        let damaged = Fault::damaged("attempts", format!("{key:?}"));
        Ok((key, Self(record::attempt_from_bytes(key, column(row, 3)?).map_err(damaged)?)))
    }
}

/// The health of an endpoint.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct EndpointRow {
    pub(crate) version: u64,
    pub(crate) health: EndpointHealth,
}

impl Table for EndpointRow {
    type Key = u128;

    const NAME: &'static str = "endpoints";
    const KEY: &'static [Column] = &[("id", Kind::Uuid)];
    const VALUES: &'static [Column] =
        &[("version", Kind::Integer), ("is_disabled", Kind::Flag), ("record", Kind::Bytes)];
    const READ: &'static [&'static str] = &["version", "record"];
    const GUARD: Option<&'static str> = Some("version");

    fn key_cells(key: &u128) -> Vec<Cell> {
        vec![(*key).into()]
    }

    fn cells(&self) -> Vec<Cell> {
        vec![self.version.into(), self.health.disabled.is_some().into(), record::endpoint_to_bytes(&self.health).into()]
    }

    fn guard(&self) -> u64 {
        self.version
    }

    fn read(row: &Row) -> Result<(u128, Self), Fault> {
        let Id(id) = column(row, 0)?;
        Ok((id, Self { version: unsigned(column(row, 1)?), health: health(id, column(row, 2)?)? }))
    }
}

/// Reads the record of an endpoint's health.
pub(crate) fn health(endpoint: u128, bytes: &[u8]) -> Result<EndpointHealth, Fault> {
    record::endpoint_from_bytes(bytes).map_err(Fault::damaged("endpoints", EndpointId::from_bits(endpoint)))
}

/// When the first delivery to an endpoint is due, or earlier. A row is written with what was read of it; see
/// [`heads`](crate::postgres::commit::outbox).
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Head {
    pub(crate) version: u64,
    pub(crate) due_at: Timestamp,
}
