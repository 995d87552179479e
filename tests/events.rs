//! A merchant's events: the list and the stream, without gaps.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
};

use serde_json::Value;

use crate::harness::{Api, Dev, Receiver, Shop, TIMEOUT, background, folder, shared, until};

crate::tests!(
    the_list_has_the_events_of_webhooks_in_order,
    the_list_is_paginated_without_gaps_or_repeats,
    a_list_is_limited_to_its_merchant_and_its_parameters_are_validated,
    a_stream_sends_events_and_resumes_after_a_break,
    a_stream_starts_at_the_end_by_default,
    a_stream_ends_when_its_key_is_replaced,
    events_and_streams_continue_after_a_kill_without_a_gap,
);

/// Creates an event by cancelling a payment. Returns the payment's id.
fn event(shop: &Shop) -> String {
    let payment = shop.open_payment();
    shop.cancelled(&payment.id);
    payment.id
}

pub(crate) fn list(shop: &Shop, query: &str) -> Value {
    shop.api.get(&format!("/api/public/events{query}")).bearer(&shop.key).send().ok(200)
}

pub(crate) fn payments_of(events: &Value) -> Vec<String> {
    let events = events["events"].as_array().expect("a list");
    events.iter().map(|event| event["data"]["id"].as_str().expect("an id").to_owned()).collect()
}

/// An open stream of events.
pub(crate) struct Stream(BufReader<TcpStream>);

/// An event of a stream.
#[derive(Debug)]
pub(crate) struct StreamedEvent {
    id: String,
    pub(crate) name: String,
    data: Value,
}

impl StreamedEvent {
    /// Returns the id of its payment.
    pub(crate) fn payment(&self) -> String {
        self.data["data"]["id"].as_str().expect("an id").to_owned()
    }
}

impl Stream {
    pub(crate) fn open(api: &Api, key: &str, query: &str, last: Option<&str>) -> Self {
        let address = api.base.trim_start_matches("http://");
        let mut socket = TcpStream::connect(address).expect("the gateway listens");
        socket.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        let last = last.map_or(String::new(), |last| format!("last-event-id: {last}\r\n"));
        write!(
            socket,
            "GET /api/public/events/stream{query} HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {key}\r\n\
             accept: text/event-stream\r\n{last}\r\n"
        )
        .expect("written");
        let mut reader = BufReader::new(socket);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(reader.read_line(&mut head).expect("a head"), 0, "{head}");
        }
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(head.to_lowercase().contains("content-type: text/event-stream"), "{head}");
        Self(reader)
    }

    /// Waits for the next event; `None` when the stream has ended.
    fn next(&mut self) -> Option<StreamedEvent> {
        let (mut id, mut name, mut data) = (String::new(), String::new(), None);
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim_end();
            // Chunk sizes and heartbeats may come between; an event ends with an empty line after its data.
            if let Some(text) = line.strip_prefix("id:") {
                text.clone_into(&mut id);
            } else if let Some(text) = line.strip_prefix("event:") {
                text.clone_into(&mut name);
            } else if let Some(text) = line.strip_prefix("data:") {
                data = Some(serde_json::from_str(text).expect("JSON"));
            } else if line.is_empty()
                && let Some(data) = data.take()
            {
                return Some(StreamedEvent { id, name, data });
            }
        }
    }

    pub(crate) fn event(&mut self) -> StreamedEvent {
        self.next().expect("an event")
    }
}

fn the_list_has_the_events_of_webhooks_in_order() {
    let (shop, receiver) = (shared().shop(), Receiver::start());
    shop.set_webhook(&receiver);
    let ids = [event(&shop), event(&shop)];
    let events = list(&shop, "");
    assert_eq!(payments_of(&events), ids);
    assert_eq!(events["hasMore"], false);
    receiver.hook(1);
    let mut reported: Vec<Value> = receiver.hooks().iter().map(crate::harness::Hook::json).collect();
    reported.sort_by_key(|body| body["createdAt"].to_string());
    assert_eq!(events["events"].as_array().expect("a list"), &reported, "the same bodies, the same ids");
    assert!(events["events"][0]["id"].as_str().is_some_and(|id| id.starts_with("evt_")));
}

fn the_list_is_paginated_without_gaps_or_repeats() {
    let shop = shared().shop();
    let ids: Vec<String> = (0..7).map(|_| event(&shop)).collect();
    let (mut read, mut cursor) = (Vec::new(), String::new());
    loop {
        let part = list(&shop, &format!("?limit=3&after={cursor}"));
        read.extend(payments_of(&part));
        cursor = part["nextCursor"].as_str().expect("a cursor").to_owned();
        if part["hasMore"] == false {
            break;
        }
    }
    assert_eq!(read, ids);
    let whole = list(&shop, "");
    let third = whole["events"][2]["id"].as_str().expect("an id");
    assert!(third.starts_with("evt_"), "{third}");
    assert_eq!(payments_of(&list(&shop, &format!("?after={third}"))), ids[3..], "an event's id is a cursor, too");
    let foreign = list(&shared().shop(), "");
    assert_eq!(payments_of(&foreign), [] as [String; 0]);
    let rest = list(&shop, &format!("?after={cursor}"));
    assert_eq!((payments_of(&rest).len(), &rest["nextCursor"]), (0, &Value::from(cursor.as_str())));
    let id = event(&shop);
    assert_eq!(payments_of(&list(&shop, &format!("?after={cursor}"))), [id]);
}

