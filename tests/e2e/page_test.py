#!/usr/bin/env python3
"""The live page in a real Chromium: page_test.py ROOT BIN_DIR

- beside the daemon and 32 simulated servers: /api/v1/state and the page say what the servers answered; nothing is refused by
  the policy, nothing goes wrong on the console;
- the daemon goes away and comes back: the page says so, goes on by itself, and keeps what is opened;
- over made states (1, 3, 32 targets, none, trouble, names that are markup), at the widths of a phone and of a desk, light and
  dark: axe-core finds nothing, and nothing sticks out;
- by keyboard alone what is folded can be opened, and stays so.

With ROOFLINED_PICTURES=DIR it leaves a picture of each. Exits with 77, skipped, without Chromium or the right to capture;
axe-core comes from build/tools (tests/run.sh --browser fetches it), and is left out without it."""

import os
import pathlib
import sys
import tempfile

import many_targets
import page_states
from browser import Browser
from page_stand import Stand
from processes import Processes, answers, require, require_packet_sockets, skip

MANY = 32
SIZES = {"phone": (390, 844), "desk": (1440, 900)}
AWAY = "document.body.classList.contains('away')"


def take_picture(browser, name):
    if folder := os.environ.get("ROOFLINED_PICTURES"):
        browser.picture(pathlib.Path(folder) / f"{name}.png")


def check_no_errors(browser, allowed=()):
    wrong = [error for error in browser.errors if not any(part in error for part in allowed)]
    assert not wrong, f"on the console: {wrong}"
    browser.errors.clear()


def check_axe(browser, axe, where):
    if axe is None:
        return
    browser.evaluate(axe + "; undefined")
    found = browser.evaluate("axe.run().then(found => found.violations.map(one => one.id + ': ' + one.help + ' ' + "
                             "one.nodes.map(node => node.html.slice(0, 200)).join(' | ')))")
    assert not found, f"{where}: axe-core finds {found}"


def text_of(browser, selector):
    return browser.evaluate(f"[...document.querySelectorAll('{selector}')].map(node => node.textContent)")


def check_same_shape(made, real, where="state"):
    """The made states have no field that the daemon's do not; what takes hours to happen aside."""
    for key, value in made.items():
        if key in ("ceiling_last", "deploys", "idle_blocked"):
            continue
        assert key in real, f"{where}.{key} is not in the daemon's state"
        if isinstance(value, dict) and where == "state":
            check_same_shape({name: one for name, one in value.items() if key != "ceiling"}, real[key], f"{where}.{key}")
        if key == "targets":
            check_same_shape(value[0], real[key][0], "target")


def check_live(browser, web, axe):
    state = many_targets.state(web)
    assert len(state["targets"]) == MANY, len(state["targets"])
    for target in state["targets"]:
        assert target["output_tokens"] == 2 * many_targets.TOKENS and target["up"], target["target"]
        assert target["geometry"]["source"] and target["decode_bytes_dense"] > 0, target
    check_same_shape(page_states.STATES["one"], state)
    for size, (width, height) in SIZES.items():
        browser.open(f"http://127.0.0.1:{web}/", width, height)
        browser.wait_for("the cards", f"document.querySelectorAll('#targets article').length === {MANY}")
        assert sorted(text_of(browser, "#targets h3")) == sorted(target["target"] for target in state["targets"])
        check_axe(browser, axe, f"live {size}")
        take_picture(browser, f"live-{size}")
    shown = text_of(browser, "#targets .mbu")
    assert all("MBU, last" in words and ("%" in words or "ceiling" in words) for words in shown), shown
    drawn, rows = browser.evaluate("[latest.targets, [...document.querySelectorAll('#roof-table tbody tr')].map("
                                   "row => [...row.cells].map(cell => cell.textContent))]")
    figures = {row[0]: row[-1] for row in rows}
    for target in drawn:
        ratios = [window["mbu_ratio"] for window in [target["live"], *target["windows"]] if "mbu_ratio" in window]
        figure = figures[target["target"]]
        assert any(figure == "≥ ceiling" if mbu > 1 else figure != "≥ ceiling" and abs(float(figure.rstrip(" %")) - mbu * 100) <= 0.6
                   for mbu in ratios), (target["target"], figure, ratios)
    check_no_errors(browser)


def open_details(browser):
    """By keyboard: forward to the first folded table, and unfold it."""
    for _ in range(20):
        browser.press("Tab", 9)
        if browser.evaluate("document.activeElement.tagName") == "SUMMARY":
            break
    browser.press("Enter", 13)
    browser.call("Input.dispatchKeyEvent", type="char", text="\r")
    browser.wait_for("the table", "document.querySelector('#roofs details').open", 5)


