//! Tests of the local checks and their precedence.

use std::time::Duration;

use proptest::prelude::*;

use super::{NONCE, NOW, hbd, name, session, transaction, transfer};
use crate::{
    hive::{Asset, Operation, Symbol, Transaction, TransferToSavings},
    ids::PaymentId,
    ledger::memo_of,
    money::{Currency, Money},
    time::Timestamp,
    x402::{CheckedPayment, Expected, MemoRule, Reason, Refused, Version, check_balance, is_bound},
};

const HOUR: Duration = Duration::from_secs(3_600);

/// One transfer of 10.500 HBD to blue.mugs.
fn whole() -> Expected {
    Expected {
        pay_to: name("blue.mugs"),
        net: Money::new(10_500, Currency::Hbd),
        fee: None,
        memo: MemoRule::Session(session()),
    }
}

/// 10.343 HBD to blue.mugs, and 0.157 HBD to fee.taker.
fn split() -> Expected {
    Expected { net: Money::new(10_343, Currency::Hbd), fee: Some((name("fee.taker"), 157)), ..whole() }
}

fn foreign() -> Expected {
    Expected { memo: MemoRule::Requirements, ..whole() }
}

fn check(expected: &Expected, transaction: &Transaction, version: Version) -> Result<CheckedPayment, Refused> {
    expected.check(transaction, version, NONCE, NOW, HOUR)
}

fn reason(expected: &Expected, operations: Vec<Operation>) -> Result<(), Reason> {
    check(expected, &transaction(operations), Version::V1).map(drop).map_err(|refused| refused.reason)
}

fn memo() -> String {
    memo_of(session())
}

fn pay(amount: Asset) -> Operation {
    transfer("alice", "blue.mugs", amount, &memo())
}

fn fee(units: i64) -> Operation {
    transfer("alice", "fee.taker", hbd(units), &format!("fee-{}", session()))
}

fn hive(units: i64) -> Asset {
    Asset { units, symbol: Symbol::Hive }
}

fn savings() -> Operation {
    let (from, to) = ("alice".into(), "blue.mugs".into());
    Operation::TransferToSavings(TransferToSavings { from, to, amount: hbd(10_500), memo: memo() })
}

#[test]
fn valid_transfers_pass_with_payer_and_transfers() {
    let checked = check(&whole(), &transaction(vec![pay(hbd(10_500))]), Version::V2).unwrap();
    assert_eq!((checked.payer.as_str(), checked.transfers.len()), ("alice", 1));
    assert_eq!(checked.transfers[0].money, Money::new(10_500, Currency::Hbd));
    assert!(is_bound(&whole(), &checked));
    for operations in [vec![pay(hbd(10_343)), fee(157)], vec![fee(157), pay(hbd(10_343))]] {
        let checked = check(&split(), &transaction(operations), Version::V2).unwrap();
        let places: Vec<_> = checked.transfers.iter().map(|transfer| transfer.op_in_tx).collect();
        assert_eq!(places, [0, 1]);
    }
}

#[test]
fn attack_19_exactly_the_transfers_and_nothing_else() {
    let one = || pay(hbd(10_500));
    for operations in [vec![], vec![one(), one()], vec![savings()], vec![one(), savings()], vec![one(), fee(157)]] {
        assert_eq!(reason(&whole(), operations), Err(Reason::Operations));
    }
    for operations in [vec![one()], vec![one(), savings()], vec![one(), fee(157), fee(157)]] {
        assert_eq!(reason(&split(), operations), Err(Reason::Operations));
    }
}

#[test]
fn attack_20_self_payments_are_refused() {
    let own = transfer("blue.mugs", "blue.mugs", hbd(10_500), &memo());
    assert_eq!(reason(&whole(), vec![own]), Err(Reason::SelfPayment));
    let collector = |to: &str, units| transfer("fee.taker", to, hbd(units), &memo());
    assert_eq!(
        reason(&split(), vec![collector("blue.mugs", 10_343), collector("fee.taker", 157)]),
        Err(Reason::SelfPayment)
    );
}

