//! Every way in which the chain refuses a transaction, with hived's code, name and message.

use std::{collections::BTreeMap, time::Duration};

use engine::{
    account::AccountName,
    hive::{
        AccountAuthorities, Asset, Authority, ChainId, Operation, Pack, PrivateKey, RecurrentTransfer, Signature,
        Symbol, Transaction, Transfer, tapos_of,
    },
    time::Timestamp,
};
use simulations::ledger::{Chain, Genesis, Refused, Role};

const START: u64 = 1_800_000_000;

/// A chain of 10 blocks, and its genesis, which has the keys.
fn chain() -> (Chain, Genesis) {
    let genesis = Genesis::demo([7; 32], Timestamp::from_seconds(START));
    let mut chain = Chain::new(&genesis);
    for _ in 0..10 {
        chain.produce(Timestamp::from_seconds(START));
    }
    (chain, genesis)
}

/// A valid transfer by alice.
fn good(chain: &Chain) -> Transaction {
    let (ref_block_num, ref_block_prefix) = tapos_of(chain.head());
    Transaction {
        ref_block_num,
        ref_block_prefix,
        expiration: chain.head_time() + Duration::from_secs(60),
        operations: vec![transfer("alice", "bob", 1_000, "")],
        signatures: Vec::new(),
    }
}

fn transfer(from: &str, to: &str, units: i64, memo: &str) -> Operation {
    let amount = Asset { units, symbol: Symbol::Hbd };
    Operation::Transfer(Transfer { from: from.into(), to: to.into(), amount, memo: memo.into() })
}

/// Changes a valid transaction, lets alice sign it, and broadcasts it.
fn broadcast(chain: &mut Chain, genesis: &Genesis, change: impl FnOnce(&mut Transaction)) -> Result<(), Refused> {
    let mut transaction = good(chain);
    change(&mut transaction);
    transaction.sign(chain.chain_id(), Pack::Legacy, &genesis.key("alice", Role::Active));
    chain.broadcast(transaction).map(drop)
}

/// Asserts hived's code, name and message of a refusal.
#[track_caller]
fn refused(result: Result<(), Refused>, rpc_code: i32, code: u32, name: &str, message: &str) {
    let rendered = result.expect_err("must be refused").render();
    assert_eq!((rendered.rpc_code, rendered.code, rendered.name), (rpc_code, code, name), "{rendered:?}");
    assert!(rendered.message().contains(message), "{}", rendered.message());
}

#[test]
fn a_good_transfer_is_accepted_in_either_packing_and_by_open_authority() {
    let (mut chain, genesis) = chain();
    broadcast(&mut chain, &genesis, |_| ()).unwrap();
    let mut hf26 = good(&chain);
    hf26.operations = vec![transfer("alice", "bob", 2_000, "hf26")];
    hf26.sign(chain.chain_id(), Pack::Hf26, &genesis.key("alice", Role::Active));
    assert_eq!(chain.broadcast(hf26.clone()), Ok(hf26.id(Pack::Hf26)));
    // `temp` needs no signature to spend.
    chain.grant(&AccountName::parse("temp").unwrap(), engine::money::Currency::Hbd, 5_000);
    let mut open = good(&chain);
    open.operations = vec![transfer("temp", "bob", 5_000, "")];
    chain.broadcast(open).unwrap();
    chain.produce(Timestamp::from_seconds(START));
    assert_eq!(chain.block(11).unwrap().transactions.len(), 3);
}

