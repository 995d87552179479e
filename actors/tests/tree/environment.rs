//! The test environment of a real tree and a real store: a scripted ledger, and a receiver that records webhooks.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Arc, Mutex, atomic::AtomicU64},
    time::Duration,
};

use actors::{
    Engine, Environment, Settings, Tree,
    environment::{
        Account, Clock, Identity, Node, NodeError, NodeResponse, Probe, TxStatus, WebhookRequest, WebhookResponse,
        WebhookTransport,
    },
};
use engine::{
    account::AccountName,
    hive::{Authority, ChainId, Pack, PrivateKey, Transaction},
    ids::PaymentId,
    ledger::{Block, BlockId, ChainPosition, Head, Transfer, TxId, VirtualOperations, memo_of},
    merchant::{Merchant, RawUpdate, Registration, Update},
    money::{Currency, HbdPrice, HivePrice, Money},
    payment::{Draft, Payment, State},
    time::Timestamp,
    webhook::Outcome,
};
use futures_util::future::BoxFuture;
use storage::Store;

use super::clock::{PausedClock, Seeded};

/// The time at which every test begins.
pub(crate) const BEGIN: u64 = 1_800_000_000;

pub(crate) fn name(text: &str) -> AccountName {
    AccountName::parse(text).unwrap()
}

/// Panics when a point is reached for the n-th time, and counts.
#[derive(Default)]
pub(crate) struct Trap {
    armed: Mutex<Option<(&'static str, u32)>>,
    pub(crate) reached: Mutex<Vec<&'static str>>,
}

impl Trap {
    pub(crate) fn arm(&self, point: &'static str, nth: u32) {
        *self.armed.lock().unwrap() = Some((point, nth));
    }
}

impl Probe for Trap {
    fn reach(&self, point: &'static str) {
        self.reached.lock().unwrap().push(point);
        let mut armed = self.armed.lock().unwrap();
        if let Some((wanted, left)) = armed.as_mut()
            && *wanted == point
        {
            *left -= 1;
            if *left == 0 {
                *armed = None;
                drop(armed);
                panic!("trap at {point}");
            }
        }
    }
}

/// A chain that grows on request.
#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) inner: Mutex<Chain>,
}

type HistoryFilter = Arc<dyn Fn(Vec<Transfer>) -> Vec<Transfer> + Send + Sync>;

#[derive(Default, Clone)]
pub(crate) struct Chain {
    pub(crate) blocks: Vec<Block>,
    irreversible: u32,
    salt: u8,
    is_down: bool,
    txs: u64,
    /// Transactions that wait for a block.
    mempool: Vec<Transaction>,
    /// How often each transaction reached a node.
    broadcasts: BTreeMap<TxId, u32>,
    /// What was paid by itself, by block.
    virtual_transfers: BTreeMap<u32, Vec<Transfer>>,
    keeps_no_history: bool,
    /// Accounts whose active authority was replaced.
    rekeyed: BTreeSet<AccountName>,
    /// What histories make of the transfers of an account.
    history_filter: Option<HistoryFilter>,
    manner: Manner,
}

/// How nodes treat what is handed to them.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Taken and answered.
    #[default]
    Honest,
    /// Taken, but the answer is lost.
    LosesReplies,
    /// Lost, and the answer with it.
    SwallowsEverything,
    /// Taken, but nobody knows the transaction.
    Forgets,
    /// Refused with hived's code.
    Refuses(i64, &'static str),
}

fn block_id(number: u32, salt: u8, txs: usize) -> BlockId {
    let mut id = [salt; 20];
    id[..4].copy_from_slice(&number.to_be_bytes());
    id[19] = u8::try_from(txs).unwrap();
    BlockId(id)
}

pub(crate) fn transfer(from: &str, to: &str, units: u64, memo: &str) -> Transfer {
    Transfer {
        tx_id: TxId::default(),
        position: ChainPosition { block_num: 0, tx_in_block: 0, op_in_tx: 0 },
        block_time: Timestamp::EPOCH,
        from: name(from),
        to: name(to),
        money: Money::new(units, Currency::Hbd),
        memo: memo.to_owned(),
    }
}

