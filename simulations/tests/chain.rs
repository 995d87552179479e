//! The chain over time: finality, forks, expiry, virtual operations, and conservation of money.

use std::{collections::BTreeSet, time::Duration};

use engine::{
    account::AccountName,
    hive::{
        Asset, BlockHeader, Operation, Pack, RecurrentTransfer, Symbol, Transaction, TransferFromSavings,
        TransferToSavings, block, merkle_root, tapos_of,
    },
    ledger::{BlockId, TxId},
    money::{Currency, Money},
    time::Timestamp,
};
use proptest::prelude::*;
use simulations::ledger::{BalanceKind, Chain, ForkError, Genesis, Lie, Node, Orphans, Role, Status, VirtualOperation};

const START: u64 = 1_800_000_000;

fn time(seconds: u64) -> Timestamp {
    Timestamp::from_seconds(START + seconds)
}

fn chain() -> (Chain, Genesis) {
    let genesis = Genesis::demo([7; 32], time(0));
    (Chain::new(&genesis), genesis)
}

fn produce(chain: &mut Chain, blocks: u32) {
    for _ in 0..blocks {
        chain.produce(time(0));
    }
}

fn pay(chain: &mut Chain, genesis: &Genesis, from: &str, to: &str, amount: &str, memo: &str) -> TxId {
    let transfer = chain.transfer(from, to, amount, memo, &genesis.key(from, Role::Active)).unwrap();
    chain.broadcast(transfer).unwrap()
}

fn send(chain: &mut Chain, genesis: &Genesis, operation: Operation) {
    let (ref_block_num, ref_block_prefix) = tapos_of(chain.head());
    let mut transaction = Transaction {
        ref_block_num,
        ref_block_prefix,
        expiration: chain.head_time() + Duration::from_secs(60),
        operations: vec![operation],
        signatures: Vec::new(),
    };
    transaction.sign(chain.chain_id(), Pack::Legacy, &genesis.key("alice", Role::Active));
    chain.broadcast(transaction).unwrap();
}

fn hbd(chain: &Chain, name: &str) -> i64 {
    chain.account(name).unwrap().balance(BalanceKind::Hbd).units
}

#[test]
fn a_block_has_a_true_id_root_and_signature() {
    let (mut chain, genesis) = chain();
    for round in 0..3 {
        pay(&mut chain, &genesis, "alice", "bob", "1.000 HBD", &format!("{round}"));
    }
    produce(&mut chain, 2);
    let block = chain.block(1).unwrap();
    let leaves: Vec<Vec<u8>> =
        block.transactions.iter().map(|included| included.transaction.signed_bytes(included.pack)).collect();
    let header = BlockHeader {
        previous: BlockId::default(),
        timestamp: time(3),
        witness: block.header.witness.clone(),
        transaction_merkle_root: merkle_root(leaves.iter().map(Vec::as_slice)),
    };
    assert_eq!(header, block.header);
    assert_eq!(block.id, header.id(&block.witness_signature));
    assert_eq!(block.witness_signature.recover(&header.digest()), Ok(chain.signing_key()));
    assert_eq!(chain.block(2).unwrap().header.previous, block.id);
}

#[test]
fn time_goes_on_by_steps_and_with_the_clock_and_never_back() {
    let (mut chain, _) = chain();
    assert_eq!(chain.produce(time(0)).time(), time(3));
    assert_eq!(chain.produce(time(10)).time(), time(10));
    assert_eq!(chain.produce(time(5)).time(), time(13));
    chain.set_block_step(Duration::from_millis(500));
    assert_eq!(chain.produce(time(5)).time(), time(13), "blocks of one second are allowed when asked for");
}

#[test]
fn finality_follows_at_its_lag_and_can_be_held() {
    let (mut chain, _) = chain();
    produce(&mut chain, 10);
    assert_eq!(chain.irreversible_num(), 8);
    chain.hold_irreversibility(true);
    produce(&mut chain, 10);
    assert_eq!(chain.irreversible_num(), 8);
    chain.hold_irreversibility(false);
    assert_eq!(chain.irreversible_num(), 18);
    chain.set_irreversibility_lag(0);
    assert_eq!(chain.irreversible_num(), 20);
    chain.set_irreversibility_lag(15);
    assert_eq!(chain.irreversible_num(), 20, "what is final stays final");
}