#[test]
fn attack_22_every_transfer_is_in_the_currency_that_is_asked_for() {
    assert_eq!(reason(&whole(), vec![pay(hive(10_500))]), Err(Reason::AssetMismatch));
    let vests = Asset { units: 10_500, symbol: Symbol::Vests };
    assert_eq!(reason(&whole(), vec![pay(vests)]), Err(Reason::AssetMismatch));
    let fee_in_hive = transfer("alice", "fee.taker", hive(157), &memo());
    assert_eq!(reason(&split(), vec![pay(hbd(10_343)), fee_in_hive]), Err(Reason::AssetMismatch));
}

#[test]
fn attack_23_the_parts_of_a_split_are_matched_as_a_set() {
    let cases = [
        (vec![pay(hbd(10_343)), pay(hbd(157))], Reason::RecipientMismatch),
        (vec![fee(157), fee(10_343)], Reason::RecipientMismatch),
        (vec![pay(hbd(10_343)), transfer("alice", "red.mugs", hbd(157), &memo())], Reason::RecipientMismatch),
        (vec![pay(hbd(157)), fee(10_343)], Reason::Amount),
        (vec![pay(hbd(10_343)), fee(156)], Reason::Amount),
        (vec![pay(hbd(10_342)), fee(158)], Reason::Amount),
        (vec![pay(hbd(10_343)), transfer("carol", "fee.taker", hbd(157), &memo())], Reason::SenderMismatch),
    ];
    for (operations, wanted) in cases {
        assert_eq!(reason(&split(), operations.clone()), Err(wanted), "{operations:?}");
    }
}

#[test]
fn rule_a_version_1_accepts_more_and_version_2_requires_the_exact_amount() {
    let with = |expected: &Expected, operations: Vec<Operation>, version| {
        check(expected, &transaction(operations), version).map(drop).map_err(|refused| refused.reason)
    };
    for (units, v1, v2) in [
        (10_499, Err(Reason::Amount), Err(Reason::Amount)),
        (10_500, Ok(()), Ok(())),
        (10_501, Ok(()), Err(Reason::AmountMismatch)),
        (0, Err(Reason::Amount), Err(Reason::Amount)),
        (-10_500, Err(Reason::Amount), Err(Reason::Amount)),
        (i64::MAX, Ok(()), Err(Reason::AmountMismatch)),
    ] {
        assert_eq!(with(&whole(), vec![pay(hbd(units))], Version::V1), v1, "{units}");
        assert_eq!(with(&whole(), vec![pay(hbd(units))], Version::V2), v2, "{units}");
    }
    let more_fee = || vec![pay(hbd(10_343)), fee(158)];
    assert_eq!(with(&split(), more_fee(), Version::V1), Ok(()));
    assert_eq!(with(&split(), more_fee(), Version::V2), Err(Reason::AmountMismatch));
}

#[test]
fn rule_m_a_session_memo_is_exact_or_contains_the_payload_nonce() {
    let with = |memo: &str| reason(&whole(), vec![transfer("alice", "blue.mugs", hbd(10_500), memo)]);
    let bound_by_nonce = format!("x402:{NONCE}");
    for good in [&memo(), &bound_by_nonce] {
        assert_eq!(with(good), Ok(()), "{good}");
    }
    let other = memo_of(PaymentId::from_bits(8));
    for bad in [
        "",
        "x402:",
        "x402:0123",
        "#secret",
        "thanks",
        &other,
        &memo().to_uppercase(),
        &format!("{} ", memo()),
        &format!(" {}", memo()),
        &format!("{} {other}", memo()),
        &bound_by_nonce.to_uppercase(),
        &format!("{bound_by_nonce} "),
        &session().to_string(),
    ] {
        assert_eq!(with(bad), Err(Reason::MemoMismatch), "{bad:?}");
    }
    let nonces = |nonce: &str| {
        let operation = transfer("alice", "blue.mugs", hbd(10_500), &format!("x402:{nonce}"));
        whole().check(&transaction(vec![operation]), Version::V1, nonce, NOW, HOUR).is_ok()
    };
    assert!(nonces(NONCE) && nonces(&NONCE.to_uppercase()));
    for short in ["1", &NONCE[1..], &format!("{NONCE}0"), &NONCE.replace('0', "g")] {
        assert!(!nonces(short), "only 32 hex characters bind: {short}");
    }
}

