#!/usr/bin/env python3
"""What payments cost as they become more: creations, lists, a start, memory and disk at growing numbers of open payments.

    api/benches/growth.py [--sizes 10000,100000,1000000,10000000] [--idle 60] [--svg docs/pictures/growth.svg] [--json FILE] [--data DIR]

Up to a million are opened through REST, more are written by `cargo bench -p storage --bench commit -- into`, which goes the
store's own way of writing. Each figure is the median of three runs of `hivetill load` against a gateway that has just
started; between them the payments stay, but for those of 16 connections, which go to a copy. Needs `cargo build --profile dist`. Python's standard library is all it needs.
`--plot FILE` draws an earlier --json again.
"""
import argparse, json, os, shutil, signal, statistics, subprocess, sys, tempfile, time, urllib.request

HIVETILL = os.environ.get("HIVETILL", "target/dist/hivetill")
THROUGH_REST = 1_000_000


class Gateway:
    def __init__(self, data):
        begun = time.monotonic()
        free = sum((["--" + port, "127.0.0.1:0"] for port in ("listen", "ledger-listen", "grpc-listen")), [])
        self.process = subprocess.Popen([HIVETILL, "dev", "--json", "--data", data] + free, stdout=subprocess.PIPE)
        said = json.loads(self.process.stdout.readline())
        self.url, self.key = said["api"], said["merchant"]["apiKey"]
        self.merchant = said["merchant"].get("id") or said["merchant"]["merchantId"]
        while True:
            try:
                if urllib.request.urlopen(self.url + "/readyz").status == 200:
                    break
            except OSError:
                pass
            time.sleep(0.01)
        self.seconds_to_ready = time.monotonic() - begun

    def load(self, workload, *options):
        command = [HIVETILL, "load", workload, "--url", self.url, "--json", *map(str, options)]
        told = subprocess.run(command, env={**os.environ, "HIVETILL_API_KEY": self.key}, capture_output=True, text=True)
        if told.returncode:
            sys.exit(told.stderr)
        report = json.loads(told.stdout)
        if report["errors"]:
            sys.exit(f"errors: {report}")
        return report

    def count(self):
        asked = urllib.request.Request(self.url + "/api/public/payments?limit=1", headers={"x-api-key": self.key})
        page = json.load(urllib.request.urlopen(asked))
        return page.get("total") or page["pagination"]["total"]

    def resident_mb(self):
        rollup = open(f"/proc/{self.process.pid}/smaps_rollup").read()
        return int(rollup.split("Rss:")[1].split()[0]) * 1024 / 1e6

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def measure(data, size, idle):
    gateway = Gateway(data)
    have = gateway.count()
    if have < size and have < THROUGH_REST:
        gateway.load("status", "--sessions", min(size, THROUGH_REST) - have, "--duration", "1s", "--connections", 1)
        have = gateway.count()
    if have < size:
        merchant = gateway.merchant
        gateway.end()
        fill = ["cargo", "bench", "-q", "-p", "storage", "--bench", "commit", "--", "into", os.path.abspath(data)]
        subprocess.run(fill + [merchant, str(size - have)], check=True)
    else:
        gateway.end()
    gateway = Gateway(data)
    row = {"payments": gateway.count(), "secondsToReady": round(gateway.seconds_to_ready, 2)}
    time.sleep(idle)
    row["residentIdleMB"] = round(gateway.resident_mb())
    row["diskMB"] = round(sum(os.path.getsize(os.path.join(data, name)) for name in os.listdir(data)) / 1e6)
    middle = lambda reports, figure: round(statistics.median(map(figure, reports)))
    lists = [gateway.load("list", "--sessions", 1, "--connections", 1, "--duration", "1s", "--warmup", "200ms") for _ in range(3)]
    row["listP50Us"] = middle(lists, lambda report: report["latencyUs"]["p50"])
    ones = [gateway.load("create", "--connections", 1, "--duration", "1s", "--warmup", "200ms") for _ in range(3)]
    row["createP50Us"] = middle(ones, lambda report: report["latencyUs"]["p50"])
    gateway.end()
    # Long enough for full logs to be written into the database; a copy, so that the next size does not begin with those.
    copy = data + "-copy"
    shutil.copytree(data, copy)
    gateway = Gateway(copy)
    many = [gateway.load("create", "--connections", 16, "--duration", "4s", "--warmup", "500ms") for _ in range(3)]
    row["createPerSecond16"] = middle(many, lambda report: report["perSecond"])
    row["createCpuUs16"] = middle(many, lambda report: report["server"]["cpuUsPerResponse"])
    row["residentMB"] = round(gateway.resident_mb())
    gateway.end()
    shutil.rmtree(copy)
    print(json.dumps(row), flush=True)
    return row


