// The journeys of a shop with the TypeScript SDK, as a strict project that installed its pack. Prints the name of each
// journey that it has finished. journey.py has the same journeys.

import assert from 'node:assert/strict';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';

import {
  ApiError,
  AuthenticationError,
  ConflictError,
  ConnectionError,
  Hivetill,
  HivetillError,
  NotFoundError,
  PermissionError,
  SignatureError,
  ValidationError,
  WaitTimeoutError,
  verifyWebhook,
  type Created,
  type CreatePayment,
  type Event,
  type Payment,
  type Retry,
  type X402Request,
} from 'hivetill';
import { paymentsExport } from 'hivetill/core';

function setting(name: string): string {
  const value = process.env[name];
  assert.ok(value, `${name} is not set`);
  return value;
}

const baseUrl = setting('HIVETILL_API');
const apiKey = setting('HIVETILL_API_KEY');
const merchantId = setting('HIVETILL_MERCHANT');
const account = setting('HIVETILL_ACCOUNT');
const hivetill = new Hivetill({ baseUrl, apiKey });
const order: CreatePayment = { amount: '1500', currency: 'HBD', description: 'A blue mug' };

/** Transfers play money to the shop. */
async function transfer(memo: string): Promise<void> {
  const params = { from: 'alice', to: account, amount: '1.500 HBD', memo };
  const call = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'control.transfer', params });
  const response = await fetch(setting('HIVETILL_CONTROL'), { method: 'POST', body: call });
  assert.ok(response.ok);
}

/** Returns what `look` finds; looks again until it finds something. */
async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  for (const deadline = Date.now() + 60_000; Date.now() < deadline; await wait(100)) {
    const found = await look();
    if (found !== undefined) return found;
  }
  throw new Error(`no ${what}`);
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

async function aPaymentIsCreatedPaidAndWaitedFor(): Promise<void> {
  const created: Created = await hivetill.payments.create({ ...order, metadata: { orderId: 'A-1', sizes: ['S', 'M'] } });
  assert.equal(created.status, 'pending');
  assert.equal(created.amount.formatted, '1.500 HBD');
  await assert.rejects(
    hivetill.payments.waitFor(created.id, { timeoutMs: 0 }),
    (error: unknown) => error instanceof WaitTimeoutError && error.status === 'pending',
  );
  await transfer(`pos-${created.id}`);
  const paid: Payment = await hivetill.payments.waitFor(created.id);
  assert.equal(paid.status, 'completed');
  assert.deepEqual(paid.metadata, { orderId: 'A-1', sizes: ['S', 'M'] });
  assert.equal((await hivetill.payments.status(created.id)).status, 'completed');
  const transfers = await collect(hivetill.payments.transfers(created.id));
  assert.deepEqual(transfers.map((each) => each.from), ['alice']);
}

async function aCreationWhoseResponseIsLostCreatesOnePayment(): Promise<void> {
  const ids: string[] = [];
  const keys = new Set<string | null>();
  const retries: Retry[] = [];
  const lossy: typeof fetch = async (input, init) => {
    assert.ok(input instanceof Request);
    keys.add(input.headers.get('idempotency-key'));
    const response = await fetch(input, init);
    ids.push(((await response.clone().json()) as Created).id);
    if (ids.length === 1) throw new TypeError('the connection was reset');
    return response;
  };
  const unlucky = new Hivetill({ baseUrl, apiKey, fetch: lossy, onRetry: (retry) => retries.push(retry) });
  const created = await unlucky.payments.create({ ...order, description: 'Lost' });
  assert.deepEqual(ids, [created.id, created.id]);
  assert.equal(keys.size, 1);
  assert.deepEqual(retries.map(({ attempt, status, method }) => ({ attempt, status, method })), [
    { attempt: 1, status: undefined, method: 'POST' },
  ]);
  const again = await hivetill.payments.create(order, { idempotencyKey: 'A-2-attempt-1' });
  const repeated = await hivetill.payments.create(order, { idempotencyKey: 'A-2-attempt-1' });
  assert.equal(repeated.id, again.id);
  await assert.rejects(
    hivetill.payments.create({ ...order, amount: '1' }, { idempotencyKey: 'A-2-attempt-1' }),
    (error: unknown) => error instanceof ValidationError && error.reason === 'idempotency_key_reused',
  );
}

