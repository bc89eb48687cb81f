// Goal: process_* come out of the files of proc(5), and a missing file makes figures absent.

#include "metrics/export/process_stats.h"
#include "tests/support/catch.h"

#include <unistd.h>

using namespace rooflined::metrics_export;

TEST_CASE("a proc folder gives every figure, whatever the program is called") {
  const ProcessStats stats = read_process_stats(ROOFLINED_TEST_DATA "/proc");
  const double ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  CHECK(stats.cpu_seconds.value() == Approx((1234 + 567) / ticks));
  CHECK(stats.virtual_bytes.value() == 250000000);
  CHECK(stats.resident_bytes.value() == 4321.0 * static_cast<double>(::sysconf(_SC_PAGESIZE)));
  CHECK(stats.start_time_seconds.value() == Approx(1700000000 + 98765 / ticks));
  CHECK(stats.max_fds.value() == 1024);
  CHECK(stats.open_fds.value() == 3);
}

TEST_CASE("no proc folder gives no figure") {
  const ProcessStats stats = read_process_stats(ROOFLINED_TEST_DATA "/no-such-folder");
  CHECK_FALSE(stats.cpu_seconds);
  CHECK_FALSE(stats.resident_bytes);
  CHECK_FALSE(stats.virtual_bytes);
  CHECK_FALSE(stats.open_fds);
  CHECK_FALSE(stats.max_fds);
  CHECK_FALSE(stats.start_time_seconds);
}

TEST_CASE("this process has every figure") {
  const ProcessStats stats = read_process_stats("/proc");
  CHECK(stats.cpu_seconds);
  CHECK(stats.virtual_bytes);
  CHECK(stats.resident_bytes);  // 0 where qemu plays the processor: the number is held by the folder above
  CHECK(stats.max_fds.value() >= stats.open_fds.value());
  CHECK(stats.open_fds.value() >= 3);
  CHECK(stats.start_time_seconds.value() > 1'000'000'000);
}
