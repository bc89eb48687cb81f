"""rooflined bench, report, fit and advise as their users run them, on a llama-bench that answers with published figures.

Usage: bench_command_test.py PATH_OF_ROOFLINED
"""

import csv
import http.server
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import xml.etree.ElementTree

import tiny_gguf

ROOFLINED = os.path.abspath(sys.argv.pop(1))
HERE = pathlib.Path(__file__).resolve().parent
FAKE = str(HERE / "fake_llama_bench.py")
DATA = HERE / "data" / "bench"
DATASETS = {"rpi5": "rpi5-cortex-a76", "x86": "x86-i7-12700H", "x86-paper": "x86-paper-pc_roofline"}


def rows(name, **wanted):
    with open(DATA / name, encoding="utf-8") as file:
        return [row for row in csv.DictReader(file) if all(row[key] == value for key, value in wanted.items())]


def wait_for(condition):
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("waited for a minute")
        time.sleep(0.02)


def children(pid):
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if parent == pid:
            found.append(int(stat.parent.name))
    return found


class Workbench(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def run_it(self, *arguments, env=None, **options):
        return subprocess.run([ROOFLINED, *map(str, arguments)], capture_output=True, text=True, timeout=120,
                              check=False, stdin=subprocess.DEVNULL,
                              env={**os.environ, **{key: str(value) for key, value in (env or {}).items()}}, **options)

    def bench(self, *arguments, env=None, skip=True):
        more = ["--skip-membw"] if skip and "--peak-bandwidth" not in arguments else []
        return self.run_it("bench", "--llama-bench", FAKE, "--state", self.folder, *more, *arguments, env=env)

    def model(self, name, size=None, experts=0, layers=2):
        """A model of its name, as large as the published file where `size` says so."""
        path = self.folder / f"{name}.gguf"
        tiny_gguf.write(path, layers, experts, size)
        return path

    def models(self, dataset):
        return [self.model(row["model"], int(row["bytes_per_token"]))
                for row in rows("fit_points.csv", dataset=DATASETS[dataset])]

    def replay(self, dataset, *arguments, **env):
        """The published sweep of a dataset through the public command, as its analysis."""
        env = {"FAKE_DATASET": dataset, **env}
        threads = {"rpi5": "1,2,3,4", "x86": "1,4,8,14,20", "x86-paper": "8,14"}[dataset]
        peak = rows("fit_expected.csv", dataset=DATASETS[dataset])[0]["peak_read_GBs"]
        done = self.bench("--threads", threads, "--bytes", "file", "--peak-bandwidth", float(peak) * 1e9, "--json",
                          *arguments, *self.models(dataset), env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)["analysis"]

    def one_line(self, done, status, *words):
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)


