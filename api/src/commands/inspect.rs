//! `admin payment`: any merchant's payment with its timeline, for support.

use std::path::PathBuf;

use engine::money::{Currency, Money};
use proto::{Caller, Engine, v1};
use serde_json::json;

use super::{
    Failure, admin, logs,
    running::Running,
    say,
    settings::{EngineFlags, SettingsArgs, push},
};
use crate::facade::timeline::{self, Step};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    engine: EngineFlags,
    /// Asks a running engine instead of opening the data directory (setting engine_url)
    #[arg(long, value_name = "URL")]
    engine_url: Option<String>,
    /// The payment's id, pay_…
    #[arg(value_name = "ID")]
    payment: String,
    /// Prints one line of JSON
    #[arg(long)]
    json: bool,
}

/// Prints the payment; the audit log records that the operator read it.
pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let mut flags = args.engine.into_settings();
    push(&mut flags, "engine_url", args.engine_url);
    let color = args.settings.color();
    let config = args.settings.load(flags)?;
    logs::start(&config, color);
    let request = v1::InspectPaymentRequest { payment_id: args.payment };
    let data = PathBuf::from(config.text("data_dir"));
    let payment = match admin::reachable(&config, &data)? {
        Some(transport) => inspect(&Engine::new(transport), request).await?,
        None => {
            let running = Running::start(&config, &data, false).await.map_err(admin::explain)?;
            let inspected = inspect(&Engine::new(running.service().in_process()), request).await;
            running.end(Vec::new()).await;
            inspected?
        }
    };
    let steps = timeline::of(&payment);
    if args.json {
        let steps: Vec<_> = steps.iter().map(|step| json!({ "at": step.at.to_string(), "event": step.what })).collect();
        let record = timeline::record(config.optional("base_url").unwrap_or_default(), &payment);
        return say(&format!("{}\n", json!({ "payment": record, "timeline": steps })));
    }
    say(&page(&payment, &steps))
}

async fn inspect(engine: &Engine, request: v1::InspectPaymentRequest) -> Result<v1::Payment, Failure> {
    let found = engine.payments().inspect_payment(Caller::default().request(request)).await?.into_inner();
    Ok(found.payment.unwrap_or_default())
}

fn page(payment: &v1::Payment, steps: &[Step]) -> String {
    let currency = if payment.currency == v1::Currency::Hive as i32 { Currency::Hive } else { Currency::Hbd };
    let money = |units| Money::new(units, currency);
    let mut text = format!(
        "Payment {}, {} ({})\n  merchant  {} ({})\n  pays to   @{}, memo {}\n  amount    {}, received {}, missing {}\n",
        payment.id,
        timeline::status(payment),
        payment.status_reason.as_deref().unwrap_or("waiting"),
        payment.merchant_id,
        payment.merchant_name,
        payment.pay_to,
        payment.memo,
        money(payment.amount_units),
        money(payment.amount_paid_units),
        money(payment.amount_remaining_units),
    );
    let exceptions = timeline::exceptions(payment);
    if !exceptions.is_empty() {
        text.push_str(&format!("  exceptions {}\n", exceptions.join(", ")));
    }
    for step in steps {
        text.push_str(&format!("{}  {}\n", step.at, step.what));
    }
    let listed = payment.transfers.len() as u64;
    if payment.transfer_count > listed {
        text.push_str(&format!("{} older transfers are not shown\n", payment.transfer_count - listed));
    }
    text
}
