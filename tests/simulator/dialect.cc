#include "tests/simulator/dialect.h"

#include "tests/simulator/dialects.h"

namespace rooflined::simulator {
namespace {

struct Entry {
  std::string_view name;
  std::unique_ptr<Dialect> (*make)();
};

constexpr Entry kDialects[] = {
    {"openai", make_openai_dialect},
    {"vllm", make_vllm_dialect},
    {"vllm-force-usage", make_vllm_force_usage_dialect},
    {"sglang", make_sglang_dialect},
    {"llama.cpp", make_llama_cpp_dialect},
    {"ollama", make_ollama_dialect},
};

}  // namespace

std::vector<std::string> dialect_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kDialects) names.emplace_back(entry.name);
  return names;
}

std::unique_ptr<Dialect> make_dialect(std::string_view name) {
  for (const Entry& entry : kDialects) {
    if (entry.name == name) return entry.make();
  }
  return nullptr;
}

std::string_view stream_content_type(Route route) {
  return is_ollama(route) ? "application/x-ndjson" : "text/event-stream";
}

}  // namespace rooflined::simulator
