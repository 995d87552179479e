// Each client pays through a dev ledger, finds its payment in a block, and reads what clients read.
//
//   HIVETILL_RPC=http://127.0.0.1:8091 HIVETILL_FROM=alice HIVETILL_KEY=5… HIVETILL_TO=shop.demo npm test

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as wait } from 'node:timers/promises';

import { clients, pay } from './run.mjs';

const { HIVETILL_RPC: rpc, HIVETILL_FROM: from, HIVETILL_KEY: wif, HIVETILL_TO: to } = process.env;
const skip = rpc && from && wif && to ? false : 'HIVETILL_RPC, HIVETILL_FROM, HIVETILL_KEY and HIVETILL_TO are not set';

async function call(method, params) {
  const response = await fetch(rpc, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  const { result, error } = await response.json();
  if (error) throw Object.assign(new Error(error.message), error);
  return result;
}

/** Waits until a transaction is in a block and returns it as the node shows it. */
async function included(txId) {
  const deadline = Date.now() + 30_000;
  while (Date.now() < deadline) {
    const { status, block_num } = await call('transaction_status_api.find_transaction', { transaction_id: txId });
    if (block_num) return { status, block: await call('condenser_api.get_block', [block_num]) };
    await wait(100);
  }
  throw new Error(`${txId} did not come into a block`);
}

for (const client of Object.keys(clients)) {
  test(`a transfer by ${client} is in a block under the id that ${client} says`, { skip }, async () => {
    const payment = { amount: '1.234 HBD', memo: `interop ${client} é 🐝` };
    const { txId } = await pay(client, { rpc, from, wif, to, ...payment });
    const { block } = await included(txId);
    const place = block.transaction_ids.indexOf(txId);
    assert.notEqual(place, -1);
    assert.deepEqual(block.transactions[place].operations, [['transfer', { from, to, ...payment }]]);
    const seen = await call('account_history_api.get_transaction', { id: txId, include_reversible: true });
    assert.equal(seen.operations[0].value.amount.amount, '1234');
    assert.equal(seen.operations[0].value.memo, payment.memo);
  });
}

test('dhive reads accounts, blocks, prices and authorities', { skip }, async () => {
  const { Client, PrivateKey, Asset } = await import('@hiveio/dhive');
  const client = new Client([rpc]);
  const key = PrivateKey.fromString(wif);
  const [account] = await client.database.getAccounts([from]);
  assert.equal(account.name, from);
  assert.equal(account.active.key_auths[0][0], key.createPublic().toString());
  assert.ok(Asset.from(account.balance).amount > 0);
  assert.equal((await client.database.getCurrentMedianHistoryPrice()).quote.symbol, 'HIVE');
  assert.equal((await client.database.getConfig()).HIVE_ADDRESS_PREFIX, 'STM');
  assert.match((await client.database.getVersion()).hive_revision, /hivetill-dev/);
  const number = await client.blockchain.getCurrentBlockNum();
  const block = await client.database.getBlock(number);
  assert.equal(parseInt(block.block_id.slice(0, 8), 16), number);
  assert.ok((await client.rc.getRCMana(from)).percentage > 0);

  const operation = ['transfer', { from, to, amount: '0.001 HBD', memo: '' }];
  const signed = client.broadcast.sign(await build(client, operation), key);
  assert.equal(await client.database.verifyAuthority(signed), true);
  const stranger = PrivateKey.fromSeed('stranger');
  await assert.rejects(client.broadcast.transfer(operation[1], stranger), /Missing Active Authority/);
});

async function build(client, operation) {
  const properties = await client.database.getDynamicGlobalProperties();
  return {
    ref_block_num: properties.head_block_number & 0xffff,
    ref_block_prefix: Buffer.from(properties.head_block_id, 'hex').readUInt32LE(4),
    expiration: new Date(new Date(`${properties.time}Z`).getTime() + 60_000).toISOString().slice(0, -5),
    operations: [operation],
    extensions: [],
  };
}

test('dhive reads its history and broadcasts synchronously', { skip }, async () => {
  const { Client, PrivateKey } = await import('@hiveio/dhive');
  const client = new Client([rpc]);
  const operation = ['transfer', { from, to, amount: '0.001 HBD', memo: 'a history' }];
  const signed = client.broadcast.sign(await build(client, operation), PrivateKey.fromString(wif));
  const { id, block_num: number, expired } = await client.call('condenser_api', 'broadcast_transaction_synchronous', [signed]);
  assert.equal(expired, false);
  const block = await client.database.getBlock(number);
  assert.ok(block.transaction_ids.includes(id));
  for (const deadline = Date.now() + 30_000; ; await wait(100)) {
    const history = await client.database.getAccountHistory(from, -1, 100);
    const found = history.find(([, entry]) => entry.trx_id === id);
    if (found) {
      assert.deepEqual(found[1].op, operation);
      break;
    }
    assert.ok(Date.now() < deadline, 'the transfer is not in the history');
  }
  const votes = await client.database.getAccountHistory(from, -1, 100, [1, 0]);
  assert.deepEqual(votes, []);
});

test('hive-tx waits for its transaction and takes a repeated one for done', { skip }, async () => {
  const { Transaction, PrivateKey, callRPC, config } = await import('hive-tx');
  config.nodes = [rpc];
  const transaction = new Transaction();
  await transaction.addOperation('transfer', { from, to, amount: '0.002 HIVE', memo: 'twice' });
  transaction.sign(PrivateKey.from(wif));
  const first = await transaction.broadcast(true);
  assert.match(first.status, /^within_(ir)?reversible_block$/);
  const [account] = await callRPC('condenser_api.get_accounts', [[to]]);
  assert.equal(account.name, to);
  await assert.rejects(callRPC('condenser_api.get_nothing', []), /get_nothing/);
});

test('wax reads with hived types and sees who has signed', { skip }, async () => {
  const { createHiveChain } = await import('@hiveio/wax');
  const chain = await createHiveChain({ apiEndpoint: rpc });
  const { accounts } = await chain.api.database_api.find_accounts({ accounts: [from] });
  assert.equal(accounts[0].name, from);
  const properties = await chain.api.database_api.get_dynamic_global_properties({});
  const { block } = await chain.api.block_api.get_block({ block_num: properties.head_block_number });
  assert.equal(block.block_id, properties.head_block_id);
  const references = await chain.api.account_by_key_api.get_key_references({ keys: [accounts[0].active.key_auths[0][0]] });
  assert.deepEqual(references.accounts, [[from]]);
});
