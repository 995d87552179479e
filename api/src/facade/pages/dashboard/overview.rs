//! The overview: volume of thirty days, payments that need attention, and the health of webhooks and ledger.

use std::time::Duration;

use askama::Template;
use http::StatusCode;
use proto::{
    IntoRecord,
    v1::{self, Health},
};
use warp::reply::Response;

use crate::facade::{
    http::refusal::Refusal,
    pages::{
        dashboard::visit::{Frame, Visit, decimal, dollars, minute},
        html,
    },
    record,
};

/// Days in the chart.
const DAYS: u32 = 30;

#[derive(Template)]
#[template(path = "dashboard/overview.html")]
struct OverviewPage<'v> {
    frame: Frame<'v>,
    periods: Vec<Period>,
    bars: Vec<Bar>,
    days: Vec<Day>,
    since: String,
    opened: u64,
    median: Option<String>,
    attention: u64,
    webhook: Wellness,
    ledger: Wellness,
}

/// The health of a part: a word, whether it is healthy, and details.
pub(super) struct Wellness {
    pub(super) word: &'static str,
    pub(super) is_well: bool,
    notes: Vec<String>,
}

/// The figures of a period up to today.
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
    success: String,
    hive: String,
    hbd: String,
    usd: String,
}

/// Returns the overview.
pub(super) async fn page(visit: &Visit<'_>) -> Result<Response, Refusal> {
    let engine = &visit.facade.engine;
    let health = engine.system().get_health(visit.request(v1::GetHealthRequest {})).await?.into_inner();
    let unusual = v1::ListPaymentsRequest { unusual: Some(true), page_size: 1, ..Default::default() };
    let attention =
        engine.payments().list_payments(visit.request(unusual)).await?.into_inner().total_size.unwrap_or_default();
    let endpoint = v1::GetWebhookEndpointRequest { merchant_id: visit.merchant.id.clone(), endpoint_id: None };
    let endpoint = engine.webhook_endpoints().get_webhook_endpoint(visit.request(endpoint)).await?.into_record()?;
    let volume = engine.payments().get_volume(visit.request(v1::GetVolumeRequest { days: DAYS })).await?.into_inner();
    let page = OverviewPage {
        frame: visit.frame("overview", Vec::new()),
        periods: [("Today", 1), ("7 days", 7), ("30 days", DAYS as usize)]
            .map(|(name, count)| period(name, &volume.days, count))
            .into(),
        bars: bars(&volume.days),
        days: volume.days.iter().rev().filter(|day| day.opened > 0).map(line).collect(),
        since: volume.days.first().map(|day| date(day.day)).unwrap_or_default(),
        opened: volume.days.iter().map(|day| day.opened).sum(),
        median: volume.median_ms_to_pay.map(|ms| duration(Duration::from_millis(ms))),
        attention,
        webhook: webhook(&endpoint),
        ledger: ledger(&health),
    };
    Ok(html::page(StatusCode::OK, page.render(), None))
}

fn webhook(endpoint: &v1::WebhookEndpoint) -> Wellness {
    let (word, is_well) = match (&endpoint.url, endpoint.enabled, endpoint.failing_since) {
        (None, ..) => ("not set", true),
        (_, false, _) => ("disabled", false),
        (.., Some(_)) => ("failing", false),
        _ => ("working", true),
    };
    let times = [
        ("disabled since", endpoint.disabled_at),
        ("failing since", endpoint.failing_since),
        ("last success", endpoint.last_success_at),
    ];
    let notes = times.into_iter().filter_map(|(what, at)| Some(format!("{what} {}", minute(at?)))).collect();
    Wellness { word, is_well, notes }
}

/// The scanner: whether a node responds, and how far the ledger is scanned.
pub(super) fn ledger(health: &v1::GetHealthResponse) -> Wellness {
    let behind = health.irreversible_block.saturating_sub(health.scanned_block);
    let word = match Health::try_from(health.health) {
        Ok(Health::Ok) => "ok",
        Ok(Health::Unavailable) => "unavailable",
        _ if !health.ledger_reachable => "no node responds",
        _ if !health.ledger_followed && health.scanned_block > 0 => "another chain",
        _ if !health.ledger_followed => "starting",
        _ => "degraded",
    };
    let read = match behind {
        0 => format!("Up to date (block {})", health.scanned_block),
        1 => format!("1 block behind (at block {})", health.scanned_block),
        behind => format!("{behind} blocks behind (at block {})", health.scanned_block),
    };
    Wellness { word, is_well: word == "ok", notes: vec![read, format!("Head block {}", health.head_block)] }
}

