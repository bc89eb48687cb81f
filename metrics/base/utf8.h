// Makes a name from outside fit for a label, a log line or JSON.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace rooflined {

// Valid UTF-8: each ill-formed byte becomes U+FFFD, control characters become spaces, and the result is cut at a
// character's border to at most `bytes_max` bytes. (One byte that is not UTF-8 in a label makes Prometheus drop the
// whole scrape.)
std::string to_label(std::string_view raw, std::size_t bytes_max = 128);

}  // namespace rooflined
