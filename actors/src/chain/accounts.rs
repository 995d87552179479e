//! A cache of accounts as nodes last described them: sufficient to check a signature, not to complete a payment.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use engine::{account::AccountName, time::Timestamp};
use tokio::sync::Semaphore;

use crate::{
    chain::nodes::pool::{Nodes, NodesError},
    environment::Account,
};

/// How long a description, or the absence of an account, is cached.
const FRESH: Duration = Duration::from_secs(30);
const FRESH_ABSENCE: Duration = Duration::from_secs(3);
/// Maximum number of cached accounts; the oldest are evicted first.
const CAPACITY: usize = 20_000;
/// Concurrent requests to nodes.
const MAX_ASKING: usize = 64;

/// The recently requested accounts.
pub(crate) struct Accounts {
    known: Mutex<BTreeMap<AccountName, Known>>,
    asking: Semaphore,
}

#[derive(Clone)]
struct Known {
    at: Timestamp,
    account: Option<Arc<Account>>,
}

impl Default for Accounts {
    fn default() -> Self {
        Self { known: Mutex::default(), asking: Semaphore::new(MAX_ASKING) }
    }
}

impl Accounts {
    /// Returns those of the accounts that exist; requests the accounts that are not cached from a node.
    pub(crate) async fn get(
        &self,
        names: &BTreeSet<AccountName>,
        nodes: &Nodes,
        now: Timestamp,
    ) -> Result<BTreeMap<AccountName, Arc<Account>>, NodesError> {
        let mut found = BTreeMap::new();
        let mut missing = Vec::new();
        {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            for name in names {
                match known.get(name).filter(|known| known.is_fresh(now)) {
                    Some(Known { account: Some(account), .. }) => drop(found.insert(*name, Arc::clone(account))),
                    Some(_) => {}
                    None => missing.push(*name),
                }
            }
        }
        if missing.is_empty() {
            return Ok(found);
        }
        let _place = self.asking.acquire().await.expect("the semaphore is never closed");
        let answered = nodes.accounts(missing.clone()).await?;
        let answered: BTreeMap<_, _> = answered.into_iter().map(|account| (account.name, account)).collect();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for name in missing {
            let account = answered.get(&name).cloned().map(Arc::new);
            if let Some(account) = &account {
                found.insert(name, Arc::clone(account));
            }
            known.insert(name, Known { at: now, account });
        }
        if known.len() > CAPACITY {
            known.retain(|_, known| known.is_fresh(now));
        }
        while known.len() > CAPACITY {
            known.pop_first();
        }
        Ok(found)
    }
}

impl Known {
    fn is_fresh(&self, now: Timestamp) -> bool {
        let limit = if self.account.is_some() { FRESH } else { FRESH_ABSENCE };
        now.since(self.at) < limit
    }
}
