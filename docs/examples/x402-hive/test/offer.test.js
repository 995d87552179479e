// What is signed, what is refused, and what is retried: without a gateway.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';

import { x402Client } from '@x402/core/client';
import { wrapFetchWithPayment } from '@x402/fetch';
import { PrivateKey, Signature, Transaction } from 'hive-tx';

import { ExactHiveClient, ExactHiveServer, NETWORK, registerHive, retrySamePayment } from '../src/index.js';
import { OfferError, ledgerAmount, transfersOf } from '../src/offer.js';

const NONCE = '00112233445566778899aabbccddeeff';
const ID = 'pay_00000000000000000000000007';
const key = PrivateKey.fromLogin('alice', 'test', 'active');

const offer = (more = {}, extra = {}) => ({
  scheme: 'exact',
  network: NETWORK,
  amount: '10500',
  asset: 'HBD',
  payTo: 'blue.mugs',
  maxTimeoutSeconds: 300,
  extra: { sessionId: ID, memo: `pos-${ID}`, ...extra },
  ...more,
});
const fee = { feeAccount: 'fee.taker', feeAmount: '0.157 HBD', netAmount: '10.343 HBD', feeMemo: `fee-${ID}` };

/** @type {import('node:http').Server} */
let node;
let nodes = '';
let asked = 0;

before(async () => {
  node = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    asked += 1;
    const time = new Date().toISOString().slice(0, 19);
    const result = JSON.parse(body).method.endsWith('get_block_header')
      ? { header: { previous: '0000000a' + '01020304'.repeat(4) } }
      : { head_block_id: '0000000c' + '00'.repeat(16), last_irreversible_block_num: 10, time };
    response.end(JSON.stringify({ jsonrpc: '2.0', id: 1, result }));
  });
  await new Promise((resolve) => node.listen(0, '127.0.0.1', resolve));
  nodes = `http://127.0.0.1:${node.address().port}`;
});
after(() => node.close());

const payer = () => new ExactHiveClient({ account: 'alice', key, nodes });

test('one transfer pays the whole, two pay a split one', () => {
  const one = { from: 'alice', to: 'blue.mugs', amount: '10.500 HBD', memo: `pos-${ID}` };
  assert.deepEqual(transfersOf(offer(), 'alice', NONCE), [one]);
  assert.deepEqual(transfersOf(offer({}, fee), 'alice', NONCE), [
    { ...one, amount: '10.343 HBD' },
    { from: 'alice', to: 'fee.taker', amount: '0.157 HBD', memo: `fee-${ID}` },
  ]);
  assert.equal(transfersOf(offer({ extra: undefined }), 'alice', NONCE)[0].memo, `x402:${NONCE}`);
  assert.equal(ledgerAmount(5n, 'HIVE'), '0.005 HIVE');
});

test('an offer that contradicts itself is not signed for', () => {
  const bad = [
    offer({ scheme: 'upto' }),
    offer({ network: 'hive:testnet' }),
    ...['', '0', '010', '-1', '1.5', '1e3', '9'.repeat(19), 10500, undefined].map((amount) => offer({ amount })),
    offer({ asset: 'hbd' }),
    offer({ asset: 'VESTS' }),
    ...['Blue.Mugs', 'ab', 'a'.repeat(17), 'blue..mugs', '', undefined, 'alice'].map((payTo) => offer({ payTo })),
    offer({}, { memo: 'pos-other' }),
    offer({}, { memo: 7 }),
    offer({ extra: { memo: '#secret' } }),
    offer({}, { ...fee, feeAmount: '0.158 HBD' }),
    offer({}, { ...fee, feeAmount: '0.157 HIVE' }),
    offer({}, { ...fee, feeAmount: '-0.157 HBD' }),
    offer({}, { ...fee, netAmount: undefined }),
    offer({}, { ...fee, feeAccount: 'blue.mugs' }),
    offer({}, { ...fee, feeAccount: 'alice' }),
    offer({}, { ...fee, netAmount: '10.500 HBD', feeAmount: '0.000 HBD' }),
  ];
  for (const each of bad) assert.throws(() => transfersOf(each, 'alice', NONCE), OfferError, JSON.stringify(each));
});

test('the signature holds for the transaction that is handed in', async () => {
  const { payload } = await payer().createPaymentPayload(2, offer());
  const { signatures, ...unsigned } = payload.signedTransaction;
  assert.equal(signatures.length, 1);
  assert.equal(unsigned.ref_block_num, 10);
  assert.equal(unsigned.ref_block_prefix, 0x04030201);
  const { digest } = new Transaction({ transaction: { ...unsigned, signatures: [] } }).digest();
  const signer = Signature.from(signatures[0]).getPublicKey(digest);
  assert.equal(signer.toString(), key.createPublic().toString());
});