fn a_list_is_limited_to_its_merchant_and_its_parameters_are_validated() {
    let (shop, other) = (shared().shop(), shared().shop());
    event(&other);
    assert_eq!(payments_of(&list(&shop, "")).len(), 0);
    for address in ["/api/public/events", "/api/public/events/stream"] {
        shop.api.get(address).send().refused(401, "invalid_api_key");
        shop.api.request("POST", address).bearer(&shop.key).send().refused(405, "method_not_allowed");
        for bad in ["x", "-1", "1.5", "%201", "99999999999999999999999"] {
            shop.api.get(&format!("{address}?after={bad}")).bearer(&shop.key).send().wrong(&["after"]);
        }
    }
    for bad in ["0", "101", "x"] {
        shop.api.get(&format!("/api/public/events?limit={bad}")).bearer(&shop.key).send().wrong(&["limit"]);
    }
    let bad = shop.api.get("/api/public/events/stream").header("last-event-id", "x").bearer(&shop.key);
    bad.send().wrong(&["after"]);
}

fn a_stream_sends_events_and_resumes_after_a_break() {
    let shop = shared().shop();
    let before = event(&shop);
    let mut stream = Stream::open(&shop.api, &shop.key, "?after=0", None);
    let ready = stream.event();
    assert_eq!((ready.name.as_str(), ready.id.as_str()), ("ready", "0"));
    let first = stream.event();
    assert_eq!((first.name.as_str(), first.data["data"]["id"].as_str()), ("payment.status_changed", Some(&*before)));
    let live = event(&shop);
    let second = stream.event();
    assert_eq!(second.data["data"]["id"], live.as_str());
    drop(stream);
    let missed = [event(&shop), event(&shop)];
    let mut stream = Stream::open(&shop.api, &shop.key, "?after=0", Some(&second.id));
    assert_eq!(stream.event().id, second.id, "what the client saw last is stronger than the address");
    for id in &missed {
        assert_eq!(stream.event().data["data"]["id"], id.as_str());
    }
    let list = list(&shop, "");
    assert_eq!(list["events"][0], first.data);
    assert_eq!(list["nextCursor"], "4");
}

fn a_stream_starts_at_the_end_by_default() {
    let (shop, other) = (shared().shop(), shared().shop());
    event(&shop);
    let mut stream = Stream::open(&shop.api, &shop.key, "", None);
    assert_eq!(stream.event().id, "1");
    event(&other);
    let id = event(&shop);
    assert_eq!(stream.event().data["data"]["id"], id.as_str());
}

fn a_stream_ends_when_its_key_is_replaced() {
    let dev = shared();
    let shop = dev.shop();
    let mut stream = Stream::open(&shop.api, &shop.key, "", None);
    stream.event();
    let path = format!("/api/admin/merchants/{}/api-key", shop.id);
    dev.api.request("POST", &path).bearer(dev.admin_key()).send().ok(200);
    assert!(stream.next().is_none(), "no more events");
}

fn events_and_streams_continue_after_a_kill_without_a_gap() {
    let data = folder("events").join("data");
    let data = format!("--data={}", data.to_str().expect("a path"));
    let mut dev = Dev::with(&[&data]);
    let shop = dev.shop();
    let payments: Vec<String> = (0..30).map(|_| shop.open_payment().id).collect();
    let mut stream = Stream::open(&shop.api, &shop.key, "?after=0", None);
    stream.event();
    let (cancelling, ids) = (shop.clone(), payments.clone());
    let worker = background(move || {
        for id in ids {
            let path = format!("/api/public/payments/{id}/cancel");
            if cancelling.api.request("POST", &path).bearer(&cancelling.key).try_send().is_err() {
                return;
            }
        }
    });
    let mut heard = Vec::new();
    let mut last = String::new();
    for _ in 0..5 {
        let reported = stream.event();
        heard.push(reported.data["data"]["id"].as_str().expect("an id").to_owned());
        last = reported.id;
    }
    dev.process.kill();
    // Data written to the socket before may still arrive.
    while let Some(reported) = stream.next() {
        heard.push(reported.data["data"]["id"].as_str().expect("an id").to_owned());
        last = reported.id;
    }
    let _ = worker.join();
    let dev = Dev::with(&[&data]);
    let shop = Shop { api: dev.api.clone(), ..shop };
    for id in &payments {
        shop.cancel(id).ok(200);
    }
    let mut stream = Stream::open(&shop.api, &shop.key, "", Some(&last));
    stream.event();
    while heard.len() < payments.len() {
        heard.push(stream.event().data["data"]["id"].as_str().expect("an id").to_owned());
    }
    let listed = until("every event to be listed", || {
        let listed = payments_of(&list(&shop, "?limit=100"));
        (listed.len() == payments.len()).then_some(listed)
    });
    assert_eq!(heard, listed, "once each, in the order of the list");
    // Cancellations decided by one block are decided concurrently.
    heard.sort();
    let mut payments = payments;
    payments.sort();
    assert_eq!(heard, payments);
}
