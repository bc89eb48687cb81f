"""States of the daemon that a live run does not reach in a test's time, for the page: many targets, none, trouble."""

import copy
import math

NOW = 1_800_000_000.0
GB = 1e9


def window(name, mbu, tokens, batch, bandwidth, context=1500.0):
    read = mbu * bandwidth
    return {"window": name, "tokens_per_second": tokens, "decode_busy_ratio": 0.9, "decode_bandwidth_ratio": mbu * 0.9,
            "decode_bytes_per_second": read * 0.9, "mbu_ratio": mbu, "tokens_per_second_bound": tokens / mbu, "batch_size": batch,
            "context_tokens": context,
            "itl_seconds": {name: batch / tokens * scale for name, scale in (("mean", 1), ("p50", 0.95), ("p95", 1.4), ("p99", 2))}}


def target(name, index=0, memory="ram", mbu=0.6, full=40 * GB, caveats=(), **changes):
    batch = 1 + index % 7
    tokens = (20 + 13 * (index % 9)) * (30 if memory == "gpu" else 1)
    server = "vllm" if memory == "gpu" else "llama.cpp"
    made = {"target": name, "server": server, "version": "b8123", "model": f"model-{index % 5}-Q4_K_M.gguf", "port": 8000 + index,
            "memory": memory, "role": "engine", "up": True, "configured": False, "replicas": 1.0, "bandwidth": full,
            "ceiling_exceeded": mbu > 1, "geometry": {"architecture": "llama", "source": "file"}, "caveats": list(caveats),
            "windows": [window("1m", mbu, tokens, batch, full), window("5m", mbu, tokens, batch, full)],
            "live": window("10s", mbu, tokens, batch, full)}
    made.update(changes)
    return {key: value for key, value in made.items() if value is not None}


def cell(kernel, threads, rates):
    ordered = sorted(rates)
    median = ordered[len(ordered) // 2]
    return {"kernel": kernel, "threads": threads, "best": ordered[-1], "median": median,
            "stable": median >= 0.75 * ordered[-1], "samples": list(rates)}


def ceiling():
    rates = [39.1, 38.2, 40.0, 31.5, 39.6, 40.3, 38.9, 39.9]
    return {"source": "measured", "kernel": "read4", "threads": 2, "bytes_per_second": 40 * GB, "median_bytes_per_second": 38 * GB,
            "median_to_best": 0.95, "age_seconds": 7300.0, "stable": True, "suspect": False, "stale": False,
            "results": [{"measured_at": NOW - (8 - i) * 21600, "bytes_per_second": rate * GB, "kernel": "read4", "threads": 2}
                        for i, rate in enumerate(rates)]}


def last_measurement():
    def wave(centre, spread, count):
        return [(centre + spread * math.sin(1.7 * i)) * GB for i in range(count)]
    cells = [cell("read1", 1, wave(22, 0.5, 5)), cell("read4", 1, wave(30, 0.7, 5)), cell("read4", 2, wave(39, 1, 5)),
             cell("dot2", 2, wave(37, 1, 5)), cell("copy", 2, wave(15, 11, 5))]
    return {"measured_at": NOW - 7300, "verdict": "confirmed", "working_set_bytes": 2 << 30, "cells": cells,
            "confirmation": cell("read4", 2, wave(39, 1, 9)), "warnings": []}


def state(targets, **changes):
    ram = any(one["memory"] == "ram" for one in targets)
    made = {"taken_at": NOW, "version": "0.1.0", "targets": targets,
            "node_ratios": [{"window": "1m", "memory": "ram", "ratio": 0.54}] if ram else [],
            "ceiling": ceiling(), "ceiling_last": last_measurement(), "idle_blocked": {"requests": True, "cpu": False},
            "capture": {"dropped_packets": 0, "parse_errors": {"tls": 0}},
            "collectors": [{"name": "tap", "up": True}, {"name": "ceiling", "up": True}]}
    made.update(changes)
    return {key: value for key, value in made.items() if value is not None}


def history(one_state):
    """Ten minutes of gentle waves for every target that has figures, with a pause in between."""
    points = {}
    for index, one in enumerate(one_state["targets"]):
        live = one.get("live")
        if live is None:
            continue
        rows = []
        for step in range(120):
            at = NOW - 600 + 5 * step
            scale = 1 + 0.15 * math.sin(step / (6 + index % 5)) + (0.3 if step > 70 else 0)
            idle = 30 <= step < 40
            rows.append([at, 0 if idle else live["tokens_per_second"] * scale,
                         None if idle else live["itl_seconds"]["mean"] / scale, None if idle else live["mbu_ratio"]])
        points[one["target"]] = rows
    return {"fields": ["at", "tokens_per_second", "itl_seconds", "mbu_ratio"], "targets": points}


def deploy(ago, cause="version", mbu=None, itl=None, **more):
    """A deploy so many seconds ago; a change is (ratio, low, high)."""
    changes = {name: dict(zip(("ratio", "low", "high"), values), slices=30, against=1)
               for name, values in (("mbu_change", mbu), ("itl_change", itl)) if values}
    return {"generation": 2, "timestamp": NOW - ago, "cause": cause, "version": "b8123", "fingerprint": "1f", "ended": False, **changes, **more}


FIRST = {"generation": 1, "version": "b8000", "fingerprint": "0e", "ended": False}


def trouble():
    """Three targets, each with something the matter, under a ceiling in doubt."""
    return state(
        [target("chat", 0, mbu=1.04, deploys=[FIRST, deploy(240, mbu=(0.81, 0.78, 0.84), itl=(1.24, 1.19, 1.3))], caveats=["ceiling_stale", "estimated_tokens"]),
         target("code", 1, mbu=0.31, deploys=[deploy(500, mbu=(1.01, 0.97, 1.05), itl=(1.6, 1.52, 1.7))], caveats=["lossy", "estimated_tokens"]),
         target("gone", 2, up=False, configured=True, live=None, windows=None, bandwidth=None, geometry=None)],
        ceiling={**ceiling(), "suspect": True, "stale": True, "stable": False})


def named():
    small = [target("llama.cpp-8080", 0, deploys=[FIRST, deploy(240, "restart")]), target("chat", 3, mbu=0.42, deploys=[deploy(400, "settings", mbu=(0.8, 0.7, 0.9), itl=(0.9, 0.86, 0.95))]),
             target("vllm-8000", 5, memory="gpu", mbu=0.71, full=3350 * GB)]
    many = [target(f"llama.cpp-{8080 + i}" if i % 3 else f"vllm-{8000 + i}", i, memory="ram" if i % 3 else "gpu",
                   mbu=0.2 + 0.02 * i, full=40 * GB if i % 3 else 3350 * GB, caveats=["merged_frames"] if i % 4 == 0 else [])
            for i in range(32)]
    hostile = target("<img src=x onerror=alert(1)>", 0, model="</script><script>alert(2)</script>" + "m" * 90)
    unmeasured = state([target("chat", 0, bandwidth=None, live=None, windows=[])], ceiling=None, ceiling_last=None)
    return {"one": state(small[:1]), "three": state(small), "many": state(many), "trouble": trouble(),
            "empty": state([], ceiling=None, ceiling_last=None), "unmeasured": unmeasured, "hostile": state([hostile])}


STATES = {name: copy.deepcopy(made) for name, made in named().items()}
