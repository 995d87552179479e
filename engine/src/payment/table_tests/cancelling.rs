//! Tests of cancellation: block time decides, whatever the order of request, sightings and blocks.

use super::*;

const ASKED: u64 = OPENED + 5;
const CUTOFF: u64 = ASKED + 15;

fn asked() -> Case {
    Case::of(open()).then(cancel(), ASKED)
}

#[test]
fn money_up_to_the_cutoff_completes_a_session_that_is_being_cancelled() {
    let case = asked().then(paid(1, 1_000, CUTOFF), CUTOFF + 3).is(State::Completed, &[]).sums(1_000, 0, 0, 0);
    assert_eq!(case.payment.active_cancellation(), None);
    assert_eq!(case.payment.cancellation.unwrap().dropped_at, Some(at(CUTOFF + 3)), "kept for the timeline");
    case.refused(cancel(), CUTOFF + 6, Rejection::NotPending { id: ID, state: State::Completed });
}

#[test]
fn money_after_the_cutoff_is_paid_after_cancel() {
    asked()
        .then(paid(1, 1_000, CUTOFF + 1), CUTOFF + 3)
        .is(State::Pending, &["paid_after_cancel"])
        .sums(0, 1_000, 0, 1_000)
        .then(expire(CUTOFF + 1), CUTOFF + 3)
        .is(State::UserCancelled, &["paid_after_cancel"])
        .then(paid(2, 1_000, EXPIRES + 9), EXPIRES + 12)
        .is(State::UserCancelled, &["paid_after_cancel"])
        .sums(0, 1_000, 0, 2_000);
}

#[test]
fn a_partial_payment_before_the_cutoff_drops_the_cancellation() {
    let case = asked()
        .then(paid(1, 400, CUTOFF), CUTOFF + 3)
        .is(State::Pending, &["underpaid"])
        .then(expire(CUTOFF + 3), CUTOFF + 6)
        .is(State::Pending, &["underpaid"])
        .refused(cancel(), CUTOFF + 9, Rejection::Detected { id: ID })
        .refused(expire(EXPIRES), EXPIRES + 9, Rejection::NotDue { id: ID, ends_at: at(EXPIRES) });
    assert_eq!((case.payment.active_cancellation(), case.events.len()), (None, 0));
    case.then(paid(2, 600, EXPIRES), EXPIRES + 3).is(State::Completed, &[]).sums(1_000, 0, 0, 0);
}

#[test]
fn transfers_after_the_cutoff_of_a_dropped_cancellation_count() {
    let case = asked()
        .then(paid(1, 400, CUTOFF), CUTOFF + 3)
        .then(paid(2, 600, CUTOFF + 3), CUTOFF + 6)
        .is(State::Pending, &["underpaid", "paid_after_cancel"])
        .then(paid(3, 5, CUTOFF + 3), CUTOFF + 6)
        .then(expire(CUTOFF + 3), CUTOFF + 6)
        .is(State::Completed, &["paid_again"])
        .sums(1_000, 0, 5, 0);
    assert_eq!((case.payment.paid_by, case.events.len()), (Some(tx(2)), 1));
}

/// A number of transfers of which most are not listed.
const FLOOD: u8 = 30;

#[test]
fn unlisted_transfers_after_the_cutoff_of_a_dropped_cancellation_count() {
    let mut case = asked().then(paid(1, 400, CUTOFF), CUTOFF + 3);
    for n in 0..FLOOD {
        case = case.then(paid(2 + n, 20, CUTOFF + 3), CUTOFF + 6);
    }
    let case = case.then(expire(CUTOFF + 3), CUTOFF + 6).is(State::Completed, &[]).sums(1_000, 0, 0, 0);
    assert_eq!(case.payment.totals().with(Disposition::AfterCancel).transfers, 0);
}

#[test]
fn a_cancellation_dropped_by_a_payment_leaves_no_transfer_after_cancel() {
    let mut case = asked();
    for n in 0..FLOOD {
        case = case.then(paid(2 + n, 20, CUTOFF + 3), CUTOFF + 6);
    }
    let case = case.then(paid(1, 1_000, CUTOFF), CUTOFF + 6).is(State::Completed, &["paid_again"]);
    assert_eq!(case.payment.totals().with(Disposition::AfterCancel).transfers, 0);
    case.sums(1_000, 0, 600, 0);
}