#[test]
fn a_fork_takes_back_blocks_and_their_money() {
    let (mut chain, genesis) = chain();
    produce(&mut chain, 5);
    let shared = chain.head();
    let kept = pay(&mut chain, &genesis, "alice", "bob", "1.000 HBD", "kept");
    let dropped = pay(&mut chain, &genesis, "alice", "bob", "2.000 HBD", "dropped");
    produce(&mut chain, 2);
    let orphan = chain.block(6).unwrap().id;
    assert_eq!(hbd(&chain, "bob"), 10_003_000);

    let fork = chain.fork(2, &Orphans::DropThese(BTreeSet::from([dropped]))).unwrap();
    assert_eq!((fork.parent, fork.orphaned_blocks.len(), fork.dropped), (shared, 2, vec![dropped]));
    assert_eq!(hbd(&chain, "bob"), 10_000_000);
    assert_eq!(chain.status(kept, None), Status::WithinMempool);
    assert_eq!(chain.status(dropped, None), Status::Unknown);

    produce(&mut chain, 3);
    assert_ne!(chain.block(6).unwrap().id, orphan, "the new branch has other ids");
    assert_eq!(hbd(&chain, "bob"), 10_001_000);
    assert_eq!(chain.find(kept), Some((6, 0)));
    assert_eq!(chain.status(kept, None), Status::WithinIrreversibleBlock(6));
}

#[test]
fn an_empty_block_too_has_another_id_on_another_branch() {
    let (mut chain, _) = chain();
    produce(&mut chain, 3);
    let before = chain.head();
    chain.fork(1, &Orphans::Keep).unwrap();
    produce(&mut chain, 1);
    assert_ne!(chain.head(), before);
    assert_eq!(chain.head().number(), before.number());
}

#[test]
fn what_is_final_cannot_be_taken_back() {
    let (mut chain, _) = chain();
    produce(&mut chain, 10);
    assert_eq!(chain.fork(3, &Orphans::Keep), Err(ForkError::Irreversible { reversible: 2 }));
    chain.hold_irreversibility(true);
    produce(&mut chain, 5);
    assert!(chain.fork(7, &Orphans::Keep).is_ok());
}

#[test]
fn a_transaction_is_included_until_its_expiration_and_not_after() {
    let (mut chain, genesis) = chain();
    produce(&mut chain, 1);
    let head = chain.head_time();
    let expiring = |chain: &mut Chain, seconds: u64| {
        let mut transaction = chain
            .transfer("alice", "bob", "1.000 HBD", &seconds.to_string(), &genesis.key("alice", Role::Active))
            .unwrap();
        transaction.expiration = head + Duration::from_secs(seconds);
        transaction.signatures.clear();
        transaction.sign(chain.chain_id(), Pack::Legacy, &genesis.key("alice", Role::Active));
        (chain.broadcast(transaction.clone()).unwrap(), transaction.expiration)
    };
    let (late, late_expires) = expiring(&mut chain, 2);
    let (just, _) = expiring(&mut chain, 3);
    produce(&mut chain, 1);
    assert_eq!(chain.find(just), Some((2, 0)), "a block at the very expiration still takes it");
    assert_eq!(chain.find(late), None);
    assert_eq!(chain.status(late, Some(late_expires)), Status::WithinMempool);
    produce(&mut chain, 1);
    assert_eq!(chain.status(late, Some(late_expires)), Status::ExpiredReversible);
    produce(&mut chain, 2);
    assert_eq!(chain.status(late, Some(late_expires)), Status::ExpiredIrreversible);
    assert_eq!(chain.status(late, None), Status::Unknown);
    assert_eq!(chain.status(late, Some(Timestamp::from_seconds(1))), Status::TooOld);
}

#[test]
fn a_node_forgets_what_no_block_takes_within_an_hour_and_takes_it_again() {
    let (mut chain, genesis) = chain();
    chain.hold_transactions(true);
    let key = genesis.key("alice", Role::Active);
    let mut transaction = chain.transfer("alice", "bob", "1.000 HBD", "", &key).unwrap();
    transaction.expiration = time(86_000);
    transaction.signatures.clear();
    transaction.sign(chain.chain_id(), Pack::Legacy, &key);
    let id = chain.broadcast(transaction.clone()).unwrap();
    chain.produce(time(3_600));
    assert!(chain.is_known(id));
    chain.produce(time(3_603));
    assert!(!chain.is_known(id));
    chain.hold_transactions(false);
    assert_eq!(chain.broadcast(transaction), Ok(id));
    produce(&mut chain, 1);
    assert_eq!(chain.find(id), Some((3, 0)));
}