async function aRateLimitIsWaitedFor(): Promise<void> {
  let count = 0;
  const retries: Retry[] = [];
  const limited: typeof fetch = async (input, init) => {
    count += 1;
    const headers = { 'retry-after': '1' };
    return count === 1 ? Response.json({ reason: 'rate_limited' }, { status: 429, headers }) : fetch(input, init);
  };
  const client = new Hivetill({ baseUrl, apiKey, fetch: limited, onRetry: (retry) => retries.push(retry) });
  assert.equal((await client.merchants.me()).id, merchantId);
  assert.deepEqual(retries.map(({ delayMs, status }) => [delayMs, status]), [[1_000, 429]]);
  const closed = new Hivetill({
    baseUrl,
    apiKey,
    fetch: async () => Response.json({ reason: 'rate_limited' }, { status: 429, headers: { 'retry-after': '3600' } }),
  });
  await assert.rejects(
    closed.merchants.me(),
    (error: unknown) => error instanceof ApiError && error.retryAfterSeconds === 3_600,
  );
}

async function aRequestThatIsNotSafeToRepeatIsNotRepeated(): Promise<void> {
  let count = 0;
  const broken: typeof fetch = async () => {
    count += 1;
    throw new TypeError('the connection was reset');
  };
  const client = new Hivetill({ baseUrl, apiKey, fetch: broken });
  const key = client.apiKeys.create(merchantId, { scopes: ['payments:read'] });
  await assert.rejects(key, (error: unknown) => error instanceof ConnectionError && !error.message.includes(apiKey));
  assert.equal(count, 1);
}

async function listsAreReadPageAfterPage(): Promise<void> {
  const made: string[] = [];
  for (let number = 0; number < 5; number += 1) {
    made.unshift((await hivetill.payments.create({ ...order, description: 'Listed' })).id);
  }
  const listed = await collect(hivetill.payments.listAll({ limit: 2, query: 'Listed', status: 'pending' }));
  assert.deepEqual(listed.map((each) => each.id), made);
  const page = await hivetill.payments.list({ limit: 2, page: 1 });
  assert.equal(page.data.length, 2);
  assert.equal(page.pagination.limit, 2);
  const { data } = await paymentsExport({ client: hivetill.core, query: { format: 'json' }, parseAs: 'json' });
  assert.ok(Array.isArray(data) && data.length >= 5);
}

async function aRefusalNamesTheField(): Promise<void> {
  await assert.rejects(hivetill.payments.create({ ...order, amount: '0' }), (error: unknown) => {
    assert.ok(error instanceof ValidationError && error instanceof HivetillError);
    assert.equal(error.status, 400);
    assert.equal(error.reason, 'validation_failed');
    assert.equal(error.field, 'amount');
    assert.match(error.message, /amount/);
    assert.match(error.requestId, /^req_/);
    return true;
  });
  await assert.rejects(hivetill.payments.get('pay_00000000000000000000000000'), NotFoundError);
  const foreign = new Hivetill({ baseUrl, apiKey: `sk_live_${'0'.repeat(48)}` });
  await assert.rejects(foreign.merchants.me(), AuthenticationError);
  await assert.rejects(hivetill.merchants.get('mer_00000000000000000000000000'), PermissionError);
  assert.throws(() => new Hivetill({ baseUrl, apiKey: 'sk_live_\n' }), HivetillError);
  assert.throws(() => new Hivetill({ baseUrl: 'ftp://gateway' }), HivetillError);
}