def plot(rows):
    """Two small charts over the number of payments, which grows by powers of ten."""
    import math

    width, height, left, bottom = 380, 240, 64, 46
    lows = math.floor(math.log10(min(row["payments"] for row in rows)))
    highs = math.ceil(math.log10(max(row["payments"] for row in rows)) - 0.2)
    names = {4: "10⁴", 5: "10⁵", 6: "10⁶", 7: "10⁷", 8: "10⁸"}

    def chart(at, title, unit, lines):
        highest = max(value for _, _, values in lines for value in values) * 1.1
        step_of = 10 ** math.floor(math.log10(highest / 4))
        top = 4 * step_of * math.ceil(highest / 4 / step_of)
        x = lambda count: at + left + (math.log10(count) - lows) / (highs - lows + 0.15) * (width - left - 20)
        y = lambda value: 40 + (height - 40 - bottom) * (1 - value / top)
        out = [f'<text x="{at + left}" y="22" class="title">{title}</text>']
        for step in range(5):
            value = top * step / 4
            label = f"{value:,.0f}"
            out.append(f'<path class="grid" d="M{at + left} {y(value):.1f}H{at + width - 10}"/>')
            out.append(f'<text x="{at + left - 6}" y="{y(value) + 4:.1f}" class="end">{label}</text>')
        for power in range(lows, highs + 1):
            out.append(f'<text x="{x(10 ** power):.1f}" y="{height - bottom + 18}" class="mid">{names.get(power, power)}</text>')
        out.append(f'<text x="{at + (left + width) / 2:.1f}" y="{height - 8}" class="mid">open payments in the store</text>')
        out.append(f'<text transform="translate({at + 14} {(40 + height - bottom) / 2:.1f}) rotate(-90)" class="mid">{unit}</text>')
        for name, colour, values in lines:
            points = [(x(row["payments"]), y(value)) for row, value in zip(rows, values)]
            path = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
            out.append(f'<polyline points="{path}" stroke="{colour}" class="line"/>')
            out += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3.5" fill="{colour}"/>' for px, py in points]
            middle = len(points) // 2
            out.append(f'<text x="{points[middle][0]:.1f}" y="{points[middle][1] - 10:.1f}" class="mid" style="fill:{colour}">{name}</text>')
        return out

    of = lambda figure: [row[figure] for row in rows]
    rates = chart(0, "Durable creations over REST", "a second, 16 connections", [("", "#0b6e4f", of("createPerSecond16"))])
    waits = chart(width + 20, "One request, one connection", "p50, microseconds", [
        ("a creation", "#0b6e4f", of("createP50Us")), ("a page of 20 payments", "#b3541e", of("listP50Us"))])
    style = ("text{font:12px sans-serif;fill:#222}.title{font-weight:bold}.end{text-anchor:end}.mid{text-anchor:middle}"
             ".grid{stroke:#ddd}.line{fill:none;stroke-width:2}")
    whole = 2 * width + 20
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole} {height}" width="{whole}" height="{height}">',
                      f"<style>{style}</style>", f'<rect width="{whole}" height="{height}" fill="#fff"/>', *rates, *waits, "</svg>", ""])


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--sizes", default="10000,100000,1000000,10000000")
    arguments.add_argument("--idle", type=float, default=60, help="seconds before memory is looked at")
    arguments.add_argument("--svg", default="docs/pictures/growth.svg")
    arguments.add_argument("--json")
    arguments.add_argument("--data", help="keeps the store here; it may hold payments already")
    arguments.add_argument("--plot", help="draws an earlier --json and measures nothing")
    args = arguments.parse_args()
    if args.plot:
        rows = json.load(open(args.plot))
    else:
        data = args.data or tempfile.mkdtemp(prefix="hivetill-growth-")
        try:
            rows = [measure(data, int(size), args.idle) for size in args.sizes.split(",")]
        finally:
            if not args.data:
                shutil.rmtree(data)
        if args.json:
            json.dump(rows, open(args.json, "w"), indent=1)
    open(args.svg, "w").write(plot(rows))


if __name__ == "__main__":
    main()
