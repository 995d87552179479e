//! Tests of assignments, resolutions and refunds.

use super::*;
use crate::{fields::MetadataValue, ledger::refund_memo_of};

fn attach(transfer: Transfer) -> Command {
    let by = "key_1".to_owned();
    Command::Assign(Assignment { transfer, route: Route::Manual, memo_normalized: false, by })
}

fn unmatched(n: u8, units: u64, seconds: u64) -> Transfer {
    Transfer { memo: "thanks".to_owned(), ..transfer(n, units, seconds) }
}

fn resolve(kind: ResolutionKind) -> Command {
    Command::Resolve(Resolution { kind, by: "key_1".to_owned(), at: at(OPENED), note: String::new(), tx_id: None })
}

#[test]
fn metadata_can_be_deleted_in_final_states_only() {
    let mut payment = open();
    payment.metadata = Metadata::from([("name".to_owned(), MetadataValue::Text("Ada".to_owned()))]);
    let (id, state) = (payment.id, payment.state);
    assert_eq!(payment.apply(&Command::DeleteMetadata, at(OPENED + 1)), Err(Rejection::Open { id, state }));
    for state in State::ALL.into_iter().filter(|state| state.is_terminal()) {
        let ended = Payment { state, ..payment.clone() };
        let left = ended.apply(&Command::DeleteMetadata, at(OPENED + 1)).expect("it has ended");
        let wanted =
            Payment { metadata: Metadata::new(), version: ended.version + 1, updated_at: at(OPENED + 1), ..ended };
        assert_eq!((&left.payment, left.event.is_none(), left.effects.len()), (&wanted, true, 0), "{state}");
        let again = left.payment.apply(&Command::DeleteMetadata, at(OPENED + 2));
        assert_eq!(again, Err(Rejection::Unchanged { id }), "{state}");
    }
}

#[test]
fn the_note_of_a_resolution_can_be_deleted() {
    let resolution = Resolution {
        kind: ResolutionKind::Ignored,
        by: "key_1".to_owned(),
        at: at(OPENED),
        note: "Ada called".to_owned(),
        tx_id: None,
    };
    let decided = Payment { resolution: Some(resolution.clone()), ..open() };
    let left = decided.apply(&Command::DeleteNote, at(OPENED + 1)).expect("it has a note").payment;
    assert_eq!(left.resolution, Some(Resolution { note: String::new(), ..resolution }));
    let unchanged = Err(Rejection::Unchanged { id: left.id });
    assert_eq!(left.apply(&Command::DeleteNote, at(OPENED + 2)), unchanged);
    assert_eq!(open().apply(&Command::DeleteNote, at(OPENED + 2)), unchanged);
}

fn refund(n: u8, to: &str, money: Money) -> Command {
    let sent = transfer(n, money.units, EXPIRES + 90);
    let memo = refund_memo_of(ID);
    Command::Refund(Transfer { from: name("blue.mugs"), to: name(to), money, memo, ..sent })
}

fn owed(case: &Case) -> Vec<(String, String)> {
    case.payment.refunds_due().into_iter().map(|line| (line.to.to_string(), line.money.to_string())).collect()
}

fn lines(lines: &[(&str, &str)]) -> Vec<(String, String)> {
    lines.iter().map(|(to, money)| ((*to).to_owned(), (*money).to_owned())).collect()
}

fn late() -> Case {
    Case::of(open()).then(expire(EXPIRES + 1), EXPIRES + 1).then(paid(1, 1_000, EXPIRES + 30), EXPIRES + 33)
}

#[test]
fn an_assigned_transfer_counts_and_is_marked_manual() {
    let case = Case::of(open())
        .then(attach(unmatched(1, 400, OPENED + 9)), OPENED + 60)
        .is(State::Pending, &["underpaid", "manual"])
        .then(attach(unmatched(2, 600, EXPIRES)), EXPIRES + 90)
        .is(State::Completed, &["manual"])
        .refused(attach(unmatched(2, 600, EXPIRES)), EXPIRES + 91, Rejection::Unchanged { id: ID });
    assert_eq!((case.payment.transfers[1].route, case.events.len()), (Route::Manual, 1));
}

