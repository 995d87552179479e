//! The Hive side of a simulation: one chain, several nodes with faults, and the faults of blocks.

pub(crate) mod health;
pub(crate) mod nodes;

use std::{collections::BTreeMap, time::Duration};

use actors::environment::NodeError;
use engine::{
    account::AccountName,
    hive::{
        AccountAuthorities, Asset, Authority, ChainId, Operation, Pack, PrivateKey, PublicKey, Role, Signature,
        Transaction, Transfer as TransferOp, tapos_of,
    },
    ledger::{Block, Transfer, TxId},
    money::{Currency, HivePrice, Money},
    time::Timestamp,
};

use crate::{
    client_state::KEYED,
    ledger::{Chain, Genesis, Lie, Node as View, Orphans},
    options::{EPOCH_SECONDS, Fault, Setup},
    random::Random,
    script::{FaultInjection, LedgerFault, LieKind, NodeFault},
};

/// The witnesses' prices of 1 HIVE in 1/1000 HBD, one after the other, and how long each lasts, milliseconds.
const HIVE_PRICES: [u64; 5] = [258, 264, 250, 271, 255];
const PRICE_LASTS_MS: u64 = 2_400_000;
/// Timeout of a call to a node that does not respond.
const RPC_TIMEOUT_MS: u64 = 5_000;

/// The chain and its nodes.
pub(crate) struct Hive {
    pub(crate) chain: Chain,
    genesis: Genesis,
    signs: bool,
    nodes: Vec<NodeState>,
    /// The nodes that faults affect.
    faulty: Vec<usize>,
    calls: Random,
    blocks: Random,
    /// A permanent difference between a node and the others.
    apart: Random,
    /// What a node lacks.
    unusual: Random,
    /// The head when the simulation begins. The blocks up to it are a second apart: with the chain's own interval, they
    /// would run ahead of time.
    first_head: u32,
    finalized: u32,
    finality_held_until: u64,
    transactions_held_until: u64,
    blocks_held_until: u64,
    fork: Option<(u32, bool)>,
    salt: u64,
    /// How often the keys of the account of agents that replace them were replaced.
    generation: u32,
    /// How much of a dollar the market pays for HBD, in percent, and until when.
    market: Option<(u64, u64)>,
    /// Which node accepted a transaction of the engine, and when: the others receive it a little later.
    accepted_by: BTreeMap<TxId, (usize, u64)>,
}

/// Returns whether an account has keys of its own in every simulation: those of merchants do.
fn has_keys(account: &str) -> bool {
    account.starts_with("shop-") || account.starts_with("else-") || account == KEYED
}

#[derive(Default)]
struct NodeState {
    view: View,
    down_until: u64,
    hangs: bool,
    lag_until: u64,
    lie_until: u64,
    slow_ms: u64,
    slow_until: u64,
    stalled_until: u64,
    branch_until: u64,
    keeps_until: u64,
    foreign_until: u64,
    lacks_until: u64,
    limits_until: u64,
    /// Until when it lacks the price of HBD.
    priceless_until: u64,
    /// Transactions that it accepted and has not relayed.
    kept: Vec<Transaction>,
}

/// The effects of the newest block.
pub(crate) struct Produced {
    pub(crate) included: Vec<TxId>,
    pub(crate) finalized: Vec<Block>,
    /// The virtual transfers of blocks that became irreversible.
    pub(crate) recurrent: Vec<Transfer>,
    pub(crate) number: u32,
    pub(crate) forked: Option<u32>,
}

/// The outcome of a call to a node.
struct CallOutcome {
    before_ms: u64,
    after_ms: u64,
    error: Option<NodeError>,
    loses_reply: bool,
}

