// Hub names to folders: through the server's process, and in the usual places.

#include "daemon/hub_cache.h"
#include "tests/support/catch.h"

#include <unistd.h>
#include <filesystem>
#include <fstream>
#include <string>

using namespace rooflined;
using namespace rooflined::daemon;
namespace fs = std::filesystem;

TEST_CASE("a hub name is found in a home's cache, and nothing else is looked for") {
  const std::string root = (fs::temp_directory_path() / ("rooflined-hub-" + std::to_string(getpid()))).string();
  const std::string cache = root + "/home/someone/.cache/huggingface/hub/models--Qwen--Qwen3-8B";
  fs::create_directories(cache + "/snapshots/abc");
  std::ofstream(cache + "/snapshots/abc/config.json") << "{}";
  server::ProcessOptions options;
  options.proc = root + "/proc";
  options.root = root;
  CHECK(find_in_hub_cache("Qwen/Qwen3-8B", {}, options).value_or("") == cache + "/snapshots/abc");
  for (const char* name :
       {"Qwen/Qwen3-14B", "Qwen3-8B", "/Qwen/Qwen3-8B", "../Qwen3-8B", "a/b/c", "Qwen/", "", "a/b c"}) {
    INFO(name);
    CHECK_FALSE(find_in_hub_cache(name, {}, options).has_value());
  }
  fs::remove_all(root);
}