#[test]
fn an_assigned_transfer_that_came_too_late_is_late() {
    Case::of(open())
        .then(attach(unmatched(1, 1_000, EXPIRES + 1)), EXPIRES + 2)
        .is(State::Pending, &["paid_late", "manual"])
        .then(expire(EXPIRES + 3), EXPIRES + 6)
        .then(attach(unmatched(2, 1_000, OPENED + 9)), EXPIRES + 9)
        .is(State::SystemCancelled, &["paid_late", "manual"])
        .sums(0, 1_000, 0, 2_000);
    let elsewhere = Transfer { to: name("red.mugs"), ..unmatched(1, 1_000, OPENED + 9) };
    Case::of(open()).refused(attach(elsewhere), OPENED + 10, Rejection::ForeignTransfer { id: ID });
}

#[test]
fn a_resolution_clears_needs_attention_without_a_state_change() {
    for kind in ResolutionKind::ALL {
        let case = late();
        assert!(case.payment.needs_attention());
        let case = case.then(resolve(kind), EXPIRES + 60).is(State::SystemCancelled, &["paid_late"]);
        assert!(!case.payment.needs_attention(), "{}", kind.as_str());
        let case = case.then(paid(2, 5, EXPIRES + 90), EXPIRES + 93);
        assert!(case.payment.needs_attention(), "the decision does not cover later transfers");
    }
    Case::of(open()).refused(resolve(ResolutionKind::Ignored), OPENED + 1, Rejection::NothingToResolve { id: ID });
    // A completed payment without exceptions may be refunded, too.
    Case::of(open())
        .then(paid(1, 1_000, OPENED + 9), OPENED + 12)
        .then(resolve(ResolutionKind::Refunded), OPENED + 60)
        .is(State::Completed, &[]);
}

#[test]
fn accepted_money_is_not_refundable_after_further_transfers() {
    let case = late().then(resolve(ResolutionKind::Accepted), EXPIRES + 60);
    assert_eq!(owed(&case), lines(&[]));
    let case = case.then(paid(2, 5, EXPIRES + 90), EXPIRES + 93);
    assert!(case.payment.needs_attention() && case.payment.resolution.is_none());
    assert_eq!(owed(&case), lines(&[("alice", "0.005 HBD")]));
    // A refund before the acceptance does not reduce later refunds due.
    let case = late()
        .then(refund(9, "alice", Money::new(400, Hbd)), EXPIRES + 40)
        .then(resolve(ResolutionKind::Accepted), EXPIRES + 60)
        .then(paid(2, 5, EXPIRES + 90), EXPIRES + 93);
    assert_eq!(owed(&case), lines(&[("alice", "0.005 HBD")]));
    // Another decision about the same transfers revokes the acceptance.
    let case = late().then(resolve(ResolutionKind::Accepted), EXPIRES + 60);
    let case = case.then(resolve(ResolutionKind::Ignored), EXPIRES + 61);
    assert_eq!(owed(&case), lines(&[("alice", "1.000 HBD")]));
    // Counted money accepted before the payment ended is refundable if the payment does not complete.
    let wrong = Transfer { money: Money::new(1, Hive), ..transfer(1, 1, OPENED + 9) };
    let case = Case::of(open())
        .then(credit(wrong, Finality::Irreversible), OPENED + 12)
        .then(paid(2, 400, OPENED + 15), OPENED + 18)
        .then(resolve(ResolutionKind::Accepted), OPENED + 20)
        .then(expire(EXPIRES + 1), EXPIRES + 4);
    assert_eq!(owed(&case), lines(&[("alice", "0.400 HBD")]));
}

#[test]
fn notable_further_money_of_an_exception_is_announced() {
    // Of 1.000 HBD: dust, then all of it.
    let events = |case: &Case| case.payment.sequence;
    let dust = Case::of(open()).then(expire(EXPIRES + 1), EXPIRES + 1).then(paid(1, 1, EXPIRES + 30), EXPIRES + 33);
    assert_eq!(events(&dust), 3, "created, expired, paid late");
    let whole = dust.then(paid(2, 1_000, EXPIRES + 40), EXPIRES + 43);
    assert_eq!(events(&whole), 4, "small transfers do not hide the customer's");
    let more = whole.then(paid(3, 20, EXPIRES + 50), EXPIRES + 53);
    assert_eq!(events(&more), 4, "less than a tenth, and the sum has not doubled");
    let more = more.then(paid(4, 100, EXPIRES + 60), EXPIRES + 63);
    assert_eq!(events(&more), 5, "a tenth of the amount");
    // After a decision, any further money is announced.
    let decided = more.then(resolve(ResolutionKind::Ignored), EXPIRES + 70);
    let again = decided.then(paid(5, 1, EXPIRES + 80), EXPIRES + 83);
    assert_eq!(events(&again), 6);
    // Many small transfers cause one event for each doubling of their sum.
    let flood = (6..206).fold(again, |case, n| case.then(paid(n, 1, EXPIRES + 90), EXPIRES + 93));
    assert_eq!(events(&flood), 6);
}

