#!/usr/bin/env python3
"""The PostgreSQL store measured: creations beside bare INSERTs, with a slower network, and settlements of several engines.

    api/benches/scale_out.py [WHAT…] [--seconds 8] [--rounds 3] [--connections 1,16,64] [--engines 1,2,3]
                            [--callers 128] [--sessions 4000]

    creations   REST creations beside single-row INSERTs into the same server, with transactions and CPU time of each creation
    delay       p50 and p99 of creations with 1 ms added to each round trip to the database
    settle      x402 settlements a second through a facade of 1, 2 and 3 engines, with the CPU time of each process

Both sides of a ratio are measured in turns. Bare INSERTs are prepared, durable, one a transaction, of 300 bytes, into a table without
an index. The server, the engines and the clients share the machine. The server gets a cluster of its own in a temporary folder: fsync and
synchronous_commit on. Needs `cargo build --profile dist` (HIVETILL names another program) and PostgreSQL's programs (PG_BIN names their
folder). Python's standard library is all it needs.
"""
import argparse, asyncio, atexit, glob, json, os, pwd, shutil, signal, statistics, subprocess, sys, tempfile, threading, time
import urllib.request

HIVETILL = os.environ.get("HIVETILL", "target/dist/hivetill")
FREE = "127.0.0.1:0"
TOKEN = "a-token-of-the-engines-of-a-measurement-of-a-database"
PATIENCE = 60
DELAY = 0.001
# A settlement waits for its block.
BLOCK = 250
TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pids):
    """Returns the CPU time of processes, with that of their children that have ended."""
    total = 0
    for pid in pids:
        try:
            fields = open(f"/proc/{pid}/stat").read().rsplit(") ", 1)[1].split()
            total += sum(map(int, fields[11:15]))
        except FileNotFoundError:
            pass
    return total / TICK


class Server:
    """A PostgreSQL cluster that ends with us."""

    def __init__(self, folder):
        self.folder = folder
        found = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[4]))
        self.bin = os.environ.get("PG_BIN") or (found[-1] if found else sys.exit("no initdb: install postgresql"))
        os.chmod(folder, 0o755)
        place = os.path.join(folder, "postgres")
        os.mkdir(place)
        # PostgreSQL refuses to run as root.
        self.owner = pwd.getpwnam("postgres") if os.getuid() == 0 else None
        if self.owner:
            os.chown(place, self.owner.pw_uid, self.owner.pw_gid)
        self.place, self.data = place, os.path.join(place, "data")
        self.run("initdb", "-D", self.data, "-U", "bench", "-A", "trust", "--locale=C", "--encoding=UTF8")
        options = f"-k {place} -c listen_addresses= -c fsync=on -c synchronous_commit=on -c max_connections=300"
        self.run("pg_ctl", "-D", self.data, "-w", "-l", os.path.join(place, "log"), "-o", options, "start")
        atexit.register(self.run, "pg_ctl", "-D", self.data, "-m", "immediate", "stop")
        self.pid = int(open(os.path.join(self.data, "postmaster.pid")).readline())

    def run(self, program, *arguments):
        as_owner = {"user": self.owner.pw_uid, "group": self.owner.pw_gid, "extra_groups": []} if self.owner else {}
        # The server inherits the output of pg_ctl: a pipe would have no end.
        output = subprocess.DEVNULL if program == "pg_ctl" else subprocess.PIPE
        done = subprocess.run([os.path.join(self.bin, program), *arguments], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                              text=True, cwd="/", env={**os.environ, "LC_ALL": "C"}, **as_owner)
        if done.returncode != 0:
            sys.exit(f"{program}: {done.stderr}")
        return done.stdout

    def sql(self, database, sql):
        return self.run("psql", "-qAtX", "-h", self.place, "-U", "bench", "-d", database, "-c", sql).strip()

    def new_database(self, name):
        self.sql("postgres", f"CREATE DATABASE {name}")
        done = subprocess.run([HIVETILL, "migrate", f"--set=store.url={self.url(name)}"], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"migrate: {done.stderr}")
        return name

    def url(self, database, place=None):
        return f"postgres://bench@{(place or self.place).replace('/', '%2F')}/{database}"

    def bench(self, script, connections, seconds, place=None):
        """Runs pgbench; returns transactions a second and the mean latency in milliseconds."""
        path = os.path.join(self.folder, "script.sql")
        open(path, "w").write(script)
        said = self.run("pgbench", "-n", "-M", "prepared", "-f", path, "-c", str(connections), "-j", str(min(2, connections)),
                        "-T", str(seconds), "-h", place or self.place, "-U", "bench", "postgres")
        latency = float(said.split("latency average = ")[1].split(" ms")[0])
        return float(said.split("tps = ")[1].split()[0]), latency

    def pids(self):
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.pid)], capture_output=True, text=True).stdout.split()
        return [self.pid, *map(int, children)]

    def transactions(self, database):
        # Statistics of an idle session arrive within a second.
        time.sleep(1.2)
        return int(self.sql("postgres", f"SELECT xact_commit FROM pg_stat_database WHERE datname = '{database}'"))


