#!/usr/bin/env python3
"""Writes the dashboards rooflined-node.json and rooflined-fleet.json beside itself: dashboards.py [--check]

Every panel says in its description what it shows and when it is empty. Engines on RAM and engines on a GPU never share an axis:
the rows that show them repeat over the variable memory. --check only compares."""

import json
import pathlib
import sys

import panels
from panels import by_target, dashboard, deploys, repeated, row, stat, table, timeline, timeseries, variable

NODE = 'instance=~"$instance"'
TARGET = f'{NODE}, target=~"$target"'
WINDOW = f'{TARGET}, window="$window"'
# One engine is on one memory. A join, since the memory is no label of the figures.
ON_MEMORY = ' and on (job, instance, target) rooflined_target_info{memory="$memory"}'
RATE = "[$__rate_interval]"
NAME = "{{instance}} {{target}} {{model}}"


def windowed(metric, more=""):
    return f"{metric}{{{WINDOW}{more}}}{ON_MEMORY}"


def while_decoding(metric):
    return f"sum by (instance, target) (({metric}{{{WINDOW}}} / rooflined_decode_busy_ratio{{{WINDOW}}}){ON_MEMORY})"


def decode_row():
    return repeated("Decode on $memory: MBU is never read alone", "memory", [
        timeseries("MBU while decoding", "percentunit", [(windowed("rooflined_mbu_ratio"), NAME)],
                   "Bytes that had to be read, over busy time and bandwidth. Above 100 %: at or above the measured ceiling, "
                   "which is a lower bound. Empty without decode in the window, or while bandwidth or geometry are unknown.",
                   8, 9, least=0),
        timeseries("Tokens per second", "short", [
            (windowed("rooflined_tokens_per_second"), NAME),
            (windowed("rooflined_tokens_per_second_bound"), NAME + " bound")],
            "Output tokens over the window, and what the bandwidth would allow at the same batch and context.", 8, 9, least=0),
        timeseries("Inter-token latency", "s", [
            (windowed("rooflined_itl_seconds", f', stat="{each}"'), f"{NAME} {each}") for each in ("mean", "p95", "p99")],
            "What a user waits from token to token.", 8, 9, least=0),
        timeseries("Batch", "short", [(windowed("rooflined_batch_size"), NAME)], "Sequences in a decode pass.", 6, 8, least=0),
        timeseries("Context", "short", [(windowed("rooflined_context_tokens"), NAME)],
                   "Tokens that a token's attention read: prompt and answer so far.", 6, 8, least=0),
        timeseries("Bytes read by component", "Bps", [
            (f"sum by (instance, target, component) (rate(rooflined_decode_bytes_total{{{TARGET}}}{RATE}){ON_MEMORY})",
             "{{instance}} {{target}} {{component}}")],
            "Dense weights, experts and KV cache that decode had to read, by the wall clock.", 12, 8, least=0, stacked=True),
        table("Roofline position", [
            ("tokens per GB", "short", by_target("rooflined_tokens_per_second", "rooflined_decode_bytes_per_second", WINDOW, ON_MEMORY, "1e9")),
            ("achieved", "short", while_decoding("rooflined_tokens_per_second")),
            ("the roof", "short", while_decoding("rooflined_tokens_per_second_bound")),
            ("MBU", "percentunit", f"sum by (instance, target) ({windowed('rooflined_mbu_ratio')})")],
            "Arithmetic intensity as tokens per gigabyte read, tokens/s achieved while decoding, and the roof over that "
            "intensity. MBU is how far below the roof a target is.", 12, 8),
        timeseries("Decode bandwidth ratio", "percentunit", [
            (windowed("rooflined_decode_bandwidth_ratio"), NAME),
            (f'rooflined_node_decode_bandwidth_ratio{{{NODE}, window="$window", memory="$memory"}}', "{{instance}} node")],
            "The share of the bandwidth that decode takes by the wall clock, idle time included.", 6, 8, least=0),
        timeseries("Busy", "percentunit", [(windowed("rooflined_decode_busy_ratio"), NAME)],
                   "The share of the time with at least one sequence in decode.", 6, 8, least=0),
    ])


def requests_row():
    buckets = f"sum by (instance, target, le) (rate(rooflined_time_to_first_token_seconds_bucket{{{TARGET}}}{RATE}))"
    return row("Requests", [
        timeseries("Requests", "reqps", [
            (f"sum by (instance, target, outcome) (rate(rooflined_requests_total{{{TARGET}}}{RATE}))",
             "{{instance}} {{target}} {{outcome}}")], "Requests that ended, by how.", 8, 8, least=0),
        timeseries("In flight", "short", [
            (f"rooflined_exchanges_in_flight{{{TARGET}}}", "{{instance}} {{target}} in flight"),
            (f"rooflined_active_sequences{{{TARGET}}}", "{{instance}} {{target}} in decode")],
            "Requests that have not ended, and sequences in decode.", 8, 8, least=0),
        timeseries("Time to first token", "s", [
            (f"histogram_quantile({quantile}, {buckets})", "{{instance}} {{target}} " + name)
            for quantile, name in ((0.5, "p50"), (0.95, "p95"))], "From the last byte of a request to its first token.", 8, 8, least=0),
    ])


