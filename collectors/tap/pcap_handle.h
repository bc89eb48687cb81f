// What the live source and the file source share: an owned libpcap handle, and the way from its packets to a
// PacketSink.

#pragma once

#include "collectors/tap/packet.h"
#include "metrics/base/result.h"

#include <pcap/pcap.h>

#include <cstdint>
#include <memory>
#include <string>

namespace rooflined::tap {

struct PcapClose {
  void operator()(pcap_t* handle) const { pcap_close(handle); }
};
using PcapHandle = std::unique_ptr<pcap_t, PcapClose>;

// The error where packets of this link type cannot be taken apart.
Status check_link_type(pcap_t* handle, const std::string& where);

// pcap_dispatch(3) of at most `packets_max` into `sink`; the result is its own. Requires: stamps are in nanoseconds.
int dispatch(pcap_t* handle, int packets_max, PacketSink& sink);

}  // namespace rooflined::tap
