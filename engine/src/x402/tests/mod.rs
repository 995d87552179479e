//! Tests of x402: offers, payloads, requirements, checks and signatures.

mod checks;
mod offers;
mod payloads;
mod requirements;
mod signatures;

use std::time::Duration;

use super::Offer;
use crate::{
    account::AccountName,
    hive::{Asset, ChainId, Operation, Pack, PrivateKey, Symbol, Transaction, Transfer},
    ids::PaymentId,
    money::{Currency, Money},
    time::Timestamp,
};

/// The time of the head block.
const NOW: Timestamp = Timestamp::from_seconds(1_800_000_000);
const NONCE: &str = "00112233445566778899aabbccddeeff";

fn name(text: &str) -> AccountName {
    AccountName::parse(text).unwrap()
}

fn session() -> PaymentId {
    PaymentId::from_bits(7)
}

fn key(account: &str) -> PrivateKey {
    PrivateKey::from_login(account, "active", "test").unwrap()
}

fn hbd(units: i64) -> Asset {
    Asset { units, symbol: Symbol::Hbd }
}

fn transfer(from: &str, to: &str, amount: Asset, memo: &str) -> Operation {
    Operation::Transfer(Transfer { from: from.into(), to: to.into(), amount, memo: memo.into() })
}

/// Returns an unsigned transaction that expires in a minute.
fn transaction(operations: Vec<Operation>) -> Transaction {
    Transaction {
        ref_block_num: 1,
        ref_block_prefix: 2,
        expiration: NOW + Duration::from_secs(60),
        operations,
        signatures: Vec::new(),
    }
}

/// Returns a signed payment of 10.500 HBD from alice.
fn paid() -> Transaction {
    let memo = format!("pos-{}", session());
    let mut transaction = transaction(vec![transfer("alice", "blue.mugs", hbd(10_500), &memo)]);
    transaction.sign(ChainId::MAINNET, Pack::Legacy, &key("alice"));
    transaction
}

fn offer() -> Offer {
    Offer {
        session: session(),
        amount: Money::new(10_500, Currency::Hbd),
        pay_to: name("blue.mugs"),
        fee: None,
        path: "/for/blue-mug-0000".to_owned(),
        base_url: "https://pay.example".to_owned(),
        description: "A blue mug".to_owned(),
        expires_at: NOW + Duration::from_secs(1_800),
        signed: None,
    }
}
