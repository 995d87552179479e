//! The fixtures of every test: processes of the binary, clients, a ledger with a control port, a receiver of webhooks.

#[allow(dead_code, reason = "shared with the tests of the store")]
#[path = "../../storage/tests/postgres/cluster.rs"]
pub(crate) mod cluster;
mod databases;
mod described;
mod gateway;
mod http;
mod ledger;
mod process;
pub(crate) mod promql;
mod proxy;
mod raw;
mod receiver;
mod relay;
mod settings;
mod shop;
mod wait;
mod wire;

pub(crate) use databases::reason_to_skip;
pub(crate) use gateway::{Dev, LedgerProcess, Serve, Split, shared, until_ready};
pub(crate) use http::{Api, RequestBuilder, Response};
pub(crate) use ledger::{Ledger, Payer};
pub(crate) use process::{Finished, Process, end, folder};
pub(crate) use proxy::{Fault, Proxy};
pub(crate) use raw::raw;
pub(crate) use receiver::{Hook, Receiver, Reply};
pub(crate) use relay::Relay;
pub(crate) use settings::switch;
pub(crate) use shop::{Opened, Shop, order};
pub(crate) use wait::{Stopwatch, TIMEOUT, background, pause, until};
pub(crate) use wire::Wire;
