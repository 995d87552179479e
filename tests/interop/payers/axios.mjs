// Pays a gate with @x402/axios. Prints ok.
//
//   HIVETILL_RPC=… HIVETILL_ACCOUNT=alice HIVETILL_KEY=5… node axios.mjs http://127.0.0.1:8402

import assert from 'node:assert/strict';

import { wrapAxiosWithPayment } from '@x402/axios';
import { x402Client } from '@x402/core/client';
import axios from 'axios';

import { registerHive } from '../../../docs/examples/x402-hive/src/client.js';

const { HIVETILL_RPC: nodes, HIVETILL_ACCOUNT: account, HIVETILL_KEY: key } = process.env;
const [gate] = process.argv.slice(2);
const json = (text) => JSON.parse(Buffer.from(text, 'base64'));

await assert.rejects(axios.get(`${gate}/report`), (error) => error.response.status === 402);

const paying = wrapAxiosWithPayment(axios.create(), registerHive(new x402Client(), { account, key, nodes }));
const bought = await paying.get(`${gate}/report`);
assert.equal(bought.status, 200);
assert.deepEqual(bought.data, { report: 'Mugs are up 3 %' });
const first = json(bought.headers['payment-response']);
assert.deepEqual([first.success, first.payer, first.network], [true, account, 'hive:mainnet']);

// A body is sent again with the payment.
const worked = await paying.post(`${gate}/work`, { order: 1 });
assert.equal(worked.status, 200);
const second = json(worked.headers['payment-response']);
assert.notEqual(second.transaction, first.transaction);

await assert.rejects(paying.get(`${gate}/unknown`), (error) => error.response.status === 404);
console.log('ok');
