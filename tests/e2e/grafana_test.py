#!/usr/bin/env python3
"""The dashboards, without Grafana: grafana_test.py ROOT

- they are what dashboards.py makes;
- a real Prometheus scrapes a full recorded scrape of two nodes (one on RAM, one on a GPU), and an engine: every query of every
  panel and annotation returns data, and every variable has values;
- RAM and GPU never share a panel that shows rates;
- they fit the types that Grafana publishes (@grafana/schema), panel options included; left out where build/tools has no
  TypeScript (tests/run.sh --browser fetches it).
Exits with 77, skipped, without Prometheus."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

import dashboard
from exposition import Exposition
from processes import Processes, Prometheus, free_ports, require

NAMES = ("rooflined-node.json", "rooflined-fleet.json")
# Figures of a target that depend on its memory: a panel that shows them shows one memory.
RATES = ("rooflined_tokens_per_second", "rooflined_mbu_ratio", ":rooflined_mbu:", "rooflined_itl_seconds{", "rooflined_decode_bytes",
         "rooflined_batch_size{", "rooflined_context_tokens{")
DEPLOY = """
rooflined_deploy_info{target="llama.cpp-8080",server="llama.cpp",version="b2",model="Qwen3-8B",fingerprint="1f"} 1
rooflined_deploy_timestamp_seconds{target="llama.cpp-8080"} 1700000123.5
rooflined_mbu_deploy_change_ratio{target="llama.cpp-8080"} 0.8
rooflined_mbu_deploy_change_ratio_bound{target="llama.cpp-8080",bound="low"} 0.75
rooflined_mbu_deploy_change_ratio_bound{target="llama.cpp-8080",bound="high"} 0.85
rooflined_itl_deploy_change_ratio{target="llama.cpp-8080"} 1.25
rooflined_itl_deploy_change_ratio_bound{target="llama.cpp-8080",bound="low"} 1.2
rooflined_itl_deploy_change_ratio_bound{target="llama.cpp-8080",bound="high"} 1.3
"""
ENGINE = "# TYPE llamacpp:tokens_predicted_total counter\nllamacpp:tokens_predicted_total 6311528\n"

CHECK = """
// A JSON file has texts where the types have enumerations.
type Plain<T> = T extends string ? `${T}` : T extends number | boolean | null | undefined ? T :
  T extends Array<infer One> ? Array<Plain<One>> : T extends object ? { [Key in keyof T]: Plain<T[Key]> } : T;
