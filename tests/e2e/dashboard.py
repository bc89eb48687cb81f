"""The queries of a Grafana dashboard, as Grafana would send them."""

import json
import re


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def panel_queries(dashboard):
    """[(panel title, expression)], rows opened."""
    found = []
    for panel in dashboard["panels"]:
        for inner in [panel, *panel.get("panels", [])]:
            found += [(inner["title"], target["expr"]) for target in inner.get("targets", [])]
    return found


def variable_queries(dashboard):
    """{name: (selector, label)} of the variables that ask label_values(selector, label)."""
    found = {}
    for variable in dashboard["templating"]["list"]:
        if variable["type"] != "query":
            continue
        match = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
        assert match, f"variable {variable['name']}: {variable['query']}"
        found[variable["name"]] = match.groups()
    return found


def filled_in(expression, values):
    """`expression` with its variables replaced; one without a value is an error."""
    def value_of(match):
        name = match.group(1) or match.group(2)
        assert name in values, f"${name} in {expression} is no variable of the dashboard"
        return values[name]

    return re.sub(r"\$(?:(\w+)|\{(\w+)\})", value_of, expression)
