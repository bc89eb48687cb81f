#include "tests/simulator/model.h"

#include "tests/support/catch.h"

#include <unistd.h>
#include <cstdio>
#include <filesystem>
#include <string>

namespace rooflined::simulator {
namespace {

// Bytes of `values` in Q8_0: 34 for each 32.
constexpr double q8(double values) {
  return values / 32 * 34;
}

TEST_CASE("the dense preset: every tensor is read, its tied embedding as the head") {
  const auto model = load_model("builtin:llama-3.2-1b-q8_0");
  REQUIRE(model.ok());
  const double layer = q8(2048.0 * (2048 + 512 + 512 + 2048 + 3 * 8192)) + 2 * 2048 * 4;
  const double head = q8(2048.0 * 128256);
  CHECK(model->geometry.dense_bytes == 16 * layer + 2048 * 4 + head);
  CHECK(model->geometry.head_bytes == head);
  CHECK(model->geometry.kv_bytes_per_token() == 16 * 2 * 8 * 64 * 2);
  CHECK(model->parameters == 1235814400);  // that of Llama 3.2 1B
  CHECK(model->path.empty());
}

TEST_CASE("the MoE preset: experts apart, the embedding not read") {
  const auto model = load_model("builtin:moe-small", "q8_0,f16");
  REQUIRE(model.ok());
  REQUIRE(model->geometry.expert_groups.size() == 1);
  const ExpertGroup& group = model->geometry.expert_groups[0];
  CHECK(group.layers == 24);
  CHECK(group.experts == 32);
  CHECK(group.experts_per_token == 8);
  CHECK(group.bytes_per_expert == q8(3.0 * 1024 * 512));
  const double layer = q8(1024.0 * (1024 + 512 + 512 + 1024)) + 2 * 1024 * 4 + 1024 * 32 * 4;
  CHECK(model->geometry.dense_bytes == 24 * layer + 1024 * 4 + q8(1024.0 * 49152));
  CHECK(model->geometry.kv_bytes_per_token() == Approx(24 * (q8(8 * 64) + 8 * 64 * 2)));
}

TEST_CASE("a written preset is the built-in one again, full size and a hole") {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("rooflined-sim-" + std::to_string(getpid()) + ".gguf");
  REQUIRE(write_model("moe-small", path).ok());
  const auto file = load_model(path);
  const auto builtin = load_model("builtin:moe-small");
  REQUIRE(file.ok());
  REQUIRE(builtin.ok());
  CHECK(file->geometry.dense_bytes == builtin->geometry.dense_bytes);
  CHECK(file->geometry.expert_groups[0].bytes_per_expert == builtin->geometry.expert_groups[0].bytes_per_expert);
  CHECK(file->path == std::filesystem::canonical(path));
  CHECK(file->name == path.filename());
  CHECK(std::filesystem::file_size(path) >= file->tensor_bytes);
  std::filesystem::remove(path);
}

TEST_CASE("what is not there is refused with its name") {
  CHECK(load_model("builtin:nonsense").error().message().find("moe-small") != std::string::npos);
  CHECK_FALSE(load_model("/nonexistent.gguf").ok());
  CHECK_FALSE(load_model("builtin:moe-small", "f17").ok());
  CHECK_FALSE(write_model("nonsense", "/tmp/x").ok());
  CHECK_FALSE(write_model("moe-small", "/nonexistent/x.gguf").ok());
}

}  // namespace
}  // namespace rooflined::simulator
