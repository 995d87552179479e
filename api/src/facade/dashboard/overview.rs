//! The overview: what came in over thirty days, what needs a look, and how everything is.

use std::collections::BTreeMap;

use askama::Template;
use engine::money::Currency;
use http::StatusCode;
use proto::v1::{self, Health, PaymentStatus};
use warp::reply::Response;

use super::{
    super::{Refusal, pages, record},
    Frame, Visit, decimal,
};

/// The days of the chart.
const DAYS: i64 = 30;
const DAY_MS: i64 = 86_400_000;
/// Payments that are read for the figures; beyond, the page says that they are of the newest only.
const MAX_READ: usize = 5_000;

#[derive(Template)]
#[template(path = "dashboard/overview.html")]
struct OverviewPage<'v> {
    frame: Frame<'v>,
    periods: Vec<Period>,
    bars: Vec<Bar>,
    days: Vec<Day>,
    median: Option<String>,
    attention: u64,
    is_capped: bool,
    engine: &'static str,
    head_block: u32,
    behind: u32,
    webhook: &'static str,
}

/// The figures of some days up to today.
struct Period {
    name: &'static str,
    hive: String,
    hbd: String,
    usd: String,
    completed: u64,
    success: Option<String>,
}

struct Bar {
    x: i64,
    y: u64,
    height: u64,
    title: String,
}

struct Day {
    date: String,
    count: u64,
    hive: String,
    hbd: String,
    usd: String,
}

/// The sums of a day or of several.
#[derive(Default, Clone, Copy)]
struct Sums {
    hive: u64,
    hbd: u64,
    cents: u64,
    completed: u64,
    ended: u64,
}

impl Sums {
    fn add(&mut self, payment: &v1::Payment) {
        let status = PaymentStatus::try_from(payment.status).unwrap_or_default();
        let is_open = matches!(status, PaymentStatus::Pending | PaymentStatus::Processing | PaymentStatus::Unspecified);
        self.ended += u64::from(!is_open);
        if status != PaymentStatus::Completed {
            return;
        }
        self.completed += 1;
        self.cents += payment.usd_cents;
        match record::currency(payment.currency) {
            Currency::Hive => self.hive += payment.amount_units,
            Currency::Hbd => self.hbd += payment.amount_units,
        }
    }
}

