// Calls every method of the gRPC interface with good and with bad input, then meets deadlines, cancellation, a killed
// server, a broken stream and a graceful stop, as an internal service in Node does. `consumer.mjs PROTO ROWS`: the first line
// of stdin is the context; `ask` has the test that runs this kill or stop the server.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";

const [proto, rowsFile] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const read = async () => (await lines.next()).value;
const context = JSON.parse(await read());
const values = { ...context };
const rows = JSON.parse(readFileSync(rowsFile, "utf8"));

const options = { keepCase: true, enums: String, longs: String, oneofs: true, includeDirs: [proto, here] };
const folder = "hivetill/engine/v1";
const files = readdirSync(join(proto, folder)).map((file) => `${folder}/${file}`);
const definitions = loader.loadSync([...files, "health.proto"], options);
const packages = grpc.loadPackageDefinition(definitions);
// google.rpc.Status and its details have the same few fields on every wire.
const root = createRequire(createRequire(import.meta.url).resolve("@grpc/proto-loader"))("protobufjs").parse(
  `syntax = "proto3";
  message Any { string type_url = 1; bytes value = 2; }
  message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
  message ErrorInfo { string reason = 1; string domain = 2; }
  message FieldViolation { string field = 1; string description = 2; }
  message BadRequest { repeated FieldViolation field_violations = 1; }`,
  { keepCase: true },
).root;

const methods = new Map();
for (const [service, definition] of Object.entries(definitions)) {
  if (!service.startsWith("hivetill.") || definition.format) continue;
  for (const [name, method] of Object.entries(definition)) methods.set(method.path, { service, name, method });
}

const backoff = { "grpc.initial_reconnect_backoff_ms": 200, "grpc.max_reconnect_backoff_ms": 500 };
const retryPolicy = {
  maxAttempts: 5,
  initialBackoff: "1s",
  maxBackoff: "8s",
  backoffMultiplier: 2,
  retryableStatusCodes: ["UNAVAILABLE"],
};
const retrying = { "grpc.service_config": JSON.stringify({ methodConfig: [{ name: [{}], retryPolicy }] }) };

function connect(service, more = {}) {
  const Client = service.split(".").reduce((found, part) => found[part], packages);
  return new Client(context.target, grpc.credentials.createInsecure(), { ...backoff, ...more });
}
const clients = new Map();
function client(service) {
  if (!clients.has(service)) clients.set(service, connect(service));
  return clients.get(service);
}

function metadata(who, extra = {}) {
  const made = new grpc.Metadata();
  const token = { operator: context.operator_token, none: undefined };
  const shown = who in token ? token[who] : context.service_token;
  if (shown) made.set("authorization", `Bearer ${shown}`);
  const keys = { shop: context.api_key, admin: context.admin_key, prover: context.prover_key, wrong_key: "sk_live_wrong" };
  if (keys[who]) made.set("x-api-key", keys[who]);
  for (const [name, value] of Object.entries(extra)) made.set(name, value);
  return made;
}

function rendered(value) {
  if (Array.isArray(value)) return value.map(rendered);
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, rendered(inner)]));
  }
  if (typeof value === "string" && value.startsWith("$")) return values[value.slice(1)];
  const times = { "@past": Date.parse(context.past) / 1000, "@ancient": 1 };
  return value in times ? { seconds: times[value] } : value;
}

// Returns the response, or the first message of a stream that is then cancelled.
function call(path, body, who, { extra, of = client, seconds = 15 } = {}) {
  const { service, name, method } = methods.get(path);
  const deadline = Date.now() + seconds * 1000;
  const request = rendered(body);
  return new Promise((resolve, reject) => {
    if (!method.responseStream) {
      of(service)[name](request, metadata(who, extra), { deadline }, (error, answer) => (error ? reject(error) : resolve(answer)));
      return;
    }
    const stream = of(service)[name](request, metadata(who, extra), { deadline });
    stream.once("data", (message) => {
      resolve(message);
      stream.cancel();
    });
    stream.on("error", reject);
    stream.once("end", () => resolve(undefined));
  });
}

// Expects a refusal with its code and its details.
async function refused(what, expected, promise) {
  const error = await promise.then(
    () => assert.fail(`${what} was not refused`),
    (error) => error,
  );
  assert.equal(grpc.status[error.code], expected.code, `${what}: ${error.message}`);
  const [bytes] = error.metadata.get("grpc-status-details-bin");
  assert.ok(bytes, `${what}: no google.rpc.Status`);
  const status = root.lookupType("Status").decode(bytes);
  assert.equal(status.code, error.code, what);
  const details = (name) =>
    status.details
      .filter(({ type_url }) => type_url === `type.googleapis.com/google.rpc.${name}`)
      .map(({ value }) => root.lookupType(name).decode(value));
  const [info] = details("ErrorInfo");
  assert.deepEqual([info.reason, info.domain], [expected.reason, "hivetill"], what);
  const wrong = details("BadRequest").flatMap((detail) => detail.field_violations);
  assert.deepEqual(wrong.map(({ field }) => field), expected.fields ?? [], what);
  assert.ok(wrong.every(({ description }) => description), what);
}

async function ask(word) {
  console.log(word);
  assert.equal(await read(), "done", word);
}

