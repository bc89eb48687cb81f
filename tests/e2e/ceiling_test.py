#!/usr/bin/env python3
"""`rooflined membw --adopt` beside a running daemon: ceiling_test.py BIN_DIR

- the daemon has no ceiling, and says so by its absence;
- what `membw --adopt` hands over is in force a moment later, without a restart or a signal;
- a restarted daemon has it at once.

Skipped where the machine is too busy for any measurement to hold: that a busy machine's is not adopted is right."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

from processes import Processes, answers, free_ports, get, require, require_packet_sockets, skip

TRIES = 4


def metric(web, name):
    found = re.search("^" + re.escape(name) + r" (\S+)$", get(f"http://127.0.0.1:{web}/metrics"), re.M)
    return float(found[1]) if found else None


def measure_and_adopt(program, state):
    for _ in range(TRIES):
        done = subprocess.run([program, "membw", "--adopt", "--state", state, "--json"], capture_output=True, text=True,
                              timeout=200, check=False)
        assert done.returncode in (0, 1), done.stderr
        if done.returncode == 0:
            return json.loads(done.stdout)
    skip(f"none of {TRIES} measurements held on this machine now")


def main():
    binaries = pathlib.Path(sys.argv[1]).resolve()
    program = binaries / "rooflined"
    require(program)
    require_packet_sockets()
    port, web = free_ports(2)
    with tempfile.TemporaryDirectory() as name, Processes(name) as processes:
        folder = pathlib.Path(name)
        state, settings = folder / "state", folder / "rooflined.toml"
        state.mkdir()
        settings.write_text(f'[web]\nlisten = "127.0.0.1:{web}"\n[state]\ndirectory = "{state}"\n'
                            f'[capture]\ninterface = "lo"\nports = [{port}]\n[ceiling]\nmeasure = "never"\n')
        daemon = processes.start("rooflined", program, "run", "--config", settings)
        processes.wait_for("the daemon", lambda: answers(f"http://127.0.0.1:{web}/readyz"), 20)
        ceiling = "rooflined_ceiling_bytes_per_second"
        assert metric(web, ceiling) is None

        measured = measure_and_adopt(program, state)
        adopted = measured["adopted_bytes_per_second"]
        assert adopted == measured["ceiling_bytes_per_second"], "the first result is the ceiling"
        # As many digits as the exposition format shows.
        processes.wait_for("the new ceiling", lambda: metric(web, ceiling) is not None, 5)
        assert abs(metric(web, ceiling) / adopted - 1) < 1e-9, (metric(web, ceiling), adopted)
        info = f'rooflined_ceiling_info{{source="measured",kernel="{measured["kernel"]}",threads="{measured["threads"]}"}}'
        assert metric(web, info) == 1, get(f"http://127.0.0.1:{web}/metrics")

        assert processes.stop(daemon) == 0
        processes.start("rooflined again", program, "run", "--config", settings)
        processes.wait_for("the daemon again", lambda: answers(f"http://127.0.0.1:{web}/readyz"), 20)
        processes.wait_for("its ceiling", lambda: metric(web, ceiling) is not None, 5)
        assert abs(metric(web, ceiling) / adopted - 1) < 1e-9
    return 0


if __name__ == "__main__":
    sys.exit(main())