def deploy_row():
    return row("Deploys: what the last one did, at like batch and context", [
        timeseries("MBU, after over before", "percentunit", deploys("mbu", TARGET),
                   "With its 99 % bounds. Under 95 % with the upper bound: RooflinedMbuDropped. Empty until there are two minutes "
                   "of decode after a deploy, and after it was accepted or a day old.", 8, 8),
        timeseries("ITL, after over before", "percentunit", deploys("itl", TARGET),
                   "With its 99 % bounds. Over 105 % with the lower bound, and MBU held: RooflinedDecodeSlower.", 8, 8),
        table("What runs", [("since", "dateTimeFromNow", f"max by (instance, target) (rooflined_deploy_timestamp_seconds{{{TARGET}}}) * 1000"),
                            ("", "none", f"max by (instance, target, server, version, model, fingerprint) (rooflined_deploy_info{{{TARGET}}})")],
              "Server, version, model and fingerprint of build and settings. Empty since: no deploy was seen yet.", 8, 8),
    ])


def ceiling_row():
    return row("Ceiling: what MBU on RAM is taken against, and how far to trust it", [
        timeseries("Ceiling and bandwidth in use", "Bps", [
            (f"rooflined_ceiling_bytes_per_second{{{NODE}}}", "{{instance}} ceiling"),
            (f"rooflined_ceiling_median_bytes_per_second{{{NODE}}}", "{{instance}} median"),
            (f'rooflined_target_bandwidth_bytes_per_second{{{TARGET}}} and on (job, instance, target) rooflined_target_info{{memory="ram"}}',
             "{{instance}} {{target}}")], "The adopted ceiling, the median of its confirmation, and what each target's MBU is taken against.", 8, 8, least=0),
        timeseries("Spread", "percentunit", [(f"rooflined_ceiling_median_to_best_ratio{{{NODE}}}", "{{instance}} median to best")],
                   "Median over best of the repetitions that confirmed it; under 75 % a measurement counts as unstable.", 4, 8, least=0),
        stat("Age", "s", [(f"rooflined_ceiling_age_seconds{{{NODE}}}", "{{instance}}")], "Since it was measured.", 4, 8),
        stat("Flags", "none", [
            (f"rooflined_ceiling_{flag}{{{NODE}}}", "{{instance}} " + flag) for flag in ("stale", "suspect")]
            + [(f"rooflined_ceiling_exceeded{{{TARGET}}}", "{{instance}} {{target}} exceeded")],
            "1: older than max_age; waiting for a second result that agrees; a target reads at or above it.", 4, 8, alarm=1),
        stat("Source", "none", [(f"rooflined_ceiling_info{{{NODE}}}", "{{instance}}: {{source}} {{kernel}} × {{threads}}")],
             "Where it comes from: measured, configured, observed.", 4, 8, name_only=True),
        timeline("What keeps the node from being idle", [(f"rooflined_idle_blocked{{{NODE}}}", "{{instance}} {{reason}}")],
                 "The ceiling is measured only in idle windows. All 0: idle. Empty: nothing waits for one.", 12, 8),
        timeseries("Measurements", "short", [
            (f"sum by (instance, result) (increase(rooflined_ceiling_measurements_total{{{NODE}}}[$__range]))", "{{instance}} {{result}}")],
            "Over the range shown, by result.", 6, 8, least=0),
        timeseries("Probe ended for a request within", "s", [
            (f"histogram_quantile(0.99, sum by (instance, le) (rate(rooflined_ceiling_abort_latency_seconds_bucket{{{NODE}}}[$__range])))",
             "{{instance}} p99")], "From a request's first packet to the probe's last load. Empty: no request came into one.", 6, 8, least=0),
    ])


