// Asks the kernel for the listening TCP sockets of this network namespace: sock_diag(7).
//
// Waits at most a second for an answer. Thread rule: none of its own; two system calls for each family and 32 KiB.

#pragma once

#include "collectors/server/listening_sockets.h"

#include <cstddef>
#include <optional>
#include <vector>

namespace rooflined::server {

// At most `sockets_max` of them. Absent: the kernel does not answer (no module tcp_diag, no netlink).
std::optional<std::vector<ListeningSocket>> diagnose_listening_sockets(std::size_t sockets_max);

}  // namespace rooflined::server
