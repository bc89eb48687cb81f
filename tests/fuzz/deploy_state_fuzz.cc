// The state file of deploys, and the lines of the control socket: what is read is written and read again alike.

#include "daemon/deploy_state.h"
#include "daemon/mark_request.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rooflined::daemon;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto deploys = parse_deploy_state(text)) {
    const std::string written = deploy_state_text(*deploys);
    const auto again = parse_deploy_state(written);
    if (!again || again->size() != deploys->size() || deploy_state_text(*again) != written) std::abort();
  }
  if (const auto mark = parse_mark(text)) {
    const auto again = parse_mark(mark_line(*mark));
    if (!again || again->target != mark->target || again->accept != mark->accept) std::abort();
  }
  if (const auto answer = parse_mark_answer(text)) {
    if (!parse_mark_answer(mark_answer_line(*answer))) std::abort();
  }
  return 0;
}
