//! The decisions of a round for every order in which one to five nodes can respond, time out, fail or lie.
//!
//! Each test combines every behavior of the nodes with every interleaving of their responses and the timeouts of the
//! round. Lying nodes return the same wrong response, as if they had agreed on it.

use std::{fmt::Debug, time::Duration};

use engine::{
    account::AccountName,
    hive::{Authority, PrivateKey},
    ledger::{Block, BlockId, Head},
    money::{Currency, HivePrice, Money},
    time::Timestamp,
};

use super::{
    blocks, broadcast, head, lookups,
    majority::{self, BroadcastOutcome, Reply},
    pool,
    round::{Round, RoundStatus, Step},
};
use crate::environment::{Account, NodeError, TxStatus};

/// How a node behaves when it is queried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Behavior {
    /// It returns the current state.
    Honest,
    /// It returns an earlier state.
    Stale,
    /// It fails: an error, a refused connection, a limited rate.
    Fails,
    /// It does not respond before its request times out.
    Hangs,
    /// It returns a false state.
    Lies,
}

impl Behavior {
    const ALL: [Self; 5] = [Self::Honest, Self::Stale, Self::Fails, Self::Hangs, Self::Lies];
}

/// Every way in which `nodes` nodes can behave.
fn behaviors(nodes: usize) -> Vec<Vec<Behavior>> {
    let mut all = vec![Vec::new()];
    for _ in 0..nodes {
        all = all.iter().flat_map(|some| Behavior::ALL.map(|next| [some.as_slice(), &[next]].concat())).collect();
    }
    all
}

/// Decides from the responses so far.
type Decide<T, R> = Box<dyn Fn(&[(usize, T)], RoundStatus) -> Option<R>>;

/// A query, and how its result is decided.
struct Query<T, R> {
    /// How many of the nodes are queried at once.
    first: fn(nodes: usize, needed: usize) -> usize,
    response: Box<dyn Fn(Behavior) -> Option<T>>,
    decide: Decide<T, R>,
}

/// The end of one interleaving.
struct End<'w, R> {
    needed: usize,
    behaviors: &'w [Behavior],
    /// The nodes that responded or failed before the end, in order.
    arrived: &'w [usize],
    /// The number of timeouts of the round.
    timeouts: usize,
    /// The decision; none if the round ended without one.
    decision: Option<&'w R>,
}

impl<R> End<'_, R> {
    fn count(&self, behavior: Behavior) -> usize {
        self.behaviors.iter().filter(|each| **each == behavior).count()
    }

    /// Returns whether fewer nodes lie than a majority needs, so that no false state can be decided.
    fn has_honest_majority(&self) -> bool {
        self.count(Behavior::Lies) < self.needed
    }

    fn count_arrived(&self, wanted: Behavior) -> usize {
        self.arrived.iter().filter(|place| self.behaviors[**place] == wanted).count()
    }
}

/// Walks through every interleaving for one to five nodes; returns how many there are.
fn walk<T: Clone, R: Debug>(query: &Query<T, R>, check: impl Fn(&End<'_, R>)) -> u64 {
    let mut count = 0;
    for nodes in 1..=5 {
        let needed = majority::needed(nodes, 0);
        for behaviors in behaviors(nodes) {
            let round = Round::new(nodes, (query.first)(nodes, needed), needed);
            let mut path = Path { query, check: &check, behaviors: &behaviors, needed, arrived: Vec::new(), count: 0 };
            path.explore(round, 0);
            count += path.count;
        }
    }
    count
}

struct Path<'w, T, R, C> {
    query: &'w Query<T, R>,
    check: &'w C,
    behaviors: &'w [Behavior],
    needed: usize,
    arrived: Vec<usize>,
    count: u64,
}

