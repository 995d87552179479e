#!/usr/bin/env python3
"""Compare two builds of the gateway in interleaved pairs of runs.

    api/benches/pairs.py BASE HEAD [--pairs 20] [--seconds 1.5] [--only NAME,…] [--bound 5] [--json FILE]

BASE and HEAD are two `hivetill` programs built with `cargo build --profile dist`. Each workload runs `hivetill load` against a
gateway of each build, one after the other, with the order swapped in every second pair. The ratio of a pair is HEAD to BASE, of the
processor time of the server for one request and of the median latency (throughput for workloads with many connections). The
command prints the median ratio with a 95 % bootstrap interval, and exits with 1 where the whole interval lies beyond --bound
percent on the worse side. Python's standard library is all it needs.
"""
import argparse, json, os, random, signal, statistics, subprocess, sys, tempfile, time, urllib.request

# name: workload, connections, whether throughput matters more than latency.
WORKLOADS = {
    "create-1": ("create", 1, False),
    "create-16": ("create", 16, True),
    "create-64": ("create", 64, True),
    "status-1": ("status", 1, False),
    "status-16": ("status", 16, True),
    "list-1": ("list", 1, False),
    "checkout-1": ("checkout", 1, False),
    "x402-verify-16": ("x402-verify", 16, True),
    "x402-settle-16": ("x402-settle", 16, True),
}


class Gateway:
    """A development gateway of one build, on free ports and with a data directory of its own."""

    def __init__(self, program):
        self.program = program
        self.data = tempfile.TemporaryDirectory(prefix="hivetill-pairs-")
        ports = [word for port in ("listen", "ledger-listen", "grpc-listen") for word in (f"--{port}", "127.0.0.1:0")]
        command = [program, "dev", "--json", "--data", os.path.join(self.data.name, "data"), *ports]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        screen = json.loads(self.process.stdout.readline())
        self.url, self.key = screen["api"], screen["merchant"]["apiKey"]
        self.ledger = screen.get("ledger")
        deadline = time.monotonic() + 60
        while not self.is_ready():
            if time.monotonic() > deadline:
                sys.exit(f"{program} is not ready after 60 s")
            time.sleep(0.05)

    def is_ready(self):
        try:
            return urllib.request.urlopen(self.url + "/readyz").status == 200
        except OSError:
            return False

    def load(self, workload, connections, seconds):
        command = [self.program, "load", workload, "--url", self.url, "--json", "--connections", str(connections)]
        command += ["--duration", f"{round(seconds * 1000)}ms", "--warmup", "200ms"]
        environment = {**os.environ, "HIVETILL_API_KEY": self.key}
        run = subprocess.run(command, env=environment, capture_output=True, text=True)
        if run.returncode:
            sys.exit(f"{self.program} load {workload}: {run.stderr}")
        report = json.loads(run.stdout)
        latency = report.get("latencyUs") or report["waitsUs"]
        server = report["server"]
        cpu = server.get("cpuUsPerResponse") or server["cpuUsPerAnswer"]
        return {"latency": latency["p50"], "throughput": report["perSecond"], "cpu": cpu}

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.data.cleanup()


def interval(ratios, rounds=2000):
    """Return the median and its 95 % bootstrap interval."""
    draws = random.Random(1)
    medians = sorted(statistics.median(draws.choices(ratios, k=len(ratios))) for _ in range(rounds))
    return statistics.median(ratios), medians[rounds // 40], medians[-rounds // 40]


def compare(base, head, name, pairs, seconds):
    workload, connections, prefers_throughput = WORKLOADS[name]
    figures = ["throughput" if prefers_throughput else "latency", "cpu"]
    ratios = {figure: [] for figure in figures}
    gateways = {"base": Gateway(base), "head": Gateway(head)}
    for number in range(pairs):
        order = ["base", "head"] if number % 2 == 0 else ["head", "base"]
        results = {build: gateways[build].load(workload, connections, seconds) for build in order}
        for figure in figures:
            ratios[figure].append(results["head"][figure] / results["base"][figure])
    for gateway in gateways.values():
        gateway.stop()
    return {figure: interval(values) for figure, values in ratios.items()}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("base")
    arguments.add_argument("head")
    arguments.add_argument("--pairs", type=int, default=20)
    arguments.add_argument("--seconds", type=float, default=1.5)
    arguments.add_argument("--only", default=",".join(WORKLOADS))
    arguments.add_argument("--bound", type=float, default=5)
    arguments.add_argument("--json")
    given = arguments.parse_args()
    names = given.only.split(",")
    unknown = [name for name in names if name not in WORKLOADS]
    if unknown:
        arguments.error(f"unknown workload {unknown[0]}; known: {', '.join(WORKLOADS)}")
    rows, is_worse = [], False
    print(f"{'workload':<16} {'figure':<11} {'HEAD to BASE':>12}   95 % interval, {given.pairs} pairs")
    for name in names:
        for figure, (middle, low, high) in compare(given.base, given.head, name, given.pairs, given.seconds).items():
            worse = high < 1 - given.bound / 100 if figure == "throughput" else low > 1 + given.bound / 100
            is_worse |= worse
            rows.append({"workload": name, "figure": figure, "ratio": middle, "low": low, "high": high})
            mark = "  worse" if worse else ""
            print(f"{name:<16} {figure:<11} {middle:>12.3f}   {low:.3f} to {high:.3f}{mark}", flush=True)
    if given.json:
        with open(given.json, "w") as file:
            json.dump(rows, file, indent=1)
    sys.exit(1 if is_worse else 0)


if __name__ == "__main__":
    main()
