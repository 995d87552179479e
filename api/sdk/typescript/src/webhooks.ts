// Verifies webhooks with Web Crypto: in Node, Deno, Bun, workers and browsers.

import type { Event } from './core/types.gen.js';
import { HivetillError } from './errors.js';

/** Why a webhook was refused. */
export type SignatureProblem = 'no_signature' | 'timestamp_out_of_tolerance' | 'no_match' | 'malformed_body';

/** The request is no webhook of the gateway, or no recent one. Respond with 401 and do nothing else. */
export class SignatureError extends HivetillError {
  override name = 'SignatureError';

  constructor(readonly problem: SignatureProblem) {
    super(PROBLEMS[problem]);
  }
}

const PROBLEMS: Record<SignatureProblem, string> = {
  no_signature: 'the request has no signature: no X-Hivetill-Signature and no webhook-signature',
  timestamp_out_of_tolerance: 'the signature is too old, or from the future: check the clock',
  no_match: 'no signature was made with this secret for this body: pass the raw body',
  malformed_body: 'the signed body is no event',
};

/** Headers as `fetch` and as Node have them. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

export interface VerifyOptions {
  /** How far the time of the signature may be from now. Default: 300 seconds. */
  readonly toleranceSeconds?: number | undefined;
  /** The time to compare with. Default: now. */
  readonly now?: Date | undefined;
}

/** A time and the signatures over it: the HMAC must equal one of them. */
interface Candidate {
  readonly ms: number;
  readonly key: Uint8Array;
  readonly prefix: string;
  readonly signatures: readonly Uint8Array[];
}

/**
 * Returns the event of a webhook if its signature is genuine and recent, and throws a `SignatureError` otherwise. One
 * valid signature is enough, of either family: `X-Hivetill-*` or Standard Webhooks (`webhook-*`).
 *
 * @param body The body as it was received: bytes or text, not parsed.
 * @param secret The webhook secret, `whsec_…`; several while your servers are switched to a new one.
 */
export async function verifyWebhook(
  body: string | Uint8Array,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  options: VerifyOptions = {},
): Promise<Event> {
  const bytes = typeof body === 'string' ? new TextEncoder().encode(body) : body;
  const secrets = typeof secret === 'string' ? [secret] : secret;
  if (secrets.length === 0 || secrets.some((each) => !each.startsWith('whsec_'))) {
    throw new HivetillError('the webhook secret must begin with whsec_');
  }
  const candidates = secrets.flatMap((each) => [...hivetill(headers, each), ...standard(headers, each)]);
  if (candidates.length === 0) throw new SignatureError('no_signature');
  const nowMs = (options.now ?? new Date()).getTime();
  const toleranceMs = (options.toleranceSeconds ?? 300) * 1_000;
  const recent = candidates.filter((each) => Math.abs(nowMs - each.ms) <= toleranceMs);
  if (recent.length === 0) throw new SignatureError('timestamp_out_of_tolerance');
  for (const candidate of recent) {
    if (await matches(candidate, bytes)) return parse(bytes);
  }
  throw new SignatureError('no_match');
}

/** The family `X-Hivetill-*`: hex over `{ms}.{body}` with the text of the secret. */
function hivetill(headers: WebhookHeaders, secret: string): Candidate[] {
  const time = header(headers, 'x-hivetill-timestamp') ?? '';
  const names = ['', '-previous', '-previous-2', '-previous-3'].map((suffix) => `x-hivetill-signature${suffix}`);
  const signatures = names.flatMap((name) => fromHex(header(headers, name) ?? ''));
  if (!/^\d+$/.test(time) || signatures.length === 0) return [];
  return [{ ms: Number(time), key: new TextEncoder().encode(secret), prefix: `${time}.`, signatures }];
}

/** Standard Webhooks: base64 over `{id}.{s}.{body}` with the bytes of the secret. */
function standard(headers: WebhookHeaders, secret: string): Candidate[] {
  const id = header(headers, 'webhook-id');
  const time = header(headers, 'webhook-timestamp') ?? '';
  const list = (header(headers, 'webhook-signature') ?? '').split(' ');
  const signatures = list.flatMap((each) => (each.startsWith('v1,') ? fromBase64(each.slice('v1,'.length)) : []));
  const [key] = fromBase64(secret.slice('whsec_'.length));
  if (id === undefined || !/^\d+$/.test(time) || signatures.length === 0 || key === undefined) return [];
  return [{ ms: Number(time) * 1_000, key, prefix: `${id}.${time}.`, signatures }];
}

async function matches(candidate: Candidate, body: Uint8Array): Promise<boolean> {
  const prefix = new TextEncoder().encode(candidate.prefix);
  const signed = new Uint8Array(prefix.length + body.length);
  signed.set(prefix);
  signed.set(body, prefix.length);
  const algorithm = { name: 'HMAC', hash: 'SHA-256' };
  const key = await crypto.subtle.importKey('raw', copy(candidate.key), algorithm, false, ['verify']);
  // Compares in constant time.
  const each = candidate.signatures.map((signature) => crypto.subtle.verify('HMAC', key, copy(signature), signed));
  return (await Promise.all(each)).includes(true);
}

function parse(body: Uint8Array): Event {
  try {
    const event: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
    if (typeof event === 'object' && event !== null && 'type' in event && 'data' in event) return event as Event;
  } catch {
    // Reported below.
  }
  throw new SignatureError('malformed_body');
}

function header(headers: WebhookHeaders, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined;
  const key = Object.keys(headers).find((each) => each.toLowerCase() === name);
  const value = key === undefined ? undefined : headers[key];
  return typeof value === 'object' ? value[0] : value;
}

/** Returns the bytes of a hex text, or nothing if it is none. */
function fromHex(text: string): Uint8Array[] {
  if (text === '' || !/^([0-9a-f]{2})+$/i.test(text)) return [];
  return [Uint8Array.from(text.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16))];
}

/** Returns the bytes of a base64 text, or nothing if it is none. */
function fromBase64(text: string): Uint8Array[] {
  if (text === '' || !/^[A-Za-z0-9+/]+={0,2}$/.test(text)) return [];
  try {
    return [Uint8Array.from(atob(text), (character) => character.charCodeAt(0))];
  } catch {
    return [];
  }
}

/** Web Crypto takes no views of shared memory. */
function copy(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes);
}