impl Hive {
    pub(crate) fn new(setup: &Setup, random: &Random, accounts: &[(String, u64)]) -> Self {
        let time = Timestamp::from_seconds(EPOCH_SECONDS - 30);
        let mut seed = [0; 32];
        random.fork("keys").fill(&mut seed);
        let genesis = Genesis { accounts: Vec::new(), sign_blocks: false, ..Genesis::demo(seed, time) };
        let mut chain = Chain::new(&genesis);
        for (name, units) in accounts {
            let name = AccountName::parse(name).expect("a name of ours");
            // Merchants sign challenges, so they always have keys.
            let (authorities, memo_key) = if setup.signatures || has_keys(name.as_str()) {
                genesis.authorities(name.as_str())
            } else {
                // A threshold of 0: no signature is needed, so that signing costs no time.
                let open = Authority::default;
                (AccountAuthorities { owner: open(), active: open(), posting: open() }, PublicKey([0; 33]))
            };
            chain.set_account(&name, authorities, memo_key);
            for currency in Currency::ALL {
                chain.grant(&name, currency, i64::try_from(*units).unwrap_or(i64::MAX));
            }
        }
        chain.set_irreversibility_lag(setup.finality_lag);
        chain.set_block_step(Duration::from_secs(1));
        let mut hive = Self {
            chain,
            genesis,
            signs: setup.signatures,
            nodes: (0..setup.nodes).map(|_| NodeState::default()).collect(),
            faulty: match &setup.faulty_nodes[..] {
                [] => (0..setup.nodes).collect(),
                some => some.to_vec(),
            },
            calls: random.fork("node calls"),
            blocks: random.fork("blocks"),
            apart: random.fork("apart"),
            unusual: random.fork("unusual nodes"),
            finalized: 0,
            first_head: 0,
            finality_held_until: 0,
            transactions_held_until: 0,
            blocks_held_until: 0,
            fork: None,
            salt: 0,
            generation: 0,
            market: None,
            accepted_by: BTreeMap::new(),
        };
        for back in (0..4 + u64::from(setup.finality_lag)).rev() {
            hive.chain.produce(Timestamp::from_seconds(EPOCH_SECONDS - 1 - back));
        }
        hive.chain.set_block_step(Duration::from_secs(setup.block_seconds));
        hive.finalized = hive.chain.irreversible_num();
        hive.first_head = hive.chain.head().number();
        hive
    }

    /// Builds a transaction of transfers; every one is different, even if its transfers are alike.
    pub(crate) fn transaction(&mut self, from: &str, transfers: Vec<TransferOp>, lives: Duration) -> Transaction {
        self.operations(from, transfers.into_iter().map(Operation::Transfer).collect(), lives)
    }

    /// Builds a transaction; every one is different, even if its operations are alike.
    pub(crate) fn operations(&mut self, from: &str, operations: Vec<Operation>, lives: Duration) -> Transaction {
        self.salt += 1;
        // As a wallet does: a reference to a block that will not fork away.
        let reference =
            self.chain.block(self.chain.irreversible_num().max(1)).map(|block| block.id).unwrap_or_default();
        let (ref_block_num, ref_block_prefix) = tapos_of(reference);
        let mut transaction = Transaction {
            ref_block_num,
            ref_block_prefix,
            expiration: Timestamp::from_seconds((self.chain.head_time() + lives).seconds() + self.salt % 30),
            operations,
            signatures: Vec::new(),
        };
        if self.signs || has_keys(from) {
            transaction.sign(ChainId::MAINNET, Pack::Legacy, &self.key(from));
        }
        transaction
    }

    /// Returns the id a transaction has on the chain.
    pub(crate) fn id_of(&self, transaction: &Transaction) -> TxId {
        // An unsigned transaction holds in both packings, and hived tries this one first.
        let is_signed = self.signs || !transaction.signatures.is_empty();
        transaction.id(if is_signed { Pack::Legacy } else { Pack::Hf26 })
    }

    /// Returns the active key of an account.
    fn key(&self, account: &str) -> PrivateKey {
        match self.generation {
            0 => self.genesis.key(account, Role::Active),
            _ if account != KEYED => self.genesis.key(account, Role::Active),
            generation => self.genesis.key(&format!("{account} {generation}"), Role::Active),
        }
    }

    /// Gives an account one other key in place of the one that it has: what was signed before is void.
    pub(crate) fn replace_signing_keys(&mut self, name: &str) {
        self.generation += 1;
        let Some(account) = self.chain.account(name) else { return };
        let (mut authorities, memo_key) = (account.authorities.clone(), account.memo_key);
        authorities.active.key_auths.clear();
        authorities.active.key_auths.insert(self.key(name).public(), 1);
        self.chain.set_account(&AccountName::parse(name).expect("a name of ours"), authorities, memo_key);
    }

