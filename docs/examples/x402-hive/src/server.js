/** A seller: prices in HBD or HIVE for the SDK's own paywall, with a gateway as its facilitator. */

import { DECIMALS, SCHEME, parseLedgerAmount } from './offer.js';

/** @typedef {import('@x402/core/types').SchemeNetworkServer} SchemeNetworkServer */
/** @typedef {import('@x402/core/types').PaymentRequirements} PaymentRequirements */

/** @implements {SchemeNetworkServer} */
export class ExactHiveServer {
  scheme = SCHEME;
  defaultAssetTransferMethod = 'default';
  // A transfer cannot be taken back, and a signed one can be made void until it is broadcast: settle first, then work.
  paymentFlows = { default: { supported: /** @type {const} */ (['upfront', 'authorization']), default: /** @type {const} */ ('upfront') } };

  /** @param {string} asset */
  getAssetDecimals(asset) {
    return asset === 'HBD' || asset === 'HIVE' ? DECIMALS : undefined;
  }

  /**
   * Reads `0.050 HBD`, `{ amount: "50", asset: "HBD" }`, or dollars (`$0.05`, `0.05`), which are HBD.
   *
   * @param {string | number | { amount: string, asset: string }} price
   */
  async parsePrice(price) {
    if (typeof price === 'object') {
      if (!this.getAssetDecimals(price.asset)) throw new Error(`the asset ${price.asset} is not on Hive`);
      if (!/^[1-9][0-9]*$/.test(price.amount)) throw new Error(`${price.amount} is not a number of smallest units`);
      return { amount: price.amount, asset: price.asset };
    }
    const dollars = /^\$?([0-9]+)(?:\.([0-9]{1,3}))?$/.exec(String(price).trim());
    const text = dollars ? `${BigInt(dollars[1])}.${(dollars[2] ?? '').padEnd(DECIMALS, '0')} HBD` : price;
    const { units, currency } = parseLedgerAmount(text);
    if (units === 0n) throw new Error('a price of nothing');
    return { amount: units.toString(), asset: currency };
  }

  /** @param {PaymentRequirements} requirements */
  async enhancePaymentRequirements(requirements) {
    return requirements;
  }
}