class Process:
    """A program of ours that ends with us."""

    def __init__(self, *arguments):
        self.log = tempfile.NamedTemporaryFile("w+", prefix="hivetill-", suffix=".log")
        self.child = subprocess.Popen([HIVETILL, *arguments], stdout=subprocess.PIPE, stderr=self.log, text=True)
        atexit.register(self.child.kill)

    def said(self):
        line = self.child.stdout.readline()
        return json.loads(line) if line else self.fail("it ended")

    def after(self, words):
        """Returns the word after some others in the log."""
        ends = time.monotonic() + PATIENCE
        while time.monotonic() < ends and self.child.poll() is None:
            for line in open(self.log.name):
                if words in line:
                    return line.split(words)[1].split()[0].rstrip("),")
            time.sleep(0.02)
        self.fail(f"its log has no “{words}”")

    def fail(self, why):
        sys.exit(f"{why}: {open(self.log.name).read()}")

    def end(self):
        self.child.send_signal(signal.SIGTERM)
        if self.child.wait(PATIENCE) != 0:
            self.fail("it did not end well")


class Delay:
    """A Unix socket before another one, which passes on what a client sends after a millisecond."""

    def __init__(self, target, folder):
        self.target, self.folder = target, folder
        self.path = os.path.join(folder, os.path.basename(target))
        is_ready = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self.serve(is_ready)), daemon=True).start()
        is_ready.wait(PATIENCE)

    async def serve(self, is_ready):
        async with await asyncio.start_unix_server(self.connected, self.path):
            # Clients run as the user of the server.
            os.chmod(self.folder, 0o755)
            os.chmod(self.path, 0o777)
            is_ready.set()
            await asyncio.Future()

    async def connected(self, reader, writer):
        far_reader, far_writer = await asyncio.open_unix_connection(self.target)
        await asyncio.gather(self.forward(reader, far_writer, DELAY), self.forward(far_reader, writer, 0))

    async def forward(self, reader, writer, delay):
        loop = asyncio.get_running_loop()
        while data := await reader.read(1 << 16):
            if delay:
                loop.call_later(delay, writer.write, data)
            else:
                writer.write(data)
        loop.call_later(delay, writer.close)


def load(workload, url, key, connections, seconds, *more):
    said = subprocess.run([HIVETILL, "load", workload, "--url", url, "--connections", str(connections), "--duration", f"{seconds}s",
                           "--json", *more], capture_output=True, text=True, env={**os.environ, "HIVETILL_API_KEY": key})
    if said.returncode != 0:
        sys.exit(f"load: {said.stdout} {said.stderr}")
    return json.loads(said.stdout)


def gateway(server, folder, url):
    process = Process("dev", "--json", "--data", tempfile.mkdtemp(dir=folder), "--listen", FREE, "--ledger-listen", FREE,
                      "--grpc-listen", FREE, f"--set=store.url={url}")
    said = process.said()
    return process, said["api"], said["merchant"]["apiKey"]


