#!/usr/bin/env python3
"""The Prometheus files: rules_test.py ROOT [--update]

- promtool accepts rules and example configurations, and the rules' unit tests pass;
- every alert has severity, summary, description and a runbook that is a heading of the README, a row in its table, and a
  unit test in which it fires;
- the PrometheusRule is rooflined.rules.yml (--update writes it), and nothing averages a ratio.
Exits with 77, skipped, without promtool (the rest is checked all the same)."""

import pathlib
import re
import shutil
import subprocess
import sys

from processes import SKIPPED

README = "/usr/share/doc/rooflined/README.md#"
OPERATOR_HEAD = """# deploy/prometheus/rooflined.rules.yml as the Prometheus operator takes it; tests/e2e/rules_test.py --update writes it.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: rooflined
spec:
"""


def alerts(rules):
    """{name: text of the alert}"""
    parts = re.split(r"^ +- alert: (\w+)\n", rules, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def anchors(readme):
    """The anchors that the headings of a Markdown text have."""
    headings = re.findall(r"^#+ (.+)$", readme, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_alerts(found, readme, unit_tests):
    headings = anchors(readme)
    table = dict(re.findall(r"^\| `(Rooflined\w+)` \| (\w+) \|", readme, flags=re.M))
    assert set(table) == set(found), f"alerts of the README {sorted(table)}, of the rules {sorted(found)}"
    for name, text in found.items():
        severity = re.search(r"^ +severity: (critical|warning|info)$", text, flags=re.M)
        assert severity, f"{name}: no severity"
        assert table[name] == severity[1], f"{name}: severity {severity[1]}, in the README {table[name]}"
        for annotation in ("summary", "description", "runbook"):
            assert re.search(rf"^ +{annotation}: \S", text, flags=re.M), f"{name}: no {annotation}"
        runbook = re.search(r"^ +runbook: (\S+)$", text, flags=re.M)[1]
        assert runbook.startswith(README) and runbook[len(README):] in headings, f"{name}: no heading for {runbook}"
        fires = re.search(rf"alertname: {name}\n +eval_time: \w+\n +exp_alerts:", unit_tests)
        assert fires, f"{name}: no unit test in which it fires"
        quiet = re.search(rf"alertname: {name}\n +eval_time: \w+\n(?! +exp_alerts)", unit_tests + "\n")
        assert quiet, f"{name}: no unit test in which it does not fire"


def check_operator_rule(path, rules):
    lines = [f"  {line}" if line else "" for line in rules.split("\n") if not line.startswith("#")]
    made = OPERATOR_HEAD + "\n".join(lines)
    if "--update" in sys.argv:
        path.write_text(made, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == made, f"{path} is not rooflined.rules.yml: run rules_test.py ROOT --update"


def promtool(folder, *arguments):
    done = subprocess.run(["promtool", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"promtool {' '.join(arguments)}: {done.stdout}{done.stderr}"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    folder = root / "deploy/prometheus"
    rules = (folder / "rooflined.rules.yml").read_text(encoding="utf-8")
    readme = (root / "README.md").read_text(encoding="utf-8")
    tests = sorted(folder.glob("tests/*.yml"))
    found = alerts(rules)
    assert len(found) > 5, "the alerts were not found"
    check_alerts(found, readme, "\n".join(path.read_text(encoding="utf-8") for path in tests))
    average = re.search(r"\bavg(_over_time)?\b[^#\n]*(ratio|mbu|itl)", rules)
    assert not average, f"an average of a ratio: {average and average[0]}"
    check_operator_rule(root / "deploy/kubernetes/base/prometheusrule.yaml", rules)
    if shutil.which("promtool") is None:
        print("skipped: promtool is not installed")
        return SKIPPED
    promtool(folder, "check", "rules", "rooflined.rules.yml")
    for name in ("prometheus.yml", "federation.yml", "remote_write.yml"):
        promtool(folder, "check", "config", name)
    promtool(folder, "test", "rules", *(str(path) for path in tests))
    print(f"{len(found)} alerts, {len(tests)} files of unit tests")
    return 0


if __name__ == "__main__":
    sys.exit(main())
