//! Benchmark of durable payment creations through `Store::commit` on a real file, by number of concurrent callers.
//!
//! `cargo bench -p storage --bench commit [-- DIRECTORY [SECONDS [CALLERS]]]`. The directory selects the disk; the
//! default is the system's temporary directory. Each caller creates payments one after the other, each of which is
//! durable before the next.
//!
//! `cargo bench -p storage --bench commit -- into DIRECTORY MERCHANT COUNT` writes COUNT open payments, one year old,
//! into an existing store, for measurements of a gateway with a large store.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use engine::{
    account::AccountName,
    fields::{Metadata, MetadataValue},
    ids::{MerchantId, PaymentId, SlugToken},
    money::{Currency, FeePercent, Money},
    payment::{Draft, FeeMode, Payment, Terms},
    time::Timestamp,
};
use storage::{Batch, EmbeddedStore, MasterKey, Options, Store, Vault, Write};
use tokio::time::Instant;

const CALLERS: [usize; 4] = [1, 10, 100, 1_000];
const START_MS: u64 = 1_763_647_200_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().expect("a runtime");
    if arguments.first().is_some_and(|argument| argument == "into") {
        let [_, data, merchant, count] = &arguments[..] else { panic!("into DIRECTORY MERCHANT COUNT") };
        let merchant = merchant.parse().expect("a merchant's id");
        return runtime.block_on(fill(data.as_ref(), merchant, count.parse().expect("a count")));
    }
    let parent = arguments.first().map_or_else(std::env::temp_dir, PathBuf::from);
    let seconds = arguments.get(1).and_then(|text| text.parse().ok()).unwrap_or(2);
    let callers = arguments.get(2).and_then(|text| text.parse().ok()).map_or(CALLERS.to_vec(), |callers| vec![callers]);
    runtime.block_on(measure(&parent, Duration::from_secs(seconds), &callers));
}

#[expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
async fn measure(parent: &std::path::Path, for_each: Duration, callers: &[usize]) {
    println!("{:>8} {:>12} {:>10} {:>10} {:>14}", "callers", "creations/s", "p50 us", "p99 us", "cpu us each");
    for &callers in callers {
        let data = tempfile::tempdir_in(parent).expect("a directory");
        let store = Arc::new(EmbeddedStore::open(data.path(), Options::default()).expect("a store"));
        let next = Arc::new(AtomicU64::new(0));
        let cpu = cpu_time();
        let started = Instant::now();
        let until = started + for_each;
        let tasks: Vec<_> =
            (0..callers).map(|_| tokio::spawn(create_until(Arc::clone(&store), Arc::clone(&next), until))).collect();
        let mut waits = Vec::new();
        for task in tasks {
            waits.extend(task.await.expect("a caller"));
        }
        let elapsed = started.elapsed();
        waits.sort_unstable();
        let micros = |at: usize| waits[waits.len() * at / 100].as_micros();
        let each = cpu.zip(cpu_time()).map_or_else(
            || "-".to_owned(),
            |(before, after)| ((after - before).as_micros() / waits.len() as u128).to_string(),
        );
        let per_second = waits.len() as u128 * 1_000_000 / elapsed.as_micros();
        println!("{callers:>8} {per_second:>12} {:>10} {:>10} {each:>14}", micros(50), micros(99));
        store.close().await;
    }
}

/// Writes open payments of one merchant, with a thousand concurrent callers.
#[expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
async fn fill(data: &std::path::Path, merchant: MerchantId, count: u64) {
    const CALLERS: u64 = 1_000;
    const LIFETIME: Duration = Duration::from_secs(10 * 365 * 86_400);
    let store = Arc::new(EmbeddedStore::open_sealed(data, Options::default(), vault_of(data)).expect("a store"));
    let next = Arc::new(AtomicU64::new(0));
    let started = Instant::now();
    let callers = (0..CALLERS).map(|_| {
        let (store, next) = (Arc::clone(&store), Arc::clone(&next));
        tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    break;
                }
                let payment = payment(number, merchant, Some(LIFETIME));
                let batch = Batch::of(Write::Payment { payment: Arc::new(payment), expected: None });
                store.commit(batch).await.expect("a creation");
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.expect("a caller");
    }
    store.close().await;
    println!("{count} payments in {:.1} s", started.elapsed().as_secs_f64());
}

/// Returns the vault of a gateway's store: its key file, if there is one.
fn vault_of(data: &std::path::Path) -> Vault {
    let Ok(text) = std::fs::read_to_string(data.join("master-key")) else { return Vault::default() };
    let digits = text.trim().as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("a hex digit"));
    let key: Vec<u8> = digits.map(|pair| u8::from_str_radix(pair, 16).expect("a hex digit")).collect();
    Vault::new(Some(MasterKey::new(key.try_into().expect("a master key has 32 bytes"))), None)
}

async fn create_until(store: Arc<EmbeddedStore>, next: Arc<AtomicU64>, until: Instant) -> Vec<Duration> {
    let mut waits = Vec::new();
    while Instant::now() < until {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let payment = payment(number, MerchantId::from_bits(u128::from(mixed(number) % 100) << 64), None);
        let asked = Instant::now();
        let batch = Batch::of(Write::Payment { payment: Arc::new(payment), expected: None });
        store.commit(batch).await.expect("a creation");
        waits.push(asked.elapsed());
    }
    waits
}

fn mixed(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

fn payment(number: u64, merchant: MerchantId, lifetime: Option<Duration>) -> Payment {
    let mixed = mixed(number);
    let now = Timestamp::from_millis(START_MS + number / 20);
    let mut random = [0; 10];
    random[2..].copy_from_slice(&mixed.to_be_bytes());
    let draft = Draft {
        amount: Money::new(10_500, Currency::Hbd),
        description: "Blue mug, large".to_owned(),
        metadata: Metadata::from([("orderId".to_owned(), MetadataValue::Text(format!("A-{number}")))]),
        redirect_url: Some("https://shop.example/thanks".to_owned()),
        cancel_url: Some("https://shop.example/cancelled".to_owned()),
        lifetime,
    };
    let terms = Terms {
        merchant,
        pay_to: AccountName::parse("blue.mugs").expect("a name"),
        fee_percent: FeePercent::parse("1.5").expect("a percentage"),
        fee_mode: FeeMode::Invoice,
        rate: None,
        default_lifetime: Duration::from_secs(1_800),
        grace: Duration::ZERO,
        livemode: false,
    };
    let slug = SlugToken::from_bits((u128::from(mixed) << 64) | u128::from(number));
    Payment::open(draft, terms, PaymentId::new(now, random), slug, now).expect("HBD needs no price")
}

/// Returns the processor time of this process, if the system provides it.
fn cpu_time() -> Option<Duration> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    // User and system time, in hundredths of a second, are the 12th and 13th after the name.
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some(Duration::from_millis((ticks(11)? + ticks(12)?) * 10))
}
