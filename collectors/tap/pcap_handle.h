// What the sources of packets share: an owned libpcap handle, how a live one starts, and the way from its packets to a
// PacketSink.

#pragma once

#include "collectors/tap/packet.h"
#include "metrics/base/result.h"

#include <pcap/pcap.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace rooflined::tap {

struct PcapClose {
  void operator()(pcap_t* handle) const { pcap_close(handle); }
};
using PcapHandle = std::unique_ptr<pcap_t, PcapClose>;

// The error where packets of this link type cannot be taken apart.
Status check_link_type(pcap_t* handle, const std::string& where);

// Activates a live handle whose options are set, without waiting in reads, and installs the filter that `filter` makes
// for its link type. The result is the descriptor to poll. The errors are one line for a person, as of open_live().
Result<int> start_capture(pcap_t* handle, const std::string& interface,
                          const std::function<std::string(int link_type)>& filter);

// Replaces the filter of a live handle.
Status set_filter(pcap_t* handle, const std::string& text, const std::string& interface);

// pcap_dispatch(3) of at most `packets_max` into `sink`; the result is its own. Requires: stamps are in nanoseconds.
// The packets of a live handle are wiped behind the sink.
int dispatch_live(pcap_t* handle, int packets_max, PacketSink& sink);
int dispatch_file(pcap_t* handle, int packets_max, PacketSink& sink);

}  // namespace rooflined::tap
