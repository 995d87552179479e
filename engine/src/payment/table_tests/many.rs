//! Tests of payments with more transfers than their snapshot lists.

use super::*;

/// One of many small transfers of a third party.
fn dust(n: u32, money: Money, seconds: u64) -> Transfer {
    let mut tx_id = [0xdd; 20];
    tx_id[..4].copy_from_slice(&n.to_be_bytes());
    let memo = format!("{} {}", memo_of(ID), "\u{1}".repeat(2_000));
    Transfer { tx_id: TxId(tx_id), from: name("mallory"), money, memo, ..transfer(0, 1, seconds) }
}

fn dusted(mut case: Case, numbers: std::ops::Range<u32>, money: Money, finality: Finality) -> Case {
    for n in numbers {
        case = case.then(credit(dust(n, money, OPENED + 9), finality), OPENED + 12);
    }
    case
}

fn hive(units: u64) -> Money {
    Money::new(units, Hive)
}

fn hbd(units: u64) -> Money {
    Money::new(units, Hbd)
}

/// Returns the refunds due, calculated from the stored rows.
fn owed(case: &Case) -> Vec<(String, String)> {
    let mut rows: Vec<_> = case.rows.values().collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.seq));
    let mut refunds = RefundCalculator::of(&case.payment);
    rows.into_iter().for_each(|row| refunds.add(row));
    refunds.finish(&case.payment).into_iter().map(|line| (line.to.to_string(), line.money.to_string())).collect()
}

#[test]
fn many_small_transfers_do_not_affect_the_customers_payment() {
    let case = dusted(Case::of(open()), 0..300, hive(1), Finality::Irreversible);
    let case =
        dusted(case, 300..350, hbd(1), Finality::Irreversible).is(State::Pending, &["underpaid", "wrong_currency"]);
    let seen = case.then(credit(transfer(1, 950, OPENED + 12), Finality::Reversible), OPENED + 12);
    let seen = dusted(seen, 350..500, hive(1), Finality::Irreversible);
    assert_eq!(seen.payment.listed(tx(1), 0), None, "the newest are listed");
    assert_eq!((seen.payment.seen_units(), seen.payment.remaining_units()), (1_000, 950));
    let paid = seen.then(paid(1, 950, OPENED + 12), OPENED + 60).is(State::Completed, &["wrong_currency"]);
    let paid =
        dusted(paid, 500..700, hbd(1), Finality::Irreversible).is(State::Completed, &["paid_again", "wrong_currency"]);
    let paid = paid.sums(1_000, 0, 200, 0);
    assert_eq!((paid.payment.transfer_count(), paid.events.len()), (701, 1));
    assert_eq!(paid.payment.listed(tx(1), 0).map(|credit| credit.money), Some(hbd(950)), "what completed it is listed");
}

#[test]
fn an_unlisted_transfer_is_loaded_from_its_row() {
    let late = |n| credit(dust(n, hbd(1), OPENED + 9), Finality::Irreversible);
    let case = dusted(Case::of(open()), 0..100, hbd(1), Finality::Reversible);
    assert_eq!((case.payment.seen_units(), case.payment.paid_units(), case.payment.awaits_finality()), (100, 0, true));
    // A repeated sighting is rejected, listed or not.
    let again = credit(dust(3, hbd(1), OPENED + 9), Finality::Reversible);
    let case = case.refused(again, OPENED + 15, Rejection::Unchanged { id: ID });
    let case = case.then(late(3), OPENED + 60).refused(late(3), OPENED + 61, Rejection::Unchanged { id: ID });
    assert_eq!((case.payment.seen_units(), case.payment.paid_units(), case.rows.len()), (100, 1, 100));
    let mut case = case;
    for n in (0..100).filter(|n| *n != 3) {
        case = case.then(late(n), OPENED + 60);
    }
    assert_eq!((case.payment.seen_units(), case.payment.paid_units()), (100, 100));
    assert!(!case.payment.awaits_finality());
}

#[test]
fn an_unlisted_transfer_is_orphaned_and_may_reappear_in_another_block() {
    let customers = transfer(1, 1_000, OPENED + 9);
    let case = Case::of(open()).then(credit(customers, Finality::Reversible), OPENED + 12);
    let case = dusted(case, 0..60, hive(1), Finality::Reversible);
    let orphan = || Command::Orphan { tx_id: tx(1), op_in_tx: 0 };
    let case = case.then(orphan(), OPENED + 15);
    assert_eq!(case.payment.seen_units(), 0);
    let case = case.refused(orphan(), OPENED + 16, Rejection::Unchanged { id: ID });
    // In a block before the deadline it counts; after the deadline it is late.
    let back = || transfer(1, 1_000, OPENED + 30);
    let on_time = case.then(credit(back(), Finality::Reversible), OPENED + 33);
    assert_eq!(on_time.payment.seen_units(), 1_000);
    let on_time = dusted(on_time, 60..90, hive(1), Finality::Reversible);
    let paid =
        on_time.then(credit(back(), Finality::Irreversible), OPENED + 90).is(State::Completed, &["wrong_currency"]);
    assert_eq!(paid.rows[&(tx(1), 0)].block, Some(CreditBlock { position: back().position, time: at(OPENED + 30) }));

    let case = Case::of(open()).then(credit(transfer(1, 1_000, EXPIRES), Finality::Reversible), EXPIRES);
    let case = dusted(case, 0..60, hive(1), Finality::Reversible).then(orphan(), EXPIRES + 3);
    case.then(credit(transfer(1, 1_000, EXPIRES + 3), Finality::Irreversible), EXPIRES + 60)
        .is(State::Pending, &["paid_late", "wrong_currency"])
        .sums(0, 1_000, 0, 1_000);
}