def creations(options, server, folder):
    database = server.new_database("creations")
    process, api, key = gateway(server, folder, server.url(database))
    insert = f"INSERT INTO bare VALUES ('{'x' * 300}');\n"
    server.sql("postgres", "CREATE TABLE bare (body text)")
    rows = {connections: [] for connections in options.connections}
    for _ in range(options.rounds):
        for connections, measured in rows.items():
            inserts, _ = server.bench(insert, connections, options.seconds)
            before = server.transactions(database), cpu_seconds([process.child.pid]), cpu_seconds(server.pids())
            created = load("create", api, key, connections, options.seconds, "--warmup", "1ms")
            of_engine, of_server = cpu_seconds([process.child.pid]) - before[1], cpu_seconds(server.pids()) - before[2]
            commits = server.transactions(database) - before[0]
            count = created["responses"]
            measured.append((inserts, created["perSecond"], commits / count, of_engine / count * 1e6, of_server / count * 1e6))
    process.end()
    print(f"creations beside bare INSERTs, medians of {options.rounds} runs of {options.seconds} s")
    print(f"{'connections':>12}{'INSERTs/s':>12}{'creations/s':>13}{'ratio':>7}{'transactions':>14}{'engine CPU':>12}{'server CPU':>12}  of a creation")
    for connections, measured in rows.items():
        inserts, created, commits, engine, database_cpu = (statistics.median(each) for each in zip(*measured))
        print(f"{connections:>12}{inserts:>12.0f}{created:>13.0f}{created / inserts:>7.2f}{commits:>14.3f}{engine:>9.0f} us{database_cpu:>9.0f} us")


def delay(options, server, folder):
    database = server.new_database("delayed")
    socket = glob.glob(os.path.join(server.place, ".s.PGSQL.*[0-9]"))[0]
    slow = tempfile.mkdtemp(dir=folder)
    Delay(socket, slow)
    print(f"creations with 1 ms added to each round trip to the database, medians of {options.rounds} runs of {options.seconds} s")
    print(f"{'connections':>12}{'database':>10}{'SELECT 1':>12}{'creations/s':>13}{'p50':>10}{'p99':>10}")
    processes = [(name, place, gateway(server, folder, server.url(database_of, place)))
                 for name, place, database_of in [("direct", None, database), ("delayed", slow, server.new_database("delayed2"))]]
    for connections in options.connections:
        measured = {name: [] for name, _, _ in processes}
        for _ in range(options.rounds):
            for name, place, (_, api, key) in processes:
                _, trip = server.bench("SELECT 1;\n", 1, 1, place)
                created = load("create", api, key, connections, options.seconds)
                latency = created["latencyUs"]
                measured[name].append((trip, created["perSecond"], latency["p50"] / 1e3, latency["p99"] / 1e3))
        for name, runs in measured.items():
            trip, rate, p50, p99 = (statistics.median(each) for each in zip(*runs))
            print(f"{connections:>12}{name:>10}{trip:>9.2f} ms{rate:>13.0f}{p50:>7.2f} ms{p99:>7.2f} ms")
    for _, _, (process, _, _) in processes:
        process.end()


def register(api, account):
    body = json.dumps({"name": "Bench", "hiveAccount": account}).encode()
    request = urllib.request.Request(f"{api}/api/public/merchants/register", body, {"content-type": "application/json"})
    return json.load(urllib.request.urlopen(request, timeout=PATIENCE))["apiKey"]


def until_ready(api, metrics, count):
    """Waits until a facade finds all its engines ready; with one engine it has no metric of that."""
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        page = urllib.request.urlopen(metrics, timeout=5).read().decode()
        ready = sum(line.startswith("hivetill_facade_engine_ready{") and line.endswith(" 1") for line in page.splitlines())
        try:
            urllib.request.urlopen(f"{api}/readyz", timeout=5)
            if count in (1, ready):
                return
        except OSError:
            pass
        time.sleep(0.05)
    sys.exit(f"{metrics}: not all engines are ready")


