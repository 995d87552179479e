//! One payment of a wallet, as stored in its ledger and shown in reports.

use engine::{
    account::AccountName,
    hive::Transaction,
    ledger::TxId,
    money::Currency,
    time::Timestamp,
    wallet::{Approval, Spending, State},
    x402::PaymentPayload,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// One payment: the purchase, the amounts, the transaction and the outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::commands) struct Entry {
    pub(in crate::commands) id: u64,
    #[serde(with = "state_word")]
    pub(in crate::commands) state: State,
    pub(super) subject: Subject,
    pub(super) currency: Currency,
    /// Recipients with their smallest units.
    pub(super) transfers: Vec<(String, u64)>,
    pub(in crate::commands) created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) decision: Option<Decision>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) payment: Option<Payment>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(in crate::commands) outcome: Option<Outcome>,
}

/// The purchase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::commands) struct Subject {
    /// The request's identity, 64 hexadecimal digits.
    pub(super) request: String,
    pub(super) method: String,
    pub(super) url: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) idempotency_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) session_id: Option<String>,
}

/// An operator's decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Decision {
    pub(super) is_granted: bool,
    pub(super) decided_at: Timestamp,
}

/// The transaction, unsigned while the entry is reserved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::commands) struct Payment {
    /// 40 hexadecimal digits.
    pub(super) tx_id: String,
    pub(in crate::commands) expires_at: Timestamp,
    /// The name of the payment header, or of the member of a tool call's `_meta`.
    pub(in crate::commands) header: String,
    /// The JSON of the payment. With a signature it is a bearer token.
    pub(super) payload: Value,
}

/// The known facts about the outcome.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::commands) struct Outcome {
    pub(super) at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) http_status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) receipt: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) response: Option<Value>,
}

/// An unreadable entry: the file was changed by another program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an entry is damaged: {0}")]
pub(super) struct Damaged(&'static str);

impl Entry {
    /// Returns the amounts.
    pub(super) fn spending(&self) -> Result<Spending, Damaged> {
        let part = |(name, units): &(String, u64)| Some((AccountName::parse(name).ok()?, *units));
        let parts = self.transfers.iter().map(part).collect::<Option<_>>().ok_or(Damaged("a recipient"))?;
        Ok(Spending { currency: self.currency, parts })
    }

    /// Returns the operator's decision on it.
    pub(super) fn approval(&self) -> Result<Option<Approval>, Damaged> {
        let Some(decision) = &self.decision else { return Ok(None) };
        let spending = self.spending()?;
        Ok(Some(Approval { spending, is_granted: decision.is_granted, decided_at: decision.decided_at }))
    }

    /// Returns the entry for reports: without the payment header, which is a bearer token.
    pub(in crate::commands) fn describe(&self) -> Value {
        let total = self.spending().ok().and_then(|spending| spending.total());
        let mut json = json!({
            "id": self.id,
            "state": self.state.as_str(),
            "method": self.subject.method,
            "url": self.subject.url,
            "idempotencyKey": self.subject.idempotency_key,
            "description": self.subject.description,
            "sessionId": self.subject.session_id,
            "amount": total.map(|total| total.to_string()),
            "payTo": self.transfers.first().map(|(to, _)| to),
            "createdAt": self.created_at.to_string(),
        });
        if let Some(payment) = &self.payment {
            json["txId"] = payment.tx_id.as_str().into();
            json["expiresAt"] = payment.expires_at.to_string().into();
        }
        if let Some(decision) = &self.decision {
            json["decidedAt"] = decision.decided_at.to_string().into();
        }
        if let Some(outcome) = &self.outcome {
            json["outcomeAt"] = outcome.at.to_string().into();
            json["reason"] = outcome.reason.as_deref().into();
        }
        json
    }

    /// Returns the receipt and the response of the server, where it confirmed the payment.
    pub(in crate::commands) fn receipt(&self) -> Value {
        let outcome = self.outcome.clone().unwrap_or_default();
        let mut json = self.describe();
        json["receipt"] = outcome.receipt.into();
        json["response"] = outcome.response.into();
        json["httpStatus"] = outcome.http_status.into();
        json
    }
}

impl Payment {
    /// Returns the transaction's id.
    pub(in crate::commands) fn tx_id(&self) -> Result<TxId, Damaged> {
        TxId::parse(&self.tx_id).ok_or(Damaged("a transaction id"))
    }

    /// Returns the transaction.
    pub(super) fn transaction(&self) -> Result<Transaction, Damaged> {
        let payload = PaymentPayload::parse(self.payload.to_string().as_bytes());
        payload.map(|payload| payload.transaction).map_err(|_| Damaged("a payment"))
    }
}

/// Serializes states as words.
mod state_word {
    use engine::wallet::State;
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(super) fn serialize<S: Serializer>(state: &State, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(state.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<State, D::Error> {
        let word = String::deserialize(deserializer)?;
        State::parse(&word).ok_or_else(|| D::Error::custom("an unknown state"))
    }
}