async function everyMethod() {
  assert.deepEqual([...methods.keys()].sort(), [...context.methods].sort(), "the files and the server's reflection");
  assert.deepEqual(rows.map(({ method }) => method).sort(), [...context.methods].sort(), "every method has a row");
  const failed = [];
  for (const { method, as, good, bad, save = {}, refused: refusal } of rows) {
    try {
      await refused(`${method} (bad)`, bad, call(method, bad.request, bad.as ?? as));
      if (refusal) {
        await refused(method, refusal, call(method, good, as));
        continue;
      }
      const answer = await call(method, good, as);
      for (const [name, path] of Object.entries(save)) {
        values[name] = path.split(".").reduce((found, part) => found[part], answer);
      }
    } catch (error) {
      failed.push(`${method}: ${error.message}`);
    }
  }
  assert.equal(failed.join("\n"), "");
}

const PAYMENTS = "/hivetill.engine.v1.PaymentService";
const EVENTS = "/hivetill.engine.v1.EventService";
const ORDER = { amount_units: "1500", currency: "CURRENCY_HBD", description: "A blue mug" };

function open(path, body, options = {}) {
  const { service, name } = methods.get(path);
  return client(service)[name](body, metadata("shop"), options);
}

// Resolves with the first message of a stream that goes on.
const first = (stream) => new Promise((resolve, reject) => stream.once("data", resolve).once("error", reject));

// Reads a stream to its end and resolves with its code.
function ended(stream) {
  stream.on("data", () => {}).on("error", () => {});
  return new Promise((resolve) => stream.once("status", ({ code }) => resolve(grpc.status[code])));
}

async function deadlinesAndCancellation(payment_id) {
  const late = open(`${PAYMENTS}/WatchPayment`, { payment_id }, { deadline: Date.now() + 500 });
  assert.equal(await ended(late), "DEADLINE_EXCEEDED");
  const watch = open(`${PAYMENTS}/WatchPayment`, { payment_id });
  await first(watch);
  const code = ended(watch);
  watch.cancel();
  assert.equal(await code, "CANCELLED");
}

// Reads so many events from a stream, and returns them and where to go on.
async function eventsAfter(page_token, count) {
  const found = [];
  const stream = open(`${EVENTS}/WatchEvents`, { page_token }, { deadline: Date.now() + 30_000 });
  stream.on("error", () => {});
  for await (const message of stream) {
    page_token = message.next_page_token;
    if (message.event) found.push(message.event.id);
    if (found.length >= count) break;
  }
  stream.cancel();
  assert.equal(found.length, count, "as many events as there are");
  return [found, page_token];
}

async function allEvents() {
  const found = [];
  for (let page_token = ""; ; ) {
    const page = await call(`${EVENTS}/ListEvents`, { page_size: 100, page_token }, "shop");
    found.push(...page.events.map(({ id }) => id));
    page_token = page.next_page_token;
    if (!page.has_more) return found;
  }
}

// A creation is repeated by the channel's own policy and done once; the stream of events goes on without a gap.
async function aKilledServer() {
  const before = await allEvents();
  const [seen, token] = await eventsAfter("", before.length);
  assert.deepEqual(seen, before);
  const watch = open(`${EVENTS}/WatchEvents`, { page_token: token });
  await first(watch);
  const code = ended(watch);
  await ask("kill");
  assert.equal(await code, "UNAVAILABLE");
  // The server is not there: without a policy the call fails, with one it is repeated until it succeeds.
  const create = `${PAYMENTS}/CreatePayment`;
  const vain = call(create, ORDER, "shop", { of: (service) => connect(service) });
  await assert.rejects(vain, { code: grpc.status.UNAVAILABLE });
  const once = { extra: { "idempotency-key": "retry-node" }, seconds: 60 };
  const begun = call(create, ORDER, "shop", { ...once, of: (service) => connect(service, retrying) });
  await ask("start");
  const made = await begun;
  await ask("await");
  const again = await call(create, ORDER, "shop", once);
  assert.equal(again.payment.id, made.payment.id, "done once");
  await call(`${PAYMENTS}/CancelPayment`, { payment_id: made.payment.id }, "shop");
  const [added, next] = await eventsAfter(token, 1);
  const everything = await allEvents();
  const left = everything.length - seen.length - 1;
  const rest = left > 0 ? (await eventsAfter(next, left))[0] : [];
  assert.deepEqual([...seen, ...added, ...rest], everything, "no gap and nothing twice");
}

// Ends when the server has said goodbye to every stream.
async function aGracefulStop(payment_id) {
  const health = connect("grpc.health.v1.Health").Watch({});
  const states = [];
  health.on("data", ({ status }) => states.push(status)).on("error", () => {});
  await new Promise((resolve) => health.once("data", resolve));
  const watch = open(`${PAYMENTS}/WatchPayment`, { payment_id });
  await first(watch);
  const code = ended(watch);
  const told = new Promise((resolve) => health.on("data", ({ status }) => status === "NOT_SERVING" && resolve()));
  await ask("stop");
  await told;
  // A status that is checked again may be sent again.
  const changes = states.filter((status, at) => status !== states[at - 1]);
  assert.deepEqual(changes, ["SERVING", "NOT_SERVING"]);
  assert.equal(await code, "UNAVAILABLE");
}

await everyMethod();
const { payment } = await call(`${PAYMENTS}/CreatePayment`, ORDER, "shop");
await deadlinesAndCancellation(payment.id);
await aKilledServer();
await aGracefulStop(payment.id);
console.log("ok");
process.exit(0);
