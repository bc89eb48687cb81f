// What a capture lets through: ports, less the servers that turned out to be something else, less a share of the flows
// where watching all of them costs too much. The kernel filter and the connection table go by the same Watch.

#pragma once

#include "metrics/exchange.h"

#include <cstdint>
#include <vector>

namespace rooflined::tap {

struct Watch {
  std::vector<std::uint16_t> ports = {};  // at least one
  std::vector<Endpoint> left_out = {};    // servers on these ports; a few, since each makes the filter longer
  unsigned one_in = 1;                    // one flow of so many: a power of two
};

// Whether a flow is in the share. Linux gives outgoing connections ports of one parity and counts up from there, so the
// lowest bit says nothing and those above it are evenly spread.
constexpr bool in_share(std::uint16_t client_port, std::uint16_t server_port, unsigned one_in) {
  return ((static_cast<unsigned>(client_port) + server_port) >> 1 & (one_in - 1)) == 0;
}

}  // namespace rooflined::tap
