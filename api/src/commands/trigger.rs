//! `hivetill trigger`: makes a payment go through what produces an event, with play money on a development ledger.

mod lifecycle;
mod sandbox;

use reqwest::Url;

use super::{failure::Failure, output::print, rest_client::RestClient};
use sandbox::Sandbox;

/// Arguments of `hivetill trigger`.
#[derive(clap::Args)]
pub(super) struct Args {
    /// What to produce
    event: Trigger,
    /// URL of the gateway, which must follow a development ledger
    #[arg(long, value_name = "URL", env = "HIVETILL_API", default_value = "http://127.0.0.1:8080")]
    api: Url,
    /// The merchant's API key. Prefer the environment variable: other users of the host can see command lines
    #[arg(long, value_name = "KEY", env = "HIVETILL_API_KEY", hide_env_values = true)]
    api_key: String,
    /// URL of the ledger's control methods, which `hivetill dev` prints
    #[arg(long, value_name = "URL", env = "HIVETILL_CONTROL", default_value = "http://127.0.0.1:8092")]
    control: Url,
    /// URL of the ledger's JSON-RPC, for x402.settled
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8091")]
    node: String,
    /// Metadata of the payment as name=value, so that your shop finds its order; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = metadata)]
    metadata: Vec<(String, String)>,
    /// Print only the event, as one line of JSON
    #[arg(long)]
    json: bool,
}

/// Hides the key.
impl std::fmt::Debug for Args {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Args").field("event", &self.event).field("api", &self.api.as_str()).finish_non_exhaustive()
    }
}

/// An event, and what produces it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Trigger {
    /// The same as payment.completed
    #[value(name = "payment.status_changed")]
    StatusChanged,
    /// A payment is paid in full
    #[value(name = "payment.completed")]
    Completed,
    /// The shop cancels a payment
    #[value(name = "payment.user_cancelled")]
    UserCancelled,
    /// A payment expires; moves the ledger's clock two minutes ahead
    #[value(name = "payment.system_cancelled")]
    SystemCancelled,
    /// The same as payment.overpaid
    #[value(name = "payment.exception")]
    Exception,
    /// The customer pays more than the amount
    #[value(name = "payment.overpaid")]
    Overpaid,
    /// The customer pays a part of the amount
    #[value(name = "payment.underpaid")]
    Underpaid,
    /// The customer pays in the other currency
    #[value(name = "payment.wrong_currency")]
    WrongCurrency,
    /// The shop's own account pays
    #[value(name = "payment.self_transfer")]
    SelfTransfer,
    /// The customer pays a second time
    #[value(name = "payment.paid_again")]
    PaidAgain,
    /// The customer pays after the payment was cancelled
    #[value(name = "payment.paid_after_cancel")]
    PaidAfterCancel,
    /// The customer pays after the payment expired; moves the ledger's clock two minutes ahead
    #[value(name = "payment.paid_late")]
    PaidLate,
    /// An agent pays for a resource of the merchant by x402
    #[value(name = "x402.settled")]
    Settled,
    /// A paid payment is refunded
    #[value(name = "refund.completed")]
    Refunded,
    /// A customer of the proven account pays with a memo that names no payment
    #[value(name = "transfer.unmatched")]
    Unmatched,
    /// A change of the merchant's proven account is requested, and cancelled again
    #[value(name = "merchant.account_change")]
    AccountChange,
}

fn metadata(text: &str) -> Result<(String, String), &'static str> {
    let (name, value) = text.split_once('=').ok_or("must be NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Produces the event and prints it once the gateway has it.
pub(super) async fn run(args: Args) -> Result<(), Failure> {
    let client = RestClient::new(&args.api, &args.api_key)?;
    let sandbox = Sandbox::open(client, args.control, args.node, args.metadata, !args.json).await?;
    let event = lifecycle::produce(&sandbox, args.event).await?;
    if args.json {
        return print(&format!("{event}\n"));
    }
    print(&format!("{event:#}\n"))
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;
    use engine::webhook::EventType;

    use super::*;

    #[test]
    fn every_event_type_is_a_name() {
        let names: Vec<String> = Trigger::value_variants()
            .iter()
            .filter_map(|trigger| Some(trigger.to_possible_value()?.get_name().to_owned()))
            .collect();
        for kind in EventType::ALL {
            assert!(names.iter().any(|name| name == kind.as_str()), "{}", kind.as_str());
        }
    }
}
