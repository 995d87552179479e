// The errors that this package throws.

import type { Reason } from './core/types.gen.js';

/** The base class of every error of this package. */
export class HivetillError extends Error {
  override name = 'HivetillError';
}

/** No complete response arrived, also after the permitted retries. `cause` has the last failure. */
export class ConnectionError extends HivetillError {
  override name = 'ConnectionError';
}

/** A payment did not reach a final status in time. */
export class WaitTimeoutError extends HivetillError {
  override name = 'WaitTimeoutError';

  constructor(
    /** The id of the payment. */
    readonly paymentId: string,
    /** The last status that was read. */
    readonly status: string,
  ) {
    super(`payment ${paymentId} is still ${status}`);
  }
}

/** A field that was refused, and why. */
export interface Detail {
  readonly field: string;
  readonly message: string;
}

/** The gateway refused a request. */
export class ApiError extends HivetillError {
  override name = 'ApiError';
  /** The HTTP status. */
  readonly status: number;
  /** The reason, a word of a closed list: compare this one. */
  readonly reason: Reason | (string & {});
  /** The class of the error, such as `VALIDATION_ERROR`. */
  readonly code: string;
  /** The id of the request, for the operator of the gateway. */
  readonly requestId: string;
  /** The fields that were refused. */
  readonly details: readonly Detail[];
  /** The seconds after which a repeat may succeed. */
  readonly retryAfterSeconds: number | undefined;
  /** The cursor to continue with, if a cursor was refused. */
  readonly nextCursor: string | undefined;

  constructor(status: number, body: unknown, headers: Headers) {
    const fields = isRecord(body) ? body : {};
    const text = (name: string): string => (typeof fields[name] === 'string' ? fields[name] : '');
    const reason = text('reason') || 'unknown';
    super(`${text('statusMessage') || `the gateway responded with status ${status}`} (${status} ${reason})`);
    this.status = status;
    this.reason = reason;
    this.code = text('code');
    this.requestId = text('requestId') || (headers.get('x-request-id') ?? '');
    this.details = Array.isArray(fields['details']) ? fields['details'].filter(isDetail) : [];
    this.retryAfterSeconds = retryAfter(headers);
    this.nextCursor = text('nextCursor') || undefined;
  }

  /** Returns the first field that was refused. */
  get field(): string | undefined {
    return this.details[0]?.field;
  }

  /** Returns the error of a response, in the class of its status. */
  static of(status: number, body: unknown, headers: Headers): ApiError {
    const known = CLASSES.get(status) ?? (status >= 500 ? ServerError : ApiError);
    return new known(status, body, headers);
  }
}

/** 400 or 422: the request is wrong, and fails again. `field` names the first field that was refused. */
export class ValidationError extends ApiError {
  override name = 'ValidationError';
}

/** 401: the API key is missing or invalid. */
export class AuthenticationError extends ApiError {
  override name = 'AuthenticationError';
}

/** 403: the key or the merchant may not do it. */
export class PermissionError extends ApiError {
  override name = 'PermissionError';
}

/** 404: there is no such record. */
export class NotFoundError extends ApiError {
  override name = 'NotFoundError';
}

/** 409: the state of the record does not permit it. */
export class ConflictError extends ApiError {
  override name = 'ConflictError';
}

/** 410: the record, or the cursor, has expired. */
export class GoneError extends ApiError {
  override name = 'GoneError';
}

/** 429: too many requests, also after the permitted retries. */
export class RateLimitError extends ApiError {
  override name = 'RateLimitError';
}

/** 5xx: the gateway failed, also after the permitted retries. */
export class ServerError extends ApiError {
  override name = 'ServerError';
}

const CLASSES = new Map<number, typeof ApiError>([
  [400, ValidationError],
  [401, AuthenticationError],
  [403, PermissionError],
  [404, NotFoundError],
  [409, ConflictError],
  [410, GoneError],
  [422, ValidationError],
  [429, RateLimitError],
]);

/** Returns the seconds of a `Retry-After` header, which has a number or a date. */
export function retryAfter(headers: Headers): number | undefined {
  const value = headers.get('retry-after');
  if (!value) return undefined;
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000;
  return Number.isFinite(seconds) ? Math.max(0, seconds) : undefined;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function isDetail(value: unknown): value is Detail {
  return isRecord(value) && typeof value['field'] === 'string' && typeof value['message'] === 'string';
}
