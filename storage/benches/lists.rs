//! Benchmark of pages of a long list, filter by filter: p50, p99 and maximum latency.
//!
//! `cargo bench -p storage --bench lists [-- COUNT [DIRECTORY [PAGES]]]`. Creates COUNT payments of one merchant
//! (default: a million) over a year, indexes them for search, and adds a tenth as many deliveries and audit log
//! entries. For each filter it reads the first hundred pages of twenty by number, each with another value where the
//! filter has one, and then by cursor. Elapsed time includes other processes, so processor time is printed as well. The
//! exit code is 1 if a p99 of processor time (of elapsed time if the system provides no other) exceeds ten
//! milliseconds.

use std::{path::PathBuf, process::ExitCode, sync::Arc, time::Duration};

use engine::{
    account::AccountName,
    audit::{Actor, Entry},
    fields::{Metadata, MetadataValue},
    ids::{DeliveryId, EndpointId, EventId, MerchantId, PaymentId, SlugToken},
    money::{Currency, FeePercent, HivePrice, Money},
    payment::{Draft, FeeMode, Payment, Rate, State, Terms},
    time::Timestamp,
    webhook::{Attempt, Delivery, DeliveryState, EventType, Outcome},
};
use storage::{
    AuditQuery, Batch, DeliveryQuery, EmbeddedStore, EventRecord, HoldReason, Options, PageAt, PaymentQuery,
    VolumeQuery, Write, prelude::*,
};
use tokio::time::Instant;

const START_MS: u64 = 1_763_647_200_000;
const YEAR_MS: u64 = 365 * 86_400_000;
const BATCH: u64 = 1_000;
/// Maximum p99 of a page.
const MOST: Duration = Duration::from_millis(10);
/// Number of pages to read for each filter.
const FIRST_PAGES: u64 = 100;
/// The list of which only the first page is read.
const FIRST: &str = "no filter, first page";
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
    let store = EmbeddedStore::open(data.path(), Options::default()).expect("a store");
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
    println!("{:<33} {:>7} {:>7} {:>7} {:>9} {:>7}", "20 on a page, us", "p50", "p99", "longest", "cpu p50", "p99");
    let mut worst = Duration::ZERO;
    for (name, query) in queries() {
        let mut times = Vec::new();
        for page in 0..pages {
            let mut query = query(mixed(page), count);
            if query.at == PageAt::Number(1) && name != FIRST {
                query.at = PageAt::Number(1 + page % FIRST_PAGES);
            }
            let took = Took::begin();
            drop(store.payments(query).await.expect("a page"));
            times.push(took.end());
        }
        let mut walked = Vec::new();
        for walk in 0..pages.div_ceil(FIRST_PAGES) {
            let first = query(mixed(walk), count);
            let mut at = Some(u128::MAX);
            for _ in 0..FIRST_PAGES {
                let Some(last) = at else { break };
                let query = PaymentQuery { at: PageAt::After(last), ..first.clone() };
                let took = Took::begin();
                at = store.payments(query).await.expect("a page").next;
                walked.push(took.end());
            }
        }
        worst = worst.max(report(name, times)).max(report("  one page after the other", walked));
    }
    let mut times = Vec::new();
    for _ in 0..pages {
        let query = VolumeQuery { merchant: MERCHANT, last_day: (START_MS + YEAR_MS) / 86_400_000, days: 30 };
        let took = Took::begin();
        drop(store.volume(query).await.expect("sums"));
        times.push(took.end());
    }
    worst = worst.max(report("the overview's 30 days", times));
    worst = worst.max(measure_logs(&store, count / 10, pages).await);
    store.close().await;
    worst
}

