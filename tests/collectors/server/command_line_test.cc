// The cache's type from a server's command line and environment.

#include "collectors/server/command_line.h"
#include "tests/support/catch.h"

#include <string>
#include <string_view>

using rooflined::server::cache_type_of;

namespace {

// As /proc has them: a zero byte behind each word.
std::string words(std::string text) {
  for (char& c : text) c = c == ' ' ? '\0' : c;
  return text + '\0';
}

}  // namespace

TEST_CASE("the KV cache's type as the server was started") {
  struct Row {
    const char* command;
    const char* environment;
    const char* type;
  };
  for (const Row& row : {
           Row{"llama-server -m m.gguf --port 8080", "HOME=/root", ""},
           Row{"llama-server -ctk q8_0 -ctv q4_0", "", "q8_0,q4_0"},
           Row{"llama-server --cache-type-k q8_0", "", "q8_0,f16"},
           Row{"llama-server --cache-type-v=q5_1", "", "f16,q5_1"},
           Row{"llama-server -ctk f16 -ctk q4_0", "", "q4_0,f16"},
           Row{"llama-server", "A=1 LLAMA_ARG_CACHE_TYPE_K=q8_0 LLAMA_ARG_CACHE_TYPE_V=q8_0", "q8_0,q8_0"},
           Row{"llama-server -ctk bf16", "LLAMA_ARG_CACHE_TYPE_K=q8_0", "bf16,f16"},
           Row{"python -m vllm serve m --kv-cache-dtype fp8_e4m3", "", "fp8_e4m3"},
           Row{"vllm serve m --kv-cache-dtype=fp8", "", "fp8"},
           Row{"vllm serve m --kv-cache-dtype auto", "", ""},
           Row{"llama-server --cache-type-kv q8_0", "XLLAMA_ARG_CACHE_TYPE_K=q8_0", ""},
           Row{"", "", ""},
       }) {
    INFO(row.command << " | " << row.environment);
    CHECK(cache_type_of(words(row.command), words(row.environment)) == row.type);
  }
  using namespace std::string_view_literals;
  CHECK(cache_type_of("llama-server\0-ctk"sv, "").empty());
}