"""
TYPES = "./node_modules/@grafana/schema/dist/types/raw"
KINDS = {"timeseries": "timeseries", "stat": "stat", "table": "table", "state-timeline": "statetimeline"}
HAS_FIELD_TYPES = {"timeseries", "table", "state-timeline"}
# What the data source of Prometheus adds to an annotation, beyond the published type.
PROMETHEUS_ANNOTATION = "{ expr?: string; useValueForTime?: boolean; titleFormat?: string; textFormat?: string; tagKeys?: string; step?: string }"


def typescript(boards):
    """A program that compiles if the dashboards fit the published types."""
    lines = [CHECK, f'import type {{ Dashboard, AnnotationQuery }} from "{TYPES}/dashboard/x/types.gen";']
    lines += [f'import type * as {name} from "{TYPES}/composable/{name}/panelcfg/x/types.gen";' for name in KINDS.values()]
    lines.append(f"type Marks = {{ list?: Array<Plain<AnnotationQuery> & {PROMETHEUS_ANNOTATION}> }};")
    lines.append("type Board = Omit<Plain<Dashboard>, 'annotations'> & { annotations?: Marks };")
    for number, board in enumerate(boards):
        lines.append(f"export const board{number}: Board = {json.dumps(board)};")
        for panel in board["panels"]:
            if panel["type"] == "row":
                continue
            kind, name = KINDS[panel["type"]], f"{number}_{panel['id']}"
            lines.append(f"export const options{name}: Plain<{kind}.Options> = {json.dumps(panel['options'])};")
            custom = panel["fieldConfig"]["defaults"].get("custom")
            if custom and panel["type"] in HAS_FIELD_TYPES:
                lines.append(f"export const custom{name}: Partial<Plain<{kind}.FieldConfig>> = {json.dumps(custom)};")
    return "\n".join(lines) + "\n"


def check_types(tools, boards):
    compiler = tools / "node_modules/typescript/bin/tsc"
    if not compiler.exists() or not (tools / "node_modules/@grafana/schema").exists():
        print(f"types not checked: {tools}/node_modules has no typescript and @grafana/schema")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "node_modules").symlink_to(tools / "node_modules")
        (folder / "check.ts").write_text(typescript(boards))
        done = subprocess.run(["node", compiler, "--noEmit", "--strict", "--skipLibCheck", "--module", "esnext", "--moduleResolution", "bundler",
                               "--target", "es2022", "check.ts"], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[:6000]
    print("the dashboards fit the types of @grafana/schema")


def check_layout(board):
    for one in board["panels"]:
        place = one["gridPos"]
        assert place["x"] + place["w"] <= 24, one["title"]
        for other in board["panels"]:
            there = other["gridPos"]
            apart = (place["x"] + place["w"] <= there["x"] or there["x"] + there["w"] <= place["x"]
                     or place["y"] + place["h"] <= there["y"] or there["y"] + there["h"] <= place["y"])
            assert one is other or apart, f"{one['title']} lies over {other['title']}"
        assert one["type"] == "row" or one["description"], f"{one['title']} does not say what it shows"
    assert len({one["id"] for one in board["panels"]}) == len(board["panels"])


def check_scales(board):
    repeated = None
    for panel in board["panels"]:
        if panel["type"] == "row":
            repeated = panel.get("repeat")
        shows_rates = panel["type"] == "timeseries" and any(rate in target["expr"] for target in panel["targets"] for rate in RATES
                                                            if "deploy_change" not in target["expr"] and "model:" not in target["expr"])
        if not shows_rates:
            continue
        assert repeated == "memory", f"{panel['title']} shows both memories on one scale"
        assert all('memory="$memory"' in target["expr"] for target in panel["targets"]), panel["title"]


def check_queries(prometheus, board):
    values = {"datasource": "prometheus", "__rate_interval": "30s", "__range": "1m"}
    memories = [""]
    for name, (selector, label) in dashboard.variable_queries(board).items():
        options = prometheus.label_values(dashboard.filled_in(selector, values), label)
        assert options and all(options), f"variable {name} has the values {options}"
        values[name] = "|".join(options)
        if name == "memory":
            memories = options
        elif name == "window":
            values[name] = options[0]
    assert sorted(memories) == ["gpu", "ram"], memories
    marks = [(one["name"], one["expr"]) for one in board["annotations"]["list"] if "expr" in one]
    assert len(marks) == 2, marks
    queries, empty = dashboard.panel_queries(board) + marks, []
    for title, expression in queries:
        for memory in memories if "$memory" in expression else memories[:1]:
            if not prometheus.query(dashboard.filled_in(expression, {**values, "memory": memory})):
                empty.append(f"{title} ({memory}): {expression}")
    assert not empty, "no data for\n" + "\n".join(empty)
    return len(queries)


def recorded(root, memory):
    """The full scrape that the exporter's test holds, of a node on that memory, with everything that could be the matter."""
    text = (root / "tests/metrics/export/data/golden.prom").read_text(encoding="utf-8")
    for flag in ("stale", "suspect"):
        assert f"rooflined_ceiling_{flag} 0\n" in text
        text = text.replace(f"rooflined_ceiling_{flag} 0\n", f"rooflined_ceiling_{flag} 1\n")
    # The deploys are the test's own: one that made things worse on each node.
    lines = [line for line in text.splitlines() if not re.match(r"rooflined_\w*deploy_(info|change|timestamp)", line)]
    return "\n".join(lines).replace('memory="ram"', f'memory="{memory}"') + DEPLOY


def prometheus_settings(folder, root, nodes, engine):
    path = folder / "prometheus.yml"
    path.write_text(f"""
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: ["{root}/deploy/prometheus/rooflined.rules.yml"]
scrape_configs:
  - job_name: rooflined
    static_configs: [{{targets: {json.dumps(nodes)}}}]
  - job_name: engine
    static_configs: [{{targets: ["{engine}"]}}]
""")
    return path


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    made = subprocess.run([sys.executable, "-B", root / "deploy/grafana/dashboards.py", "--check"], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout + made.stderr
    boards = [dashboard.load(root / "deploy/grafana" / name) for name in NAMES]
    for board in boards:
        check_layout(board)
        check_scales(board)
    check_types(root / "build/tools", boards)
    require("prometheus")
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory() as name, Processes(name) as processes, Exposition(recorded(root, "ram")) as ram, \
            Exposition(recorded(root, "gpu")) as gpu, Exposition(ENGINE) as engine:
        folder = pathlib.Path(name)
        processes.start("prometheus", "prometheus", f"--config.file={prometheus_settings(folder, root, [ram.address, gpu.address], engine.address)}",
                        f"--storage.tsdb.path={folder}/tsdb", f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn")
        prometheus = Prometheus(port)
        processes.wait_for("prometheus", prometheus.ready, 30)
        # The last in the chains of recording rules, for both memories.
        processes.wait_for("the rules", lambda: all(len(prometheus.query(expression)) >= count for expression, count in (
            ("fleet:rooflined_mbu:rate5m", 2), ("fleet:rooflined_tokens_per_second:rate5m", 2),
            ("model:rooflined_tokens_per_second:rate5m", 1), ("model:rooflined_itl_seconds:rate5m", 1),
            ("model:rooflined_batch_size:rate5m", 1), ("node:rooflined_output_tokens_to_engine:ratio_rate15m", 1), ("ALERTS", 1))), 60)
        count = sum(check_queries(prometheus, board) for board in boards)
    print(f"{count} queries of {len(boards)} dashboards returned data")
    return 0


if __name__ == "__main__":
    sys.exit(main())