    /// Signs a digest with the active key of an account.
    pub(crate) fn sign(&self, account: &str, digest: &[u8; 32]) -> Signature {
        self.key(account).sign(digest)
    }

    /// Gives an account another active authority, whose keys include those that it had: wallets go on signing as before.
    pub(crate) fn replace_keys(&mut self, name: &AccountName, replaced: u32) {
        let Some(account) = self.chain.account(name.as_str()) else { return };
        let (mut authorities, memo_key) = (account.authorities.clone(), account.memo_key);
        let mut key = [0; 33];
        key[0] = 2;
        key[1..5].copy_from_slice(&replaced.to_be_bytes());
        authorities.active.key_auths.insert(PublicKey(key), 1);
        self.chain.set_account(name, authorities, memo_key);
    }

    /// Writes a transfer operation.
    pub(crate) fn transfer(from: &str, to: &str, units: u64, currency: Currency, memo: &str) -> TransferOp {
        let amount = Asset::from(Money::new(units, currency));
        TransferOp { from: from.to_owned(), to: to.to_owned(), amount, memo: memo.to_owned() }
    }

    /// Draws the faults of this block, and produces it unless its witness misses it.
    pub(crate) fn produce(&mut self, now_ms: u64, now: Timestamp) -> Produced {
        self.chain.hold_irreversibility(now_ms < self.finality_held_until);
        self.chain.hold_transactions(now_ms < self.transactions_held_until);
        for node in &mut self.nodes {
            if now_ms >= node.lag_until {
                node.view.lag_blocks = 0;
            }
            if now_ms >= node.stalled_until {
                node.view.stalled_at = None;
            }
            if now_ms >= node.lie_until {
                node.view.lie = None;
            }
            if now_ms >= node.branch_until {
                node.view.branch_from = None;
            }
        }
        self.release(now_ms);
        if self.market.is_some_and(|(_, until)| now_ms >= until) {
            self.set_market(None);
        }
        self.move_price(now_ms);
        if now_ms < self.blocks_held_until {
            // Finality that is no longer held catches up without a new block.
            let ((finalized, recurrent), number) = (self.take_finalized(), self.chain.head().number());
            return Produced { included: Vec::new(), finalized, recurrent, number, forked: None };
        }
        let mut forked = None;
        let before = self.chain.head().number();
        if let Some((depth, forget)) = self.fork.take() {
            let depth = depth.min(before - self.chain.irreversible_num().max(self.first_head));
            if depth > 0 {
                let orphans = if forget { Orphans::Drop } else { Orphans::Keep };
                let reversible = self.chain.fork(depth, &orphans);
                debug_assert!(reversible.is_ok(), "only reversible blocks fork");
                forked = Some(depth);
                // The new branch is longer before any node changes to it.
                for _ in 0..depth {
                    self.chain.produce(Timestamp::EPOCH);
                }
            }
        }
        self.chain.produce(now);
        let head = self.chain.head().number();
        let included = (before - forked.unwrap_or(0) + 1..=head)
            .filter_map(|number| self.chain.block(number))
            .flat_map(|block| block.transactions.iter().map(|included| included.id))
            .collect();
        let (finalized, recurrent) = self.take_finalized();
        Produced { included, finalized, recurrent, number: head, forked }
    }

    /// Moves the witnesses' price of HIVE now and then.
    fn move_price(&mut self, now_ms: u64) {
        let price = HivePrice::new(HIVE_PRICES[usize::try_from(now_ms / PRICE_LASTS_MS).unwrap_or(0) % 5], 1_000);
        let price = price.expect("neither side is zero");
        if price != self.chain.price() {
            self.chain.set_price(price);
            // The market's price of HBD is in proportion to it.
            self.set_market(self.market);
        }
    }

    /// Returns the witnesses' price of HIVE.
    pub(crate) const fn hive_price(&self) -> HivePrice {
        self.chain.price()
    }

    /// Lets nodes relay the transactions that they have withheld.
    fn release(&mut self, now_ms: u64) {
        for node in &mut self.nodes {
            if now_ms >= node.keeps_until {
                for transaction in node.kept.drain(..) {
                    // Another node may have relayed it meanwhile, or it may have expired.
                    let _ = self.chain.broadcast(transaction);
                }
            }
        }
    }

