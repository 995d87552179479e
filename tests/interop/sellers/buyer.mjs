// Pays a seller of docs/how-to/x402-seller.md whose first work fails, repeats, and repeats once too often.
//
//   HIVETILL_RPC=… HIVETILL_ACCOUNT=alice HIVETILL_KEY=5… node buyer.mjs http://127.0.0.1:9100/report

import assert from 'node:assert/strict';

import { x402Client } from '@x402/core/client';
import { wrapFetchWithPayment } from '@x402/fetch';
import { registerHive } from 'x402-hive';

const { HIVETILL_RPC: nodes, HIVETILL_ACCOUNT: account, HIVETILL_KEY: key } = process.env;
const [url] = process.argv.slice(2);

/** Pays once, and returns the answer with the payment that it was for. */
async function buy() {
  let payment = null;
  const recorded = async (request) => {
    payment = request.headers.get('payment-signature') ?? payment;
    return fetch(request);
  };
  const response = await wrapFetchWithPayment(recorded, registerHive(new x402Client(), { account, key, nodes }))(url);
  return { response, payment };
}

const repeat = (payment) => fetch(url, { headers: { 'payment-signature': payment } });

const offered = await fetch(url);
assert.equal(offered.status, 402);

const failed = await buy();
assert.equal(failed.response.status, 500, 'the work fails after the payment');
const both = await Promise.all([repeat(failed.payment), repeat(failed.payment)]);
assert.deepEqual(both.map((response) => response.status).sort(), [200, 402], 'one of two repeats is served');
assert.equal((await repeat(failed.payment)).status, 402, 'a payment opens one request');

const bought = await buy();
assert.equal(bought.response.status, 200);
assert.deepEqual(await bought.response.json(), { report: 'Mugs are up 3 %' });
assert.equal((await repeat(bought.payment)).status, 402, 'a payment opens one request');
console.log('ok');
