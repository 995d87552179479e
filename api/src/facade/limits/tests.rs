//! Tests of the limits with a simulated clock.

use std::sync::atomic::{AtomicU64, Ordering};

use engine::time::Timestamp;

use super::*;
use crate::facade::routes::router;

struct Fixture {
    limits: Limits,
    clock: Arc<AtomicU64>,
}

impl Fixture {
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

    fn advance(&self, seconds: u64) {
        self.clock.fetch_add(seconds * 1_000, Ordering::Relaxed);
    }

    fn send(&self, method: &Method, path: &str, client: &str, key: Option<&str>) -> Result<Vec<QuotaState>, Limited> {
        let client = client.parse().expect("an address");
        let merchant = key.map(|merchant| digest(merchant.as_bytes()));
        let rates = router::find(method, path).rates();
        self.limits.admit(&RequestInfo { method, rates, client, merchant, pays: false })
    }

    fn write(&self, key: &str) -> Result<Vec<QuotaState>, Limited> {
        self.send(&Method::POST, "/api/public/payments", "203.0.113.1", Some(key))
    }
}

fn retry_after(limited: Result<Vec<QuotaState>, Limited>) -> u32 {
    let limited = limited.expect_err("limited");
    assert_eq!(limited.error.reason, Reason::RateLimited);
    limited.error.retry_after_seconds.expect("Retry-After")
}

#[test]
fn a_merchant_may_write_its_burst_and_then_at_its_rate() {
    let fixture = Fixture::open();
    for left in [2, 1, 0] {
        assert_eq!(fixture.write("a").expect("allowed")[0].remaining, left);
    }
    assert_eq!(retry_after(fixture.write("a")), 1);
    fixture.write("b").expect("another merchant has a separate quota");
    fixture.send(&Method::GET, "/api/public/payments", "203.0.113.1", Some("a")).expect("reads have a separate quota");
    fixture.advance(1);
    for _ in 0..2 {
        fixture.write("a").expect("two per second");
    }
    retry_after(fixture.write("a"));
}

#[test]
fn the_headers_report_the_quota() {
    let fixture = Fixture::open();
    let mut headers = HeaderMap::new();
    write_headers(&fixture.write("a").expect("allowed"), &mut headers);
    assert_eq!(headers["ratelimit-policy"], "\"writes\";q=3;w=2");
    assert_eq!(headers["ratelimit"], "\"writes\";r=2;t=1");
    fixture.write("a").and_then(|_| fixture.write("a")).expect("allowed");
    write_headers(&fixture.write("a").expect_err("limited").quotas, &mut headers);
    assert_eq!(headers["ratelimit"], "\"writes\";r=0;t=1");
}

#[test]
fn an_ip_address_may_register_twice_a_minute_and_five_times_a_day() {
    let fixture = Fixture::open();
    let register = |client: &str| fixture.send(&Method::POST, "/api/public/merchants/register", client, None);
    let mut made = 0;
    for _ in 0..10 {
        made += usize::from(register("2001:db8::1").is_ok());
        made += usize::from(register("2001:db8::ffff").is_ok());
        fixture.advance(60);
    }
    assert_eq!(made, 5, "the whole /64 together");
    assert!(retry_after(register("2001:db8::2")) > 3_600);
    register("2001:db8:0:1::1").expect("the next /64 is another caller");
}

