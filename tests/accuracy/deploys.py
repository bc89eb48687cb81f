#!/usr/bin/env python3
"""What `rooflined replay` says of deploys, against the truth of simulated captures: deploys.py BIN_DIR [options]

Each case is a server that runs for forty minutes, is restarted, and runs for ten minutes more. The time of a step varies
by 5 and 10 % from one ten seconds to the next, which hang together by 0.4 and 0.8. Only the first case is a worse server; in
the others its clients or its surroundings change, and nothing may be told of the server. An alert is what the rule would
fire on: an upper bound of the change of MBU under 0.95. The unchanged server is replayed with a ceiling that is a fifth
lower and a fifth higher as well: what is told of the deploy is the same.

Prints a line for each case. Exits with 1 where a bar is missed: no alert in any run of an unchanged server; of the worse
one an alert in 95 of 100, and the true ratio inside the bounds in 97.

Where a tenth and 0.8 come together the bar is 60: the contract's test cannot find 95 there. Ten minutes are 56 slices that are
worth 56 · (1 − 0.8) / (1 + 0.8) = 6.2 which do not hang together, and the forty minutes before are worth 26. So the standard
error of the change is 0.1 · √(1/6.2 + 1/26) = 0.045, the half-width of its bounds 2.79 · 0.045 = 0.124, and 0.126 with the
restart's own 0.02. A fifth less is −0.223; for an alert 0.126 must fit between that and ln 0.95 = −0.051, which leaves one
standard error: 85 of 100 where the spread and how slices hang together are known, 78 where they are estimated. The longest
baseline that is kept, 2,000 slices, makes it 94 and 91.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

CONFIGS = pathlib.Path(__file__).resolve().parent.parent / "collectors" / "model" / "data" / "hf" / "configs"
MODEL = CONFIGS / "llama-3-8b.json"
BANDWIDTH = 100e9  # a pass of eight sequences takes a quarter of a second
DEPLOY_AT, DURATION = "40m", "50m"
EFFICIENCY_BEFORE, EFFICIENCY_AFTER = 0.60, 0.48
RESTART = f"{DEPLOY_AT}:version=b10500-0badc0de"
WORSE, SAME = "efficiency 0.60 to 0.48", "the same again"
OTHER_CEILINGS = (0.8, 1.2)

# name: (what changes with the restart, options of the replay)
CASES = {
    WORSE: f",efficiency={EFFICIENCY_AFTER}",
    SAME: "",
    "batch 8 to 1": ",concurrency=1",
    "prompts ten times as long": ",prompt-tokens=1000-3000",
    "outputs 200 to 50 tokens": ",output-tokens=25-75",
    "a cold cache after the restart": ",warm-up=60s",
}


def replay(binaries, capture, ceiling):
    replayed = subprocess.run([binaries / "rooflined", "replay", "--json", "--model", MODEL, "--ceiling", f"{ceiling:.0f}", capture],
                              check=True, capture_output=True, text=True)
    deploys = json.loads(replayed.stdout)["targets"][0]["deploys"]
    assert [deploy["cause"] for deploy in deploys] == [None, "version"], deploys
    return deploys[-1]["mbu_change"]


def run(binaries, case, variation, correlation, seed):
    with tempfile.NamedTemporaryFile(suffix=".pcap") as capture:
        subprocess.run([binaries / "rooflined-sim", "serve", "--pcap", capture.name, "--model", MODEL, "--dialect", "llama.cpp",
                        "--bandwidth", f"{BANDWIDTH:.0f}", "--efficiency", str(EFFICIENCY_BEFORE), "--concurrency", "8",
                        "--prompt-tokens", "100-300", "--output-tokens", "100-300", "--duration", DURATION,
                        "--jitter", str(variation), "--jitter-correlation", str(correlation), "--jitter-period", "10s",
                        "--seed", str(seed), "--change", RESTART + CASES[case]],
                       check=True, stdout=subprocess.DEVNULL)
        change = replay(binaries, capture.name, BANDWIDTH)
        for factor in OTHER_CEILINGS if case == SAME else ():
            assert replay(binaries, capture.name, factor * BANDWIDTH) == change, f"seed {seed}: the ceiling moves the change"
    return change


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binaries", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--case", choices=CASES, help="one case only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    binaries = options.binaries.resolve()
    truth = EFFICIENCY_AFTER / EFFICIENCY_BEFORE
    missed = 0
    print(f"{'case':<32} {'varies':>6} {'hangs':>6} {'runs':>5} {'compared':>8} {'alerts':>6} {'inside':>6} {'ratio':>15}")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for case in [options.case] if options.case else CASES:
            for variation, correlation in ((0.05, 0.4), (0.05, 0.8), (0.10, 0.4), (0.10, 0.8)):
                changes = list(pool.map(lambda seed: run(binaries, case, variation, correlation, seed),
                                        range(1, options.seeds + 1)))
                told = [change for change in changes if change]
                alerts = sum(change["high"] < 0.95 for change in told)
                right = truth if case == WORSE else 1.0
                inside = sum(change["low"] <= right <= change["high"] for change in told)
                spread = f"{min(c['ratio'] for c in told):.3f} to {max(c['ratio'] for c in told):.3f}" if told else "-"
                print(f"{case:<32} {variation:>6} {correlation:>6} {len(changes):>5} {len(told):>8} {alerts:>6} {inside:>6} "
                      f"{spread:>15}", flush=True)
                if case == WORSE:
                    wanted = 0.60 if (variation, correlation) == (0.10, 0.8) else 0.95
                    missed += alerts < wanted * len(changes) or inside < 0.97 * len(changes)
                else:
                    missed += alerts > 0
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