#[test]
fn transfers_after_the_deadline_of_a_cancelled_payment_are_after_cancel() {
    let mut case = asked();
    for n in 0..FLOOD {
        case = case.then(paid(2 + n, 20, EXPIRES + 3), EXPIRES + 6);
    }
    case.then(expire(EXPIRES + 3), EXPIRES + 6).is(State::UserCancelled, &["paid_after_cancel"]).sums(0, 1_000, 0, 600);
}

#[test]
fn a_partial_payment_past_its_deadline_expires_when_the_cancellation_is_dropped() {
    let case = asked()
        .then(paid(1, 400, CUTOFF), CUTOFF + 3)
        .then(expire(EXPIRES + 1), EXPIRES + 4)
        .is(State::SystemCancelled, &["underpaid"]);
    assert_eq!(case.events.len(), 1);
}

#[test]
fn the_irreversible_block_decides_the_disposition_after_a_fork() {
    let seen = |seconds| credit(transfer(1, 1_000, seconds), Finality::Reversible);
    asked()
        .then(seen(CUTOFF), CUTOFF)
        .is(State::Pending, &[])
        .then(paid(1, 1_000, CUTOFF + 3), CUTOFF + 6)
        .then(expire(CUTOFF + 3), CUTOFF + 6)
        .is(State::UserCancelled, &["paid_after_cancel"]);
    asked()
        .then(seen(CUTOFF + 3), CUTOFF + 3)
        .is(State::Pending, &["paid_after_cancel"])
        .then(paid(1, 1_000, CUTOFF), CUTOFF + 6)
        .is(State::Completed, &[]);
}

#[test]
fn the_first_canceller_is_kept() {
    let again = Command::Cancel { by: Canceller::Merchant, block_interval: BLOCK };
    let case = asked().refused(again, ASKED + 1, Rejection::AlreadyCancelled { id: ID });
    assert_eq!(case.payment.cancellation.unwrap().by, Canceller::Customer);
}

#[test]
fn a_repeated_cancellation_is_already_cancelled_after_a_transfer_was_seen() {
    let seen = credit(transfer(1, 1_000, CUTOFF), Finality::Reversible);
    asked().then(seen, CUTOFF).refused(cancel(), CUTOFF + 1, Rejection::AlreadyCancelled { id: ID });
}

#[test]
fn a_pending_cancellation_rejects_claims_and_wallet_reports() {
    let cancelling = Rejection::Cancelling { id: ID, cutoff: at(CUTOFF) };
    asked()
        .refused(Command::Claim(claim(5, &[("blue.mugs", 1_000)])), ASKED + 1, cancelling.clone())
        .refused(Command::ReportWallet, ASKED + 1, cancelling)
        .then(paid(1, 400, CUTOFF), CUTOFF + 3)
        .then(expire(CUTOFF + 3), CUTOFF + 6)
        .then(Command::Claim(claim(5, &[("blue.mugs", 1_000)])), CUTOFF + 9);
}

#[test]
fn a_reported_wallet_delays_the_cutoff_up_to_the_deadline() {
    let cutoff = |opened: Option<u64>, asked: u64, grace: u64| {
        let payment = Payment { grace: Duration::from_secs(grace), ..open() };
        let case = Case::of(payment);
        let case = match opened {
            Some(seconds) => case.then(Command::ReportWallet, seconds),
            None => case,
        };
        case.then(cancel(), asked).payment.cancellation.unwrap().cutoff
    };
    assert_eq!(cutoff(None, ASKED, 0), at(ASKED + 15));
    assert_eq!(cutoff(Some(OPENED + 1), ASKED, 0), at(ASKED + 60));
    assert_eq!(cutoff(None, EXPIRES - 6, 0), at(EXPIRES));
    assert_eq!(cutoff(None, EXPIRES - 6, 6), at(EXPIRES + 6));
    assert_eq!(cutoff(None, EXPIRES - 12, 6), at(EXPIRES + 3));
    assert_eq!(cutoff(Some(OPENED + 1), EXPIRES - 6, 6), at(EXPIRES + 6));
    Case::of(open()).then(Command::ReportWallet, ASKED).refused(
        Command::ReportWallet,
        ASKED + 1,
        Rejection::Unchanged { id: ID },
    );
    Case::of(open()).refused(Command::ReportWallet, EXPIRES + 1, Rejection::Expired { id: ID });
}