#[test]
fn missing_authority() {
    let (mut chain, genesis) = chain();
    let mut unsigned = good(&chain);
    refused(
        chain.broadcast(unsigned.clone()).map(drop),
        -32003,
        3_010_000,
        "tx_missing_active_auth",
        "missing required active authority:Missing Active Authority alice",
    );
    // Neither another's key, nor another role's, nor the right key over another chain's digest.
    for (key, chain_id) in [
        (genesis.key("bob", Role::Active), chain.chain_id()),
        (genesis.key("alice", Role::Owner), chain.chain_id()),
        (genesis.key("alice", Role::Posting), chain.chain_id()),
        (genesis.key("alice", Role::Active), ChainId::ZERO),
    ] {
        unsigned.signatures.clear();
        unsigned.sign(chain_id, Pack::Legacy, &key);
        let result = chain.broadcast(unsigned.clone()).map(drop);
        refused(result, -32003, 3_010_000, "tx_missing_active_auth", "Missing Active Authority alice");
    }
    unsigned.signatures.clear();
    unsigned.operations = vec![Operation::Vote(engine::hive::Vote {
        voter: "alice".into(),
        author: "bob".into(),
        permlink: "x".into(),
        weight: 1,
    })];
    let result = chain.broadcast(unsigned).map(drop);
    refused(result, -32003, 3_030_000, "tx_missing_posting_auth", "Missing Posting Authority alice");
}

#[test]
fn signatures_that_are_none() {
    let (mut chain, genesis) = chain();
    let mut with = |header: u8, s: u8| {
        broadcast(&mut chain, &genesis, |transaction| {
            let mut bytes = [7; 65];
            bytes[0] = header;
            bytes[33] = s;
            transaction.signatures.push(Signature(bytes));
        })
    };
    refused(with(31, 0xff), -32003, 10, "assert_exception", "signature is not canonical");
    refused(with(26, 1), -32000, 0, "exception", "unable to reconstruct public key from signature");
    let mut transaction = good(&chain);
    transaction.sign(chain.chain_id(), Pack::Legacy, &genesis.key("alice", Role::Active));
    transaction.signatures[0].0[1..33].fill(0xff);
    let result = chain.broadcast(transaction).map(drop);
    refused(result, -32003, 10, "assert_exception", "unable to reconstruct public key from signature");
}

#[test]
fn one_key_twice() {
    let (mut chain, genesis) = chain();
    let key = genesis.key("alice", Role::Active);
    let chain_id = chain.chain_id();
    let result = broadcast(&mut chain, &genesis, |transaction| transaction.sign(chain_id, Pack::Legacy, &key));
    refused(result, -32003, 3_060_000, "tx_duplicate_sig", "Duplicate signature detected");
}

#[test]
fn a_surplus_key_is_no_harm() {
    let (mut chain, genesis) = chain();
    let chain_id = chain.chain_id();
    let bob = genesis.key("bob", Role::Active);
    broadcast(&mut chain, &genesis, |transaction| transaction.sign(chain_id, Pack::Legacy, &bob)).unwrap();
}

#[test]
fn accounts_that_do_not_exist() {
    let (mut chain, genesis) = chain();
    let result = broadcast(&mut chain, &genesis, |tx| tx.operations = vec![transfer("ghost", "bob", 1, "")]);
    let name = "N5boost16exception_detail10clone_implINS0_19error_info_injectorISt12out_of_rangeEEEE";
    refused(result, -32000, 13, name, "unknown key");
    let result = broadcast(&mut chain, &genesis, |tx| tx.operations = vec![transfer("alice", "ghost", 1, "")]);
    refused(result, -32003, 10, "assert_exception", "Account ghost doesn't exist");
}

#[test]
fn a_delegate_that_does_not_exist_spoils_the_authority() {
    let (mut chain, genesis) = chain();
    let alice = AccountName::parse("alice").unwrap();
    let (mut authorities, memo_key) = genesis.authorities("alice");
    authorities.active = Authority {
        weight_threshold: 1,
        account_auths: BTreeMap::from([(AccountName::parse("ghost").unwrap(), 1)]),
        key_auths: BTreeMap::new(),
    };
    chain.set_account(&alice, authorities, memo_key);
    assert_eq!(broadcast(&mut chain, &genesis, |_| ()), Err(Refused::UnknownSigner));
}

