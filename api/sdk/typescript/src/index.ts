// A client of the Hivetill payment gateway.

import { Connection, type ClientOptions } from './resource.js';
import { Events } from './resources/events.js';
import { ApiKeys, Merchants, WebhookEndpoints } from './resources/merchants.js';
import { Payments } from './resources/payments.js';
import { UnmatchedTransfers } from './resources/unmatched.js';
import { X402 } from './resources/x402.js';

/** A client of one gateway, for one API key. */
export class Hivetill {
  readonly payments: Payments;
  readonly events: Events;
  readonly merchants: Merchants;
  readonly apiKeys: ApiKeys;
  readonly webhookEndpoints: WebhookEndpoints;
  readonly unmatched: UnmatchedTransfers;
  readonly x402: X402;
  /** The client of the generated core: `paymentsExport({ client: hivetill.core })`. Its calls are retried, too. */
  readonly core: Connection['core'];

  constructor(options: ClientOptions) {
    const connection = new Connection(options);
    this.payments = new Payments(connection);
    this.events = new Events(connection);
    this.merchants = new Merchants(connection);
    this.apiKeys = new ApiKeys(connection);
    this.webhookEndpoints = new WebhookEndpoints(connection);
    this.unmatched = new UnmatchedTransfers(connection);
    this.x402 = new X402(connection);
    this.core = connection.core;
  }
}

export * from './errors.js';
export * from './webhooks.js';
export type * from './core/types.gen.js';
export type { CallOptions, ClientOptions, IdempotentOptions } from './resource.js';
export type { Disconnect, Followed, FollowOptions } from './resources/events.js';
export type { DeliveryFilters } from './resources/merchants.js';
export type { PaymentFilters, WaitOptions } from './resources/payments.js';
export type { UnmatchedFilters } from './resources/unmatched.js';
export type { Retry, TransportOptions } from './transport.js';
