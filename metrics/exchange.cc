#include "metrics/exchange.h"

#include <algorithm>

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

std::uint64_t model_name_hash(std::string_view name) {
  constexpr std::string_view kDefaultTag = ":latest";  // Ollama's
  constexpr std::uint64_t kFnvOffset = 14'695'981'039'346'656'037ULL;
  constexpr std::uint64_t kFnvPrime = 1'099'511'628'211ULL;
  if (name.ends_with(kDefaultTag)) name.remove_suffix(kDefaultTag.size());
  std::uint64_t hash = kFnvOffset;
  for (const char c : name) {
    if (c == '\\') continue;  // some encoders write "\/"
    const bool upper = c >= 'A' && c <= 'Z';
    hash = (hash ^ static_cast<unsigned char>(upper ? c - 'A' + 'a' : c)) * kFnvPrime;
  }
  return std::max<std::uint64_t>(hash, 1);
}

}  // namespace rooflined
