//! The one task that owns the chain: it executes requests one after another and produces blocks on time.

use std::time::Duration;

use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};

use super::{
    control,
    host::{Answer, Host, Request},
    rpc,
};

/// Executes requests and produces blocks until it is stopped.
pub(super) async fn run(mut host: Host, mut inbox: mpsc::Receiver<Request>, mut stopped: watch::Receiver<bool>) {
    let mut next_block = Instant::now() + host.block_interval;
    loop {
        tokio::select! {
            biased;
            _ = stopped.changed() => break,
            () = sleep_until(next_block), if host.auto_produce => {
                if !host.produce() {
                    break;
                }
                next_block = (next_block + host.block_interval).max(Instant::now());
            }
            request = inbox.recv() => match request {
                Some(request) => {
                    let was_auto = host.auto_produce;
                    if !answer(&mut host, request) {
                        break;
                    }
                    if host.auto_produce && !was_auto {
                        next_block = Instant::now() + host.block_interval;
                    }
                }
                None => break,
            },
        }
    }
}

/// Executes one request; `false` if its effect could not be stored, in which case it gets no response.
fn answer(host: &mut Host, request: Request) -> bool {
    match request {
        Request::Rpc { node, body, reply } => {
            let answer = rpc::answer_node(host, node, &body);
            host.save() && delivered(reply.send(answer))
        }
        Request::ControlBody { body, reply } => {
            let body = rpc::answer(&body, |method, params| control::call(host, method, params));
            host.save()
                && delivered(reply.send(Answer::Reply { status: 200, body, delay: Duration::ZERO, retry_after: None }))
        }
        Request::Control { method, params, reply } => {
            let result = control::call(host, &method, &params);
            host.save() && delivered(reply.send(result))
        }
    }
}

/// The caller may have disconnected meanwhile; the ledger continues.
fn delivered<T>(_sent: Result<(), T>) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use engine::time::Timestamp;
    use serde_json::json;

    use super::*;
    use crate::{devnet::Options, ledger::Genesis};

    #[tokio::test]
    async fn a_ledger_that_cannot_write_stops_and_reveals_nothing_that_is_not_durable() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("chain");
        let clock = Arc::new(|| Timestamp::from_seconds(1_800_000_000));
        let options = Options::new(Genesis::demo([7; 32], clock()), clock);
        let options = Options { auto_produce: false, state: Some(path.clone()), ..options };
        let mut host = Host::open(&options).unwrap();
        assert!(host.produce());
        host.journal.as_mut().unwrap().fail_from_now_on();
        let (requests, inbox) = mpsc::channel(1);
        let (_stop, stopped) = watch::channel(false);
        let running = tokio::spawn(run(host, inbox, stopped));
        let (reply, answer) = tokio::sync::oneshot::channel();
        let request = Request::Control { method: "control.produce".into(), params: json!({}), reply };
        requests.send(request).await.unwrap_or_else(|_| panic!("the ledger still listens"));
        assert!(answer.await.is_err(), "no answer");
        running.await.unwrap();
        let after = Host::open(&options).unwrap();
        assert_eq!(after.chain.head().number(), 1);
    }
}
