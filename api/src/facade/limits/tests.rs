//! The limits over a clock that is moved by hand.

use std::sync::atomic::{AtomicU64, Ordering};

use engine::time::Timestamp;

use super::*;
use crate::facade::routes::router;

struct Desk {
    limits: Limits,
    clock: Arc<AtomicU64>,
}

impl Desk {
    fn open() -> Self {
        let clock = Arc::new(AtomicU64::new(1_000_000));
        let read = Arc::clone(&clock);
        let rate = |setting: &str| {
            let text = match setting {
                "limits.api_writes" => "2/s burst 3",
                "limits.register" => "2/min",
                "limits.register_daily" => "5/day",
                "limits.x402_session" => return None,
                "limits.bad_keys" => "10/min",
                "limits.webhook_test" => "5/min",
                "limits.export" => "6/min",
                _ => "60/min burst 30",
            };
            Some(text.parse().expect("a rate"))
        };
        let now: Now = Arc::new(move || Timestamp::from_millis(read.load(Ordering::Relaxed)));
        let streams = StreamLimits { per_ip: 2, total: 3 };
        Self { limits: Limits::new(now, rate, Duration::from_secs(600), streams), clock }
    }

    fn pass(&self, seconds: u64) {
        self.clock.fetch_add(seconds * 1_000, Ordering::Relaxed);
    }

    fn ask(&self, method: &Method, path: &str, client: &str, key: Option<&str>) -> Result<Vec<Standing>, Limited> {
        let client = client.parse().expect("an address");
        let merchant = key.map(|merchant| digest(merchant.as_bytes()));
        let rates = router::find(method, path).rates();
        self.limits.admit(&Asked { method, rates, client, merchant, pays: false })
    }

    fn write(&self, key: &str) -> Result<Vec<Standing>, Limited> {
        self.ask(&Method::POST, "/api/public/payments", "203.0.113.1", Some(key))
    }
}

fn retry_after(limited: Result<Vec<Standing>, Limited>) -> u32 {
    let limited = limited.expect_err("limited");
    assert_eq!(limited.error.reason, Reason::RateLimited);
    limited.error.retry_after_seconds.expect("a time to come back")
}

#[test]
fn a_merchant_may_write_its_burst_and_then_as_often_as_its_rate_says() {
    let desk = Desk::open();
    for left in [2, 1, 0] {
        assert_eq!(desk.write("a").expect("allowed")[0].remaining, left);
    }
    assert_eq!(retry_after(desk.write("a")), 1);
    desk.write("b").expect("another merchant has a quota of its own");
    desk.ask(&Method::GET, "/api/public/payments", "203.0.113.1", Some("a")).expect("reading is counted by itself");
    desk.pass(1);
    for _ in 0..2 {
        desk.write("a").expect("two a second");
    }
    retry_after(desk.write("a"));
}

#[test]
fn the_headers_say_where_a_caller_stands() {
    let desk = Desk::open();
    let mut headers = HeaderMap::new();
    write_headers(&desk.write("a").expect("allowed"), &mut headers);
    assert_eq!(headers["ratelimit-policy"], "\"writes\";q=3;w=2");
    assert_eq!(headers["ratelimit"], "\"writes\";r=2;t=1");
    desk.write("a").and_then(|_| desk.write("a")).expect("allowed");
    write_headers(&desk.write("a").expect_err("limited").standings, &mut headers);
    assert_eq!(headers["ratelimit"], "\"writes\";r=0;t=1");
}

#[test]
fn an_address_registers_twice_a_minute_and_five_times_a_day() {
    let desk = Desk::open();
    let register = |client: &str| desk.ask(&Method::POST, "/api/public/merchants/register", client, None);
    let mut made = 0;
    for _ in 0..10 {
        made += usize::from(register("2001:db8::1").is_ok());
        made += usize::from(register("2001:db8::ffff").is_ok());
        desk.pass(60);
    }
    assert_eq!(made, 5, "the whole /64 together");
    assert!(retry_after(register("2001:db8::2")) > 3_600);
    register("2001:db8:0:1::1").expect("the next network is another caller");
}

#[test]
fn ten_wrong_keys_lock_an_address_out_for_ten_minutes() {
    let desk = Desk::open();
    let (guesser, other) = ("203.0.113.9", "203.0.113.10");
    let read = |client: &str| {
        let shown = desk.limits.admit_unknown_key(client.parse().expect("an address"));
        shown.and_then(|()| desk.ask(&Method::GET, "/api/public/merchants/me", client, Some("good")))
    };
    for _ in 0..9 {
        desk.limits.note_bad_key(guesser.parse().expect("an address"));
    }
    read(guesser).expect("nine are no attack");
    desk.limits.note_bad_key(guesser.parse().expect("an address"));
    assert_eq!(retry_after(read(guesser)), 600);
    read(other).expect("others are not locked out");
    desk.ask(&Method::GET, "/for/mug-1", guesser, None).expect("customers at that address still see the page");
    let known = desk.ask(&Method::GET, "/api/public/merchants/me", guesser, Some("good"));
    known.expect("a key that worked lately is not locked out with its address");
    desk.pass(599);
    assert_eq!(retry_after(read(guesser)), 1);
    desk.pass(1);
    read(guesser).expect("the time is over");
}

#[test]
fn a_few_wrong_keys_now_and_then_lock_nobody_out() {
    let desk = Desk::open();
    for _ in 0..100 {
        desk.limits.note_bad_key("203.0.113.9".parse().expect("an address"));
        desk.pass(10);
    }
    desk.limits.admit_unknown_key("203.0.113.9".parse().expect("an address")).expect("not locked out");
}