#[test]
fn ten_invalid_keys_lock_an_ip_address_out_for_ten_minutes() {
    let fixture = Fixture::open();
    let (guesser, other) = ("203.0.113.9", "203.0.113.10");
    let read = |client: &str| {
        let admitted = fixture.limits.admit_unknown_key(client.parse().expect("an address"));
        admitted.and_then(|()| fixture.send(&Method::GET, "/api/public/merchants/me", client, Some("good")))
    };
    for _ in 0..9 {
        fixture.limits.record_invalid_key(guesser.parse().expect("an address"));
    }
    read(guesser).expect("nine are below the limit");
    fixture.limits.record_invalid_key(guesser.parse().expect("an address"));
    assert_eq!(retry_after(read(guesser)), 600);
    read(other).expect("other IP addresses are not locked out");
    fixture.send(&Method::GET, "/for/mug-1", guesser, None).expect("the checkout stays available to that IP address");
    let known = fixture.send(&Method::GET, "/api/public/merchants/me", guesser, Some("good"));
    known.expect("a key that was accepted within a day is exempt");
    fixture.advance(599);
    assert_eq!(retry_after(read(guesser)), 1);
    fixture.advance(1);
    read(guesser).expect("the lockout is over");
}

#[test]
fn invalid_keys_at_a_low_rate_cause_no_lockout() {
    let fixture = Fixture::open();
    for _ in 0..100 {
        fixture.limits.record_invalid_key("203.0.113.9".parse().expect("an address"));
        fixture.advance(10);
    }
    fixture.limits.admit_unknown_key("203.0.113.9".parse().expect("an address")).expect("not locked out");
}

#[test]
fn open_streams_are_limited_per_ip_address_and_in_total() {
    let fixture = Fixture::open();
    let enter = |client: u128| fixture.limits.streams.enter(client);
    let first = enter(1).expect("a permit");
    let _second = enter(1).expect("a permit");
    assert_eq!(enter(1).expect_err("the limit per IP address").reason, Reason::RateLimited);
    let _third = enter(2).expect("a permit");
    assert_eq!(enter(3).expect_err("the total limit").reason, Reason::RateLimited);
    drop(first);
    let _again = enter(3).expect("a permit is free again");
}

#[test]
fn expensive_calls_have_separate_limits() {
    const OF: &str = "/api/public/merchants/mer_1";
    let fixture = Fixture::open();
    let count = |method: &Method, rest: &str, key: &str| {
        let mut allowed = 0;
        while fixture.send(method, &format!("{OF}/{rest}"), "203.0.113.1", Some(key)).is_ok() {
            allowed += 1;
            // Stays below the limit of all writes.
            fixture.clock.fetch_add(1_000, Ordering::Relaxed);
            if allowed > 50 {
                break;
            }
        }
        allowed
    };
    assert_eq!(count(&Method::POST, "webhook-test", "a"), 5);
    assert!(count(&Method::POST, "webhook-deliveries/whd_1/redeliver", "a") > 50, "one per second is below its limit");
    assert_eq!(count(&Method::GET, "webhook-deliveries/export", "a"), 6);
    assert_eq!(retry_after(fixture.send(&Method::GET, "/api/public/payments/export", "203.0.113.1", Some("a"))), 4);
    assert_eq!(count(&Method::POST, "webhook-test", "b"), 5, "another merchant has a separate quota");
}

#[test]
fn a_visit_of_the_dashboard_counts_as_the_corresponding_request() {
    let fixture = Fixture::open();
    let visit = |path: &[&str]| {
        fixture.advance(1);
        let path = format!("/dashboard/{}", path.join("/"));
        let route = router::find(&Method::POST, &path).route.expect("a page");
        assert_eq!(route.path, path);
        fixture.limits.admit_visit("a", false, route.rates)
    };
    for _ in 0..5 {
        visit(&["webhooks", "test"]).expect("five per minute");
    }
    assert_eq!(visit(&["webhooks", "test"]).expect_err("limited").reason, Reason::RateLimited);
    visit(&["webhooks", "enable"]).expect("has a separate quota");
}

