// Pays a checkout page with @x402/fetch and verifies its signed offer and receipt with @x402/extensions.
//
//   HIVETILL_RPC=… HIVETILL_ACCOUNT=alice HIVETILL_KEY=5… node checkout.mjs http://127.0.0.1:8080/for/mug-…

import assert from 'node:assert/strict';

import { x402Client } from '@x402/core/client';
import {
  canonicalize, extractOffersFromPaymentRequired, extractReceiptFromResponse, findAcceptsObjectFromSignedOffer,
  verifyOfferSignatureJWS, verifyReceiptMatchesOffer, verifyReceiptSignatureJWS,
} from '@x402/extensions/offer-receipt';
import { wrapFetchWithPayment } from '@x402/fetch';
import { registerHive } from 'x402-hive';

const { HIVETILL_RPC: nodes, HIVETILL_ACCOUNT: account, HIVETILL_KEY: key } = process.env;
const [url] = process.argv.slice(2);

const parts = (jws) => jws.split('.').map((part) => Buffer.from(part, 'base64url').toString());

const unpaid = await fetch(url);
assert.equal(unpaid.status, 402);
const required = JSON.parse(Buffer.from(unpaid.headers.get('payment-required'), 'base64'));
const [offer, ...others] = extractOffersFromPaymentRequired(required);
assert.deepEqual(others, []);
assert.equal(findAcceptsObjectFromSignedOffer(offer, required.accepts), required.accepts[0]);
const terms = await verifyOfferSignatureJWS(offer);
assert.equal(terms.resourceUrl, required.resource.url);
assert.ok(terms.validUntil > Date.now() / 1000, `valid until ${terms.validUntil}`);
assert.equal(canonicalize(terms), parts(offer.signature)[1], 'the payload is canonical JSON');

const response = await wrapFetchWithPayment(fetch, registerHive(new x402Client(), { account, key, nodes }))(url);
assert.equal(response.status, 200, await response.clone().text());
const { txId } = await response.json();
const receipt = extractReceiptFromResponse(response);
const confirmed = await verifyReceiptSignatureJWS(receipt);
assert.ok(verifyReceiptMatchesOffer(receipt, terms, [account]));
assert.equal(confirmed.transaction, txId);
assert.equal(canonicalize(confirmed), parts(receipt.signature)[1], 'the payload is canonical JSON');

// One published key verifies both.
const { keys } = await (await fetch(new URL('/.well-known/jwks.json', url))).json();
const published = keys.find(({ kid }) => kid === JSON.parse(parts(receipt.signature)[0]).kid);
assert.deepEqual(await verifyReceiptSignatureJWS(receipt, published), confirmed);
assert.deepEqual(await verifyOfferSignatureJWS(offer, published), terms);
const [header, payload, signature] = offer.signature.split('.');
const cheaper = Buffer.from(Buffer.from(payload, 'base64url').toString().replace('"500"', '"5"')).toString('base64url');
assert.notEqual(cheaper, payload);
await assert.rejects(verifyOfferSignatureJWS({ ...offer, signature: [header, cheaper, signature].join('.') }), /signature/);
console.log('ok');