def trust_row():
    return row("Trust: caveats, and how tokens were counted", [
        timeline("Caveats", [(f"rooflined_mbu_caveat{{{TARGET}}}", "{{instance}} {{target}} {{reason}}")],
                 "Reasons to read MBU with care; the README says what each means. Empty: none.", 12, 8),
        timeseries("How the number of tokens was known", "short", [
            (f"sum by (instance, target, source) (rate(rooflined_token_source_total{{{TARGET}}}{RATE}))", "{{instance}} {{target}} {{source}}")],
            "Counters on the wire, exact totals at the end, or estimates.", 6, 8, least=0, stacked=True),
        timeseries("Our tokens over the engine's own", "percentunit", [
            ("node:rooflined_output_tokens_to_engine:ratio_rate15m", "{{node}} {{server}}")],
            "Over 15 minutes, by node and server, where Prometheus scrapes the engines, too. Under 95 %: RooflinedTokensMissed.", 6, 8),
        timeline("Targets", [(f"rooflined_target_up{{{TARGET}}}", "{{instance}} {{target}}")], "1 while the server's listener is there.", 24, 6),
    ])


def capture_row():
    dropped, packets = (f"sum by (instance) (rate(rooflined_capture_{name}packets_total{{{NODE}}}{RATE}))" for name in ("dropped_", ""))
    own = f"* on (job, instance) group_left () (rooflined_build_info{{{NODE}}} > 0)"
    return row("Capture and daemon", [
        timeseries("Packets lost by the capture", "percentunit", [(f"{dropped} / ({packets} + {dropped})", "{{instance}}")],
                   "Of the packets that matched the filter. Over 0.1 %: RooflinedCaptureLosingPackets.", 6, 8, least=0),
        timeseries("Traffic seen", "pps", [
            (f"sum by (instance, interface) (rate(rooflined_capture_packets_total{{{NODE}}}{RATE}))", "{{instance}} {{interface}}")],
            "Packets that the tap received.", 6, 8, least=0),
        timeseries("Gaps and faults", "short", [
            (f"sum by (instance) (rate(rooflined_stream_gaps_total{{{NODE}}}{RATE}))", "{{instance}} gaps"),
            (f"sum by (instance, reason) (rate(rooflined_parse_errors_total{{{NODE}}}{RATE}))", "{{instance}} parse error: {{reason}}"),
            (f"sum by (instance, reason) (rate(rooflined_flows_ignored_total{{{NODE}}}{RATE}))", "{{instance}} ignored: {{reason}}")],
            "Missing bytes, bytes that were not understood, connections that are not followed.", 6, 8, least=0),
        timeseries("Collectors", "short", [(f"rooflined_collector_up{{{NODE}}}", "{{instance}} {{collector}}")],
                   "0: its last update failed.", 6, 8, least=0),
        timeseries("CPU of the daemon", "percentunit", [(f"rate(process_cpu_seconds_total{{{NODE}}}{RATE}) {own}", "{{instance}}")],
                   "Of one core.", 12, 8, least=0),
        timeseries("Memory of the daemon", "bytes", [(f"process_resident_memory_bytes{{{NODE}}} {own}", "{{instance}}")], "Resident.", 12, 8, least=0),
    ])


def node():
    return dashboard(
        "rooflined-node", "rooflined: nodes and targets",
        "Memory-bandwidth utilisation of LLM inference, per node and target, with tokens per second and inter-token latency beside it.",
        [variable("instance", "Node", "rooflined_build_info", "instance"),
         variable("target", "Target", f"rooflined_target_up{{{NODE}}}", "target"),
         variable("memory", "Memory", f"rooflined_target_info{{{TARGET}}}", "memory"),
         variable("window", "Window", f"rooflined_tokens_per_second{{{NODE}}}", "window", multi=False)],
        [decode_row(), requests_row(), deploy_row(), ceiling_row(), trust_row(), capture_row()],
        panels.annotations(NODE, TARGET))


