#include "collectors/server/model_stamp.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

#include <filesystem>
#include <string>

using namespace rooflined;
using rooflined::server::read_model_stamp;

TEST_CASE("copies of a file have the same stamp, files of another size or head have not") {
  const TemporaryFolder folder;
  folder.write("a", "GGUF metadata");
  folder.write("copy", "GGUF metadata");
  folder.write("longer", "GGUF metadata and more");
  folder.write("other", "GGUF metadatb");
  const auto stamp = [&](const char* name) { return read_model_stamp(folder.path() + "/" + name)->contents; };
  CHECK(stamp("a") == stamp("copy"));
  CHECK(stamp("a") != stamp("longer"));
  CHECK(stamp("a") != stamp("other"));
  CHECK(stamp("a").starts_with("13-"));
  CHECK(read_model_stamp(folder.path() + "/a")->written > 1'600'000'000);
}

TEST_CASE("of a large file the head is read, and its size counts") {
  const TemporaryFolder folder;
  folder.write("a", std::string(2'000'000, 'x'));
  folder.write("b", std::string(1'500'000, 'x') + std::string(500'000, 'y'));
  folder.write("c", std::string(2'000'001, 'x'));
  const auto stamp = [&](const char* name) { return read_model_stamp(folder.path() + "/" + name)->contents; };
  CHECK(stamp("a") == stamp("b"));
  CHECK(stamp("a") != stamp("c"));
}

TEST_CASE("a folder's stamp is its configuration and its weights") {
  const TemporaryFolder folder;
  const auto make = [&](const std::string& name, const std::string& config, const std::string& weights) {
    std::filesystem::create_directory(folder.path() + "/" + name);
    folder.write(name + "/config.json", config);
    folder.write(name + "/model.safetensors", weights);
    folder.write(name + "/README.md", name);  // says nothing of the model
    return read_model_stamp(folder.path() + "/" + name)->contents;
  };
  const std::string first = make("first", "{}", "1234");
  CHECK(make("second", "{}", "5678") == first);
  CHECK(make("third", "{\"a\":1}", "1234") != first);
  CHECK(make("fourth", "{}", "12345") != first);
}

TEST_CASE("what cannot be read is an error") {
  CHECK_FALSE(read_model_stamp("/nowhere/model.gguf"));
  CHECK_FALSE(read_model_stamp("/dev/null"));
}
