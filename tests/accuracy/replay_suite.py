#!/usr/bin/env python3
"""Captures of simulated engines through `rooflined replay`, held against what the engines really did.

    replay_suite.py BIN_DIR [PART]…

PART: grid, random, speculation, interval, replicas, biases (default: all). Deterministic: the same figures on every
machine. Prints a table for each part; exits with 1 where a bar is missed, and names the runs. The biases have no bar:
they are what README.md tells.
"""

import concurrent.futures
import os
import random
import sys

from runs import MODELS, Binaries, Row

ENGINES = 200


class Bars:
    """Most that a run may be apart; None: no bar."""

    def __init__(self, mbu=None, passes=None, moved=None, tokens_exact=True):
        self.mbu = mbu
        self.passes = passes
        self.bytes = moved
        self.tokens_exact = tokens_exact

    def met_by(self, row):
        return ((self.mbu is None or abs(row.mbu_error()) <= self.mbu)
                and (self.passes is None or abs(row.passes) <= self.passes)
                and (self.bytes is None or abs(row.bytes) <= self.bytes)
                and (not self.tokens_exact or row.tokens == 0))

    def __str__(self):
        parts = [f"MBU {self.mbu}" if self.mbu is not None else "", f"passes {self.passes:.1%}" if self.passes else "",
                 f"bytes {self.bytes:.1%}" if self.bytes else "", "tokens exact" if self.tokens_exact else ""]
        return ", ".join(part for part in parts if part)


EXACT = Bars(mbu=0.001, passes=0.001, moved=0.001)
SPECULATION = Bars(passes=0.02)
REPLICAS = Bars(mbu=0.02 * 0.6)  # 2 % of the MBU


def run(words, model, options, replicas=1, replay_options=()):
    return words, model, options, replicas, replay_options


def grid():
    """B × model × efficiency × prefill; experts are drawn at random, as a router does."""
    for name in MODELS:
        for batch in (1, 4, 16, 64):
            for efficiency in (0.3, 0.6, 0.9):
                for prefill in (False, True):
                    options = ["--efficiency", efficiency, "--concurrency", batch, "--routing", "random",
                               "--prompt-tokens", "20-1200" if name == "window" else "20-300",
                               "--output-tokens", "100-300", "--duration", "12s", "--seed", batch]
                    if prefill:
                        options += ["--prefill-rate", 20000 * efficiency, "--overhead", "1ms"]
                    yield run(f"{name} B={batch} efficiency {efficiency}" + (" prefill" if prefill else ""), name, options)


def random_engines():
    """One replica, streamed, no speculation; everything else is drawn."""
    for seed in range(ENGINES):
        draw = random.Random(seed)
        name = draw.choice(list(MODELS))
        dialect = draw.choice(["openai", "vllm", "sglang", "llama.cpp", "ollama"])
        options = ["--efficiency", round(draw.uniform(0.15, 0.95), 3), "--routing", "random", "--dialect", dialect,
                   "--seed", seed, "--duration", "12s", "--max-batch", draw.choice([4, 16, 256]),
                   "--prompt-tokens", draw.choice(["5-50", "exp:200", "lognormal:300:1", "1000"]),
                   "--output-tokens", draw.choice(["40-80", "200", "lognormal:120:0.8"])]
        if draw.random() < 0.6:
            options += ["--concurrency", draw.choice([1, 2, 3, 5, 8, 13, 24, 48])]
        else:
            options += ["--rate", round(draw.uniform(0.2, 8), 3)]
        if draw.random() < 0.6:
            options += ["--prefill-rate", draw.choice([2000, 10000, 50000]), "--prefill-chunk",
                        draw.choice([0, 0, 256, 2048]), "--cached-prompts", draw.choice([0, 0.5])]
        if draw.random() < 0.5:
            options += ["--overhead", f"{draw.choice([0.1, 0.5, 3])}ms"]
        if draw.random() < 0.4:
            options += ["--jitter", draw.choice([0.05, 0.3]), "--jitter-correlation", draw.choice([0, 0.8])]
        yield run(f"engine {seed} ({name}, {dialect})", name, options)


def drafts(dialect, declared, acceptance, batch):
    options = ["--efficiency", 0.6, "--dialect", dialect, "--draft-tokens", 4, "--acceptance", acceptance,
               "--concurrency", batch, "--output-tokens", "200-400", "--duration", "30s"]
    options += [] if declared else ["--hide-drafts"]
    words = f"{dialect} acceptance {acceptance} B={batch}" + ("" if declared else " undeclared")
    return run(words, "dense", options)