async function aWebhookIsVerifiedInBothFamilies(): Promise<void> {
  const hooks: { headers: IncomingHttpHeaders; body: Uint8Array }[] = [];
  const server = createServer(async (request, response) => {
    const parts: Uint8Array[] = [];
    for await (const part of request) parts.push(part as Uint8Array);
    hooks.push({ headers: request.headers, body: Buffer.concat(parts) });
    response.end();
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const webhookUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  await hivetill.merchants.update(merchantId, { webhookUrl });
  const old = setting('HIVETILL_WEBHOOK_SECRET');
  const { webhookSecret } = await hivetill.merchants.rotateWebhookSecret(merchantId, { graceHours: 1 });
  const sent = await hivetill.webhookEndpoints.test(merchantId);
  const hook = await until('webhook', async () => hooks[0]);
  server.close();
  const of = (prefix: string): Record<string, string> =>
    Object.fromEntries(
      Object.entries(hook.headers).flatMap(([name, value]) =>
        name.startsWith(prefix) && typeof value === 'string' ? [[name, value]] : [],
      ),
    );
  const families = [of('x-hivetill-'), of('webhook-')];
  for (const headers of families) {
    for (const secret of [webhookSecret, old, ['whsec_AAAA', old]]) {
      const event: Event = await verifyWebhook(hook.body, headers, secret);
      assert.equal(event.id, sent.eventId);
      assert.equal(event.type, 'payment.status_changed');
    }
    const is = (problem: string) => (error: unknown) => error instanceof SignatureError && error.problem === problem;
    const { body } = hook;
    await assert.rejects(verifyWebhook(`${new TextDecoder().decode(body)} `, headers, old), is('no_match'));
    await assert.rejects(verifyWebhook(body, headers, 'whsec_AAAA'), is('no_match'));
    const late = { now: new Date(Date.now() + 301_000) };
    await assert.rejects(verifyWebhook(body, headers, old, late), is('timestamp_out_of_tolerance'));
    const early = { now: new Date(Date.now() - 60_000), toleranceSeconds: 10 };
    await assert.rejects(verifyWebhook(body, headers, old, early), is('timestamp_out_of_tolerance'));
    await verifyWebhook(body, new Headers(headers), old, { now: new Date(Date.now() + 200_000) });
    await assert.rejects(verifyWebhook(body, {}, old), is('no_signature'));
  }
  await assert.rejects(verifyWebhook(hook.body, families[0] ?? {}, 'secret'), HivetillError);
  const delivered = await until('delivery', async () => {
    const log = await collect(hivetill.webhookEndpoints.deliveries(merchantId, { eventId: sent.eventId }));
    return log.find((each) => each.status === 'delivered');
  });
  assert.equal((await hivetill.webhookEndpoints.delivery(merchantId, delivered.id)).attemptLog.length, 1);
  assert.equal((await hivetill.webhookEndpoints.get(merchantId)).url, webhookUrl);
  await hivetill.merchants.update(merchantId, { webhookUrl: null });
}

async function aStreamResumesWithoutAGap(): Promise<void> {
  // Its connections break after some 2,000 bytes.
  const flaky = new Hivetill({ baseUrl: setting('HIVETILL_FLAKY_API'), apiKey });
  const { nextCursor: start } = await hivetill.events.list({ limit: 100 });
  const ids = new Set<string>();
  for (let number = 0; number < 6; number += 1) ids.add((await hivetill.payments.create(order)).id);
  for (const id of ids) await hivetill.payments.cancel(id);
  const seen: string[] = [];
  let cursor = start;
  let disconnects = 0;
  const read = async (after: string, enough: number): Promise<void> => {
    for await (const followed of flaky.events.follow({ after, onDisconnect: () => (disconnects += 1) })) {
      seen.push(followed.event.id);
      cursor = followed.cursor;
      if (seen.length >= enough) break;
    }
  };
  await read(start, 4);
  await read(cursor, ids.size);
  const list = await hivetill.events.list({ after: start, limit: 100 });
  assert.deepEqual(seen, list.events.map((event) => event.id));
  assert.equal(new Set(seen).size, ids.size);
  assert.ok(disconnects > 0, 'no connection broke');
  const first = seen[0];
  assert.ok(first);
  const event = await hivetill.events.get(first);
  assert.ok(event.type === 'payment.status_changed' && event.data.status === 'user_cancelled');
  const abort = AbortSignal.timeout(50);
  await assert.rejects(collect(hivetill.events.follow({ signal: abort })), { name: 'TimeoutError' });
  const foreign = new Hivetill({ baseUrl, apiKey: `sk_live_${'0'.repeat(48)}` });
  await assert.rejects(collect(foreign.events.follow()), AuthenticationError);
}

async function anUnmatchedTransferIsAssigned(): Promise<void> {
  const { id } = await hivetill.payments.create(order);
  await transfer('by ts');
  const transferred = await until('unmatched transfer', async () => {
    const all = await collect(hivetill.unmatched.listAll({ status: 'open' }));
    return all.find((each) => each.memo === 'by ts');
  });
  assert.equal((await hivetill.unmatched.get(transferred.id)).from, 'alice');
  assert.ok((await hivetill.unmatched.candidates(transferred.id)).some((each) => each.payment.id === id));
  const assigned = await hivetill.unmatched.assign(transferred.id, id);
  assert.deepEqual(assigned.exceptions, ['manual']);
  assert.equal((await hivetill.payments.waitFor(id)).status, 'completed');
  await assert.rejects(hivetill.payments.cancel(id), ConflictError);
  const refund = await hivetill.payments.prepareRefund(id, { amount: '500', to: 'alice' });
  assert.equal(refund.memo, `refund-${id}`);
  const resolved = await hivetill.payments.resolve(id, { kind: 'accepted', note: 'assigned by hand' });
  assert.equal(resolved.needsAttention, false);
}

async function keysAndTheRecordOfAMerchantAreManaged(): Promise<void> {
  const updated = await hivetill.merchants.update(merchantId, { name: 'The mugs' });
  assert.equal(updated.name, 'The mugs');
  const { apiKey: reading, key } = await hivetill.apiKeys.create(merchantId, { scopes: ['payments:read'], name: 'reports' });
  const reader = new Hivetill({ baseUrl, apiKey: reading });
  assert.equal((await reader.merchants.me()).id, merchantId);
  await assert.rejects(
    reader.payments.create(order),
    (error: unknown) => error instanceof PermissionError && error.reason === 'insufficient_scope',
  );
  assert.ok((await hivetill.apiKeys.list(merchantId)).some((each) => each.id === key.id));
  assert.ok((await hivetill.apiKeys.revoke(merchantId, key.id)).every((each) => each.id !== key.id));
  await assert.rejects(reader.merchants.me(), AuthenticationError);
  assert.equal(typeof (await hivetill.payments.feeRate()).feePercent, 'number');
  assert.ok((await hivetill.payments.volume(7)).days.length === 7);
  assert.equal((await hivetill.merchants.billing()).merchantId, merchantId);
}

async function aSignedPaymentIsVerifiedAndSettled(): Promise<void> {
  const open = new Hivetill({ baseUrl });
  assert.ok((await open.x402.supported()).kinds.some((kind) => kind.scheme === 'exact'));
  assert.equal((await open.x402.health()).status, 'ok');
  const payment = JSON.parse(setting('HIVETILL_X402')) as X402Request;
  const empty = await open.x402.verify({ paymentPayload: {}, sessionId: String(payment.sessionId) });
  assert.equal(empty.isValid, false);
  assert.deepEqual(await open.x402.verify(payment), { isValid: true, payer: 'alice' });
  const settled = await hivetill.x402.settle(payment);
  assert.equal(settled.success, true, JSON.stringify(settled));
  assert.equal((await hivetill.payments.waitFor(String(payment.sessionId))).internalId, settled.txId);
  assert.deepEqual(await hivetill.x402.settle(payment), { ...settled, replayed: true });
  assert.deepEqual(await collect(hivetill.x402.sales()), []);
}

const journeys = [
  aSignedPaymentIsVerifiedAndSettled,
  aPaymentIsCreatedPaidAndWaitedFor,
  aCreationWhoseResponseIsLostCreatesOnePayment,
  aRateLimitIsWaitedFor,
  aRequestThatIsNotSafeToRepeatIsNotRepeated,
  listsAreReadPageAfterPage,
  aRefusalNamesTheField,
  aWebhookIsVerifiedInBothFamilies,
  aStreamResumesWithoutAGap,
  anUnmatchedTransferIsAssigned,
  keysAndTheRecordOfAMerchantAreManaged,
];
for (const journey of journeys) {
  await journey();
  console.log(journey.name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
}
