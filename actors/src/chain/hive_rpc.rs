//! A ledger node over Hive's JSON-RPC.

use std::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use engine::{
    account::AccountName,
    hive::{Authority, ChainId, block},
    ledger::{Block, Head, Transfer, TxId, VirtualOperations},
    money::{Currency, HbdPrice, HivePrice, Money},
    time::Timestamp,
};
use reqwest::{
    Client, StatusCode, Url,
    header::{CONTENT_TYPE, DATE, HeaderMap, RETRY_AFTER},
    redirect::Policy,
};
use serde::{Deserialize, Serialize};
use serde_json::{json, value::RawValue};

use crate::environment::{Account, Answer, Identity, Node, NodeError, TxStatus};

/// Maximum size of a response: a hundred full blocks are far below.
const MAX_ANSWER: usize = 64 * 1024 * 1024;
/// Entries of an account's history per request; hived returns no more.
const HISTORY_PAGE: u64 = 1_000;
/// Maximum number of pages of a history.
const MAX_HISTORY_PAGES: u32 = 500;
/// The version string of Hivetill's development ledger.
const DEVELOPMENT_VERSION: &str = "hivetill-dev";

/// A node behind a URL.
pub struct HiveRpc {
    client: Client,
    url: Url,
    name: String,
    /// The number of requests so far, which is the id of the next one.
    asked: AtomicU64,
}

impl fmt::Debug for HiveRpc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HiveRpc").field("name", &self.name).finish_non_exhaustive()
    }
}

impl HiveRpc {
    /// Returns the node at `url`.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    pub fn new(url: &str, timeout: Duration) -> Result<Self, reqwest::Error> {
        let client = Client::builder().redirect(Policy::none()).timeout(timeout).connect_timeout(timeout).build()?;
        let url = client.post(url).build()?.url().clone();
        // A URL may contain a key in its path or query; only its host is logged.
        let name = url.host_str().map_or_else(
            || "node".to_owned(),
            |host| {
                let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
                format!("{host}{port}")
            },
        );
        Ok(Self { client, url, name, asked: AtomicU64::new(0) })
    }

    async fn call(&self, method: &str, params: impl Serialize) -> Result<Box<RawValue>, NodeError> {
        let id = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let request = serde_json::to_vec(&Call { jsonrpc: "2.0", id, method, params }).map_err(unreadable)?;
        let unreachable = |error: reqwest::Error| {
            if error.is_connect() {
                NodeError::Unreachable(error.without_url().to_string())
            } else if error.is_timeout() {
                NodeError::Timeout
            } else {
                NodeError::Broken(error.without_url().to_string())
            }
        };
        let post = self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/json");
        let mut answer = post.body(request).send().await.map_err(unreachable)?;
        if let Some(refused) = refused_by(answer.status(), answer.headers()) {
            return Err(refused);
        }
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(unreachable)? {
            body.extend_from_slice(&chunk);
            if body.len() > MAX_ANSWER {
                return Err(NodeError::Unreadable(format!("more than {MAX_ANSWER} bytes")));
            }
        }
        let Envelope { id: answered, result, error } = read(&body)?;
        // Public nodes are behind a cache. A response to another request would be taken for an accepted broadcast.
        if answered != Some(id) && (answered.is_some() || error.is_none()) {
            return Err(NodeError::Unreadable(format!("the response to request {answered:?} instead of {id}")));
        }
        match (result, error) {
            (_, Some(error)) => Err(NodeError::Rpc {
                code: error.code,
                data_code: error.data.as_ref().and_then(|data| data.code),
                name: error.data.and_then(|data| data.name).unwrap_or_default(),
                message: error.message,
            }),
            (Some(result), None) => Ok(result),
            (None, None) => Err(NodeError::Unreadable("neither result nor error".to_owned())),
        }
    }

    /// Reads an account's history backwards, page by page, until it is older than the span. Unfiltered: a node with a
    /// filter gives up after a while without a match.
    async fn read_history(
        &self,
        account: AccountName,
        (from, to): (Timestamp, Timestamp),
    ) -> Result<Vec<Transfer>, NodeError> {
        let mut transfers = Vec::new();
        let mut newest: Option<u64> = None;
        for _ in 0..MAX_HISTORY_PAGES {
            // hived rejects a page that would begin before the first entry.
            let limit = newest.map_or(HISTORY_PAGE, |newest| HISTORY_PAGE.min(newest + 1));
            let start = newest.map_or_else(|| json!(-1), |newest| json!(newest));
            let params = json!({ "account": account.as_str(), "start": start, "limit": limit });
            let result = self.call("account_history_api.get_account_history", params).await?;
            let page = block::parse_account_history(result.get()).map_err(unreadable)?;
            let Some(oldest) = page.iter().min_by_key(|entry| entry.number) else { return Ok(transfers) };
            let (number, time) = (oldest.number, oldest.time);
            let within = page.into_iter().filter(|entry| from <= entry.time && entry.time < to);
            transfers.extend(within.flat_map(|entry| entry.transfers));
            if number == 0 || time < from {
                return Ok(transfers);
            }
            if newest.is_some_and(|newest| number > newest) {
                return Err(NodeError::Unreadable("a history that does not go back".to_owned()));
            }
            newest = Some(number - 1);
        }
        Err(NodeError::Unreadable(format!("more than {MAX_HISTORY_PAGES} pages of history")))
    }

    async fn read_accounts(&self, names: Vec<AccountName>) -> Result<Vec<Account>, NodeError> {
        let names: Vec<_> = names.iter().map(AccountName::as_str).collect();
        let result = self.call("condenser_api.get_accounts", json!([names])).await?;
        let found: Vec<AccountJson<'_>> = read(result.get().as_bytes())?;
        found.into_iter().map(AccountJson::read).collect()
    }
}

