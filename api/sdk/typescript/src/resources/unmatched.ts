// Transfers that match no payment.

import * as api from '../core/sdk.gen.js';
import type { Candidates, Payment, Unmatched, UnmatchedListData } from '../core/types.gen.js';
import { body, items, Resource, type CallOptions } from '../resource.js';

/** Filters of a list of unmatched transfers. */
export type UnmatchedFilters = Omit<NonNullable<UnmatchedListData['query']>, 'cursor'>;

export class UnmatchedTransfers extends Resource {
  /** Returns every unmatched transfer that matches, newest first; reads page after page. */
  listAll(filters?: UnmatchedFilters, options?: CallOptions): AsyncGenerator<Unmatched, void> {
    return items(async (cursor) => {
      const query = { limit: 100, ...filters, ...(cursor !== undefined && { cursor }) };
      const page = await body(api.unmatchedList({ ...this.with(options), query }));
      return { items: page.data, next: page.nextCursor };
    });
  }

  /** Returns an unmatched transfer. */
  get(id: string, options?: CallOptions): Promise<Unmatched> {
    return body(api.unmatchedGet({ ...this.with(options), path: { id } }));
  }

  /** Returns the payments that a transfer may belong to. */
  async candidates(id: string, options?: CallOptions): Promise<Candidates['data']> {
    return (await body(api.unmatchedCandidates({ ...this.with(options), path: { id } }))).data;
  }

  /** Assigns a transfer to a payment, as if its memo had named it. */
  assign(id: string, paymentId: string, options?: CallOptions): Promise<Payment> {
    return body(api.unmatchedAssign({ ...this.with(options), path: { id }, body: { paymentId } }));
  }

  /** Marks a transfer as ignored. */
  ignore(id: string, note?: string, options?: CallOptions): Promise<Unmatched> {
    const ignored = note === undefined ? {} : { note };
    return body(api.unmatchedIgnore({ ...this.with(options), path: { id }, body: ignored }));
  }
}