#[test]
fn what_does_not_fit_into_one_block_comes_in_the_next() {
    let (mut chain, genesis) = chain();
    for round in 0..40 {
        pay(&mut chain, &genesis, "alice", "bob", "0.001 HBD", &format!("{round:02}{}", "x".repeat(2_000)));
    }
    produce(&mut chain, 2);
    let counts = [1, 2].map(|number| chain.block(number).unwrap().transactions.len());
    assert_eq!(counts.iter().sum::<usize>(), 40);
    assert!(counts[1] > 0, "{counts:?}");
}

#[test]
fn money_to_null_is_gone() {
    let (mut chain, genesis) = chain();
    let before = chain.supply(BalanceKind::Hbd).units;
    pay(&mut chain, &genesis, "alice", "null", "1.000 HBD", "");
    produce(&mut chain, 1);
    assert_eq!((hbd(&chain, "null"), chain.supply(BalanceKind::Hbd).units), (0, before - 1_000));
}

#[test]
fn a_recurrent_transfer_pays_at_once_and_at_its_times_and_ends() {
    let (mut chain, genesis) = chain();
    let agreement = RecurrentTransfer {
        from: "alice".into(),
        to: "shop.demo".into(),
        amount: Asset { units: 5_000, symbol: Symbol::Hbd },
        memo: "sub-1".into(),
        recurrence: 24,
        executions: 2,
        extensions: Vec::new(),
    };
    send(&mut chain, &genesis, Operation::RecurrentTransfer(agreement));
    produce(&mut chain, 1);
    let [VirtualOperation::FillRecurrentTransfer { remaining_executions: 1, memo, .. }] =
        &chain.block(1).unwrap().virtual_operations[..]
    else {
        panic!("{:?}", chain.block(1).unwrap().virtual_operations)
    };
    assert_eq!(memo, "sub-1");
    assert_eq!(hbd(&chain, "shop.demo"), 105_000);
    let shown = |lie| {
        let liar = Node { lie: Some(lie), ..Node::default() };
        let transfers = liar.view(&chain).block(1).unwrap().virtual_transfers();
        transfers.iter().map(|transfer| transfer.money.units).collect::<Vec<_>>()
    };
    assert_eq!((shown(Lie::OmitTransfers), shown(Lie::InflateTransfers)), (vec![], vec![50_000]));
    chain.produce(time(86_399));
    assert!(chain.block(2).unwrap().virtual_operations.is_empty());
    let due = chain.produce(time(86_403));
    assert!(matches!(
        due.virtual_operations[..],
        [VirtualOperation::FillRecurrentTransfer { remaining_executions: 0, .. }]
    ));
    assert!(due.neutral().transfers.is_empty(), "it is no transfer operation");
    assert_eq!(hbd(&chain, "shop.demo"), 110_000);
    // A fork removes it, and then it happens again.
    chain.fork(1, &Orphans::Keep).unwrap();
    assert_eq!(hbd(&chain, "shop.demo"), 105_000);
    chain.produce(time(86_403));
    assert_eq!(hbd(&chain, "shop.demo"), 110_000);
    chain.produce(time(3 * 86_400));
    assert_eq!(hbd(&chain, "shop.demo"), 110_000);
}

#[test]
fn a_recurrent_transfer_fails_without_money_and_ends_after_ten_failures() {
    let (mut chain, genesis) = chain();
    let agreement = RecurrentTransfer {
        from: "alice".into(),
        to: "bob".into(),
        amount: Asset { units: 10_000_000, symbol: Symbol::Hbd },
        memo: String::new(),
        recurrence: 24,
        executions: 100,
        extensions: Vec::new(),
    };
    send(&mut chain, &genesis, Operation::RecurrentTransfer(agreement));
    let failures: Vec<u16> = (0..20u64)
        .filter_map(|day| {
            let block = chain.produce(time(day * 86_400 + 3));
            match block.virtual_operations[..] {
                [VirtualOperation::FailedRecurrentTransfer { consecutive_failures, .. }] => Some(consecutive_failures),
                _ => None,
            }
        })
        .collect();
    assert_eq!(failures, (1..=10).collect::<Vec<u16>>());
}

