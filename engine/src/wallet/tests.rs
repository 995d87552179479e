//! Tests of the wallet's rules: the table of states, each limit to the last unit, and histories of payments and clocks.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

const START: Timestamp = Timestamp::from_seconds(1_800_000_000);

fn account(name: &str) -> AccountName {
    AccountName::parse(name).unwrap()
}

fn hbd(units: u64) -> Spending {
    Spending { currency: Currency::Hbd, parts: vec![(account("shop"), units)] }
}

fn limits(rows: &[(Period, u64)]) -> Limits {
    rows.iter().map(|(period, units)| ((*period, Currency::Hbd), *units)).collect()
}

fn counted(units: u64, until: Timestamp) -> Counted {
    Counted { spending: hbd(units), until }
}

#[test]
fn a_state_allows_the_steps_of_the_table_and_no_other() {
    use State::*;
    use Step::*;
    let table = [
        (AwaitingApproval, Approve, Approved),
        (Approved, Approve, Approved),
        (AwaitingApproval, Deny, Denied),
        (Approved, Deny, Denied),
        (Denied, Deny, Denied),
        (AwaitingApproval, Reserve, Reserved),
        (Approved, Reserve, Reserved),
        (Reserved, Sign, Signed),
        (Signed, Sign, Signed),
        (Signed, Confirm, Paid),
        (Spent, Confirm, Paid),
        (Paid, Confirm, Paid),
        (Paid, FindInBlock, Paid),
        (Reserved, FindInBlock, Spent),
        (Signed, FindInBlock, Spent),
        (Spent, FindInBlock, Spent),
        (Released, FindInBlock, Spent),
        (Reserved, ProveAbsent, Released),
        (Signed, ProveAbsent, Released),
        (Released, ProveAbsent, Released),
    ];
    for state in State::ALL {
        assert_eq!(State::parse(state.as_str()), Some(state));
        for step in Step::ALL {
            let row = table.iter().find(|(from, by, _)| (*from, *by) == (state, step));
            let expected = row.map(|(_, _, to)| *to).ok_or(Rejection { state, step });
            assert_eq!(state.apply(step), expected, "{state:?} {step:?}");
        }
    }
}

#[test]
fn a_state_whose_transaction_may_be_in_a_block_counts() {
    let counts: Vec<_> = State::ALL.into_iter().filter(|state| state.counts()).collect();
    assert_eq!(counts, [State::Reserved, State::Signed, State::Paid, State::Spent]);
    assert!(State::ALL.into_iter().filter(|state| state.is_open()).all(State::counts));
}

#[test]
fn each_limit_is_kept_to_the_last_unit() {
    for period in Period::ALL {
        let policy = Policy { limits: limits(&[(period, 5_000)]), ..Policy::default() };
        let check = |units, past: &[Counted]| policy.check(&hbd(units), None, past, START);
        assert_eq!(check(5_000, &[]), Ok(()));
        let refused = check(5_001, &[]).unwrap_err();
        assert_eq!(refused.as_str(), format!("above_{}_limit", period.as_str()));
        assert!(matches!(refused, Refusal::Limit { available_at: None, .. }), "it never fits");
        if period == Period::Payment {
            continue;
        }
        let past = [counted(4_999, START)];
        assert_eq!(check(1, &past), Ok(()));
        let Refusal::Limit { used, available_at, .. } = check(2, &past).unwrap_err() else { panic!("a limit") };
        assert_eq!((used.units, available_at), (4_999, Some(START + period.window())));
    }
}

#[test]
fn a_payment_counts_until_a_window_after_its_expiration() {
    for period in [Period::Hour, Period::Day, Period::Month] {
        let policy = Policy { limits: limits(&[(period, 1)]), ..Policy::default() };
        let check = |until, now| policy.check(&hbd(1), None, &[counted(1, until)], now);
        let leaves = START + period.window();
        assert!(check(START, leaves.minus(Duration::from_millis(1))).is_err());
        assert_eq!(check(START, leaves), Ok(()));
        assert!(check(leaves, START).is_err(), "an entry of the future counts");
    }
}

