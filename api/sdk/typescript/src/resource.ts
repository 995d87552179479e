// What the resources share: the connection, the result of a call, and lists of several pages.

import { createClient, createConfig, type Client as Core } from './core/client/index.js';
import { ApiError, HivetillError } from './errors.js';
import { retrying, type TransportOptions } from './transport.js';

/** The connection to a gateway. */
export interface ClientOptions extends TransportOptions {
  /** The URL of the gateway, such as `https://pay.example.com`. */
  readonly baseUrl: string;
  /** The merchant's API key. Registration, `x402.verify` and the like need none. */
  readonly apiKey?: string | undefined;
}

/** Options of one call. */
export interface CallOptions {
  /** Ends the call. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of a call that the gateway executes once per key. */
export interface IdempotentOptions extends CallOptions {
  /**
   * A key of your own, such as the id of the order and the number of the attempt: a repeat of the call, also by another
   * process, has the same result. Default: a new key for each call, which the retries of this call share.
   */
  readonly idempotencyKey?: string | undefined;
}

/** The connection that the resources share. */
export class Connection {
  readonly core: Core;
  readonly baseUrl: string;
  readonly apiKey: string | undefined;
  readonly fetch: typeof globalThis.fetch;

  constructor(options: ClientOptions) {
    const url = new URL(options.baseUrl);
    if (url.protocol !== 'https:' && url.protocol !== 'http:') throw new HivetillError('baseUrl is no http(s) URL');
    this.baseUrl = url.href.replace(/\/+$/, '');
    // An error of `fetch` about a header that cannot be sent would print the key.
    if (options.apiKey !== undefined && !/^[!-~]+$/.test(options.apiKey)) {
      throw new HivetillError('apiKey is empty, or contains a space or a line break');
    }
    this.apiKey = options.apiKey;
    this.fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
    const { baseUrl } = this;
    this.core = createClient(
      createConfig({ baseUrl, ...(this.apiKey ? { auth: this.apiKey } : {}), fetch: retrying(options) }),
    );
  }
}

/** The base class of the resources. */
export class Resource {
  constructor(protected readonly connection: Connection) {}

  /** Returns the options that every call of the generated core gets. */
  protected with(options: CallOptions | undefined): { client: Core; signal?: AbortSignal } {
    return { client: this.connection.core, ...(options?.signal && { signal: options.signal }) };
  }

  /** Returns the same with an idempotency key: the caller's or a new one. */
  protected once(options: IdempotentOptions | undefined): {
    client: Core;
    signal?: AbortSignal;
    headers: { 'Idempotency-Key': string };
  } {
    const key = options?.idempotencyKey ?? crypto.randomUUID();
    return { ...this.with(options), headers: { 'Idempotency-Key': key } };
  }
}

/** What a function of the generated core returns. */
interface Result<T> {
  readonly data?: T | undefined;
  readonly error?: unknown;
  readonly response?: Response | undefined;
}

/** Returns the body of a response, or throws its error. */
export async function body<T>(call: Promise<Result<T>>): Promise<T> {
  const { data, error, response } = await call;
  if (response === undefined) throw error;
  if (!response.ok) throw ApiError.of(response.status, error, response.headers);
  if (data === undefined) throw new HivetillError(`${response.url}: the response has no body`);
  return data;
}

/** A page of a list. */
interface Page<T> {
  readonly items: readonly T[];
  readonly next: string | null | undefined;
}

/** Returns the items of all pages, each of which is read when it is needed. */
export async function* items<T>(read: (cursor: string | undefined) => Promise<Page<T>>): AsyncGenerator<T, void> {
  let cursor: string | undefined;
  do {
    const page = await read(cursor);
    yield* page.items;
    cursor = page.next || undefined;
  } while (cursor !== undefined);
}