def fleet(server, folder, ledger, count):
    """Starts engines on a new database and a facade of them; returns the processes, the URL and a key."""
    url = server.url(server.new_database(f"settle{count}_{time.monotonic_ns()}"))
    directories = [tempfile.mkdtemp(dir=folder) for _ in range(count)]
    engines, urls = [], []
    for directory in directories:
        engine = Process("engine", "--network", "dev", "--init", "--data", directory, "--node", ledger["ledger"], "--grpc-listen", FREE,
                         f"--set=store.url={url}", f"--set=grpc.token={TOKEN}", "--set=limits.profile=off",
                         f"--set=ledger.block_interval_ms={BLOCK}", "--set=ledger.poll_interval_ms=50",
                         f"--set=master_key_file={directories[0]}/master-key" if engines else "--set=log.level=info")
        urls.append("http://" + engine.after("gRPC port is "))
        engines.append(engine)
    facade = Process("facade", "--listen", FREE, f"--set=metrics.listen={FREE}", f"--set=grpc.token={TOKEN}", "--set=limits.profile=off",
                     *(f"--engine-url={engine}" for engine in urls))
    api = "http://" + facade.after("listening on ")
    until_ready(api, facade.after("metrics are at "), count)
    return engines, facade, api, register(api, "bob")


def settle(options, server, folder):
    print(f"x402 settlements, medians of {options.rounds} runs; CPU is that of all processes of a kind for one settlement")
    print(f"{'engines':>12}{'settled/s':>12}{'p50':>10}{'p99':>10}{'engines CPU':>13}{'facade CPU':>12}{'server CPU':>12}")
    for count in options.engines:
        measured = []
        for _ in range(options.rounds):
            state = tempfile.mkdtemp(dir=folder)
            chain = Process("ledger", "--json", "--listen", FREE, "--control-listen", FREE, "--block-interval", f"{BLOCK}ms",
                            "--state", os.path.join(state, "chain"))
            ledger = chain.said()
            engines, facade, api, key = fleet(server, folder, ledger, count)
            payer = next(account for account in ledger["accounts"] if account["name"] == "alice")
            kinds = [[engine.child.pid for engine in engines], [facade.child.pid], server.pids()]
            before = list(map(cpu_seconds, kinds))
            report = load("x402-settle", api, key, options.callers, options.seconds, "--sessions", str(options.sessions),
                          "--account", "alice", "--key", payer["activeKey"], "--node", ledger["ledger"])
            used = [(cpu_seconds(pids) - earlier) / max(1, report["responses"]) * 1e6 for pids, earlier in zip(kinds, before)]
            latency = report["latencyUs"]
            measured.append((report["perSecond"], latency["p50"] / 1e3, latency["p99"] / 1e3, *used))
            for process in [facade, *engines, chain]:
                process.end()
        rate, p50, p99, *used = (statistics.median(each) for each in zip(*measured))
        engine, facade, database = used
        print(f"{count:>12}{rate:>12.0f}{p50:>7.1f} ms{p99:>7.1f} ms{engine:>10.0f} us{facade:>9.0f} us{database:>9.0f} us")


MEASUREMENTS = {"creations": creations, "delay": delay, "settle": settle}


def main():
    numbers = lambda text: [int(number) for number in text.split(",")]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", help="creations, delay or settle; all by default")
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=numbers, default=[1, 16, 64])
    parser.add_argument("--engines", type=numbers, default=[1, 2, 3])
    parser.add_argument("--callers", type=int, default=128, help="connections that settle, each one payment at a time")
    parser.add_argument("--sessions", type=int, default=4000, help="payments that a run settles at most")
    options = parser.parse_args()
    if unknown := set(options.what) - set(MEASUREMENTS):
        parser.error(f"no such measurement: {', '.join(sorted(unknown))}")
    folder = tempfile.mkdtemp(prefix="hivetill-scale-out.")
    atexit.register(shutil.rmtree, folder, True)
    server = Server(folder)
    for what in options.what or MEASUREMENTS:
        MEASUREMENTS[what](options, server, folder)


main()