def speculation():
    """Four drafts: a burst of frames a pass (llama.cpp), or one frame (vLLM), which tells the tokens so far or not;
    declared in the answers or not."""
    for dialect, declared in (("llama.cpp", True), ("llama.cpp", False), ("vllm", True), ("vllm", False),
                              ("vllm-force-usage", True), ("vllm-force-usage", False)):
        for acceptance in (0.3, 0.7, 0.95):
            for batch in (1, 8):
                yield drafts(dialect, declared, acceptance, batch)


def interval():
    """Eight tokens a frame."""
    for dialect in ("vllm", "sglang"):
        for batch in (1, 8):
            yield run(f"{dialect} stream interval 8 B={batch}", "dense",
                      ["--efficiency", 0.6, "--dialect", dialect, "--stream-interval", 8, "--concurrency", batch,
                       "--output-tokens", "200-400", "--duration", "30s"])


def replicas():
    """Two and four engines behind one port."""
    for count in (2, 4):
        for balance in ("least-loaded", "random"):
            for batch in (1, 4):
                yield run(f"{count} replicas {balance} B={batch} each", "dense",
                          ["--efficiency", 0.6, "--replicas", count, "--balance", balance, "--concurrency",
                           count * batch, "--output-tokens", "100-300", "--duration", "30s"], count,
                          ["--replicas", count])


def biases():
    """Where MBU is biased, and by how much."""
    loaded = ["--efficiency", 0.6, "--output-tokens", "100-300", "--duration", "30s"]
    for skew in (0, 0.5, 1, 1.5):
        for batch in (1, 4, 16, 64):
            yield run(f"experts skewed by {skew} B={batch}", "moe",
                      [*loaded, "--routing", "zipf", "--zipf", skew, "--concurrency", batch])
    for share in (0.1, 0.3, 0.6):
        yield run(f"{share:.0%} of the requests not streamed", "dense", [*loaded, "--concurrency", 8, "--whole-share", share])
    for merge in (0.2, 0.5):
        yield run(f"{merge:.0%} of the frames merged", "dense", [*loaded, "--concurrency", 8, "--merge", merge])
    for preemption in (0.01, 0.05):
        yield run(f"{preemption:.0%} of the steps preempt", "dense",
                  [*loaded, "--concurrency", 8, "--preemption", preemption, "--prefill-rate", 20000])
    for share in (0.2, 0.5):
        yield run(f"{share:.0%} of the requests left in the middle", "dense",
                  [*loaded, "--concurrency", 8, "--abort-share", share])
    for acceptance in (0.3, 0.7, 0.95):
        yield drafts("vllm", False, acceptance, 8)
    for overhead in (10, 40):
        yield run(f"bound by compute: {overhead} ms of each step", "dense",
                  [*loaded, "--concurrency", 16, "--overhead", f"{overhead}ms"])
    for count in (2, 4):
        yield run(f"{count} replicas, taken for one", "dense", [*loaded, "--replicas", count, "--concurrency", 2 * count])


PARTS = {
    "grid": (grid, EXACT),
    "random": (random_engines, EXACT),
    "speculation": (speculation, SPECULATION),
    "interval": (interval, SPECULATION),
    "replicas": (replicas, REPLICAS),
    "biases": (biases, None),
}


def rows_of(binaries, runs):
    def one(each):
        words, name, options, count, replay_options = each
        return Row(words, *binaries.replay(MODELS[name], options, count, replay_options))

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(one, runs))


def check(title, rows, bars):
    print(f"\n{title}: {len(rows)} runs\n{Row.HEADER}")
    missed = []
    for row in rows:
        good = bars is None or bars.met_by(row)
        skewed = f"  expert_skew {row.expert_skew:.2f}" if bars is None and abs(row.expert_skew - 1) > 0.005 else ""
        print(f"{row}{skewed}" + ("" if good else "  MISSED"), flush=True)
        if not good:
            missed.append(f"{title}: {row.name}")
    print(f"most apart: MBU {max(abs(row.mbu_error()) for row in rows):.5f}, passes "
          f"{max(abs(row.passes) for row in rows):.3%}, bytes {max(abs(row.bytes) for row in rows):.3%}"
          + (f"; bars: {bars}; missed by {len(missed)} of {len(rows)}" if bars else ""))
    return missed


def main():
    if len(sys.argv) < 2 or any(part not in PARTS for part in sys.argv[2:]):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    binaries = Binaries(sys.argv[1])
    missed = []
    for part in sys.argv[2:] or PARTS:
        runs, bars = PARTS[part]
        missed += check(part, rows_of(binaries, list(runs())), bars)
    for name in missed:
        print("missed:", name, file=sys.stderr)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
