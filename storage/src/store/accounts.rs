//! The Hive accounts of merchants: who has them, and which are watched.

use engine::{account::AccountName, ids::MerchantId, time::Timestamp};

use crate::store::{
    error::Read,
    topic::topic,
    wrapped::{Call, Wrapped},
};

topic! {
    /// The Hive accounts of merchants: who has them, and which are watched.
    Accounts {
        /// Returns every account that is watched, after `after` in order of name, at most `limit`.
        watched_accounts(after: Option<AccountName>, limit: usize) -> Vec<AccountName>;

        /// Returns every account that is watched, and since when, after `after` in order of name, at
        /// most `limit`.
        accounts_since(after: Option<AccountName>, limit: usize) -> Vec<(AccountName, Timestamp)>;

        /// Returns the merchants whose pending change of the account is due at `now`: it takes effect or lapses; at most
        /// `limit`.
        pending_accounts(now: Timestamp, limit: usize) -> Vec<MerchantId>;

        /// Returns the merchants that have proven an account, at most `limit`.
        proven_merchants(account: AccountName, limit: usize) -> Vec<MerchantId>;

        /// Returns accounts whose merchants left them so long before `now` that they need not be watched, at most `limit`.
        retired_accounts(now: Timestamp, limit: usize) -> Vec<AccountName>;
    }
}