#[test]
fn irreversible_transfers_reopen_a_resolution_and_reversible_ones_do_not() {
    let case = late().then(resolve(ResolutionKind::Ignored), EXPIRES + 60);
    let case = case.then(credit(transfer(2, 500, EXPIRES + 90), Finality::Reversible), EXPIRES + 93);
    assert!(!case.payment.needs_attention());
    // A transfer seen before the decision is covered by it.
    let decided = case.then(resolve(ResolutionKind::Ignored), EXPIRES + 94);
    let decided = decided.then(paid(2, 500, EXPIRES + 90), EXPIRES + 150);
    assert!(!decided.payment.needs_attention());
    let first = Case::of(open())
        .then(expire(EXPIRES + 1), EXPIRES + 1)
        .then(credit(transfer(1, 500, EXPIRES + 30), Finality::Reversible), EXPIRES + 33)
        .then(resolve(ResolutionKind::Ignored), EXPIRES + 40)
        .then(paid(1, 500, EXPIRES + 30), EXPIRES + 90);
    assert!(!first.payment.needs_attention(), "also the first of its kind");
    let case = late().then(resolve(ResolutionKind::Ignored), EXPIRES + 60);
    let case = case
        .then(credit(transfer(2, 500, EXPIRES + 90), Finality::Reversible), EXPIRES + 93)
        .then(paid(2, 500, EXPIRES + 90), EXPIRES + 150);
    assert!(case.payment.needs_attention());
}

#[test]
fn refunds_are_due_to_payers_of_money_that_does_not_count() {
    assert_eq!(owed(&late()), lines(&[("alice", "1.000 HBD")]));
    let over = Case::of(open()).then(paid(1, 1_200, OPENED + 9), OPENED + 12);
    assert_eq!(owed(&over), lines(&[("alice", "0.200 HBD")]));
    let again = over.then(paid(2, 700, OPENED + 30), OPENED + 33);
    assert_eq!(owed(&again), lines(&[("alice", "0.900 HBD")]));
    let bob = |transfer: Transfer| credit(Transfer { from: name("bob"), ..transfer }, Finality::Irreversible);
    let part = Case::of(open()).then(paid(1, 400, OPENED + 9), OPENED + 12);
    assert_eq!(owed(&part), [], "the payment can still complete");
    let hive = Transfer { money: Money::new(50, Hive), ..transfer(3, 1, OPENED + 15) };
    let part = part.then(bob(transfer(2, 300, OPENED + 12)), OPENED + 15).then(bob(hive), OPENED + 18);
    let ended = part.then(expire(EXPIRES + 1), EXPIRES + 2);
    assert_eq!(owed(&ended), lines(&[("alice", "0.400 HBD"), ("bob", "0.050 HIVE"), ("bob", "0.300 HBD")]));
    assert_eq!(owed(&ended.then(resolve(ResolutionKind::Accepted), EXPIRES + 9)), []);
}

#[test]
fn no_refund_is_due_in_a_currency_whose_counted_money_is_reversible() {
    let settle = |evidence, seconds| Command::Settle { tx_id: tx(5), evidence, block: block_at(seconds) };
    let hive = Transfer { money: Money::new(50, Hive), ..transfer(3, 1, OPENED + 15) };
    let completed = || {
        claimed()
            .then(settle(ClaimFinality::InBlock, OPENED + 6), OPENED + 7)
            .then(paid(2, 700, OPENED + 9), OPENED + 60)
            .then(credit(hive.clone(), Finality::Irreversible), OPENED + 60)
            .is(State::Completed, &["paid_again", "wrong_currency"])
    };
    assert_eq!(owed(&completed()), lines(&[("alice", "0.050 HIVE")]), "it may become the only counted transfer");
    let mark_expired = Command::MarkExpired { tx_id: tx(5), irreversible_time: at(OPENED + 603) };
    let all = lines(&[("alice", "0.050 HIVE"), ("alice", "0.700 HBD")]);
    let reversed = completed().then(mark_expired, OPENED + 603);
    assert_eq!((reversed.payment.is_reversed, owed(&reversed)), (true, all.clone()));
    let is_final = completed().then(settle(ClaimFinality::Irreversible, OPENED + 6), OPENED + 66);
    assert_eq!(owed(&is_final), all);
}