fn dollars(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// Answers with the overview.
pub(super) async fn page(visit: &Visit<'_>) -> Result<Response, Refusal> {
    let engine = &visit.facade.engine;
    let health = engine.system().get_health(visit.request(v1::GetHealthRequest {})).await?.into_inner();
    let unusual = v1::ListPaymentsRequest { unusual: Some(true), limit: 1, ..Default::default() };
    let attention = engine.payments().list_payments(visit.request(unusual)).await?.into_inner().total;
    let endpoint = v1::GetWebhookEndpointRequest { merchant_id: visit.merchant.id.clone() };
    let endpoint = engine.webhook_endpoints().get_webhook_endpoint(visit.request(endpoint)).await?.into_inner();
    let (payments, is_capped) = recent(visit).await?;

    let mut days: BTreeMap<i64, Sums> = BTreeMap::new();
    let mut waits: Vec<i64> = Vec::new();
    let today = payments.iter().map(|payment| payment.read_at_ms).max().unwrap_or(0).div_euclid(DAY_MS);
    for day in (today - DAYS + 1).max(0)..=today {
        days.insert(day, Sums::default());
    }
    for payment in &payments {
        if let Some(sums) = days.get_mut(&payment.created_at_ms.div_euclid(DAY_MS)) {
            sums.add(payment);
        }
        waits.extend(payment.completed_at_ms.map(|at| (at - payment.created_at_ms).max(0)));
    }
    waits.sort_unstable();
    let page = OverviewPage {
        frame: visit.frame("overview", Vec::new()),
        periods: [("Today", 1), ("7 days", 7), ("30 days", DAYS)]
            .map(|(name, count)| period(name, &days, today, count))
            .into(),
        bars: bars(&days),
        days: days.iter().rev().filter(|(_, sums)| sums.ended > 0).map(|(day, sums)| line(*day, sums)).collect(),
        median: waits.get(waits.len() / 2).map(|ms| duration(*ms)),
        attention,
        is_capped,
        engine: match Health::try_from(health.health) {
            Ok(Health::Ok) => "ok",
            Ok(Health::Unavailable) => "unavailable",
            _ => "degraded",
        },
        head_block: health.head_block,
        behind: health.irreversible_block.saturating_sub(health.scanned_block),
        webhook: match (endpoint.url.is_some(), endpoint.enabled) {
            (false, _) => "not set",
            (true, true) => "enabled",
            (true, false) => "disabled",
        },
    };
    Ok(pages::html(StatusCode::OK, page.render(), None))
}

/// Reads the payments of the last days, newest first, and says whether there are more than are read.
async fn recent(visit: &Visit<'_>) -> Result<(Vec<v1::Payment>, bool), Refusal> {
    let mut payments: Vec<v1::Payment> = Vec::new();
    let mut cursor = None;
    loop {
        let asked = v1::ListPaymentsRequest { limit: 100, cursor, ..Default::default() };
        let found = visit.facade.engine.payments().list_payments(visit.request(asked)).await?.into_inner();
        payments.extend(found.payments);
        let now = payments.first().map_or(0, |payment| payment.read_at_ms);
        let is_past = payments.last().is_none_or(|payment| payment.created_at_ms < now - (DAYS + 1) * DAY_MS);
        match found.next_cursor {
            Some(next) if !is_past && payments.len() < MAX_READ => cursor = Some(next),
            more => return Ok((payments, more.is_some() && !is_past)),
        }
    }
}

fn period(name: &'static str, days: &BTreeMap<i64, Sums>, today: i64, count: i64) -> Period {
    let mut all = Sums::default();
    for sums in days.range(today - count + 1..=today).map(|(_, sums)| sums) {
        all.hive += sums.hive;
        all.hbd += sums.hbd;
        all.cents += sums.cents;
        all.completed += sums.completed;
        all.ended += sums.ended;
    }
    let success =
        (all.completed * 1_000).checked_div(all.ended).map(|mille| format!("{}.{} %", mille / 10, mille % 10));
    Period {
        name,
        hive: decimal(all.hive),
        hbd: decimal(all.hbd),
        usd: dollars(all.cents),
        completed: all.completed,
        success,
    }
}

/// Height of the chart's area.
const HEIGHT: u64 = 140;

fn bars(days: &BTreeMap<i64, Sums>) -> Vec<Bar> {
    let most = days.values().map(|sums| sums.cents).max().unwrap_or(0).max(1);
    let bar = |(count, (day, sums)): (usize, (&i64, &Sums))| {
        // What came in is seen, however little it was.
        let height = (sums.cents * HEIGHT / most).max(u64::from(sums.completed > 0) * 2);
        let title = format!("{}: {} payments, ${}", date(*day), sums.completed, dollars(sums.cents));
        Bar { x: i64::try_from(count).unwrap_or(0) * 20 + 2, y: HEIGHT - height, height, title }
    };
    days.iter().enumerate().map(bar).collect()
}

fn line(day: i64, sums: &Sums) -> Day {
    Day {
        date: date(day),
        count: sums.completed,
        hive: decimal(sums.hive),
        hbd: decimal(sums.hbd),
        usd: dollars(sums.cents),
    }
}

fn date(day: i64) -> String {
    record::instant(day * DAY_MS).to_ledger().chars().take(10).collect()
}

fn duration(ms: i64) -> String {
    match ms / 1_000 {
        seconds @ 0..=119 => format!("{seconds} s"),
        seconds @ 120..=7_199 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_payments_count_for_nothing_and_only_completed_ones_for_money() {
        let mut sums = Sums::default();
        for status in 1..=6 {
            let payment = v1::Payment {
                status,
                amount_units: 1_500,
                usd_cents: 150,
                currency: v1::Currency::Hbd.into(),
                ..Default::default()
            };
            sums.add(&payment);
        }
        assert_eq!((sums.completed, sums.ended, sums.hbd, sums.hive, sums.cents), (1, 4, 1_500, 0, 150));
        let days = BTreeMap::from([(20_000, sums), (20_001, Sums::default())]);
        let figures = period("7 days", &days, 20_001, 7);
        assert_eq!((figures.success.as_deref(), figures.usd.as_str()), (Some("25.0 %"), "1.50"));
        let bars = bars(&days);
        assert_eq!((bars[0].height, bars[1].height, bars.len()), (HEIGHT, 0, 2));
        assert!(period("Today", &days, 20_001, 1).success.is_none());
    }

    #[test]
    fn waiting_times_are_told_roughly() {
        assert_eq!([9_000, 300_000, 86_400_000].map(duration), ["9 s", "5 min", "24 h"]);
    }
}
