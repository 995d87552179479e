//! What produces each event.

use engine::{
    hive::PrivateKey,
    money::{Currency, Money},
};
use serde_json::{Value, json};

use super::{
    Trigger,
    sandbox::{Created, PAYER, Sandbox},
};
use crate::commands::{failure::Failure, files, rest_client::text};

/// The amount of each payment, in smallest units of HBD.
const UNITS: u64 = 1_500;

/// Goes through what produces an event, and returns it.
pub(super) async fn produce(sandbox: &Sandbox, trigger: Trigger) -> Result<Value, Failure> {
    match trigger {
        Trigger::StatusChanged | Trigger::Completed => {
            let payment = sandbox.create(UNITS, None).await?;
            pay(sandbox, &payment, UNITS).await?;
            sandbox.status(&payment, "completed").await
        }
        Trigger::UserCancelled => cancelled(sandbox).await.map(|(_, event)| event),
        Trigger::SystemCancelled => expired(sandbox).await.map(|(_, event)| event),
        Trigger::Exception | Trigger::Overpaid => {
            let payment = sandbox.create(UNITS, None).await?;
            pay(sandbox, &payment, UNITS + 500).await?;
            sandbox.exception(&payment, "overpaid").await
        }
        Trigger::Underpaid => {
            let payment = sandbox.create(UNITS, None).await?;
            pay(sandbox, &payment, UNITS - 500).await?;
            sandbox.exception(&payment, "underpaid").await
        }
        Trigger::WrongCurrency => {
            let payment = sandbox.create(UNITS, None).await?;
            sandbox.transfer(PAYER, Money::new(UNITS, Currency::Hive), &payment.memo).await?;
            sandbox.exception(&payment, "wrong_currency").await
        }
        Trigger::SelfTransfer => {
            let payment = sandbox.create(UNITS, None).await?;
            sandbox.transfer(&sandbox.account, Money::new(UNITS, Currency::Hbd), &payment.memo).await?;
            sandbox.exception(&payment, "self_transfer").await
        }
        Trigger::PaidAgain => {
            let payment = sandbox.create(UNITS, None).await?;
            pay(sandbox, &payment, UNITS).await?;
            sandbox.status(&payment, "completed").await?;
            pay(sandbox, &payment, UNITS).await?;
            sandbox.exception(&payment, "paid_again").await
        }
        Trigger::PaidAfterCancel => {
            let (payment, _) = cancelled(sandbox).await?;
            pay(sandbox, &payment, UNITS).await?;
            sandbox.exception(&payment, "paid_after_cancel").await
        }
        Trigger::PaidLate => {
            let (payment, _) = expired(sandbox).await?;
            pay(sandbox, &payment, UNITS).await?;
            sandbox.exception(&payment, "paid_late").await
        }
        Trigger::Settled => settled(sandbox).await,
        Trigger::Refunded => refunded(sandbox).await,
        Trigger::Unmatched => unmatched(sandbox).await,
        Trigger::AccountChange => account_change(sandbox).await,
    }
}

/// Pays as a customer.
async fn pay(sandbox: &Sandbox, payment: &Created, units: u64) -> Result<(), Failure> {
    sandbox.transfer(PAYER, Money::new(units, Currency::Hbd), &payment.memo).await
}

async fn cancelled(sandbox: &Sandbox) -> Result<(Created, Value), Failure> {
    let payment = sandbox.create(UNITS, None).await?;
    sandbox.step(&format!("cancelling {}", payment.id))?;
    sandbox.post(&["payments", &payment.id, "cancel"], None).await?;
    let event = sandbox.status(&payment, "user_cancelled").await?;
    Ok((payment, event))
}

async fn expired(sandbox: &Sandbox) -> Result<(Created, Value), Failure> {
    let payment = sandbox.create(UNITS, Some(60)).await?;
    sandbox.step("moving the ledger's clock two minutes ahead, for good")?;
    sandbox.control("advance_time", json!({ "seconds": 120, "blocks": 6 })).await?;
    let event = sandbox.status(&payment, "system_cancelled").await?;
    Ok((payment, event))
}

/// The resource that an agent pays for.
const RESOURCE: &str = "https://shop.example/report";

