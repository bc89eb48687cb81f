#!/usr/bin/env python3
"""Stands in for llama-bench: answers with what was published for a model and a thread count, or as badly as it is told.

FAKE_DATASET names the rows of data/bench (rpi5, x86, x86-paper); FAKE_SIZE=1 reports model_size; FAKE_MODE makes it
fail; FAKE_LOG is a file to which it appends its arguments. The model is named by its file.
"""

import csv
import json
import os
import pathlib
import sys
import time

DATA = pathlib.Path(__file__).resolve().parent / "data" / "bench"
MODE = os.environ.get("FAKE_MODE", "")
DATASET = os.environ.get("FAKE_DATASET", "x86")
HELP = "usage: llama-bench [options]\n  -o, --output <csv|json|jsonl|md|sql>\n  -n, --n-gen <n>\n"


def rows(name, dataset):
    with open(DATA / name, encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if row["dataset"].startswith(dataset)]


def rates(model, threads, depth):
    """(decode, prefill, bytes), from the sweep where there is one, else from the points of the fit."""
    if DATASET == "depth":
        with open(DATA / "long_context.csv", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if row["model"] == model and int(row["depth"]) == depth and row["decode_tok_s"]:
                    return float(row["decode_tok_s"]), None, int(row["weight_bytes"])
        return None
    for row in rows("thread_sweeps.csv", DATASET) if DATASET != "x86-paper" else []:
        if row["model"] == model and int(row["threads"]) == threads:
            return float(row["decode_tok_s"]), float(row["prefill_tok_s"]), int(row["bytes_per_token"])
    exact = {"rpi5": "rpi5-cortex-a76", "x86": "x86-i7-12700H", "x86-paper": "x86-paper-pc_roofline"}[DATASET]
    for row in rows("fit_points.csv", exact):
        if row["model"] == model and int(row["best_threads"]) == threads:
            return float(row["decode_tok_s"]), None, int(row["bytes_per_token"])
    return None


def record(options, prompt, generated, rate, size):
    one = {"build_commit": "0123abc", "build_number": 4242, "cpu_info": "a processor", "backends": "CPU",
           "gpu_info": os.environ.get("FAKE_GPU", ""), "model_filename": options["-m"], "model_type": "qwen2 [1B] Q4",
           "n_gpu_layers": int(options["-ngl"]), "n_threads": int(options["-t"]), "n_prompt": prompt,
           "n_gen": generated, "avg_ts": rate, "stddev_ts": rate * float(os.environ.get("FAKE_NOISE", "0.01"))}
    if os.environ.get("FAKE_SIZE"):
        one["model_size"] = size
    return one


def main():
    arguments = sys.argv[1:]
    if log := os.environ.get("FAKE_LOG"):
        with open(log, "a", encoding="utf-8") as file:
            file.write(json.dumps({"argv": arguments, "stdin": sys.stdin.read()}) + "\n")
    if "--help" in arguments:
        print("usage: another program" if MODE == "other" else HELP + ("" if MODE == "old" else "  -d, --n-depth <n>\n"))
        return 0
    options = dict(zip(arguments[::2], arguments[1::2]))
    model = pathlib.Path(options["-m"]).stem
    print("load_backend: loaded CPU backend from /usr/lib/libggml-cpu.so", file=sys.stderr)
    if MODE == "hang" or (MODE.startswith("hang-from-") and int(options["-t"]) >= int(MODE.rsplit("-", 1)[1])):
        time.sleep(600)
    if MODE == "crash":
        os.kill(os.getpid(), 11)
    found = rates(model, int(options["-t"]), int(options.get("-d", 0)))
    if MODE == "fail" or MODE == "fail-" + model or found is None:
        print("build: 4242 (0123abc)\nggml_cpu: no layers\nerror: unable to load model '" + model + "'\nmain: bye",
              file=sys.stderr)
        return 1
    if MODE in ("empty", "brackets"):
        print("" if MODE == "empty" else "[]")
        return 0
    decode, prefill, size = found
    records = []
    if prefill is not None:
        records.append(record(options, int(options["-p"]), 0, prefill, size))
    records.append(record(options, 0, int(options["-n"]), decode, size))
    banner = "ggml: [CUDA] found [1] device\n" if MODE == "banner" else ""
    print(banner + json.dumps(records, indent=2) + ("\nbye [really]" if MODE == "banner" else ""))
    return 0


sys.exit(main())
