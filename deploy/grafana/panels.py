"""The parts that dashboards.py puts together: panels, rows, variables and annotations in Grafana's JSON."""

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH = 24


def queries(pairs, instant=False):
    return [{"datasource": DATASOURCE, "refId": chr(ord("A") + index), "expr": expression, "legendFormat": legend,
             **({"instant": True, "range": False, "format": "table"} if instant else {"range": True})}
            for index, (expression, legend) in enumerate(pairs)]


def panel(kind, title, description, width, height, targets, defaults, options, overrides=(), **more):
    return {"type": kind, "title": title, "description": description, "datasource": DATASOURCE,
            "gridPos": {"x": 0, "y": 0, "w": width, "h": height}, "targets": targets,
            "fieldConfig": {"defaults": defaults, "overrides": list(overrides)}, "options": options, **more}


def timeseries(title, unit, pairs, description, width, height, least=None, stacked=False):
    custom = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 20 if stacked else 0, "showPoints": "never", "spanNulls": False,
              "stacking": {"mode": "normal" if stacked else "none", "group": "A"}}
    defaults = {"unit": unit, "custom": custom, **({} if least is None else {"min": least})}
    return panel("timeseries", title, description, width, height, queries(pairs), defaults,
                 {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
                  "tooltip": {"mode": "multi", "sort": "desc"}})


