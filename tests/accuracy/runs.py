"""Runs of the simulated engine and of the daemon on what it sent: the truth of the one beside the figures of the other."""

import json
import pathlib
import subprocess
import tempfile

CONFIGS = pathlib.Path(__file__).resolve().parent.parent / "collectors" / "model" / "data" / "hf" / "configs"

# Dense; 128 experts, 8 for each token; a latent cache (and experts); every sixth layer global, the others 512 tokens.
MODELS = {
    "dense": CONFIGS / "llama-3-8b.json",
    "moe": CONFIGS / "qwen3-30b-a3b.json",
    "mla": CONFIGS / "deepseek-v2.json",
    "window": CONFIGS / "gemma-3-1b.json",
}


class Binaries:
    def __init__(self, folder):
        folder = pathlib.Path(folder).resolve()
        self.daemon = folder / "rooflined"
        self.simulator = folder / "rooflined-sim"
        self._pass_bytes = {}

    def json(self, *command, allowed=(0,)):
        done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, check=False)
        if done.returncode not in allowed:
            raise RuntimeError(f"exit status {done.returncode}: {' '.join(str(part) for part in command)}")
        return json.loads(done.stdout)

    def pass_bytes(self, model, batch=1):
        """What a pass of so many sequences reads, without their cache."""
        if (model, batch) not in self._pass_bytes:
            inspected = self.json(self.daemon, "inspect", model, "--batch", batch, "--json")
            self._pass_bytes[model, batch] = inspected["bytes_per_pass"]
        return self._pass_bytes[model, batch]

    def bandwidth_for(self, model, step_seconds=0.01):
        """At which a pass of one sequence would take so long at full efficiency."""
        return self.pass_bytes(model) / step_seconds

    def replay(self, model, options, replicas=1, replay_options=()):
        """One run as a capture: (truth, what `rooflined replay` says)."""
        bandwidth = self.bandwidth_for(model)
        with tempfile.NamedTemporaryFile(suffix=".pcap") as capture:
            truth = self.json(self.simulator, "serve", "--pcap", capture.name, "--model", model, "--bandwidth",
                              bandwidth, *options)
            report = self.json(self.daemon, "replay", capture.name, "--model", model, "--ceiling",
                               bandwidth * replicas, "--json", *replay_options)
        assert len(report["targets"]) == 1, [target["target"] for target in report["targets"]]
        assert not report["capture"]["gaps"] and not report["capture"]["parse_errors"], report["capture"]
        return truth, report["targets"][0]


def relative(derived, truth):
    return derived / truth - 1 if truth else 0.0


class Row:
    """A line of a table: what is compared, and how far apart the two are."""

    def __init__(self, name, truth, derived):
        self.name = name
        self.mbu_truth = truth["mbu"]
        self.mbu = float("nan") if derived["mbu_ratio"] is None else derived["mbu_ratio"]
        self.passes = relative(derived["decode_passes"], truth["steps"])
        self.bytes = relative(derived["decode_bytes"]["total"], truth["bytes"]["total"])
        experts = derived["decode_bytes"].get("experts") or 0
        # What the setting `expert_skew` would have to be.
        self.expert_skew = truth["bytes"]["experts"] / experts if experts else 1.0
        self.tokens = round(derived["output_tokens"]) - truth["output_tokens"]
        self.batch = truth["batch_mean"]

    def mbu_error(self):
        return self.mbu - self.mbu_truth

    HEADER = f"{'run':<44} {'batch':>6} {'MBU true':>9} {'derived':>9} {'apart':>9} {'passes':>9} {'bytes':>9} {'tokens':>6}"

    def __str__(self):
        return (f"{self.name:<44} {self.batch:>6.2f} {self.mbu_truth:>9.5f} {self.mbu:>9.5f} {self.mbu_error():>+9.5f} "
                f"{self.passes:>+9.3%} {self.bytes:>+9.3%} {self.tokens:>+6d}")
