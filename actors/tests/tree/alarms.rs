//! Alarms that need hours, days or a crash: the rules are evaluated against what an engine shows in the paused time.

#[path = "../../../tests/harness/promql.rs"]
mod promql;

use super::*;
use prometheus_client::{encoding::text, registry::Registry};
use promql::Page;

/// The metrics of an engine, from now on.
pub(super) struct Watch {
    registry: Registry,
    first: Page,
}

impl Watch {
    pub(super) fn of(test: &TestEngine) -> Self {
        let mut registry = Registry::with_prefix("hivetill");
        test.engine().operations.register_metrics(&mut registry);
        let mut watch = Self { registry, first: Page::default() };
        watch.first = watch.scrape();
        watch
    }

    fn scrape(&self) -> Page {
        let mut page = String::new();
        text::encode(&mut page, &self.registry).unwrap();
        Page::of(Some(&page))
    }

    pub(super) fn fires(&self, alarm: &str) -> bool {
        promql::fires(alarm, &self.first, &self.scrape(), 600.0)
    }
}

async fn seconds(count: u64) {
    tokio::time::sleep(Duration::from_secs(count)).await;
}

#[tokio::test(start_paused = true)]
async fn a_chain_that_stands_still_raises_its_alarm_and_then_that_of_the_scanner() {
    let test = TestEngine::started(store()).await;
    let watch = Watch::of(&test);
    seconds(100).await;
    assert!(!watch.fires("HivetillChainStalled") && !watch.fires("HivetillScannerBehind"));
    seconds(40).await;
    assert!(watch.fires("HivetillChainStalled"));
    assert!(!watch.fires("HivetillScannerBehind"), "three minutes are not over");
    seconds(60).await;
    assert!(watch.fires("HivetillScannerBehind"));
    test.ledger.produce_at(BEGIN + 199, Vec::new());
    test.ledger.settle();
    seconds(5).await;
    assert!(!watch.fires("HivetillChainStalled") && !watch.fires("HivetillScannerBehind"));
}

#[tokio::test(start_paused = true)]
async fn a_jump_of_the_clock_raises_its_alarm() {
    let test = TestEngine::started(store()).await;
    seconds(60).await;
    let watch = Watch::of(&test);
    seconds(60).await;
    assert!(!watch.fires("HivetillClockJumps"));
    test.offset_seconds.store(3_600, Ordering::SeqCst);
    seconds(60).await;
    assert!(watch.fires("HivetillClockJumps"));
}

#[tokio::test(start_paused = true)]
async fn an_actor_that_crashes_raises_its_alarm() {
    let test = TestEngine::started(store()).await;
    let merchant = test.merchant().await;
    let payment = test.open(&merchant).await;
    let watch = Watch::of(&test);
    assert!(!watch.fires("HivetillCrashes"));
    test.trap.arm("payment: applied, not committed", 1);
    test.pay(payment.id);
    test.until_state(payment.id, State::Completed).await;
    assert!(watch.fires("HivetillCrashes"));
}
