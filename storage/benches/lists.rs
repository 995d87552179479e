//! How long pages of a long list take, filter by filter: p50, p99 and the longest.
//!
//! `cargo bench -p storage --bench lists [-- COUNT [DIRECTORY [PAGES]]]`. One merchant's payments, a million by default, made
//! over a year, indexed for search; then pages of twenty, each at another place where the filter has one. Its exit code is 1
//! where a p99 is above ten milliseconds.

use std::{path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use engine::{
    account::AccountName,
    fields::{Metadata, MetadataValue},
    ids::{MerchantId, PaymentId, SlugToken},
    money::{Currency, FeePercent, HivePrice, Money},
    payment::{Draft, FeeMode, Payment, Rate, State, Terms},
    time::Timestamp,
};
use storage::{Batch, Options, PageAt, PaymentQuery, RedbStore, Store, VolumeQuery, Write};
use tokio::time::Instant;

const START_MS: u64 = 1_763_647_200_000;
const YEAR_MS: u64 = 365 * 86_400_000;
const BATCH: u64 = 1_000;
/// What a page may take.
const MOST: Duration = Duration::from_millis(10);
const MERCHANT: MerchantId = MerchantId::from_bits(1 << 100);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let number = |at: usize, default| arguments.get(at).map_or(default, |text| text.parse().expect("a number"));
    let parent = arguments.get(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_time().build().expect("a runtime");
    let worst = runtime.block_on(measure(&parent, number(0, 1_000_000), number(2, 300)));
    if worst > MOST { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

#[expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
async fn measure(parent: &std::path::Path, count: u64, pages: u64) -> Duration {
    let data = tempfile::tempdir_in(parent).expect("a directory");
    let store = RedbStore::open(data.path(), Options::default()).expect("a store");
    let began = Instant::now();
    for first in (0..count).step_by(usize::try_from(BATCH).expect("small")) {
        let writes = (first..count.min(first + BATCH))
            .map(|number| Write::Payment { payment: Arc::new(payment(number, count)), expected: None });
        let batch = writes.map(Batch::of).reduce(|batch, next| next.writes.into_iter().fold(batch, Batch::and));
        store.commit(batch.expect("a payment")).await.expect("a commit");
    }
    let later = Timestamp::from_millis(START_MS + 2 * YEAR_MS);
    while store.index_search(later, 10_000).await.expect("an index") > 0 {}
    println!("{count} payments in {:.0} s", began.elapsed().as_secs_f64());
    println!("{:<42} {:>9} {:>9} {:>9}", "20 on a page, us", "p50", "p99", "longest");
    let mut worst = Duration::ZERO;
    for (name, query) in queries() {
        let mut times = Vec::new();
        for page in 0..pages {
            let query = query(mixed(page), count);
            let asked = Instant::now();
            drop(store.payments(query).await.expect("a page"));
            times.push(asked.elapsed());
        }
        worst = worst.max(report(name, times));
    }
    let mut times = Vec::new();
    for _ in 0..pages {
        let query = VolumeQuery { merchant: MERCHANT, last_day: (START_MS + YEAR_MS) / 86_400_000, days: 30 };
        let asked = Instant::now();
        drop(store.volume(query).await.expect("sums"));
        times.push(asked.elapsed());
    }
    worst = worst.max(report("the overview's 30 days", times));
    store.close().await;
    worst
}

/// Prints the times of one list; returns the 99th of a hundred.
#[expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
fn report(name: &str, mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    let at = |hundredth: usize| times[(times.len() - 1) * hundredth / 100];
    println!("{name:<42} {:>9} {:>9} {:>9}", at(50).as_micros(), at(99).as_micros(), at(100).as_micros());
    at(99)
}

type MakeQuery = Box<dyn Fn(u64, u64) -> PaymentQuery>;

/// Every filter: a query for a random number, of that many payments.
fn queries() -> Vec<(&'static str, MakeQuery)> {
    let all = || PaymentQuery::all(MERCHANT, 20);
    let of = |change: fn(&mut PaymentQuery, u64, u64)| -> MakeQuery {
        Box::new(move |random, count| {
            let mut query = all();
            change(&mut query, random, count);
            query
        })
    };
    vec![
        ("no filter, first page", of(|_, _, _| {})),
        ("no filter, any page", of(|query, random, count| query.at = PageAt::Number(1 + random % (count / 20).max(1)))),
        ("no filter, any cursor", of(|query, random, count| query.at = after(random, count))),
        ("status", of(|query, random, _| query.states = vec![State::ALL[index(random, 6)]])),
        (
            "status, any cursor",
            of(|query, random, count| {
                query.states = vec![State::Failed];
                query.at = after(random, count);
            }),
        ),
        ("currency", of(|query, random, _| query.currency = Some(Currency::ALL[index(random, 2)]))),
        (
            "currency, page 1000",
            of(|query, _, _| {
                query.currency = Some(Currency::Hbd);
                query.at = PageAt::Number(1_000);
            }),
        ),
        ("unusual", of(|query, _, _| query.unusual = Some(true))),
        (
            "from, to",
            of(|query, random, count| {
                query.from = Some(payment_id(random % count, count).made_at());
                query.to = Some(payment_id(mixed(random) % count, count).made_at().max(query.from.expect("set")));
            }),
        ),
        (
            "amount, exact",
            of(|query, random, _| {
                let units = units(random);
                (query.min_units, query.max_units) = (Some(units), Some(units));
            }),
        ),
        ("amount, range", of(|query, random, _| query.min_units = Some(random % 9_000))),
        ("amount, rare", of(|query, _, _| query.min_units = Some(1_000_000))),
        ("word that all have", of(|query, _, _| query.query = Some("mug".to_owned()))),
        ("word that one has", of(|query, random, count| query.query = Some(format!("n{}", random % count)))),
        ("beginning that many words have", of(|query, random, _| query.query = Some(format!("n{}", random % 10)))),
        ("two words", of(|query, random, count| query.query = Some(format!("mug n{}", random % count)))),
        ("id", of(|query, random, count| query.query = Some(payment_id(random % count, count).to_string()))),
        (
            "status and word",
            of(|query, random, _| {
                query.states = vec![State::ALL[index(random, 6)]];
                query.query = Some("mug".to_owned());
            }),
        ),
        (
            "ids",
            of(|query, random, count| {
                query.ids = (0..20).map(|step| payment_id(mixed(random + step) % count, count)).collect();
            }),
        ),
    ]
}

fn index(random: u64, length: u64) -> usize {
    usize::try_from(random % length).expect("it is small")
}

fn after(random: u64, count: u64) -> PageAt {
    PageAt::After(payment_id(random % count, count).bits())
}

fn mixed(number: u64) -> u64 {
    number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// One of two thousand prices.
const fn units(random: u64) -> u64 {
    500 + random % 2_000 * 5
}

fn made_at(number: u64, count: u64) -> Timestamp {
    let ms = u128::from(number) * u128::from(YEAR_MS) / u128::from(count);
    Timestamp::from_millis(START_MS + u64::try_from(ms).expect("within a year"))
}

fn payment_id(number: u64, count: u64) -> PaymentId {
    let mut random = [0; 10];
    random[2..].copy_from_slice(&mixed(number).to_be_bytes());
    PaymentId::new(made_at(number, count), random)
}

fn payment(number: u64, count: u64) -> Payment {
    let (random, now) = (mixed(number), made_at(number, count));
    let currency = if random.is_multiple_of(3) { Currency::Hive } else { Currency::Hbd };
    // Nobody asks for as much as the first one does.
    let units = if number == 0 { 2_000_000 } else { units(random) };
    let draft = Draft {
        amount: Money::new(units, currency),
        description: "Blue mug, large".to_owned(),
        metadata: Metadata::from([("orderId".to_owned(), MetadataValue::Text(format!("n{number}")))]),
        redirect_url: None,
        cancel_url: None,
        lifetime: None,
    };
    let terms = Terms {
        merchant: MERCHANT,
        pay_to: AccountName::parse("blue.mugs").expect("a name"),
        fee_percent: FeePercent::parse("1.5").expect("a percentage"),
        fee_mode: FeeMode::Invoice,
        rate: HivePrice::new(258, 1_000).map(|price| Rate { price, hbd: None, at: now }),
        default_lifetime: Duration::from_secs(1_800),
        grace: Duration::ZERO,
        livemode: false,
    };
    let slug = SlugToken::from_bits((u128::from(random) << 64) | u128::from(number));
    let payment = Payment::open(draft, terms, payment_id(number, count), slug, now).expect("the price is known");
    let state = match random / 3 % 100 {
        0..70 => State::Completed,
        70..90 => State::SystemCancelled,
        90..97 => State::UserCancelled,
        97 => State::Failed,
        98 => State::Processing,
        _ => State::Pending,
    };
    let completed_at = (state == State::Completed).then(|| now + Duration::from_millis(20_000 + random % 600_000));
    Payment { state, completed_at, is_reversed: random % 50_000 == 7, ..payment }
}
