// The official client, facilitator client and resource server against a running gateway:
//
//   hivetill dev --json > dev.json
//   HIVETILL_API=… HIVETILL_RPC=… HIVETILL_API_KEY=… HIVETILL_ACCOUNT=alice HIVETILL_KEY=5… HIVETILL_TO=shop.demo npm test
//
// With HIVETILL_CONTROL, the dev ledger's control address, the ledger is made to hang, too.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';

import { x402Client } from '@x402/core/client';
import { HTTPFacilitatorClient } from '@x402/core/http';
import { x402HTTPResourceServer, x402ResourceServer } from '@x402/core/server';
import { decodePaymentResponseHeader, wrapFetchWithPayment } from '@x402/fetch';

import { ExactHiveClient, ExactHiveServer, NETWORK, registerHive, retrySamePayment } from '../src/index.js';

const env = process.env;
const [api, nodes, apiKey] = [env.HIVETILL_API, env.HIVETILL_RPC, env.HIVETILL_API_KEY];
const [account, key, payTo] = [env.HIVETILL_ACCOUNT, env.HIVETILL_KEY, env.HIVETILL_TO];
const skip = api && nodes && apiKey && account && key && payTo ? false : 'HIVETILL_API and the other variables are not set';
const facilitator = `${api}/api/public/x402`;

/** A client that pays what it is told it may. */
function payer(controls) {
  const client = registerHive(new x402Client(), { account, key, nodes });
  if (controls !== undefined) client.setSpendControls(controls);
  const sent = [];
  const counted = async (request) => {
    sent.push(request.headers.get('payment-signature'));
    return fetch(request);
  };
  return { pay: wrapFetchWithPayment(retrySamePayment(counted), client), payments: () => sent.filter(Boolean) };
}

async function call(path, init = {}) {
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const response = await fetch(`${api}${path}`, { ...init, headers });
  return { status: response.status, json: await response.json() };
}

async function open(amount, currency = 'HBD') {
  const body = JSON.stringify({ amount, currency, description: 'An agent’s mug' });
  const { status, json } = await call('/api/public/payments', { method: 'POST', body });
  assert.equal(status, 201, JSON.stringify(json));
  return { id: json.id, url: `${api}/for/${json.slug}`, byId: `${api}/checkout/${json.id}` };
}

const statusOf = async ({ id }) => (await call(`/api/public/payments/${id}/status`)).json.status;

test('the official client pays a session with a dollar of HBD as it comes', { skip }, async () => {
  const session = await open('1000');
  const { pay, payments } = payer();
  const response = await pay(session.url);
  const body = await response.json();
  assert.equal(response.status, 200, JSON.stringify(body));
  const receipt = decodePaymentResponseHeader(response.headers.get('payment-response'));
  assert.deepEqual([receipt.success, receipt.network, receipt.payer], [true, NETWORK, account]);
  assert.equal(receipt.transaction, body.txId);
  assert.deepEqual([body.success, body.payer, body.sessionId, body.status], [true, account, session.id, 'completed']);
  assert.equal(payments().length, 1);
  const { json } = await call(`/api/public/payments/${session.id}`);
  assert.deepEqual([json.status, json.internalId], ['completed', body.txId]);

  // Who holds the payment gets the receipt again; who does not is told that it is over.
  const again = await fetch(session.url, { headers: { accept: '*/*', 'payment-signature': payments()[0] } });
  assert.deepEqual([again.status, (await again.json()).txId], [200, body.txId]);
  assert.equal((await fetch(session.url, { headers: { accept: '*/*' } })).status, 409);
});

test('the address by id is paid as the one by slug', { skip }, async () => {
  const session = await open('50');
  assert.equal((await payer().pay(session.byId)).status, 200);
  assert.equal(await statusOf(session), 'completed');
});

test('five dollars are refused by the SDK until the user allows them', { skip }, async () => {
  const session = await open('5000');
  const capped = payer();
  await assert.rejects(capped.pay(session.url), /spendControls\.maxAmountPerPayment/);
  const low = payer({ maxAmountPerPayment: '$4.99' });
  await assert.rejects(low.pay(session.url), /spendControls\.maxAmountPerPayment/);
  assert.deepEqual([...capped.payments(), ...low.payments()], []);
  assert.equal(await statusOf(session), 'pending');
  assert.equal((await payer({ maxAmountPerPayment: '$5' }).pay(session.url)).status, 200);
  assert.equal(await statusOf(session), 'completed');
});

