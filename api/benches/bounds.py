#!/usr/bin/env python3
"""What others may cost a payment: each figure beside a quiet run of the same minute. Exits with 1 where a bound is broken.

    api/benches/bounds.py WHAT… [--samples 24] [--agents 12] [--faults NAME,…] [--rounds 3] [--sockets 110] [--readers 32]

    nodes       one of three ledger nodes has a fault, each fault at each place (--samples wallets' payments, --agents agents')
    transfers   510 transfers of third parties to one payment, --rounds times
    sockets     --sockets clients that never read, against a server of 100 connections
    document    --readers readers of /openapi.json beside creations

Starts the processes itself, on ports that are free, with blocks every 250 ms. Needs `cargo build --profile dist` (HIVETILL names another program).
Python's standard library is all it needs.
"""
import argparse, atexit, http.client, json, os, shutil, signal, socket, statistics, subprocess, sys, tempfile, threading, time

HIVETILL = os.environ.get("HIVETILL", "target/dist/hivetill")
FREE = "127.0.0.1:0"
BLOCK = "250ms"
PATIENCE = 60
# Completions with a fault may take so many times the healthy median.
FAULT_RATIO = 1.5
RECORD_BYTES, MEMORY_MB = 100_000, 20
HEALTH_SECONDS = 1.0
CREATION_RATIO = 2.0


class Process:
    """A program of ours that ends with us."""

    def __init__(self, *arguments):
        self.log = tempfile.NamedTemporaryFile("w+", prefix="hivetill-", suffix=".log")
        output = self.log if arguments[0] == "serve" else subprocess.PIPE
        self.child = subprocess.Popen([HIVETILL, *arguments], stdout=output, stderr=self.log, text=True)
        atexit.register(self.child.kill)

    def said(self):
        line = self.child.stdout.readline()
        return json.loads(line) if line else self.fail("it ended")

    def listening(self):
        """Returns the URL that the log names."""
        ends = time.monotonic() + PATIENCE
        while time.monotonic() < ends:
            for line in open(self.log.name):
                if "listening on " in line:
                    return "http://" + line.split("listening on ")[1].split()[0].rstrip(")")
            if self.child.poll() is not None:
                break
            time.sleep(0.02)
        self.fail("it does not listen")

    def fail(self, why):
        sys.exit(f"{why}: {open(self.log.name).read()}")

    def resident_mb(self):
        rollup = open(f"/proc/{self.child.pid}/smaps_rollup").read()
        return int(rollup.split("Rss:")[1].split()[0]) * 1024 / 1e6

    def end(self):
        self.child.send_signal(signal.SIGTERM)
        self.child.wait()


