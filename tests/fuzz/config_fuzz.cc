// Any bytes as a settings file: no crash, no exception, and faults that have a place or none.

#include "config/reader.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const rooflined::config::ConfigResult result = rooflined::config::read_config_text(text);
  for (const rooflined::config::ConfigError& error : result.errors) {
    if (error.message.empty() || error.text("f").size() < 4) std::abort();
  }
  return 0;
}
