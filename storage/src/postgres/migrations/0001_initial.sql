-- The tables of Hivetill. The column `record` is authoritative: the whole record in Protocol Buffers. The other columns are
-- projections for indexes, for administrators and for reports; never change one without the other.
-- Ids are UUIDs that begin with the time of their creation. Amounts are in smallest units (thousandths).

CREATE TABLE merchants (
    id uuid PRIMARY KEY,
    version bigint NOT NULL,
    name text NOT NULL,
    account text COLLATE "C" NOT NULL,
    is_active boolean NOT NULL,
    is_account_proven boolean NOT NULL,
    account_change_due_at timestamptz,
    created_at timestamptz NOT NULL,
    record bytea NOT NULL
);
CREATE INDEX merchants_account ON merchants (account, id);
CREATE INDEX merchants_account_change ON merchants (account_change_due_at, id) WHERE account_change_due_at IS NOT NULL;

-- The merchants of API keys, by the SHA-256 of the key.
CREATE TABLE api_keys (
    digest bytea PRIMARY KEY,
    merchant_id uuid NOT NULL
);

-- Hive accounts whose transfers are watched. The version counts the merchants that came and went.
CREATE TABLE accounts (
    name text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    -- Its place in the order in which accounts were watched for the first time.
    number bigint NOT NULL,
    watched_since timestamptz NOT NULL,
    unwatch_at timestamptz
);
CREATE UNIQUE INDEX accounts_number ON accounts (number);
CREATE INDEX accounts_unwatch ON accounts (name) WHERE unwatch_at IS NOT NULL;

CREATE TABLE payments (
    id uuid PRIMARY KEY,
    merchant_id uuid NOT NULL,
    version bigint NOT NULL,
    state text NOT NULL,
    -- State, currency and attention as one number: what lists filter by.
    facet smallint NOT NULL,
    needs_attention boolean NOT NULL,
    is_invoice boolean NOT NULL,
    slug uuid NOT NULL,
    amount_units bigint NOT NULL,
    currency text NOT NULL,
    usd_cents bigint NOT NULL,
    pay_to text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    completed_at timestamptz,
    -- When it expires or its cancellation is decided, while it is pending.
    deadline timestamptz,
    -- Whether it waits for a block.
    in_flight boolean NOT NULL,
    record bytea NOT NULL
);
CREATE UNIQUE INDEX payments_slug ON payments (slug);
CREATE INDEX payments_list ON payments (merchant_id, facet, id);
CREATE INDEX payments_deadline ON payments (deadline, id) WHERE deadline IS NOT NULL;
CREATE INDEX payments_in_flight ON payments (id) WHERE in_flight;

CREATE TABLE transfers (
    payment_id uuid NOT NULL,
    tx_id bytea NOT NULL,
    op_in_tx bigint NOT NULL,
    -- Its place in the order in which they became known.
    seq bigint NOT NULL,
    merchant_id uuid NOT NULL,
    sender text COLLATE "C" NOT NULL,
    receiver text COLLATE "C" NOT NULL,
    amount_units bigint NOT NULL,
    currency text NOT NULL,
    block_num bigint,
    is_final boolean NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (payment_id, tx_id, op_in_tx)
);
CREATE UNIQUE INDEX transfers_order ON transfers (payment_id, seq);

-- Sums for quotas: open payments, bytes of payment records, idempotency keys. Each engine adds to the rows of its own slot.
CREATE TABLE merchant_usage (
    merchant_id uuid NOT NULL,
    slot smallint NOT NULL,
    open_payments bigint NOT NULL,
    stored_bytes bigint NOT NULL,
    idempotency_keys bigint NOT NULL,
    PRIMARY KEY (merchant_id, slot)
) WITH (fillfactor = 50);

-- Sums of the payments that a merchant's customers made on a day (whole days of UTC since 1970).
CREATE TABLE payment_days (
    merchant_id uuid NOT NULL,
    day integer NOT NULL,
    facet smallint NOT NULL,
    is_invoice boolean NOT NULL,
    slot smallint NOT NULL,
    payments bigint NOT NULL,
    amount_units bigint NOT NULL,
    usd_cents bigint NOT NULL,
    PRIMARY KEY (merchant_id, day, facet, is_invoice, slot)
) WITH (fillfactor = 50);

