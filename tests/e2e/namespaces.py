"""Network namespaces for the live tests. Root."""

import re
import subprocess
import sys


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, stdout=subprocess.DEVNULL)


def add(*names):
    for name in names:
        ip("netns", "add", name)
        ip("-n", name, "link", "set", "lo", "up")


def remove(*names):
    for name in names:
        subprocess.run(["ip", "netns", "del", name], check=False, stderr=subprocess.DEVNULL)


def inside(namespace, *command):
    return ["ip", "netns", "exec", namespace, *[str(part) for part in command]]


def page(namespace, url):
    """What an HTTP server in there answers; None where it does not."""
    fetch = f"import urllib.request as u; print(u.urlopen('{url}').read().decode())"
    done = subprocess.run(inside(namespace, sys.executable, "-c", fetch), capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else None


def value(scrape, pattern):
    found = re.search("^" + pattern + r" (\S+)$", scrape or "", re.M)
    return float(found[1]) if found else None
