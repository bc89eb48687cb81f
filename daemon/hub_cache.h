// Where a model's files are that a server names as the hub does ("org/name"): in a cache of downloads.
//
// Looks where the server's process looks (its environment and its root, where this process may read them), then in the
// usual places of this host. Needs no privilege. Thread rule: none of its own.

#pragma once

#include "collectors/server/process.h"
#include "metrics/exchange.h"

#include <optional>
#include <string>
#include <string_view>

namespace rooflined::daemon {

// The folder of the snapshot, or nullopt: not such a name, or nowhere to be found.
std::optional<std::string> find_in_hub_cache(std::string_view name, const Endpoint& endpoint,
                                             const server::ProcessOptions& options = {});

}  // namespace rooflined::daemon