test('HIVE is refused by the SDK until the user names it, and beyond the cap for it', { skip }, async () => {
  const session = await open('2000', 'HIVE');
  const allow = (maxAmountPerPayment) => ({ allowedAssets: [{ network: NETWORK, asset: 'HIVE', maxAmountPerPayment }] });
  await assert.rejects(payer().pay(session.url), /spendControls/);
  await assert.rejects(payer(allow('1999')).pay(session.url), /spendControls/);
  assert.equal(await statusOf(session), 'pending');
  assert.equal((await payer(allow('2000')).pay(session.url)).status, 200);
});

test('one payer at once five times pays once', { skip }, async () => {
  const session = await open('100');
  const { pay, payments } = payer();
  const answers = await Promise.all(Array.from({ length: 5 }, () => pay(session.url)));
  assert.ok(answers.some(({ status }) => status === 200));
  assert.equal(new Set(payments().map(nonceOf)).size, 1, 'signed once');
  const { json } = await call(`/api/public/payments/${session.id}`);
  const toShop = json.transfers.filter((transfer) => transfer.to === payTo);
  assert.deepEqual([json.status, json.exceptions, toShop.length], ['completed', [], 1]);
});

const control = env.HIVETILL_CONTROL;

async function order(method, params) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: `control.${method}`, params });
  const response = await fetch(control, { method: 'POST', headers: { 'content-type': 'application/json' }, body });
  assert.equal((await response.json()).error, undefined);
}

test('a payment that hangs is handed in again with the same bytes until it is decided', { skip: skip || !control }, async () => {
  const session = await open('700');
  const client = registerHive(new x402Client(), { account, key, nodes });
  const seen = [];
  const watched = async (request) => {
    const response = await fetch(request);
    const receipt = response.headers.get('payment-response');
    const reason = receipt && decodePaymentResponseHeader(receipt).errorReason;
    seen.push([response.status, reason, request.headers.get('payment-signature'), response.headers.has('payment-required')]);
    // The gateway does not know how it will end; now the ledger goes on.
    if (reason === 'settlement_pending') await order('hold_transactions', { held: false });
    return response;
  };
  await order('hold_transactions', { held: true });
  try {
    const response = await wrapFetchWithPayment(retrySamePayment(watched), client)(session.url);
    assert.equal(response.status, 200, JSON.stringify(seen));
  } finally {
    await order('hold_transactions', { held: false });
  }
  const payments = seen.filter(([, , header]) => header);
  assert.deepEqual(payments[0].slice(0, 2), [402, 'settlement_pending']);
  assert.equal(payments[0][3], false, 'no fresh requirements while it is open');
  assert.ok(payments.length > 1);
  assert.equal(new Set(payments.map(([, , header]) => header)).size, 1, 'the same bytes');
  assert.equal(await statusOf(session), 'completed');
});

const nonceOf = (header) => JSON.parse(Buffer.from(header, 'base64').toString('utf8')).payload.nonce;

const requirements = (amount, more = {}) => ({
  scheme: 'exact', network: NETWORK, amount, asset: 'HBD', payTo, maxTimeoutSeconds: 60, extra: {}, ...more,
});

async function payment(accepted, url) {
  const { payload } = await new ExactHiveClient({ account, key, nodes }).createPaymentPayload(2, accepted);
  return { x402Version: 2, resource: { url }, accepted, payload };
}

test('the core facilitator client verifies and settles, and a success is told once', { skip }, async () => {
  const client = new HTTPFacilitatorClient({ url: facilitator });
  const { kinds, extensions, signers } = await client.getSupported();
  assert.deepEqual(kinds.map((kind) => [kind.x402Version, kind.scheme, kind.network]), [
    [2, 'exact', NETWORK],
    [1, 'exact', NETWORK],
    [2, 'exact', 'hive:beeab0de000000000000000000000000'],
  ]);
  assert.deepEqual([extensions, signers], [['payment-identifier'], {}]);

  const required = requirements('30');
  const paid = await payment(required, 'https://shop.example/report');
  const verified = await client.verify(paid, required);
  assert.deepEqual([verified.isValid, verified.payer], [true, account], JSON.stringify(verified));
  const settled = await client.settle(paid, required);
  assert.deepEqual([settled.success, settled.network, settled.payer], [true, NETWORK, account], JSON.stringify(settled));
  assert.match(settled.transaction, /^[0-9a-f]{40}$/);

  const again = await client.settle(paid, required);
  assert.deepEqual([again.success, again.errorReason, again.transaction], [false, 'duplicate_settlement', settled.transaction]);
  const late = await client.verify(paid, required);
  assert.deepEqual([late.isValid, late.invalidReason], [false, 'duplicate_settlement']);
});