def stat(title, unit, pairs, description, width, height, alarm=None, name_only=False):
    steps = [{"value": None, "color": "text"}] + ([] if alarm is None else [{"value": alarm, "color": "orange"}])
    return panel("stat", title, description, width, height, queries(pairs),
                 {"unit": unit, "color": {"mode": "thresholds"}, "thresholds": {"mode": "absolute", "steps": steps}},
                 {"colorMode": "value", "graphMode": "none", "justifyMode": "auto", "orientation": "auto", "wideLayout": True,
                  "textMode": "name" if name_only else "auto", "showPercentChange": False, "percentChangeColorMode": "standard",
                  "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}})


def timeline(title, pairs, description, width, height):
    return panel("state-timeline", title, description, width, height, queries(pairs),
                 {"color": {"mode": "thresholds"}, "custom": {"fillOpacity": 70, "lineWidth": 0},
                  "thresholds": {"mode": "absolute", "steps": [{"value": None, "color": "transparent"}, {"value": 1, "color": "blue"}]}},
                 {"mergeValues": True, "showValue": "never", "rowHeight": 0.8, "alignValue": "left",
                  "legend": {"displayMode": "list", "placement": "bottom", "showLegend": False, "calcs": []},
                  "tooltip": {"mode": "single", "sort": "none"}})


def table(title, columns, description, width, height, merge=True, by=None, descending=True):
    """Instant queries side by side; `columns` are (name, unit, expression). Without a name the value is 1 and not shown."""
    letters = [chr(ord("A") + index) for index in range(len(columns))]
    value = [f"Value #{letter}" if len(columns) > 1 else "Value" for letter in letters]
    hidden = ["Time", "__name__", "job"] + [field for field, (name, _, _) in zip(value, columns) if not name]
    renamed = {field: name for field, (name, _, _) in zip(value, columns) if name}
    overrides = [{"matcher": {"id": "byName", "options": name}, "properties": [{"id": "unit", "value": unit}]}
                 for name, unit, _ in columns if name]
    steps = [{"id": "merge", "options": {}}] if merge else []
    steps.append({"id": "organize", "options": {"excludeByName": {name: True for name in hidden}, "renameByName": renamed, "indexByName": {}}})
    return panel("table", title, description, width, height, queries([(expression, "") for _, _, expression in columns], instant=True),
                 {"custom": {"align": "auto", "inspect": False}},
                 {"showHeader": True, "cellHeight": "sm", "frameIndex": 0, "sortBy": [{"displayName": by, "desc": not descending}] if by else []},
                 overrides, transformations=steps)


def by_target(above, below, selector, joined, times):
    """Σ above / Σ below × times for each target."""
    return (f"{times} * sum by (instance, target) ({above}{{{selector}}}{joined}) / "
            f"(sum by (instance, target) ({below}{{{selector}}}{joined}) > 0)")


def deploys(name, selector):
    """What the last deploy did to `name`, with its bounds."""
    metric = f"rooflined_{name}_deploy_change_ratio"
    return [(f"{metric}{{{selector}}}", "{{instance}} {{target}}"), (f"{metric}_bound{{{selector}}}", "{{instance}} {{target}} {{bound}}")]


def row(title, contents):
    return {"type": "row", "title": title, "collapsed": False, "panels": [], "contents": contents}


def repeated(title, variable_name, contents):
    """A row for each value of a variable."""
    return {**row(title, contents), "repeat": variable_name}


def variable(name, label, selector, values, multi=True):
    query = f"label_values({selector}, {values})"
    everything = {"includeAll": True, "allValue": ".*", "current": {"selected": True, "text": ["All"], "value": ["$__all"]}}
    # A row is repeated for values: "all" has to be all of them, not a pattern.
    if name == "memory":
        del everything["allValue"]
    return {"name": name, "label": label, "type": "query", "datasource": DATASOURCE, "query": {"query": query, "refId": name},
            "refresh": 2, "sort": 1, "hide": 0, "regex": "", "options": [], "skipUrlSync": False, "multi": multi,
            **(everything if multi else {"includeAll": False})}


def annotations(node, target):
    """Deploys and adopted ceilings, at the times that the series say."""
    def marks(name, colour, expression, title, text):
        # The Prometheus data source takes the value of a sample, in milliseconds, for its time.
        return {"name": name, "datasource": DATASOURCE, "enable": True, "hide": False, "iconColor": colour, "expr": expression,
                "useValueForTime": True, "titleFormat": title, "textFormat": text, "tagKeys": "", "step": "60s"}
    return {"list": [
        {"builtIn": 1, "datasource": {"type": "grafana", "uid": "-- Grafana --"}, "enable": True, "hide": True,
         "iconColor": "rgba(0, 211, 255, 1)", "name": "Annotations & Alerts", "type": "dashboard"},
        marks("Deploys", "purple", f"rooflined_deploy_timestamp_seconds{{{target}}} * 1000", "deploy", "{{instance}} {{target}}"),
        marks("Ceilings", "green", f"rooflined_ceiling_last_success_timestamp_seconds{{{node}}} * 1000", "ceiling measured", "{{instance}}")]}


def placed(rows):
    """Rows and their panels one below the other, left to right, with ids."""
    out, number, top = [], 0, 0
    for each in rows:
        contents = each["contents"]
        number += 1
        head = {key: value for key, value in each.items() if key != "contents"}
        out.append({"id": number, **head, "gridPos": {"x": 0, "y": top, "w": WIDTH, "h": 1}})
        top += 1
        left = tallest = 0
        for one in contents:
            place = one["gridPos"]
            if left + place["w"] > WIDTH:
                left, top, tallest = 0, top + tallest, 0
            number += 1
            out.append({"id": number, **one, "gridPos": {**place, "x": left, "y": top}})
            left += place["w"]
            tallest = max(tallest, place["h"])
        top += tallest
    return out


def dashboard(uid, title, description, variables, rows, marks):
    source = {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "refresh": 1, "regex": "",
              "hide": 0, "includeAll": False, "multi": False, "options": [], "skipUrlSync": False}
    link = {"title": "rooflined", "type": "dashboards", "tags": ["rooflined"], "asDropdown": False, "icon": "external link",
            "includeVars": False, "keepTime": True, "targetBlank": False, "tooltip": "", "url": ""}
    return {"uid": uid, "title": title, "description": description, "tags": ["rooflined", "llm"], "schemaVersion": 38, "version": 1,
            "editable": True, "graphTooltip": 1, "refresh": "10s", "time": {"from": "now-1h", "to": "now"}, "timezone": "browser",
            "timepicker": {}, "fiscalYearStartMonth": 0, "liveNow": False, "links": [link], "annotations": marks,
            "templating": {"list": [source, *variables]}, "panels": placed(rows)}