#[test]
fn a_payees_limit_counts_what_it_receives_and_stops_no_other_payee() {
    let policy = Policy {
        limits: limits(&[(Period::Day, 100)]),
        payees: [(account("shop"), limits(&[(Period::Day, 10)]))].into(),
        ..Policy::default()
    };
    let past = [counted(10, START)];
    let refused = policy.check(&hbd(1), None, &past, START).unwrap_err();
    assert!(matches!(refused, Refusal::Limit { payee: Some(_), .. }), "{refused}");
    let other = Spending { currency: Currency::Hbd, parts: vec![(account("other"), 90)] };
    assert_eq!(policy.check(&other, None, &past, START), Ok(()));
    let with_fee = Spending { currency: Currency::Hbd, parts: vec![(account("other"), 80), (account("shop"), 1)] };
    assert!(policy.check(&with_fee, None, &past, START).is_err(), "a fee counts for its account");
    let usage = policy.usage(&past, START);
    let rows: Vec<_> = usage.iter().map(|usage| (usage.payee, usage.used.units, usage.remaining().units)).collect();
    assert_eq!(rows, [(None, 10, 90), (Some(account("shop")), 10, 0)]);
}

#[test]
fn a_currency_without_a_limit_cannot_be_spent() {
    let policy = Policy { limits: limits(&[(Period::Day, 100)]), ..Policy::default() };
    let hive = Spending { currency: Currency::Hive, ..hbd(1) };
    assert_eq!(policy.check(&hive, None, &[], START), Err(Refusal::Currency(Currency::Hive)));
    assert_eq!(policy.currencies().collect::<Vec<_>>(), [Currency::Hbd]);
    let past = [Counted { spending: Spending { currency: Currency::Hive, ..hbd(100) }, until: START }];
    assert_eq!(policy.check(&hbd(100), None, &past, START), Ok(()), "currencies do not share a budget");
}

#[test]
fn lists_apply_to_every_recipient_and_a_denial_outweighs() {
    let names = |names: &[&str]| names.iter().map(|name| account(name)).collect::<std::collections::BTreeSet<_>>();
    let check = |allow: Option<&[&str]>, deny: &[&str], parts: &[&str]| {
        let accounts = Lists { allow: allow.map(names), deny: names(deny) };
        let policy = Policy { limits: limits(&[(Period::Day, 100)]), accounts, ..Policy::default() };
        let parts = parts.iter().map(|name| (account(name), 1)).collect();
        policy.check(&Spending { currency: Currency::Hbd, parts }, None, &[], START).is_ok()
    };
    assert!(check(None, &[], &["shop"]) && !check(None, &["shop"], &["shop"]));
    assert!(check(Some(&["shop"]), &[], &["shop"]) && !check(Some(&[]), &[], &["shop"]));
    assert!(!check(Some(&["shop"]), &["shop"], &["shop"]));
    assert!(!check(Some(&["shop"]), &[], &["shop", "fees"]), "the fee account needs permission, too");

    let pattern = |text: &str| vec![HostPattern::parse(text).unwrap()];
    let hosts = Lists { allow: Some(pattern("*.example")), deny: pattern("bad.example") };
    let policy = Policy { hosts, ..Policy::default() };
    let host = |name| policy.check_host(Host { name, port: 443 }).is_ok();
    assert!(host("pay.example") && !host("bad.example") && !host("pay.other"));
}