class PublishedFigures(Workbench):
    def check_fit(self, dataset, **env):
        expected = rows("fit_expected.csv", dataset=DATASETS[dataset])[0]
        analysis = self.replay(dataset, **env)
        fit = analysis["fit"]
        self.assertEqual(fit["points"], int(expected["n"]))
        bandwidth = float(expected["bw_eff_GBs"]) * 1e9
        self.assertLess(abs(fit["bandwidth_bytes_per_second"] / bandwidth - 1), 1e-9)
        self.assertLess(abs(fit["r_squared"] - float(expected["r2"])), 1e-9)
        for name in ("min", "median", "max"):
            self.assertLess(abs(100 * analysis["utilisation"][name] - float(expected[f"util_{name}_pct"])), 1e-6)
        self.assertTrue(expected["verdict"].startswith(analysis["verdict"]))
        if expected["decode_thread_knee"]:
            self.assertEqual(analysis["knee_threads"], int(expected["decode_thread_knee"]))
            for name in ("min", "median", "max"):
                self.assertAlmostEqual(analysis["prefill_scaling"][name], float(expected[f"prefill_scaling_{name}"]), 9)
            for name in ("size_ratio", "speed_ratio"):
                self.assertAlmostEqual(analysis["frontier"][name], float(expected[f"frontier_{name}"]), 9)
        return analysis

    def check_sweeps(self, dataset, analysis):
        found = {model["name"]: model for model in analysis["models"]}
        for row in rows("thread_sweep_expected.csv", dataset=dataset):
            model = found[row["model"]]
            self.assertEqual(model["threads"], int(row["best_decode_threads"]))
            self.assertEqual(model["knee_threads"], int(row["knee_2pct"]))
            self.assertEqual(model["prefill_threads"], int(row["best_prefill_threads"]))
            self.assertAlmostEqual(model["prefill_tokens_per_second"], float(row["best_prefill_tok_s"]), 9)
            self.assertAlmostEqual(model["prefill_scaling"], float(row["prefill_scaling"]), 9)
            if row["decode_loss_at_max_threads_pct"]:
                loss = float(row["decode_loss_at_max_threads_pct"])
                self.assertAlmostEqual(100 * model["loss_at_most_threads"], loss, 9)
            else:
                self.assertIsNone(model["loss_at_most_threads"])

    def test_fit_raspberry_pi_5_by_file_size(self):
        self.check_sweeps("rpi5", self.check_fit("rpi5"))

    def test_fit_x86_by_the_size_that_llama_bench_reports(self):
        self.check_sweeps("x86", self.check_fit("x86", FAKE_SIZE=1))

    def test_fit_x86_paper(self):
        self.check_fit("x86-paper")

    def test_depth(self):
        model = self.model("Qwen2.5-0.5B Q4_K_M", layers=24)
        done = self.bench("--threads", 8, "--depth", "8192,0,512,2048", "--n-gen", 1, "--bytes", "file", "--json", model,
                          env={"FAKE_DATASET": "depth", "FAKE_SIZE": 1})
        depths = json.loads(done.stdout)["analysis"]["models"][0]["depths"]
        expected = [row for row in rows("long_context.csv", model="Qwen2.5-0.5B Q4_K_M") if row["decode_tok_s"]]
        self.assertEqual([one["depth"] for one in depths], [int(row["depth"]) for row in expected])
        for one, row in zip(depths, expected):
            self.assertEqual(one["kv_bytes"], float(row["computed_kv_bytes"]))
            self.assertEqual(round(100 * one["of_first"]), int(row["published_pct_of_empty"]))
            self.assertLess(abs(100 * one["of_first_by_bytes"] - float(row["computed_predicted_pct"])), 0.005)


