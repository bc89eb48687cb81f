// Where a benchmark's files go, and what is printed of it: shared by `bench`, `report` and `fit`. Threads: one.

#pragma once

#include "daemon/bench_document.h"
#include "metrics/base/result.h"

#include <string>

namespace rooflined::daemon {

enum class BenchFormat { kTable, kMarkdown, kJson };

// bench.json, bench.md and bench.svg (where there is something to draw) in `folder`, each whole or not at all.
Status write_bench_files(const BenchDocument& document, const std::string& folder);

// bench.json alone: after each run, so that nothing is lost of what was measured.
Status write_bench_json(const BenchDocument& document, const std::string& path);

Status write_bench_plot(const BenchDocument& document, const std::string& path);

// To stdout.
void print_bench(const BenchDocument& document, BenchFormat format);

// 0 where something was measured, else 1.
int bench_status(const BenchDocument& document);

}  // namespace rooflined::daemon