def check_outage(browser, processes, binaries, folder, web, ports):
    browser.evaluate("window.sameDocument = true; undefined")
    open_details(browser)
    processes.stop(next(process for name, process in processes.running if name == "rooflined"))
    browser.wait_for("the page to see that the daemon is gone", AWAY, 30)
    assert "does not answer" in text_of(browser, "#away")[0]
    assert browser.evaluate("document.querySelectorAll('#targets article').length") == MANY, "the last figures are gone"
    take_picture(browser, "gone")
    check_no_errors(browser, ["ERR_CONNECTION_REFUSED"])
    processes.start("rooflined", binaries / "rooflined", "run", "--config", many_targets.settings(folder, web, ports))
    processes.wait_for("the daemon", lambda: answers(f"http://127.0.0.1:{web}/readyz"), 20)
    browser.wait_for("the page to see that it is back", f"!{AWAY}", 20)
    assert browser.evaluate("window.sameDocument && document.querySelector('#away').hidden"), "the page was loaded anew"
    many_targets.ask(ports[0])
    browser.wait_for("the first target", "document.querySelectorAll('#targets article').length === 1", 20)
    browser.wait_for("its roofline", "!document.getElementById('roofs').hidden", 20)
    assert browser.evaluate("document.querySelector('#roofs details').open"), "what was unfolded is folded again"
    check_no_errors(browser, ["ERR_CONNECTION_REFUSED", "503"])


def check_state(browser, stand, name, axe):
    for size, (width, height) in SIZES.items():
        for dark in (False, True):
            where = f"{name}-{size}-{'dark' if dark else 'light'}"
            stand.shown = name
            browser.open(stand.url, width, height, dark)
            browser.wait_for(f"{where} live", "document.getElementById('live').textContent === 'live'")
            wanted = page_states.STATES[name]["targets"]
            assert text_of(browser, "#targets h3") == [target["target"] for target in wanted], where
            over = browser.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert over <= 0, f"{where}: {over} pixels stick out"
            shown = browser.evaluate("document.body.innerText")
            assert "NaN" not in shown and "undefined" not in shown and "Infinity" not in shown, f"{where}: {shown}"
            check_axe(browser, axe, where)
            take_picture(browser, where)
    check_no_errors(browser)


def check_words(browser, stand):
    """What is wrong is said, with what to do; above the ceiling there is no percentage."""
    stand.shown = "trouble"
    browser.open(stand.url, *SIZES["desk"])
    browser.wait_for("the findings", "document.querySelectorAll('#findings li').length > 0")
    found = " ".join(text_of(browser, "#findings li"))
    for part in ("older than max_age", "membw --adopt", "lost packets", "nothing listens", "are estimates", "far from the adopted",
                 "MBU is at 0.81 of before (0.78 to 0.84)", "ITL is at 1.60 of before"):
        assert part in found, f"{part!r} is not in {found!r}"
    assert "Last deploy" in text_of(browser, "#targets article")[0] and "(version): MBU 0.81" in text_of(browser, "#targets article")[0]
    assert "at or above the measured ceiling" in text_of(browser, "#targets .mbu")[0]
    assert "104" not in browser.evaluate("document.body.innerText")
    # MBU fell and users are better off: a lighter quantisation is nothing wrong.
    stand.shown = "three"
    browser.wait_for("nothing wrong", "document.getElementById('fine').textContent === 'Nothing.'")
    stand.shown = "unmeasured"
    browser.wait_for("the missing ceiling", "document.body.innerText.includes('no ceiling is adopted yet')")
    assert "requests are in flight" in text_of(browser, "#findings li")[0]
    # A packet lost while somebody watches.
    state = page_states.STATES["unmeasured"]
    state["capture"]["dropped_packets"] = 7
    browser.wait_for("the lost packets", "document.body.innerText.includes('dropped 7 packets')")
    state["capture"]["dropped_packets"] = 0
    check_no_errors(browser)


def main():
    root, binaries = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    require(binaries / "rooflined", binaries / "rooflined-sim")
    require_packet_sockets()
    if Browser.program() is None:
        skip("chromium is not installed")
    axe_path = root / "build/tools/node_modules/axe-core/axe.min.js"
    axe = axe_path.read_text(encoding="utf-8") if axe_path.exists() else None
    print("with axe-core" if axe else f"without axe-core: no {axe_path}")
    with tempfile.TemporaryDirectory() as name, Processes(name) as processes:
        folder = pathlib.Path(name)
        with Browser(folder) as browser:
            web, ports, _ = many_targets.start(processes, binaries, folder, MANY)
            check_live(browser, web, axe)
            with Stand(f"http://127.0.0.1:{web}/") as stand:
                for state in page_states.STATES:
                    check_state(browser, stand, state, axe)
                check_words(browser, stand)
            browser.open(f"http://127.0.0.1:{web}/", *SIZES["desk"])
            browser.wait_for("the rooflines", "!document.getElementById('roofs').hidden")
            check_outage(browser, processes, binaries, folder, web, ports)
    print(f"{len(page_states.STATES)} states at {len(SIZES)} sizes in light and dark, {MANY} live targets")
    return 0


if __name__ == "__main__":
    sys.exit(main())