test('the core facilitator client hears the closed vocabulary', { skip }, async () => {
  const client = new HTTPFacilitatorClient({ url: facilitator });
  const url = 'https://shop.example/other';
  const required = requirements('30');
  const paid = await payment(required, url);
  const reason = async (payload, wanted) => {
    const { isValid, invalidReason } = await client.verify(payload, wanted);
    const { success, errorReason, transaction } = await client.settle(payload, wanted);
    assert.deepEqual([isValid, success, transaction], [false, false, '']);
    assert.equal(invalidReason, errorReason);
    return invalidReason;
  };
  assert.equal(await reason(paid, requirements('31')), 'accepted_requirements_mismatch');
  assert.equal(await reason({ ...paid, accepted: requirements('29') }, requirements('29')), 'invalid_exact_hive_payload_amount_mismatch');
  assert.equal(await reason({ ...paid, accepted: requirements('31') }, requirements('31')), 'invalid_exact_hive_payload_amount');
  const hive = requirements('30', { asset: 'HIVE' });
  assert.equal(await reason({ ...paid, accepted: hive }, hive), 'invalid_exact_hive_payload_asset_mismatch');
  const bob = requirements('30', { payTo: 'bob' });
  assert.equal(await reason({ ...paid, accepted: bob }, bob), 'invalid_exact_hive_payload_recipient_mismatch');
  const upto = requirements('30', { scheme: 'upto' });
  assert.equal(await reason({ ...paid, accepted: upto }, upto), 'unsupported_scheme');
  const base = requirements('30', { network: 'eip155:8453' });
  assert.equal(await reason({ ...paid, accepted: base }, base), 'invalid_network');
});

/** A seller's own server: the SDK's paywall, with the gateway as its facilitator. */
async function paywall(paymentFlow) {
  const resources = new x402ResourceServer(new HTTPFacilitatorClient({ url: facilitator }));
  resources.register(NETWORK, new ExactHiveServer());
  const extra = paymentFlow ? { paymentFlow } : {};
  const accepts = { scheme: 'exact', network: NETWORK, payTo, price: '$0.02', maxTimeoutSeconds: 60, extra };
  const paywalled = new x402HTTPResourceServer(resources, { 'GET /report': { accepts, description: 'A report' } });
  await paywalled.initialize();
  const server = createServer(async (request, response) => {
    const url = `http://${request.headers.host}${request.url}`;
    const adapter = {
      getHeader: (name) => request.headers[name.toLowerCase()],
      getMethod: () => request.method,
      getPath: () => request.url,
      getUrl: () => url,
      getAcceptHeader: () => request.headers.accept ?? '',
      getUserAgent: () => request.headers['user-agent'] ?? '',
    };
    const context = { adapter, path: request.url, method: request.method };
    const answer = ({ status, headers, body }) => {
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(typeof body === 'string' ? body : JSON.stringify(body ?? {}));
    };
    const result = await paywalled.processHTTPRequest(context);
    if (result.type === 'payment-error') return answer(result.response);
    if (result.type !== 'payment-verified') return answer({ status: 200, headers: {}, body: {} });
    const { paymentPayload, paymentRequirements, declaredExtensions, beforeHandlerSettlement } = result;
    const settlement = await paywalled.processSettlement(
      paymentPayload, paymentRequirements, declaredExtensions, { request: context }, undefined, beforeHandlerSettlement,
    );
    if (!settlement.success) return answer(settlement.response);
    return answer({ status: 200, headers: settlement.headers, body: { report: 'all is well' } });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${server.address().port}/report`, close: () => server.close() };
}

for (const flow of [undefined, 'upfront', 'authorization']) {
  test(`the SDK's own paywall settles by the gateway (${flow ?? 'the default'})`, { skip }, async () => {
    const { url, close } = await paywall(flow);
    try {
      const { pay, payments } = payer();
      const response = await pay(url);
      const text = await response.text();
      assert.equal(response.status, 200, text);
      assert.deepEqual(JSON.parse(text), { report: 'all is well' });
      const receipt = decodePaymentResponseHeader(response.headers.get('payment-response'));
      assert.deepEqual([receipt.success, receipt.payer], [true, account]);
      // The same payment opens nothing twice.
      const again = await fetch(url, { headers: { 'payment-signature': payments()[0] } });
      assert.equal(again.status, 402);
    } finally {
      close();
    }
  });
}
