//! Metrics that are read at each scrape: the state of the ledger, and the queue of writes.

use std::{fmt, sync::Arc};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, gauge::ConstGauge},
};
use tokio::sync::Semaphore;

use crate::{
    chain::{ledger::Ledger, rates},
    context::Context,
};

/// Reads the state of the ledger at each scrape.
pub(crate) struct LedgerCollector {
    pub(crate) context: Arc<Context>,
    pub(crate) ledger: Arc<Ledger>,
    /// Permits of the write queue.
    pub(crate) waiting: Arc<Semaphore>,
}

impl fmt::Debug for LedgerCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LedgerCollector")
    }
}

impl Collector for LedgerCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let (context, ledger) = (&self.context, &self.ledger);
        let status = ledger.view.status();
        // The current head block may be unknown here; the clock is known.
        let scanned = ledger.view.irreversible_time();
        let lag = if ledger.view.has_cursor() { context.env.clock.now().since(scanned).as_secs() } else { 0 };
        let lag_blocks = status.irreversible_num.saturating_sub(status.scanned_num);
        let waiting = context.settings.max_waiting_calls.saturating_sub(self.waiting.available_permits());
        for (name, help, value) in [
            ("ledger_reachable", "Whether the last poll of the ledger succeeded", u64::from(status.is_reachable)),
            ("ledger_head_block", "Head block", status.head_num.into()),
            ("ledger_irreversible_block", "Last irreversible block", status.irreversible_num.into()),
            ("scanner_block", "Last block whose transfers are all credited", status.scanned_num.into()),
            ("scanner_lag_blocks", "Irreversible blocks that the scanner has not read", lag_blocks.into()),
            ("scanner_lag_seconds", "Age of the last block whose transfers are all credited, in seconds", lag),
            (
                "ledger_head_age_seconds",
                "Time since the head block of a majority of the nodes last changed, in seconds",
                ledger.nodes.head_age().unwrap_or_default().as_secs(),
            ),
            ("waiting_calls", "Writes queued in the engine", waiting as u64),
        ] {
            let gauge = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
            gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
        }
        if let Some(hbd) = ledger.rate().and_then(|rate| rate.hbd) {
            let is_off = i64::from(!hbd.is_within(context.settings.hbd_peg.percent));
            let help = "Price of 1 HBD on the internal market, in US dollars";
            ConstGauge::new(rates::usd(hbd)).encode(encoder.encode_descriptor(
                "hbd_usd",
                help,
                None,
                MetricType::Gauge,
            )?)?;
            let help = "Whether HBD deviates from its peg by more than ledger.hbd_peg_percent";
            ConstGauge::new(is_off).encode(encoder.encode_descriptor(
                "hbd_off_peg",
                help,
                None,
                MetricType::Gauge,
            )?)?;
        }
        Ok(())
    }
}