-- The times to completion of the payments of a day: counts by bucket.
CREATE TABLE payment_waits (
    merchant_id uuid NOT NULL,
    day integer NOT NULL,
    bucket integer NOT NULL,
    slot smallint NOT NULL,
    payments bigint NOT NULL,
    PRIMARY KEY (merchant_id, day, bucket, slot)
) WITH (fillfactor = 50);

-- Words by which payments are found.
CREATE TABLE payment_words (
    merchant_id uuid NOT NULL,
    word text COLLATE "C" NOT NULL,
    payment_id uuid NOT NULL,
    PRIMARY KEY (merchant_id, word, payment_id)
);

CREATE TABLE idempotency (
    merchant_id uuid NOT NULL,
    key bytea NOT NULL,
    -- When it was made: milliseconds since 1970.
    made_ms bigint NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (merchant_id, key)
);
CREATE INDEX idempotency_made ON idempotency (made_ms, merchant_id, key);

CREATE TABLE events (
    merchant_id uuid NOT NULL,
    seq bigint NOT NULL,
    id uuid NOT NULL,
    payment_id uuid NOT NULL,
    kind text NOT NULL,
    happened_at timestamptz NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (merchant_id, seq)
);
CREATE UNIQUE INDEX events_id ON events (id);
CREATE INDEX events_happened ON events (happened_at, id);

