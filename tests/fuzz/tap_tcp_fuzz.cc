// Segments of a few connections in any order, with any numbers. Each takes 12 bytes of the input: time, connection and
// way, flags, sequence, acknowledgment, length and what was captured of it.
//
// What must hold: a handler is told nothing after its close, and nothing of a direction after its end; no call is
// empty; memory stays below its bound and is given back at the end.

#include "collectors/tap/connection_table.h"
#include "metrics/base/byte_reader.h"
#include "metrics/base/result.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace {

using namespace rooflined;
using namespace rooflined::tap;

int handlers_open = 0;

class CheckingHandler final : public ConnectionHandler {
 public:
  CheckingHandler() { ++handlers_open; }
  ~CheckingHandler() override { --handlers_open; }
  void on_bytes(Direction direction, std::span<const std::byte> bytes, LineTime) override {
    ROOFLINED_CHECK(!closed_ && !ended_[static_cast<std::size_t>(direction)]);
    ROOFLINED_CHECK(!bytes.empty());
    bytes_ += bytes.size();
  }
  void on_gap(Direction direction, const Gap& gap) override {
    ROOFLINED_CHECK(!closed_ && !ended_[static_cast<std::size_t>(direction)]);
    ROOFLINED_CHECK(gap.bytes_missing > 0);
  }
  void on_client_window(bool, LineTime) override { ROOFLINED_CHECK(!closed_); }
  void on_half_close(Direction direction, LineTime) override {
    ROOFLINED_CHECK(!closed_ && !ended_[static_cast<std::size_t>(direction)]);
    ended_[static_cast<std::size_t>(direction)] = true;
  }
  void on_close(CloseCause, LineTime) override {
    ROOFLINED_CHECK(!closed_);
    closed_ = true;
  }
  bool lost_interest() const override { return bytes_ > 20'000; }

 private:
  bool closed_ = false;
  std::array<bool, 2> ended_{};
  std::size_t bytes_ = 0;
};

class CheckingFactory final : public ConnectionFactory {
 public:
  std::unique_ptr<ConnectionHandler> open(const ConnectionInfo&) override {
    return std::make_unique<CheckingHandler>();
  }
};

Endpoint endpoint(std::uint8_t host, std::uint16_t port) {
  return {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, host}, port};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::array<std::byte, 2048> payload{};
  constexpr std::size_t kRecord = 12;
  constexpr std::uint16_t kPorts[] = {8080, 8000};
  TableLimits limits;
  limits.connections_max = 4;
  limits.waiting_bytes_max = 8192;
  limits.stream.waiting_bytes_max = 4096;
  limits.stream.waiting_pieces_max = 8;

  CheckingFactory factory;
  {
    ConnectionTable table(kPorts, limits, factory, nullptr);
    ByteReader reader(std::as_bytes(std::span(data, size)));
    LineTime now = LineTime::from_ns(1'000'000'000);
    while (reader.left() >= kRecord) {
      // Up to 65 s at once, so that every timer is reached; usually little.
      const std::uint8_t step = reader.u8();
      now += std::chrono::milliseconds(step < 200 ? step : (step - 199) * 1171);
      const std::uint8_t which = reader.u8();
      TcpSegment segment;
      segment.source = endpoint(which & 7, which & 8 ? 8000 : 40000);
      segment.destination = endpoint(9, 8080);
      if ((which & 16) != 0) std::swap(segment.source, segment.destination);
      segment.flags = reader.u8();
      const std::uint8_t shift = reader.u8();
      segment.sequence = std::uint32_t{reader.u16()} << (shift & 15);
      segment.acknowledgment = std::uint32_t{reader.u16()} << (shift >> 4);
      segment.payload_length = reader.u16() & 2047;
      const std::size_t captured = reader.u16() & 4095;
      segment.payload = std::span(payload).first(std::min<std::size_t>(captured, segment.payload_length));
      table.advance_to(now);
      table.accept(segment, now);
      ROOFLINED_CHECK(table.size() <= limits.connections_max);
      ROOFLINED_CHECK(table.waiting_bytes() <= limits.waiting_bytes_max);
      ROOFLINED_CHECK(table.open_connections() == static_cast<std::size_t>(handlers_open));
    }
    table.finish(now);
    ROOFLINED_CHECK(table.size() == 0);
    ROOFLINED_CHECK(table.waiting_bytes() == 0);
  }
  ROOFLINED_CHECK(handlers_open == 0);
  return 0;
}