impl Node for HiveRpc {
    fn name(&self) -> &str {
        &self.name
    }

    fn identity(&self) -> Answer<'_, Identity> {
        Box::pin(async {
            let result = self.call("database_api.get_version", json!({})).await?;
            let version: Version = read(result.get().as_bytes())?;
            let chain_id = ChainId::parse(&version.chain_id)
                .ok_or_else(|| NodeError::Unreadable("`chain_id` is not a chain id".to_owned()))?;
            let says_development = |text: &str| text.contains(DEVELOPMENT_VERSION);
            let is_development = [&version.blockchain_version, &version.hive_revision, &version.node_type]
                .into_iter()
                .any(|text| says_development(text));
            Ok(Identity { chain_id, version: version.blockchain_version, is_development })
        })
    }

    fn head(&self) -> Answer<'_, Head> {
        Box::pin(async {
            let result = self.call("database_api.get_dynamic_global_properties", json!({})).await?;
            block::parse_head(result.get()).map_err(unreadable)
        })
    }

    fn blocks(&self, from: u32, count: u32) -> Answer<'_, Vec<Block>> {
        Box::pin(async move {
            let params = json!({"starting_block_num": from, "count": count});
            let result = self.call("block_api.get_block_range", params).await?;
            block::parse_block_range(result.get()).map_err(unreadable)
        })
    }

    fn virtual_operations(&self, block_num: u32) -> Answer<'_, Option<VirtualOperations>> {
        Box::pin(async move {
            let params = json!({"block_num": block_num, "only_virtual": true, "include_reversible": false});
            let result = self.call("account_history_api.get_ops_in_block", params).await?;
            block::parse_virtual_operations(result.get()).map_err(unreadable)
        })
    }

    fn history(&self, account: AccountName, span: (Timestamp, Timestamp)) -> Answer<'_, Vec<Transfer>> {
        Box::pin(self.read_history(account, span))
    }

    fn accounts(&self, names: Vec<AccountName>) -> Answer<'_, Vec<Account>> {
        Box::pin(self.read_accounts(names))
    }

    fn find_transaction(&self, tx_id: TxId, expiration: Timestamp) -> Answer<'_, TxStatus> {
        Box::pin(async move {
            let params = json!({"transaction_id": tx_id.to_string(), "expiration": expiration.to_ledger()});
            let result = self.call("transaction_status_api.find_transaction", params).await?;
            let found: Found = read(result.get().as_bytes())?;
            let block = || {
                found
                    .block_num
                    .ok_or_else(|| NodeError::Unreadable("a transaction in a block without number".to_owned()))
            };
            Ok(match found.status.as_str() {
                "unknown" => TxStatus::Unknown,
                "within_mempool" => TxStatus::InMempool,
                "within_reversible_block" => TxStatus::InReversibleBlock(block()?),
                "within_irreversible_block" => TxStatus::InIrreversibleBlock(block()?),
                "expired_reversible" => TxStatus::ExpiredReversible,
                "expired_irreversible" => TxStatus::ExpiredIrreversible,
                "too_old" => TxStatus::TooOld,
                other => return Err(NodeError::Unreadable(format!("the status {other:?} of a transaction"))),
            })
        })
    }

    fn broadcast(&self, signed_json: String) -> Answer<'_, ()> {
        Box::pin(async move {
            let trx = RawValue::from_string(signed_json).map_err(unreadable)?;
            self.call("network_broadcast_api.broadcast_transaction", Broadcast { trx }).await.map(drop)
        })
    }

    fn price(&self) -> Answer<'_, Option<HivePrice>> {
        Box::pin(async {
            // The market median: the chain raises the other one if there is too much HBD.
            let result = self.call("condenser_api.get_feed_history", json!([])).await?;
            let feed: Feed = read(result.get().as_bytes())?;
            feed.market_median_history.read()
        })
    }

    fn hbd_price(&self) -> Answer<'_, Option<HbdPrice>> {
        Box::pin(async {
            let feed = self.call("condenser_api.get_feed_history", json!([])).await?;
            let book = self.call("condenser_api.get_order_book", json!([1])).await?;
            read_hbd_price(feed.get(), book.get())
        })
    }
}

