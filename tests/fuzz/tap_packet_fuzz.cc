// Raw packets of any link type. The first byte chooses the type, the second how much longer the packet was on the wire.

#include "collectors/tap/link_layer.h"
#include "metrics/base/result.h"

#include <cstddef>
#include <cstdint>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rooflined::tap;
  if (size < 2) return 0;
  constexpr int kTypes[] = {link_type::kEthernet, link_type::kLinuxCooked, link_type::kLinuxCooked2,
                            link_type::kRawIp,    link_type::kNull,        link_type::kLoop,
                            link_type::kIpv4,     link_type::kIpv6,        105};
  const int type = kTypes[data[0] % std::size(kTypes)];
  const auto bytes = std::as_bytes(std::span(data, size).subspan(2));
  const auto wire_length = static_cast<std::uint32_t>(bytes.size() + std::size_t{data[1]} * 512);

  TcpSegment segment;
  if (decode_tcp({rooflined::CaptureTime{}, bytes, wire_length, type}, segment) != DecodeOutcome::kTcp) return 0;
  ROOFLINED_CHECK(segment.payload.size() <= segment.payload_length);
  ROOFLINED_CHECK(segment.payload_length <= wire_length);
  ROOFLINED_CHECK(segment.payload.empty() ||
                  (segment.payload.data() >= bytes.data() &&
                   segment.payload.data() + segment.payload.size() <= bytes.data() + bytes.size()));
  return 0;
}