#[test]
fn a_split_payment_in_one_block_is_one_payment_on_either_side_of_the_cutoff() {
    let both = |seconds: u64| {
        let mut collected = Transfer { to: name("fee.collector"), ..transfer(1, 15, seconds) };
        collected.position.op_in_tx = 1;
        Case::of(split())
            .then(cancel(), ASKED)
            .then(paid(1, 985, seconds), seconds + 3)
            .then(credit(collected, Finality::Irreversible), seconds + 3)
    };
    both(CUTOFF).is(State::Completed, &[]);
    let late = both(CUTOFF + 1).then(expire(CUTOFF + 1), CUTOFF + 4);
    assert_eq!(late.payment.state, State::UserCancelled);
    assert_eq!(late.payment.late_units(), 985);
}

// ---- every order ----------------------------------------------------------------------------------------------------

/// A transfer of the exhaustive test: the block it ends in, and one it was seen in before, if any.
#[derive(Debug, Clone, Copy)]
struct Sent {
    units: u64,
    seconds: u64,
    seen: Option<u64>,
}

impl Sent {
    fn credit(self, n: u8, seconds: u64, finality: Finality) -> Command {
        let mut transfer = transfer(n, self.units, seconds);
        transfer.position.block_num = u32::try_from(seconds).unwrap();
        transfer.position.tx_in_block = u32::from(n);
        credit(transfer, finality)
    }
}

/// The expected state, completing transaction and dispositions, in sending order.
type Outcome = (State, Option<TxId>, Vec<Disposition>);

fn expected(sent: &[Sent], deadline: u64, cutoff: Option<u64>) -> Outcome {
    let mut order: Vec<_> = (0..sent.len()).collect();
    order.sort_by_key(|at| (sent[*at].seconds, *at));
    let in_time = |cutoff: u64| sent.iter().filter(|sent| sent.seconds <= cutoff).count();
    if cutoff.is_some_and(|cutoff| in_time(cutoff) == 0) {
        return (State::UserCancelled, None, vec![Disposition::AfterCancel; sent.len()]);
    }
    let (mut sum, mut paid_by) = (0, None);
    let mut dispositions = vec![Disposition::Counted; sent.len()];
    for at in order {
        if paid_by.is_some() {
            dispositions[at] = Disposition::Surplus;
        } else if sent[at].seconds > deadline {
            dispositions[at] = Disposition::Late;
        } else {
            sum += sent[at].units;
            if sum >= 1_000 {
                paid_by = Some(tx(u8::try_from(at).unwrap()));
            }
        }
    }
    let state = if paid_by.is_some() { State::Completed } else { State::SystemCancelled };
    (state, paid_by, dispositions)
}

/// The time of the request and the grace period.
struct Setup {
    asked: u64,
    grace: u64,
}

impl Setup {
    const ALL: [Self; 4] = [
        Self { asked: ASKED, grace: 0 },
        Self { asked: EXPIRES - 6, grace: 0 },
        Self { asked: EXPIRES - 12, grace: 6 },
        Self { asked: EXPIRES + 2, grace: 6 },
    ];

    const fn deadline(&self) -> u64 {
        EXPIRES + self.grace
    }

    fn cutoff(&self) -> u64 {
        self.deadline().min(self.asked + 15)
    }

    /// Block times around cutoff and deadline.
    fn times(&self) -> Vec<u64> {
        let (cutoff, deadline) = (self.cutoff(), self.deadline());
        let mut times = vec![cutoff - 3, cutoff, cutoff + 1, deadline, deadline + 1, deadline + 30];
        times.sort_unstable();
        times.dedup();
        times
    }

