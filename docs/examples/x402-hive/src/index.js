/** The exact scheme of the Hive ledger for the official x402 v2 packages. See README.md. */

export { ExactHiveClient, registerHive } from './client.js';
export { NETWORK, SCHEME } from './offer.js';
export { retrySamePayment } from './retry.js';
export { ExactHiveServer } from './server.js';
