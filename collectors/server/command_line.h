// The type of the KV cache that a server was started with, from its command line and environment: llama.cpp tells it
// nowhere else.
//
//   in:   /proc/PID/cmdline and environ of the process that listens (where this process may read them)
//   out:  "q8_0", "q8_0,f16": as --kv-cache-type takes it; empty: nothing said there
//
// Bounds: 128 KiB of each. Thread rule: none of its own.

#pragma once

#include "collectors/server/process.h"
#include "metrics/exchange.h"

#include <string>
#include <string_view>

namespace rooflined::server {

// Words and variables are separated by zero bytes, as the kernel has them. Options go before the environment.
std::string cache_type_of(std::string_view command_line, std::string_view environment);

// Of the process that listens there; empty where it may not be read.
std::string cache_type_of_listener(const Endpoint& endpoint, const ProcessOptions& options = {});

}  // namespace rooflined::server
