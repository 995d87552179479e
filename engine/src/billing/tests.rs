//! Tests of usage, fee tiers and invoices.

use proptest::prelude::*;

use super::*;
use crate::{
    account::AccountName,
    ledger::{ChainPosition, TxId},
    payment::{Credit, CreditBlock, Disposition, Finality, Route},
};

fn percent(text: &str) -> FeePercent {
    FeePercent::parse(text).unwrap()
}

fn raw(min_cents: u64, max_cents: Option<u64>, text: &str) -> RawTier {
    RawTier { min_cents, max_cents, percent_ten_thousandths: percent(text).ten_thousandths() }
}

/// The fee tiers of the hosted service.
fn hosted() -> Tiers {
    Tiers::check(&[raw(0, Some(99_999), "1.5"), raw(100_000, Some(999_999), "1"), raw(1_000_000, None, "0.5")]).unwrap()
}

fn account(text: &str) -> AccountName {
    AccountName::parse(text).unwrap()
}

/// A payment over 1.000 HBD, with a fee of 0.015 where it is split.
fn payment(fee_mode: FeeMode) -> Payment {
    let draft = Draft {
        amount: Money::new(1_000, Currency::Hbd),
        description: "Mug".to_owned(),
        metadata: Metadata::new(),
        redirect_url: None,
        cancel_url: None,
        lifetime: None,
    };
    let terms = Terms {
        merchant: MerchantId::from_bits(1),
        pay_to: account("blue.mugs"),
        fee_percent: percent("1.5"),
        fee_mode,
        rate: None,
        default_lifetime: Duration::from_secs(1_800),
        grace: Duration::ZERO,
        livemode: false,
    };
    Payment::open(draft, terms, PaymentId::from_bits(9), SlugToken::from_bits(3), Timestamp::EPOCH).unwrap()
}

fn credit(tx: u8, seconds: u64, units: u64, disposition: Disposition) -> Credit {
    let position = ChainPosition { block_num: 1, tx_in_block: 0, op_in_tx: 0 };
    Credit {
        seq: 1,
        tx_id: TxId([tx; 20]),
        op_in_tx: u32::from(disposition == Disposition::Fee),
        block: Some(CreditBlock { position, time: Timestamp::from_seconds(seconds) }),
        from: account("alice"),
        to: account("blue.mugs"),
        money: Money::new(units, Currency::Hbd),
        memo: String::new(),
        finality: Finality::Irreversible,
        disposition,
        route: Route::Wallet,
        memo_normalized: false,
    }
}

fn completed(payment: Payment, transfers: Vec<Credit>) -> Payment {
    let paid_by = transfers.last().map(|credit| credit.tx_id);
    let completed_at = Some(Timestamp::from_seconds(5_000_000));
    Payment { state: State::Completed, completed_at, paid_by, transfers, ..payment }
}

fn split() -> FeeMode {
    FeeMode::Split { account: account("fee.taker") }
}

#[test]
fn a_sale_has_the_time_of_the_completing_block() {
    let transfers = vec![credit(1, 100, 400, Disposition::Counted), credit(2, 200, 600, Disposition::Counted)];
    let paid = completed(payment(FeeMode::Invoice), transfers);
    let sale = Sale::of(&paid).unwrap();
    assert_eq!((sale.at, sale.usd_cents, sale.is_split), (Timestamp::from_seconds(200), 100, false));
    assert_eq!(sale.missing_fee_millicents, 0, "its fee is invoiced by the tiers");
    let unplaced = completed(payment(FeeMode::Invoice), Vec::new());
    assert_eq!(Sale::of(&unplaced).unwrap().at, Timestamp::from_seconds(5_000_000));
    assert_eq!(Sale::of(&payment(FeeMode::Invoice)), None, "no sale before completion");
    assert_eq!(Sale::of(&Payment { is_invoice: true, ..paid }), None, "invoices are not sales");
}

