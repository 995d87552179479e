// Pays a tool of an MCP server with the official TypeScript packages of MCP and x402. Prints what it saw as one line of
// JSON.
//
//   HIVETILL_RPC=… HIVETILL_ACCOUNT=alice HIVETILL_KEY=5… node tool.mjs MCP_URL TOOL

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { x402Client } from '@x402/core/client';
import { parsePaymentPayload, parsePaymentRequired } from '@x402/core/schemas';

import { registerHive } from '../../../docs/examples/x402-hive/src/client.js';

const { HIVETILL_RPC: nodes, HIVETILL_ACCOUNT: account, HIVETILL_KEY: key } = process.env;
const [url, tool] = process.argv.slice(2);

const client = new Client({ name: 'payer', version: '1.0.0' });
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const { tools } = await client.listTools();
const payer = registerHive(new x402Client(), { account, key, nodes });

async function call(payment) {
  const meta = payment && { 'x402/payment': payment };
  const result = await client.callTool({ name: tool, arguments: { topic: 'Mugs' }, _meta: meta });
  const { content, structuredContent, isError = false } = result;
  return { content, structuredContent, isError, receipt: result._meta?.['x402/payment-response'] };
}

const required = await call();
const parsed = parsePaymentRequired(required.structuredContent);
const payment = await payer.createPaymentPayload(required.structuredContent);
const isPayment = parsePaymentPayload(payment).success;
const paid = await call(payment);
const used = await call(payment);
const invalid = await call({ ...payment, payload: { ...payment.payload, nonce: '' } });
await client.close();
console.log(JSON.stringify({
  tools: tools.map(({ name }) => name), required, isRequired: parsed.success, isPayment, paid, used, invalid,
}));