def call(url, method, path, body=None, key=None):
    """Asks once, over a connection of its own; returns status and answer."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=PATIENCE)
    headers = {"content-type": "application/json"} | ({"x-api-key": key} if key else {})
    connection.request(method, path, json.dumps(body) if body is not None else None, headers)
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, text


def ok(url, method, path, body=None, key=None):
    status, text = call(url, method, path, body, key)
    if status not in (200, 201):
        sys.exit(f"{method} {path}: {status} {text[:500]}")
    return json.loads(text)


def control(url, method, **params):
    body = {"jsonrpc": "2.0", "id": 1, "method": f"control.{method}", "params": params}
    answer = ok(url, "POST", "/", body)
    if "error" in answer:
        sys.exit(f"control.{method}: {answer['error']}")
    return answer["result"]


def until(what, look, seconds=PATIENCE, glance=0.02):
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        found = look()
        if found:
            return found
        time.sleep(glance)
    return None


def until_ready(url):
    def ready():
        try:
            return call(url, "GET", "/readyz")[0] == 200
        except OSError:
            return False

    until("ready", ready) or sys.exit("the gateway is not ready")


def create(url, key, amount="1500"):
    body = {"amount": amount, "currency": "HBD", "description": "A blue mug"}
    return ok(url, "POST", "/api/public/payments", body, key)


def completion(gateway, key, ledger, shop, amount="1.500 HBD"):
    """Opens a payment, pays it from a wallet, and returns the seconds from the broadcast until it is completed; none if it is
    not within a minute."""
    made = create(gateway, key)
    control(ledger, "transfer", **{"from": "alice"}, to=shop, amount=amount, memo=f"pos-{made['id']}")
    return completed(gateway, key, made["id"])


def completed(gateway, key, payment):
    """Returns the seconds until a payment is completed; none if it is not within a minute."""
    begun, path = time.monotonic(), f"/api/public/payments/{payment}/status"
    done = until("completed", lambda: ok(gateway, "GET", path, key=key)["status"] == "completed", glance=0.01)
    return time.monotonic() - begun if done else None


# ---- faults of one node ---------------------------------------------------------------------------------------------

def faults(ledger):
    """Every fault that a node of the development ledger can have, by name."""

    def invents():
        head = control(ledger, "status")["head"]["number"]
        lie = {"kind": "inventTransfer", "block": head + 2, "from": "bob", "to": "shop.demo", "amount": "900.000 HBD", "memo": ""}
        return {"lie": lie}

    lie = lambda kind, **more: lambda: {"lie": {"kind": kind, **more}}
    key = "STM8GC13uCZbP44HzMLV6zPZGwVQ8Nt4Kji8PapsPiNq1BK153XTX"
    return {
        "stalled": lambda: {"stalled": True},
        "stale by 400 blocks": lambda: {"lagBlocks": 400},
        "behind by 3 blocks": lambda: {"lagBlocks": 3},
        "slow by 3 s": lambda: {"delayMs": 3000},
        "slow by 300 ms": lambda: {"delayMs": 300},
        "hangs up": lambda: {"disconnected": True},
        "HTTP 502": lambda: {"httpStatus": 502},
        "HTTP 429": lambda: {"httpStatus": 429, "retryAfterSeconds": 2},
        "answers garbage": lambda: {"garbage": True},
        "drops answers to broadcasts": lambda: {"dropBroadcastReplies": 1_000_000},
        "lacks three APIs": lambda: {"lacksApis": ["transaction_status_api", "account_history_api", "network_broadcast_api"]},
        "invents a transfer": invents,
        "omits transfers": lie("omitTransfers"),
        "inflates transfers": lie("inflateTransfers"),
        "calls everything final": lie("everythingIsFinal"),
        "is ahead of the chain": lie("headAhead", blocks=5),
        "swallows broadcasts": lie("swallowBroadcasts"),
        "refuses broadcasts": lie("refuseBroadcasts"),
        "gives other keys": lie("keys", key=key),
        "gives another price": lie("price", base="9.000 HBD", quote="1.000 HIVE"),
    }


class Net:
    """A gateway over a ledger of three nodes."""

    def __init__(self, ledger, said, nodes):
        self.ledger, self.folder = ledger, tempfile.mkdtemp(prefix="hivetill-bounds-")
        settings = ["ledger.block_interval_ms=250", "ledger.poll_interval_ms=50", "limits.profile=off"]
        sets = [f"--set={one}" for one in settings]
        self.serve = Process("serve", "--init", "--network", "dev", "--listen", FREE, "--data", self.folder + "/data",
                             *(f"--node={node}" for node in nodes), *sets)
        self.url = self.serve.listening()
        until_ready(self.url)
        made = ok(self.url, "POST", "/api/public/merchants/register", {"name": "Shop", "hiveAccount": "shop.demo"})
        self.key = made["apiKey"]
        self.alice = next(one["activeKey"] for one in said["accounts"] if one["name"] == "alice")

    def wallets(self, count):
        """Returns how long completions take, in seconds; a payment begins every 150 ms."""
        took, threads = [], []
        one = lambda: took.append(completion(self.url, self.key, self.ledger, "shop.demo"))
        for _ in range(count):
            threads.append(threading.Thread(target=one))
            threads[-1].start()
            time.sleep(0.15)
        for thread in threads:
            thread.join()
        return took

    def agents(self, count, node):
        """Returns the median of a settlement by x402, in seconds, and how many failed."""
        command = [HIVETILL, "load", "x402-settle", "--url", self.url, "--json", "--node", node, "--sessions", str(count),
                   "--connections", "2", "--duration", "40s"]
        environment = {**os.environ, "HIVETILL_API_KEY": self.key, "HIVETILL_KEY": self.alice}
        told = subprocess.run(command, env=environment, capture_output=True, text=True)
        if not told.stdout:
            return None, count
        report = json.loads(told.stdout)
        return report["latencyUs"]["p50"] / 1e6, count - (report["responses"] - report["errors"])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.serve.end()
        shutil.rmtree(self.folder)


def middle(values):
    return statistics.median(PATIENCE if value is None else value for value in values)


def nodes(arguments):
    house = Process("ledger", "--json", "--control-listen", FREE, "--block-interval", BLOCK, *(["--listen", FREE] * 3))
    said = house.said()
    ledger, urls = said["control"], said["nodes"]
    control(ledger, "produce", count=450)
    known = faults(ledger)
    names = [name for name in known if not arguments.faults or name in arguments.faults]
    rows, healthy, healthy_agents = [], [], []

    def measure(net, well):
        took = net.wallets(arguments.samples)
        return took, *net.agents(arguments.agents, well)

    def quiet():
        with Net(ledger, said, urls) as net:
            net.wallets(2)
            took, agents, failed = measure(net, urls[0])
        healthy.extend(took)
        healthy_agents.append(agents)
        if failed or None in took:
            sys.exit("payments fail though every node is well")

    quiet()
    for at, name in enumerate(names):
        row = []
        for place in range(3):
            # A node that lied is distrusted for ten minutes: each fault meets a gateway of its own.
            with Net(ledger, said, urls) as net:
                net.wallets(2)
                control(ledger, "node", node=place, **known[name]())
                row.append(measure(net, urls[(place + 1) % 3]))
                control(ledger, "heal")
        rows.append((name, row))
        print(f"{at + 1}/{len(names)} {name}", file=sys.stderr)
        if at % 7 == 6:
            quiet()
    if not arguments.faults or "refuses connections" in arguments.faults:
        row = []
        for place in range(3):
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                nobody = f"http://127.0.0.1:{free.getsockname()[1]}"
            with Net(ledger, said, urls[:place] + [nobody] + urls[place + 1:]) as net:
                net.wallets(2)
                row.append(measure(net, urls[(place + 1) % 3]))
        rows.append(("refuses connections", row))
    house.end()
    base, base_agents = middle(healthy), middle(healthy_agents)
    print(f"healthy: a wallet's payment {base * 1000:.0f} ms (median of {len(healthy)}), an agent's {base_agents * 1000:.0f} ms")
    print("\n| fault of one node | wallet, at place 0 / 1 / 2 | agent, at place 0 / 1 / 2 | slowest completion |")
    print("|---|---|---|---|")
    broken = []
    for name, row in rows:
        wallets = [middle(took) / base for took, _, _ in row]
        agents = [(PATIENCE if median is None else median) / base_agents for _, median, _ in row]
        slowest = max(PATIENCE if one is None else one for took, _, _ in row for one in took)
        failed = sum(failed for _, _, failed in row) + sum(took.count(None) for took, _, _ in row)
        show = lambda ratios: " / ".join(f"{ratio:.2f}" for ratio in ratios)
        note = f", {failed} did not complete" if failed else ""
        print(f"| {name} | {show(wallets)} | {show(agents)} | {slowest:.2f} s{note} |")
        if failed or max(wallets + agents) > FAULT_RATIO:
            broken.append(name)
    return verdict(broken, f"at most {FAULT_RATIO} times the healthy median")


def verdict(broken, bound):
    print(f"\nBROKEN ({bound}): {', '.join(broken)}" if broken else f"\nheld: {bound}")
    return 1 if broken else 0


# ---- one gateway with a ledger inside ---------------------------------------------------------------------------------

class Dev(Process):
    def __init__(self, *more):
        ports = sum((["--" + port, FREE] for port in ("listen", "ledger-listen", "grpc-listen")), [])
        super().__init__("dev", "--json", "--block-interval", BLOCK, "--set=ledger.poll_interval_ms=50", *ports, *more)
        said = self.said()
        self.url, self.key, self.ledger = said["api"], said["merchant"]["apiKey"], said["control"]
        until_ready(self.url)
        self.address = (lambda host, port: (host, int(port)))(*self.url.removeprefix("http://").split(":"))

    def load(self, *arguments):
        command = [HIVETILL, "load", *arguments, "--url", self.url, "--json"]
        told = subprocess.run(command, env={**os.environ, "HIVETILL_API_KEY": self.key}, capture_output=True, text=True)
        return json.loads(told.stdout) if told.stdout else sys.exit(told.stderr)


def transfers(arguments):
    dev = Dev()
    quiet = [completion(dev.url, dev.key, dev.ledger, "shop.demo") for _ in range(5 * arguments.rounds)]
    flooded, sizes, grown = [], [], []
    for _ in range(arguments.rounds):
        made = create(dev.url, dev.key)
        memo = f"pos-{made['id']}"
        # Memos of 2 kB, of a character that takes six bytes of JSON.
        noise = memo + " " + "\u0001" * 1950
        for number in range(1, 511):
            # Few in the payment's currency: they must not pay it.
            amount = "0.001 HBD" if number % 5 == 0 else "0.001 HIVE"
            control(dev.ledger, "transfer", **{"from": "bob"}, to="shop.demo", amount=amount, memo=f"{noise}{number}")
            # A block takes some 25 of them: the customer's transfer does not wait for room in one. Those behind it fill the
            # blocks that make it final.
            if number < 255 and number % 15 == 0:
                control(dev.ledger, "produce", count=1)
            if number == 255:
                control(dev.ledger, "produce", count=1)
                control(dev.ledger, "transfer", **{"from": "alice"}, to="shop.demo", amount="1.500 HBD", memo=memo)
                watcher = threading.Thread(target=lambda: flooded.append(completed(dev.url, dev.key, made["id"])))
                watcher.start()
        watcher.join()
        path = f"/api/public/payments/{made['id']}"
        until("all", lambda: ok(dev.url, "GET", path, key=dev.key)["transferCount"] == 511) or sys.exit("transfers are missing")
        record = call(dev.url, "GET", path, key=dev.key)[1]
        if json.loads(record)["status"] != "completed":
            sys.exit(f"not completed: {record[:500]}")
        sizes.append(len(record))
        before = dev.resident_mb()
        readers = [threading.Thread(target=lambda: [ok(dev.url, "GET", path, key=dev.key) for _ in range(5)]) for _ in range(60)]
        [reader.start() for reader in readers]
        [reader.join() for reader in readers]
        grown.append(dev.resident_mb() - before)
    dev.end()
    base, slow = middle(quiet), middle(flooded)
    print("| 510 transfers of third parties to one payment | measured | bound |")
    print("|---|---|---|")
    print(f"| completion of the customer's transfer among them | {slow * 1000:.0f} ms, alone {base * 1000:.0f} ms: {slow / base:.2f} times | {FAULT_RATIO} times |")
    print(f"| the payment's record | {max(sizes)} bytes | {RECORD_BYTES} |")
    print(f"| memory under 60 readers of it | {max(grown):+.1f} MB | +{MEMORY_MB} MB |")
    broken = [name for name, is_broken in [("completion", slow > FAULT_RATIO * base), ("record", max(sizes) > RECORD_BYTES),
                                           ("memory", max(grown) > MEMORY_MB)] if is_broken]
    return verdict(broken, "the bounds above")


def health_from(address, source, path):
    """Returns how long an answer of 200 takes, in seconds, asked from another address of this machine."""
    begun = time.monotonic()
    try:
        with socket.create_connection(address, timeout=PATIENCE, source_address=(source, 0)) as stream:
            stream.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())
            said = b""
            while chunk := stream.recv(65536):
                said += chunk
    except OSError:
        return PATIENCE
    return time.monotonic() - begun if said.startswith(b"HTTP/1.1 200") else PATIENCE


def sockets(arguments):
    dev = Dev("--limits", "production", "--set=limits.connections=100", "--set=limits.anonymous=100000/s burst 100000")
    paths = ["/livez", "/api/health", "/readyz"]
    ask = lambda: [health_from(dev.address, "127.0.0.3", path) for _ in range(20) for path in paths]
    quiet = ask()
    deaf, request = [], b"GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n" * 50
    for _ in range(arguments.sockets):
        stream = socket.create_connection(dev.address, source_address=("127.0.0.2", 0))
        stream.setblocking(False)
        try:
            stream.send(request)
        except BlockingIOError:
            pass
        deaf.append(stream)
    time.sleep(0.5)
    took = ask()
    [stream.close() for stream in deaf]
    dev.end()
    print(f"| {arguments.sockets} sockets that never read, a server of 100 connections | median | slowest of {len(took)} |")
    print("|---|---|---|")
    print(f"| health from another address, before them | {middle(quiet) * 1000:.1f} ms | {max(quiet) * 1000:.1f} ms |")
    print(f"| ... while they are open | {middle(took) * 1000:.1f} ms | {max(took) * 1000:.1f} ms |")
    return verdict(["health"] if max(took) > HEALTH_SECONDS else [], f"every answer within {HEALTH_SECONDS:.0f} s")


def read_document(address, count):
    """Reads /openapi.json over `count` connections until it is killed: a program of its own, last in line for the processor."""
    os.nice(19)

    def read():
        while True:
            connection = http.client.HTTPConnection(*address, timeout=PATIENCE)
            try:
                while True:
                    connection.request("GET", "/openapi.json")
                    connection.getresponse().read()
            except (OSError, http.client.HTTPException):
                time.sleep(0.01)

    for _ in range(count):
        threading.Thread(target=read, daemon=True).start()
    signal.pause()


def document(arguments):
    rows, broken = [], []
    # Readers without a key have a rate: the bound is on a server with its limits. Without them the row says what it would be.
    for profile, more in [("production limits", ["--limits", "production", "--set=limits.api_writes=100000/s burst 100000"]),
                          ("limits off", [])]:
        dev = Dev(*more)
        creations = lambda: dev.load("create", "--connections", "1", "--rate", "100", "--duration", "12s", "--warmup", "500ms")["latencyUs"]
        creations()
        quiet, beside = [], []
        for _ in range(3):
            quiet.append(creations())
            reader = os.fork()
            if reader == 0:
                read_document(dev.address, arguments.readers)
            time.sleep(1)
            beside.append(creations())
            os.kill(reader, signal.SIGKILL)
            os.waitpid(reader, 0)
        dev.end()
        figure = lambda reports, name: statistics.median(report[name] for report in reports) / 1000
        ratio = figure(beside, "p99") / figure(quiet, "p99")
        rows.append((profile, *(f"{figure(reports, name):.2f}" for name in ("p50", "p99") for reports in (quiet, beside)), f"{ratio:.2f}"))
        if profile == "production limits" and ratio > CREATION_RATIO:
            broken.append(profile)
    print(f"| {arguments.readers} readers of `/openapi.json` | creation p50, quiet | beside them | p99, quiet | beside them | ratio |")
    print("|---|---|---|---|---|---|")
    for profile, p50, p50_beside, p99, p99_beside, ratio in rows:
        print(f"| {profile} | {p50} ms | {p50_beside} ms | {p99} ms | {p99_beside} ms | {ratio} |")
    return verdict(broken, f"p99 at most {CREATION_RATIO:.0f} times the quiet one, with production limits")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    figures = {"nodes": nodes, "transfers": transfers, "sockets": sockets, "document": document}
    parser.add_argument("what", nargs="+", choices=figures)
    parser.add_argument("--faults", type=lambda text: text.split(","), default=[])
    for name, usual in [("samples", 24), ("agents", 12), ("rounds", 3), ("sockets", 110), ("readers", 32)]:
        parser.add_argument(f"--{name}", type=int, default=usual)
    arguments = parser.parse_args()
    sys.exit(max([figures[what](arguments) for what in arguments.what]))


if __name__ == "__main__":
    main()