    /// Runs the steps with the request at every position among them.
    fn play(&self, sent: &[Sent], expires_at_each_block: bool, orphaned: bool) {
        let number = |at: usize| u8::try_from(at).unwrap();
        let mut steps = Vec::new();
        for (at, one) in sent.iter().enumerate() {
            if let Some(seconds) = one.seen {
                steps.push(one.credit(number(at), seconds, Finality::Reversible));
            }
        }
        if orphaned {
            steps.extend((0..sent.len()).map(|at| Command::Orphan { tx_id: tx(number(at)), op_in_tx: 0 }));
        }
        let mut order: Vec<_> = (0..sent.len()).collect();
        order.sort_by_key(|at| (sent[*at].seconds, *at));
        for (place, at) in order.iter().enumerate() {
            let seconds = sent[*at].seconds;
            steps.push(sent[*at].credit(number(*at), seconds, Finality::Irreversible));
            let ends_block = order.get(place + 1).is_none_or(|next| sent[*next].seconds > seconds);
            if expires_at_each_block && ends_block {
                steps.push(expire(seconds));
            }
        }
        steps.push(expire(self.deadline() + 90));
        for place in 0..=steps.len() {
            self.run(sent, &steps, place);
        }
    }

    fn run(&self, sent: &[Sent], steps: &[Command], place: usize) {
        let mut payment = Payment { grace: Duration::from_secs(self.grace), ..open() };
        let (mut events, mut exceptions, mut is_asked) = (0, 0, false);
        for (at_step, step) in steps.iter().enumerate() {
            if at_step == place
                && let Ok(step) = payment.apply(&cancel(), at(self.asked))
            {
                assert_eq!(step.event, None, "a request has no event");
                (payment, is_asked) = (step.payment, true);
            }
            if let Some(request) = payment.pending_cancellation() {
                assert_eq!(request.cutoff, at(self.cutoff()));
                let claimed = payment.apply(&Command::Claim(claim(99, &[("blue.mugs", 1_000)])), at(self.asked));
                assert_eq!(claimed, Err(Rejection::Cancelling { id: ID, cutoff: request.cutoff }));
            }
            if let Ok(step) = payment.apply(step, at(EXPIRES + 200)) {
                events += usize::from(step.event.is_some());
                exceptions += u32::from(step.exception.is_some());
                payment = step.payment;
            }
        }
        let (state, paid_by, dispositions) = expected(sent, self.deadline(), is_asked.then(|| self.cutoff()));
        let found = |n: usize| {
            let n = tx(u8::try_from(n).unwrap());
            payment.transfers.iter().find(|credit| credit.tx_id == n).unwrap().disposition
        };
        let case = || format!("{sent:?} steps {steps:?} asked at step {place} (accepted: {is_asked})");
        assert_eq!((payment.state, payment.paid_by), (state, paid_by), "{}", case());
        assert_eq!((0..sent.len()).map(found).collect::<Vec<_>>(), dispositions, "{}", case());
        assert_eq!((events, payment.sequence), (1, 2 + exceptions), "one status: {}", case());
        let counted = payment.transfers.iter().any(|credit| credit.disposition == Disposition::Counted);
        assert!(state != State::UserCancelled || !counted, "{}", case());
    }
}

#[test]
fn block_time_decides_a_cancel_in_every_order_of_two_transfers_with_sightings_and_forks() {
    for setup in Setup::ALL {
        let sightings = [None, Some(setup.cutoff()), Some(setup.cutoff() + 1)];
        let mut choices = Vec::new();
        for seconds in setup.times() {
            for seen in sightings {
                choices.extend([400, 1_000].map(|units| Sent { units, seconds, seen }));
            }
        }
        for first in &choices {
            for second in &choices {
                let second = Sent { units: second.units.max(600), ..*second };
                let seen = first.seen.is_some() || second.seen.is_some();
                for each in [false, true] {
                    setup.play(&[*first, second], each, false);
                    if seen && each {
                        setup.play(&[*first, second], each, true);
                    }
                }
            }
        }
    }
}

#[test]
fn block_time_decides_a_cancel_in_every_order_of_three_parts() {
    for setup in Setup::ALL {
        let times = setup.times();
        let parts = |units| times.iter().map(move |seconds| Sent { units, seconds: *seconds, seen: None });
        for first in parts(400) {
            for second in parts(300) {
                for third in parts(300) {
                    setup.play(&[first, second, third], false, false);
                    setup.play(&[first, second, third], true, false);
                }
            }
        }
    }
}