impl Ledger {
    pub(crate) fn new() -> Arc<Self> {
        let ledger = Arc::new(Self::default());
        ledger.produce_at(BEGIN, Vec::new());
        ledger.settle();
        ledger
    }

    /// Adds a block of the given time.
    pub(crate) fn produce_at(&self, seconds: u64, transfers: Vec<Transfer>) {
        let mut chain = self.inner.lock().unwrap();
        let previous = chain.blocks.last().map(|block| block.id).unwrap_or_default();
        let number = previous.number() + 1;
        let id = block_id(number, chain.salt, transfers.len());
        let time = Timestamp::from_seconds(seconds);
        let mut placed = Vec::new();
        for (transfer, tx_in_block) in transfers.into_iter().zip(0..) {
            let mut tx_id = transfer.tx_id;
            if tx_id == TxId::default() {
                chain.txs += 1;
                tx_id.0[..8].copy_from_slice(&chain.txs.to_be_bytes());
            }
            let op_in_tx = u32::try_from(placed.iter().filter(|t: &&Transfer| t.tx_id == tx_id).count()).unwrap();
            let place = ChainPosition { block_num: number, tx_in_block, op_in_tx };
            placed.push(Transfer { tx_id, position: place, block_time: time, ..transfer });
        }
        let unknown_operations = BTreeMap::new();
        chain.blocks.push(Block {
            id,
            previous,
            time,
            transfers: placed,
            escrow_releases: Vec::new(),
            unknown_operations,
        });
    }

    /// Adds a block three seconds after the newest.
    pub(crate) fn produce(&self, transfers: Vec<Transfer>) {
        let seconds = self.inner.lock().unwrap().blocks.last().map_or(BEGIN, |block| block.time.seconds());
        self.produce_at(seconds + 3, transfers);
    }

    /// Adds to the newest block what no transfer paid.
    pub(crate) fn pay_otherwise(&self, by_itself: Transfer, from_escrow: Transfer) {
        let mut chain = self.inner.lock().unwrap();
        let newest = chain.blocks.last_mut().unwrap();
        let block_num = newest.number();
        let place = |tx_in_block| ChainPosition { block_num, tx_in_block, op_in_tx: 0 };
        newest.escrow_releases.push(Transfer { position: place(0), ..from_escrow });
        let by_itself = Transfer { position: place(u32::MAX), ..by_itself };
        chain.virtual_transfers.entry(block_num).or_default().push(by_itself);
    }

    /// Makes the nodes forget their account history, or have it again.
    pub(crate) fn keeps_history(&self, keeps: bool) {
        self.inner.lock().unwrap().keeps_no_history = !keeps;
    }

    /// Makes account histories leave out, or invent, what the blocks hold otherwise.
    pub(crate) fn set_history_filter(&self, filter: impl Fn(Vec<Transfer>) -> Vec<Transfer> + Send + Sync + 'static) {
        self.inner.lock().unwrap().history_filter = Some(Arc::new(filter));
    }

    fn history(&self, account: &AccountName, (from, to): (Timestamp, Timestamp)) -> Result<Vec<Transfer>, NodeError> {
        let chain = self.read()?;
        if chain.keeps_no_history {
            let (name, message) = (String::new(), "Could not find API account_history_api".to_owned());
            return Err(NodeError::Rpc { code: -32601, data_code: None, name, message });
        }
        let within = chain.blocks.iter().filter(|block| block.number() <= chain.irreversible);
        let within = within.filter(|block| from <= block.time && block.time < to);
        let all = within.flat_map(|block| block.transfers.iter().chain(&block.escrow_releases));
        let theirs = all.filter(|transfer| transfer.to == *account || transfer.from == *account).cloned().collect();
        Ok(match &chain.history_filter {
            Some(filter) => filter(theirs),
            None => theirs,
        })
    }

