//! Names of known operations: operations added by a hard fork are skipped and counted by name.

use std::collections::BTreeMap;

/// Maximum distinct names of unknown operations; further ones are counted together.
pub const UNKNOWN_OPERATIONS_MAX: usize = 16;
/// The name for further unknown operations.
pub const OTHER_OPERATIONS: &str = "other";
/// The name for invalid names.
const MALFORMED: &str = "malformed";
/// Maximum characters of a name.
const NAME_MAX: usize = 64;

/// Returns whether `name` (without suffix) is an operation of hard fork 28.
#[rustfmt::skip]
fn is_known(name: &str) -> bool {
    matches!(
        name,
        "vote" | "comment" | "transfer" | "transfer_to_vesting" | "withdraw_vesting" | "limit_order_create"
            | "limit_order_cancel" | "feed_publish" | "convert" | "account_create" | "account_update" | "witness_update"
            | "account_witness_vote" | "account_witness_proxy" | "pow" | "custom" | "witness_block_approve"
            | "delete_comment" | "custom_json" | "comment_options" | "set_withdraw_vesting_route"
            | "limit_order_create2" | "claim_account" | "create_claimed_account" | "request_account_recovery"
            | "recover_account" | "change_recovery_account" | "escrow_transfer" | "escrow_dispute" | "escrow_release"
            | "pow2" | "escrow_approve" | "transfer_to_savings" | "transfer_from_savings"
            | "cancel_transfer_from_savings" | "custom_binary" | "decline_voting_rights" | "reset_account"
            | "set_reset_account" | "claim_reward_balance" | "delegate_vesting_shares"
            | "account_create_with_delegation" | "witness_set_properties" | "account_update2" | "create_proposal"
            | "update_proposal_votes" | "remove_proposal" | "update_proposal" | "collateralized_convert"
            | "recurrent_transfer"
    )
}

/// Returns whether `name` (without suffix) is a virtual operation of hard fork 28 or earlier.
#[rustfmt::skip]
fn is_known_virtual(name: &str) -> bool {
    matches!(
        name,
        "fill_convert_request" | "author_reward" | "curation_reward" | "comment_reward" | "liquidity_reward"
            | "interest" | "fill_vesting_withdraw" | "fill_order" | "shutdown_witness" | "fill_transfer_from_savings"
            | "hardfork" | "comment_payout_update" | "return_vesting_delegation" | "comment_benefactor_reward"
            | "producer_reward" | "clear_null_account_balance" | "proposal_pay" | "sps_fund" | "dhf_funding"
            | "hardfork_hive" | "hardfork_hive_restore" | "delayed_voting" | "consolidate_treasury_balance"
            | "effective_comment_vote" | "ineffective_delete_comment" | "sps_convert" | "dhf_conversion"
            | "expired_account_notification" | "changed_recovery_account" | "transfer_to_vesting_completed"
            | "pow_reward" | "vesting_shares_split" | "account_created" | "fill_collateralized_convert_request"
            | "system_warning" | "fill_recurrent_transfer" | "failed_recurrent_transfer" | "limit_order_cancelled"
            | "producer_missed" | "proposal_fee" | "collateralized_convert_immediate_conversion" | "escrow_approved"
            | "escrow_rejected" | "proxy_cleared" | "declined_voting_rights"
    )
}

/// Returns the name of an unknown operation in either format; `None` for a known one.
pub(super) fn unknown(name: &str) -> Option<String> {
    unless(is_known, name)
}

/// Returns the name of an unknown virtual operation; `None` for a known one.
pub(super) fn unknown_virtual(name: &str) -> Option<String> {
    unless(is_known_virtual, name)
}

fn unless(is_known: fn(&str) -> bool, name: &str) -> Option<String> {
    let name = name.strip_suffix("_operation").unwrap_or(name);
    if is_known(name) {
        return None;
    }
    let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let fits = !name.is_empty() && name.len() <= NAME_MAX && name.chars().all(is_name);
    Some(if fits { name.to_owned() } else { MALFORMED.to_owned() })
}

/// Counts an unknown operation, limiting the number of names.
pub(super) fn count(kinds: &mut BTreeMap<String, u32>, kind: &str) {
    let is_kept = kinds.contains_key(kind) || kinds.len() < UNKNOWN_OPERATIONS_MAX;
    *kinds.entry(if is_kept { kind } else { OTHER_OPERATIONS }.to_owned()).or_default() += 1;
}