#[test]
fn only_uncollected_split_fees_are_billed() {
    let net = || credit(1, 100, 985, Disposition::Counted);
    let whole = completed(payment(split()), vec![credit(1, 100, 15, Disposition::Fee), net()]);
    let (sale, mut usage) = (Sale::of(&whole).unwrap(), Usage::default());
    assert_eq!((sale.is_split, sale.missing_fee_millicents), (true, 0));
    usage.add(&sale);
    assert_eq!(usage.bill(&hosted()), Bill { cents: 0, carried_millicents: 0 });
    let plain = completed(payment(split()), vec![credit(1, 100, 1_000, Disposition::Counted)]);
    let sale = Sale::of(&plain).unwrap();
    assert_eq!(sale.missing_fee_millicents, 1_500, "1.5 cents");
    for _ in 0..4 {
        usage.add(&sale);
    }
    assert_eq!((usage.volume_cents, usage.split_volume_cents, usage.payments), (500, 500, 5));
    assert_eq!(usage.bill(&hosted()).cents, 6, "four missing fees without a percentage");
    usage.adjust_missing_fee(1_500, 0);
    assert_eq!(usage.bill(&hosted()).cents, 4, "one fee arrived late");
}

#[test]
fn a_payment_is_counted_once_and_a_late_fee_changes_only_what_is_missing() {
    let sale = Sale { at: Timestamp::EPOCH, usd_cents: 100, is_split: true, missing_fee_millicents: 1_500 };
    let counted = |state, missing_fee_millicents| Some(PriorUsage { state, missing_fee_millicents });
    assert_eq!(PeriodChange::of(State::Pending, Some(sale), None), None);
    assert_eq!(
        PeriodChange::of(State::Completed, Some(sale), counted(State::Pending, 0)),
        Some(PeriodChange::Sold(sale))
    );
    assert_eq!(PeriodChange::of(State::Completed, Some(sale), counted(State::Completed, 1_500)), None);
    let late = PeriodChange::of(State::Completed, Some(sale), counted(State::Completed, 2_000)).unwrap();
    assert_eq!(late, PeriodChange::Fee { sale, missed_millicents: 2_000 });
    assert_eq!(PeriodChange::of(State::Completed, None, counted(State::Pending, 0)), Some(PeriodChange::Paid));
    assert_eq!(PeriodChange::of(State::Completed, None, counted(State::Completed, 0)), None);

    let (month, now) = (Month::of(Timestamp::EPOCH), Timestamp::from_seconds(5));
    let mut period = Period::begin(MerchantId::from_bits(1), month, Timestamp::EPOCH);
    assert!(!period.apply(&PeriodChange::Paid, now), "there is no invoice to pay");
    assert!(period.apply(&PeriodChange::Sold(sale), now) && period.apply(&late, now));
    assert_eq!((period.usage.payments, period.usage.missing_fee_millicents, period.updated_at), (1, 1_000, now));
    assert!(period.accepts_invoice_for(&period.clone()) && !period.is_closed());
}

#[test]
fn fees_received_after_billing_are_credited_in_the_next_month() {
    let mut usage = Usage::default();
    usage.adjust_missing_fee(1_500_000, 0);
    assert_eq!(usage.bill(&hosted()), Bill { cents: 0, carried_millicents: -1_500_000 });
    usage.add(&Sale { at: Timestamp::EPOCH, usd_cents: 90_000, is_split: false, missing_fee_millicents: 0 });
    assert_eq!(usage.bill(&hosted()), Bill { cents: 0, carried_millicents: -150_000 }, "1350 cents less 1500");
    let mut next = Usage::default();
    next.carry(-150_000);
    next.add(&Sale { at: Timestamp::EPOCH, usd_cents: 20_000, is_split: false, missing_fee_millicents: 0 });
    assert_eq!(next.bill(&hosted()), Bill { cents: 150, carried_millicents: 0 });
}

#[test]
fn the_tier_of_the_total_volume_applies_to_all_of_it() {
    let bill = |volume_cents| Usage { volume_cents, payments: 1, ..Usage::default() }.bill(&hosted()).cents;
    assert_eq!((bill(0), bill(66), bill(67)), (0, 0, 1), "rounded down, once");
    assert_eq!((bill(99_999), bill(100_000)), (1_499, 1_000));
    assert_eq!((bill(999_999), bill(1_000_000)), (9_999, 5_000));
    assert_eq!(bill(u64::MAX), u64::MAX / 200);
    let split = Usage { volume_cents: 150_000, split_volume_cents: 100_000, payments: 2, missing_fee_millicents: 0 };
    assert_eq!(split.bill(&hosted()).cents, 500, "the tier depends on the total volume");
}

