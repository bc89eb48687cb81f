#include "collectors/tap/pcap_handle.h"

#include "collectors/tap/link_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace rooflined::tap {

static_assert(link_type::kNull == DLT_NULL && link_type::kEthernet == DLT_EN10MB && link_type::kRawIp == DLT_RAW &&
              link_type::kLoop == DLT_LOOP && link_type::kLinuxCooked == DLT_LINUX_SLL &&
              link_type::kIpv4 == DLT_IPV4 && link_type::kIpv6 == DLT_IPV6 &&
              link_type::kLinuxCooked2 == DLT_LINUX_SLL2);

namespace {

struct Delivery {
  PacketSink& sink;
  int link_type;
};

void deliver(u_char* user, const pcap_pkthdr* header, const u_char* bytes) {
  const auto& delivery = *reinterpret_cast<const Delivery*>(user);
  // Keeps the product below in 64 bits; the line clock has its own bound.
  constexpr std::int64_t kSecondsMax = 9'000'000'000;
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  const std::int64_t seconds = std::clamp<std::int64_t>(header->ts.tv_sec, 0, kSecondsMax);
  const std::int64_t nanoseconds = std::clamp<std::int64_t>(header->ts.tv_usec, 0, kNsPerSecond);
  delivery.sink.on_packet(Packet{CaptureTime::from_ns(seconds * kNsPerSecond + nanoseconds),
                                 std::as_bytes(std::span(bytes, header->caplen)), header->len, delivery.link_type});
}

}  // namespace

Status check_link_type(pcap_t* handle, const std::string& where) {
  const int type = pcap_datalink(handle);
  if (link_type_supported(type)) return ok_status();
  const char* name = pcap_datalink_val_to_name(type);
  return Error{ErrorCode::kUnsupported, where,
               fmt::format("link type {} is not supported (Ethernet, Linux cooked, raw IP and loopback are)",
                           name != nullptr ? std::string(name) : std::to_string(type))};
}

int dispatch(pcap_t* handle, int packets_max, PacketSink& sink) {
  Delivery delivery{sink, pcap_datalink(handle)};
  return pcap_dispatch(handle, packets_max, deliver, reinterpret_cast<u_char*>(&delivery));
}

}  // namespace rooflined::tap
