// The x402 facilitator: verifies and settles signed payments.

import * as api from '../core/sdk.gen.js';
import type { Sale, Settled, Supported, Verified, X402Health, X402Request } from '../core/types.gen.js';
import { body, items, Resource, type CallOptions, type IdempotentOptions } from '../resource.js';

export class X402 extends Resource {
  /** Returns the kinds of payment that are accepted. */
  supported(options?: CallOptions): Promise<Supported> {
    return body(api.x402Supported(this.with(options)));
  }

  /** Returns the health of the facilitator. */
  health(options?: CallOptions): Promise<X402Health> {
    return body(api.x402Health(this.with(options)));
  }

  /** Checks a signed payment without broadcasting it. A refusal has `isValid: false`. */
  verify(payment: X402Request, options?: CallOptions): Promise<Verified> {
    return body(api.x402Verify({ ...this.with(options), body: payment }));
  }

  /**
   * Checks a signed payment, broadcasts it and waits for the ledger. A refusal has `success: false`. For a payment of
   * your own server (`paymentRequirements`) give one idempotency key for each request that the server received. A payment
   * of this gateway (`sessionId`) takes none: the same payment again returns the same receipt.
   */
  settle(payment: X402Request, options?: IdempotentOptions): Promise<Settled> {
    const request = payment.sessionId === undefined ? this.once(options) : this.with(options);
    return body(api.x402Settle({ ...request, body: payment }));
  }

  /** Returns every sale of the merchant's own resources, newest first; reads page after page. */
  sales(options?: CallOptions): AsyncGenerator<Sale, void> {
    return items(async (cursor) => {
      const query = { limit: 100, ...(cursor !== undefined && { cursor }) };
      const page = await body(api.x402Sales({ ...this.with(options), query }));
      return { items: page.data, next: page.nextCursor };
    });
  }
}
