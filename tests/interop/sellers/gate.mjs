// Pays a gate with @x402/fetch and verifies its signed receipt with @x402/extensions.
//
//   HIVETILL_RPC=… HIVETILL_ACCOUNT=alice HIVETILL_KEY=5… node gate.mjs http://127.0.0.1:8402

import assert from 'node:assert/strict';

import { x402Client } from '@x402/core/client';
import { extractReceiptPayload, verifyReceiptSignatureJWS } from '@x402/extensions/offer-receipt';
import { wrapFetchWithPayment } from '@x402/fetch';
import { registerHive } from 'x402-hive';

const { HIVETILL_RPC: nodes, HIVETILL_ACCOUNT: account, HIVETILL_KEY: key } = process.env;
const [gate] = process.argv.slice(2);
const url = `${gate}/report`;

const json = (text) => JSON.parse(Buffer.from(text, 'base64'));

assert.equal((await fetch(url)).status, 402);

let payment = null;
const recorded = async (request) => {
  payment = request.headers.get('payment-signature') ?? payment;
  return fetch(request);
};
const response = await wrapFetchWithPayment(recorded, registerHive(new x402Client(), { account, key, nodes }))(url);
assert.equal(response.status, 200);
assert.deepEqual(await response.json(), { report: 'Mugs are up 3 %' });
const repeated = await fetch(url, { headers: { 'payment-signature': payment } });
assert.equal(repeated.status, 409, 'a payment opens one request');
assert.equal(json(repeated.headers.get('payment-response')).extensions, undefined, 'a refusal has no receipt');

const settled = json(response.headers.get('payment-response'));
assert.equal(response.headers.get('x-payment-response'), response.headers.get('payment-response'));
assert.equal(settled.success, true);
const { version, receipt } = settled.extensions['offer-receipt'].info;
assert.equal(version, 1);

// The key from the receipt's `kid`, then the one that the gate publishes.
const verified = await verifyReceiptSignatureJWS(receipt);
assert.deepEqual(verified, extractReceiptPayload(receipt));
const { issuedAt, ...fields } = verified;
assert.deepEqual(fields, {
  version: 1, network: 'hive:mainnet', resourceUrl: url, payer: account, transaction: settled.transaction,
});
assert.ok(Math.abs(issuedAt - Date.now() / 1000) < 600, `issued at ${issuedAt}`);
const [header, payload, signature] = receipt.signature.split('.');
const { keys } = await (await fetch(`${gate}/.well-known/jwks.json`)).json();
const published = keys.find(({ kid }) => kid === JSON.parse(Buffer.from(header, 'base64url')).kid);
assert.deepEqual(await verifyReceiptSignatureJWS(receipt, published), verified);

const forged = Buffer.from(payload, 'base64url').toString().replace(account, 'mallory');
const parts = [header, Buffer.from(forged).toString('base64url'), signature];
await assert.rejects(verifyReceiptSignatureJWS({ ...receipt, signature: parts.join('.') }), /signature/);
// The public key of RFC 8037, appendix A.2.
const other = { kty: 'OKP', crv: 'Ed25519', x: '11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo' };
await assert.rejects(verifyReceiptSignatureJWS(receipt, other), /signature/);
console.log('ok');
