/** A payer: signs one transaction for an offer, and never a second one for the same session while the first lives. */

import { randomBytes } from 'node:crypto';

import { PrivateKey, Transaction } from 'hive-tx';

import { anchorOf } from './ledger.js';
import { DECIMALS, NETWORK, OfferError, SCHEME, transfersOf } from './offer.js';

/** @typedef {import('@x402/core/types').PaymentRequirements} PaymentRequirements */
/** @typedef {import('@x402/core/types').PaymentPayloadContext} PaymentPayloadContext */
/** @typedef {import('@x402/core/types').SchemeNetworkClient} SchemeNetworkClient */

/**
 * @typedef {object} Options
 * @property {string} account who pays
 * @property {string | PrivateKey} key the account's private active key (WIF); it is never logged and never sent
 * @property {string | string[]} nodes ledger nodes (JSON-RPC), tried in order
 * @property {number} [expiresInSeconds] how long the signed payment can happen at all; 60 if not given
 */

/** @implements {SchemeNetworkClient} */
export class ExactHiveClient {
  scheme = SCHEME;
  #account;
  #key;
  #nodes;
  #expiresInSeconds;
  /** @type {Map<string, { payload: Promise<Record<string, unknown>>, until: number }>} */
  #signed = new Map();

  /** @param {Options} options */
  constructor({ account, key, nodes, expiresInSeconds = 60 }) {
    this.#account = account;
    this.#key = typeof key === 'string' ? PrivateKey.from(key) : key;
    this.#nodes = [nodes].flat();
    this.#expiresInSeconds = expiresInSeconds;
  }

  /**
   * Tells the SDK which asset its dollar cap counts in. HBD is pegged to the dollar; HIVE is not, so the SDK refuses it
   * until it is allowed by `setSpendControls`.
   *
   * @param {string} asset
   * @param {string} network
   */
  findDefaultAsset(asset, network) {
    return asset === 'HBD' && network === NETWORK ? { asset: 'HBD', symbol: 'HBD', decimals: DECIMALS } : undefined;
  }

  /**
   * Signs a payment, or returns the one that was signed for the same session and is still alive: whoever pays a session
   * again must hand in the same bytes, or could pay twice.
   *
   * @param {number} x402Version
   * @param {PaymentRequirements} offer
   * @param {PaymentPayloadContext} [context]
   */
  async createPaymentPayload(x402Version, offer, context) {
    if (x402Version !== 2) throw new OfferError(`version ${x402Version} is not spoken here`);
    const max = context?.maxAmountPerPayment;
    // The SDK has filtered already; a cap is worth checking where the signature is made.
    if (max != null && BigInt(offer.amount) > BigInt(max)) {
      throw new OfferError(`${offer.amount} is above the cap of ${max}`);
    }
    const session = offer.extra?.memo ?? offer.extra?.sessionId;
    if (session == null) return { x402Version, payload: await this.#sign(offer) };
    const key = JSON.stringify([session, offer.payTo, offer.amount, offer.asset, offer.extra?.feeAmount]);
    for (const [old, { until }] of this.#signed) if (until <= Date.now()) this.#signed.delete(old);
    let kept = this.#signed.get(key);
    if (!kept) {
      // Kept before it is signed, so that two calls at once sign once.
      kept = { payload: this.#sign(offer), until: Date.now() + this.#expiresInSeconds * 1_000 };
      kept.payload.catch(() => this.#signed.delete(key));
      this.#signed.set(key, kept);
    }
    return { x402Version, payload: await kept.payload };
  }

  /** @param {PaymentRequirements} offer */
  async #sign(offer) {
    const nonce = randomBytes(16).toString('hex');
    const transfers = transfersOf(offer, this.#account, nonce);
    const anchor = await anchorOf(this.#nodes);
    const transaction = new Transaction({
      transaction: {
        ref_block_num: anchor.refBlockNum,
        ref_block_prefix: anchor.refBlockPrefix,
        expiration: new Date(anchor.headTime + this.#expiresInSeconds * 1_000).toISOString().slice(0, 19),
        operations: transfers.map((transfer) => ['transfer', transfer]),
        extensions: [],
        signatures: [],
      },
    });
    // hive-tx signs the legacy digest, which a gateway tries first.
    return { signedTransaction: transaction.sign(this.#key), nonce };
  }
}

/**
 * Registers a payer on Hive with an x402 client, and returns the client.
 *
 * @template {{ register(network: string, scheme: SchemeNetworkClient): unknown }} C
 * @param {C} client
 * @param {Options} options
 * @returns {C}
 */
export function registerHive(client, options) {
  client.register(NETWORK, new ExactHiveClient(options));
  return client;
}
