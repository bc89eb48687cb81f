// The state file of the ceiling: anybody who can write to the state directory may have written it.

#include "daemon/ceiling_state.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rooflined::daemon;
  const auto state = parse_ceiling_state({reinterpret_cast<const char*>(data), size});
  if (!state.ok()) return 0;
  // What was accepted is written again, and that is accepted too.
  const auto again = parse_ceiling_state(ceiling_state_text(*state));
  if (!again.ok() || again->history.results().size() != state->history.results().size()) __builtin_trap();
  return 0;
}
