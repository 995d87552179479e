// A shop's day with the client that @hey-api/openapi-ts generates from /openapi.json: create, get, list, cancel, events,
// and a refusal by its reason. The compiler checks that the types say the same.
//
//   HIVETILL_API=http://127.0.0.1:8080 HIVETILL_API_KEY=sk_live_… node journey.js

import assert from 'node:assert/strict';
import { setTimeout as wait } from 'node:timers/promises';

import { client } from './generated/client.gen.js';
import { eventsList, paymentsCancel, paymentsCreate, paymentsGet, paymentsList } from './generated/sdk.gen.js';
import type { Payment, Reason } from './generated/types.gen.js';

const baseUrl = process.env['HIVETILL_API'];
const auth = process.env['HIVETILL_API_KEY'];
assert.ok(baseUrl && auth, 'HIVETILL_API and HIVETILL_API_KEY are not set');
client.setConfig({ baseUrl, auth });

const order = { amount: '1500', currency: 'HBD', description: 'A blue mug', metadata: { orderId: 'ts-1' } } as const;
const headers = { 'Idempotency-Key': 'ts-1-attempt-1' };
const { data: created, error } = await paymentsCreate({ body: order, headers });
assert.ok(created, JSON.stringify(error));
assert.equal(created.status, 'pending');
const { data: repeated } = await paymentsCreate({ body: order, headers });
assert.equal(repeated?.id, created.id);

const { data: payment } = await paymentsGet({ path: { id: created.id } });
assert.equal(payment?.amount.formatted, '1.500 HBD');
assert.deepEqual(payment?.metadata, { orderId: 'ts-1' });
const { data: page } = await paymentsList({ query: { status: 'pending', limit: 10 } });
assert.ok(page?.data.some((each: Payment) => each.id === created.id));

const { error: refused, response } = await paymentsCreate({ body: { ...order, amount: '0' } });
const expected: Reason = 'validation_failed';
assert.equal(response?.status, 400);
assert.equal(refused?.reason, expected);
assert.equal(refused?.details?.[0]?.field, 'amount');

const { data: cancelling } = await paymentsCancel({ path: { id: created.id } });
assert.equal(cancelling?.cancelRequested, true);
for (const deadline = Date.now() + 60_000; ; await wait(100)) {
  const { data } = await eventsList({ query: { limit: 100 } });
  const event = data?.events.find((each) => each.data.id === created.id && each.type === 'payment.status_changed');
  if (event) {
    assert.equal(event.data.status, 'user_cancelled');
    break;
  }
  assert.ok(Date.now() < deadline, 'no event of the cancellation');
}
console.log('ok');
