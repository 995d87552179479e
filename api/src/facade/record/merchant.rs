//! The record of a merchant, with the verification status of its Hive account.

use engine::time::Timestamp;
use proto::v1;
use serde::Serialize;

use super::{
    names::{network_name, proof_method_name, verification_name},
    schema::Text,
    value::instant,
};

/// The record of a merchant.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Merchant<'a> {
    id: &'a str,
    name: &'a str,
    hive_account: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    icon_url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook_url: Option<&'a str>,
    webhook_events: Vec<&'static str>,
    support_url: Option<&'a str>,
    is_active: bool,
    created_at: Text<Timestamp>,
    x402_enabled: bool,
    restart_enabled: bool,
    api_key_last4: &'a str,
    api_key_created_at: Text<Timestamp>,
    api_key_last_used_at: Option<Text<Timestamp>>,

    // Aliases of the fields above, for published clients.
    hive_account_name: &'a str,
    active: bool,
    privileges: &'static [&'static str],

    account_verified: bool,
    account_verification: &'static str,
    account_verified_at: Option<Text<Timestamp>>,
    account_verified_by: Option<&'static str>,
    pending_account: Option<PendingAccount<'a>>,

    livemode: bool,
    network: &'static str,

    /// Whether a compliance hold is active; for admins only.
    #[serde(skip_serializing_if = "Option::is_none")]
    flagged: Option<bool>,
}

impl<'a> Merchant<'a> {
    pub(crate) fn of(merchant: &'a v1::Merchant) -> Self {
        Self {
            id: &merchant.id,
            name: &merchant.name,
            hive_account: &merchant.hive_account,
            icon_url: merchant.icon_url.as_deref(),
            webhook_url: merchant.webhook_url.as_deref(),
            webhook_events: merchant.webhook_events().filter_map(v1::EventType::rest_name).collect(),
            support_url: merchant.support_url.as_deref(),
            is_active: merchant.active,
            created_at: Text(instant(merchant.created_at)),
            x402_enabled: merchant.x402_enabled,
            restart_enabled: merchant.restart_enabled,
            api_key_last4: &merchant.api_key_last4,
            api_key_created_at: Text(instant(merchant.api_key_created_at)),
            api_key_last_used_at: merchant.api_key_last_used_at.map(|at| Text(instant(at))),
            hive_account_name: &merchant.hive_account,
            active: merchant.active,
            privileges: if merchant.admin { &["admin"] } else { &[] },
            account_verified: merchant.account_verification() == v1::AccountVerification::Verified,
            account_verification: verification_name(merchant.account_verification()),
            account_verified_at: merchant.account_verified_at.map(|at| Text(instant(at))),
            account_verified_by: proof_method_name(merchant.account_verified_by()),
            pending_account: merchant.pending_account.as_ref().map(PendingAccount::of),
            livemode: merchant.livemode,
            network: network_name(merchant.network()),
            flagged: merchant.flagged,
        }
    }
}

/// A change of a proven account that has not taken effect.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PendingAccount<'a> {
    hive_account: &'a str,
    requested_at: Text<Timestamp>,
    effective_at: Text<Timestamp>,
    current_proven: bool,
    new_proven: bool,
}

impl<'a> PendingAccount<'a> {
    fn of(pending: &'a v1::PendingAccount) -> Self {
        Self {
            hive_account: &pending.hive_account,
            requested_at: Text(instant(pending.requested_at)),
            effective_at: Text(instant(pending.effective_at)),
            current_proven: pending.current_proven,
            new_proven: pending.new_proven,
        }
    }
}