-- The end of each merchant's list of events, which has no gaps.
CREATE TABLE event_lists (
    merchant_id uuid PRIMARY KEY,
    last_seq bigint NOT NULL,
    epoch bigint NOT NULL,
    last_before_epoch bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE deliveries (
    merchant_id uuid NOT NULL,
    id uuid NOT NULL,
    version bigint NOT NULL,
    -- The id of the merchant where it is the merchant's default endpoint.
    endpoint_id uuid NOT NULL,
    event_id uuid NOT NULL,
    event_seq bigint NOT NULL,
    payment_id uuid NOT NULL,
    trigger text NOT NULL,
    state text NOT NULL,
    attempts bigint NOT NULL,
    -- When the next attempt is due; none while it does not wait for one.
    due_at timestamptz,
    record bytea NOT NULL,
    PRIMARY KEY (merchant_id, id)
);
CREATE INDEX deliveries_queue ON deliveries (endpoint_id, due_at, event_seq, id) WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_due ON deliveries (due_at, event_id, id) WHERE due_at IS NOT NULL;
CREATE INDEX deliveries_payment ON deliveries (payment_id, event_seq, id);
CREATE INDEX deliveries_event ON deliveries (event_id, id);
CREATE INDEX deliveries_undelivered ON deliveries (merchant_id, state, id) WHERE state <> 'delivered';

-- When the first delivery to each endpoint is due, or earlier.
CREATE TABLE outbox_heads (
    endpoint_id uuid PRIMARY KEY,
    merchant_id uuid NOT NULL,
    -- The bucket of the endpoint: which duty delivers its webhooks.
    bucket smallint NOT NULL,
    version bigint NOT NULL,
    due_at timestamptz NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX outbox_heads_due ON outbox_heads (due_at, endpoint_id);

CREATE TABLE attempts (
    event_id uuid NOT NULL,
    delivery_id uuid NOT NULL,
    number bigint NOT NULL,
    merchant_id uuid NOT NULL,
    outcome text NOT NULL,
    started_at timestamptz NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (event_id, delivery_id, number)
);

CREATE TABLE endpoints (
    id uuid PRIMARY KEY,
    version bigint NOT NULL,
    is_disabled boolean NOT NULL,
    record bytea NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE claims (
    tx_id bytea PRIMARY KEY,
    version bigint NOT NULL,
    pay_to text COLLATE "C" NOT NULL,
    payment_id uuid,
    outcome text NOT NULL,
    -- Whether it is for another server and its outcome is open.
    is_open_facilitation boolean NOT NULL,
    claimed_at timestamptz NOT NULL,
    record bytea NOT NULL
);
CREATE INDEX claims_open ON claims (tx_id) WHERE is_open_facilitation;

-- SHA-256 of payee and nonce, or of payee and payment identifier.
CREATE TABLE claim_names (
    digest bytea PRIMARY KEY,
    tx_id bytea NOT NULL
);

-- The use of a transaction: a claim and the assignment of one of its transfers exclude each other.
CREATE TABLE transaction_uses (
    tx_id bytea PRIMARY KEY,
    version bigint NOT NULL,
    assigned_payment_id uuid
);

CREATE TABLE unmatched_transfers (
    account text COLLATE "C" NOT NULL,
    block_num bigint NOT NULL,
    tx_in_block bigint NOT NULL,
    op_in_tx bigint NOT NULL,
    version bigint NOT NULL,
    tx_id bytea NOT NULL,
    sender text COLLATE "C" NOT NULL,
    amount_units bigint NOT NULL,
    currency text NOT NULL,
    reason text NOT NULL,
    handling text NOT NULL,
    -- The unknown payment that it names, until it is handled.
    waits_for_payment_id uuid,
    record bytea NOT NULL,
    PRIMARY KEY (account, block_num, tx_in_block, op_in_tx)
);
CREATE INDEX unmatched_transfers_waiting
    ON unmatched_transfers (waits_for_payment_id, account, block_num, tx_in_block, op_in_tx)
    WHERE waits_for_payment_id IS NOT NULL;

CREATE TABLE ledger_entries (
    account text COLLATE "C" NOT NULL,
    block_time timestamptz NOT NULL,
    tx_id bytea NOT NULL,
    op_in_tx bigint NOT NULL,
    kind smallint NOT NULL,
    -- All zeros where it belongs to no payment.
    payment_id uuid NOT NULL,
    amount_units bigint NOT NULL,
    currency text NOT NULL,
    PRIMARY KEY (account, block_time, tx_id, op_in_tx, kind, payment_id)
);

CREATE TABLE reconciled_days (
    begins_at timestamptz PRIMARY KEY,
    version bigint NOT NULL,
    record bytea NOT NULL
);

CREATE TABLE compliance_statuses (
    merchant_id uuid PRIMARY KEY,
    version bigint NOT NULL,
    is_on_hold boolean NOT NULL,
    record bytea NOT NULL
) WITH (fillfactor = 50);

-- Months of merchants; a month is its number since the year 0.
CREATE TABLE billing_periods (
    month integer NOT NULL,
    merchant_id uuid NOT NULL,
    version bigint NOT NULL,
    is_unsettled boolean NOT NULL,
    volume_cents bigint NOT NULL,
    payments bigint NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (month, merchant_id)
) WITH (fillfactor = 50);
CREATE INDEX billing_periods_merchant ON billing_periods (merchant_id, month);
CREATE INDEX billing_periods_unsettled ON billing_periods (month, merchant_id) WHERE is_unsettled;

-- The months whose invoices are paid by these payments.
CREATE TABLE invoice_payments (
    payment_id uuid PRIMARY KEY,
    month integer NOT NULL,
    merchant_id uuid NOT NULL
);

CREATE TABLE audit_log (
    seq bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    merchant_id uuid NOT NULL,
    -- The merchant that acted, if it is another one.
    actor_id uuid,
    action text NOT NULL,
    happened_at timestamptz NOT NULL,
    record bytea NOT NULL
);
CREATE INDEX audit_log_merchant ON audit_log (merchant_id, seq);
CREATE INDEX audit_log_actor ON audit_log (actor_id, seq) WHERE actor_id IS NOT NULL;

-- Single values: the cursor, the price, fee tiers, epochs, notes.
CREATE TABLE single_values (
    name text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    value bytea NOT NULL
) WITH (fillfactor = 50);

-- Engines that have a lease, by the clock of the database.
CREATE TABLE engines (
    id bigint PRIMARY KEY,
    version bigint NOT NULL,
    since timestamptz NOT NULL,
    until timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Work that one engine at a time does. The term counts the changes of the holder.
CREATE TABLE duties (
    name text COLLATE "C" PRIMARY KEY,
    term bigint NOT NULL,
    -- The engine that took it last; none once it was released.
    holder bigint
) WITH (fillfactor = 50);

-- One row for each commit and for each batch with an id. A commit of unknown outcome is resolved by writing its id as abandoned: that waits for a commit
-- that still runs and forbids one that never happened.
CREATE TABLE commits (
    id uuid PRIMARY KEY,
    committed_at timestamptz NOT NULL DEFAULT now(),
    is_abandoned boolean NOT NULL DEFAULT false,
    -- Payments that it created and whose words are not indexed yet.
    unindexed_payments uuid[]
);
CREATE INDEX commits_unindexed ON commits (id) WHERE unindexed_payments IS NOT NULL;
CREATE INDEX commits_committed ON commits (committed_at) WHERE unindexed_payments IS NULL;

-- Identifies the database: every connection of an engine must find the same id.
INSERT INTO single_values (name, version, value) VALUES ('installation', 1, decode(replace(gen_random_uuid()::text, '-', ''), 'hex'));
