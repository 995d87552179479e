//! `admin payment`: shows a payment of any merchant with its timeline, for support.

use engine::money::Money;
use proto::{ApiError, Caller, Engine, v1};
use serde_json::json;

use super::{
    failure::Failure,
    output::print,
    target::{Target, call_engine},
};
use crate::facade::{
    currency,
    timeline::{self, Step},
};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,
    /// Id of the payment, pay_…
    #[arg(value_name = "ID")]
    payment: String,
    /// Print one line of JSON
    #[arg(long)]
    json: bool,
}

/// Prints the payment; the audit log records the access.
pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let config = args.target.load()?;
    let request = v1::InspectPaymentRequest { payment_id: args.payment };
    let inspect = async |engine: Engine| {
        let found = engine.payments().inspect_payment(Caller::default().request(request)).await?.into_inner();
        Ok(found.payment.unwrap_or_default())
    };
    let payment = call_engine(&config, false, inspect).await?;
    let steps = timeline::of(&payment).map_err(Failure::Refused)?;
    if args.json {
        let steps: Vec<_> = steps.iter().map(|step| json!({ "at": step.at.to_string(), "event": step.what })).collect();
        let record = timeline::record(config.optional("base_url").unwrap_or_default(), &payment);
        let record = record.map_err(Failure::Refused)?;
        return print(&format!("{}\n", json!({ "payment": record, "timeline": steps })));
    }
    print(&page(&payment, &steps).map_err(Failure::Refused)?)
}

fn page(payment: &v1::Payment, steps: &[Step]) -> Result<String, ApiError> {
    let currency = currency(payment.currency)?;
    let money = |units| Money::new(units, currency);
    let mut text = format!(
        "Payment {}, {} ({})\n  merchant  {} ({})\n  pay to    @{}, memo {}\n  amount    {}, received {}, remaining {}\n",
        payment.id,
        timeline::status(payment),
        payment.status_reason().rest_name().unwrap_or("no transfer yet"),
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
    Ok(text)
}