    fn virtual_transfers(&self, block_num: u32) -> Result<Option<Vec<Transfer>>, NodeError> {
        let chain = self.read()?;
        if chain.keeps_no_history {
            let (name, message) = (String::new(), "Could not find API account_history_api".to_owned());
            return Err(NodeError::Rpc { code: -32601, data_code: None, name, message });
        }
        let is_there = block_num <= chain.irreversible;
        Ok(is_there.then(|| chain.virtual_transfers.get(&block_num).cloned().unwrap_or_default()))
    }

    /// Gives an account another active key.
    pub(crate) fn replace_key(&self, account: &str) {
        self.inner.lock().unwrap().rekeyed.insert(name(account));
    }

    /// Returns the active key of an account.
    fn key_of(&self, account: &AccountName) -> PrivateKey {
        let is_replaced = self.inner.lock().unwrap().rekeyed.contains(account);
        if is_replaced { key_of(&format!("{account}, replaced")) } else { key_of(account.as_str()) }
    }

    /// Makes every block irreversible.
    pub(crate) fn settle(&self) {
        let mut chain = self.inner.lock().unwrap();
        chain.irreversible = chain.blocks.last().unwrap().number();
    }

    /// Adds a block with everything that waits for one.
    pub(crate) fn produce_mempool(&self) {
        let waiting = std::mem::take(&mut self.inner.lock().unwrap().mempool);
        let transfers = waiting.iter().flat_map(crate::x402::transfers_of).collect();
        self.produce(transfers);
    }

    pub(crate) fn set_manner(&self, manner: Manner) {
        self.inner.lock().unwrap().manner = manner;
    }

    /// How often a transaction stands on the chain.
    pub(crate) fn count_on_chain(&self, tx_id: TxId) -> usize {
        self.inner.lock().unwrap().blocks.iter().flat_map(|b| &b.transfers).filter(|t| t.tx_id == tx_id).count()
    }

    pub(crate) fn count_broadcasts(&self, tx_id: TxId) -> u32 {
        self.inner.lock().unwrap().broadcasts.get(&tx_id).copied().unwrap_or(0)
    }

    fn take(&self, signed_json: &str) -> Result<(), NodeError> {
        let transaction = Transaction::parse(signed_json.as_bytes()).unwrap();
        let tx_id = transaction.id(Pack::Legacy);
        let mut chain = self.inner.lock().unwrap();
        if chain.is_down {
            return Err(NodeError::Timeout);
        }
        *chain.broadcasts.entry(tx_id).or_default() += 1;
        let refuse = |code, message: &str| {
            Err(NodeError::Rpc {
                code: -32003,
                data_code: Some(code),
                name: String::new(),
                message: message.to_owned(),
            })
        };
        match chain.manner {
            Manner::SwallowsEverything => return Err(NodeError::Timeout),
            Manner::Refuses(code, message) => return refuse(code, message),
            Manner::Honest | Manner::Forgets | Manner::LosesReplies => {}
        }
        let head = chain.blocks.last().unwrap().time;
        let is_known = chain.mempool.iter().any(|waiting| waiting.id(Pack::Legacy) == tx_id)
            || chain.blocks.iter().flat_map(|block| &block.transfers).any(|t| t.tx_id == tx_id);
        if is_known {
            return refuse(10, "Assert Exception:!is_known_transaction( trx_id ): Duplicate transaction check failed");
        }
        if transaction.expiration <= head {
            return refuse(4_030_100, "transaction expiration exception");
        }
        chain.mempool.push(transaction);
        if chain.manner == Manner::LosesReplies { Err(NodeError::Timeout) } else { Ok(()) }
    }