/// Settles a payment of an agent for a resource on a server of the merchant.
async fn settled(sandbox: &Sandbox) -> Result<Value, Failure> {
    let nonce = hex::encode(files::random::<16>());
    let accepted = json!({
        "scheme": "exact", "network": "hive:mainnet", "amount": UNITS.to_string(), "asset": "HBD",
        "payTo": sandbox.account, "maxTimeoutSeconds": 60, "extra": {},
        // The resource of the payload is the payer's; this one is the seller's.
        "resource": RESOURCE,
    });
    sandbox.step(&format!("{PAYER} signs a payment of 1.500 HBD for a resource"))?;
    let money = Money::new(UNITS, Currency::Hbd);
    let signed = sandbox.sign(&key_of(sandbox, PAYER).await?, money, &format!("x402:{nonce}")).await?;
    let signed: Value = serde_json::from_str(&signed.to_condenser_json())
        .map_err(|_| Failure::Other("the transaction is no JSON".to_owned()))?;
    let body = json!({
        "x402Version": 2,
        "paymentRequirements": accepted,
        "paymentPayload": {
            "x402Version": 2,
            "accepted": accepted,
            "resource": { "url": RESOURCE, "description": "A report", "mimeType": "application/json" },
            "payload": { "signedTransaction": signed, "nonce": nonce },
        },
    });
    let outcome = sandbox.post(&["x402", "settle"], Some(&body)).await?;
    if outcome["success"] != true {
        let (reason, message) = (text(&outcome, "errorReason"), text(&outcome, "errorMessage"));
        return Err(Failure::Other(format!("the settlement was refused: {reason} {message}")));
    }
    let transaction = text(&outcome, "txId").to_owned();
    sandbox.event("x402.settled", |data| data["txId"] == transaction.as_str()).await
}

/// Returns the active key of a funded account, which the development ledger knows.
async fn key_of(sandbox: &Sandbox, account: &str) -> Result<PrivateKey, Failure> {
    let accounts = sandbox.control("accounts", json!({})).await?;
    let found = accounts.as_array().into_iter().flatten().find(|each| each["name"] == account);
    let wif = found.and_then(|found| found["keys"]["active"].as_str());
    let wif = wif.ok_or_else(|| Failure::Other(format!("the ledger has no key of {account}")))?;
    PrivateKey::from_wif(wif).map_err(|_| Failure::Other(format!("the ledger has no valid key of {account}")))
}

/// Refunds a paid payment from the merchant's account.
async fn refunded(sandbox: &Sandbox) -> Result<Value, Failure> {
    let payment = sandbox.create(UNITS, None).await?;
    pay(sandbox, &payment, UNITS).await?;
    sandbox.status(&payment, "completed").await?;
    sandbox.step(&format!("{} refunds 1.500 HBD", sandbox.account))?;
    let amount = Money::new(UNITS, Currency::Hbd).to_string();
    let refund = json!({
        "from": sandbox.account, "to": PAYER, "amount": amount, "memo": format!("refund-{}", payment.id),
    });
    sandbox.control("transfer", refund).await?;
    sandbox.event("refund.completed", |data| data["id"] == payment.id.as_str()).await
}

/// Pays the merchant without naming a payment.
async fn unmatched(sandbox: &Sandbox) -> Result<Value, Failure> {
    require_proof(sandbox, "transfers to it that match no payment make no event")?;
    let memo = format!("order {}", hex::encode(files::random::<8>()));
    sandbox.transfer(PAYER, Money::new(UNITS, Currency::Hbd), &memo).await?;
    sandbox.event("transfer.unmatched", |data| data["memo"] == memo.as_str()).await
}

/// Fails unless the merchant has proven its account.
fn require_proof(sandbox: &Sandbox, what: &str) -> Result<(), Failure> {
    if sandbox.is_proven {
        return Ok(());
    }
    Err(Failure::Other(format!(
        "the account {} is not proven: {what}. Prove it first: docs/how-to/prove-an-account.md",
        sandbox.account
    )))
}

async fn account_change(sandbox: &Sandbox) -> Result<Value, Failure> {
    require_proof(sandbox, "its change takes effect at once, without an event")?;
    let other = if sandbox.account == PAYER { "bob" } else { PAYER };
    sandbox.step(&format!("requesting the change of the account to {other}"))?;
    sandbox.post(&["merchants", &sandbox.merchant], Some(&json!({ "hiveAccount": other }))).await?;
    let event = sandbox.event("merchant.account_change", |data| data["change"] == "requested").await;
    sandbox.step("cancelling the change")?;
    sandbox.delete(&["merchants", &sandbox.merchant, "pending-account"]).await?;
    event
}
