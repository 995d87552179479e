//! Merchants that call by gRPC.

use futures_util::StreamExt as _;

use super::*;
use crate::front::{Call, Denied, Method, Shown};

impl Client<'_> {
    async fn grpc(&self, key: &str, idempotency_key: Option<String>, method: Method) -> Result<Vec<Shown>, Denied> {
        let shown = format!("{method:?}");
        let could_fail = self.may_be_unavailable();
        let response = self.endpoint.grpc(Call { key: key.to_owned(), idempotency_key, method }).await;
        let detail = response.as_ref().map_or(1, |shown| shown.iter().map(|one| one.sequence + 2).sum());
        self.sim.event(Source::Merchant, "answered", Some(self.session), detail, || match &response {
            Ok(payments) => format!("{shown} by gRPC returns {} payments", payments.len()),
            Err(denied) => format!("{shown} by gRPC is refused: {}", denied.reason),
        });
        if let Err(denied) = &response {
            self.judge_denied(&shown, denied, could_fail || self.may_be_unavailable());
        }
        response
    }

    fn judge_denied(&self, shown: &str, denied: &Denied, may_fail: bool) {
        let is_failure = match denied.code.as_str() {
            "Unavailable" => !may_fail || denied.retry_after.is_none(),
            "Internal" | "Unknown" | "DataLoss" | "DeadlineExceeded" => true,
            _ => false,
        };
        let reported = || format!("{shown} by gRPC is refused with {denied:?}");
        self.sim.observe(|observer| match is_failure {
            true => observer.violate("clients-see-no-failure", reported(), None),
            false => observer.passes("clients-see-no-failure"),
        });
    }

    /// Checks that a valid call was not refused, unless for an unrelated reason.
    fn hold_granted(&self, known: &Session, what: &str, response: &Result<Vec<Shown>, Denied>) {
        let excused = ["invalid_api_key", "inactive_merchant", "conflict"];
        let is_taken = match response {
            Ok(_) => true,
            Err(denied) => denied.code == "Unavailable" || excused.contains(&denied.reason),
        };
        self.hold("valid-requests-are-taken", known.id, is_taken, || {
            format!("{what} by gRPC is refused: {response:?}")
        });
    }

    /// Reads, lists, and creates a session twice with one idempotency key; then cancels it.
    pub(super) async fn call_grpc(&self, known: &Session, key: &str) {
        let before = self.sim.durable_state(known.id);
        let read = self.grpc(key, None, Method::Get(known.id.to_string())).await;
        self.hold_granted(known, "a read", &read);
        for shown in read.into_iter().flatten() {
            self.hold_state(known.id, before, shown.status);
            let is_it = shown.id == known.id.to_string() && shown.units == known.amount.units;
            self.hold("responses-are-durable", known.id, is_it, || format!("{} is reported as {shown:?}", known.id));
        }
        let list = self.grpc(key, None, Method::List).await;
        self.hold_granted(known, "a list", &list);
        for shown in list.into_iter().flatten() {
            let own = shown.id.parse::<PaymentId>().ok().and_then(|id| {
                self.sim.observe(|observer| Some(observer.payments.get(&id)?.payment.merchant == known.merchant))
            });
            self.hold("anothers-is-unknown", known.id, own == Some(true), || {
                format!("{} is in a list of {}'s", shown.id, known.merchant)
            });
        }
        let create = || Method::Create {
            units: 5_000,
            currency: "HBD",
            description: "A mug by gRPC".to_owned(),
            expires_in_seconds: Some(120),
        };
        let name = Some(format!("grpc-{}", self.session));
        let first = self.grpc(key, name.clone(), create()).await;
        self.hold_granted(known, "a creation", &first);
        let again = self.grpc(key, name, create()).await;
        let Ok([first]) = first.as_deref() else { return };
        let id = first.id.parse::<PaymentId>().ok();
        let is_durable = id.is_some_and(|id| self.sim.durable_state(id).is_some());
        self.hold("responses-are-durable", known.id, is_durable, || {
            format!("{} is reported and is not durable", first.id)
        });
        if let Ok([again]) = again.as_deref() {
            self.hold("one-key-one-session", known.id, again.id == first.id, || {
                format!("one key by gRPC opened {} and {}", first.id, again.id)
            });
        }
        let cancelled = self.grpc(key, None, Method::Cancel(first.id.clone())).await;
        if let (Ok(_), Some(id)) = (&cancelled, id) {
            let payment = self.sim.observe(|observer| Some(Arc::clone(&observer.payments.get(&id)?.payment)));
            if let Some(payment) = payment {
                self.sim.observe(|observer| observer.responded(&Response::Cancelled(&payment)));
            }
        }
        self.sim.mark("a merchant calls by gRPC");
    }

    /// Another merchant requests the session, and one that does not exist.
    pub(super) async fn intrude_by_grpc(&self, known: &Session, unknown: PaymentId, key: &str) {
        let calls: [fn(String) -> Method; 2] = [Method::Get, Method::Cancel];
        for method in calls {
            let theirs = self.grpc(key, None, method(known.id.to_string())).await;
            let nobodys = self.grpc(key, None, method(unknown.to_string())).await;
            let is_down =
                |response: &Result<_, Denied>| response.as_ref().is_err_and(|denied| denied.code == "Unavailable");
            if is_down(&theirs) || is_down(&nobodys) {
                continue;
            }
            self.hold("anothers-is-unknown", known.id, theirs.is_err() && theirs == nobodys, || {
                format!("another's payment returns {theirs:?} by gRPC, and an unknown one {nobodys:?}")
            });
        }
    }

    /// Watches a session until it has ended.
    pub(super) async fn watch(&self, known: &Session, key: &str) -> Again {
        let opened = self.endpoint.watch(key.to_owned(), known.id.to_string()).await;
        let mut snapshots = match opened {
            Ok(snapshots) => snapshots,
            Err(denied) => {
                self.judge_denied("a watch", &denied, self.may_be_unavailable());
                self.hold_granted(known, "a watch", &Err(denied));
                return Again::No;
            }
        };
        let mut last = (0, "pending");
        while let Some(shown) = snapshots.next().await {
            self.sim.event(Source::Merchant, "watched", Some(self.session), shown.sequence, || {
                format!("a watcher of session {} is notified that it is {}", self.session, shown.status)
            });
            let durable = self.sim.durable_state(known.id);
            let is_over = shown.status != "pending" && shown.status != "processing";
            let is_now = durable.is_some_and(|durable| durable.state.as_str() == shown.status);
            self.hold("reported-states-are-current", known.id, is_now || !is_over, || {
                format!("a watcher of {} is notified that it is {}, and it is {durable:?}", known.id, shown.status)
            });
            self.hold("reported-states-are-current", known.id, shown.sequence >= last.0, || {
                format!("a watcher of {} is notified of state {} after {}", known.id, shown.sequence, last.0)
            });
            last = (shown.sequence, shown.status);
        }
        let ended = last.1 != "pending" && last.1 != "processing";
        if ended {
            self.sim.mark("a watch ends with its session");
        }
        // A broken stream is opened again.
        if ended { Again::No } else { Again::In(2_000) }
    }
}