    fn take_finalized(&mut self) -> (Vec<Block>, Vec<Transfer>) {
        let last = self.chain.irreversible_num();
        let blocks = (self.finalized + 1..=last).filter_map(|number| self.chain.block(number));
        let reported = blocks.map(|block| (block.neutral(), block.virtual_transfers())).unzip::<_, _, Vec<_>, Vec<_>>();
        self.finalized = last;
        (reported.0, reported.1.concat())
    }

    /// Returns until when a majority of the nodes lacks the price of HBD, if it lacks it now.
    pub(crate) fn priceless_until(&self, now_ms: u64) -> Option<u64> {
        let mut until: Vec<u64> =
            self.nodes.iter().map(|node| node.priceless_until).filter(|at| *at > now_ms).collect();
        until.sort_unstable();
        until.len().checked_sub(self.nodes.len() / 2 + 1).map(|least| until[least])
    }

    /// Draws the faults of chain and nodes that begin at a block.
    pub(crate) fn roll(&mut self, now_ms: u64, rate: impl Fn(Fault) -> u32) -> Vec<FaultInjection> {
        let mut injections = self.roll_common_node_faults(now_ms, &rate);
        injections.extend(self.roll_ledger(&rate).into_iter().map(FaultInjection::Ledger));
        injections.extend(roll_node_faults(&mut self.apart, &self.faulty, |random| {
            let mut faults = Vec::new();
            if random.chance(rate(Fault::NodeBranch)) {
                let depth = u32::try_from(random.below(4)).unwrap_or(0);
                faults.push((NodeFault::OwnFork { depth }, minutes(random, 2)));
            }
            if random.chance(rate(Fault::NodeKeeps)) {
                faults.push((NodeFault::KeepsTransactions, minutes(random, 2)));
            }
            faults
        }));
        injections.extend(roll_node_faults(&mut self.unusual, &self.faulty, |random| {
            let kinds = [
                (Fault::NodeForeign, NodeFault::OtherChain),
                (Fault::NodeLacks, NodeFault::LacksApis),
                (Fault::NodeLimits, NodeFault::LimitsRate),
                (Fault::NodeWithoutPrice, NodeFault::NoPrice),
            ];
            let mut faults = Vec::new();
            for (fault, injected) in kinds {
                if random.chance(rate(fault)) {
                    faults.push((injected, minutes(random, 2)));
                }
            }
            faults
        }));
        injections
    }

    /// Draws faults that every node may have at times, all of one node.
    fn roll_common_node_faults(&mut self, now_ms: u64, rate: &impl Fn(Fault) -> u32) -> Vec<FaultInjection> {
        // With fewer nodes a lie cannot be detected; `docs/reference/settings.md` declares that risk.
        let count = self.nodes.len();
        let lying = |node: usize| {
            self.nodes.iter().enumerate().filter(|(at, other)| *at != node && now_ms < other.lie_until).count()
        };
        let random = &mut self.blocks;
        let node = *random.pick(&self.faulty);
        let mut faults = Vec::new();
        if random.chance(rate(Fault::NodeDown)) {
            faults.push((NodeFault::Down, minutes(random, 2)));
        }
        if random.chance(rate(Fault::NodeLag)) {
            let blocks = u32::try_from(random.between(1, 30)).unwrap_or(1);
            faults.push((NodeFault::Lag { blocks }, minutes(random, 2)));
        }
        if random.chance(rate(Fault::NodeSlow)) {
            let delay_ms = random.between(500, 4_000);
            faults.push((NodeFault::Slow { delay_ms }, minutes(random, 2)));
        }
        if random.chance(rate(Fault::NodeStall)) {
            faults.push((NodeFault::Stalled, minutes(random, 2)));
        }
        // A minority may return wrong data, each of its own kind; any node may return data that is evidently wrong.
        if random.chance(rate(Fault::NodeLie)) {
            let (lie, _) = *random.pick(&LieKind::ALL);
            let is_outvoted = count >= 3 && lying(node) < (count - 1) / 2;
            if is_outvoted || (lie.is_evident() && lying(node) == 0) {
                faults.push((NodeFault::Lies(lie), minutes(random, 2)));
            }
        }
        faults.into_iter().map(|(fault, for_ms)| FaultInjection::Node { node, fault, for_ms }).collect()
    }