fn success(completed: u64, ended: u64) -> Option<String> {
    let mille = completed.saturating_mul(1_000).checked_div(ended)?;
    Some(format!("{}.{} %", mille / 10, mille % 10))
}

fn period(name: &'static str, days: &[v1::DayVolume], count: usize) -> Period {
    let newest = &days[days.len().saturating_sub(count)..];
    let sum = |of: fn(&v1::DayVolume) -> u64| newest.iter().map(of).fold(0, u64::saturating_add);
    Period {
        name,
        hive: decimal(sum(|day| day.hive_units)),
        hbd: decimal(sum(|day| day.hbd_units)),
        usd: dollars(sum(|day| day.usd_cents)),
        completed: sum(|day| day.completed),
        success: success(sum(|day| day.completed), sum(|day| day.ended)),
    }
}

/// Height of the chart's area.
const HEIGHT: u64 = 140;

fn bars(days: &[v1::DayVolume]) -> Vec<Bar> {
    let most = days.iter().map(|day| day.usd_cents).max().unwrap_or(0).max(1);
    let bar = |(count, day): (usize, &v1::DayVolume)| {
        // A small volume stays visible.
        let height = u128::from(day.usd_cents) * u128::from(HEIGHT) / u128::from(most);
        let height = u64::try_from(height).unwrap_or(HEIGHT).max(u64::from(day.completed > 0) * 2);
        let title = format!("{}: {} payments, ${}", date(day.day), day.completed, dollars(day.usd_cents));
        Bar { x: i64::try_from(count).unwrap_or(0) * 20 + 2, y: HEIGHT - height, height, title }
    };
    days.iter().enumerate().map(bar).collect()
}

fn line(day: &v1::DayVolume) -> Day {
    Day {
        date: date(day.day),
        count: day.completed,
        success: success(day.completed, day.ended).unwrap_or_default(),
        hive: decimal(day.hive_units),
        hbd: decimal(day.hbd_units),
        usd: dollars(day.usd_cents),
    }
}

fn date(day: Option<proto::time::Timestamp>) -> String {
    record::instant(day).to_ledger().chars().take(10).collect()
}

fn duration(wait: Duration) -> String {
    match wait.as_secs() {
        seconds @ 0..=119 => format!("{seconds} s"),
        seconds @ 120..=7_199 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_adds_up_its_own_days() {
        let day = |number: u64, completed| v1::DayVolume {
            day: Some(proto::time::from_millis(number * 86_400_000)),
            opened: 9,
            completed,
            ended: 4,
            hbd_units: completed * 1_500,
            usd_cents: completed * 150,
            ..Default::default()
        };
        let days = [day(20_000, 1), day(20_001, 3), day(20_002, 0)];
        let shown = |count| {
            let period = period("", &days, count);
            (period.completed, period.usd, period.success.unwrap_or_default())
        };
        assert_eq!(shown(1), (0, "0.00".to_owned(), "0.0 %".to_owned()));
        assert_eq!(shown(2), (3, "4.50".to_owned(), "37.5 %".to_owned()));
        assert_eq!(shown(30), (4, "6.00".to_owned(), "33.3 %".to_owned()));
        assert!(success(0, 0).is_none());
        let heights: Vec<u64> = bars(&days).iter().map(|bar| bar.height).collect();
        assert_eq!(heights, [HEIGHT / 3, HEIGHT, 0]);
        let tiny = [v1::DayVolume { completed: 1, ..day(1, 0) }, v1::DayVolume { usd_cents: u64::MAX, ..day(2, 1) }];
        assert_eq!(bars(&tiny)[0].height, 2, "what came in is seen");
    }

    #[test]
    fn durations_are_rounded() {
        assert_eq!([9, 300, 86_400].map(|seconds| duration(Duration::from_secs(seconds))), ["9 s", "5 min", "24 h"]);
    }

    #[test]
    fn unhealthy_parts_are_marked() {
        let url = Some("https://shop.example/hook".to_owned());
        let endpoint = v1::WebhookEndpoint { url, enabled: true, ..Default::default() };
        assert_eq!((webhook(&endpoint).word, webhook(&endpoint).is_well), ("working", true));
        let failing = v1::WebhookEndpoint { failing_since: Some(proto::time::from_millis(0)), ..endpoint.clone() };
        assert_eq!((webhook(&failing).word, webhook(&failing).is_well), ("failing", false));
        let off = v1::WebhookEndpoint { enabled: false, ..failing };
        assert_eq!(webhook(&off).word, "disabled");
        let health = v1::GetHealthResponse { health: Health::Degraded.into(), ..Default::default() };
        assert_eq!((ledger(&health).word, ledger(&health).is_well), ("no node responds", false));
    }
}