class SeedBugs(Workbench):
    """A1 to A17: what went wrong in the seed, and must not here."""

    def argv_log(self, *arguments, **env):
        log = self.folder / "log"
        self.bench("--threads", "1,4", *arguments, self.model("qwen0.5b-q8"), env={"FAKE_LOG": log, **env})
        return [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]

    def test_a1_only_options_that_llama_bench_has(self):
        calls = self.argv_log("--depth", "0,512")
        self.assertEqual([call["argv"] for call in calls][0], ["--help"])
        for call in calls[1:]:
            self.assertLessEqual(set(call["argv"][::2]), {"-m", "-t", "-p", "-n", "-r", "-ngl", "-o", "-d"})
            self.assertEqual(call["argv"].count("-d"), 1 if "512" in call["argv"] else 0)

    def test_a2_all_models_failed_is_not_0(self):
        done = self.bench("-o", self.folder / "out", self.model("one"), self.model("two"), env={"FAKE_MODE": "fail"})
        self.one_line(done, 1, "nothing was measured: one: llama-bench: exit status 1: error: unable to load model")
        stored = json.loads((self.folder / "out" / "bench.json").read_text(encoding="utf-8"))
        self.assertEqual(stored["analysis"]["models_measured"], 0)
        self.assertEqual(len(stored["models"][1]["failures"]), 1)
        self.assertFalse((self.folder / "out" / "bench.svg").exists())

    def test_a3_the_cause_is_not_buried_in_banners(self):
        done = self.bench(self.model("one"), env={"FAKE_MODE": "fail"})
        self.assertIn("error: unable to load model 'one'", done.stderr)
        for banner in ("load_backend", "ggml_cpu", "build:", "main:"):
            self.assertNotIn(banner, done.stderr)

    def test_a4_no_repetitions_are_refused(self):
        for reps in (0, -1):
            self.one_line(self.bench("--reps", reps, self.model("one")), 2, "--reps")
            self.one_line(self.run_it("membw", "--reps", reps), 2, "--reps")

    def test_a5_and_d7_every_cell_says_whether_it_was_stable(self):
        done = self.run_it("membw", "--size", 16777216, "--threads", 1, "--json")
        measured = json.loads(done.stdout)
        self.assertIn("median_to_best", measured)
        for cell in measured["cells"]:
            self.assertEqual(cell["stable"], cell["median_bytes_per_second"] >= 0.75 * cell["best_bytes_per_second"])
        if not measured["stable"]:
            self.assertIsNone(measured["ceiling_bytes_per_second"])

    def test_a6_and_a17_one_wild_model_does_not_make_the_headline(self):
        scaling = self.replay("x86", FAKE_SIZE=1)["prefill_scaling"]
        self.assertGreater(scaling["max"], 32)
        self.assertLess(scaling["median"], 7)

    def test_a7_one_setting_has_no_knee(self):
        analysis = self.replay("rpi5")
        single = [model for model in analysis["models"] if model["name"].endswith(("Q2_K", "Q3_K_M", "Q5_K_M", "Q8_0"))]
        self.assertEqual(len(single), 4)
        for model in single:
            self.assertIsNone(model["knee_threads"])
            self.assertIsNone(model["prefill_scaling"])

    def test_a8_no_more_than_100_percent_is_printed(self):
        done = self.bench("--threads", "8,14", "--bytes", "file", "--peak-bandwidth", 42.1e9, *self.models("x86-paper"),
                          env={"FAKE_DATASET": "x86-paper"})
        self.assertIn("at or above the given ceiling", done.stdout)
        self.assertNotRegex(done.stdout, r"\b1[0-9][0-9]\.[0-9] %")

    def test_a9_the_convention_travels_with_the_bytes(self):
        models = [self.model("qwen0.5b-q8"), self.model("qwen3b-q4km")]
        for convention, size, source in (("streamed", "", "streamed tensors"), ("file", "", "file size"),
                                         ("file", "1", "llama-bench model_size")):
            done = self.bench("--threads", 8, "--bytes", convention, "--json", *models, env={"FAKE_SIZE": size})
            self.assertEqual({model["bytes_source"] for model in json.loads(done.stdout)["models"]}, {source})
            self.assertIn(source, self.bench("--threads", 8, "--bytes", convention, *models,
                                             env={"FAKE_SIZE": size}).stdout)

    def test_a9_mixed_conventions_are_a_warning(self):
        stored = json.loads(self.bench("--threads", 8, "--json", self.model("qwen0.5b-q8"),
                                       self.model("qwen3b-q4km")).stdout)
        stored["models"][0]["bytes_source"] = "file size"
        (self.folder / "mixed.json").write_text(json.dumps(stored), encoding="utf-8")
        done = self.run_it("report", self.folder / "mixed.json")
        self.assertIn("the fit mixes them", done.stdout)

    def test_a10_the_type_of_a_label_is_a_type(self):
        path = self.folder / "model-Q2_K.gguf"
        self.model("model").rename(path)
        inspected = json.loads(self.run_it("inspect", path, "--json").stdout)
        self.assertEqual(inspected["on_label_share"], 0)  # no tensor of it is Q2_K

    def test_a11_the_published_figures_are_in_the_program(self):
        done = self.run_it("advise", "--core", "cortex-a76", "--scale", 0.5, "--threads", 2, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("34.66", done.stdout)

    def test_a12_never_an_empty_prompt_and_an_absurd_rate_is_told(self):
        self.one_line(self.bench("--n-prompt", 0, self.model("one")), 2, "--n-prompt")
        for call in self.argv_log()[1:]:
            self.assertGreater(int(call["argv"][call["argv"].index("-p") + 1]), 0)
        done = self.bench("--threads", 1, "--peak-bandwidth", 1e15, self.model("qwen0.5b-q8"))
        self.assertIn("of what the memory allows", done.stdout)

    def test_a13_a_named_core_keeps_the_host_out(self):
        answers = {self.run_it("advise", "--core", "neoverse-n1").stdout for _ in range(2)}
        self.assertEqual(len(answers), 1)
        answer = answers.pop()
        self.assertIn("neoverse-n1\nevidence  measured on a related core design: an extrapolation", answer)
        self.one_line(self.run_it("advise", "--core", "cortex-a76", "--measure", self.model("one")), 2, "--core")

    def test_a14_it_waits_without_using_the_processor(self):
        before = os.times()
        done = self.bench("--threads", 1, "--timeout", 3, self.model("qwen0.5b-q8"), env={"FAKE_MODE": "hang"})
        after = os.times()
        self.assertEqual(done.returncode, 1)
        # The children's: ours, and two Pythons that start. A loop that polls would use all of the elapsed time.
        used = after.children_user + after.children_system - before.children_user - before.children_system
        self.assertLess(used, 0.5 * (after.elapsed - before.elapsed))

    def test_a15_membw_refuses_what_would_swap(self):
        self.one_line(self.run_it("membw", "--size", 1 << 50), 1, "memory")

    def test_a16_nothing_waits_for_input_or_for_ever(self):
        self.assertEqual({call["stdin"] for call in self.argv_log()}, {""})
        done = self.bench("--threads", 1, "--timeout", 0.3, self.model("qwen0.5b-q8"), env={"FAKE_MODE": "hang"})
        self.one_line(done, 1, "no result after 0.3 s with 1 thread (--timeout allows more)")


class SeedDefects(Workbench):
    """D7 to D17: defects of the seed that nobody had noticed. D1 to D5: bench_ceiling_test.cc; D6, memory that its reader
    touches first on its own node after a repetition that does not count: worker_pool_test.cc; D7: with A5."""

    def test_d8_only_mixtures_of_experts_give_no_fit(self):
        models = [self.model("qwen0.5b-q8", experts=4), self.model("qwen3b-q4km", experts=4)]
        analysis = json.loads(self.bench("--threads", 8, "--peak-bandwidth", 50e9, "--json", *models).stdout)["analysis"]
        self.assertIsNone(analysis["fit"])
        self.assertIsNone(analysis["utilisation"])
        self.assertIsNone(analysis["verdict"])
        self.assertEqual([model["in_fit"] for model in analysis["models"]], [False, False])

    def test_d9_a_mixture_counts_the_experts_that_a_token_reads(self):
        model = self.model("qwen0.5b-q8", experts=8)
        inspected = json.loads(self.run_it("inspect", model, "--json").stdout)
        for convention in ("streamed", "file"):
            done = self.bench("--threads", 8, "--bytes", convention, "--json", model, env={"FAKE_SIZE": 1})
            bytes_per_token = json.loads(done.stdout)["analysis"]["models"][0]["bytes_per_token"]
            self.assertAlmostEqual(bytes_per_token / inspected["bytes_per_pass"], 1, 9)
            self.assertLess(bytes_per_token, inspected["file_bytes"])

    def test_d10_impossible_numbers_are_one_line(self):
        model = self.model("one")
        for arguments in (["--n-prompt", 0], ["--n-gen", 0], ["--reps", 0], ["--threads", "0"], ["--threads", "4,x"],
                          ["--depth", "-1"], ["--timeout", 0], ["--peak-bandwidth", "nan"], ["--peak-bandwidth", 0],
                          ["--gpu-layers", "x"], ["--bytes", "all"]):
            self.one_line(self.bench(*arguments, model), 2, arguments[0])

    def test_d11_equal_votes_give_the_lower_knee(self):
        for _ in range(3):
            done = self.bench("--threads", "1,4,8,14,20", "--json", self.model("llama1b-q4km"),
                              self.model("qwen0.5b-q8"))
            self.assertEqual(json.loads(done.stdout)["analysis"]["knee_threads"], 8)  # one says 8, one 14

    def test_d12_brackets_before_and_text_after_the_records(self):
        done = self.bench("--threads", 8, "--json", self.model("qwen0.5b-q8"), env={"FAKE_MODE": "banner"})
        self.assertEqual(json.loads(done.stdout)["analysis"]["models"][0]["decode_tokens_per_second"], 70.863742)
        for mode in ("empty", "brackets"):
            done = self.bench("--threads", 8, self.model("qwen0.5b-q8"), env={"FAKE_MODE": mode})
            self.one_line(done, 1, "no JSON records in what it printed")

    def test_d13_composition_is_of_the_repeating_layers(self):
        inspected = json.loads(self.run_it("inspect", self.model("one"), "--json").stdout)
        self.assertAlmostEqual(sum(one["share"] for one in inspected["composition"]), 1, 9)
        self.assertLess(sum(one["bytes"] for one in inspected["composition"]), inspected["streamed_bytes"])

    def test_d14_r_squared_is_printed_as_it_is(self):
        done = self.bench("--threads", "1,2,3,4", "--bytes", "file", "--peak-bandwidth", 13.98e9, *self.models("rpi5"),
                          env={"FAKE_DATASET": "rpi5"})
        self.assertIn("R² 0.9800", done.stdout)
        self.assertNotIn("above 0.98", done.stdout)

    def test_d15_thread_count_and_convention_of_each_point_are_shown(self):
        analysis = self.replay("x86-paper")
        self.assertEqual({model["threads"] for model in analysis["models"]}, {8, 14})
        self.assertAlmostEqual(analysis["fit"]["bandwidth_bytes_per_second"] / 1e9, 35.7264, 4)

    def test_d16_streamed_is_of_what_is_streamed(self):
        inspected = json.loads(self.run_it("inspect", self.model("one"), "--json").stdout)
        bench = json.loads(self.bench("--threads", 8, "--json", self.model("qwen0.5b-q8")).stdout)
        self.assertEqual(bench["models"][0]["bytes_per_token"], inspected["dense_bytes_per_pass"])

    def test_d17_no_figure_is_rounded_before_it_is_compared(self):
        bench = json.loads(self.bench("--threads", 8, "--json", self.model("qwen0.5b-q8")).stdout)
        self.assertEqual(bench["models"][0]["runs"][0]["decode_tokens_per_second"], 70.863742)


class Failures(Workbench):
    def test_no_llama_bench(self):
        done = self.run_it("bench", "--skip-membw", self.model("one"), env={"PATH": "", "HOME": "/nonexistent"})
        self.one_line(done, 2, "llama-bench", "--llama-bench or $LLAMA_BENCH names it")
        done = self.run_it("bench", "--llama-bench", self.folder, "--skip-membw", self.model("one"))
        self.one_line(done, 2, "no such program")

    def test_llama_bench_by_environment_folder_and_path(self):
        folder = self.folder / "bin"
        folder.mkdir()
        (folder / "llama-bench").symlink_to(FAKE)
        for how, env in (([], {"LLAMA_BENCH": FAKE}), ([], {"LLAMA_BENCH": folder}), (["--llama-bench", folder], {}),
                         ([], {"PATH": f"{folder}:{os.environ['PATH']}"})):
            done = self.run_it("bench", "--skip-membw", "--threads", 8, *how, self.model("qwen0.5b-q8"), env=env)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_wrong_program_or_version(self):
        model = self.model("one")
        self.one_line(self.bench(model, env={"FAKE_MODE": "other"}), 2, "not a llama-bench that writes JSON")
        self.one_line(self.bench("--depth", 512, model, env={"FAKE_MODE": "old"}), 2, "no --n-depth")
        self.assertEqual(self.bench("--threads", 8, self.model("qwen0.5b-q8"), env={"FAKE_MODE": "old"}).returncode, 0)

    def test_missing_and_broken_models(self):
        self.one_line(self.bench(self.folder / "nothing.gguf"), 2, "nothing.gguf: no such file")
        (self.folder / "broken.gguf").write_bytes(b"GGUF rubbish")
        self.one_line(self.bench(self.folder / "broken.gguf"), 2, "broken.gguf", "--bytes file")

    def test_one_of_two_fails_and_the_other_is_kept(self):
        models = [self.model("qwen0.5b-q8"), self.model("qwen3b-q4km")]
        done = self.bench("--threads", 8, *models, env={"FAKE_MODE": "fail-qwen3b-q4km"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("warning      qwen3b-q4km: llama-bench: exit status 1: error: unable to load", done.stdout)
        self.assertIn("no fit", done.stdout)

    def test_a_crash_is_named(self):
        done = self.bench("--threads", 8, self.model("qwen0.5b-q8"), env={"FAKE_MODE": "crash"})
        self.one_line(done, 1, "ended by signal 11 (Segmentation fault)")

    def test_interrupt_keeps_what_was_measured(self):
        out = self.folder / "out"
        model = self.model("qwen0.5b-q8")
        for number in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen(
                [ROOFLINED, "bench", "--llama-bench", FAKE, "--skip-membw", "--threads", "8,14", "-o", str(out), str(model)],
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "FAKE_MODE": "hang-from-14"},
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
            wait_for(lambda: (out / "bench.json").exists() and
                     json.loads((out / "bench.json").read_text(encoding="utf-8"))["models"][0]["runs"])
            process.send_signal(number)
            text, error = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130)
            self.assertEqual(error, "rooflined bench: interrupted; what was measured until then is kept\n")
            self.assertIn("70.86", text)
            stored = json.loads((out / "bench.json").read_text(encoding="utf-8"))
            self.assertFalse(stored["complete"])
            self.assertEqual(len(stored["models"][0]["runs"]), 1)
            (out / "bench.json").unlink()

    def test_a_killed_bench_leaves_no_llama_bench(self):
        log = self.folder / "log"
        process = subprocess.Popen(
            [ROOFLINED, "bench", "--llama-bench", FAKE, "--skip-membw", "--threads", "14", str(self.model("qwen0.5b-q8"))],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "FAKE_MODE": "hang", "FAKE_LOG": str(log)})
        wait_for(lambda: log.exists() and log.read_text(encoding="utf-8").count("\n") == 2)
        (child,) = children(process.pid)
        process.kill()
        process.wait()
        wait_for(lambda: not pathlib.Path(f"/proc/{child}").exists())

    def test_folder_that_cannot_be_written(self):
        self.one_line(self.bench("-o", "/proc/nothing", self.model("one")), 2, "/proc/nothing")

    def test_gpu_models_are_left_out(self):
        done = self.bench("--threads", 8, "--gpu-layers", 99, "--peak-bandwidth", 50e9, self.model("qwen0.5b-q8"),
                          env={"FAKE_GPU": "a GPU"})
        self.assertIn("qwen0.5b-q8 (GPU)", done.stdout)
        self.assertIn("left out: the ceiling is that of the RAM", done.stdout)
        self.assertNotIn("memory-bound", done.stdout)


class Reports(Workbench):
    def stored(self):
        out = self.folder / "out"
        self.bench("--threads", "4,8", "-o", out, "--peak-bandwidth", 50e9, self.model("qwen0.5b-q8"),
                   self.model("qwen3b-q4km"), self.model("qwen1.5b-q4km", experts=4))
        return out

    def test_files(self):
        out = self.stored()
        self.assertEqual(sorted(path.name for path in out.iterdir()), ["bench.json", "bench.md", "bench.svg"])
        stored = json.loads((out / "bench.json").read_text(encoding="utf-8"))
        self.assertEqual(stored["schema_version"], 1)
        self.assertTrue(stored["complete"])
        self.assertEqual(stored["llama_bench"]["build_commit"], "0123abc")
        markdown = (out / "bench.md").read_text(encoding="utf-8")
        self.assertIn("| qwen1.5b-q4km (MoE) |", markdown)
        self.assertIn("(bench.svg)", markdown)
        plot = (out / "bench.svg").read_text(encoding="utf-8")
        for word in ("qwen0.5b-q8", "qwen1.5b-q4km (MoE)", ">ceiling<", ">fit<", "l7 7l-7 7l-7 -7z"):
            self.assertIn(word, plot)

    def test_the_plot_is_xml_whatever_a_model_is_called(self):
        path = self.stored() / "bench.json"
        stored = json.loads(path.read_text(encoding="utf-8"))
        name = '<a href="x">&amp;|' + "long" * 20
        stored["models"][0]["name"] = name
        path.write_text(json.dumps(stored), encoding="utf-8")
        plot = self.folder / "plot.svg"
        self.assertEqual(self.run_it("report", path, "--plot", plot).returncode, 0)
        texts = [element.text for element in xml.etree.ElementTree.parse(plot).iter() if element.text]
        self.assertIn(name[:33] + "...", texts)
        self.assertIn(name.replace("|", "\\|"), self.run_it("report", path, "--markdown").stdout)

    def test_report_shows_what_bench_showed(self):
        out = self.stored()
        done = self.run_it("report", out / "bench.json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("qwen3b-q4km", done.stdout)
        again = json.loads(self.run_it("report", out / "bench.json", "--json").stdout)
        self.assertEqual(again, json.loads((out / "bench.json").read_text(encoding="utf-8")))

    def test_reanalyze_leaves_the_runs_alone(self):
        path = self.stored() / "bench.json"
        before = json.loads(path.read_text(encoding="utf-8"))
        before["analysis"]["fit"]["bandwidth_bytes_per_second"] = 1
        path.write_text(json.dumps(before), encoding="utf-8")
        self.assertIn("--reanalyze stores it", self.run_it("report", path).stderr)
        self.assertEqual(self.run_it("report", path, "--reanalyze", "--peak-bandwidth", 1e11).returncode, 0)
        after = json.loads(path.read_text(encoding="utf-8"))
        self.assertEqual(after["models"], before["models"])
        self.assertGreater(after["analysis"]["fit"]["bandwidth_bytes_per_second"], 1e6)
        self.assertEqual(after["ceiling"]["bytes_per_second"], 1e11)
        self.assertIn("reanalyzed_utc", after)

    def test_another_schema_is_read_with_a_warning(self):
        path = self.stored() / "bench.json"
        stored = json.loads(path.read_text(encoding="utf-8"))
        stored["schema_version"] = 2
        path.write_text(json.dumps(stored), encoding="utf-8")
        self.assertIn("schema_version is 2, not 1", self.run_it("report", path).stdout)

    def test_broken_files_are_one_line(self):
        for text in ("", "[]", "{}", '{"models": 3}', '{"models": [{"runs": [{"threads": -1, "depth": 0}]}]}',
                     '{"models": [{"runs": 7}]}', '{"models": [{"bytes_per_token": "x", "runs": []}]}'):
            path = self.folder / "broken.json"
            path.write_text(text, encoding="utf-8")
            self.one_line(self.run_it("report", path), 2, "broken.json")
        self.one_line(self.run_it("report", self.folder / "nothing.json"), 2, "nothing.json")


class LiveFit(Workbench):
    SCRAPE = """# HELP rooflined_decode_passes_total Decode passes
rooflined_decode_passes_total{target="a",model="small"} 4000
rooflined_decode_busy_seconds_total{target="a",model="small"} 100
rooflined_decode_bytes_total{target="a",model="small",component="dense"} 1e12
rooflined_decode_bytes_total{target="a",model="small",component="kv"} 2e11
rooflined_decode_passes_total{target="b",model="la\\"rge"} 1000
rooflined_decode_busy_seconds_total{target="b",model="la\\"rge"} 200
rooflined_decode_bytes_total{target="b",model="la\\"rge",component="dense"} 1.2e12
rooflined_target_replicas{target="b"} 2
rooflined_decode_passes_total{target="c",model="experts"} 1000
rooflined_decode_busy_seconds_total{target="c",model="experts"} 100
rooflined_decode_bytes_total{target="c",model="experts",component="experts"} 1e11
rooflined_decode_passes_total{target="d",model="new"} 3
rooflined_decode_busy_seconds_total{target="d",model="new"} 1
rooflined_mbu_caveat{target="a",reason="estimated_tokens"} 1
rooflined_ceiling_bytes_per_second 1.5e+10
rooflined_ceiling_info{source="measured",kernel="dot",threads="2"} 1
"""

    def fit(self, text, *arguments):
        path = self.folder / "scrape"
        path.write_text(text, encoding="utf-8")
        return self.run_it("fit", "--from-metrics", path, *arguments)

    def test_the_points_are_what_the_counters_say(self):
        done = self.fit(self.SCRAPE, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        analysis = json.loads(done.stdout)["analysis"]
        found = {model["name"]: model for model in analysis["models"]}
        self.assertEqual(found["a/small"]["bytes_per_token"], 3e8)
        self.assertEqual(found["a/small"]["decode_tokens_per_second"], 40)
        self.assertAlmostEqual(found["a/small"]["utilisation"], 0.8)
        self.assertEqual(found['b/la"rge']["decode_tokens_per_second"], 10)  # two replicas
        self.assertFalse(found["c/experts"]["in_fit"])
        self.assertEqual(analysis["fit"]["points"], 2)
        self.assertAlmostEqual(analysis["fit"]["bandwidth_bytes_per_second"] / 12e9, 1)
        self.assertIn("d/new: 3 decode passes only, left out", analysis["warnings"])
        self.assertIn("a: caveats estimated_tokens", analysis["warnings"])

    def test_over_http(self):
        scrape = self.SCRAPE.encode()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200 if self.path == "/metrics" else 404)
                self.end_headers()
                if self.path == "/metrics":
                    self.wfile.write(scrape)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        for path in ("", "/", "/metrics"):
            done = self.run_it("fit", "--from-metrics", url + path, "--json")
            self.assertEqual(json.loads(done.stdout)["analysis"]["fit"]["points"], 2, done.stderr)
        self.one_line(self.run_it("fit", "--from-metrics", url + "/other"), 2, "HTTP status 404")

    def test_failures_are_one_line(self):
        self.one_line(self.fit("nothing of ours 1\n"), 1, "no decode of any model in it")
        self.one_line(self.run_it("fit", "--from-metrics", self.folder / "none"), 2, "none")
        self.one_line(self.run_it("fit", "--from-metrics", "http://127.0.0.1:1/metrics"), 2, "http://127.0.0.1:1/metrics")
        one = "".join(line + "\n" for line in self.SCRAPE.splitlines() if '"b"' not in line)
        done = self.fit(one)
        self.one_line(done, 1, "no fit")
        self.assertIn("a/small", done.stdout)


class Advice(Workbench):
    def advise(self, *arguments):
        done = self.run_it("advise", "--core", "cortex-a76", *arguments, "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_one_table_for_each_measurement(self):
        tables = self.advise()["measurements"]
        self.assertEqual([(one["parameters_billions"], one["threads"], len(one["formats"])) for one in tables],
                         [(0.5, 2, 8), (0.5, 3, 8), (0.5, 4, 8), (1.5, 2, 5), (1.5, 4, 5)])

    def test_the_checks_of_the_study(self):
        advice = self.advise("--scale", 0.5, "--threads", 2)
        (table,) = advice["measurements"]
        formats = {one["format"]: one for one in table["formats"]}
        self.assertEqual(round(100 * formats["Q4_K_M"]["behind"]), 16)
        self.assertAlmostEqual(100 * table["matched_bytes"]["spread"], 3.94, 2)
        # From Q2_K (317 MiB) it is over 3 % to the others.
        self.assertEqual(set(table["matched_bytes"]["formats"]), {"Q4_0", "IQ4_XS", "IQ4_NL", "Q3_K_M"})
        self.assertEqual([formats[name]["rank"] for name in ("Q4_0", "IQ4_XS", "IQ4_NL", "Q3_K_M", "Q2_K")], [1, 1, 1, 1, 5])
        self.assertEqual(table["lowest_perplexity_of_fastest"], ["IQ4_XS", "IQ4_NL"])
        self.assertIn("10.5281/zenodo.21938812", advice["source"])
        self.assertEqual(advice["evidence"], "measured on another machine with this core design")
        self.assertEqual([one["format"] for one in self.advise("--scale", 1.5, "--threads", 2)["measurements"][0]["formats"]
                          if one["mislabelled"]], ["Q3_K_M"])

    def test_absent_is_not_zero(self):
        for table in self.advise("--scale", 1.5)["measurements"]:
            self.assertEqual({one["perplexity"] for one in table["formats"]}, {None})
        self.assertNotIn("0.00", self.run_it("advise", "--core", "cortex-a76", "--scale", 1.5).stdout)

    def test_another_core_gets_the_recipe(self):
        done = self.run_it("advise", "--core", "golden-cove")
        self.assertEqual(done.returncode, 1)
        self.assertIn("rooflined advise --measure", done.stdout)
        self.assertNotIn("rank", done.stdout.replace("and rank", ""))

    def test_measure_ranks_what_was_measured_here(self):
        done = self.run_it("advise", "--measure", "--llama-bench", FAKE, "--threads", "4,8", "--json",
                           self.model("qwen0.5b-q8"), self.model("qwen0.5b-q2k"), self.model("qwen0.5b-q4km"))
        tables = json.loads(done.stdout)["measurements"]
        self.assertEqual([table["threads"] for table in tables], [4, 8])
        self.assertEqual([one["format"] for one in tables[1]["formats"]], ["qwen0.5b-q2k", "qwen0.5b-q4km", "qwen0.5b-q8"])
        self.one_line(self.run_it("advise", "--measure"), 2, "--measure needs")


if __name__ == "__main__":
    unittest.main()