#[test]
fn claimed_transactions_stay_listed() {
    let case = dusted(Case::of(open()), 0..50, hive(1), Finality::Irreversible);
    let case = case.then(Command::Claim(claim(5, &[("blue.mugs", 1_000)])), OPENED + 10);
    let case = case.then(credit(transfer(5, 1_000, OPENED + 12), Finality::Reversible), OPENED + 12);
    let case = dusted(case, 50..100, hive(1), Finality::Irreversible);
    assert!(case.payment.listed(tx(5), 0).is_some() && case.payment.claim.is_some());
    let settled = case.then(paid(5, 1_000, OPENED + 12), OPENED + 70);
    assert!(settled.payment.claim.is_none(), "every transfer of it is final");
    let expired = dusted(claimed(), 0..50, hive(1), Finality::Irreversible)
        .then(credit(transfer(5, 1_000, OPENED + 12), Finality::Reversible), OPENED + 12);
    let expired = dusted(expired, 50..100, hive(1), Finality::Irreversible);
    let mark_expired = Command::MarkExpired { tx_id: tx(5), irreversible_time: at(OPENED + 601) };
    let expired = expired.then(mark_expired, OPENED + 660);
    assert_eq!((expired.rows[&(tx(5), 0)].finality, expired.payment.is_reversed), (Finality::Orphaned, true));
}

#[test]
fn a_transaction_that_was_seen_and_is_not_listed_cannot_be_claimed() {
    let seen = Case::of(open()).then(credit(transfer(5, 10, OPENED + 9), Finality::Reversible), OPENED + 9);
    let seen = dusted(seen, 0..50, hive(1), Finality::Irreversible);
    assert!(seen.payment.listed(tx(5), 0).is_none(), "a wallet transfer, and no longer listed");
    let shown = Command::Claim(claim(5, &[("blue.mugs", 10)]));
    let seen = seen.refused(shown, OPENED + 12, Rejection::Detected { id: ID });
    seen.then(Command::Claim(claim(6, &[("blue.mugs", 1_000)])), OPENED + 12);
}

#[test]
fn listed_memos_are_truncated_and_rows_keep_the_whole_memo() {
    let case = dusted(Case::of(open()), 0..1, hive(1), Finality::Reversible);
    let case = dusted(case, 0..1, hive(1), Finality::Irreversible);
    let memo = &case.payment.transfers[0].memo;
    assert_eq!((memo.chars().count(), memo.chars().last()), (SHOWN_MEMO_MAX_CHARS, Some('…')));
    assert_eq!(case.rows.values().next().map(|row| row.memo.clone()), Some(dust(0, hive(1), 0).memo));
    for (memo, shown) in [("ä".repeat(256), "ä".repeat(256)), ("ä".repeat(257), format!("{}…", "ä".repeat(255)))]
    {
        assert_eq!(shown_memo(shown_memo(memo)), shown);
    }
}

#[test]
fn refunds_due_include_unlisted_transfers() {
    let case = Case::of(open()).then(paid(1, 1_400, OPENED + 9), OPENED + 12);
    let case = case.then(paid(2, 30, OPENED + 12), OPENED + 15);
    let case = dusted(case, 0..500, hive(1), Finality::Irreversible);
    assert!(case.payment.listed(tx(2), 0).is_none());
    let wanted = [("alice", "0.430 HBD"), ("mallory", "0.500 HIVE")];
    assert_eq!(owed(&case), wanted.map(|(to, money)| (to.to_owned(), money.to_owned())));
    let lines = [("aaa.third", hbd(1)), ("alice", hbd(430)), ("mallory", hive(500)), ("nobody", hbd(2))];
    let lines = lines.map(|(to, money)| RefundDue { to: name(to), money });
    let plan = |money| {
        let plan = case.payment.refund_plan(&lines, None, money).unwrap();
        (plan.to.to_string(), plan.money)
    };
    assert_eq!(plan(None), ("alice".to_owned(), hbd(430)), "not the small transfers");
    assert_eq!(plan(Some(hive(7))), ("mallory".to_owned(), hive(7)));
}

#[test]
fn manual_assignments_stay_visible_among_many_transfers() {
    let attach = |n| {
        let transfer = dust(n, hbd(1), OPENED + 9);
        let assignment = Assignment { transfer, route: Route::Manual, memo_normalized: false, by: "key".to_owned() };
        Command::Assign(assignment)
    };
    let case = Case::of(open()).then(attach(900), OPENED + 12);
    let case = dusted(case, 0..50, hbd(1), Finality::Irreversible).is(State::Pending, &["underpaid", "manual"]);
    case.refused(attach(900), OPENED + 15, Rejection::Unchanged { id: ID }).refused(
        attach(7),
        OPENED + 15,
        Rejection::Unchanged { id: ID },
    );
}
