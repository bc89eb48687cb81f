#!/usr/bin/env python3
"""The daemon beside simulated engines on loopback, held against what they really did.

    live_suite.py BIN_DIR [PART]…

PART: grid, prefill, slo, speculation, replicas, minute (default: all, under ten minutes). Needs CAP_NET_RAW and a
machine that does little else: a run that misses its bar while other programs used it is made again, on a few occasions.
Prints a table for each part; exits with 1 where a bar is missed, with 77 where it cannot run.
"""

import concurrent.futures
import contextlib
import copy
import json
import os
import pathlib
import re
import sys
import tempfile
import time

from runs import MODELS, Binaries, Row, relative

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "e2e"))
import processes  # noqa: E402

BANDWIDTH = 1e12
SMALL_MLA = MODELS["dense"].parent / "minicpm3-4b.json"
LIVE_MODELS = {"dense": MODELS["dense"], "moe": MODELS["moe"], "mla": SMALL_MLA}
MBU_MAX = 0.01
SETTLE_SECONDS = 5
# A window is made of whole seconds, and a snapshot once a second.
AFTER_SECONDS = 2.2
OTHERS_MAX = 0.1
ESTIMATE_AHEAD_MAX = 2  # tokens of an answer
AGAIN_MAX = 2  # for each model
WINDOW_SECONDS = 60


class Cell:
    """An engine that the daemon is to watch."""

    def __init__(self, name, model="dense", efficiency=0.6, server=(), replicas=1):
        self.name = name
        self.model = LIVE_MODELS[model]
        self.efficiency = efficiency
        self.server = [str(part) for part in server]
        self.replicas = replicas
        self.port = 0
        self.label = re.sub(r"[^a-z0-9.]+", "-", name.lower())

    def again(self, spare):
        """The same engine as another target, for what the daemon has counted of one stays."""
        cell = copy.copy(self)
        cell.name, cell.label, cell.port = f"{self.name} again", spare.label, spare.port
        return cell

    def target(self):
        return self.label

    def settings(self):
        return (f'[[target]]\nname = "{self.target()}"\nport = {self.port}\nmodel = "{self.model}"\ndevice = "cpu"\n'
                f"replicas = {self.replicas}\n")


class Suite:
    """The daemon, and what it shows of each cell."""

    def __init__(self, binaries, folder, cells):
        self.binaries = binaries
        self.folder = pathlib.Path(folder)
        self.running = processes.Processes(folder)
        self.spares = {(cell.model, cell.replicas): [] for cell in cells}
        for number, ((model, count), spares) in enumerate(self.spares.items()):
            for i in range(AGAIN_MAX):
                spares.append(Cell(f"again {number} {i}", replicas=count))
                spares[-1].model = model
        cells = [*cells, *(spare for spares in self.spares.values() for spare in spares)]
        *ports, self.web = processes.free_ports(len(cells) + 1)
        for cell, port in zip(cells, ports):
            cell.port = port
        # With replicas the memory is that of all of them together.
        self.settings = self.folder / "rooflined.toml"
        self.settings.write_text(
            f'[web]\nlisten = "127.0.0.1:{self.web}"\n[state]\ndirectory = "{folder}"\n'
            f'[capture]\ninterface = "lo"\nports = {ports}\n[ceiling]\npeak_bytes_per_second = {BANDWIDTH}\n'
            + "".join(cell.settings() for cell in cells), encoding="utf-8")

    def __enter__(self):
        self.running.__enter__()
        self.running.start("rooflined", self.binaries.daemon, "run", "--config", self.settings)
        self.running.wait_for("the daemon", lambda: processes.answers(f"http://127.0.0.1:{self.web}/readyz"), 20)
        return self

    def __exit__(self, *error):
        return self.running.__exit__(*error)

    def start(self, cell):
        """The cell's server; its memory is a replica's share of the node's."""
        self.running.start(f"sim-{cell.port}", self.binaries.simulator, "serve", "--listen", f"127.0.0.1:{cell.port}",
                           "--model", cell.model, "--bandwidth", BANDWIDTH / cell.replicas, "--efficiency",
                           cell.efficiency, "--replicas", cell.replicas, *cell.server)
        self.running.wait_for(cell.name, lambda: processes.answers(f"http://127.0.0.1:{cell.port}/health"), 20)

    def stop(self, cell):
        self.running.stop(next(process for name, process in self.running.running if name == f"sim-{cell.port}"))

    def load(self, cell, *options):
        """1: nothing was completed, for all was cut."""
        return self.binaries.json(self.binaries.simulator, "load", "--url", f"http://127.0.0.1:{cell.port}", "--json",
                                  *options, allowed=(0, 1))

    def truth(self, cell):
        return json.loads(processes.get(f"http://127.0.0.1:{cell.port}/sim/truth"))

    def scrape(self):
        return Scrape(processes.get(f"http://127.0.0.1:{self.web}/metrics"))

    def measure(self, cell, *load, whole=False):
        """Loads the cell: (truth, what the daemon shows)."""
        self.start(cell)
        self.load(cell, *load)
        truth = self.truth(cell)
        deadline = time.monotonic() + SETTLE_SECONDS
        scrape = self.scrape()
        while scrape.sum("rooflined_output_tokens_total", cell) < truth["output_tokens"] and time.monotonic() < deadline:
            time.sleep(0.2)
            scrape = self.scrape()
        time.sleep(AFTER_SECONDS)
        shown = self.scrape().figures(cell, whole)
        self.stop(cell)
        return truth, shown


    def judge(self, verdict, cell, load, met, whole=False):
        """One line: a run of the cell, made again where others had their part in missing the bar."""
        spares = self.spares[cell.model, cell.replicas]
        while True:
            others = OtherPrograms(self.running)
            row = Row(cell.name, *self.measure(cell, *load, whole=whole))
            share = others.share()
            if met(row) or share < OTHERS_MAX or not spares:
                return verdict.show(row, met(row))
            print(f"{row}  others used {share:.0%} of the CPUs: again", flush=True)
            cell = cell.again(spares.pop())


