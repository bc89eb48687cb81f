#include "metrics/exchange.h"

#include "tests/support/catch.h"

using namespace rooflined;

TEST_CASE("all spellings of a model's name have one hash, and other names have others") {
  const std::uint64_t hash = model_name_hash("org/llama3");
  CHECK(model_name_hash("org/Llama3:latest") == hash);
  CHECK(model_name_hash(R"(org\/llama3)") == hash);
  for (const char* other : {"llama3", "org/llama3:8b", "org/llama3.1", "org/llama", "latest", ":latest", ""}) {
    INFO(other);
    CHECK(model_name_hash(other) != hash);
    CHECK(model_name_hash(other) != 0);
  }
}
