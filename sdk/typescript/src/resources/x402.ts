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
   * Checks a signed payment, broadcasts it and waits for the ledger. A refusal has `success: false`. Give one
   * idempotency key for each request that your server received.
   */
  settle(payment: X402Request, options?: IdempotentOptions): Promise<Settled> {
    return body(api.x402Settle({ ...this.once(options), body: payment }));
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
