// Merchants: their record, API keys, the proof of their account, and their webhook endpoint.

import * as api from '../core/sdk.gen.js';
import type {
  AccountChallenge,
  AccountProof,
  ApiKey,
  BillingSummary,
  CreateKey,
  Delivery,
  DeliveryWithAttempts,
  EnableWebhook,
  EnabledWebhook,
  IssueChallenge,
  MadeKey,
  Merchant,
  ProvenAccount,
  Register,
  Registered,
  Replayed,
  RollKey,
  RotateSecret,
  Secret,
  TestWebhook,
  UpdateMerchant,
  WebhookDeliveriesListData,
  WebhookEndpoint,
} from '../core/types.gen.js';
import { body, items, Resource, type CallOptions, type IdempotentOptions } from '../resource.js';

export class Merchants extends Resource {
  /** Registers a merchant. The API key and the webhook secret are returned only once. */
  register(merchant: Register, options?: CallOptions): Promise<Registered> {
    return body(api.merchantsRegister({ ...this.with(options), body: merchant }));
  }

  /** Returns the merchant of the API key. */
  me(options?: CallOptions): Promise<Merchant> {
    return body(api.merchantsMe(this.with(options)));
  }

  /** Returns a merchant: your own, or any as an admin. */
  get(id: string, options?: CallOptions): Promise<Merchant> {
    return body(api.merchantsGet({ ...this.with(options), path: { id } }));
  }

  /** Changes the given fields of a merchant. */
  update(id: string, changes: UpdateMerchant, options?: CallOptions): Promise<Merchant> {
    return body(api.merchantsUpdate({ ...this.with(options), path: { id }, body: changes }));
  }

  /** Replaces the webhook secret. The new one is returned only once. */
  rotateWebhookSecret(id: string, rotation: RotateSecret = {}, options?: CallOptions): Promise<Secret> {
    return body(api.merchantsRotateWebhookSecret({ ...this.with(options), path: { id }, body: rotation }));
  }

  /** Issues the challenge that proves control of the Hive account. */
  issueAccountChallenge(id: string, challenge: IssueChallenge = {}, options?: CallOptions): Promise<AccountChallenge> {
    return body(api.accountProofsIssueChallenge({ ...this.with(options), path: { id }, body: challenge }));
  }

  /** Proves control of the Hive account with signatures. */
  proveAccount(id: string, proof: AccountProof, options?: CallOptions): Promise<ProvenAccount> {
    return body(api.accountProofsProve({ ...this.with(options), path: { id }, body: proof }));
  }

  /** Cancels a pending change of the Hive account. */
  cancelAccountChange(id: string, options?: CallOptions): Promise<Merchant> {
    return body(api.merchantsCancelAccountChange({ ...this.with(options), path: { id } }));
  }

  /** Returns usage and fees of the merchant of the API key. */
  billing(options?: CallOptions): Promise<BillingSummary> {
    return body(api.billingMe(this.with(options)));
  }
}

export class ApiKeys extends Resource {
  /** Returns the API keys of a merchant, without their secrets. */
  async list(merchantId: string, options?: CallOptions): Promise<ApiKey[]> {
    return (await body(api.apiKeysList({ ...this.with(options), path: { id: merchantId } }))).data;
  }

  /** Creates an API key, which is returned only once. */
  create(merchantId: string, key: CreateKey, options?: CallOptions): Promise<MadeKey> {
    return body(api.apiKeysCreate({ ...this.with(options), path: { id: merchantId }, body: key }));
  }

  /** Revokes an API key, and returns those that remain. */
  async revoke(merchantId: string, keyId: string, options?: CallOptions): Promise<ApiKey[]> {
    return (await body(api.apiKeysDelete({ ...this.with(options), path: { id: merchantId, key: keyId } }))).data;
  }

  /** Replaces an API key, if the operator allows it. */
  roll(merchantId: string, keyId: string, rotation: RollKey = {}, options?: CallOptions): Promise<MadeKey> {
    return body(api.apiKeysRoll({ ...this.with(options), path: { id: merchantId, key: keyId }, body: rotation }));
  }
}

/** Filters of a list of webhook deliveries. */
export type DeliveryFilters = Omit<NonNullable<WebhookDeliveriesListData['query']>, 'cursor'>;

export class WebhookEndpoints extends Resource {
  /** Returns the health of the endpoint. */
  get(merchantId: string, options?: CallOptions): Promise<WebhookEndpoint> {
    return body(api.webhooksGetEndpoint({ ...this.with(options), path: { id: merchantId } }));
  }

  /** Enables an endpoint that was disabled. */
  enable(merchantId: string, enabling: EnableWebhook = {}, options?: CallOptions): Promise<EnabledWebhook> {
    return body(api.webhooksEnable({ ...this.with(options), path: { id: merchantId }, body: enabling }));
  }

  /** Sends the deliveries that are held or failed since a time. */
  replay(merchantId: string, since: Date, options?: CallOptions): Promise<Replayed> {
    const replay = { since: since.toISOString() };
    return body(api.webhooksReplay({ ...this.with(options), path: { id: merchantId }, body: replay }));
  }

  /** Sends a test event. */
  test(merchantId: string, test: TestWebhook = {}, options?: IdempotentOptions): Promise<Delivery> {
    return body(api.webhooksTest({ ...this.once(options), path: { id: merchantId }, body: test }));
  }

  /** Returns every delivery that matches, newest first; reads page after page. */
  deliveries(merchantId: string, filters?: DeliveryFilters, options?: CallOptions): AsyncGenerator<Delivery, void> {
    return items(async (cursor) => {
      const query = { limit: 100, ...filters, ...(cursor !== undefined && { cursor }) };
      const page = await body(api.webhookDeliveriesList({ ...this.with(options), path: { id: merchantId }, query }));
      return { items: page.deliveries, next: page.nextCursor };
    });
  }

  /** Returns a delivery with its attempts. */
  delivery(merchantId: string, deliveryId: string, options?: CallOptions): Promise<DeliveryWithAttempts> {
    const path = { id: merchantId, delivery: deliveryId };
    return body(api.webhookDeliveriesGet({ ...this.with(options), path }));
  }

  /** Sends the event of a delivery again. */
  redeliver(merchantId: string, deliveryId: string, options?: IdempotentOptions): Promise<Delivery> {
    const path = { id: merchantId, delivery: deliveryId };
    return body(api.webhookDeliveriesRedeliver({ ...this.once(options), path }));
  }
}
