// What is idle and what is not, as the wire and the host show it.

#include "collectors/ceiling/idle_window.h"

#include "tests/collectors/ceiling/fake_tree.h"
#include "tests/support/catch.h"

#include <chrono>
#include <functional>
#include <string>
#include <vector>

using namespace rooflined;
using namespace rooflined::ceiling;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

namespace {

constexpr Duration kEvery = milliseconds(500);

// A host that is looked at twice a second.
struct Host {
  unsigned cpus = 2;
  double cpus_busy = 0.02;
  double tasks = 0;
  std::optional<double> cpu_pressure = 0.0;
  std::optional<double> memory_pressure = 0.0;
  std::uint64_t in_flight = 0;
  bool capture_up = true;
  bool room = true;

  MonotonicTime now = MonotonicTime::from_ns(1'000'000'000'000);
  std::optional<MonotonicTime> busy_at;
  double busy_seconds = 5000;
  IdleWindow window{now};

  void run(Duration span, Duration quiet = seconds(60)) {
    for (const MonotonicTime end = now + span; now < end;) {
      now += kEvery;
      busy_seconds += cpus_busy * to_seconds(kEvery);
      if (in_flight > 0) busy_at = now;
      IdleWindow::Look look;
      look.wire = {capture_up, in_flight, busy_at};
      look.host = {cpus, busy_seconds, tasks, cpu_pressure, memory_pressure};
      look.room = room;
      window.look(now, quiet, look);
    }
  }
  std::string blocked() const {
    std::string text;
    for (const auto& [reason, blocks] : window.reasons()) text += blocks ? reason + " " : "";
    return text;
  }
};

}  // namespace

TEST_CASE("a quiet minute is idle, and nothing less") {
  Host host;
  CHECK_FALSE(host.window.idle());
  host.run(seconds(4));
  CHECK(host.blocked() == "cpu load requests ");
  host.run(seconds(55));
  CHECK(host.blocked() == "requests ");
  host.run(seconds(1));
  CHECK(host.window.idle());
  host.in_flight = 1;
  host.run(seconds(1));
  host.in_flight = 0;
  host.run(seconds(59));
  CHECK(host.blocked() == "requests ");
  host.run(seconds(1));
  CHECK(host.window.idle());
}

TEST_CASE("each reason blocks alone") {
  struct Row {
    std::string name;
    std::function<void(Host&)> change;
    std::string blocked;
  };
  const std::vector<Row> rows = {
      {"a model that is loaded, threads asleep", [](Host&) {}, ""},
      {"a poll at a tenth of a CPU",
       [](Host& h) {
         h.cpus_busy = 0.1;
         h.tasks = 0.1;
       },
       ""},
      {"a poll that spins, on a large machine",
       [](Host& h) {
         h.cpus = 32;
         h.cpus_busy = 1.1;
         h.tasks = 1;
       },
       ""},
      {"one thread at work on two CPUs",
       [](Host& h) {
         h.cpus_busy = 1;
         h.tasks = 1;
       },
       "cpu load "},
      {"stress-ng --stream 2 on two CPUs",
       [](Host& h) {
         h.cpus_busy = 2;
         h.tasks = 2;
         h.cpu_pressure = 3;
       },
       "cpu load "},
      {"stress-ng --stream 2 on 64",
       [](Host& h) {
         h.cpus = 64;
         h.cpus_busy = 2;
         h.tasks = 2;
       },
       "cpu "},
      {"tasks that wait for a disk", [](Host& h) { h.tasks = 2; }, "load "},
      {"tasks that wait for a CPU", [](Host& h) { h.cpu_pressure = 11; }, "pressure "},
      {"tasks that wait for memory", [](Host& h) { h.memory_pressure = 1.5; }, "pressure "},
      {"no pressure shown",
       [](Host& h) {
         h.cpu_pressure.reset();
         h.memory_pressure.reset();
       },
       ""},
      {"no room", [](Host& h) { h.room = false; }, "memory "},
      {"the capture is down", [](Host& h) { h.capture_up = false; }, "capture "},
      {"D19: load 7.5, two thirds of the CPUs busy",
       [](Host& h) {
         h.cpus = 8;
         h.cpus_busy = 5.2;
         h.tasks = 7.5;
       },
       "cpu load "},
  };
  for (const Row& row : rows) {
    INFO(row.name);
    Host host;
    row.change(host);
    host.run(minutes(2));
    CHECK(host.blocked() == row.blocked);
    CHECK(host.window.idle() == row.blocked.empty());
  }
}

TEST_CASE("a pause of a busy host is no idle window") {
  Host host;
  for (int i = 0; i < 20; ++i) {
    host.cpus_busy = 1;
    host.run(seconds(4));
    host.cpus_busy = 0;
    for (int look = 0; look < 6; ++look) {
      host.run(kEvery);
      CHECK_FALSE(host.window.idle());
    }
  }
}

TEST_CASE("after a probe, and after a suspend, the host is looked at anew") {
  Host host;
  host.run(minutes(2));
  REQUIRE(host.window.idle());
  host.busy_seconds += 20;  // the probe's own
  host.now += seconds(10);
  host.window.restart(host.now);
  host.run(seconds(5), seconds(5));
  CHECK(host.blocked() == "cpu load ");
  host.run(seconds(1), seconds(5));
  CHECK(host.window.idle());
  host.now += std::chrono::hours(8);
  host.busy_seconds += 1000;
  host.run(seconds(1), seconds(5));
  CHECK(host.blocked() == "cpu load ");
  host.run(seconds(5), seconds(5));
  CHECK(host.window.idle());
}

TEST_CASE("a window in which others used the memory is not idle, whatever the readings say") {
  Host host;
  host.run(minutes(2));
  host.window.contended_until(host.now + minutes(5));
  host.run(minutes(5) - seconds(1));
  CHECK(host.blocked() == "contended ");
  host.run(seconds(1));
  CHECK(host.window.idle());
}

TEST_CASE("what /proc says of a host") {
  FakeTree tree;
  tree.write(
      "/proc/stat",
      "cpu  100 20 30 9000 50 1 2 3 0 0\ncpu0 50 10 15 4500 25 1 1 2 0 0\ncpu1 50 10 15 4500 25 0 1 1 0 0\nintr 5\n"
      "procs_running 3\nprocs_blocked 1\n");
  tree.write("/proc/pressure/cpu", "some avg10=12.50 avg60=3.00 avg300=1.00 total=1\n");
  const HostReading reading = read_host(tree.root());
  CHECK(reading.cpus == 2);
  CHECK(reading.busy_seconds == Approx(1.56));
  CHECK(reading.tasks == Approx(3));
  CHECK(reading.cpu_pressure == Approx(12.5));
  CHECK_FALSE(reading.memory_pressure);
  FakeTree empty;
  const HostReading nothing = read_host(empty.root());
  CHECK(nothing.cpus == 0);
  CHECK_FALSE(nothing.busy_seconds);
  CHECK_FALSE(nothing.tasks);
}