    fn find(&self, tx_id: TxId) -> Result<TxStatus, NodeError> {
        let chain = self.read()?;
        if chain.manner == Manner::Forgets {
            return Ok(TxStatus::Unknown);
        }
        let found = chain.blocks.iter().find(|block| block.transfers.iter().any(|t| t.tx_id == tx_id));
        let waits = chain.mempool.iter().any(|waiting| waiting.id(Pack::Legacy) == tx_id);
        Ok(match found {
            Some(block) if block.number() <= chain.irreversible => TxStatus::InIrreversibleBlock(block.number()),
            Some(block) => TxStatus::InReversibleBlock(block.number()),
            None if waits => TxStatus::InMempool,
            None => TxStatus::Unknown,
        })
    }

    /// Throws away the newest `depth` blocks; what is produced next has other ids.
    pub(crate) fn fork(&self, depth: usize) {
        let mut chain = self.inner.lock().unwrap();
        let left = chain.blocks.len() - depth;
        assert!(left >= chain.irreversible as usize, "irreversible blocks do not fork");
        chain.blocks.truncate(left);
        chain.salt += 1;
    }

    pub(crate) fn set_down(&self, is_down: bool) {
        self.inner.lock().unwrap().is_down = is_down;
    }

    fn read(&self) -> Result<Chain, NodeError> {
        let chain = self.inner.lock().unwrap();
        if chain.is_down { Err(NodeError::Timeout) } else { Ok(chain.clone()) }
    }
}

/// The key of an account here until it is replaced.
pub(crate) fn key_of(account: &str) -> PrivateKey {
    PrivateKey::from_login(account, "active", "a test").unwrap()
}

/// A node of the ledger; it can be made to leave out every transfer.
pub(crate) struct ScriptedNode {
    pub(crate) name: &'static str,
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) omits_transfers: bool,
}

impl Node for ScriptedNode {
    fn name(&self) -> &str {
        self.name
    }

    fn identity(&self) -> NodeResponse<'_, Identity> {
        let identity = Identity { chain_id: ChainId::MAINNET, version: "scripted".to_owned(), is_development: false };
        Box::pin(async move { self.ledger.read().map(|_| identity) })
    }

    fn head(&self) -> NodeResponse<'_, Head> {
        Box::pin(async {
            let chain = self.ledger.read()?;
            let newest = chain.blocks.last().unwrap();
            Ok(Head { block_id: newest.id, time: newest.time, irreversible_num: chain.irreversible })
        })
    }

    fn blocks(&self, from: u32, count: u32) -> NodeResponse<'_, Vec<Block>> {
        Box::pin(async move {
            let mut blocks = self.ledger.read()?.blocks;
            blocks.retain(|block| (from..from + count).contains(&block.number()));
            if self.omits_transfers {
                blocks.iter_mut().for_each(|block| block.transfers.clear());
            }
            Ok(blocks)
        })
    }

    fn virtual_operations(&self, block_num: u32) -> NodeResponse<'_, Option<VirtualOperations>> {
        Box::pin(async move {
            let found = self.ledger.virtual_transfers(block_num)?;
            let found = found.map(|transfers| if self.omits_transfers { Vec::new() } else { transfers });
            Ok(found.map(|transfers| VirtualOperations { transfers, ..VirtualOperations::default() }))
        })
    }

    fn history(&self, account: AccountName, span: (Timestamp, Timestamp)) -> NodeResponse<'_, Vec<Transfer>> {
        Box::pin(async move {
            let found = self.ledger.history(&account, span)?;
            Ok(if self.omits_transfers { Vec::new() } else { found })
        })
    }

    fn accounts(&self, names: Vec<AccountName>) -> NodeResponse<'_, Vec<Account>> {
        Box::pin(async move {
            self.ledger.read()?;
            let known = names.into_iter().filter(|name| name.as_str() != "nobody");
            let account = |name: AccountName| Account {
                active: Authority::of_key(self.ledger.key_of(&name).public()),
                name,
                balances: [Money::new(5_000, Currency::Hive), Money::new(5_000, Currency::Hbd)],
            };
            Ok(known.map(account).collect())
        })
    }

    fn find_transaction(&self, tx_id: TxId, _expiration: Timestamp) -> NodeResponse<'_, TxStatus> {
        Box::pin(async move { self.ledger.find(tx_id) })
    }

    fn broadcast(&self, signed_json: String) -> NodeResponse<'_, ()> {
        Box::pin(async move { self.ledger.take(&signed_json) })
    }

    fn price(&self) -> NodeResponse<'_, Option<HivePrice>> {
        Box::pin(async { self.ledger.read().map(|_| HivePrice::new(258, 1_000)) })
    }

    fn hbd_price(&self) -> NodeResponse<'_, Option<HbdPrice>> {
        Box::pin(async { self.ledger.read().map(|_| None) })
    }
}