/// Benchmark of deliveries and audit log entries. Of a hundred deliveries one failed, one is held and one is pending;
/// of a hundred audit log entries one concerns the merchant.
#[expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
async fn measure_logs(store: &EmbeddedStore, count: u64, pages: u64) -> Duration {
    let began = Instant::now();
    let commit = async |writes: Vec<Write>| {
        let batch =
            writes.into_iter().map(Batch::of).reduce(|batch, next| next.writes.into_iter().fold(batch, Batch::and));
        if let Some(batch) = batch {
            store.commit(batch).await.expect("a commit");
        }
    };
    for first in (0..count).step_by(usize::try_from(BATCH).expect("small")) {
        let numbers = first..count.min(first + BATCH);
        commit(numbers.clone().map(|number| Write::Event(event(number, count))).collect()).await;
        commit(numbers.map(|number| Write::Audit(Box::new(line(number)))).collect()).await;
        let end = |delivery: Delivery| match delivery.event_seq % 100 {
            0 => Some(Write::Undeliverable(delivery)),
            1 => {
                let reason = HoldReason::NoEndpoint { merchant_version: None };
                Some(Write::Hold { delivery, reason })
            }
            2 => None,
            _ => Some(Write::Attempt { attempt: accepted(&delivery), delivery }),
        };
        let due = store.due_deliveries(Timestamp::MAX, usize::MAX).await.expect("deliveries");
        commit(due.into_iter().filter(|delivery| delivery.event_seq > first).filter_map(end).collect()).await;
    }
    println!("{count} deliveries and lines of the audit log in {:.0} s", began.elapsed().as_secs_f64());
    let all = DeliveryQuery {
        merchant: MERCHANT,
        before: None,
        limit: 20,
        states: vec![],
        event: None,
        payment: None,
        endpoint: None,
    };
    let of = |states: &[DeliveryState]| DeliveryQuery { states: states.to_vec(), ..all.clone() };
    let event = |number| Some(event(number % count, count).id);
    let mut queries: Vec<(&str, Vec<DeliveryQuery>)> = vec![
        ("deliveries", vec![all.clone()]),
        (
            "deliveries of an event",
            (0..pages).map(|page| DeliveryQuery { event: event(mixed(page)), ..all.clone() }).collect(),
        ),
        ("... failed ones", vec![DeliveryQuery { event: event(7), ..of(&[DeliveryState::Failed]) }]),
        ("deliveries, pending and failed", vec![of(&[DeliveryState::Pending, DeliveryState::Failed])]),
    ];
    queries.extend(DeliveryState::ALL.map(|state| (state.as_str(), vec![of(&[state])])));
    let mut worst = Duration::ZERO;
    for (name, firsts) in queries {
        let mut times = Vec::new();
        for first in firsts {
            let mut before = Some(None);
            for _ in 0..FIRST_PAGES {
                let Some(last) = before else { break };
                let query = DeliveryQuery { before: last, ..first.clone() };
                let took = Took::begin();
                let page = store.deliveries(query).await.expect("a page");
                times.push(took.end());
                before = page.next.map(|last| Some(DeliveryId::from_bits(last)));
            }
        }
        worst = worst.max(report(name, times));
    }
    for (name, merchant) in [("audit log", None), ("audit log of a merchant", Some(MERCHANT))] {
        let (mut times, mut before) = (Vec::new(), None);
        for _ in 0..FIRST_PAGES {
            let took = Took::begin();
            let lines = store.audit(AuditQuery { before, limit: 20, merchant }).await.expect("lines");
            times.push(took.end());
            before = lines.last().map(|line| line.seq).or(before);
        }
        worst = worst.max(report(name, times));
    }
    worst
}

fn event(number: u64, count: u64) -> EventRecord {
    let at = made_at(number, count);
    let mut random = [0; 10];
    random[2..].copy_from_slice(&mixed(number).to_be_bytes());
    EventRecord {
        id: EventId::new(at, random),
        seq: 0,
        merchant: MERCHANT,
        payment: payment_id(number, count),
        kind: EventType::StatusChanged,
        deliveries: vec![(EndpointId::default_of(MERCHANT), DeliveryId::new(at, random))],
        at,
        body: vec![b'x'; 700],
        is_test: false,
    }
}

