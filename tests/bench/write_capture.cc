// Writes the synthetic streams of traffic.h as a capture file, so that other programs can be timed on the same bytes:
// rooflined_bench_capture FILE STREAMS TOKENS

#include "tests/bench/traffic.h"
#include "tests/support/packets.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

int main(int argc, char** argv) {
  using namespace rooflined;
  const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
  if (arguments.size() != 4) {
    std::fputs("usage: rooflined_bench_capture FILE STREAMS TOKENS\n", stderr);
    return 2;
  }
  const auto streams = std::strtoul(arguments[2], nullptr, 10);
  const auto tokens = std::strtoul(arguments[3], nullptr, 10);
  bench::Traffic traffic({.streams = streams});
  CaptureTime at(std::chrono::seconds(1'700'000'000));
  traffic.open(at);
  for (unsigned long token = 0; token < tokens; ++token) traffic.step(at += std::chrono::milliseconds(10));
  traffic.close(at + std::chrono::milliseconds(10));
  const std::vector<test::TimedPacket> packets = traffic.take();
  test::write_pcap(arguments[1], packets);
}