#[test]
fn only_a_memo_that_names_the_session_binds_to_it() {
    let checked = |expected: &Expected, memo: &str| {
        let operation = transfer("alice", "blue.mugs", hbd(10_500), memo);
        check(expected, &transaction(vec![operation]), Version::V1).unwrap()
    };
    assert!(is_bound(&whole(), &checked(&whole(), &memo())));
    assert!(!is_bound(&whole(), &checked(&whole(), &format!("x402:{NONCE}"))));
    assert!(!is_bound(&foreign(), &checked(&foreign(), "order 5")));
}

#[test]
fn rule_m_requirements_accept_any_memo_without_a_session_or_another_nonce() {
    let with = |memo: &str| reason(&foreign(), vec![transfer("alice", "blue.mugs", hbd(10_500), memo)]);
    for good in ["", "order 5", "#encrypted", "#pos-pay", &format!("x402:{NONCE}"), "post-it", "X402:other"] {
        assert_eq!(with(good), Ok(()), "{good}");
    }
    for bad in ["pos-", "pos-5", &memo(), &format!("for {}", memo()), &memo().to_uppercase(), "x402:", "x402:other"] {
        assert_eq!(with(bad), Err(Reason::MemoMismatch), "{bad}");
    }
}

#[test]
fn the_fee_memo_contains_this_session_id() {
    let with = |memo: &str| reason(&split(), vec![pay(hbd(10_343)), transfer("alice", "fee.taker", hbd(157), memo)]);
    let (id, other) = (session().to_string(), PaymentId::from_bits(8).to_string());
    for good in [&format!("fee-{id}"), &id, &memo(), &format!("the fee of {id}, thanks")] {
        assert_eq!(with(good), Ok(()), "{good}");
    }
    for bad in ["", "a fee", "#fee", &format!("fee-{other}"), &format!("fee-{id} fee-{other}")] {
        assert_eq!(with(bad), Err(Reason::MemoMismatch), "{bad}");
    }
    // hived would parse this character differently, which changes the digest.
    assert_eq!(with(&format!("fee-{id}\u{1}")), Err(Reason::MemoMismatch));
}

#[test]
fn transactions_that_no_node_accepts_are_refused() {
    let with = |memo: &str| reason(&foreign(), vec![transfer("alice", "blue.mugs", hbd(10_500), memo)]);
    assert_eq!(with(&"m".repeat(2_047)), Ok(()));
    assert_eq!(with(&"m".repeat(2_048)), Err(Reason::Operations));
    for memo in ["\u{0}", "\u{8}", "\u{c}", "a\u{1}b"] {
        assert_eq!(with(memo), Err(Reason::MemoMismatch), "{memo:?}");
    }
    for from in ["", "al", "Alice", "alice.", "a".repeat(17).as_str()] {
        let operation = transfer(from, "blue.mugs", hbd(10_500), &memo());
        assert_eq!(reason(&whole(), vec![operation]), Err(Reason::Operations), "{from:?}");
    }
}

#[test]
fn attack_09_the_expiration_is_within_its_bounds() {
    let at = |expiration: Timestamp| {
        let mut transaction = transaction(vec![pay(hbd(10_500))]);
        transaction.expiration = expiration;
        check(&whole(), &transaction, Version::V1).map(drop).map_err(|refused| refused.reason)
    };
    let seconds = Duration::from_secs;
    assert_eq!(at(Timestamp::from_seconds(0)), Err(Reason::PaymentExpired));
    assert_eq!(at(NOW), Err(Reason::PaymentExpired));
    assert_eq!(at(NOW + seconds(3)), Err(Reason::PaymentExpired));
    assert_eq!(at(NOW + seconds(4)), Ok(()));
    assert_eq!(at(NOW + HOUR), Ok(()));
    assert_eq!(at(NOW + HOUR + seconds(1)), Err(Reason::ExpirationTooFar));
}

