// Payments: create, read, wait for, cancel, resolve and refund them.

import * as api from '../core/sdk.gen.js';
import type {
  CreatePayment,
  Created,
  CurrentStatus,
  FeeRate,
  Payment,
  PaymentPage,
  PaymentsListData,
  PaymentsPrepareRefundData,
  RefundPlan,
  Resolve,
  Transfer,
  Volume,
} from '../core/types.gen.js';
import { WaitTimeoutError } from '../errors.js';
import { body, items, Resource, type CallOptions, type IdempotentOptions } from '../resource.js';
import { sleep } from '../transport.js';

/** Filters of a list of payments. */
export type PaymentFilters = NonNullable<PaymentsListData['query']>;

/** Options of `waitFor`. */
export interface WaitOptions extends CallOptions {
  /** How long to wait. Default: 5 minutes. */
  readonly timeoutMs?: number | undefined;
}

const FINAL: readonly string[] = ['completed', 'failed', 'user_cancelled', 'system_cancelled'];
const FIRST_POLL_MS = 500;
const LONGEST_POLL_MS = 5_000;

export class Payments extends Resource {
  /** Creates a payment. Store its id with the order, then send the customer to `slugUrl`. */
  create(payment: CreatePayment, options?: IdempotentOptions): Promise<Created> {
    return body(api.paymentsCreate({ ...this.once(options), body: payment }));
  }

  /** Returns a payment with its transfers and exceptions. */
  get(id: string, options?: CallOptions): Promise<Payment> {
    return body(api.paymentsGet({ ...this.with(options), path: { id } }));
  }

  /** Returns only the status of a payment. */
  status(id: string, options?: CallOptions): Promise<CurrentStatus> {
    return body(api.paymentsGetStatus({ ...this.with(options), path: { id } }));
  }

  /** Returns one page of payments, newest first. */
  list(filters?: PaymentFilters, options?: CallOptions): Promise<PaymentPage> {
    return body(api.paymentsList({ ...this.with(options), query: filters ?? {} }));
  }

  /** Returns every payment that matches, newest first; reads page after page. */
  listAll(filters?: Omit<PaymentFilters, 'page' | 'cursor'>, options?: CallOptions): AsyncGenerator<Payment, void> {
    return items(async (cursor) => {
      const page = await this.list({ limit: 100, ...filters, ...(cursor !== undefined && { cursor }) }, options);
      return { items: page.data, next: page.nextCursor };
    });
  }

  /**
   * Waits until the status of a payment is final, and returns the payment. To react to payments in a shop, use webhooks
   * and `events.follow`, which do not depend on a running process.
   */
  async waitFor(id: string, options: WaitOptions = {}): Promise<Payment> {
    const deadline = performance.now() + (options.timeoutMs ?? 300_000);
    for (let pollMs = FIRST_POLL_MS; ; pollMs = Math.min(LONGEST_POLL_MS, pollMs * 1.5)) {
      const { status } = await this.status(id, options);
      if (FINAL.includes(status)) return this.get(id, options);
      const leftMs = deadline - performance.now();
      if (leftMs <= 0) throw new WaitTimeoutError(id, status);
      await sleep(Math.min(pollMs, leftMs), options.signal);
    }
  }

  /** Requests the cancellation of a pending payment. An event follows when block time has decided it. */
  cancel(id: string, options?: CallOptions): Promise<Payment> {
    return body(api.paymentsCancel({ ...this.with(options), path: { id } }));
  }

  /** Returns every transfer that names a payment, newest first. */
  transfers(id: string, options?: CallOptions): AsyncGenerator<Transfer, void> {
    return items(async (cursor) => {
      const query = { limit: 100, ...(cursor !== undefined && { cursor }) };
      const page = await body(api.paymentsListTransfers({ ...this.with(options), path: { id }, query }));
      return { items: page.data, next: page.nextCursor };
    });
  }

  /** Records the decision about the exceptions of a payment. It moves no money. */
  resolve(id: string, decision: Resolve, options?: CallOptions): Promise<Payment> {
    return body(api.paymentsResolve({ ...this.with(options), path: { id }, body: decision }));
  }

  /** Returns the transfer that refunds a payment, for a wallet to sign. */
  prepareRefund(
    id: string,
    refund?: NonNullable<PaymentsPrepareRefundData['query']>,
    options?: CallOptions,
  ): Promise<RefundPlan> {
    return body(api.paymentsPrepareRefund({ ...this.with(options), path: { id }, query: refund ?? {} }));
  }

  /** Deletes the metadata of a finished payment for good. */
  deleteMetadata(id: string, options?: CallOptions): Promise<Payment> {
    return body(api.paymentsDeleteMetadata({ ...this.with(options), path: { id } }));
  }

  /** Deletes the note of a decision for good. */
  deleteNote(id: string, options?: CallOptions): Promise<Payment> {
    return body(api.paymentsDeleteNote({ ...this.with(options), path: { id } }));
  }

  /** Returns the fee in percent that new payments get. */
  feeRate(options?: CallOptions): Promise<FeeRate> {
    return body(api.paymentsFeeRate(this.with(options)));
  }

  /** Returns what was created and completed on each of the last days (default: 30). */
  volume(days?: number, options?: CallOptions): Promise<Volume> {
    const query = days === undefined ? {} : { days: String(days) };
    return body(api.paymentsVolume({ ...this.with(options), query }));
  }
}