#[test]
fn an_approval_permits_its_payment_for_a_day_and_nothing_else() {
    let policy = Policy {
        limits: limits(&[(Period::Payment, 100)]),
        approval_above: [(Currency::Hbd, 10)].into(),
        ..Policy::default()
    };
    let check = |units, approval: Option<&Approval>, now| policy.check(&hbd(units), approval, &[], now);
    assert_eq!(check(10, None, START), Ok(()));
    assert_eq!(check(11, None, START).unwrap_err().as_str(), "approval_needed");
    let granted = Approval { spending: hbd(50), is_granted: true, decided_at: START };
    assert_eq!(check(50, Some(&granted), START), Ok(()));
    assert_eq!(check(51, Some(&granted), START).unwrap_err().as_str(), "approval_needed");
    let expired = START + APPROVAL_VALIDITY;
    assert_eq!(check(50, Some(&granted), expired).unwrap_err().as_str(), "approval_needed");
    let over = Approval { spending: hbd(101), ..granted.clone() };
    assert_eq!(check(101, Some(&over), START).unwrap_err().as_str(), "above_payment_limit", "limits stay in force");
    let elsewhere = Spending { currency: Currency::Hbd, parts: vec![(account("other"), 20)] };
    assert!(!granted.permits(&elsewhere, START));
    let denied = Approval { is_granted: false, ..granted };
    assert_eq!(check(50, Some(&denied), START), Err(Refusal::ApprovalDenied));
    assert_eq!(check(50, Some(&denied), expired).unwrap_err().as_str(), "approval_needed");
}

#[test]
fn amounts_beyond_64_bits_are_refused() {
    let policy = Policy { limits: limits(&[(Period::Day, u64::MAX)]), ..Policy::default() };
    let parts = vec![(account("shop"), u64::MAX), (account("fees"), 1)];
    let huge = Spending { currency: Currency::Hbd, parts };
    assert_eq!(policy.check(&huge, None, &[], START), Err(Refusal::Amount));
    assert_eq!(policy.check(&hbd(0), None, &[], START), Err(Refusal::Amount));
    let past = [Counted { spending: huge, until: START }];
    assert!(policy.check(&hbd(1), None, &past, START).is_err());
}

#[test]
fn the_wallets_time_follows_the_slower_clock_and_never_runs_back() {
    let [early, middle, late] = [1, 2, 3].map(Timestamp::from_seconds);
    assert_eq!(wallet_time(early, late, middle), middle);
    assert_eq!(wallet_time(early, middle, late), middle);
    assert_eq!(wallet_time(late, early, middle), late);
}

/// One step of a history: time passes, the system clock jumps, and the agent tries to pay.
#[derive(Debug, Clone)]
struct Attempt {
    passes_s: u64,
    clock_error_s: i64,
    units: u64,
    payee: usize,
    expires_in_s: u64,
    /// When the transaction comes into a block, in thousandths of its lifetime; `None` for never.
    included_at: Option<u64>,
}

fn attempt() -> impl Strategy<Value = Attempt> {
    let passes_s = prop_oneof![0..120_u64, 3_000..4_000_u64, 80_000..90_000_u64, 2_600_000..2_700_000_u64];
    let clock_error_s = prop_oneof![Just(0), -90_000..90_000_i64, -3_000_000..3_000_000_i64];
    let included_at = prop_oneof![3 => (0..=1_000_u64).prop_map(Some), 1 => Just(None)];
    (passes_s, clock_error_s, 1..40_u64, 0..3_usize, 15..3_600_u64, included_at).prop_map(
        |(passes_s, clock_error_s, units, payee, expires_in_s, included_at)| Attempt {
            passes_s,
            clock_error_s,
            units,
            payee,
            expires_in_s,
            included_at,
        },
    )
}

fn policy() -> impl Strategy<Value = Policy> {
    let limit = || prop::option::of(1..100_u64);
    let limits = move || {
        (limit(), limit(), limit(), limit()).prop_map(|(payment, hour, day, month)| {
            let rows = Period::ALL.into_iter().zip([payment, hour, day, month]);
            rows.filter_map(|(period, units)| Some(((period, Currency::Hbd), units?))).collect::<Limits>()
        })
    };
    (limits(), limits()).prop_map(|(mut all, of_payee)| {
        all.entry((Period::Month, Currency::Hbd)).or_insert(100);
        Policy { limits: all, payees: [(account("shop"), of_payee)].into(), ..Policy::default() }
    })
}

