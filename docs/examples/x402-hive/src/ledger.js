/** Where the ledger stands: what a new transaction refers to. */

const TIMEOUT_MS = 10_000;

/**
 * @param {string} node
 * @param {string} method
 * @param {unknown} params
 */
async function call(node, method, params) {
  const response = await fetch(node, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  const { result, error } = await response.json();
  if (error) throw new Error(error.message);
  return result;
}

/**
 * Returns a recent block and the head's time, from the first node that answers. The head block would do; one that no
 * fork can take back does better.
 *
 * @param {string[]} nodes
 */
export async function anchorOf(nodes) {
  const failures = [];
  for (const node of nodes) {
    try {
      const head = await call(node, 'database_api.get_dynamic_global_properties', {});
      const number = head.last_irreversible_block_num;
      const block = number > 0 ? await call(node, 'block_api.get_block_header', { block_num: number + 1 }) : undefined;
      const id = block?.header?.previous ?? head.head_block_id;
      return {
        headTime: Date.parse(`${head.time}Z`),
        refBlockNum: parseInt(id.slice(0, 8), 16) & 0xffff,
        refBlockPrefix: Buffer.from(id, 'hex').readUInt32LE(4),
      };
    } catch (error) {
      failures.push(`${new URL(node).host}: ${error instanceof Error ? error.message : error}`);
    }
  }
  throw new Error(`no ledger node answers: ${failures.join('; ') || 'none is set'}`);
}
