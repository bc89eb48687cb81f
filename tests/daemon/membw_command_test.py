"""rooflined membw as its users run it: fields, exit statuses, interruption, and nothing left behind.

Usage: membw_command_test.py PATH_OF_ROOFLINED
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOFLINED = sys.argv.pop(1)
FIELDS = {
    "ceiling_bytes_per_second", "kernel", "threads", "stable", "median_to_best", "working_set_bytes", "llc_bytes",
    "cache_inflated", "confirmed_median_bytes_per_second", "huge_pages", "repetitions", "copy_bytes_per_second",
    "duration_seconds", "warnings", "cells",
}
CELL_FIELDS = {"kernel", "threads", "best_bytes_per_second", "median_bytes_per_second", "stable", "samples"}
SMALL = ["--size", "16777216"]


def membw(*arguments):
    return subprocess.run([ROOFLINED, "membw", *arguments], capture_output=True, text=True, timeout=250, check=False)


def children(pid):
    """Processes whose parent is `pid`."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Membw(unittest.TestCase):
    def start(self, *arguments):
        """A long measurement, once its probe is there."""
        # Python ignores SIGINT in children of a background job: the default is what a terminal gives.
        process = subprocess.Popen([ROOFLINED, "membw", *SMALL, "--reps", "1000", *arguments],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        self.assertTrue(until(lambda: children(process.pid)))
        return process, children(process.pid)[0]

    def test_json_is_one_object_with_the_fields_of_the_contract(self):
        done = membw(*SMALL, "--json")
        result = json.loads(done.stdout)
        self.assertLessEqual(FIELDS, set(result))
        self.assertEqual(done.returncode, 0 if result["ceiling_bytes_per_second"] is not None else 1)
        self.assertEqual(result["working_set_bytes"], 16777216)
        self.assertEqual(result["repetitions"], 5)
        for cell in result["cells"]:
            self.assertEqual(set(cell), CELL_FIELDS)
            self.assertEqual(len(cell["samples"]), 5)
            self.assertEqual(cell["best_bytes_per_second"], max(cell["samples"]))
            self.assertEqual(cell["stable"],
                             cell["median_bytes_per_second"] >= 0.75 * cell["best_bytes_per_second"])
        if result["stable"]:
            self.assertGreaterEqual(result["median_to_best"], 0.75)
            self.assertNotEqual(result["kernel"], "copy")
        self.assertIn("copy", [cell["kernel"] for cell in result["cells"]])

    def test_table_for_people(self):
        done = membw(*SMALL, "--threads", "1")
        self.assertIn(done.returncode, (0, 1))
        self.assertIn("ceiling", done.stdout)
        self.assertIn("working set", done.stdout)
        self.assertEqual(done.stderr, "")

    def test_bad_input_is_one_line_and_status_2(self):
        for arguments in (["--threads", "0"], ["--threads", "x"], ["--threads", "65536"], ["--size", "big"],
                          ["--size", "0"], ["--size", "-1"], ["--reps", "0"], ["--reps", "x"], ["--reps", "-1"], ["--unknown"],
                          ["--adopt", "--state", "/nonexistent"]):
            done = membw(*arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertEqual(done.stdout, "", arguments)
            self.assertEqual(done.stderr.count("\n"), 1, arguments)

    def test_no_room_is_status_1_and_one_line(self):
        done = membw("--size", str(1 << 50), "--json")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout, "")
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_interrupt_is_status_130(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process, probe = self.start("--json")
            process.send_signal(number)
            out, _ = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130)
            self.assertEqual(out, "")
            self.assertFalse(alive(probe))

    def test_a_killed_parent_leaves_no_probe(self):
        process, probe = self.start()
        process.kill()
        process.communicate()
        self.assertTrue(until(lambda: not alive(probe)))

    def test_a_killed_probe_is_reported(self):
        process, probe = self.start("--json")
        os.kill(probe, signal.SIGKILL)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.assertEqual(out, "")
        self.assertIn("killed", err)

    def test_adopt_hands_the_result_over(self):
        with tempfile.TemporaryDirectory() as folder:
            results = [membw(*SMALL, "--adopt", "--state", folder, "--json") for _ in range(2)]
            stable = [json.loads(done.stdout) for done in results if done.returncode == 0]
            path = pathlib.Path(folder, "ceiling.json")
            self.assertEqual(path.exists(), bool(stable))
            if stable:
                state = json.loads(path.read_text())
                kept = [result["ceiling_bytes_per_second"] for result in state["results"]]
                self.assertEqual(kept, [result["ceiling_bytes_per_second"] for result in stable])
                self.assertEqual(state["adopted"]["ceiling_bytes_per_second"], min(kept))
                self.assertEqual(stable[-1]["adopted_bytes_per_second"], min(kept))


if __name__ == "__main__":
    unittest.main()