#[test]
fn tiers_are_contiguous_and_unbounded() {
    let wrong = |tiers: &[RawTier]| -> Vec<String> {
        Tiers::check(tiers).unwrap_err().into_iter().map(|violation| violation.field).collect()
    };
    assert_eq!(wrong(&[]), ["tiers"]);
    assert_eq!(wrong(&vec![raw(0, None, "1"); 21]), ["tiers"]);
    assert_eq!(wrong(&[raw(1, None, "1")]), ["tiers[0].minVolumeCents"]);
    assert_eq!(wrong(&[raw(0, Some(9), "1")]), ["tiers[0].maxVolumeCents"]);
    for begin in [9, 11] {
        assert_eq!(wrong(&[raw(0, Some(9), "1"), raw(begin, None, "1")]), ["tiers[1].minVolumeCents"]);
    }
    assert_eq!(wrong(&[raw(0, None, "1"), raw(10, None, "1")]), ["tiers[0].maxVolumeCents"]);
    assert_eq!(wrong(&[raw(0, Some(9), "1"), raw(10, Some(8), "1"), raw(9, None, "1")]), ["tiers[1].maxVolumeCents"]);
    let too_much = RawTier { percent_ten_thousandths: 1_000_001, ..raw(0, None, "0") };
    assert_eq!(wrong(&[too_much]), ["tiers[0].percentFee"]);
    assert_eq!(hosted().to_string(), "0–99999: 1.5 %, 100000–999999: 1 %, from 1000000: 0.5 %");
}

#[test]
fn a_period_is_open_invoiced_overdue_and_paid() {
    let at = Timestamp::from_seconds;
    let mut period = Period::begin(MerchantId::from_bits(1), Month::of(at(0)), at(0));
    assert_eq!(period.status(at(99)), Status::Open);
    let invoice = Invoice {
        cents: 7,
        session: Some((PaymentId::from_bits(9), "fees-0".to_owned())),
        created_at: at(10),
        due_at: at(20),
        paid_at: None,
        tiers_version: 0,
    };
    period.invoice = Some(invoice.clone());
    assert_eq!((period.status(at(20)), period.status(at(21))), (Status::Invoiced, Status::Overdue));
    let mut account = BillingTotals::of(period.merchant);
    account.add(&period, at(21));
    assert_eq!((account.outstanding, account.outstanding_cents, account.is_delinquent()), (1, 7, true));
    period.invoice = Some(Invoice { paid_at: Some(at(22)), ..invoice });
    assert_eq!(period.status(at(99)), Status::Paid);
    let other = Period { month: period.month.next(), ..period.clone() };
    assert!(period.id() != other.id() && period.id() == period.clone().id());
    assert_eq!(period.id().to_string().get(..4), Some("inv_"));
}

proptest! {
    #[test]
    fn an_invoice_is_never_more_than_the_volume_and_adding_a_sale_changes_only_what_it_adds(
        sales in proptest::collection::vec((0..10_000_000u64, any::<bool>(), 0..100_000u64), 0..30),
    ) {
        let mut usage = Usage::default();
        for (usd_cents, is_split, missing) in &sales {
            let missing_fee_millicents = if *is_split { *missing.min(&(usd_cents * 1_000)) } else { 0 };
            let sale = Sale { at: Timestamp::EPOCH, usd_cents: *usd_cents, is_split: *is_split, missing_fee_millicents };
            usage.add(&sale);
        }
        prop_assert_eq!(usage.payments, sales.len() as u64);
        prop_assert_eq!(usage.volume_cents, sales.iter().map(|sale| sale.0).sum::<u64>());
        let amount = usage.bill(&hosted());
        prop_assert!(amount.cents <= usage.volume_cents);
        prop_assert_eq!(amount.carried_millicents, 0);
    }

    #[test]
    fn a_volume_falls_in_exactly_one_tier(bounds in proptest::collection::btree_set(0..1_000_000u64, 0..10), volume: u64) {
        let bounds: Vec<u64> = bounds.into_iter().collect();
        let mut tiers = Vec::new();
        let mut begin = 0;
        for (end, percent_ten_thousandths) in bounds.iter().zip(0..) {
            tiers.push(RawTier { min_cents: begin, max_cents: Some(*end), percent_ten_thousandths });
            begin = end + 1;
        }
        tiers.push(RawTier { min_cents: begin, max_cents: None, percent_ten_thousandths: 999 });
        let checked = Tiers::check(&tiers).unwrap();
        let is_in = |tier: &&Tier| tier.min_cents <= volume && tier.max_cents.is_none_or(|max| volume <= max);
        let found: Vec<_> = checked.iter().filter(is_in).collect();
        prop_assert_eq!(found.len(), 1);
        prop_assert_eq!(checked.percent_of(volume), found[0].percent);
    }
}
