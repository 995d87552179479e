//! The table of settings: name, type, default, range and meaning. Parsing, `hivetill config` and
//! `docs/reference/settings.md` follow from it.

use super::kind::Kind;

/// A setting.
#[derive(Debug)]
pub struct Key {
    /// The dotted name.
    pub name: &'static str,
    /// The type and range.
    pub kind: Kind,
    /// The default value.
    pub default: &'static str,
    /// The description in the reference.
    pub doc: &'static str,
}

const fn key(name: &'static str, kind: Kind, default: &'static str, doc: &'static str) -> Key {
    Key { name, kind, default, doc }
}

/// The public nodes of the main chain.
const MAINNET_NODES: &str = "https://api.hive.blog,https://api.openhive.network,https://api.deathwing.me";

/// Every setting, in the order they are documented.
pub static TABLE: &[Key] = &[
    key(
        "network",
        Kind::Enum(&["mainnet", "dev"]),
        "mainnet",
        "The kind of ledger. `mainnet` refuses development ledgers; `dev` refuses all others, and its payments have `livemode: false`.",
    ),
    key(
        "chain_id",
        Kind::ChainId,
        "beeab0de00000000000000000000000000000000000000000000000000000000",
        "The chain id. The engine refuses nodes and data directories of another chain.",
    ),
    key(
        "data_dir",
        Kind::Path,
        "hivetill-data",
        "The data directory, which holds the database. Only its owner can read it.",
    ),
    key(
        "listen",
        Kind::Listen,
        "127.0.0.1:8080",
        "The IP address and port of the REST API and the checkout page. Port 0 takes a free port.",
    ),
    key(
        "base_url",
        Kind::OptionalUrl,
        "",
        "The public URL of this service, used in checkout links. Empty: `http://` and the listening address.",
    ),
    key(
        "engine_url",
        Kind::OptionalUrls,
        "",
        "The URL of the engine's gRPC port for `facade` and `admin`, such as `http://127.0.0.1:8081`; or the URLs of several engines that share a store and accept the same `grpc.token`. Calls are balanced over the engines that are ready, and repeated at another engine where that is safe.",
    ),
    key(
        "grpc.listen",
        Kind::OptionalListen,
        "",
        "The IP address and port of the engine's gRPC server. Empty: `serve` opens none, `engine` uses 127.0.0.1:8081.",
    ),
    key(
        "grpc.token",
        Kind::Token,
        "",
        "The operator's token. A gRPC call with this token may use every method. `facade`, `admin` and `doctor` send it to the engine. Empty: the engine generates one and stores it in `grpc-token` in the data directory.",
    ),
    key(
        "grpc.previous_token",
        Kind::Token,
        "",
        "A second operator's token, also valid, so that callers can change to a new `grpc.token` one by one.",
    ),
    key(
        "grpc.service_token",
        Kind::Token,
        "",
        "The token for services. It permits every gRPC method except those for operators, which return `PERMISSION_DENIED`. Empty: no such token.",
    ),
    key("grpc.previous_service_token", Kind::Token, "", "A second token for services, also valid."),
    key(
        "grpc.connections",
        Kind::Integer(2, 1_000_000),
        "1000",
        "Maximum concurrent gRPC connections; further ones wait. One IP address (or IPv6 /64) may hold at most half of them; the server closes further ones.",
    ),
    key("grpc.tls_cert", Kind::Path, "", "The certificate chain (PEM) of the gRPC port. Empty: no TLS."),
    key("grpc.tls_key", Kind::Path, "", "The private key (PEM) of `grpc.tls_cert`."),
    key(
        "grpc.tls_client_ca",
        Kind::Path,
        "",
        "The certificate authority (PEM) that must have signed the certificate of every gRPC client. Empty: clients need no certificate.",
    ),
    key(
        "grpc.tls_client_cert",
        Kind::Path,
        "",
        "The client certificate chain (PEM) that `facade` and commands send to an engine with `grpc.tls_client_ca`.",
    ),
    key("grpc.tls_client_key", Kind::Path, "", "The private key (PEM) of `grpc.tls_client_cert`."),
    key(
        "grpc.tls_ca",
        Kind::Path,
        "",
        "The certificate authority (PEM) that signed the engine's certificate. Required if a URL of `engine_url` is https.",
    ),
    key(
        "master_key",
        Kind::Secret,
        "",
        "The key that encrypts webhook secrets in the store, as 64 hex characters. Empty: the key in `master_key_file`.",
    ),
    key(
        "master_key_file",
        Kind::Path,
        "",
        "A file that contains only the master key. Keep a copy of it, separate from backups of the data. If this and `master_key` are empty: `master-key` in the data directory, generated at the first start. `hivetill rotate-master-key` changes it.",
    ),
    key(
        "encrypt_secrets",
        Kind::Flag,
        "true",
        "Whether the first start generates a master key if none is set. `false`: webhook secrets are stored unencrypted, also in every backup.",
    ),
    key(
        "keys.roll",
        Kind::Flag,
        "false",
        "Whether merchants may roll their own API keys. If not, an admin reissues them.",
    ),
    key(
        "registration",
        Kind::Enum(&["open", "approval", "closed"]),
        "open",
        "Who may register as a merchant. `open`: anyone. `approval`: anyone, but the merchant is inactive until an admin activates it. `closed`: only the operator, with `hivetill admin`.",
    ),
    key(
        "merchants.account_change_hours",
        Kind::Integer(0, 168),
        "24",
        "Minimum delay before a change of a proven Hive account takes effect, so that its owner can cancel it.",
    ),
    key(
        "ledger.nodes",
        Kind::Urls,
        MAINNET_NODES,
        "The Hive nodes (JSON-RPC). Configure at least three, of different operators: a majority decides. The engine requests head blocks, accounts and transactions from all of them, and blocks from the healthiest, in this order.",
    ),
    key(
        "ledger.min_agreeing_nodes",
        Kind::Integer(0, 10),
        "0",
        "Minimum number of nodes that must agree on every fact that affects money. It can only raise the number that is always required, a majority of `ledger.nodes` (1 of 1, 2 of 2, 2 of 3, 3 of 4, 3 of 5).",
    ),
    key(
        "ledger.block_interval_ms",
        Kind::Integer(20, 60_000),
        "3000",
        "The time between two blocks. Only development ledgers use another value than 3000.",
    ),
    key(
        "ledger.poll_interval_ms",
        Kind::Integer(20, 60_000),
        "1000",
        "Interval between polls of the nodes for their head block.",
    ),
    key("ledger.request_timeout_ms", Kind::Integer(100, 120_000), "5000", "Timeout of one request to a node."),
    key(
        "ledger.rate_interval_seconds",
        Kind::Integer(1, 86_400),
        "600",
        "Interval between reads of the witnesses' price of HIVE and the internal market's price of HBD.",
    ),
    key(
        "ledger.hbd_peg_percent",
        Kind::Integer(1, 50),
        "5",
        "Maximum deviation of HBD from its peg of one US dollar, in percent. Within it, HBD is valued at one dollar. The price is the witnesses' latest hourly price of HIVE in dollars, divided by the midpoint of the internal market's best bid and ask.",
    ),
    key(
        "ledger.hbd_off_peg",
        Kind::Enum(&["market", "refuse"]),
        "market",
        "What happens when HBD deviates further. `market`: new payments in HBD use the market price. `refuse`: they are refused (503 `hbd_off_peg`) until the price returns. Payments in HIVE and existing payments do not change.",
    ),
    key(
        "session.lifetime_seconds",
        Kind::Integer(60, 86_400),
        "1800",
        "Lifetime of a payment session if the request sets none.",
    ),
    key(
        "session.grace_seconds",
        Kind::Integer(0, 120),
        "0",
        "Grace period: how long after a session's expiry the block of its transfer may be.",
    ),
    key(
        "session.max_active",
        Kind::Integer(1, 10_000_000),
        "5000",
        "Maximum active sessions (held in memory). The others are passivated, and reactivated when needed.",
    ),
    key(
        "fees.percent",
        Kind::Percent,
        "0",
        "The service fee in percent, with up to 4 decimals. Each payment keeps the fee of its creation.",
    ),
    key(
        "fees.mode",
        Kind::Enum(&["invoice", "split"]),
        "invoice",
        "How the fee is collected. `invoice`: the merchant is billed. `split`: a second transfer pays it to `fees.account`.",
    ),
    key("fees.account", Kind::Account, "", "The Hive account that receives fees if `fees.mode` is `split`."),
    key(
        "billing.merchant_id",
        Kind::Merchant,
        "",
        "The merchant that receives the payments of monthly invoices. It is not billed itself. Empty: usage is counted, but no merchant is billed.",
    ),
    key("billing.due_days", Kind::Integer(1, 365), "14", "Days after which an unpaid invoice is overdue."),
    key(
        "x402.max_expiration_seconds",
        Kind::Integer(30, 86_400),
        "3600",
        "Maximum time until the expiration of an agent's transaction. The outcome of a payment can stay unknown for this long.",
    ),
    key(
        "x402.finality",
        Kind::Enum(&["accepted", "in_block", "irreversible"]),
        "in_block",
        "When an agent's payment completes: a node accepted the transaction, it is in a block, or that block is irreversible. With `accepted` or `in_block`, a completed payment can lose its transaction (`settlement_reversed`).",
    ),
    key(
        "x402.irreversible_from_cents",
        Kind::Integer(0, 1_000_000_000_000),
        "100000",
        "From this value on, in US cents, an agent's payment completes only in an irreversible block. 0: always.",
    ),
    key(
        "x402.only_registered",
        Kind::Flag,
        "false",
        "Whether payments for other servers (`paymentRequirements`) may pay only accounts of merchants registered here.",
    ),
    key("webhooks.header_prefix", Kind::HeaderPrefix, "X-Hivetill", "Prefix of the names of webhook headers."),
    key(
        "webhooks.allow_insecure",
        Kind::Flag,
        "false",
        "Whether webhook URLs may use plain http and point to this host.",
    ),
    key(
        "webhooks.allowed_networks",
        Kind::Networks,
        "",
        "Private or reserved networks that webhooks may be sent to. Public IP addresses are always allowed.",
    ),
    key("webhooks.timeout_ms", Kind::Integer(100, 30_000), "10000", "Timeout of one attempt to deliver a webhook."),
    key(
        "events.retention_days",
        Kind::Integer(30, 3_650),
        "60",
        "Days to keep events, webhook bodies and the responses of receivers. Other data of deliveries is kept.",
    ),
    key(
        "retention.metadata_days",
        Kind::Integer(0, 3_650),
        "0",
        "Days to keep the metadata of a payment in a final state, from its last change. The engine deletes once a day; the audit log records each deletion. 0: until the merchant deletes it.",
    ),
    key(
        "retention.notes_days",
        Kind::Integer(0, 3_650),
        "0",
        "Days to keep the note of a decision about a payment. 0: until the merchant deletes it.",
    ),
    key(
        "limits.connections",
        Kind::Integer(1, 1_000_000),
        "10000",
        "Maximum concurrent HTTP connections; further ones wait.",
    ),
    key(
        "limits.connections_per_ip",
        Kind::Integer(1, 1_000_000),
        "500",
        "Maximum concurrent HTTP connections from one IP address (or IPv6 /64), at most half of `limits.connections`. Further ones are refused with 429. The limit does not apply to `trusted_proxies`, nor if `limits.profile` is `off`.",
    ),
    key(
        "limits.head_timeout_ms",
        Kind::Integer(100, 120_000),
        "10000",
        "Timeout for the head of a request, from its first byte or from the start of the connection.",
    ),
    key("limits.body_timeout_ms", Kind::Integer(100, 120_000), "10000", "Timeout for the body of a request."),
    key(
        "limits.write_timeout_ms",
        Kind::Integer(100, 600_000),
        "30000",
        "Timeout of a client that does not read its response; then the connection is reset. Every 1,024 bytes read extend the time by one second, up to this value.",
    ),
    key(
        "limits.idle_timeout_ms",
        Kind::Integer(100, 3_600_000),
        "75000",
        "How long an idle connection stays open for another request.",
    ),
    key(
        "limits.drain_timeout_ms",
        Kind::Integer(0, 120_000),
        "10000",
        "How long a shutdown waits for running requests.",
    ),
    key(
        "limits.waiting_calls",
        Kind::Integer(1, 1_000_000),
        "4096",
        "Maximum writes queued in the engine. Further ones are refused with 503.",
    ),
    key(
        "trusted_proxies",
        Kind::Networks,
        "",
        "Reverse proxies whose `X-Forwarded-For` is trusted. The caller's IP address is the rightmost one in it that is not a trusted proxy.",
    ),
    key(
        "cors.key_origins",
        Kind::Origins,
        "",
        "Origins whose web pages may send API keys (CORS). Empty: none, because a page that contains a key reveals it to its visitors.",
    ),
    key(
        "limits.profile",
        Kind::Enum(&["production", "off"]),
        "production",
        "Whether the limits below apply, including the compliance limits. `hivetill dev` starts with `off`; `dev --limits production` turns them on.",
    ),
    key(
        "limits.api_writes",
        Kind::Rate,
        "25/s burst 50",
        "Write requests of one merchant, for all its API keys together. Here and below, empty means no limit.",
    ),
    key("limits.api_reads", Kind::Rate, "100/s burst 200", "Read requests of one merchant."),
    key("limits.export", Kind::Rate, "6/min", "Exports of one merchant."),
    key("limits.webhook_test", Kind::Rate, "5/min", "Test webhooks of one merchant."),
    key("limits.redeliver", Kind::Rate, "60/min", "Redeliveries of one merchant."),
    key(
        "limits.anonymous",
        Kind::Rate,
        "20/s burst 200",
        "Requests from one IP address without an API key that was recently valid, such as reads of `/openapi.json`. Health checks do not count. Requests with a limit of their own below count only there.",
    ),
    key("limits.register", Kind::Rate, "2/min", "Registrations from one IP address. IPv6 addresses count by /64."),
    key("limits.register_daily", Kind::Rate, "20/day", "Registrations from one IP address a day."),
    key("limits.checkout", Kind::Rate, "60/min burst 30", "Requests for checkout pages from one IP address."),
    key(
        "limits.x402",
        Kind::Rate,
        "60/min",
        "x402 payments sent from one IP address, to checkout URLs or the facilitator. Sellers that send their API key count as merchants instead.",
    ),
    key(
        "limits.x402_session",
        Kind::Rate,
        "10/min",
        "x402 payments sent from one IP address for one session. A payment that has no signature, or is refused for its form, amount, recipient or memo, does not count.",
    ),
    key(
        "limits.bad_keys",
        Kind::Rate,
        "10/min",
        "Invalid API keys from one IP address. Beyond this rate the IP address is locked out: only keys that this facade accepted within the last day are accepted from it. The engine counts over all facades.",
    ),
    key("limits.lockout_seconds", Kind::Integer(1, 86_400), "600", "Duration of a lockout."),
    key(
        "limits.streams_per_ip",
        Kind::Integer(1, 1_000_000),
        "10",
        "Maximum concurrent event streams to one IP address.",
    ),
    key("limits.streams", Kind::Integer(1, 1_000_000), "2000", "Maximum concurrent event streams."),
    key("limits.open_payments", Kind::Integer(0, 1_000_000_000), "100000", "Maximum open payments of one merchant."),
    key(
        "limits.stored_bytes",
        Kind::Integer(0, 1_000_000_000_000_000),
        "10000000000",
        "Maximum bytes of one merchant's payment records, including payments in final states: about 500 each, more with metadata. Beyond this limit and the one above, creation is refused with 429 `stored_bytes_reached` or `too_many_open_payments`. 0 means no limit, here and above.",
    ),
    key(
        "limits.idempotency_keys",
        Kind::Integer(1, 100_000_000),
        "1000000",
        "Maximum idempotency keys of one merchant, each kept for 24 hours. A request with a further one is refused with 429 `too_many_idempotency_keys`. A key takes at most 200 bytes, whatever its length: a million take 200 MB. The limit also applies if `limits.profile` is `off`.",
    ),
    key(
        "limits.compliance_single_cents",
        Kind::Integer(0, 1_000_000_000_000),
        "1000000",
        "Value of one payment, in US cents, above which creation is refused and the merchant is put on hold until an admin clears it. Here and below, 0 means no limit.",
    ),
    key(
        "limits.compliance_daily_cents",
        Kind::Integer(0, 1_000_000_000_000),
        "2500000",
        "The same for the sum of the payments completed within 24 hours and the requested one.",
    ),
    key("limits.compliance_monthly_cents", Kind::Integer(0, 1_000_000_000_000), "10000000", "The same for 30 days."),
    key(
        "limits.compliance_soft_single_cents",
        Kind::Integer(0, 1_000_000_000_000),
        "100000",
        "Value of one payment, in US cents, from which it is flagged for admins. Nothing else happens.",
    ),
    key(
        "limits.compliance_soft_daily_cents",
        Kind::Integer(0, 1_000_000_000_000),
        "2000000",
        "The same for the sum of the payments completed within 24 hours and the requested one.",
    ),
    key(
        "limits.compliance_soft_monthly_cents",
        Kind::Integer(0, 1_000_000_000_000),
        "8000000",
        "The same for 30 days.",
    ),
    key(
        "limits.compliance_contact",
        Kind::Text,
        "the operator of this service",
        "The contact named to a merchant on hold.",
    ),
    key(
        "store.url",
        Kind::Database,
        "",
        "The PostgreSQL database that holds the store, such as `postgres://till@db.example/till`, with parameters such as `sslmode` and `sslrootcert`. Several engines may share it; `hivetill migrate` creates and updates its schema. Empty: an embedded store in `data_dir`.",
    ),
    key(
        "store.allow_asynchronous_standby",
        Kind::Flag,
        "false",
        "Whether `hivetill doctor` accepts a database whose standby is asynchronous. A failover to it loses acknowledged payments.",
    ),
    key("store.cache_bytes", Kind::Integer(1_048_576, 68_719_476_736), "67108864", "Size of the database page cache."),
    key(
        "store.queue",
        Kind::Integer(1, 1_000_000),
        "10000",
        "Maximum commits waiting for the disk. Further ones are refused with 503.",
    ),
    key(
        "store.timeout_ms",
        Kind::Integer(100, 60_000),
        "5000",
        "How long reads and commits are retried, and unknown outcomes of commits resolved, while the store cannot be reached. Then requests are refused with 503.",
    ),
    key(
        "store.lease_seconds",
        Kind::Integer(5, 300),
        "30",
        "How long an engine that shares its store keeps its duties without renewing its lease, at least twice `webhooks.timeout_ms`. When an engine fails, the others take over its duties about a second after this time at the latest. An engine that reaches no ledger node for this time releases the duties that need one. Set the same value for every engine of a store. An engine that does not share its store holds every duty and has no lease.",
    ),
    key(
        "metrics.listen",
        Kind::OptionalListen,
        "",
        "The IP address and port of `GET /metrics` for Prometheus. It needs no key, so let only Prometheus reach it. Empty: no metrics.",
    ),
    key(
        "health.listen",
        Kind::OptionalListen,
        "",
        "An additional IP address and port for `/livez`, `/readyz` and `/api/health`, for orchestrators: load on `listen` does not delay them. Empty: only `listen`.",
    ),
    key("log.format", Kind::Enum(&["text", "json"]), "text", "Format of log lines."),
    key(
        "otlp.endpoint",
        Kind::OptionalUrl,
        "",
        "The OpenTelemetry collector (gRPC) that receives spans, such as `http://127.0.0.1:4317`. Only builds with the feature `otlp` accept this setting; others refuse to start.",
    ),
    key(
        "log.level",
        Kind::Enum(&["error", "warn", "info", "debug", "trace"]),
        "info",
        "Minimum severity of log lines.",
    ),
];

