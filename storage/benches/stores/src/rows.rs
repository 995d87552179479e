//! The rows that one payment creation writes, taken from Hivetill's store, with the keys replaced for the next
//! payments.

use std::{path::Path, time::Duration};

use engine::{
    account::AccountName,
    fields::{Metadata, MetadataValue},
    ids::{MerchantId, PaymentId, SlugToken},
    money::{Currency, FeePercent, Money},
    payment::{Draft, FeeMode, Payment, Terms},
    time::Timestamp,
};
use storage::{Batch, EmbeddedStore, Options, Write, prelude::*};

const START_MS: u64 = 1_763_647_200_000;

/// A row as stored.
#[derive(Clone)]
pub struct Row {
    pub table: usize,
    pub key: Vec<u8>,
    pub value: Vec<u8>,
}

/// The rows of a payment, with its id, slug and merchant for replacement.
pub struct Template {
    pub tables: Vec<String>,
    rows: Vec<Row>,
    id: [u8; 16],
    slug: [u8; 16],
    merchant: [u8; 16],
}

impl Template {
    /// Creates one payment in an empty store and reads the rows that this wrote.
    pub async fn of_a_creation(directory: &Path) -> Self {
        let store = EmbeddedStore::open(directory, Options::default()).expect("a store");
        let before = all(&store);
        // A number whose ids have no byte sequence in common.
        let payment = payment(7);
        let (id, slug) = (payment.id.bits().to_be_bytes(), slug_of(7).bits().to_be_bytes());
        let merchant = merchant_of(7).bits().to_be_bytes();
        store.commit(create(payment)).await.expect("a creation");
        let written: Vec<_> = all(&store).into_iter().filter(|row| !before.contains(row)).collect();
        store.close().await;
        let mut tables: Vec<String> = written.iter().map(|(table, ..)| table.clone()).collect();
        tables.dedup();
        let place = |table: &String| tables.iter().position(|known| known == table).expect("a known table");
        let rows = written.iter().map(|(table, key, value)| {
            // Integers are stored in little-endian order.
            Row { table: place(table), key: key.clone(), value: value.clone() }
        });
        let rows = rows.collect();
        Self { rows, tables, id, slug, merchant }
    }

    /// Returns the rows of another payment.
    pub fn rows_of(&self, number: u64) -> Vec<Row> {
        let changes = [
            (self.id, id_of(number).bits().to_be_bytes()),
            (self.slug, slug_of(number).bits().to_be_bytes()),
            (self.merchant, merchant_of(number).bits().to_be_bytes()),
        ];
        let mut rows = self.rows.clone();
        for row in &mut rows {
            for (from, to) in &changes {
                replace(&mut row.key, from, to);
                replace(&mut row.value, from, to);
            }
        }
        rows
    }

    /// Describes the rows: table, size of key and value in bytes.
    pub fn describe(&self) -> String {
        let row = |row: &Row| format!("{} {} + {}", self.tables[row.table], row.key.len(), row.value.len());
        self.rows.iter().map(row).collect::<Vec<_>>().join(", ")
    }
}

fn all(store: &EmbeddedStore) -> Vec<(String, Vec<u8>, Vec<u8>)> {
    let mut rows = Vec::new();
    store.each_row_inline(|row| rows.push((row.table, row.key, row.value))).expect("the rows");
    rows
}

/// Replaces each occurrence, in big-endian and in little-endian order.
fn replace(bytes: &mut [u8], from: &[u8; 16], to: &[u8; 16]) {
    let reversed = |id: &[u8; 16]| id.iter().rev().copied().collect::<Vec<_>>();
    for (from, to) in [(from.to_vec(), to.to_vec()), (reversed(from), reversed(to))] {
        let places: Vec<_> = bytes.windows(16).enumerate().filter(|(_, at)| *at == from).map(|(at, _)| at).collect();
        for place in places {
            bytes[place..place + 16].copy_from_slice(&to);
        }
    }
}

pub fn create(payment: Payment) -> Batch {
    Batch::of(Write::Payment { payment: std::sync::Arc::new(payment), expected: None })
}

fn mixed(number: u64) -> u64 {
    (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

fn created_at(number: u64) -> Timestamp {
    Timestamp::from_millis(START_MS + number / 20)
}

fn id_of(number: u64) -> PaymentId {
    let mut random = [0; 10];
    random[2..].copy_from_slice(&mixed(number).to_be_bytes());
    PaymentId::new(created_at(number), random)
}

fn slug_of(number: u64) -> SlugToken {
    SlugToken::from_bits((u128::from(mixed(number)) << 64) | u128::from(mixed(!number)))
}

fn merchant_of(number: u64) -> MerchantId {
    MerchantId::from_bits(u128::from(1 + mixed(number) % 100) << 64 | 0x55)
}

/// Returns the payment with a number.
pub fn payment(number: u64) -> Payment {
    let draft = Draft {
        amount: Money::new(10_500, Currency::Hbd),
        description: "Blue mug, large".to_owned(),
        metadata: Metadata::from([("orderId".to_owned(), MetadataValue::Text(format!("A-{number}")))]),
        redirect_url: Some("https://shop.example/thanks".to_owned()),
        cancel_url: Some("https://shop.example/cancelled".to_owned()),
        lifetime: None,
    };
    let terms = Terms {
        merchant: merchant_of(number),
        pay_to: AccountName::parse("blue.mugs").expect("a name"),
        fee_percent: FeePercent::parse("1.5").expect("a percentage"),
        fee_mode: FeeMode::Invoice,
        rate: None,
        default_lifetime: Duration::from_secs(10 * 365 * 86_400),
        grace: Duration::ZERO,
        livemode: false,
    };
    Payment::open(draft, terms, id_of(number), slug_of(number), created_at(number)).expect("HBD needs no price")
}