/// Reads the price of HBD from the witnesses' feed and the order book. The last entry of the feed is the median of the
/// last hour: the median of all entries follows the price of HIVE days later.
fn read_hbd_price(feed: &str, book: &str) -> Result<Option<HbdPrice>, NodeError> {
    let feed: Feed = read(feed.as_bytes())?;
    let book: OrderBook = read(book.as_bytes())?;
    let newest = feed.price_history.last().unwrap_or(&feed.market_median_history);
    let (Some(bid), Some(ask)) = (book.bids.first(), book.asks.first()) else { return Ok(None) };
    Ok(match (newest.read()?, bid.order_price.read()?, ask.order_price.read()?) {
        (Some(usd), Some(bid), Some(ask)) => HbdPrice::of_market(usd, bid, ask),
        _ => None,
    })
}

/// Returns why an HTTP response is not a JSON-RPC response, if it is not.
fn refused_by(status: StatusCode, headers: &HeaderMap) -> Option<NodeError> {
    let retry_after = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()).and_then(|text| {
        let seconds = text.trim().parse().ok().map(Duration::from_secs);
        // A date is relative to the node's own clock, which its `Date` shows.
        seconds.or_else(|| Some(http_date(text)?.since(http_date(headers.get(DATE)?.to_str().ok()?)?)))
    });
    match status {
        StatusCode::TOO_MANY_REQUESTS => Some(NodeError::RateLimited { retry_after }),
        StatusCode::SERVICE_UNAVAILABLE if retry_after.is_some() => Some(NodeError::RateLimited { retry_after }),
        status if status.is_success() => None,
        status => Some(NodeError::Http(status.as_u16())),
    }
}

/// Parses a date of HTTP headers, `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, 5.6.7).
#[must_use]
pub fn http_date(text: &str) -> Option<Timestamp> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let mut parts = text.split_once(", ")?.1.split(' ');
    let day = parts.next()?;
    let month = parts.next()?;
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    let (year, time) = (parts.next()?, parts.next()?);
    Timestamp::parse(&format!("{year}-{month:02}-{day}T{time}Z"))
}

fn unreadable(error: impl fmt::Display) -> NodeError {
    NodeError::Unreadable(error.to_string())
}

fn read<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, NodeError> {
    serde_json::from_slice(json).map_err(unreadable)
}

#[derive(Serialize)]
struct Call<'a, P> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    params: P,
}

#[derive(Serialize)]
struct Broadcast {
    trx: Box<RawValue>,
}

#[derive(Deserialize)]
struct Envelope {
    /// `None` if a node could not read the request.
    id: Option<u64>,
    result: Option<Box<RawValue>>,
    error: Option<RpcError>,
}

#[derive(Deserialize)]
struct RpcError {
    code: i64,
    message: String,
    data: Option<RpcErrorData>,
}

#[derive(Deserialize)]
struct RpcErrorData {
    code: Option<i64>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct Version {
    #[serde(default)]
    blockchain_version: String,
    #[serde(default)]
    hive_revision: String,
    #[serde(default)]
    node_type: String,
    chain_id: String,
}

#[derive(Deserialize)]
struct AccountJson<'a> {
    name: String,
    #[serde(borrow)]
    active: &'a RawValue,
    balance: String,
    hbd_balance: String,
}

impl AccountJson<'_> {
    fn read(self) -> Result<Account, NodeError> {
        let name = AccountName::parse(&self.name).map_err(unreadable)?;
        let active = Authority::parse(self.active.get().as_bytes()).map_err(unreadable)?;
        let balance = |text: &str| Money::parse_ledger(text).map_err(unreadable);
        Ok(Account { name, active, balances: [balance(&self.balance)?, balance(&self.hbd_balance)?] })
    }
}