#[test]
fn savings_come_out_after_three_days() {
    let (mut chain, genesis) = chain();
    let amount = Asset { units: 5_000, symbol: Symbol::Hbd };
    let (from, to, memo) = ("alice".to_owned(), "shop.demo".to_owned(), "m".to_owned());
    send(
        &mut chain,
        &genesis,
        Operation::TransferToSavings(TransferToSavings {
            from: from.clone(),
            to: from.clone(),
            amount,
            memo: memo.clone(),
        }),
    );
    produce(&mut chain, 1);
    assert_eq!(chain.account("alice").unwrap().balance(BalanceKind::SavingsHbd), amount);
    send(
        &mut chain,
        &genesis,
        Operation::TransferFromSavings(TransferFromSavings { from, request_id: 7, to, amount, memo }),
    );
    produce(&mut chain, 1);
    assert_eq!(hbd(&chain, "shop.demo"), 100_000);
    let block = chain.produce(time(3 * 86_400 + 9));
    assert!(matches!(block.virtual_operations[..], [VirtualOperation::FillTransferFromSavings { request_id: 7, .. }]));
    assert_eq!(hbd(&chain, "shop.demo"), 105_000);
}

#[test]
fn a_node_that_is_behind_shows_what_it_has() {
    let (mut chain, _) = chain();
    produce(&mut chain, 10);
    let node = Node { lag_blocks: 4, ..Node::default() };
    let view = node.view(&chain);
    assert_eq!((view.head().0.number(), view.irreversible_num()), (6, 6));
    assert!(view.block(6).is_some() && view.block(7).is_none());
    let behind = Node { lag_blocks: 40, ..Node::default() };
    assert_eq!(behind.view(&chain).head(), (BlockId::default(), time(0)));
}

#[test]
fn each_lie_changes_what_a_node_shows_and_nothing_else() {
    let (mut chain, genesis) = chain();
    pay(&mut chain, &genesis, "alice", "bob", "1.000 HBD", "true");
    produce(&mut chain, 4);
    let truth = chain.block(1).unwrap().neutral();
    let name = |text: &str| AccountName::parse(text).unwrap();
    let lying = |lie: Lie| Node { lie: Some(lie), ..Node::default() };
    let shown = |node: &Node| node.view(&chain).block(1).unwrap().neutral();

    let invented = lying(Lie::InventTransfer {
        block: 1,
        from: name("carol"),
        to: name("bob"),
        money: Money::new(9, Currency::Hbd),
        memo: "false".into(),
    });
    let transfers = shown(&invented).transfers;
    assert_eq!(transfers.len(), 2);
    assert_eq!((transfers[1].from.as_str(), transfers[1].memo.as_str()), ("carol", "false"));
    assert_eq!(shown(&invented).id, truth.id, "the id does not give it away");
    assert_eq!(shown(&lying(Lie::OmitTransfers)).transfers, []);
    assert_eq!(shown(&lying(Lie::InflateTransfers)).transfers[0].money.units, 10_000);
    assert_eq!(lying(Lie::EverythingIsFinal).view(&chain).irreversible_num(), 4);
    let ahead = lying(Lie::HeadAhead { blocks: 5 });
    assert_eq!((ahead.view(&chain).head().0.number(), ahead.view(&chain).irreversible_num()), (9, 9));
    let key = genesis.key("carol", Role::Active).public();
    let keys = lying(Lie::Keys { key });
    assert!(keys.view(&chain).account("alice").unwrap().authorities.active.key_auths.contains_key(&key));
    assert!(lying(Lie::SwallowBroadcasts).view(&chain).swallows_broadcasts());
    assert_eq!(chain.block(1).unwrap().neutral(), truth);
}

/// An arbitrary operation on a chain.
#[derive(Debug, Clone)]
enum Step {
    Pay { from: usize, to: usize, units: u64, hive: bool },
    Produce(u32),
    Fork { depth: u32, keep: bool },
    Hold(bool),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..4usize, 0..4usize, 1..4_000_000u64, any::<bool>()).prop_map(|(from, to, units, hive)| Step::Pay { from, to, units, hive }),
        4 => (1..4u32).prop_map(Step::Produce),
        1 => (0..4u32, any::<bool>()).prop_map(|(depth, keep)| Step::Fork { depth, keep }),
        1 => any::<bool>().prop_map(Step::Hold),
        1 => (0..5_000u64).prop_map(Step::Wait),
    ]
}

