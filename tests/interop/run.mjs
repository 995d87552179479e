// Pays once, with one of the clients that wallets and shops use, and prints {"txId": "…"} as JSON.
//
//   node run.mjs --client dhive|hive-tx|wax --rpc URL --from NAME --wif WIF --to NAME --amount "1.000 HBD" --memo M
//
// The clients are unmodified and have only been told the node's address. The key may also come as HIVETILL_KEY.

import { parseArgs } from 'node:util';
import { pathToFileURL } from 'node:url';

/** Signs in the legacy packing and broadcasts through condenser_api. */
async function dhive({ rpc, from, wif, to, amount, memo }) {
  const { Client, PrivateKey } = await import('@hiveio/dhive');
  const client = new Client([rpc], { timeout: 10_000 });
  const result = await client.broadcast.transfer({ from, to, amount, memo }, PrivateKey.fromString(wif));
  return result.id;
}

/** Signs in the legacy packing; asks the node for the transaction's status afterwards. */
async function hiveTx({ rpc, from, wif, to, amount, memo }) {
  const { Transaction, PrivateKey, config } = await import('hive-tx');
  config.nodes = [rpc];
  const transaction = new Transaction();
  await transaction.addOperation('transfer', { from, to, amount, memo });
  transaction.sign(PrivateKey.from(wif));
  const result = await transaction.broadcast(false);
  return result.tx_id;
}

/** Builds with hived's own code and signs its digest, which is the HF26 one; the key itself is dhive's. */
async function wax({ rpc, from, wif, to, amount, memo }) {
  const [{ createHiveChain }, { PrivateKey }] = await Promise.all([import('@hiveio/wax'), import('@hiveio/dhive')]);
  const chain = await createHiveChain({ apiEndpoint: rpc });
  const transaction = await chain.createTransaction();
  const [number, currency] = amount.split(' ');
  const units = number.replace('.', '');
  const asset = currency === 'HBD' ? chain.hbdSatoshis(units) : chain.hiveSatoshis(units);
  transaction.pushOperation({ transfer_operation: { from, to, amount: asset, memo } });
  transaction.validate();
  const digest = Buffer.from(transaction.sigDigest, 'hex');
  transaction.addSignature(PrivateKey.fromString(wif).sign(digest).toString());
  await chain.broadcast(transaction);
  return transaction.id;
}

export const clients = { dhive, 'hive-tx': hiveTx, wax };

/** Pays with one client and returns the transaction's id. */
export async function pay(client, payment) {
  const run = clients[client];
  if (!run) throw new Error(`--client is one of ${Object.keys(clients).join(', ')}`);
  return { client, txId: await run(payment) };
}

async function main() {
  const text = { type: 'string' };
  const { values } = parseArgs({
    options: {
      client: text, rpc: text, from: text, wif: text, to: text, amount: text, memo: { ...text, default: '' },
    },
  });
  values.wif ??= process.env.HIVETILL_KEY;
  for (const name of ['client', 'rpc', 'from', 'wif', 'to', 'amount']) {
    if (!values[name]) throw new Error(`--${name} is missing`);
  }
  console.log(JSON.stringify(await pay(values.client, values)));
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  main().then(
    () => process.exit(0),
    (error) => {
      console.error(error);
      process.exit(1);
    },
  );
}