#[derive(Deserialize)]
struct Found {
    status: String,
    block_num: Option<u32>,
}

#[derive(Deserialize)]
struct Feed {
    market_median_history: Price,
    /// Hourly medians, the newest last.
    #[serde(default)]
    price_history: Vec<Price>,
}

/// The internal market's best offers.
#[derive(Deserialize)]
struct OrderBook {
    bids: Vec<Order>,
    asks: Vec<Order>,
}

#[derive(Deserialize)]
struct Order {
    order_price: Price,
}

#[derive(Deserialize)]
struct Price {
    base: String,
    quote: String,
}

impl Price {
    /// Returns the price in HBD per HIVE, in either direction: the base of an ask is HIVE. `None` if a side is 0.
    fn read(&self) -> Result<Option<HivePrice>, NodeError> {
        let money = |text: &str| Money::parse_ledger(text).ok();
        match (money(&self.base), money(&self.quote)) {
            (Some(hbd), Some(hive)) | (Some(hive), Some(hbd))
                if (hbd.currency, hive.currency) == (Currency::Hbd, Currency::Hive) =>
            {
                Ok(HivePrice::new(hbd.units, hive.units))
            }
            _ => Err(NodeError::Unreadable("a price that is not HBD for HIVE".to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    /// Responds to one request with these bytes; returns what a broadcast returns to its caller.
    async fn broadcast_to(answer: &'static str) -> Result<(), NodeError> {
        // The binary does the same at its start; another test may have done it already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let node = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = [0; 4096];
            let _ = stream.read(&mut asked).await.unwrap();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", answer.len());
            stream.write_all([head.as_bytes(), answer.as_bytes()].concat().as_slice()).await.unwrap();
        });
        let told = HiveRpc::new(&url, Duration::from_secs(5)).unwrap().broadcast("{}".to_owned()).await;
        node.await.unwrap();
        told
    }

    #[test]
    fn the_price_of_hbd_is_read_off_the_newest_feed_and_the_order_book() {
        let feed = |last: &str| {
            format!(
                r#"{{"id":0,"current_median_history":{{"base":"0.300 HBD","quote":"1.000 HIVE"}},
                "market_median_history":{{"base":"0.300 HBD","quote":"1.000 HIVE"}},
                "price_history":[{{"base":"0.310 HBD","quote":"1.000 HIVE"}},{{"base":"{last}","quote":"1.000 HIVE"}}]}}"#
            )
        };
        let order = |base: &str, quote: &str| {
            format!(
                r#"{{"order_price":{{"base":"{base}","quote":"{quote}"}},"real_price":"0.25","hive":1,"hbd":1,
                "created":"2026-11-20T14:00:00"}}"#
            )
        };
        let (bid, ask) = (order("2.480 HBD", "10.000 HIVE"), order("5.000 HIVE", "1.260 HBD"));
        let book = format!(r#"{{"bids":[{bid}],"asks":[{ask}]}}"#);
        let read = |feed: String, book: &str| read_hbd_price(&feed, book).map(|price| price.map(HbdPrice::micro_usd));
        assert_eq!(read(feed("0.250 HBD"), &book), Ok(Some(1_000_000)), "0.250 USD is 0.250 HBD");
        assert_eq!(read(feed("0.200 HBD"), &book), Ok(Some(800_000)), "0.200 USD is 0.250 HBD");
        for thin in [r#"{"bids":[],"asks":[]}"#.to_owned(), format!(r#"{{"bids":[{bid}],"asks":[]}}"#)] {
            assert_eq!(read(feed("0.250 HBD"), &thin), Ok(None), "no market, no price");
        }
        assert_eq!(read(feed("0.000 HBD"), &book), Ok(None), "no feed, no price");
        let foreign = format!(r#"{{"bids":[{}],"asks":[{ask}]}}"#, order("2.480 HBD", "10.000 HBD"));
        assert!(matches!(read(feed("0.250 HBD"), &foreign), Err(NodeError::Unreadable(_))));
    }

    #[tokio::test]
    async fn only_the_answer_to_the_question_itself_is_believed() {
        assert_eq!(broadcast_to(r#"{"jsonrpc":"2.0","result":{},"id":1}"#).await, Ok(()));
        for other in [r#"{"jsonrpc":"2.0","result":{},"id":4711}"#, r#"{"jsonrpc":"2.0","result":{},"id":null}"#] {
            assert!(matches!(broadcast_to(other).await, Err(NodeError::Unreadable(_))), "{other}");
        }
        let refused = r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null}"#;
        assert!(matches!(broadcast_to(refused).await, Err(NodeError::Rpc { .. })));
    }
}