/// Returns the setting with a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Key> {
    TABLE.iter().find(|key| key.name == name)
}

impl Key {
    /// Returns the environment variable of the setting, such as `HIVETILL_LEDGER_NODES`.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("HIVETILL_{}", self.name.replace('.', "_").to_uppercase())
    }

    /// Validates a value of this setting.
    ///
    /// # Errors
    /// The requirement, as the end of a sentence that starts with the name of the setting.
    pub fn check(&self, text: &str) -> Result<(), String> {
        self.kind.check(text)
    }
}

/// Returns the text of `docs/reference/settings.md`.
#[must_use]
pub fn reference() -> String {
    let mut page = String::from(
        "# Settings\n\n\
         Generated from the code by `hivetill config --reference`; a test compares them.\n\n\
         Later sources override earlier ones: the defaults below, a TOML file (`--config FILE`), environment variables, flags\n\
         (`--set key=value`, and the flags of each command). Unknown keys are refused in every source.\n\
         In the TOML file the part before the dot is a table: `[ledger]`, then `nodes = [\"https://…\"]`.\n\
         `hivetill config` shows each value in force and its source, without secrets.\n\n\
         `hivetill dev` has other defaults: `network` is `dev`, `fees.percent` is 1.5, webhooks may use plain http, and it\n\
         sets the nodes, the listening addresses and the data directory itself.\n\n\
         | key | type | range | default | environment variable | description |\n|---|---|---|---|---|---|\n",
    );
    for key in TABLE {
        let (kind, range) = key.kind.documentation();
        let default = match key.default {
            "" => "empty".to_owned(),
            urls if key.kind == Kind::Urls => {
                urls.split(',').map(|url| format!("`{url}`")).collect::<Vec<_>>().join(", ")
            }
            text => format!("`{text}`"),
        };
        let row = format!("| `{}` | {kind} | {range} | {default} | `{}` | {} |\n", key.name, key.variable(), key.doc);
        page.push_str(&row);
    }
    page
}

#[cfg(test)]
mod tests;
