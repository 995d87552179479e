// An agent and a merchant in one session, with the official TypeScript SDK. Prints what it saw as one line of JSON.
//
//   node client.mjs http URL TOKEN PAY_URL NEXT_URL TOOL_URL | node client.mjs stdio BINARY WALLET PAY_URL NEXT_URL TOOL_URL
//
// The environment has HIVETILL_KEY, HIVETILL_API and HIVETILL_API_KEY for the server on standard input and output.

import assert from 'node:assert/strict';

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [mode, where, secret, payUrl, nextUrl, toolUrl] = process.argv.slice(2);
const { HIVETILL_KEY, HIVETILL_API, HIVETILL_API_KEY } = process.env;

function transport(token = secret) {
  if (mode === 'http') {
    return new StreamableHTTPClientTransport(new URL(where), { requestInit: { headers: { authorization: `Bearer ${token}` } } });
  }
  const env = { HIVETILL_KEY, HIVETILL_API, HIVETILL_API_KEY };
  return new StdioClientTransport({ command: where, args: ['mcp', '--wallet', secret], env });
}

const client = new Client({ name: 'interop', version: '1.0.0' });
if (mode === 'http') {
  await assert.rejects(new Client({ name: 'stranger', version: '1.0.0' }).connect(transport('wrong')));
}
await client.connect(transport());

const { tools } = await client.listTools();
const call = async (name, args, options) => {
  const result = await client.callTool({ name, arguments: args }, undefined, options);
  assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
  return { isError: result.isError === true, ...result.structuredContent };
};

const offer = await call('pay_url', { url: payUrl });
const before = await call('wallet_status', {});
const progress = [];
const onprogress = (step) => progress.push(step.message);
const paid = await call('pay_url', { url: payUrl, confirm: true, maxAmount: offer.amount }, { onprogress });
const again = await call('pay_url', { url: payUrl, confirm: true });
const receipt = await call('get_receipt', { id: paid.entry });
const next = await call('pay_url', { url: nextUrl, confirm: true });
const order = { server: toolUrl, tool: 'report', arguments: { topic: 'Mugs' } };
const toolOffer = await call('pay_tool', order);
const toolPaid = await call('pay_tool', { ...order, confirm: true, maxAmount: toolOffer.amount });
const toolAgain = await call('pay_tool', { ...order, confirm: true });
const toolWrong = await call('pay_tool', { ...order, server: 'ftp://127.0.0.1/' });
const wrong = await call('pay_url', { url: payUrl, confrm: true });

const created = await call('create_payment', { amount: '0.500 HBD', description: 'A mug', idempotencyKey: `order-${mode}` });
const repeated = await call('create_payment', { amount: '0.500 HBD', description: 'A mug', idempotencyKey: `order-${mode}` });
const payment = await call('get_payment', { id: created.id });
const listed = await call('list_payments', { status: 'pending', limit: 1 });
const missing = await call('get_payment', { id: 'pay_00000000000000000000000000' });
const plan = await call('refund_plan', { id: created.id });

const { resources } = await client.listResources();
const read = async (uri) => (await client.readResource({ uri })).contents[0].text;
const stored = JSON.parse(await read(`hivetill://receipts/${paid.entry}`));
const page = await read('hivetill://reference/wallet');
await assert.rejects(client.readResource({ uri: 'hivetill://receipts/999' }));
await assert.rejects(client.callTool({ name: 'steal', arguments: {} }));
await client.close();

console.log(JSON.stringify({
  tools: tools.map((tool) => tool.name), offer, before, progress, paid, again, receipt, next, wrong, created, repeated, payment, listed,
  toolOffer, toolPaid, toolAgain, toolWrong, missing, plan, resources: resources.map((resource) => resource.uri), stored, page: page.slice(0, 14),
}));
