//! Every setting there is: its name, type, default, range and meaning. Parsing, `hivetill config` and
//! `docs/reference/settings.md` are all made from this one table.

use super::Kind;

/// A setting.
#[derive(Debug)]
pub struct Key {
    /// Its dotted name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// What it holds when nobody says.
    pub default: &'static str,
    /// What it does.
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
        Kind::Word(&["mainnet", "dev"]),
        "mainnet",
        "Which kind of ledger is followed. `mainnet` refuses development ledgers, `dev` refuses all others and its payments say `livemode: false`.",
    ),
    key(
        "chain_id",
        Kind::ChainId,
        "beeab0de00000000000000000000000000000000000000000000000000000000",
        "The chain's id. A node of another chain is refused, and so is a data directory of another chain.",
    ),
    key("data_dir", Kind::Path, "hivetill-data", "Where the database is kept, readable by its owner only."),
    key(
        "listen",
        Kind::Listen,
        "127.0.0.1:8080",
        "Where the REST interface and the checkout page listen. Port 0 takes a free one.",
    ),
    key(
        "base_url",
        Kind::OptionalUrl,
        "",
        "The address under which customers and merchants reach us, as it stands in checkout links. Empty: `http://` and the listening address.",
    ),
    key(
        "engine_url",
        Kind::OptionalUrl,
        "",
        "Where `facade` and `admin` find the engine's gRPC port, such as `http://127.0.0.1:8081`.",
    ),
    key(
        "grpc.listen",
        Kind::OptionalListen,
        "",
        "Where the engine's gRPC port listens. Empty: `serve` opens none, `engine` takes 127.0.0.1:8081.",
    ),
    key(
        "grpc.token",
        Kind::Token,
        "",
        "The operator's token: a gRPC call that brings it may do everything. `facade`, `admin` and `doctor` show it to the engine. Empty: one is made and kept in `grpc-token` in the data directory.",
    ),
    key(
        "grpc.previous_token",
        Kind::Token,
        "",
        "A second operator's token, valid beside `grpc.token` while callers change to that.",
    ),
    key(
        "grpc.service_token",
        Kind::Token,
        "",
        "The token of services: it opens every gRPC call but those of the operator, which get `PERMISSION_DENIED`. Empty: there is none.",
    ),
    key(
        "grpc.previous_service_token",
        Kind::Token,
        "",
        "A second token of services, valid beside `grpc.service_token`.",
    ),
    key(
        "grpc.connections",
        Kind::Integer(2, 1_000_000),
        "1000",
        "Connections of the gRPC port at once; more wait. One IP address or one IPv6 /64 has at most half of them; more are closed.",
    ),
    key("grpc.tls_cert", Kind::Path, "", "A certificate chain in PEM for the gRPC port. Empty: no TLS."),
    key("grpc.tls_key", Kind::Path, "", "The certificate's private key in PEM."),
    key(
        "grpc.tls_client_ca",
        Kind::Path,
        "",
        "The authority in PEM that must have signed the certificate of every client of the gRPC port. Empty: clients need none.",
    ),
    key(
        "grpc.tls_client_cert",
        Kind::Path,
        "",
        "The certificate chain in PEM that `facade` and commands show to an engine with `grpc.tls_client_ca`.",
    ),
    key("grpc.tls_client_key", Kind::Path, "", "That certificate's private key in PEM."),
    key(
        "grpc.tls_ca",
        Kind::Path,
        "",
        "The authority in PEM that signed the engine's certificate; needed for an `engine_url` with https.",
    ),
    key(
        "master_key",
        Kind::Secret,
        "",
        "64 hex characters that webhook secrets are encrypted with in the store. Empty: the key in `master_key_file`.",
    ),
    key(
        "master_key_file",
        Kind::Path,
        "",
        "A file that holds such a key and nothing else; keep a copy of it apart from backups of the data. Empty, and no `master_key`: `master-key` in the data directory, made on the first start. `hivetill rotate-master-key` changes it.",
    ),
    key(
        "seal_secrets",
        Kind::Flag,
        "true",
        "Whether a master key is made on the first start where none is set. `false`: webhook secrets are stored in clear, and are in every backup.",
    ),
    key(
        "keys.roll",
        Kind::Flag,
        "false",
        "Whether merchants may roll their own API keys. Otherwise an admin re-issues them.",
    ),
    key(
        "registration",
        Kind::Word(&["open", "approval", "closed"]),
        "open",
        "Who may register as a merchant: `open` everybody; `approval` everybody, inactive until an admin activates the merchant; `closed` nobody but by `hivetill admin`.",
    ),
    key(
        "merchants.account_change_hours",
        Kind::Integer(0, 168),
        "24",
        "How long a change of a proven Hive account waits at least, so that its owner can cancel it.",
    ),
    key(
        "ledger.nodes",
        Kind::Urls,
        MAINNET_NODES,
        "The ledger's nodes (Hive JSON-RPC). Name at least three, of different operators: a majority decides. All are asked for heads, accounts and transactions; blocks are read from the healthiest, in this order.",
    ),
    key(
        "ledger.min_agreeing_nodes",
        Kind::Integer(0, 10),
        "0",
        "How many nodes must agree at least on whatever decides money. A majority of `ledger.nodes` always must (1 of 1, 2 of 2, 2 of 3, 3 of 4, 3 of 5): this can only raise it.",
    ),
    key(
        "ledger.block_interval_ms",
        Kind::Integer(20, 60_000),
        "3000",
        "The ledger's time from one block to the next. Other than 3 s only on a development ledger.",
    ),
    key(
        "ledger.poll_interval_ms",
        Kind::Integer(20, 60_000),
        "1000",
        "How often the nodes are asked for their newest block.",
    ),
    key("ledger.request_timeout_ms", Kind::Integer(100, 120_000), "5000", "How long one request to a node may take."),
    key(
        "ledger.rate_interval_seconds",
        Kind::Integer(1, 86_400),
        "600",
        "How often the witnesses' price of HIVE and the internal market's price of HBD are read.",
    ),
    key(
        "ledger.hbd_peg_percent",
        Kind::Integer(1, 50),
        "5",
        "How far the price of HBD may be off its peg of one US dollar, in percent. Within these bounds HBD counts as one dollar. The price is the witnesses' newest hourly price of HIVE in dollars, divided by the middle of the internal market's best bid and ask.",
    ),
    key(
        "ledger.hbd_off_peg",
        Kind::Word(&["market", "refuse"]),
        "market",
        "What happens outside these bounds: `market` values new payments in HBD by the price of the market; `refuse` refuses them (503 `hbd_off_peg`) until the price is back. Payments in HIVE and payments that exist do not change.",
    ),
    key(
        "session.lifetime_seconds",
        Kind::Integer(60, 86_400),
        "1800",
        "How long a payment session lives where its creator does not say.",
    ),
    key(
        "session.grace_seconds",
        Kind::Integer(0, 120),
        "0",
        "How much later than a session's expiry the block of its transfer may be.",
    ),
    key(
        "session.max_awake",
        Kind::Integer(1, 10_000_000),
        "5000",
        "Open sessions held in memory; the rest are parked and come back when needed.",
    ),
    key(
        "fees.percent",
        Kind::Percent,
        "0",
        "The service's fee in percent, with up to 4 places; fixed in each payment at its creation.",
    ),
    key(
        "fees.mode",
        Kind::Word(&["invoice", "split"]),
        "invoice",
        "How the fee is taken: billed to the merchant, or as a second transfer to `fees.account`.",
    ),
    key("fees.account", Kind::Account, "", "The ledger account that collects fees when `fees.mode` is `split`."),
    key(
        "billing.merchant_id",
        Kind::Merchant,
        "",
        "The merchant that monthly invoices are paid to: it owns their payments, and is not billed itself. Empty: usage is counted and nobody is billed.",
    ),
    key("billing.due_days", Kind::Integer(1, 365), "14", "Days after which an invoice that is not paid is overdue."),
    key(
        "x402.max_expiration_seconds",
        Kind::Integer(30, 86_400),
        "3600",
        "How far ahead the expiration of an agent's transaction may be: as long as that, its outcome may stay open.",
    ),
    key(
        "x402.finality",
        Kind::Word(&["accepted", "in_block", "irreversible"]),
        "in_block",
        "What completes an agent's payment: that a node took the transaction, that it is in a block, or that the block cannot change any more. Below `irreversible` a completed payment can lose its transaction (`settlement_reversed`).",
    ),
    key(
        "x402.irreversible_from_cents",
        Kind::Integer(0, 1_000_000_000_000),
        "100000",
        "From this worth on, in US cents, an agent's payment completes only on a block that cannot change any more. 0: always.",
    ),
    key(
        "x402.only_registered",
        Kind::Flag,
        "false",
        "Whether payments for other servers (`paymentRequirements`) are taken only to accounts of merchants registered here.",
    ),
    key(
        "webhooks.header_prefix",
        Kind::HeaderPrefix,
        "X-Hivetill",
        "What the names of our webhook headers start with.",
    ),
    key(
        "webhooks.allow_insecure",
        Kind::Flag,
        "false",
        "Whether webhooks may go to plain http, and to this machine itself.",
    ),
    key(
        "webhooks.allowed_networks",
        Kind::Networks,
        "",
        "Private or reserved networks that webhooks may go to all the same. Public addresses are always allowed.",
    ),
    key(
        "webhooks.timeout_ms",
        Kind::Integer(100, 30_000),
        "10000",
        "How long one attempt to deliver a webhook may take.",
    ),
    key(
        "events.retention_days",
        Kind::Integer(30, 3_650),
        "60",
        "How long events, the bodies of webhooks and what receivers answered to them are kept, in days. The log of deliveries keeps the rest.",
    ),
    key(
        "retention.metadata_days",
        Kind::Integer(0, 3_650),
        "0",
        "Days after its last change that the metadata of a payment is kept, once it has ended. The engine looks once a day; the audit log records each deletion. 0 keeps it until the merchant deletes it.",
    ),
    key(
        "retention.notes_days",
        Kind::Integer(0, 3_650),
        "0",
        "Days that the note of a decision about a payment is kept. 0 keeps it until the merchant deletes it.",
    ),
    key("limits.connections", Kind::Integer(1, 1_000_000), "10000", "HTTP connections at once; more wait."),
    key(
        "limits.connections_per_address",
        Kind::Integer(1, 1_000_000),
        "500",
        "HTTP connections from one IP address or one IPv6 /64, and never more than half of `limits.connections`; more are refused with 429. `trusted_proxies` have no such limit, and `limits.profile` `off` turns it off.",
    ),
    key(
        "limits.head_timeout_ms",
        Kind::Integer(100, 120_000),
        "10000",
        "How long a request's head may take to arrive, from its first byte or from the connection's beginning.",
    ),
    key(
        "limits.body_timeout_ms",
        Kind::Integer(100, 120_000),
        "10000",
        "How long a request's body may take to arrive.",
    ),
    key(
        "limits.write_timeout_ms",
        Kind::Integer(100, 600_000),
        "30000",
        "How long a client may take nothing of its answer before the connection is reset. Every 1,024 bytes that it takes earn it one second, up to this time.",
    ),
    key(
        "limits.idle_timeout_ms",
        Kind::Integer(100, 3_600_000),
        "75000",
        "How long a connection is kept open for another request.",
    ),
    key(
        "limits.drain_timeout_ms",
        Kind::Integer(0, 120_000),
        "10000",
        "How long running requests may take to end when we stop.",
    ),
    key(
        "limits.waiting_calls",
        Kind::Integer(1, 1_000_000),
        "4096",
        "Changes that may wait in the engine at once; more are turned away with 503.",
    ),
    key(
        "trusted_proxies",
        Kind::Networks,
        "",
        "Proxies before us whose `X-Forwarded-For` is believed: the rightmost address in it that is none of them is the caller's.",
    ),
    key(
        "cors.key_origins",
        Kind::Origins,
        "",
        "Origins whose web pages may send API keys. Empty: none, since a page that holds a key shows it to its visitors.",
    ),
    key(
        "limits.profile",
        Kind::Word(&["production", "off"]),
        "production",
        "Whether the rates and counts below hold, compliance among them. `dev` starts with `off`; `dev --limits production` turns them on.",
    ),
    key(
        "limits.api_writes",
        Kind::Rate,
        "25/s burst 50",
        "Changes by one merchant, with all its API keys together. Here and below: empty is no limit.",
    ),
    key("limits.api_reads", Kind::Rate, "100/s burst 200", "Reads by one merchant."),
    key("limits.export", Kind::Rate, "6/min", "Exports by one merchant."),
    key("limits.webhook_test", Kind::Rate, "5/min", "Test webhooks requested by one merchant."),
    key("limits.redeliver", Kind::Rate, "60/min", "Deliveries sent once more for one merchant."),
    key(
        "limits.anonymous",
        Kind::Rate,
        "20/s burst 200",
        "Requests from one IP address without an API key that worked lately, such as reads of `/openapi.json`. Health checks do not count, and what has a rate of its own below counts there.",
    ),
    key("limits.register", Kind::Rate, "2/min", "Registrations from one address. An IPv6 address counts as its /64."),
    key("limits.register_daily", Kind::Rate, "20/day", "The same over a day."),
    key("limits.checkout", Kind::Rate, "60/min burst 30", "Requests for checkout addresses from one address."),
    key(
        "limits.x402",
        Kind::Rate,
        "60/min",
        "Payments shown from one address, at checkout addresses or the facilitator. Sellers that send their API key count as merchants instead.",
    ),
    key(
        "limits.x402_session",
        Kind::Rate,
        "10/min",
        "Payments that one address shows for one session. A payment that is refused for its form, amount, recipient or memo, or has no signature, does not count.",
    ),
    key(
        "limits.bad_keys",
        Kind::Rate,
        "10/min",
        "Wrong API keys from one address; after them the address is locked out: only keys that worked within the last day are accepted from it.",
    ),
    key("limits.lockout_seconds", Kind::Integer(1, 86_400), "600", "How long an address stays locked out."),
    key("limits.streams_per_address", Kind::Integer(1, 1_000_000), "10", "Event streams open to one address at once."),
    key("limits.streams", Kind::Integer(1, 1_000_000), "2000", "Event streams open at once."),
    key("limits.open_payments", Kind::Integer(0, 1_000_000_000), "100000", "Open payments of one merchant at once."),
    key(
        "limits.stored_bytes",
        Kind::Integer(0, 1_000_000_000_000_000),
        "10000000000",
        "Bytes that the records of one merchant's payments may take, ended ones too: about 500 each, more with metadata. Here and above: creation beyond it is refused with 429 `stored_bytes_reached` or `too_many_open_payments`; 0 is no limit.",
    ),
    key(
        "limits.idempotency_keys",
        Kind::Integer(1, 100_000_000),
        "1000000",
        "Idempotency keys kept of one merchant, each for 24 hours; a request with a further one is refused with 429 `too_many_idempotency_keys`. A key takes at most 200 bytes, whatever its length: a million take 200 MB. The limit also holds where `limits.profile` is `off`.",
    ),
    key(
        "limits.compliance_single_cents",
        Kind::Integer(0, 1_000_000_000_000),
        "1000000",
        "Worth of one payment, in US cents, above which creation is refused and the merchant put on hold until an admin clears it. Here and below: 0 is no limit.",
    ),
    key(
        "limits.compliance_daily_cents",
        Kind::Integer(0, 1_000_000_000_000),
        "2500000",
        "The same for what completed within 24 hours together with the request.",
    ),
    key("limits.compliance_monthly_cents", Kind::Integer(0, 1_000_000_000_000), "10000000", "The same for 30 days."),
    key(
        "limits.compliance_soft_single_cents",
        Kind::Integer(0, 1_000_000_000_000),
        "100000",
        "Worth of one payment, in US cents, from which it is noted for admins and nothing else happens.",
    ),
    key(
        "limits.compliance_soft_daily_cents",
        Kind::Integer(0, 1_000_000_000_000),
        "2000000",
        "The same for what completed within 24 hours together with the request.",
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
        "Whom a merchant on hold is told to contact.",
    ),
    key("store.cache_bytes", Kind::Integer(1_048_576, 68_719_476_736), "67108864", "Memory for pages of the database."),
    key(
        "store.queue",
        Kind::Integer(1, 1_000_000),
        "10000",
        "Commits that may wait for the disk; more are turned away with 503.",
    ),
    key(
        "metrics.listen",
        Kind::OptionalListen,
        "",
        "Where Prometheus reads metrics (`GET /metrics`), apart from everything else: whoever reaches it may read them. Empty: nowhere.",
    ),
    key(
        "health.listen",
        Kind::OptionalListen,
        "",
        "Where `/livez`, `/readyz` and `/api/health` are served besides, for orchestrators: no crowd at `listen` keeps them waiting there. Empty: only at `listen`.",
    ),
    key("log.format", Kind::Word(&["text", "json"]), "text", "How log lines are written."),
    key(
        "otlp.endpoint",
        Kind::OptionalUrl,
        "",
        "Where spans are sent (OpenTelemetry, gRPC), such as `http://127.0.0.1:4317`. Only a build with the feature `otlp` sends any; another refuses to start with it.",
    ),
    key("log.level", Kind::Word(&["error", "warn", "info", "debug", "trace"]), "info", "What is logged."),
];

