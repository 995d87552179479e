//! The ledger as the other domains see it: nodes, accounts, prices, scan progress, watched accounts.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
};

use engine::{
    account::AccountName,
    hive::Authority,
    ledger::Head,
    money::HbdPrice,
    mutant,
    payment::{FeeMode, Rate},
};
use storage::ReadError;

use crate::{
    chain::{
        accounts::Accounts,
        ledger_view::LedgerView,
        nodes::pool::{Nodes, NodesError},
    },
    context::Context,
    environment::Account,
};

/// The ledger as the other domains see it.
pub(crate) struct Ledger {
    context: Arc<Context>,
    pub(crate) nodes: Nodes,
    accounts: Accounts,
    pub(crate) view: LedgerView,
    pub(crate) watched: Watched,
    rate: Mutex<Option<Rate>>,
    /// The last watched account, in the order in which accounts were added to the store.
    added: AtomicU64,
}

/// Accounts read at once.
const WATCHED_PAGE: usize = 10_000;

impl Ledger {
    pub(crate) fn new(context: Arc<Context>) -> Arc<Self> {
        let nodes = Nodes::new(&context.env, &context.settings, &context.metrics);
        Arc::new(Self {
            context,
            nodes,
            accounts: Accounts::default(),
            view: LedgerView::default(),
            watched: Watched::default(),
            rate: Mutex::new(None),
            added: AtomicU64::new(0),
        })
    }

    /// Records the newest head block.
    pub(crate) fn record_head(&self, head: Head) {
        self.view.record_head(head);
        self.context.clock.record_head(head.time);
    }

    /// Returns the latest prices.
    pub(crate) fn rate(&self) -> Option<Rate> {
        *self.rate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the rates of new payments. HBD counts as one dollar within the bounds of its peg, without a rate.
    pub(crate) fn quoting_rate(&self) -> Option<Rate> {
        let is_off = |price: &HbdPrice| !price.is_within(self.context.settings.hbd_peg.percent);
        let rate = self.rate()?;
        Some(Rate { hbd: rate.hbd.filter(is_off).filter(|_| !mutant!("hbd-is-always-a-dollar")), ..rate })
    }

    pub(crate) fn set_rate(&self, rate: Rate) {
        if mutant!("hive-price-never-renewed") && self.rate().is_some() {
            return;
        }
        *self.rate.lock().unwrap_or_else(PoisonError::into_inner) = Some(rate);
    }

    /// Watches every account in the store.
    pub(crate) async fn watch_all(&self) -> Result<(), ReadError> {
        if let FeeMode::Split { account } = &self.context.settings.fee_mode {
            self.watched.extend([*account]);
        }
        // Read before the others: accounts that are added meanwhile are added again.
        self.watch_added().await?;
        let mut after = None;
        loop {
            let page = self.context.env.store.watched_accounts(after, WATCHED_PAGE).await?;
            after = page.last().cloned();
            self.watched.extend(page);
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// Watches the accounts that were added to the store since the last call, by this engine or another.
    pub(crate) async fn watch_added(&self) -> Result<(), ReadError> {
        loop {
            let known = self.added.load(Ordering::Relaxed);
            let added = self.context.env.store.accounts_added(known, WATCHED_PAGE).await?;
            let Some((last, _)) = added.last() else { return Ok(()) };
            let last = *last;
            self.watched.extend(added.into_iter().map(|(_, account)| account));
            self.added.fetch_max(last, Ordering::Relaxed);
        }
    }

    /// Returns those of the accounts that exist, as a node recently described them.
    pub(crate) async fn accounts(
        &self,
        names: &BTreeSet<AccountName>,
    ) -> Result<BTreeMap<AccountName, Arc<Account>>, NodesError> {
        self.accounts.get(names, &self.nodes, self.context.now()).await
    }

    /// Returns the active authorities of those of the accounts that exist, confirmed by a majority of nodes.
    pub(crate) async fn authorities(
        &self,
        names: &BTreeSet<AccountName>,
    ) -> Result<BTreeMap<AccountName, Authority>, NodesError> {
        let accounts = self.nodes.accounts(names.iter().copied().collect()).await?;
        Ok(accounts.into_iter().map(|account| (account.name, account.active)).collect())
    }
}

/// The watched accounts.
#[derive(Debug, Default)]
pub(crate) struct Watched(RwLock<BTreeSet<AccountName>>);

impl Watched {
    pub(crate) fn contains(&self, account: &AccountName) -> bool {
        self.0.read().unwrap_or_else(PoisonError::into_inner).contains(account)
    }

    pub(crate) fn remove(&self, account: &AccountName) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).remove(account);
    }

    pub(crate) fn extend(&self, accounts: impl IntoIterator<Item = AccountName>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).extend(accounts);
    }
}
