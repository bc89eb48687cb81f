// Hub names to folders: through the server's process, and in the usual places.

#include "daemon/hub_cache.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

#include <filesystem>
#include <fstream>
#include <string>

using namespace rooflined;
using namespace rooflined::daemon;
namespace fs = std::filesystem;

namespace {

std::string add_model(const TemporaryFolder& root, const std::string& cache, const std::string& model) {
  std::string snapshot = root.path() + cache + "/" + model + "/snapshots/abc";
  fs::create_directories(snapshot);
  std::ofstream(snapshot + "/config.json") << "{}";
  return snapshot;
}

}  // namespace

TEST_CASE("a hub name is found in a home's cache, and nothing else is looked for") {
  const TemporaryFolder root;
  const std::string found = add_model(root, "/home/someone/.cache/huggingface/hub", "models--Qwen--Qwen3-8B");
  const server::ProcessOptions options{root.path() + "/proc", root.path()};
  CHECK(find_in_hub_cache("Qwen/Qwen3-8B", {}, options).value_or("") == found);
  for (const char* name :
       {"Qwen/Qwen3-14B", "Qwen3-8B", "/Qwen/Qwen3-8B", "../Qwen3-8B", "a/b/c", "Qwen/", "", "a/b c"}) {
    INFO(name);
    CHECK_FALSE(find_in_hub_cache(name, {}, options).has_value());
  }
}

TEST_CASE("homes are those of the users, wherever they are; lines that are none are skipped") {
  const TemporaryFolder root;
  fs::create_directories(root.path() + "/etc");
  root.write("etc/passwd",
             "broken\n::::\nengine:x:990:990::/srv/engine:/usr/sbin/nologin\nnone:x:1:1::relative:/bin/sh\n");
  const std::string found = add_model(root, "/srv/engine/.cache/huggingface/hub", "models--Qwen--Qwen3-8B");
  const server::ProcessOptions options{root.path() + "/proc", root.path()};
  CHECK(find_in_hub_cache("Qwen/Qwen3-8B", {}, options).value_or("") == found);
}
