/** What an offer asks for: read with distrust, before anything is signed. */

/** @typedef {import('@x402/core/types').PaymentRequirements} PaymentRequirements */
/** @typedef {{ from: string, to: string, amount: string, memo: string }} Transfer */

export const SCHEME = 'exact';
export const NETWORK = /** @type {const} */ ('hive:mainnet');

/** Both currencies have 3 decimals: an atomic amount is in thousandths. */
export const DECIMALS = 3;
const CURRENCIES = ['HBD', 'HIVE'];
const MAX_UNITS = 2n ** 63n - 1n;

const ACCOUNT = /^(?=.{3,16}$)[a-z][a-z0-9-]+[a-z0-9](\.[a-z][a-z0-9-]+[a-z0-9])*$/;
const LEDGER_AMOUNT = /^(0|[1-9][0-9]{0,12})\.([0-9]{3}) (HIVE|HBD)$/;

/** An offer that is not accepted; nothing was signed for it. */
export class OfferError extends Error {
  /** @param {string} message */
  constructor(message) {
    super(`x402 offer refused: ${message}`);
    this.name = 'OfferError';
  }
}

/**
 * Writes smallest units as the ledger does: 10500n HBD is `10.500 HBD`.
 *
 * @param {bigint} units
 * @param {string} currency
 */
export function ledgerAmount(units, currency) {
  const digits = units.toString().padStart(DECIMALS + 1, '0');
  return `${digits.slice(0, -DECIMALS)}.${digits.slice(-DECIMALS)} ${currency}`;
}

/**
 * Reads `10.500 HBD`, strictly.
 *
 * @param {unknown} text
 * @returns {{ units: bigint, currency: string }}
 */
export function parseLedgerAmount(text) {
  const match = typeof text === 'string' ? LEDGER_AMOUNT.exec(text) : null;
  if (!match) throw new OfferError(`${JSON.stringify(text)} is no amount`);
  return { units: BigInt(match[1] + match[2]), currency: match[3] };
}

/**
 * Returns the transfers that pay an offer: one, or two where the fee is collected with the payment.
 *
 * @param {PaymentRequirements} offer
 * @param {string} payer
 * @param {string} nonce 32 hex characters; the memo where the offer names no session
 * @returns {Transfer[]}
 */
export function transfersOf(offer, payer, nonce) {
  if (offer.scheme !== SCHEME || offer.network !== NETWORK) {
    throw new OfferError(`${offer.scheme} on ${offer.network} is not ${SCHEME} on ${NETWORK}`);
  }
  if (!CURRENCIES.includes(offer.asset)) throw new OfferError(`the asset ${JSON.stringify(offer.asset)} is not on Hive`);
  if (typeof offer.amount !== 'string' || !/^[1-9][0-9]{0,18}$/.test(offer.amount)) {
    throw new OfferError(`the amount ${JSON.stringify(offer.amount)} is not a number of smallest units`);
  }
  const total = BigInt(offer.amount);
  if (total > MAX_UNITS) throw new OfferError('the amount is more than the ledger can move');
  const account = (/** @type {unknown} */ name, /** @type {string} */ what) => {
    if (typeof name !== 'string' || !ACCOUNT.test(name)) throw new OfferError(`${what} is no account`);
    if (name === payer) throw new OfferError(`${payer} would pay itself`);
    return name;
  };
  const to = account(offer.payTo, 'payTo');
  const extra = offer.extra ?? {};
  const memo = memoOf(extra, nonce);
  if (extra.feeAccount == null && extra.feeAmount == null && extra.netAmount == null) {
    return [{ from: payer, to, amount: ledgerAmount(total, offer.asset), memo }];
  }
  const collector = account(extra.feeAccount, 'extra.feeAccount');
  const [net, fee] = [parseLedgerAmount(extra.netAmount), parseLedgerAmount(extra.feeAmount)];
  if (collector === to || net.currency !== offer.asset || fee.currency !== offer.asset || !net.units || !fee.units) {
    throw new OfferError('net and fee are not two transfers of one currency');
  }
  if (net.units + fee.units !== total) throw new OfferError('net and fee do not add up to the amount');
  const feeMemo = extra.feeMemo ?? `fee-${extra.sessionId}`;
  if (typeof feeMemo !== 'string') throw new OfferError('extra.feeMemo is no text');
  return [
    { from: payer, to, amount: ledgerAmount(net.units, net.currency), memo },
    { from: payer, to: collector, amount: ledgerAmount(fee.units, fee.currency), memo: feeMemo },
  ];
}

/** @param {Record<string, unknown>} extra @param {string} nonce */
function memoOf(extra, nonce) {
  const { sessionId, memo } = extra;
  if (memo == null) return sessionId == null ? `x402:${nonce}` : `pos-${sessionId}`;
  if (typeof memo !== 'string' || memo.startsWith('#')) throw new OfferError('extra.memo is no plain text');
  if (sessionId != null && memo !== `pos-${sessionId}`) throw new OfferError('extra.memo names another session');
  return memo;
}
