//! Tests of which tables a commit writes to.

use std::time::Duration;

use super::*;
use engine::{
    account::AccountName,
    fields::Metadata,
    ids::{MerchantId, SlugToken},
    money::{Currency, FeePercent, Money},
    payment::{self, FeeMode, Payment, Terms},
    time::Timestamp,
};
use redb::{Database, backends::InMemoryBackend};

use crate::{
    Batch, Write,
    embedded::{
        commit::transaction::Transaction,
        maintenance::directory,
        wal::{
            entry::Changes,
            snapshot::{Epoch, Snapshot},
        },
    },
};

fn mug() -> Payment {
    let draft = payment::Draft {
        amount: Money::new(1_000, Currency::Hbd),
        description: "Mug".to_owned(),
        metadata: Metadata::new(),
        redirect_url: None,
        cancel_url: None,
        lifetime: None,
    };
    let terms = Terms {
        merchant: MerchantId::from_bits(1),
        pay_to: AccountName::parse("blue.mugs").unwrap(),
        fee_percent: FeePercent::ZERO,
        fee_mode: FeeMode::Invoice,
        rate: None,
        default_lifetime: Duration::from_secs(60),
        grace: Duration::ZERO,
        livemode: false,
    };
    Payment::open(draft, terms, PaymentId::from_bits(9), SlugToken::from_bits(3), Timestamp::EPOCH).unwrap()
}

#[test]
fn creating_a_payment_touches_six_tables() {
    let database = Database::builder().create_with_backend(InMemoryBackend::new()).unwrap();
    directory::create_schema(&database).unwrap();
    let (snapshot, changes) = (
        Snapshot::of(Epoch::begin(&database, &crate::embedded::damage::DamagedRows::default()).unwrap()),
        Changes::default(),
    );
    let mut commits = crate::embedded::commit::commit_ids::CommitIds::default();
    let mut group = Group::of(Transaction::of(&snapshot, &changes, 0), &mut commits, 0);
    let create = |payment: Payment| Batch::of(Write::Payment { payment: payment.into(), expected: None });
    group.apply(Prepared::from_batch(create(mug()), &crate::Vault::default())).unwrap().unwrap();
    group.write_accumulated().unwrap();
    let touched = changes.tables();
    assert_eq!(
        Vec::from_iter(touched),
        ["deadlines", "payment_counts", "payment_days", "payments", "payments_by_merchant", "slugs"]
    );
    assert_eq!(group.finish().unwrap().applied, 1);
}