/// A merchant's endpoint: responds as configured, with 204 by default, and records requests.
#[derive(Default)]
pub(crate) struct Receiver {
    pub(crate) outcomes: Mutex<VecDeque<Outcome>>,
    pub(crate) received: Mutex<Vec<(u64, WebhookRequest)>>,
    clock: Mutex<Option<Arc<dyn Clock>>>,
    silent: Mutex<BTreeSet<String>>,
    /// Requests being answered at each address, and the most there ever were.
    open: Mutex<BTreeMap<String, (usize, usize)>>,
}

impl WebhookTransport for Receiver {
    fn post(&self, request: WebhookRequest) -> BoxFuture<'_, WebhookResponse> {
        let at = self.clock.lock().unwrap().as_ref().unwrap().now().seconds();
        let (url, timeout) = (request.url.clone(), request.timeout);
        self.received.lock().unwrap().push((at, request));
        let is_silent = self.silent.lock().unwrap().contains(&url);
        let next_outcome = || self.outcomes.lock().unwrap().pop_front().unwrap_or(Outcome::Accepted { status: 204 });
        let outcome = if is_silent { Outcome::Timeout } else { next_outcome() };
        {
            let mut open = self.open.lock().unwrap();
            let (now, most) = open.entry(url.clone()).or_default();
            *now += 1;
            *most = (*now).max(*most);
        }
        Box::pin(async move {
            if is_silent {
                tokio::time::sleep(timeout).await;
            }
            self.open.lock().unwrap().get_mut(&url).unwrap().0 -= 1;
            WebhookResponse { outcome, snippet: String::new() }
        })
    }
}

impl Receiver {
    /// Makes an address take connections and never answer.
    pub(crate) fn hang(&self, url: &str) {
        self.silent.lock().unwrap().insert(url.to_owned());
    }

    pub(crate) fn heal(&self, url: &str) {
        self.silent.lock().unwrap().remove(url);
    }

    /// The most requests that were open at an address at once.
    pub(crate) fn most_open(&self, url: &str) -> usize {
        self.open.lock().unwrap().get(url).map_or(0, |(_, most)| *most)
    }

    pub(crate) fn forget_most_open(&self) {
        self.open.lock().unwrap().values_mut().for_each(|(now, most)| *most = *now);
    }

    pub(crate) fn open_in_all(&self) -> usize {
        self.open.lock().unwrap().values().map(|(now, _)| *now).sum()
    }

    pub(crate) fn count_at(&self, url: &str) -> usize {
        self.received.lock().unwrap().iter().filter(|(_, request)| request.url == url).count()
    }

    pub(crate) fn count(&self) -> usize {
        self.received.lock().unwrap().len()
    }

    /// The statuses delivered, in order.
    pub(crate) fn statuses(&self) -> Vec<String> {
        let received = self.received.lock().unwrap();
        let status = |body: &[u8]| {
            let body: serde_json::Value = serde_json::from_slice(body).unwrap();
            body["data"]["status"].as_str().unwrap().to_owned()
        };
        received.iter().map(|(_, request)| status(&request.body)).collect()
    }
}

/// A tree with its test environment.
pub(crate) struct TestEngine {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) receiver: Arc<Receiver>,
    pub(crate) trap: Arc<Trap>,
    pub(crate) env: Environment,
    pub(crate) settings: Settings,
    pub(crate) tree: Option<Tree>,
    /// Seconds by which the wall clock is ahead of the monotonic one.
    pub(crate) offset_seconds: Arc<AtomicU64>,
}