    /// Draws faults of the chain.
    fn roll_ledger(&mut self, rate: &impl Fn(Fault) -> u32) -> Vec<LedgerFault> {
        let random = &mut self.blocks;
        let mut faults = Vec::new();
        if random.chance(rate(Fault::Fork)) {
            let depth = u32::try_from(random.between(1, 20)).unwrap_or(1);
            faults.push(LedgerFault::Fork { depth, forget: random.chance(500_000) });
        }
        if random.chance(rate(Fault::MissedBlock)) {
            faults.push(LedgerFault::HoldBlocks { for_ms: random.between(1, 6_000) });
        }
        if random.chance(rate(Fault::FinalityHeld)) {
            faults.push(LedgerFault::HoldFinality { for_ms: minutes(random, 3) });
        }
        if random.chance(rate(Fault::TransactionsHeld)) {
            faults.push(LedgerFault::HoldTransactions { for_ms: minutes(random, 3) });
        }
        if random.chance(rate(Fault::MempoolLost)) {
            faults.push(LedgerFault::ForgetMempool);
        }
        faults
    }

    /// Injects a fault of a node; returns whether there is such a node. A node that invents a transfer names the payee.
    pub(crate) fn inject_node(
        &mut self,
        node: usize,
        fault: &NodeFault,
        now_ms: u64,
        for_ms: u64,
        payee: Option<(AccountName, String)>,
    ) -> bool {
        let head = self.chain.head().number();
        let random = &mut self.blocks;
        let Some(node) = self.nodes.get_mut(node) else { return false };
        let until = now_ms + for_ms;
        match fault {
            NodeFault::Down => (node.down_until, node.hangs) = (until, random.chance(300_000)),
            NodeFault::Lag { blocks } => (node.view.lag_blocks, node.lag_until) = (*blocks, until),
            NodeFault::Slow { delay_ms } => (node.slow_ms, node.slow_until) = (*delay_ms, until),
            NodeFault::Stalled => (node.view.stalled_at, node.stalled_until) = (Some(head), until),
            NodeFault::OwnFork { depth } => {
                (node.view.branch_from, node.branch_until) = (Some(head.saturating_sub(*depth)), until);
            }
            NodeFault::KeepsTransactions => node.keeps_until = until,
            NodeFault::OtherChain => node.foreign_until = until,
            NodeFault::LacksApis => node.lacks_until = until,
            NodeFault::LimitsRate => node.limits_until = until,
            NodeFault::NoPrice => node.priceless_until = until,
            NodeFault::Lies(lie) => (node.view.lie, node.lie_until) = (Some(lie_of(*lie, head, payee)), until),
        }
        true
    }

    /// Injects a fault of the chain; returns whether it had an effect.
    pub(crate) fn inject_ledger(&mut self, fault: &LedgerFault, now_ms: u64) -> bool {
        match fault {
            LedgerFault::Fork { depth, forget } => self.fork = Some((*depth, *forget)),
            LedgerFault::HoldBlocks { for_ms } => self.blocks_held_until = now_ms + for_ms,
            LedgerFault::HoldFinality { for_ms } => self.finality_held_until = now_ms + for_ms,
            LedgerFault::HoldTransactions { for_ms } => self.transactions_held_until = now_ms + for_ms,
            LedgerFault::HbdOffPeg { percent, for_ms } => self.set_market(Some((*percent, now_ms + for_ms))),
            LedgerFault::ForgetMempool => return self.chain.forget_mempool() > 0,
        }
        true
    }

    /// Ends all faults.
    pub(crate) fn heal(&mut self) {
        for node in &mut self.nodes {
            node.keeps_until = 0;
        }
        self.release(0);
        for node in &mut self.nodes {
            *node = NodeState::default();
        }
        (self.finality_held_until, self.transactions_held_until, self.blocks_held_until) = (0, 0, 0);
        self.fork = None;
        self.set_market(None);
    }

    fn set_market(&mut self, market: Option<(u64, u64)>) {
        self.market = market;
        let usd = self.chain.price();
        let price = |percent| HivePrice::new(usd.base_hbd_units * 100, usd.quote_hive_units * percent);
        self.chain.set_market(market.and_then(|(percent, _)| price(percent)));
    }

