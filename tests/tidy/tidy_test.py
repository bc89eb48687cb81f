#!/usr/bin/env python3
"""The rules of tidy.py, each seen to fire: a check that cannot fail guards nothing."""

import pathlib
import tempfile
import unittest

import tidy


class IncludeTable(unittest.TestCase):
    def test_edges(self):
        rows = [
            ("metrics/base", "fmt/format.h", True),
            ("metrics/base", "metrics/geometry.h", False),
            ("metrics", "metrics/base/time.h", True),
            ("metrics", "metrics/export/prometheus.h", False),
            ("metrics", "nlohmann/json.hpp", False),
            ("metrics", "vector", True),
            ("metrics", "unistd.h", False),
            ("metrics/export", "metrics/snapshot.h", True),
            ("metrics/export", "metrics/base/time.h", True),
            ("metrics/export", "httplib.h", True),
            ("collectors/tap", "pcap/pcap.h", True),
            ("collectors/tap", "simdjson.h", True),
            ("collectors/tap", "collectors/model/gguf.h", False),
            ("collectors/tap", "metrics/export/http.h", False),
            ("collectors/ceiling", "hwy/highway.h", True),
            ("collectors/server", "simdjson.h", False),
            ("collectors/model", "daemon/logging.h", False),
            ("config", "toml++/toml.h", True),
            ("config", "collectors/tap/packet.h", False),
            ("daemon", "collectors/tap/packet.h", True),
            ("tests", "daemon/logging.h", True),
        ]
        for own, header, good in rows:
            with self.subTest(own=own, header=header):
                self.assertEqual(tidy.include_fault(own, header) is None, good)


class Tree(unittest.TestCase):
    def breaches(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            found = []
            tidy.check_tree(root, lambda path, line, message: found.append((path, line, message)))
            return found

    def test_clean(self):
        self.assertEqual(self.breaches({"metrics/a.h": "#pragma once\n#include <vector>\n"}), [])

    def test_each_rule_fires(self):
        rows = {
            "length": ("metrics/a.cc", "int x;\n" * 401),
            "pragma": ("metrics/a.h", "int x();\n"),
            "word": ("metrics/a.cc", "// TO" + "DO\n"),
            "tab": ("metrics/a.cc", "\tint x;\n"),
            "blank": ("config/a.toml", "x = 1 \n"),
            "newline": ("metrics/a.cc", "int x;"),
            "top level": ("docs/a.md", "text\n"),
            "edge": ("collectors/tap/a.cc", '#include "collectors/model/gguf.h"\n'),
            "relative": ("metrics/a.cc", '#include "geometry.h"\n'),
        }
        for name, (path, text) in rows.items():
            with self.subTest(name):
                self.assertEqual(len(self.breaches({path: text})), 1)


if __name__ == "__main__":
    unittest.main()
