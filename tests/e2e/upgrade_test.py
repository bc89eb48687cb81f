#!/usr/bin/env python3
"""A daemon that is replaced by its next version under traffic, beside a real Prometheus: upgrade_test.py BIN_DIR

It keeps the ceiling, the deploys and what it learned of the length of tokens; its counters begin at 0, and increase()
shows no more tokens than the server gave. Skipped without prometheus or without the right to capture."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from kept_ceiling import keep_ceiling
from processes import Processes, Prometheus, answers, free_ports, get, require, require_packet_sockets

CEILING = 31.25e9
LOAD_SECONDS = 40
# increase() extrapolates to the ends of its range, by half a scrape at most here.
TOLERANCE = 0.03


def metric(web, pattern):
    found = re.search("^" + pattern + r" (\S+)$", get(f"http://127.0.0.1:{web}/metrics"), re.M)
    return float(found[1]) if found else None


def kept(state):
    return json.loads((state / "deploys.json").read_text())["targets"][0]


def prometheus_settings(folder, web):
    path = folder / "prometheus.yml"
    path.write_text("global: {scrape_interval: 1s}\nscrape_configs:\n  - job_name: rooflined\n"
                    f'    static_configs: [{{targets: ["127.0.0.1:{web}"]}}]\n')
    return path


def check_counters(prometheus, tokens, end):
    series = "rooflined_output_tokens_total"
    resets = prometheus.query(f"resets({series}[2m])", end)
    assert [value for _, value in resets] == [1], f"resets: {resets}"
    increase = prometheus.query(f"sum(increase({series}[2m]))", end)[0][1]
    print(f"increase() over the upgrade: {increase:.0f} of {tokens} tokens")
    # What came while neither version ran is missing, and never made up.
    assert 0.5 * tokens < increase <= (1 + TOLERANCE) * tokens


def main():
    programs = pathlib.Path(sys.argv[1]).resolve()
    program, simulator = programs / "rooflined", programs / "rooflined-sim"
    require("prometheus", program, simulator)
    require_packet_sockets()
    port, web, prometheus_port = free_ports(3)
    with tempfile.TemporaryDirectory() as name, Processes(name) as processes:
        folder = pathlib.Path(name)
        state, settings = folder / "state", folder / "rooflined.toml"
        state.mkdir()
        settings.write_text(f'[web]\nlisten = "127.0.0.1:{web}"\n[state]\ndirectory = "{state}"\n'
                            f'[capture]\ninterface = "lo"\nports = [{port}]\n[ceiling]\nmeasure = "never"\n')
        keep_ceiling(program, state, CEILING)
        ready = lambda: answers(f"http://127.0.0.1:{web}/readyz")
        processes.start("server", simulator, "serve", "--listen", f"127.0.0.1:{port}", "--model", "builtin:moe-small",
                        "--bandwidth", "1e15", "--efficiency", "1", "--overhead", "20ms", "--dialect", "llama.cpp")
        processes.wait_for("the server", lambda: answers(f"http://127.0.0.1:{port}/v1/models"), 30)
        old = processes.start("old", program, "run", "--config", settings)
        processes.wait_for("the old version", ready, 30)
        prometheus = Prometheus(prometheus_port)
        processes.start("prometheus", "prometheus", f"--config.file={prometheus_settings(folder, web)}",
                        f"--storage.tsdb.path={folder}/tsdb", f"--web.listen-address=127.0.0.1:{prometheus_port}",
                        "--log.level=warn")
        processes.wait_for("prometheus", prometheus.ready, 60)
        # Before the load, so that its first sample is near 0.
        subprocess.run([simulator, "load", "--url", f"http://127.0.0.1:{port}", "--concurrency", "1", "--duration", "1s",
                        "--output-tokens", "4"], check=True, capture_output=True, timeout=60)
        processes.wait_for("a first sample", lambda: prometheus.query("rooflined_output_tokens_total"), 30)
        load = subprocess.Popen([simulator, "load", "--url", f"http://127.0.0.1:{port}", "--concurrency", "4", "--duration",
                                 f"{LOAD_SECONDS}s", "--output-tokens", "64", "--json"], stdout=subprocess.PIPE, text=True)
        time.sleep(LOAD_SECONDS / 2)
        assert processes.stop(old) == 0
        before = kept(state)
        assert before["learned"]["prompts"]["texts"] > 0 and before["learned"]["totals"] > 0, before["learned"]
        processes.start("new", program, "run", "--config", settings)
        processes.wait_for("the new version", ready, 30)
        assert metric(web, "rooflined_ceiling_bytes_per_second") == CEILING
        assert (metric(web, r"rooflined_output_tokens_total\{.*\}") or 0) < 64 * LOAD_SECONDS, "the counters are old ones"
        tokens = json.loads(load.communicate(timeout=120)[0])["output_tokens"]
        time.sleep(5)
        check_counters(prometheus, tokens, time.time())
        assert metric(web, r'rooflined_deploys_total\{.*cause="restart"\}') in (None, 0), "an upgrade is no deploy"
        new = next(process for name, process in processes.running if name == "new")
        assert processes.stop(new) == 0
        after = kept(state)
        assert after["current"]["generation"] == before["current"]["generation"]
        for what in ("prompts", "answers"):
            assert after["learned"][what]["texts"] > before["learned"][what]["texts"], (before, after)
        print(f"learned before {before['learned']['totals']} totals, after {after['learned']['totals']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