#[test]
fn money_that_is_not_there() {
    let (mut chain, genesis) = chain();
    let result = broadcast(&mut chain, &genesis, |tx| tx.operations = vec![transfer("alice", "bob", 10_000_001, "")]);
    refused(
        result,
        -32003,
        10,
        "assert_exception",
        "Account alice does not have sufficient funds for balance adjustment. Required: -10000.001 HBD, Available: 10000.000 HBD",
    );
    // Pending transactions are spent already, and a transaction is atomic.
    broadcast(&mut chain, &genesis, |tx| tx.operations = vec![transfer("alice", "bob", 6_000_000, "")]).unwrap();
    let again = broadcast(&mut chain, &genesis, |tx| {
        tx.operations = vec![transfer("alice", "bob", 2_500_000, "a"), transfer("alice", "bob", 2_500_000, "b")];
    });
    refused(again, -32003, 10, "assert_exception", "Available: 1500.000 HBD");
    chain.produce(Timestamp::from_seconds(START));
    assert_eq!(chain.account("alice").unwrap().balance(simulations::ledger::BalanceKind::Hbd).units, 4_000_000);
}

#[test]
fn the_same_transaction_again() {
    let (mut chain, genesis) = chain();
    let transaction = {
        let mut transaction = good(&chain);
        transaction.sign(chain.chain_id(), Pack::Legacy, &genesis.key("alice", Role::Active));
        transaction
    };
    chain.broadcast(transaction.clone()).unwrap();
    let duplicate = |result: Result<_, Refused>| {
        refused(result.map(drop), -32003, 10, "assert_exception", "Duplicate transaction check failed");
    };
    duplicate(chain.broadcast(transaction.clone()));
    chain.produce(Timestamp::from_seconds(START));
    duplicate(chain.broadcast(transaction.clone()));
    // The signature is not part of the id: another one does not make it another transaction.
    let mut other = transaction;
    other.sign(chain.chain_id(), Pack::Legacy, &genesis.key("bob", Role::Active));
    duplicate(chain.broadcast(other));
}

#[test]
fn a_reference_block_of_another_fork() {
    let (mut chain, genesis) = chain();
    let result = broadcast(&mut chain, &genesis, |tx| tx.ref_block_prefix ^= 1);
    refused(
        result,
        -32003,
        4_030_200,
        "transaction_tapos_exception",
        "trx.ref_block_prefix == tapos_block_summary.block_id._hash[1]",
    );
    // Any recent block is a valid reference, and the genesis itself while the chain is young.
    for number in 0..=10u16 {
        let id = chain.block(number.into()).map(|block| block.id).unwrap_or_default();
        broadcast(&mut chain, &genesis, |tx| {
            (tx.ref_block_num, tx.ref_block_prefix) = tapos_of(id);
            tx.operations = vec![transfer("alice", "bob", 1, &number.to_string())];
        })
        .unwrap();
    }
    let result = broadcast(&mut chain, &genesis, |tx| (tx.ref_block_num, tx.ref_block_prefix) = (11, 5));
    refused(result, -32003, 4_030_200, "transaction_tapos_exception", "");
}

#[test]
fn expiration_is_after_the_head_by_at_most_a_day() {
    let (mut chain, genesis) = chain();
    let head = chain.head_time();
    let mut expiring = |seconds: u64, memo: &str| {
        broadcast(&mut chain, &genesis, |tx| {
            tx.expiration = head + Duration::from_secs(seconds);
            tx.operations = vec![transfer("alice", "bob", 1, memo)];
        })
    };
    refused(expiring(0, "now"), -32003, 4_030_100, "transaction_expiration_exception", "now < trx.expiration");
    expiring(1, "soon").unwrap();
    expiring(86_400, "late").unwrap();
    refused(
        expiring(86_401, "too late"),
        -32003,
        4_030_100,
        "transaction_expiration_exception",
        "HIVE_MAX_TIME_UNTIL_SIGNATURE_EXPIRATION",
    );
}

#[test]
fn no_resource_credits() {
    let (mut chain, genesis) = chain();
    let alice = AccountName::parse("alice").unwrap();
    chain.set_rc(&alice, false);
    let result = broadcast(&mut chain, &genesis, |_| ());
    refused(result, -32003, 4_100_100, "not_enough_rc_exception", "Account: alice has 0 RC, needs 157 RC.");
    chain.set_rc(&alice, true);
    broadcast(&mut chain, &genesis, |_| ()).unwrap();
}

