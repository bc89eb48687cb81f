#include "metrics/exchange.h"

namespace rooflined {
namespace {

// In the order of ServerFamily.
constexpr std::array<std::string_view, 12> kFamilyNames = {"openai",   "llama.cpp", "vllm",      "sglang",
                                                           "ollama",   "tgi",       "koboldcpp", "tensorrt-llm",
                                                           "lmdeploy", "mlc",       "aphrodite", "lm-studio"};

}  // namespace

std::string_view family_name(ServerFamily family) {
  return kFamilyNames[static_cast<std::size_t>(family)];
}

ServerFamily family_from_name(std::string_view name) {
  for (std::size_t i = 0; i < kFamilyNames.size(); ++i) {
    if (kFamilyNames[i] == name) return static_cast<ServerFamily>(i);
  }
  return ServerFamily::kUnknown;
}

}  // namespace rooflined