class OtherPrograms:
    """What share of the CPUs programs used that are not ours, since the object was made."""

    def __init__(self, running):
        self.pids = [process.pid for _, process in running.running]
        self.begun = self._now()

    def _now(self):
        fields = [int(field) for field in pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        ours = sum(os.times()[:4]) * os.sysconf("SC_CLK_TCK")  # with children that have ended: server and load
        for pid in self.pids:
            with contextlib.suppress(OSError):
                stat = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
                ours += int(stat[11]) + int(stat[12])
        idle = fields[3] + fields[4]
        return sum(fields), sum(fields) - idle - ours

    def share(self):
        whole, others = (now - begun for now, begun in zip(self._now(), self.begun))
        return others / whole if whole else 0.0


class Scrape:
    def __init__(self, text):
        self.series = []
        for line in text.splitlines():
            found = re.match(r"(\w+)(\{.*\})? (\S+)$", line)
            if found:
                self.series.append((found[1], found[2] or "", float(found[3])))

    def values(self, name, *labels):
        return [value for each, text, value in self.series if each == name and all(label in text for label in labels)]

    def sum(self, name, cell):
        return sum(self.values(name, f'target="{cell.target()}"'))

    def gauge(self, name, cell):
        values = self.values(name, f'target="{cell.target()}"', 'window="1m"')
        return values[0] if values else None

    def figures(self, cell, whole):
        """As `rooflined replay` calls them. The gauge of a run that fits into its window; or, where a part of it is not
        like another and `whole` asks for it, the ratio of the counters, as PromQL has it."""
        busy = self.sum("rooflined_decode_busy_seconds_total", cell)
        mbu = self.gauge("rooflined_mbu_ratio", cell)
        if whole and busy:
            mbu = self.sum("rooflined_decode_bytes_total", cell) / (busy / cell.replicas * BANDWIDTH)
        return {
            "mbu_ratio": mbu,
            "decode_passes": self.sum("rooflined_decode_passes_total", cell),
            "decode_bytes": {"total": self.sum("rooflined_decode_bytes_total", cell)},
            "output_tokens": int(self.sum("rooflined_output_tokens_total", cell)),
        }


class Verdict:
    def __init__(self):
        self.missed = []

    def title(self, text):
        print(f"\n{text}\n{Row.HEADER}", flush=True)

    def show(self, row, met, more=""):
        print(f"{row}{more}" + ("" if met else "  MISSED"), flush=True)
        if not met:
            self.missed.append(row.name)

    def say(self, text, met):
        print(text + ("" if met else "  MISSED"), flush=True)
        if not met:
            self.missed.append(text)


def one_round(suite, cell, batch, seconds=2.5):
    """A load of one request for each client, all at once, that lasts so long. They run to their end, for the lengths of
    prompts are told there."""
    step = suite.binaries.pass_bytes(cell.model, max(1, batch // cell.replicas)) * cell.replicas / BANDWIDTH / cell.efficiency
    return ("--concurrency", batch, "--duration", "500ms", "--prompt-tokens", "20-200", "--output-tokens",
            max(12, round(seconds / step)))


def grid_cells():
    return [(Cell(f"{name} B={batch} efficiency {efficiency}", name, efficiency, ["--routing", "random"]), batch)
            for name in LIVE_MODELS for batch in (1, 4, 16, 64) for efficiency in (0.3, 0.6, 0.9)]


def grid(suite, verdict, cells):
    verdict.title("Prefill and overhead zero: MBU is the efficiency")
    for cell, batch in cells:
        suite.judge(verdict, cell, one_round(suite, cell, batch),
                    lambda row, wanted=cell.efficiency: abs(row.mbu - wanted) <= MBU_MAX)


def prefill_cells():
    return [(Cell(f"{name} prefill B={batch}", name, 0.6,
                  ["--routing", "random", "--prefill-rate", 20000, "--overhead", "1ms"]), batch)
            for name in ("dense", "moe") for batch in (4, 16, 64)]


def prefill(suite, verdict, cells):
    verdict.title("Prefill and overhead: MBU is bytes over busy time")
    for cell, batch in cells:
        load = ("--concurrency", batch, "--output-tokens", "20-60", "--prompt-tokens", "50-300", "--duration", "4s")
        suite.judge(verdict, cell, load, lambda row: abs(row.mbu_error()) <= MBU_MAX, whole=True)


def slo_cells():
    return [(Cell("at the SLO boundary", "dense", 0.3,
                  ["--prefill-rate", 5000, "--prefill-chunk", 128, "--overhead", "1ms"]), 0)]


def slo(suite, verdict, cells):
    """The seeds' example: a stack of 30 % efficiency shows about 21 % at its SLO boundary."""
    cell = cells[0][0]
    suite.start(cell)
    found = suite.binaries.json(
        suite.binaries.simulator, "slo", "--url", f"http://127.0.0.1:{cell.port}", "--ttft", "2s", "--itl", "100ms",
        "--percentile", 95, "--prompt-tokens", 400, "--output-tokens", "20-60", "--first-rate", 1.6, "--precision", 0.15,
        "--trial", "10s", "--warm-up", "3s", "--rooflined", f"http://127.0.0.1:{suite.web}", "--json")
    suite.stop(cell)
    boundary = found["boundary"]
    mbu = boundary["rooflined"]["mbu"]
    print(f"\nThe boundary for TTFT p95 ≤ 2 s and ITL p95 ≤ 100 ms: {found['rate']:.2f} requests per second in "
          f"{len(found['trials'])} trials, goodput {boundary['load']['goodput_requests_per_second']:.2f}, batch "
          f"{boundary['rooflined']['batch']:.1f}, {boundary['rooflined']['tokens_per_second']:.0f} tokens/s")
    verdict.say(f"MBU of a stack of 30 % efficiency at its SLO boundary: {mbu:.3f}", abs(mbu - 0.21) <= 0.02)


def speculation_cells():
    cells = []
    for dialect in ("llama.cpp", "vllm-force-usage"):
        for declared in (True, False):
            server = ["--dialect", dialect, "--draft-tokens", 4, "--acceptance", 0.7]
            cells.append((Cell(f"drafts {dialect} {'' if declared else 'un'}declared", "dense", 0.6,
                               server + ([] if declared else ["--hide-drafts"])), 8))
    cells.append((Cell("stream interval 8", "dense", 0.6, ["--dialect", "sglang", "--stream-interval", 8]), 8))
    return cells


def speculation(suite, verdict, cells):
    verdict.title("Four drafts, accepted with 0.7; eight tokens a frame: passes")
    for cell, batch in cells:
        load = ("--concurrency", batch, "--output-tokens", "150-300", "--duration", "5s")
        # A counter never goes back: what was estimated too high of the last answers waits for the next ones to pay it.
        suite.judge(verdict, cell, load, lambda row, most=ESTIMATE_AHEAD_MAX * batch: abs(row.passes) <= 0.02 and 0 <= row.tokens <= most)


def replicas_cells():
    return [(Cell(f"{count} replicas", "dense", 0.6, ["--balance", "least-loaded"], count), 2 * count)
            for count in (2, 4)]


def replicas(suite, verdict, cells):
    verdict.title("Replicas behind one port: MBU of a busy replica")
    for cell, batch in cells:
        suite.judge(verdict, cell, one_round(suite, cell, batch),
                    lambda row: abs(relative(row.mbu, row.mbu_truth)) <= 0.02)


def minute_cells():
    duties = [(Cell(f"duty {duty:.0%}", "dense", 0.6), duty) for duty in (0.01, 0.1, 0.5)]
    engines = [(Cell(f"engine {i}", "dense", 0.15), 1.0) for i in (1, 2)]
    return [*duties, *engines, (Cell("idle", "dense", 0.6), 0.0)]


def ask_at_duty(suite, cell, duty, until):
    """One request after the other, with pauses, so that the engine decodes for `duty` of the time."""
    tokens = 20
    busy = tokens * suite.binaries.pass_bytes(cell.model) / (BANDWIDTH * cell.efficiency)
    begun = time.monotonic()
    asked = 0
    while time.monotonic() < until:
        suite.load(cell, "--concurrency", 1, "--duration", "200ms", "--output-tokens", tokens)
        asked += 1
        time.sleep(max(0.0, min(begun + asked * busy / duty, until) - time.monotonic()))


def minute(suite, verdict, cells):
    verdict.title("Partly idle, and several engines at once: a minute of each")
    for cell, _ in cells:
        suite.start(cell)
    until = time.monotonic() + WINDOW_SECONDS + 4
    with contextlib.ExitStack() as stack:
        pool = stack.enter_context(concurrent.futures.ThreadPoolExecutor(len(cells)))
        for cell, duty in cells:
            if duty == 1:
                pool.submit(suite.load, cell, "--concurrency", 2, "--output-tokens", 100, "--duration",
                            f"{WINDOW_SECONDS + 4}s", "--cut")
            elif duty > 0:
                pool.submit(ask_at_duty, suite, cell, duty, until)
        time.sleep(2)
        before = {cell.name: suite.truth(cell) for cell, _ in cells}
        time.sleep(WINDOW_SECONDS)
        scrape = suite.scrape()
        after = {cell.name: suite.truth(cell) for cell, _ in cells}
    node = 0.0
    for cell, duty in cells:
        moved = after[cell.name]["bytes"]["total"] - before[cell.name]["bytes"]["total"]
        busy = after[cell.name]["busy_seconds"] - before[cell.name]["busy_seconds"]
        node += moved / WINDOW_SECONDS / BANDWIDTH
        mbu, ratio = scrape.gauge("rooflined_mbu_ratio", cell), scrape.gauge("rooflined_decode_bandwidth_ratio", cell)
        if duty == 0:
            verdict.say(f"{cell.name}: no MBU", mbu is None)
            continue
        if mbu is None or ratio is None:
            verdict.say(f"{cell.name}: MBU {mbu}, decode bandwidth ratio {ratio}", False)
            continue
        met = abs(mbu - cell.efficiency) <= MBU_MAX and abs(ratio - cell.efficiency * busy / WINDOW_SECONDS) <= 0.02
        verdict.say(f"{cell.name}: busy {busy / WINDOW_SECONDS:.1%} of a minute; MBU {mbu:.4f} of {cell.efficiency}; decode "
                    f"bandwidth ratio {ratio:.4f}, truth {moved / WINDOW_SECONDS / BANDWIDTH:.4f}", met)
    shown = scrape.values("rooflined_node_decode_bandwidth_ratio", 'window="1m"', 'memory="ram"')[0]
    verdict.say(f"node decode bandwidth ratio {shown:.4f}, sum of the truths {node:.4f}", abs(shown - node) <= 0.02)


PARTS = {
    "grid": (grid_cells, grid),
    "prefill": (prefill_cells, prefill),
    "slo": (slo_cells, slo),
    "speculation": (speculation_cells, speculation),
    "replicas": (replicas_cells, replicas),
    "minute": (minute_cells, minute),
}


def main():
    if len(sys.argv) < 2 or any(part not in PARTS for part in sys.argv[2:]):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    processes.require_packet_sockets()
    binaries = Binaries(sys.argv[1])
    begun = time.monotonic()
    verdict = Verdict()
    cells = {part: PARTS[part][0]() for part in sys.argv[2:] or PARTS}
    for part, its_cells in cells.items():
        with tempfile.TemporaryDirectory() as folder:
            with Suite(binaries, folder, [cell for cell, _ in its_cells]) as suite:
                PARTS[part][1](suite, verdict, its_cells)
    print(f"\n{time.monotonic() - begun:.0f} s; missed: {len(verdict.missed)}")
    for name in verdict.missed:
        print("missed:", name, file=sys.stderr)
    return 1 if verdict.missed else 0


if __name__ == "__main__":
    sys.exit(main())
