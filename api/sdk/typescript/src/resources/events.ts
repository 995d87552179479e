// Events: the list, and the live stream that resumes after a lost connection.

import * as api from '../core/sdk.gen.js';
import type { Event, EventList, EventsListData } from '../core/types.gen.js';
import { ApiError, ConnectionError, HivetillError } from '../errors.js';
import { body, Resource, type CallOptions } from '../resource.js';
import { messages } from '../sse.js';
import { backoff, sleep } from '../transport.js';

/** An event, and the cursor behind it. */
export interface Followed {
  readonly event: Event;
  /** Store it once the event is handled: `follow({ after: cursor })` continues behind the event. */
  readonly cursor: string;
}

/** Options of `follow`. */
export interface FollowOptions extends CallOptions {
  /** The cursor to continue behind; `'0'` begins with the oldest event. Default: only events from now on. */
  readonly after?: string | undefined;
  /** Called when the connection is lost, before the wait for the next attempt. */
  readonly onDisconnect?: ((disconnect: Disconnect) => void) | undefined;
  /** The silence after which a connection counts as lost. The gateway sends something every 15 seconds. Default: 45 s. */
  readonly idleTimeoutMs?: number | undefined;
}

/** A connection that was lost. */
export interface Disconnect {
  /** The cursor at which the stream resumes. */
  readonly cursor: string | undefined;
  readonly delayMs: number;
  readonly cause: unknown;
}

/** Where a stream is. */
interface Place {
  cursor: string | undefined;
  /** The number of attempts since the last message. */
  failures: number;
}

export class Events extends Resource {
  /** Returns the events behind a cursor, oldest first. */
  list(query?: NonNullable<EventsListData['query']>, options?: CallOptions): Promise<EventList> {
    return body(api.eventsList({ ...this.with(options), query: query ?? {} }));
  }

  /** Returns an event: the body of its webhook. */
  get(id: string, options?: CallOptions): Promise<Event> {
    return body(api.eventsGet({ ...this.with(options), path: { event: id } }));
  }

  /**
   * Returns events as they happen, until the loop ends or the signal aborts. A lost connection is opened again behind
   * the last event, without a gap. After a restore of the gateway, events may come again under the ids that they had.
   * A request that cannot succeed, such as one with an invalid API key, throws its `ApiError`.
   */
  async *follow(options: FollowOptions = {}): AsyncGenerator<Followed, void> {
    const place: Place = { cursor: options.after, failures: 0 };
    for (;;) {
      let cause: unknown = new ConnectionError('the gateway ended the stream');
      try {
        yield* this.connected(place, options);
      } catch (failure) {
        options.signal?.throwIfAborted();
        if (isFinal(failure)) throw failure;
        cause = failure;
        if (failure instanceof GoneCursor) place.cursor = failure.next;
      }
      place.failures += 1;
      const wanted = cause instanceof ApiError ? cause.retryAfterSeconds : undefined;
      const delayMs = wanted === undefined ? backoff(place.failures) : wanted * 1_000;
      options.onDisconnect?.({ cursor: place.cursor, delayMs, cause });
      await sleep(delayMs, options.signal);
    }
  }

  /** Returns the events of one connection. */
  private async *connected(place: Place, options: FollowOptions): AsyncGenerator<Followed, void> {
    const { connection } = this;
    const idle = new Idle(options.idleTimeoutMs ?? 45_000);
    const signal = options.signal ? AbortSignal.any([options.signal, idle.signal]) : idle.signal;
    try {
      const response = await connection.fetch(`${connection.baseUrl}/api/public/events/stream`, {
        headers: {
          accept: 'text/event-stream',
          ...(connection.apiKey ? { authorization: `Bearer ${connection.apiKey}` } : {}),
          ...(place.cursor !== undefined && { 'last-event-id': place.cursor }),
        },
        signal,
      });
      if (!response.ok) throw await refusal(response);
      if (!response.body) throw new HivetillError('the stream has no body');
      for await (const message of messages(response.body, () => idle.reset())) {
        place.failures = 0;
        if (message.id !== undefined) place.cursor = message.id;
        if (message.event === 'ready' || message.data === '') continue;
        yield { event: JSON.parse(message.data) as Event, cursor: place.cursor ?? '' };
        idle.reset();
      }
    } finally {
      idle.end();
    }
  }
}

/** Aborts when nothing arrives for a while. */
class Idle {
  readonly #controller = new AbortController();
  readonly #limitMs: number;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(limitMs: number) {
    this.#limitMs = limitMs;
    this.reset();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  reset(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#controller.abort(new ConnectionError('the stream is silent')), this.#limitMs);
  }

  /** Stops the timer and closes the connection. */
  end(): void {
    clearTimeout(this.#timer);
    this.#controller.abort();
  }
}

/** The cursor belongs to the time before a restore; `next` is where to continue. */
class GoneCursor extends HivetillError {
  constructor(readonly next: string) {
    super('the gateway was restored from a backup');
  }
}

async function refusal(response: Response): Promise<HivetillError> {
  const body: unknown = await response.json().catch(() => undefined);
  const error = ApiError.of(response.status, body, response.headers);
  return error.status === 410 && error.nextCursor !== undefined ? new GoneCursor(error.nextCursor) : error;
}

/** Whether another attempt would fail in the same way. */
function isFinal(failure: unknown): boolean {
  if (failure instanceof ApiError) return failure.status !== 408 && failure.status !== 429 && failure.status < 500;
  // What `fetch` and the reader of the body throw is a lost connection.
  return failure instanceof HivetillError && !(failure instanceof ConnectionError || failure instanceof GoneCursor);
}
