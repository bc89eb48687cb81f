// The text of a scrape by HTTP, from a URL that the user named. Threads: one.

#pragma once

#include "metrics/base/result.h"

#include <cstddef>
#include <string>

namespace rooflined::daemon {

inline constexpr std::size_t kScrapeBytesMax = 64 * 1024 * 1024;

// At most that much, and ten seconds without a byte. Errors: kInvalid, kIo.
// Requires: `url` begins with http:// or https://.
Result<std::string> fetch_scrape(const std::string& url);

}  // namespace rooflined::daemon
