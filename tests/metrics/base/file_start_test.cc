#include "metrics/base/file_start.h"

#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

#include <fstream>

using rooflined::read_file_start;

TEST_CASE("of a file no more is read than was asked for") {
  const rooflined::TemporaryFolder folder;
  const std::string path = folder.path() + "/file";
  const std::string content(40'000, 'x');
  std::ofstream(path) << content;
  for (const std::size_t bound : {std::size_t{0}, std::size_t{1}, std::size_t{16'384}, std::size_t{39'999}}) {
    CHECK(read_file_start(path, bound) == content.substr(0, bound));
  }
  CHECK(read_file_start(path, 40'000) == content);
  CHECK(read_file_start(path, 1'000'000) == content);
}

TEST_CASE("a file that tells no length is read, and one that is not there is empty") {
  CHECK(read_file_start("/proc/self/cmdline", 4096).size() > 1);
  CHECK(read_file_start("/proc/self/nothing", 4096).empty());
  CHECK(read_file_start("/proc", 4096).empty());
}
