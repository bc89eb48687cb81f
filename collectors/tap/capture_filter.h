// The capture filter (pcap-filter(7)) for TCP to and from some ports: what the kernel compares before it copies a
// packet.
//
// It lets everything through that decode_tcp() needs for these ports: IPv4 and IPv6, tagged or not. IPv6 packets with
// extension headers pass whatever their ports are (their TCP header has no fixed place; such packets are rare), and so
// do doubly tagged ones; the ports are looked at again behind the filter.
//
// Servers that are left out, and flows outside the share, are named for untagged packets only; the connection table
// looks at the share again. SYNs pass whatever the share, so that the flows it leaves out can be counted.
//
// What goes over loopback is seen twice, on its way out and in. libpcap drops the first copy, but behind the ring;
// where the link type names the interface (a capture of "any") this filter drops it before.

#pragma once

#include "collectors/tap/watch.h"

#include <cstdint>
#include <span>
#include <string>

namespace rooflined::tap {

// `link_type` is a DLT_* value. Requires: at least one port.
std::string capture_filter(const Watch& watch, int link_type);
// The same for the doorbell: only what goes to the ports, and of untagged packets only those with payload.
std::string doorbell_filter(std::span<const std::uint16_t> ports, int link_type);

}  // namespace rooflined::tap
