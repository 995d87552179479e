// Sends requests, and repeats those that are safe to repeat.

import { ConnectionError, retryAfter } from './errors.js';

/** A retry that is about to happen. */
export interface Retry {
  /** The number of the attempt that failed, from 1. */
  readonly attempt: number;
  /** The wait before the next attempt. */
  readonly delayMs: number;
  /** The status of the response; undefined if none arrived. */
  readonly status: number | undefined;
  readonly method: string;
  readonly url: string;
}

/** How requests are sent. */
export interface TransportOptions {
  /** The time limit of one attempt. Default: 30 seconds. */
  readonly timeoutMs?: number | undefined;
  /** How often a request is repeated. Default: 3. */
  readonly maxRetries?: number | undefined;
  /** The longest `Retry-After` that is waited for; a longer one is an error at once. Default: 60 seconds. */
  readonly maxRetryAfterMs?: number | undefined;
  /** Called before each wait. */
  readonly onRetry?: ((retry: Retry) => void) | undefined;
  /** Replaces the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch | undefined;
}

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 8_000;
const WITHOUT_BODY = [204, 205, 304];

/**
 * Returns a `fetch` that repeats requests. Reads, and requests with an `Idempotency-Key`, are repeated if no response
 * arrived and after 408, 429 and 5xx. Other requests are repeated after 429 only, because the gateway has not executed
 * them.
 */
export function retrying(options: TransportOptions): typeof globalThis.fetch {
  const maxRetries = options.maxRetries ?? 3;
  return async (input, init) => {
    const request = new Request(input, init);
    for (let attempt = 1; ; attempt += 1) {
      const outcome = await send(request.clone(), options);
      const delayMs = attempt > maxRetries ? undefined : delay(request, outcome, attempt, options);
      if (delayMs === undefined) {
        if (outcome instanceof Response) return outcome;
        throw outcome;
      }
      const status = outcome instanceof Response ? outcome.status : undefined;
      options.onRetry?.({ attempt, delayMs, status, method: request.method, url: request.url });
      await sleep(delayMs, request.signal);
    }
  };
}

/** Sends a request once and reads the whole response. */
async function send(request: Request, options: TransportOptions): Promise<Response | ConnectionError> {
  const timeoutMs = options.timeoutMs ?? 30_000;
  const signal = AbortSignal.any([request.signal, AbortSignal.timeout(timeoutMs)]);
  try {
    const response = await (options.fetch ?? globalThis.fetch)(request, { signal });
    const body = await response.arrayBuffer();
    const { status, statusText, headers } = response;
    return new Response(WITHOUT_BODY.includes(status) ? null : body, { status, statusText, headers });
  } catch (cause) {
    // The caller's own abort is reported as such.
    request.signal.throwIfAborted();
    const { origin, pathname } = new URL(request.url);
    return new ConnectionError(`${request.method} ${origin}${pathname}: ${reasonOf(cause)}`, { cause });
  }
}

/** Returns the wait before a repeat, or nothing if the outcome is final. */
function delay(
  request: Request,
  outcome: Response | ConnectionError,
  attempt: number,
  options: TransportOptions,
): number | undefined {
  const isSafe = request.method !== 'POST' || request.headers.has('idempotency-key');
  const status = outcome instanceof Response ? outcome.status : 0;
  const isTransient = status === 0 || status === 408 || status >= 500;
  if (!(status === 429 || (isSafe && isTransient))) return undefined;
  const wanted = outcome instanceof Response ? retryAfter(outcome.headers) : undefined;
  if (wanted === undefined) return backoff(attempt);
  const wantedMs = wanted * 1_000;
  return wantedMs > (options.maxRetryAfterMs ?? 60_000) ? undefined : wantedMs;
}

/** Returns the wait after the given number of failures: it doubles, up to 8 seconds, less up to a half by chance. */
export function backoff(failures: number): number {
  const full = Math.min(LONGEST_DELAY_MS, FIRST_DELAY_MS * 2 ** (failures - 1));
  return full * (1 - Math.random() / 2);
}

/** Waits, unless the signal aborts. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', abort);
      resolve();
    }, ms);
    signal?.addEventListener('abort', abort, { once: true });
  });
}

/** Returns the innermost message of a failure. */
function reasonOf(failure: unknown): string {
  if (!(failure instanceof Error)) return String(failure);
  return failure.cause instanceof Error && failure.cause.message ? failure.cause.message : failure.message;
}
