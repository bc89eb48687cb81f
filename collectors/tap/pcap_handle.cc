#include "collectors/tap/pcap_handle.h"

#include "collectors/tap/link_layer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
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

template <bool kWipe>
void deliver(u_char* user, const pcap_pkthdr* header, const u_char* bytes) {
  const auto& delivery = *reinterpret_cast<const Delivery*>(user);
  // Keeps the product below in 64 bits; the line clock has its own bound.
  constexpr std::int64_t kSecondsMax = 9'000'000'000;
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  const std::int64_t seconds = std::clamp<std::int64_t>(header->ts.tv_sec, 0, kSecondsMax);
  const std::int64_t nanoseconds = std::clamp<std::int64_t>(header->ts.tv_usec, 0, kNsPerSecond);
  delivery.sink.on_packet(Packet{CaptureTime::from_ns(seconds * kNsPerSecond + nanoseconds),
                                 std::as_bytes(std::span(bytes, header->caplen)), header->len, delivery.link_type});
  // The kernel overwrites its ring once a lap only; until then it would hold conversations. libpcap
  // maps it writable and is done with a packet when the callback returns.
  if constexpr (kWipe) explicit_bzero(const_cast<u_char*>(bytes), header->caplen);
}

Error activation_error(pcap_t* handle, int status, const std::string& interface) {
  const std::string detail = pcap_geterr(handle);
  switch (status) {
    case PCAP_ERROR_PERM_DENIED:
    case PCAP_ERROR_PROMISC_PERM_DENIED:
      return {ErrorCode::kDenied, interface, "capturing needs the capability CAP_NET_RAW (or root)"};
    case PCAP_ERROR_NO_SUCH_DEVICE:
      return {ErrorCode::kNotFound, interface, "no such network interface"};
    case PCAP_ERROR_IFACE_NOT_UP:
      return {ErrorCode::kNotFound, interface, "the network interface is down"};
    default:
      return {ErrorCode::kIo, interface,
              fmt::format("cannot capture: {}", detail.empty() ? pcap_statustostr(status) : detail.c_str())};
  }
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

Status set_filter(pcap_t* handle, const std::string& text, const std::string& interface) {
  bpf_program program{};
  if (pcap_compile(handle, &program, text.c_str(), 1, PCAP_NETMASK_UNKNOWN) != 0) {
    return Error{ErrorCode::kInvalid, interface, fmt::format("capture filter: {}", pcap_geterr(handle))};
  }
  const int status = pcap_setfilter(handle, &program);
  pcap_freecode(&program);
  if (status != 0) return Error{ErrorCode::kIo, interface, fmt::format("capture filter: {}", pcap_geterr(handle))};
  return ok_status();
}

Result<int> start_capture(pcap_t* handle, const std::string& interface,
                          const std::function<std::string(int link_type)>& filter) {
  if (pcap_set_tstamp_precision(handle, PCAP_TSTAMP_PRECISION_NANO) != 0) {
    return Error{ErrorCode::kUnsupported, interface, "no stamps with nanoseconds"};
  }
  // A warning is positive; none of them matters without promiscuous mode.
  if (const int status = pcap_activate(handle); status < 0) return activation_error(handle, status, interface);
  // The second cooked format names the interface of each packet; where a device does not have it, nothing is lost but
  // that.
  if (pcap_datalink(handle) == DLT_LINUX_SLL) pcap_set_datalink(handle, DLT_LINUX_SLL2);
  if (Status known = check_link_type(handle, interface); !known) return known.error();
  if (Status filtered = set_filter(handle, filter(pcap_datalink(handle)), interface); !filtered) {
    return filtered.error();
  }
  char message[PCAP_ERRBUF_SIZE] = {};
  if (pcap_setnonblock(handle, 1, message) != 0) return Error{ErrorCode::kIo, interface, message};
  const int descriptor = pcap_get_selectable_fd(handle);
  if (descriptor < 0) return Error{ErrorCode::kUnsupported, interface, "cannot wait for packets on this interface"};
  return descriptor;
}

int dispatch_live(pcap_t* handle, int packets_max, PacketSink& sink) {
  Delivery delivery{sink, pcap_datalink(handle)};
  return pcap_dispatch(handle, packets_max, deliver<true>, reinterpret_cast<u_char*>(&delivery));
}

int dispatch_file(pcap_t* handle, int packets_max, PacketSink& sink) {
  Delivery delivery{sink, pcap_datalink(handle)};
  return pcap_dispatch(handle, packets_max, deliver<false>, reinterpret_cast<u_char*>(&delivery));
}

}  // namespace rooflined::tap
