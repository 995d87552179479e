#!/usr/bin/env python3
"""A gateway with a million open payments: memory when idle and under reads, and the time until it is ready again.

    api/benches/million.py [--payments 1000000] [--idle 60] [--soak 660] [--rate 400] [--kills 3] [--json FILE]

Opens the payments through REST, rests, opens a hundred thousand more and reads random ones of these for as long as --soak
says (resident memory every 15 s), stops and starts, rests again, and dies by kill -9 under creations as often as --kills
says. Needs `cargo build --profile dist` (HIVETILL names another program). Python's standard library is all it needs.
"""
import argparse, json, os, shutil, signal, subprocess, tempfile, time

from growth import HIVETILL, Gateway

# More than the store keeps in memory.
READ = 100_000


def under_load(gateway, workload, *options):
    """Starts a generator beside us."""
    command = [HIVETILL, "load", workload, "--url", gateway.url, "--json", *map(str, options)]
    environment = {**os.environ, "HIVETILL_API_KEY": gateway.key}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def soak(gateway, seconds, rate):
    reader = under_load(gateway, "status", "--connections", 16, "--sessions", READ, "--rate", rate, "--duration", f"{seconds}s")
    begun, samples = time.monotonic(), []
    while reader.poll() is None:
        time.sleep(15)
        samples.append({"seconds": round(time.monotonic() - begun), "residentMB": round(gateway.resident_mb(), 1)})
    report = json.loads(reader.stdout.read())
    figures = {"responses": report["responses"], "errors": report["errors"], "latencyUs": report["latencyUs"]}
    return {**figures, "cpuUsPerResponse": report["server"]["cpuUsPerResponse"], "resident": samples}


def killed(gateway, data):
    """Kills it with creations under way; returns the one that follows, and how long it took."""
    creator = under_load(gateway, "create", "--connections", 16, "--duration", "60s")
    time.sleep(4)
    gateway.process.send_signal(signal.SIGKILL)
    gateway.process.wait()
    creator.kill()
    creator.wait()
    return Gateway(data)


def measure(data, args):
    told = {}

    def tell(**figures):
        told.update(figures)
        print(json.dumps(figures), flush=True)

    gateway = Gateway(data)
    opened = args.payments - gateway.count()
    gateway.load("status", "--sessions", opened, "--duration", "1s", "--connections", 1)
    time.sleep(args.idle)
    tell(payments=gateway.count(), residentIdleMB=round(gateway.resident_mb(), 1))
    if args.soak:
        tell(soak=soak(gateway, args.soak, args.rate))
    gateway.end()
    gateway = Gateway(data)
    tell(readyAfterStopSeconds=round(gateway.seconds_to_ready, 2))
    time.sleep(args.idle)
    tell(residentIdleAfterStartMB=round(gateway.resident_mb(), 1))
    waits = []
    for _ in range(args.kills):
        gateway = killed(gateway, data)
        waits.append(round(gateway.seconds_to_ready, 2))
    tell(readyAfterKillSeconds=waits, paymentsAtTheEnd=gateway.count())
    gateway.end()
    return told


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--payments", type=int, default=1_000_000)
    arguments.add_argument("--idle", type=float, default=60, help="seconds of rest before memory is looked at")
    arguments.add_argument("--soak", type=int, default=660, help="seconds of reads; 0 for none")
    arguments.add_argument("--rate", type=int, default=400, help="reads a second")
    arguments.add_argument("--kills", type=int, default=3)
    arguments.add_argument("--json")
    args = arguments.parse_args()
    data = tempfile.mkdtemp(prefix="hivetill-million-")
    try:
        told = measure(data, args)
    finally:
        shutil.rmtree(data)
    if args.json:
        json.dump(told, open(args.json, "w"), indent=1)


if __name__ == "__main__":
    main()