fn accepted(delivery: &Delivery) -> Attempt {
    Attempt {
        delivery: delivery.id,
        event: delivery.event,
        merchant: delivery.merchant,
        number: 1,
        trigger: delivery.trigger,
        endpoint: "shop.example/hook".to_owned(),
        scheduled_at: delivery.due_at,
        started_at: delivery.due_at,
        ended_at: delivery.due_at,
        duration_ms: 12,
        outcome: Outcome::Accepted { status: 200 },
        request_headers: Vec::new(),
        response_snippet: "ok".to_owned(),
        next_attempt_at: None,
        body_sha256: [3; 32],
    }
}

fn line(number: u64) -> Entry {
    Entry {
        seq: 0,
        at: Timestamp::from_millis(START_MS + number),
        actor: Actor::default(),
        action: "payment_cancelled".to_owned(),
        merchant: if number.is_multiple_of(100) {
            MERCHANT
        } else {
            MerchantId::from_bits(2 + u128::from(number % 50))
        },
        subject: Some(payment_id(number, 1_000_000).to_string()),
        changes: Vec::new(),
    }
}

/// Elapsed time and processor time of a page. Pages are read on the calling thread.
struct Took {
    clock: Instant,
    processor: Option<Duration>,
}

impl Took {
    fn begin() -> Self {
        Self { processor: processor_time(), clock: Instant::now() }
    }

    fn end(self) -> [Duration; 2] {
        let clock = self.clock.elapsed();
        let processor = self.processor.zip(processor_time()).map(|(began, ended)| ended.saturating_sub(began));
        [clock, processor.unwrap_or(clock)]
    }
}

/// Returns the processor time of this thread, if the system provides it.
#[expect(clippy::disallowed_methods, reason = "the thread of a benchmark, which has no runtime")]
fn processor_time() -> Option<Duration> {
    // The system updates a thread's time when it yields.
    std::thread::sleep(Duration::from_micros(1));
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(statistics.split_whitespace().next()?.parse().ok()?))
}

/// Prints the times of one list; returns the p99 of processor time.
#[expect(clippy::print_stdout, reason = "a benchmark prints what it measured")]
fn report(name: &str, times: Vec<[Duration; 2]>) -> Duration {
    let [clock, processor] = [0, 1].map(|which| {
        let mut times: Vec<_> = times.iter().map(|took| took[which]).collect();
        times.sort_unstable();
        [50, 99, 100].map(|hundredth: usize| times[(times.len() - 1) * hundredth / 100])
    });
    let [p50, p99, longest] = clock.map(|time| time.as_micros());
    let [cpu_p50, cpu_p99, _] = processor.map(|time| time.as_micros());
    println!("{name:<33} {p50:>7} {p99:>7} {longest:>7} {cpu_p50:>9} {cpu_p99:>7}");
    processor[1]
}

type MakeQuery = Box<dyn Fn(u64, u64) -> PaymentQuery>;

/// Returns every filter as a function from a random number and the number of payments to a query.
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
        (FIRST, of(|_, _, _| {})),
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
                query.from = Some(payment_id(random % count, count).created_at());
                query.to = Some(query.from.expect("set") + Duration::from_millis(mixed(random) % YEAR_MS));
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
            "status and rare word",
            of(|query, random, count| {
                query.states = vec![State::ALL[index(random, 6)]];
                query.query = Some(format!("n{}", random % count));
            }),
        ),
        (
            "status and beginning",
            of(|query, random, _| {
                query.states = vec![State::ALL[index(random, 6)]];
                query.query = Some(format!("n{}", random % 10));
            }),
        ),
        (
            "currency, from, word, amount",
            of(|query, random, count| {
                query.currency = Some(Currency::ALL[index(random, 2)]);
                query.from = Some(payment_id(random % count, count).created_at());
                query.query = Some("mug".to_owned());
                query.min_units = Some(random % 9_000);
            }),
        ),
        (
            "unusual and word",
            of(|query, _, _| {
                query.unusual = Some(true);
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

/// Returns one of two thousand prices.
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
    // No other payment has the amount of the first one.
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
