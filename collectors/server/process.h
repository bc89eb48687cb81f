// Which process listens on a port, and where the model file is that its server names.
//
//   in:   /proc (its path is an option, so that tests bring their own)
//   out:  a path that this process can open, and by which way it was found
//
// Needs no privilege: what may not be read is as if it were not there, and the error says so. Bounds: 65,536 processes,
// 65,536 descriptors of each, 16 MiB of socket table. Thread rule: none of its own; reads a few thousand links.

#pragma once

#include "metrics/base/result.h"
#include "metrics/exchange.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rooflined::server {

struct ProcessOptions {
  std::string proc = "/proc";
  std::string root;  // in front of absolute paths; empty on a real system
};

// The lowest process id that holds the listening socket.
Result<std::int64_t> find_listener(const Endpoint& endpoint, const ProcessOptions& options = {});

enum class FoundBy {
  kPath,        // the path as told
  kFolder,      // relative to the folder of the server's process
  kServerRoot,  // under the root of the server's process: a container, a chroot
};
std::string_view found_by_name(FoundBy how);

struct FoundFile {
  std::string path;
  FoundBy how = FoundBy::kPath;
};

// A file or a folder that can be read. `told` is what the server says: absolute, or relative to its own folder.
Result<FoundFile> locate_model(const std::string& told, const Endpoint& endpoint, const ProcessOptions& options = {});

}  // namespace rooflined::server