#[test]
fn an_ip_address_may_send_ten_payments_per_minute_to_a_session() {
    let rate = |setting: &str| (setting == "limits.x402_session").then(|| "10/min".parse().expect("a rate"));
    let clock = Arc::new(AtomicU64::new(1_000_000));
    let read = Arc::clone(&clock);
    let now: Now = Arc::new(move || Timestamp::from_millis(read.load(Ordering::Relaxed)));
    let limits = Limits::new(now, rate, Duration::from_secs(600), StreamLimits { per_ip: 2, total: 3 });
    let edge = Edge { limits: Some(limits), ..Edge::default() };
    let send = |session: &str, client: &str| {
        let client = client.parse().expect("an address");
        edge.check_attempts(session, client)?;
        edge.count_attempt(session, client);
        Ok::<_, ApiError>(())
    };
    for _ in 0..10 {
        send("pay_1", "203.0.113.9").expect("ten");
    }
    assert_eq!(send("pay_1", "203.0.113.9").expect_err("the eleventh").reason, Reason::RateLimited);
    send("pay_2", "203.0.113.9").expect("another session");
    send("pay_1", "203.0.113.99").expect("another IP address has its own attempts");
    clock.fetch_add(6_000, Ordering::Relaxed);
    let client = "203.0.113.9".parse().expect("an address");
    for _ in 0..20 {
        edge.check_attempts("pay_1", client).expect("a check counts no attempt");
    }
    send("pay_1", "203.0.113.9").expect("one attempt is replenished");
    let error = send("pay_1", "203.0.113.9").expect_err("and no more");
    assert_eq!((error.reason, error.retry_after_seconds), (Reason::RateLimited, Some(6)));
    // Concurrent requests beyond the limit are counted, too.
    edge.count_attempt("pay_1", client);
    send("pay_1", "203.0.113.9").expect_err("used up");
}

#[test]
fn health_checks_and_the_dashboard_are_not_limited_here() {
    let fixture = Fixture::open();
    for path in ["/api/health", "/livez", "/readyz", "/dashboard"] {
        for _ in 0..100 {
            assert!(fixture.send(&Method::GET, path, "203.0.113.1", None).expect("unlimited").is_empty(), "{path}");
        }
    }
}

#[test]
fn restarts_have_the_rate_of_writes_and_use_up_no_writes_of_the_merchant() {
    let Fixture { limits, clock } = Fixture::open();
    let edge = Edge { limits: Some(limits), ..Edge::default() };
    for _ in 0..3 {
        edge.count_restart("mer_1").expect("the burst of the writes");
    }
    let refused = edge.count_restart("mer_1").expect_err("limited");
    assert_eq!((refused.reason, refused.retry_after_seconds), (Reason::RateLimited, Some(1)));
    edge.count_restart("mer_2").expect("another merchant");
    clock.fetch_add(1_000, Ordering::Relaxed);
    edge.count_restart("mer_1").expect("a second later");
    let fixture = Fixture { limits: edge.limits.expect("limits"), clock };
    for _ in 0..3 {
        fixture.write("mer_1").expect("the merchant's own writes");
    }
    assert!(Edge::default().count_restart("mer_1").is_ok(), "without limits");
}

#[test]
fn requests_without_a_key_are_counted_by_ip_address() {
    for path in ["/openapi.json", "/docs", "/assets/checkout.css", "/api/public/x402/supported", "/api/public/payments"]
    {
        let fixture = Fixture::open();
        let read = |client: &str| fixture.send(&Method::GET, path, client, None);
        for _ in 0..30 {
            read("2001:db8::1").expect(path);
        }
        assert_eq!(retry_after(read("2001:db8::ffff")), 1, "{path}");
        read("2001:db8:0:1::1").expect("another network");
        fixture.write("a").expect("requests with a key are counted by merchant");
    }
}

#[test]
fn unknown_keys_are_counted_by_ip_address_before_they_are_verified() {
    let fixture = Fixture::open();
    let send = || fixture.limits.admit_unknown_key("203.0.113.9".parse().expect("an address"));
    for _ in 0..30 {
        send().expect("allowed");
    }
    assert_eq!(send().expect_err("limited").error.reason, Reason::RateLimited);
}
