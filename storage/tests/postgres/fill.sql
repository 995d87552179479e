-- Multiplies the rows of a sample to {rows} payments with what belongs to them.
SET synchronous_commit = off;
CREATE TEMPORARY TABLE owners AS
    SELECT number, CASE WHEN number = 0 THEN (SELECT min(id::text)::uuid FROM merchants)
        ELSE (lpad(to_hex(1763647200000 + number), 12, '0') || substr(md5('m' || number), 1, 20))::uuid END AS id
    FROM generate_series(0, 200) AS number;
CREATE TEMPORARY TABLE numbers AS
    SELECT n, (lpad(to_hex(1763647200000 + n * 1000), 12, '0') || substr(md5('p' || n), 1, 20))::uuid AS payment_id,
        (lpad(to_hex(1763647200000 + n * 1000), 12, '0') || substr(md5('e' || n), 1, 20))::uuid AS event_id,
        (lpad(to_hex(1763647200000 + n * 1000), 12, '0') || substr(md5('d' || n), 1, 20))::uuid AS delivery_id,
        decode(md5('t' || n) || substr(md5('u' || n), 1, 8), 'hex') AS tx_id,
        o.id AS merchant_id,
        CASE WHEN n % 50 = 0 THEN 'pending' WHEN n % 1000 = 1 THEN 'in flight' ELSE 'completed' END AS kind
    FROM generate_series(1, {rows}) AS n
    JOIN owners o ON o.number = CASE WHEN n % 2 = 0 THEN 0 ELSE 1 + (n / 2) % 200 END;
INSERT INTO merchants SELECT o.id, m.version, m.name, 'filler.num' || o.number, m.is_active, m.is_account_proven, NULL, m.created_at, m.record
    FROM owners o, (SELECT * FROM merchants ORDER BY id LIMIT 1) AS m WHERE o.number > 0;
INSERT INTO accounts SELECT 'filler.num' || number, 1, 1000 + number, now(), NULL FROM owners WHERE number > 0;
INSERT INTO payments
    (id, merchant_id, version, state, facet, needs_attention, is_invoice, slug, amount_units, currency, usd_cents, pay_to, created_at,
     expires_at, completed_at, deadline, in_flight, record)
    SELECT n.payment_id, n.merchant_id, t.version, t.state, t.facet, t.needs_attention, t.is_invoice, md5('s' || n.n)::uuid,
        t.amount_units + n.n % 1000, t.currency, t.usd_cents, t.pay_to, t.created_at + n.n * interval '1 second',
        t.expires_at + n.n * interval '1 second', t.completed_at + n.n * interval '1 second',
        t.deadline + n.n * interval '1 second', t.in_flight, t.record
    FROM numbers n JOIN (
        (SELECT 'pending' AS kind, * FROM payments WHERE state = 'pending' AND NOT in_flight LIMIT 1) UNION ALL
        (SELECT 'in flight', * FROM payments WHERE in_flight LIMIT 1) UNION ALL
        (SELECT 'completed', * FROM payments WHERE state = 'completed' LIMIT 1)) AS t ON t.kind = n.kind;
INSERT INTO transfers SELECT n.payment_id, n.tx_id, 0, 1, n.merchant_id, t.sender, t.receiver, t.amount_units, t.currency,
        t.block_num, t.is_final, t.record FROM numbers n, (SELECT * FROM transfers LIMIT 1) AS t;
INSERT INTO payment_words SELECT n.merchant_id, w.word, n.payment_id FROM numbers n
    CROSS JOIN LATERAL (VALUES ('common'), ('word' || n.n % 10000), ('t' || md5(n.n::text))) AS w (word);
INSERT INTO payment_days SELECT o.id, d, f, false, 0, 10, 100, 100 FROM owners o, generate_series(20300, 20600) AS d, generate_series(0, 9) AS f
    WHERE o.number < 40 ON CONFLICT DO NOTHING;
INSERT INTO payment_waits SELECT o.id, d, b, 0, 5 FROM owners o, generate_series(20300, 20600) AS d, generate_series(0, 9) AS b
    WHERE o.number < 40 ON CONFLICT DO NOTHING;
INSERT INTO merchant_usage SELECT id, 1, 100, 100000, 10 FROM owners ON CONFLICT DO NOTHING;
INSERT INTO idempotency SELECT n.merchant_id, decode(md5('k' || n.n) || md5('l' || n.n), 'hex'), t.made_ms + n.n * 1000, t.record
    FROM numbers n, (SELECT * FROM idempotency LIMIT 1) AS t;
INSERT INTO events SELECT n.merchant_id, n.n + 1000, n.event_id, n.payment_id, t.kind, t.happened_at + n.n * interval '1 second', t.record
    FROM numbers n, (SELECT * FROM events LIMIT 1) AS t;
INSERT INTO event_lists SELECT o.id, {rows} + 1000, t.epoch, t.last_before_epoch FROM owners o, (SELECT * FROM event_lists LIMIT 1) AS t
    ON CONFLICT (merchant_id) DO UPDATE SET last_seq = excluded.last_seq;
INSERT INTO deliveries SELECT n.merchant_id, n.delivery_id, 1, n.merchant_id, n.event_id, n.n + 1000, n.payment_id, t.trigger,
        CASE WHEN n.n % 100 = 0 THEN 'pending' WHEN n.n % 500 = 1 THEN 'failed' ELSE 'delivered' END, 1,
        CASE WHEN n.n % 100 = 0 THEN '2025-11-20T14:00:00Z'::timestamptz + n.n * interval '1 second' END, t.record
    FROM numbers n, (SELECT * FROM deliveries WHERE state = 'pending' LIMIT 1) AS t;
INSERT INTO outbox_heads SELECT id, id, 7, 1, '2025-11-20T14:00:00Z'::timestamptz + number * interval '1 second' FROM owners
    ON CONFLICT DO NOTHING;
INSERT INTO attempts SELECT n.event_id, n.delivery_id, 1, n.merchant_id, t.outcome, t.started_at, t.record
    FROM numbers n, (SELECT * FROM attempts LIMIT 1) AS t;
INSERT INTO claims SELECT n.tx_id, 1, t.pay_to, n.payment_id, t.outcome, false, t.claimed_at, t.record
    FROM numbers n, (SELECT * FROM claims WHERE payment_id IS NOT NULL LIMIT 1) AS t;
INSERT INTO claim_names SELECT decode(md5('c' || n) || md5('d' || n), 'hex'), tx_id FROM numbers;
INSERT INTO transaction_uses SELECT tx_id, 1, NULL FROM numbers;
INSERT INTO unmatched_transfers SELECT t.account, 100 + n.n, 0, 0, 1, n.tx_id, t.sender, t.amount_units, t.currency, t.reason, t.handling,
        CASE WHEN n.n % 1000 = 0 THEN n.payment_id END, t.record
    FROM numbers n, (SELECT * FROM unmatched_transfers LIMIT 1) AS t;
INSERT INTO ledger_entries SELECT t.account, '2025-11-20T14:00:00Z'::timestamptz + n.n * interval '1 second', n.tx_id, 0, 1, n.payment_id,
        t.amount_units, t.currency FROM numbers n, (SELECT * FROM ledger_entries LIMIT 1) AS t;
INSERT INTO audit_log (merchant_id, action, happened_at, record) SELECT n.merchant_id, t.action, t.happened_at, t.record
    FROM numbers n, (SELECT * FROM audit_log LIMIT 1) AS t;
INSERT INTO commits (id, committed_at) SELECT gen_random_uuid(), now() - interval '1 hour' FROM numbers;
