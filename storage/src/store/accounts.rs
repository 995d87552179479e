//! The Hive accounts of merchants and the list of watched accounts.

use engine::{account::AccountName, ids::MerchantId, time::Timestamp};

use crate::store::{
    error::Read,
    topic::topic,
    wrapped::{Call, Wrapped},
};

topic! {
    /// The Hive accounts of merchants and the list of watched accounts.
    Accounts {
        /// Returns at most `limit` watched accounts after `after`, in order of name.
        watched_accounts(after: Option<AccountName>, limit: usize) -> Vec<AccountName>;

        /// Returns at most `limit` accounts that were watched for the first time after the position `after`, each with its
        /// position, in order.
        accounts_added(after: u64, limit: usize) -> Vec<(u64, AccountName)>;

        /// Returns at most `limit` watched accounts after `after`, in order of name, each with the time since which it
        /// is watched.
        accounts_since(after: Option<AccountName>, limit: usize) -> Vec<(AccountName, Timestamp)>;

        /// Returns at most `limit` merchants whose pending change of account is due at `now`, because it takes effect
        /// or lapses.
        pending_accounts(now: Timestamp, limit: usize) -> Vec<MerchantId>;

        /// Returns at most `limit` merchants that have proven an account.
        proven_merchants(account: AccountName, limit: usize) -> Vec<MerchantId>;

        /// Returns at most `limit` accounts that no merchant has had for so long before `now` that they need not be
        /// watched.
        retired_accounts(now: Timestamp, limit: usize) -> Vec<AccountName>;
    }
}