    /// Returns how much of a dollar the market pays for HBD, in percent.
    pub(crate) fn hbd_percent(&self) -> u64 {
        self.market.map_or(100, |(percent, _)| percent)
    }

    fn call_outcome(
        &mut self,
        node: usize,
        now_ms: u64,
        acts: bool,
        rpc_ms: u64,
        rate: impl Fn(Fault) -> u32,
    ) -> CallOutcome {
        let (random, state) = (&mut self.calls, &self.nodes[node]);
        let slow_ms = if now_ms < state.slow_until { state.slow_ms } else { 0 };
        let (before_ms, after_ms) = (random.wait_ms(rpc_ms), random.wait_ms(rpc_ms) + slow_ms);
        if now_ms < state.down_until {
            return if state.hangs {
                CallOutcome {
                    before_ms: RPC_TIMEOUT_MS,
                    after_ms: 0,
                    error: Some(NodeError::Timeout),
                    loses_reply: false,
                }
            } else {
                let error = Some(NodeError::Unreachable("connection refused".to_owned()));
                CallOutcome { before_ms: 0, after_ms: 0, error, loses_reply: false }
            };
        }
        let rate = |fault| if self.faulty.contains(&node) { rate(fault) } else { 0 };
        let error = if random.chance(rate(Fault::RpcTimeout)) {
            Some(NodeError::Timeout)
        } else if random.chance(rate(Fault::RpcError)) {
            Some(match random.below(5) {
                0 => NodeError::RateLimited { retry_after: None },
                1 => NodeError::Http(503),
                2 => NodeError::Unreadable("EOF while parsing a value".to_owned()),
                3 => NodeError::Broken("connection reset".to_owned()),
                _ => NodeError::Rpc {
                    code: -32603,
                    data_code: None,
                    name: String::new(),
                    message: "Internal Error".to_owned(),
                },
            })
        } else {
            None
        };
        // Only a lost response to a write matters; a read is repeated without harm.
        let loses_reply = error.is_none() && acts && random.chance(rate(Fault::RpcLostReply));
        let wait_ms = if error == Some(NodeError::Timeout) { RPC_TIMEOUT_MS } else { before_ms };
        CallOutcome { before_ms: wait_ms, after_ms, error, loses_reply }
    }
}

/// Draws a duration of up to so many minutes, milliseconds.
fn minutes(random: &mut Random, most: u64) -> u64 {
    random.between(1_000, most * 60_000)
}

/// Draws a node and its faults.
fn roll_node_faults(
    random: &mut Random,
    nodes: &[usize],
    roll: impl FnOnce(&mut Random) -> Vec<(NodeFault, u64)>,
) -> Vec<FaultInjection> {
    let node = *random.pick(nodes);
    roll(random).into_iter().map(move |(fault, for_ms)| FaultInjection::Node { node, fault, for_ms }).collect()
}

/// Returns the wrong data that a node returns from now on; an invented transfer needs a payee.
fn lie_of(lie: LieKind, head: u32, payee: Option<(AccountName, String)>) -> Lie {
    match lie {
        LieKind::Omits => Lie::OmitTransfers,
        LieKind::Inflates => Lie::InflateTransfers,
        LieKind::Finalizes => Lie::EverythingIsFinal,
        LieKind::Ahead => Lie::HeadAhead { blocks: 5 },
        LieKind::Swallows => Lie::SwallowBroadcasts,
        LieKind::Refuses => Lie::RefuseBroadcasts,
        LieKind::Keys => Lie::Keys { key: PublicKey([2; 33]) },
        LieKind::Balances => Lie::Balances { units: 1_000_000_000_000 },
        LieKind::Skips => Lie::SkipBlocks,
        LieKind::Unlinks => Lie::UnlinkBlocks,
        LieKind::Prices => Lie::Price { price: HivePrice::new(9_999, 1_000).expect("neither side is zero") },
        LieKind::Invents => match payee {
            None => Lie::OmitTransfers,
            Some((to, memo)) => Lie::InventTransfer {
                block: head + 2,
                from: AccountName::parse("mallory").expect("a name"),
                to,
                money: Money::new(2_000_000, Currency::Hbd),
                memo,
            },
        },
    }
}