const PEOPLE: [&str; 4] = ["alice", "bob", "carol", "shop.demo"];

/// Executes the steps; checks after each that no money is created or lost, and that no balance is negative.
fn live(steps: &[Step]) -> Chain {
    let (mut chain, genesis) = chain();
    let all = |chain: &Chain, pot: BalanceKind| chain.accounts().map(|account| account.balance(pot).units).sum::<i64>();
    let before = [BalanceKind::Hive, BalanceKind::Hbd].map(|pot| all(&chain, pot));
    let mut clock = 0;
    for (round, step) in steps.iter().enumerate() {
        match step {
            Step::Pay { from, to, units, hive } => {
                let currency = if *hive { Currency::Hive } else { Currency::Hbd };
                let amount = Money::new(*units, currency).to_string();
                let (from, to) = (PEOPLE[*from], PEOPLE[*to]);
                let key = genesis.key(from, Role::Active);
                // Sometimes refused for insufficient funds.
                let _ = chain.broadcast(chain.transfer(from, to, &amount, &round.to_string(), &key).unwrap());
            }
            Step::Produce(count) => (0..*count).for_each(|_| drop(chain.produce(time(clock)).time().to_ledger())),
            Step::Fork { depth, keep } => {
                let _ = chain.fork(*depth, if *keep { &Orphans::Keep } else { &Orphans::Drop });
            }
            Step::Hold(held) => chain.hold_irreversibility(*held),
            Step::Wait(seconds) => clock += seconds,
        }
        assert_eq!([BalanceKind::Hive, BalanceKind::Hbd].map(|pot| all(&chain, pot)), before);
        assert_eq!([BalanceKind::Hive, BalanceKind::Hbd].map(|pot| chain.supply(pot).units), before);
        assert!(chain.accounts().all(
            |account| account.balance(BalanceKind::Hive).units >= 0 && account.balance(BalanceKind::Hbd).units >= 0
        ));
    }
    chain
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn no_history_makes_or_loses_money_and_the_same_history_is_the_same_chain(steps in proptest::collection::vec(step(), 1..40)) {
        let (one, two) = (live(&steps), live(&steps));
        prop_assert_eq!(one.head(), two.head());
        // The balances follow from the blocks alone.
        let mut paid = std::collections::BTreeMap::<(String, Currency), i64>::new();
        for number in 1..=one.head().number() {
            for transfer in one.block(number).unwrap().neutral().transfers {
                let units = i64::try_from(transfer.money.units).unwrap();
                *paid.entry((transfer.from.to_string(), transfer.money.currency)).or_default() -= units;
                *paid.entry((transfer.to.to_string(), transfer.money.currency)).or_default() += units;
            }
        }
        let fresh = chain().0;
        for name in PEOPLE {
            for (pot, currency) in [(BalanceKind::Hive, Currency::Hive), (BalanceKind::Hbd, Currency::Hbd)] {
                let balance = |chain: &Chain| chain.account(name).unwrap().balance(pot).units;
                let moved = paid.get(&(name.to_owned(), currency)).copied().unwrap_or(0);
                prop_assert_eq!(balance(&one), balance(&fresh) + moved);
            }
        }
    }
}

#[test]
fn the_engine_reads_the_contents_of_a_block_correctly() {
    let (mut chain, genesis) = chain();
    pay(&mut chain, &genesis, "alice", "bob", "1.000 HIVE", "é 🐝 \"quoted\"");
    produce(&mut chain, 1);
    let block = chain.block(1).unwrap();
    let included = &block.transactions[0];
    let json = format!(
        r#"{{"block_id":"{}","previous":"{}","timestamp":"{}","transactions":[{}],"transaction_ids":["{}"]}}"#,
        block.id,
        block.header.previous,
        block.time().to_ledger(),
        included.transaction.to_hf26_json(),
        included.id
    );
    assert_eq!(block::parse_condenser_block(&json), Ok(Some(block.neutral())));
}