/// Each stage adds the violation of an earlier check: the earliest failing check must be reported.
#[test]
fn the_first_failing_check_is_reported() {
    let mut broken = transaction(vec![pay(hbd(10_343)), fee(157)]);
    type Break = fn(&mut Transaction);
    fn nth(transaction: &mut Transaction, at: usize) -> &mut crate::hive::Transfer {
        match &mut transaction.operations[at] {
            Operation::Transfer(transfer) => transfer,
            other => panic!("{other:?}"),
        }
    }
    let stages: [(Break, Reason); 9] = [
        (|t| t.expiration = NOW, Reason::PaymentExpired),
        (|t| nth(t, 1).memo = "a fee".into(), Reason::MemoMismatch),
        (|t| nth(t, 0).memo = "x402:other".into(), Reason::MemoMismatch),
        (|t| nth(t, 0).amount = hbd(1), Reason::Amount),
        (|t| nth(t, 1).amount = hive(157), Reason::AssetMismatch),
        (|t| nth(t, 1).to = "red.mugs".into(), Reason::RecipientMismatch),
        (
            |t| {
                nth(t, 0).from = "blue.mugs".into();
                nth(t, 1).from = "blue.mugs".into();
            },
            Reason::SelfPayment,
        ),
        (|t| nth(t, 1).from = "carol".into(), Reason::SenderMismatch),
        (|t| t.operations.push(savings()), Reason::Operations),
    ];
    assert!(check(&split(), &broken, Version::V2).is_ok());
    for (break_more, wanted) in stages {
        break_more(&mut broken);
        assert_eq!(check(&split(), &broken, Version::V2).unwrap_err().reason, wanted);
    }
}

#[test]
fn attack_36_the_payer_is_not_named_before_its_signature_is_verified() {
    let refused = check(&whole(), &transaction(vec![pay(hbd(1))]), Version::V1).unwrap_err();
    assert_eq!(refused.payer, None);
    assert_eq!(check(&whole(), &transaction(vec![savings()]), Version::V1).unwrap_err().payer, None);
}

#[test]
fn attack_13_the_balance_must_cover_both_transfers() {
    let checked = check(&split(), &transaction(vec![pay(hbd(10_343)), fee(157)]), Version::V1).unwrap();
    let balances = |hbd| [Money::new(1_000_000, Currency::Hive), Money::new(hbd, Currency::Hbd)];
    assert_eq!(check_balance(&checked, &balances(10_500)), Ok(()));
    let refused = check_balance(&checked, &balances(10_499)).unwrap_err();
    assert_eq!((refused.reason, refused.payer), (Reason::InsufficientFunds, Some(name("alice"))));
    assert_eq!(check_balance(&checked, &[]).unwrap_err().reason, Reason::InsufficientFunds);
}

fn operation() -> impl Strategy<Value = Operation> {
    let account = || prop_oneof![Just("alice"), Just("blue.mugs"), Just("fee.taker"), Just("carol"), Just("NO")];
    let amount = (prop_oneof![Just(10_343), Just(157), any::<i64>()], 0..3u8).prop_map(|(units, symbol)| Asset {
        units,
        symbol: [Symbol::Hbd, Symbol::Hive, Symbol::Vests][usize::from(symbol)],
    });
    let memos =
        prop_oneof![Just(memo()), Just(format!("fee-{}", session())), Just(format!("x402:{NONCE}")), any::<String>()];
    prop_oneof![
        9 => (account(), account(), amount, memos).prop_map(|(from, to, amount, memo)| transfer(from, to, amount, &memo)),
        1 => Just(savings()),
    ]
}

proptest! {
    #[test]
    fn checks_never_panic_and_passing_transactions_pay_the_amount(
        operations in proptest::collection::vec(operation(), 0..4),
        seconds in 0..4_000_000_000u64,
        nonce in any::<String>(),
        is_second in any::<bool>(),
    ) {
        let mut transaction = transaction(operations);
        transaction.expiration = Timestamp::from_seconds(seconds);
        let version = if is_second { Version::V2 } else { Version::V1 };
        for expected in [whole(), split(), foreign()] {
            let Ok(checked) = expected.check(&transaction, version, &nonce, NOW, HOUR) else { continue };
            let got = |account: &str| -> u64 {
                checked.transfers.iter().filter(|t| t.to.as_str() == account).map(|t| t.money.units).sum()
            };
            prop_assert!(got("blue.mugs") >= expected.net.units);
            prop_assert!(got("fee.taker") >= expected.fee.as_ref().map_or(0, |(_, units)| *units));
            prop_assert_eq!(transaction.validate(), Ok(()));
        }
    }
}