/// Finds a setting.
#[must_use]
pub fn find(name: &str) -> Option<&'static Key> {
    TABLE.iter().find(|key| key.name == name)
}

impl Key {
    /// Returns the variable that sets it: `HIVETILL_LEDGER_NODES`.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("HIVETILL_{}", self.name.replace('.', "_").to_uppercase())
    }

    /// Checks a text for this setting.
    ///
    /// # Errors
    /// What it must be, as the end of a sentence that starts with the setting.
    pub fn check(&self, text: &str) -> Result<(), String> {
        self.kind.check(text)
    }
}

/// Writes `docs/reference/settings.md`.
#[must_use]
pub fn reference() -> String {
    let mut page = String::from(
        "# Settings\n\n\
         Generated from the code by `hivetill config --reference`; a test compares them.\n\n\
         Later sources override earlier ones: the defaults below, a TOML file (`--config FILE`), environment variables, flags\n\
         (`--set key=value`, and the flags of each command). A key that does not exist is refused, in every source.\n\
         In the TOML file the part before the dot is a table: `[ledger]`, then `nodes = [\"https://…\"]`.\n\
         `hivetill config` shows what is in force and where it comes from, without secrets.\n\n\
         `hivetill dev` starts from other defaults: `network` is `dev`, `fees.percent` is 1.5, webhooks may be plain\n\
         http, and nodes, addresses and the data directory are its own.\n\n\
         | key | type | range | default | environment variable | what it does |\n|---|---|---|---|---|---|\n",
    );
    for key in TABLE {
        let (kind, range) = key.kind.in_words();
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
