/** Hands in the same payment again while nobody knows what became of it. Put it under `wrapFetchWithPayment`. */

const PAYMENT = 'payment-signature';
const RECEIPT = 'payment-response';
const LONGEST_WAIT_MS = 10_000;

/**
 * Wraps a fetch: a request that carries a payment is repeated, byte for byte, while the answer is `settlement_pending`,
 * a 409 of a payment in flight, a 429 or 5xx, or no answer at all, until the signed transaction has expired. Requests
 * without a payment pass through.
 *
 * The SDK itself never does this: it hands in once, and a hook that says `recovered` makes it sign again.
 *
 * @param {typeof fetch} fetch
 * @param {{ waitMs?: number }} [options] `waitMs`: the wait where the server names none
 * @returns {typeof globalThis.fetch}
 */
export function retrySamePayment(fetch, { waitMs = 1_000 } = {}) {
  return async (input, init) => {
    const request = new Request(input, init);
    const header = request.headers.get(PAYMENT);
    if (!header) return fetch(request);
    const deadline = expirationOf(header);
    for (;;) {
      let response;
      let failure;
      try {
        response = await fetch(request.clone());
      } catch (error) {
        failure = error;
      }
      const wait = response ? await waitBefore(response, waitMs) : waitMs;
      if (wait === undefined || Date.now() + wait >= deadline) {
        if (response) return response;
        throw failure;
      }
      await response?.body?.cancel();
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  };
}

/** @param {string} header */
function expirationOf(header) {
  try {
    const { payload } = JSON.parse(Buffer.from(header, 'base64').toString('utf8'));
    const expiration = Date.parse(`${payload.signedTransaction.expiration}Z`);
    return Number.isNaN(expiration) ? 0 : expiration;
  } catch {
    // Not a payment of ours: hand it in once.
    return 0;
  }
}

/**
 * Returns how long to wait before the next try, or undefined where the answer is one.
 *
 * @param {Response} response
 * @param {number} waitMs
 */
async function waitBefore(response, waitMs) {
  if (!(await isUndecided(response))) return undefined;
  const seconds = Number(response.headers.get('retry-after') ?? NaN);
  return Number.isFinite(seconds) ? Math.min(Math.max(seconds * 1_000, waitMs), LONGEST_WAIT_MS) : waitMs;
}

/** @param {Response} response */
async function isUndecided(response) {
  if ([408, 425, 429].includes(response.status) || response.status >= 500) return true;
  if (response.status === 402) {
    const receipt = response.headers.get(RECEIPT);
    try {
      return JSON.parse(Buffer.from(receipt ?? '', 'base64').toString('utf8')).errorReason === 'settlement_pending';
    } catch {
      return false;
    }
  }
  if (response.status === 409) {
    const body = await response.clone().json().catch(() => ({}));
    return body.status === 'processing' || body.status === 'pending';
  }
  return false;
}