def fleet():
    at = 'memory="$memory"'
    model = 'model=~"$model"'
    return dashboard(
        "rooflined-fleet", "rooflined: fleet",
        "Every node: how well it uses its memory bandwidth, what serves which model, and which deploys made it worse.",
        [variable("memory", "Memory", "rooflined_target_info", "memory"),
         variable("model", "Model", "rooflined_output_tokens_total", "model")],
        [row("Now", [
            stat("Nodes", "short", [("count(rooflined_build_info)", "answering")], "Daemons that answer.", 4, 6),
            stat("Targets", "short", [("sum(rooflined_target_up)", "up")], "Engines whose listener is there.", 4, 6),
            table("Alerts", [("", "none", 'ALERTS{alertname=~"Rooflined.*"}')],
                  "Pending and firing. Empty: none.", 16, 6, merge=False)]),
         repeated("Fleet on $memory", "memory", [
             timeseries("MBU of the fleet", "percentunit", [(f"fleet:rooflined_mbu:rate5m{{{at}}}", "{{memory}}")],
                        "All bytes read, over what the memories could have delivered while decoding.", 8, 8, least=0),
             timeseries("Tokens per second of the fleet", "short", [(f"fleet:rooflined_tokens_per_second:rate5m{{{at}}}", "{{memory}}")],
                        "Output tokens of all engines on that memory.", 8, 8, least=0),
             timeseries("MBU by node", "percentunit", [(f"node:rooflined_mbu:rate5m{{{at}}}", "{{instance}}")],
                        "Empty for nodes that do not decode.", 8, 8, least=0),
             table("Lowest MBU", [
                 ("MBU", "percentunit", "bottomk(15, target:rooflined_mbu:rate5m" + ON_MEMORY + ")"),
                 ("tokens/s", "short", "target:rooflined_tokens_per_second:rate5m" + ON_MEMORY),
                 ("ITL", "s", "target:rooflined_itl_seconds:rate5m" + ON_MEMORY),
                 ("batch", "short", "target:rooflined_batch_size:rate5m" + ON_MEMORY)],
                 "Beside tokens/s, ITL and batch: a low MBU at a large batch or a long context need not be a fault.", 16, 9, by="MBU"),
             timeseries("Tokens per second by node", "short", [(f"node:rooflined_tokens_per_second:rate5m{{{at}}}", "{{instance}}")],
                        "Output tokens of the node's engines on that memory.", 8, 9, least=0, stacked=True)]),
         row("Models", [
             timeseries("Tokens per second by model", "short", [(f"model:rooflined_tokens_per_second:rate5m{{{model}}}", "{{model}}")], "All nodes.", 8, 8, least=0),
             timeseries("ITL by model", "s", [(f"model:rooflined_itl_seconds:rate5m{{{model}}}", "{{model}}")], "All nodes: sums over sums.", 8, 8, least=0),
             timeseries("Batch by model", "short", [(f"model:rooflined_batch_size:rate5m{{{model}}}", "{{model}}")], "All nodes.", 8, 8, least=0)]),
         row("Deploys", [
             table("Worst changes of MBU", [
                 ("at most", "percentunit", 'bottomk(15, rooflined_mbu_deploy_change_ratio_bound{bound="high"})'),
                 ("MBU, after over before", "percentunit", "rooflined_mbu_deploy_change_ratio"),
                 ("ITL, after over before", "percentunit", "rooflined_itl_deploy_change_ratio")],
                 "What the last deploy did at like batch and context, worst upper bound first.", 12, 9, by="at most", descending=False),
             table("Builds by model", [
                 ("engines", "short", f"count by (model, server, version, fingerprint) (rooflined_deploy_info{{{model}}})"),
                 ("builds of the model", "short", f"model:rooflined_deploy_fingerprints:count{{{model}}}")],
                 "Equal fingerprints: the same build with the same settings. More than one for a model: nodes differ.", 12, 9)]),
         row("Ceilings and trust", [
             timeseries("Ceilings", "Bps", [("rooflined_ceiling_bytes_per_second", "{{instance}}")], "Of the RAM, by node. Like nodes should have like ceilings.", 8, 8, least=0),
             timeseries("Ceilings in doubt", "short", [
                 ("sum(rooflined_ceiling_suspect)", "suspect"), ("sum(rooflined_ceiling_stale)", "stale")], "Nodes.", 4, 8, least=0),
             timeseries("Caveats", "short", [("count by (reason) (rooflined_mbu_caveat)", "{{reason}}")], "Targets that carry each. Empty: none.", 6, 8, least=0, stacked=True),
             timeseries("Our tokens over the engines' own", "percentunit", [
                 ("node:rooflined_output_tokens_to_engine:ratio_rate15m", "{{node}} {{server}}")],
                 "Where Prometheus scrapes the engines, too.", 6, 8)]),
         row("Daemons", [
             timeseries("Most packets lost", "pps", [
                 ("topk(10, sum by (instance) (rate(rooflined_capture_dropped_packets_total[5m])))", "{{instance}}")], "Dropped by the kernel.", 8, 8, least=0),
             timeseries("Most CPU", "percentunit", [
                 ("topk(10, rate(process_cpu_seconds_total[5m]) * on (job, instance) group_left () (rooflined_build_info > 0))", "{{instance}}")], "Of one core.", 8, 8, least=0),
             table("Versions", [("nodes", "short", "count by (version) (rooflined_build_info)")], "Of rooflined.", 8, 8)])],
        panels.annotations("", ""))


def main():
    here = pathlib.Path(__file__).parent
    different = []
    for made in (node(), fleet()):
        path, text = here / f"{made['uid']}.json", json.dumps(made, indent=1, ensure_ascii=False) + "\n"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            different.append(path.name)
            if "--check" not in sys.argv:
                path.write_text(text, encoding="utf-8")
    if "--check" in sys.argv and different:
        print(f"{', '.join(different)}: not what dashboards.py makes; run it")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