impl<T: Clone, R: Debug, C: Fn(&End<'_, R>)> Path<'_, T, R, C> {
    fn explore(&mut self, mut round: Round<T>, timeouts: usize) {
        let step = loop {
            match round.step(&self.query.decide) {
                Step::QueryOthers => {}
                step => break step,
            }
        };
        let end = |decision| End {
            needed: self.needed,
            behaviors: self.behaviors,
            arrived: &self.arrived,
            timeouts,
            decision,
        };
        match step {
            Step::Done(decision) => {
                self.count += 1;
                return (self.check)(&end(Some(&decision)));
            }
            Step::Undecided => {
                self.count += 1;
                return (self.check)(&end(None));
            }
            Step::QueryOthers | Step::Wait => {}
        }
        let open: Vec<usize> = (0..round.queried()).filter(|place| !self.arrived.contains(place)).collect();
        assert!(!open.is_empty(), "{:?} waits for nobody", self.behaviors);
        let is_quiet = open.iter().all(|place| self.behaviors[*place] == Behavior::Hangs) && !round.needs_timeout();
        // A request to a node that hangs ends last, when it times out: the timeout of the round is shorter.
        for place in open.into_iter().filter(|place| is_quiet || self.behaviors[*place] != Behavior::Hangs) {
            let mut next = round.clone();
            next.record_response(place, (self.query.response)(self.behaviors[place]));
            self.arrived.push(place);
            self.explore(next, timeouts);
            self.arrived.pop();
        }
        if round.needs_timeout() {
            round.timed_out();
            self.explore(round, timeouts + 1);
        }
    }
}

/// Asserts that what a majority of honest nodes gives is decided by it, and with no help of the clock where the honest
/// ones come first.
fn assert_decides_in_time<R: Debug>(end: &End<'_, R>, first: usize) {
    let honest = end.count(Behavior::Honest);
    if honest < end.needed {
        return;
    }
    assert!(end.decision.is_some(), "{:?}: {honest} honest nodes decide", end.behaviors);
    // No node that hangs delays the round: at most one timeout queries the others, and one awaits slower responses.
    let hung = end.count_arrived(Behavior::Hangs);
    assert!(hung == 0, "{:?} waited for a node that hangs, arrived {:?}", end.behaviors, end.arrived);
    assert!(end.timeouts <= 2, "{:?}", end.behaviors);
    let came_first =
        end.arrived.len() <= end.needed && end.arrived.iter().all(|at| end.behaviors[*at] == Behavior::Honest);
    let all_at_once = first == end.behaviors.len();
    if came_first && all_at_once && end.arrived.len() == end.needed {
        assert_eq!(end.timeouts, 0, "{:?} waited for a node slower than the first majority", end.behaviors);
    }
}

fn to_all(nodes: usize, _needed: usize) -> usize {
    nodes
}

fn to_a_majority(_nodes: usize, needed: usize) -> usize {
    needed
}

fn block_id(number: u32, salt: u8) -> BlockId {
    let mut id = [salt; 20];
    id[..4].copy_from_slice(&number.to_be_bytes());
    BlockId(id)
}

fn a_head(number: u32, irreversible_num: u32) -> Head {
    Head { block_id: block_id(number, 1), time: Timestamp::from_seconds(u64::from(number) * 3), irreversible_num }
}

#[test]
fn a_head_is_one_that_a_majority_has_reached_without_waiting_for_slower_nodes() {
    let query = Query {
        first: to_all,
        response: Box::new(|behavior| match behavior {
            Behavior::Honest => Some(a_head(1_000, 980)),
            Behavior::Stale => Some(a_head(600, 580)),
            Behavior::Lies => Some(a_head(9_000, 9_000)),
            Behavior::Fails | Behavior::Hangs => None,
        }),
        decide: Box::new(|heads: &[(usize, Head)], status: RoundStatus| {
            let nums: Vec<u32> = heads.iter().map(|(_, head)| head.block_id.number()).collect();
            let heads: Vec<Head> = heads.iter().map(|(_, head)| *head).collect();
            head::is_enough(&nums, Some(1_000), status).then(|| majority::head(&heads, status.needed).unwrap())
        }),
    };
    let count = walk(&query, |end| {
        assert_decides_in_time(end, end.behaviors.len());
        let Some(head) = end.decision else { return };
        if end.has_honest_majority() {
            assert!(head.irreversible_num <= 980 && head.block_id.number() <= 1_000, "{:?}: {head:?}", end.behaviors);
            assert!(head.time <= a_head(1_000, 0).time, "{:?}: {head:?}", end.behaviors);
        }
        let fresh = end.count_arrived(Behavior::Honest) + end.count_arrived(Behavior::Lies);
        // A lying node with a later head does not confirm a stale one: without enough current heads the round times out.
        assert!(fresh >= end.needed || end.timeouts > 0 || end.arrived.len() == end.behaviors.len());
        if end.count_arrived(Behavior::Honest) >= end.needed && end.has_honest_majority() {
            assert_eq!((head.irreversible_num, head.block_id.number()), (980, 1_000), "{:?}", end.behaviors);
        }
    });
    assert!(count > 100_000, "{count} interleavings");
}

#[test]
fn blocks_are_what_as_many_as_must_agree_give_alike() {
    let block = |number: u32, salt: u8| Block {
        id: block_id(number, salt),
        previous: block_id(number - 1, salt),
        time: Timestamp::from_seconds(u64::from(number) * 3),
        transfers: Vec::new(),
        escrow_releases: Vec::new(),
        unknown_operations: std::collections::BTreeMap::new(),
    };
    let range = move |count: u32, salt: u8| -> Vec<Block> { (1..=count).map(|number| block(number, salt)).collect() };
    let query = Query {
        first: to_a_majority,
        response: Box::new(move |behavior| match behavior {
            Behavior::Honest => Some(range(2, 1)),
            Behavior::Stale => Some(range(1, 1)),
            Behavior::Lies => Some(range(2, 2)),
            Behavior::Fails | Behavior::Hangs => None,
        }),
        decide: Box::new(|responses: &[(usize, Vec<Block>)], status| blocks::decide(responses, 2, status)),
    };
    let count = walk(&query, |end| {
        let honest = end.count(Behavior::Honest);
        if honest >= end.needed {
            assert!(end.decision.is_some(), "{:?}", end.behaviors);
            assert_eq!(end.count_arrived(Behavior::Hangs), 0, "{:?} waited for a node that hangs", end.behaviors);
        }
        let Some(blocks) = end.decision else { return };
        assert!(!blocks.is_empty(), "no progress is no decision");
        if end.has_honest_majority() {
            assert!(blocks.iter().all(|block| block.id.0[19] == 1), "{:?}: {blocks:?}", end.behaviors);
        }
        let knowing = end.count_arrived(Behavior::Honest) + end.count_arrived(Behavior::Stale);
        assert!(!end.has_honest_majority() || knowing >= end.needed, "{:?}", end.behaviors);
    });
    assert!(count > 100_000, "{count} interleavings");
}

fn key(word: &str) -> Authority {
    Authority::of_key(PrivateKey::from_login("alice", "active", word).unwrap().public())
}

#[test]
fn an_authority_is_what_a_majority_gives_whatever_the_balances() {
    let alice = AccountName::parse("alice").unwrap();
    let (theirs, other) = (key("hers"), key("a liar's"));
    let account = move |active: &Authority, units: u64| Account {
        name: alice,
        active: active.clone(),
        balances: [Money::new(units, Currency::Hive), Money::new(units, Currency::Hbd)],
    };
    let truth = theirs.clone();
    let query = Query {
        first: to_all,
        response: Box::new(move |behavior| match behavior {
            Behavior::Honest => Some(vec![account(&theirs, 500)]),
            Behavior::Stale => Some(vec![account(&theirs, 400)]),
            Behavior::Lies => Some(vec![account(&other, 0)]),
            Behavior::Fails | Behavior::Hangs => None,
        }),
        decide: Box::new(move |responses: &[(usize, Vec<Account>)], status| {
            lookups::decide_accounts(&[alice], responses, status)
        }),
    };
    walk(&query, |end| {
        assert_decides_in_time(end, end.behaviors.len());
        let Some(accounts) = end.decision else { return };
        if end.has_honest_majority() {
            assert_eq!(accounts.len(), 1, "{:?}", end.behaviors);
            assert_eq!(accounts[0].active, truth, "{:?}", end.behaviors);
            assert!([400, 500].contains(&accounts[0].balances[0].units), "{:?}", end.behaviors);
        }
    });
}

#[test]
fn a_place_in_the_chain_takes_a_majority_and_a_rumour_keeps_a_transaction_alive() {
    let query = Query {
        first: to_all,
        response: Box::new(|behavior| match behavior {
            Behavior::Honest => Some(TxStatus::InReversibleBlock(7)),
            Behavior::Stale => Some(TxStatus::Unknown),
            Behavior::Lies => Some(TxStatus::InIrreversibleBlock(9)),
            Behavior::Fails | Behavior::Hangs => None,
        }),
        decide: Box::new(lookups::decide_transaction),
    };
    walk(&query, |end| {
        assert_decides_in_time(end, end.behaviors.len());
        let Some(status) = end.decision else { return };
        if end.has_honest_majority() {
            assert!(!matches!(status, TxStatus::InIrreversibleBlock(_)), "{:?}", end.behaviors);
        }
        if end.count_arrived(Behavior::Honest) >= end.needed && end.has_honest_majority() {
            assert_eq!(*status, TxStatus::InReversibleBlock(7), "{:?}", end.behaviors);
        }
        if *status == TxStatus::Unknown {
            assert!(
                end.count_arrived(Behavior::Stale) >= end.needed,
                "{:?}: one rumour is more than unknown",
                end.behaviors
            );
        }
        assert!(*status != TxStatus::ExpiredIrreversible);
    });
}

#[test]
fn a_transaction_has_expired_only_if_a_majority_reports_it() {
    let query = Query {
        first: to_all,
        response: Box::new(|behavior| match behavior {
            Behavior::Honest => Some(TxStatus::InMempool),
            Behavior::Stale => Some(TxStatus::Unknown),
            Behavior::Lies => Some(TxStatus::ExpiredIrreversible),
            Behavior::Fails | Behavior::Hangs => None,
        }),
        decide: Box::new(lookups::decide_transaction),
    };
    walk(&query, |end| {
        if end.has_honest_majority() {
            assert!(end.decision != Some(&TxStatus::ExpiredIrreversible), "{:?}", end.behaviors);
        }
    });
}

fn refusal() -> NodeError {
    NodeError::Rpc {
        code: -32_003,
        data_code: Some(4_030_100),
        name: String::new(),
        message: "transaction expiration exception".to_owned(),
    }
}

#[test]
fn a_broadcast_is_accepted_or_refused_only_by_a_majority() {
    // The stale node refuses what the others take, the lying one takes it and throws it away.
    for (honest, stale) in [(Reply::Accepted, Reply::Refused(refusal())), (Reply::Refused(refusal()), Reply::Unknown)] {
        let takes = honest == Reply::Accepted;
        let query = Query {
            first: to_all,
            response: Box::new(move |behavior| match behavior {
                Behavior::Honest => Some(honest.clone()),
                Behavior::Stale => Some(stale.clone()),
                Behavior::Lies => Some(Reply::Accepted),
                Behavior::Fails | Behavior::Hangs => None,
            }),
            decide: Box::new(broadcast::decide),
        };
        walk(&query, |end| {
            let (honest, stale) = (end.count_arrived(Behavior::Honest), end.count_arrived(Behavior::Stale));
            let lies = end.count_arrived(Behavior::Lies);
            let (taken, refused) = if takes { (honest + lies, stale) } else { (lies, honest) };
            match end.decision {
                Some(BroadcastOutcome::Accepted) => assert!(taken >= end.needed, "{:?}", end.behaviors),
                Some(BroadcastOutcome::Refused(_)) => {
                    assert!(taken == 0 && refused >= end.needed, "{:?}", end.behaviors);
                }
                Some(BroadcastOutcome::NotSent) => {
                    let lost = if takes { 0 } else { stale };
                    assert!(taken + lost == 0 && refused < end.needed, "{:?}", end.behaviors);
                }
                Some(BroadcastOutcome::PossiblySent) => assert!(taken < end.needed, "{:?}", end.behaviors),
                None => panic!("{:?}: undecided", end.behaviors),
            }
            if end.count(Behavior::Honest) >= end.needed {
                assert_eq!(end.count_arrived(Behavior::Hangs), 0, "{:?} waited for a node that hangs", end.behaviors);
            }
        });
    }
}

#[test]
fn a_price_is_within_two_percent_of_an_honest_one() {
    let query = Query {
        first: to_all,
        response: Box::new(|behavior| match behavior {
            Behavior::Honest => Some(HivePrice::new(258, 1_000)),
            // Read an hour ago: the median moves slowly.
            Behavior::Stale => Some(HivePrice::new(255, 1_000)),
            Behavior::Lies => Some(HivePrice::new(25_800, 1_000)),
            Behavior::Fails | Behavior::Hangs => None,
        }),
        decide: Box::new(|responses: &[(usize, Option<HivePrice>)], status: RoundStatus| {
            let prices: Vec<_> = responses.iter().map(|(_, price)| *price).collect();
            majority::price(&prices, status.needed)
        }),
    };
    walk(&query, |end| {
        assert_decides_in_time(end, end.behaviors.len());
        if let Some(price) = end.decision
            && end.has_honest_majority()
        {
            assert!([255, 258].contains(&price.unwrap().base_hbd_units), "{:?}: {price:?}", end.behaviors);
        }
    });
}

#[test]
fn a_majority_of_the_configured_nodes_decides_and_the_setting_only_raises_it() {
    let needed: Vec<usize> = (1..=5).map(|nodes| majority::needed(nodes, 0)).collect();
    assert_eq!(needed, [1, 2, 2, 3, 3]);
    assert_eq!([majority::needed(3, 1), majority::needed(3, 3), majority::needed(5, 4)], [2, 3, 4]);
    // History: the nodes that keep none are absent, and one alone of several decides nothing.
    let of_history = |configured, lacking| majority::needed_of_history(configured, lacking, 0);
    assert_eq!([of_history(1, 0), of_history(2, 0), of_history(2, 1), of_history(3, 2)], [1, 2, 2, 2]);
    assert_eq!([of_history(3, 0), of_history(5, 3), of_history(5, 1), of_history(5, 0)], [2, 2, 3, 3]);
}

/// Queries three nodes, of which the last never responds, for a result that needs a majority and a timeout; returns the
/// latency.
async fn measure_wait(timeout: [Duration; 3]) -> Duration {
    let (sender, mut responses) = tokio::sync::mpsc::unbounded_channel();
    let begun = tokio::time::Instant::now();
    let query = |at: usize| {
        if at < 2 {
            sender.send((at, Ok(()))).unwrap();
        }
    };
    let decide = |_: &[(usize, ())], status: RoundStatus| status.may_end().then_some(());
    let mut round = Round::new(3, 3, 2);
    pool::drive(&mut round, &mut responses, |at| timeout[at], query, decide, |_, response| response.ok())
        .await
        .unwrap();
    begun.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_known_to_be_slow_is_not_waited_for_after_a_majority() {
    let (long, none) = (Duration::from_millis(300), Duration::ZERO);
    let slow = measure_wait([long, long, none]).await;
    assert!(slow < Duration::from_millis(5), "{slow:?}");
    let well = measure_wait([none, none, long]).await;
    assert!((long..long + Duration::from_millis(5)).contains(&well), "{well:?}");
}