#[test]
fn streams_are_counted_for_each_address_and_altogether() {
    let desk = Desk::open();
    let enter = |client: u128| desk.limits.streams.enter(client);
    let first = enter(1).expect("a place");
    let _second = enter(1).expect("a place");
    assert_eq!(enter(1).expect_err("full").reason, Reason::RateLimited);
    let _third = enter(2).expect("a place");
    assert_eq!(enter(3).expect_err("all places are taken").reason, Reason::RateLimited);
    drop(first);
    let _again = enter(3).expect("a place is free again");
}

#[test]
fn what_costs_much_has_a_rate_of_its_own() {
    const OF: &str = "/api/public/merchants/mer_1";
    let desk = Desk::open();
    let count = |method: &Method, rest: &str, key: &str| {
        let mut allowed = 0;
        while desk.ask(method, &format!("{OF}/{rest}"), "203.0.113.1", Some(key)).is_ok() {
            allowed += 1;
            // The rate of all writes is not what stops.
            desk.clock.fetch_add(1_000, Ordering::Relaxed);
            if allowed > 50 {
                break;
            }
        }
        allowed
    };
    assert_eq!(count(&Method::POST, "webhook-test", "a"), 5);
    assert!(count(&Method::POST, "webhook-deliveries/whd_1/redeliver", "a") > 50, "one a second goes on for ever");
    assert_eq!(count(&Method::GET, "webhook-deliveries/export", "a"), 6);
    assert_eq!(retry_after(desk.ask(&Method::GET, "/api/public/payments/export", "203.0.113.1", Some("a"))), 4);
    assert_eq!(count(&Method::POST, "webhook-test", "b"), 5, "another key has a quota of its own");
}

#[test]
fn a_visit_of_the_dashboard_counts_as_the_request_it_stands_for() {
    let desk = Desk::open();
    let visit = |path: &[&str]| {
        desk.pass(1);
        let path = format!("/dashboard/{}", path.join("/"));
        let route = router::find(&Method::POST, &path).route.expect("a page");
        assert_eq!(route.path, path);
        desk.limits.admit_visit("a", false, route.rates)
    };
    for _ in 0..5 {
        visit(&["webhooks", "test"]).expect("five a minute");
    }
    assert_eq!(visit(&["webhooks", "test"]).expect_err("limited").reason, Reason::RateLimited);
    visit(&["webhooks", "enable"]).expect("counted by itself");
}

#[test]
fn one_address_shows_one_session_ten_payments_a_minute() {
    let rate = |setting: &str| (setting == "limits.x402_session").then(|| "10/min".parse().expect("a rate"));
    let clock = Arc::new(AtomicU64::new(1_000_000));
    let read = Arc::clone(&clock);
    let now: Now = Arc::new(move || Timestamp::from_millis(read.load(Ordering::Relaxed)));
    let limits = Limits::new(now, rate, Duration::from_secs(600), StreamLimits { per_ip: 2, total: 3 });
    let edge = Edge { limits: Some(limits), ..Edge::default() };
    let show = |session: &str, client: &str| {
        let client = client.parse().expect("an address");
        edge.look_at_session(session, client)?;
        edge.count_attempt(session, client);
        Ok::<_, ApiError>(())
    };
    for _ in 0..10 {
        show("pay_1", "203.0.113.9").expect("ten");
    }
    assert_eq!(show("pay_1", "203.0.113.9").expect_err("the eleventh").reason, Reason::RateLimited);
    show("pay_2", "203.0.113.9").expect("another session");
    show("pay_1", "203.0.113.99").expect("nobody uses up the attempts of others");
    clock.fetch_add(6_000, Ordering::Relaxed);
    let client = "203.0.113.9".parse().expect("an address");
    for _ in 0..20 {
        edge.look_at_session("pay_1", client).expect("to look costs nothing");
    }
    show("pay_1", "203.0.113.9").expect("one is there again");
    let error = show("pay_1", "203.0.113.9").expect_err("and no more");
    assert_eq!((error.reason, error.retry_after_seconds), (Reason::RateLimited, Some(6)));
    // Requests that ran at once are counted all the same.
    edge.count_attempt("pay_1", client);
    show("pay_1", "203.0.113.9").expect_err("used up");
}

#[test]
fn what_is_no_business_of_a_limit_is_not_limited() {
    let desk = Desk::open();
    for path in ["/api/health", "/livez", "/readyz", "/dashboard"] {
        for _ in 0..100 {
            assert!(desk.ask(&Method::GET, path, "203.0.113.1", None).expect("unlimited").is_empty(), "{path}");
        }
    }
}

#[test]
fn what_needs_no_key_is_counted_by_address_whatever_it_is() {
    for path in ["/openapi.json", "/docs", "/assets/checkout.css", "/api/public/x402/supported", "/api/public/payments"]
    {
        let desk = Desk::open();
        let read = |client: &str| desk.ask(&Method::GET, path, client, None);
        for _ in 0..30 {
            read("2001:db8::1").expect(path);
        }
        assert_eq!(retry_after(read("2001:db8::ffff")), 1, "{path}");
        read("2001:db8:0:1::1").expect("another network");
        desk.write("a").expect("who is known is counted by name");
    }
}

#[test]
fn keys_that_nobody_knows_are_counted_by_address_before_they_are_looked_at() {
    let desk = Desk::open();
    let show = || desk.limits.admit_unknown_key("203.0.113.9".parse().expect("an address"));
    for _ in 0..30 {
        show().expect("allowed");
    }
    assert_eq!(show().expect_err("limited").error.reason, Reason::RateLimited);
}