test('a session is signed for once while the signature lives; what has no session is signed for each time', async () => {
  const client = payer();
  const first = await client.createPaymentPayload(2, offer());
  const before = asked;
  assert.deepEqual(await client.createPaymentPayload(2, offer()), first);
  assert.equal(asked, before, 'the ledger was not even asked');
  const other = await client.createPaymentPayload(2, offer({ amount: '10501' }));
  assert.notDeepEqual(other, first, 'another price is another payment');
  const atOnce = payer();
  const all = await Promise.all(Array.from({ length: 5 }, () => atOnce.createPaymentPayload(2, offer())));
  assert.equal(new Set(all.map(({ payload }) => payload.nonce)).size, 1, 'signed once though asked five times at once');
  const [a, b] = [offer({ extra: {} }), offer({ extra: {} })];
  assert.notDeepEqual(await client.createPaymentPayload(2, a), await client.createPaymentPayload(2, b));
  const noNode = new ExactHiveClient({ account: 'alice', key, nodes: 'http://127.0.0.1:1' });
  await assert.rejects(noNode.createPaymentPayload(2, offer()), /no ledger node answers/);
  const brief = new ExactHiveClient({ account: 'alice', key, nodes, expiresInSeconds: 0 });
  assert.notDeepEqual(await brief.createPaymentPayload(2, offer()), await brief.createPaymentPayload(2, offer()));
});

test('trap: the SDK caps a payment at a dollar of HBD and refuses HIVE, until it is told otherwise', async () => {
  const required = (accept) => ({ x402Version: 2, resource: { url: 'https://x' }, accepts: [accept] });
  const create = (accept, controls) => {
    const client = registerHive(new x402Client(), { account: 'alice', key, nodes });
    if (controls !== undefined) client.setSpendControls(controls);
    return client.createPaymentPayload(required(accept));
  };
  assert.ok(await create(offer({ amount: '50' })));
  assert.ok(await create(offer({ amount: '1000' })));
  await assert.rejects(create(offer({ amount: '1001' })), /spendControls/);
  await assert.rejects(create(offer({ amount: '50', asset: 'HIVE' })), /spendControls/);
  assert.ok(await create(offer({ amount: '10500' }), { maxAmountPerPayment: '$20' }));
  await assert.rejects(create(offer({ amount: '20001' }), { maxAmountPerPayment: '$20' }), /spendControls/);
  const hive = { allowedAssets: [{ network: NETWORK, asset: 'HIVE', maxAmountPerPayment: '5000' }] };
  assert.ok(await create(offer({ amount: '5000', asset: 'HIVE' }), hive));
  await assert.rejects(create(offer({ amount: '5001', asset: 'HIVE' }), hive), /spendControls/);
  assert.ok(await create(offer({ amount: '999000', asset: 'HIVE' }), false));
});

test('a cap holds at the signature too', async () => {
  const capped = payer().createPaymentPayload(2, offer(), { maxAmountPerPayment: '10499' });
  await assert.rejects(capped, OfferError);
  await assert.rejects(payer().createPaymentPayload(1, offer()), OfferError);
});

/** A shop that answers what it is told to, and keeps what it was handed. */
function shop(answers) {
  const handed = [];
  const b64 = (json) => Buffer.from(JSON.stringify(json)).toString('base64');
  const fetch = async (request) => {
    const payment = request.headers.get('payment-signature');
    if (!payment) {
      const required = { x402Version: 2, resource: { url: 'https://shop/for/x' }, accepts: [offer({ amount: '50' })] };
      return new Response('{}', { status: 402, headers: { 'PAYMENT-REQUIRED': b64(required) } });
    }
    handed.push(payment);
    const answer = answers.shift();
    if (answer instanceof Error) throw answer;
    const { status = 402, receipt, body = {} } = answer;
    const headers = receipt ? { 'PAYMENT-RESPONSE': b64({ transaction: '', network: NETWORK, ...receipt }) } : {};
    return new Response(JSON.stringify(body), { status, headers });
  };
  const client = registerHive(new x402Client(), { account: 'alice', key, nodes });
  return { handed, pay: wrapFetchWithPayment(retrySamePayment(fetch, { waitMs: 1 }), client) };
}

test('what is not decided is handed in again with the same bytes, and what is decided is not', async () => {
  const { handed, pay } = shop([
    { receipt: { success: false, errorReason: 'settlement_pending', transaction: 'ab' } },
    new TypeError('fetch failed'),
    { status: 503 },
    { status: 409, body: { status: 'processing' } },
    { status: 409, body: { status: 'pending', reason: 'payment_in_flight' } },
    { status: 200, receipt: { success: true, transaction: 'ab' } },
  ]);
  const response = await pay('https://shop/for/x');
  assert.equal(response.status, 200);
  assert.equal(handed.length, 6);
  assert.equal(new Set(handed).size, 1, 'signed once');

  for (const answer of [
    { receipt: { success: false, errorReason: 'insufficient_funds' } },
    { status: 409, body: { status: 'completed', reason: 'session_completed' } },
    { status: 410 },
  ]) {
    const { handed, pay } = shop([answer]);
    assert.equal((await pay('https://shop/for/x')).status, answer.status ?? 402);
    assert.equal(handed.length, 1);
  }
});

test('a seller prices in dollars, HBD and HIVE', async () => {
  const server = new ExactHiveServer();
  const cases = [
    ['$0.05', '50', 'HBD'],
    ['0.05', '50', 'HBD'],
    [2, '2000', 'HBD'],
    [0.05, '50', 'HBD'],
    ['0.050 HIVE', '50', 'HIVE'],
    [{ amount: '7', asset: 'HIVE' }, '7', 'HIVE'],
  ];
  for (const [price, amount, asset] of cases) assert.deepEqual(await server.parsePrice(price), { amount, asset });
  for (const price of ['$0', '$0.0001', '0.05 HBD', '-1', 'free', { amount: '1.5', asset: 'HBD' }, { amount: '1', asset: 'USD' }]) {
    await assert.rejects(server.parsePrice(price), undefined, JSON.stringify(price));
  }
});