#[test]
fn a_transaction_that_is_larger_than_a_block() {
    let (mut chain, genesis) = chain();
    let many = |count: usize| vec![transfer("alice", "bob", 1, &"x".repeat(2_047)); count];
    let result = broadcast(&mut chain, &genesis, |tx| tx.operations = many(32));
    refused(result, -32003, 10, "assert_exception", "Transaction too large - size = ");
    broadcast(&mut chain, &genesis, |tx| tx.operations = many(31)).unwrap();
}

#[test]
fn what_no_chain_would_take() {
    let (mut chain, genesis) = chain();
    let mut only = |operation: Operation| broadcast(&mut chain, &genesis, |tx| tx.operations = vec![operation]);
    let vests = {
        let amount = Asset { units: 1, symbol: Symbol::Vests };
        Operation::Transfer(Transfer { from: "alice".into(), to: "bob".into(), amount, memo: String::new() })
    };
    let recurrent = |to: &str, recurrence, executions| {
        let (amount, memo) = (Asset { units: 1, symbol: Symbol::Hbd }, String::new());
        let (from, to, extensions) = ("alice".into(), to.into(), Vec::new());
        Operation::RecurrentTransfer(RecurrentTransfer { from, to, amount, memo, recurrence, executions, extensions })
    };
    for (operation, words) in [
        (transfer("alice", "al", 1, ""), "Account name 'al' is too short."),
        (transfer("alice", "abcdefghijklmnopq", 1, ""), "Account name 'abcdefghijklmnopq' is too long."),
        (transfer("alice", "Bob", 1, ""), "Account name 'Bob' is not valid."),
        (transfer("alice", "bob", 0, ""), "Cannot transfer a negative amount (aka: stealing)"),
        (transfer("alice", "bob", -1, ""), "Cannot transfer a negative amount (aka: stealing)"),
        (transfer("alice", "bob", 1, &"x".repeat(2_048)), "Transfer memo is too large"),
        (vests, "Transfer of vesting is not allowed."),
        (recurrent("bob", 23, 2), "less than 24 hours"),
        (recurrent("bob", 24, 1), "Executions must be at least 2"),
        (recurrent("alice", 24, 2), "Cannot set a transfer to yourself"),
        (recurrent("bob", 24, 731), "longer than 730 days"),
    ] {
        refused(only(operation), -32003, 10, "assert_exception", words);
    }
    let none = broadcast(&mut chain, &genesis, |tx| tx.operations.clear());
    refused(none, -32003, 10, "assert_exception", "A transaction must have at least one operation");
}

#[test]
fn an_account_name_that_is_taken() {
    let (mut chain, genesis) = chain();
    let AccountAuthorities { owner, active, posting } = genesis.authorities("newcomer").0;
    let create = |name: &str| {
        Operation::AccountCreate(engine::hive::AccountCreate {
            fee: Asset { units: 3_000, symbol: Symbol::Hive },
            creator: "alice".into(),
            new_account_name: name.into(),
            owner: owner.clone(),
            active: active.clone(),
            posting: posting.clone(),
            memo_key: PrivateKey::from_bytes(&[9; 32]).unwrap().public(),
            json_metadata: String::new(),
        })
    };
    let result = broadcast(&mut chain, &genesis, |tx| tx.operations = vec![create("bob")]);
    refused(result, -32003, 10, "assert_exception", "Account bob already exists.");
    broadcast(&mut chain, &genesis, |tx| tx.operations = vec![create("newcomer")]).unwrap();
    chain.produce(Timestamp::from_seconds(START));
    let mut first = good(&chain);
    chain.grant(&AccountName::parse("newcomer").unwrap(), engine::money::Currency::Hbd, 1_000);
    first.operations = vec![transfer("newcomer", "bob", 1_000, "")];
    first.sign(chain.chain_id(), Pack::Legacy, &genesis.key("newcomer", Role::Active));
    chain.broadcast(first).unwrap();
}