impl TestEngine {
    /// Returns an environment whose tree is not started yet.
    pub(crate) fn prepared(store: Arc<dyn Store>) -> Self {
        let ledger = Ledger::new();
        let receiver = Arc::new(Receiver::default());
        let trap = Arc::new(Trap::default());
        let offset_seconds = Arc::new(AtomicU64::new(0));
        let clock: Arc<dyn Clock> = Arc::new(PausedClock(tokio::time::Instant::now(), Arc::clone(&offset_seconds)));
        *receiver.clock.lock().unwrap() = Some(Arc::clone(&clock));
        let node = ScriptedNode { name: "one", ledger: Arc::clone(&ledger), omits_transfers: false };
        let env = Environment {
            clock,
            entropy: Arc::new(Seeded(Mutex::new(7))),
            store,
            nodes: vec![Arc::new(node)],
            webhooks: Arc::clone(&receiver) as Arc<dyn WebhookTransport>,
            probe: Arc::clone(&trap) as Arc<dyn Probe>,
        };
        let settings = Settings::of(ChainId::MAINNET);
        Self { ledger, receiver, trap, env, settings, tree: None, offset_seconds }
    }

    pub(crate) async fn started(store: Arc<dyn Store>) -> Self {
        let mut test = Self::prepared(store);
        test.start().await;
        test
    }

    pub(crate) async fn start(&mut self) {
        self.tree = Some(Tree::start(self.env.clone(), self.settings.clone()).await.unwrap());
        self.until("the ledger is followed", async || self.engine().operations.health().await.unwrap().is_following)
            .await;
    }

    pub(crate) async fn stop(&mut self) {
        self.tree.take().unwrap().stop().await;
    }

    pub(crate) fn engine(&self) -> Engine {
        self.tree.as_ref().unwrap().engine()
    }

    /// A merchant with an endpoint.
    pub(crate) async fn merchant(&self) -> Merchant {
        self.merchant_of("blue.mugs").await
    }

    /// A merchant with an endpoint and an account.
    pub(crate) async fn merchant_of(&self, account: &str) -> Merchant {
        let registration = Registration::check("Mugs", account, None).unwrap();
        let registered = self.engine().merchants.register(registration, false).await.unwrap();
        let raw = RawUpdate { webhook_url: Some(Some("https://shop.example/hook".to_owned())), ..RawUpdate::default() };
        let update = Update::check(raw, false).unwrap();
        self.engine().merchants.update(registered.merchant.id, update).await.unwrap()
    }

    /// An open session over 1.000 HBD.
    pub(crate) async fn open(&self, merchant: &Merchant) -> Arc<Payment> {
        self.engine().payments.open(merchant, draft(), None).await.unwrap().payment
    }

    /// Puts a whole payment into an irreversible block.
    pub(crate) fn pay(&self, id: PaymentId) {
        self.ledger.produce(vec![transfer("alice", "blue.mugs", 1_000, &memo_of(id))]);
        self.ledger.settle();
    }

    pub(crate) async fn state(&self, id: PaymentId) -> State {
        self.engine().payments.any(id).await.unwrap().state
    }

    /// Waits, in virtual time, until the payment is in a state.
    pub(crate) async fn until_state(&self, id: PaymentId, state: State) {
        self.until(state.as_str(), async || self.state(id).await == state).await;
    }

    /// Waits, in virtual time, until something holds; an hour is enough for everything here.
    pub(crate) async fn until(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        for _ in 0..36_000 {
            if holds().await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("an hour passed and still not: {what}");
    }
}

pub(crate) fn draft() -> Draft {
    Draft {
        amount: Money::new(1_000, Currency::Hbd),
        description: "Blue mug".to_owned(),
        metadata: engine::fields::Metadata::new(),
        redirect_url: None,
        cancel_url: None,
        lifetime: None,
    }
}