/// A payment in a block.
struct Included {
    at: Timestamp,
    payee: AccountName,
    units: u64,
}

/// Returns the most that any window of a period holds, by the times of the blocks.
fn most_in_a_window(included: &[Included], payee: Option<AccountName>, period: Period) -> u64 {
    let counts = |one: &&Included| payee.is_none_or(|payee| payee == one.payee);
    let ends = included.iter().filter(counts).map(|last| {
        let is_in = |one: &&Included| match period {
            Period::Payment => std::ptr::eq(*one, last),
            _ => one.at <= last.at && one.at + period.window() > last.at,
        };
        included.iter().filter(counts).filter(is_in).map(|one| one.units).sum()
    });
    ends.max().unwrap_or(0)
}

proptest! {
    #[test]
    fn no_window_of_block_times_holds_more_than_its_limit(policy in policy(), attempts in prop::collection::vec(attempt(), 1..40)) {
        let payees = ["shop", "other", "third"].map(account);
        let (mut chain_time, mut last) = (START, START);
        let (mut past, mut included) = (Vec::new(), Vec::new());
        for attempt in attempts {
            chain_time = chain_time + Duration::from_secs(attempt.passes_s);
            let clock = chain_time.seconds().saturating_add_signed(attempt.clock_error_s);
            last = wallet_time(last, Timestamp::from_seconds(clock), chain_time);
            let payee = payees[attempt.payee];
            let spending = Spending { currency: Currency::Hbd, parts: vec![(payee, attempt.units)] };
            match policy.check(&spending, None, &past, last) {
                Err(Refusal::Limit { available_at: Some(at), .. }) => prop_assert!(at > last),
                Err(_) => {}
                Ok(()) => {
                    let lifetime = Duration::from_secs(attempt.expires_in_s);
                    past.push(Counted { spending, until: chain_time + lifetime });
                    if let Some(part) = attempt.included_at {
                        let at = chain_time + Duration::from_millis(attempt.expires_in_s * part);
                        included.push(Included { at, payee, units: attempt.units });
                    }
                }
            }
        }
        for (payee, limits) in std::iter::once((None, &policy.limits)).chain(policy.payees.iter().map(|(p, l)| (Some(*p), l))) {
            for ((period, _), limit) in limits {
                let most = most_in_a_window(&included, payee, *period);
                prop_assert!(most <= *limit, "{most} per {} exceeds {limit} ({payee:?})", period.as_str());
            }
        }
    }

    #[test]
    fn a_payment_fits_at_the_time_that_the_refusal_names(units in 1..50_u64, past in prop::collection::vec((1..50_u64, 0..200_000_u64), 0..20)) {
        let policy = Policy { limits: limits(&[(Period::Day, 60)]), ..Policy::default() };
        let past: Vec<_> = past.into_iter().map(|(units, at)| counted(units, START + Duration::from_secs(at))).collect();
        if let Err(Refusal::Limit { available_at: Some(at), .. }) = policy.check(&hbd(units), None, &past, START) {
            prop_assert!(policy.check(&hbd(units), None, &past, at).is_ok());
            prop_assert!(policy.check(&hbd(units), None, &past, at.minus(Duration::from_millis(1))).is_err());
        }
    }

    #[test]
    fn an_open_payment_ends_once(steps in prop::collection::vec(0..Step::ALL.len(), 0..30)) {
        // Whatever happens to a payment that may be in a block, it counts until its absence is proven.
        let (mut state, mut is_proven) = (State::Reserved, false);
        for step in steps.into_iter().map(|at| Step::ALL[at]) {
            if let Ok(next) = state.apply(step) {
                is_proven = step == Step::ProveAbsent || (is_proven && next == State::Released);
                state = next;
            }
            prop_assert_eq!(state.counts(), !is_proven);
        }
    }
}