#[test]
fn a_refund_is_recorded_once_and_reduces_the_refund_due() {
    let sent = refund(9, "alice", Money::new(300, Hbd));
    let case = late().then(sent.clone(), EXPIRES + 93).refused(sent, EXPIRES + 96, Rejection::Unchanged { id: ID });
    assert_eq!(owed(&case), lines(&[("alice", "0.700 HBD")]));
    let case = case.then(refund(10, "alices.other", Money::new(700, Hbd)), EXPIRES + 99);
    assert_eq!((owed(&case), case.payment.refunded_units(), case.payment.refunds.len()), (Vec::new(), 1_000, 2));
    let case =
        case.then(refund(11, "alice", Money::new(5, Hive)), EXPIRES + 99).is(State::SystemCancelled, &["paid_late"]);
    assert_eq!(case.payment.refunded_units(), 1_000, "the other currency is listed separately");
    let forged = Transfer { from: name("mallory"), memo: refund_memo_of(ID), ..transfer(12, 1, EXPIRES + 99) };
    let to_itself = refund(13, "blue.mugs", Money::new(1, Hbd));
    case.refused(Command::Refund(forged), EXPIRES + 99, Rejection::ForeignTransfer { id: ID }).refused(
        to_itself,
        EXPIRES + 99,
        Rejection::ForeignTransfer { id: ID },
    );
}

#[test]
fn a_refund_is_announced_with_the_next_sequence_and_an_exception_is_not() {
    let case = late();
    let step = case.payment.apply(&refund(9, "alice", Money::new(300, Hbd)), at(EXPIRES + 93)).unwrap();
    let announced = step.refund.clone().unwrap();
    let sequence = case.payment.sequence + 1;
    assert_eq!((announced.event.sequence, step.payment.sequence), (sequence, sequence));
    assert_eq!((announced.event.from, announced.event.to), (State::SystemCancelled, State::SystemCancelled));
    assert_eq!(
        (step.event, step.exception, step.effects.as_slice()),
        (None, None, &[Effect::Notify(announced.event.id)][..])
    );
    assert_eq!(announced.refund, step.payment.refunds[0]);
    let body: serde_json::Value =
        serde_json::from_slice(&crate::webhook::refund_completed(&step.payment, &announced)).unwrap();
    let refund = serde_json::json!({
        "txId": announced.refund.tx_id.to_string(), "opIndex": announced.refund.op_in_tx, "to": "alice", "value": "300",
        "formatted": "0.300 HBD", "currency": "HBD", "at": announced.refund.at.to_string(),
    });
    assert_eq!((&body["type"], &body["data"]["refund"]), (&serde_json::json!("refund.completed"), &refund));
    assert!(body["data"].get("newExceptions").is_none(), "{body}");
    let again = paid(11, 1_000, EXPIRES + 99);
    assert_eq!(step.payment.apply(&again, at(EXPIRES + 99)).unwrap().refund, None);
}

#[test]
fn a_refund_plan_defaults_to_the_largest_refund_due() {
    let payment = late().payment;
    let plan = payment.refund_plan(&payment.refunds_due(), None, None).unwrap();
    assert_eq!((plan.from.as_str(), plan.to.as_str(), plan.money), ("blue.mugs", "alice", Money::new(1_000, Hbd)));
    assert_eq!(plan.memo, refund_memo_of(ID));
    assert!(plan.uri().starts_with("hive://sign/op/"), "{}", plan.uri());
    let plan = payment.refund_plan(&payment.refunds_due(), Some(name("bob")), Some(Money::new(5, Hive))).unwrap();
    assert_eq!((plan.to.as_str(), plan.money), ("bob", Money::new(5, Hive)));
    let field = |payment: &Payment, to: Option<&str>, units: Option<u64>| {
        let money = units.map(|units| Money::new(units, Hbd));
        let plan = payment.refund_plan(&payment.refunds_due(), to.map(name), money);
        plan.map(|plan| plan.to.to_string()).map_err(|violation| violation.field)
    };
    let sold = Case::of(open()).then(paid(1, 1_000, OPENED + 9), OPENED + 12).payment;
    assert_eq!(field(&sold, None, None), Err("amount".to_owned()), "no refund is due");
    assert_eq!(field(&sold, None, Some(250)), Ok("alice".to_owned()));
    assert_eq!(field(&sold, Some("blue.mugs"), Some(250)), Err("to".to_owned()));
    assert_eq!(field(&open(), None, Some(250)), Err("to".to_owned()), "there are no payers");
}
