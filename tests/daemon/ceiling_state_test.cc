// What is remembered of the ceiling: second highest of eight, of this machine only, whole or not at all.

#include "daemon/ceiling_state.h"

#include "metrics/base/log.h"
#include "tests/support/catch.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

using namespace rooflined;
using namespace rooflined::daemon;

namespace {

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "rooflined-state-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string file() const { return path_ + "/ceiling.json"; }
  void write(const std::string& text) const { std::ofstream(file()) << text; }
  std::string read() const {
    std::stringstream text;
    text << std::ifstream(file()).rdbuf();
    return text.str();
  }

 private:
  std::string path_;
};

const ceiling::MachineIdentity kMachine = {"Some CPU", "6.1.0", 64 * kGiB, 32 * kMiB};

ConfirmedResult result(double gigabytes_per_second) {
  ConfirmedResult result;
  result.measured_at = WallTime::from_ns(1'700'000'000'000'000'000);
  result.ceiling = gigabytes_per_second * 1e9;
  result.median = 0.9 * result.ceiling;
  result.kernel = "linear";
  result.threads = 2;
  result.working_set = 2 * kGiB;
  return result;
}

CeilingState state_of(const std::vector<double>& rates) {
  CeilingState state;
  state.identity = kMachine;
  for (const double rate : rates) state.add(result(rate));
  return state;
}

}  // namespace

TEST_CASE("adopted is the second highest of the last eight") {
  struct Row {
    std::vector<double> rates;
    double adopted;
  };
  const std::vector<Row> rows = {
      {{30}, 30},         {{30, 32}, 30},
      {{32, 30}, 30},     {{30, 32, 31}, 31},
      {{32, 32, 10}, 32}, {{90, 90, 30, 31, 32, 33, 34, 35, 36, 37}, 36},  // the two oldest are forgotten
  };
  for (const Row& row : rows) {
    const CeilingState state = state_of(row.rates);
    REQUIRE(state.adopted() != nullptr);
    CHECK(state.adopted()->ceiling == row.adopted * 1e9);
    CHECK(state.results.size() <= kResultsKept);
  }
  CHECK(CeilingState().adopted() == nullptr);
}

TEST_CASE("a saved state comes back") {
  const Folder folder;
  const CeilingState state = state_of({30, 32, 31});
  REQUIRE(save_ceiling_state(folder.path(), state).ok());
  REQUIRE(save_ceiling_state(folder.path(), state).ok());  // over the old one
  const CeilingState loaded = load_ceiling_state(folder.path(), kMachine);
  REQUIRE(loaded.results.size() == 3);
  CHECK(loaded.adopted()->ceiling == 31e9);
  CHECK(loaded.adopted()->median == Approx(27.9e9));
  CHECK(loaded.adopted()->kernel == "linear");
  CHECK(loaded.adopted()->threads == 2);
  CHECK(loaded.adopted()->measured_at.ns() == 1'700'000'000'000'000'000);
  CHECK(loaded.adopted()->median_to_best() == Approx(0.9));
  struct stat status {};
  REQUIRE(::stat(folder.file().c_str(), &status) == 0);
  CHECK((status.st_mode & 0222) == 0200);
  CHECK_FALSE(std::filesystem::exists(folder.file() + ".new"));
}

TEST_CASE("another machine, or nothing there, starts afresh") {
  const Folder folder;
  CHECK(load_ceiling_state(folder.path(), kMachine).results.empty());
  CHECK(load_ceiling_state(folder.path() + "/none", kMachine).results.empty());
  REQUIRE(save_ceiling_state(folder.path(), state_of({30})).ok());
  auto other = kMachine;
  other.memory_bytes /= 2;
  const CeilingState fresh = load_ceiling_state(folder.path(), other);
  CHECK(fresh.results.empty());
  CHECK(fresh.identity.memory_bytes == other.memory_bytes);
}

TEST_CASE("a broken file starts afresh, whatever is wrong with it") {
  // A line for each of the files below would hide a real fault in the output.
  log::set_sink([](log::Level, std::string_view) {});
  const Folder folder;
  const std::string good = ceiling_state_text(state_of({30, 31}));
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.rfind(from), from.size(), to);  // "adopted" comes first, and is not read
    return text;
  };
  std::vector<std::string> texts = {"",
                                    "\0\0\0\0",
                                    "[]",
                                    "null",
                                    std::string(60000, '['),
                                    std::string(1000000, ' '),
                                    with("\"version\": 1", "\"version\": 2"),
                                    with("\"version\": 1", "\"version\": \"1\""),
                                    with("\"results\"", "\"result\""),
                                    with("\"threads\": 2", "\"threads\": {}"),
                                    with("\"cpu_model\"", "\"model\"")};
  for (std::size_t end = 0; end + 2 < good.size(); end += 7) texts.push_back(good.substr(0, end));
  for (const std::string& text : texts) {
    folder.write(text);
    INFO(text.substr(0, 80));
    CHECK(load_ceiling_state(folder.path(), kMachine).results.empty());
  }
  // Figures that cannot be.
  for (const char* const value : {"-1", "0", "1e999", "null", "\"x\""}) {
    std::string text = good;
    const std::string key = "\"ceiling_bytes_per_second\": ";
    const std::size_t at = text.find(key, text.find("results")) + key.size();
    text.replace(at, text.find(',', at) - at, value);
    INFO(value);
    CHECK_FALSE(parse_ceiling_state(text).ok());
  }
  REQUIRE(parse_ceiling_state(good).ok());
}

TEST_CASE("more results than are kept are cut to the last eight") {
  const CeilingState state = state_of({1, 2, 3, 4, 5, 6, 7, 8});
  std::string text = ceiling_state_text(state);
  const std::size_t list = text.find("\"results\": [") + 12;
  const std::size_t first_end = text.find('}', list) + 1;
  const std::string first = text.substr(list, first_end - list);
  text.insert(list, first + "," + first + ",");
  const auto parsed = parse_ceiling_state(text);
  REQUIRE(parsed.ok());
  CHECK(parsed->results.size() == kResultsKept);
}

TEST_CASE("where nothing can be saved the old file stays, and the fault is named") {
  const Folder folder;
  REQUIRE(save_ceiling_state(folder.path(), state_of({30})).ok());
  const std::string before = folder.read();
  std::filesystem::create_directory(folder.file() + ".new");
  const Status status = save_ceiling_state(folder.path(), state_of({31}));
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code == ErrorCode::kIo);
  CHECK(folder.read() == before);
  CHECK_FALSE(save_ceiling_state(folder.path() + "/none", state_of({31})).ok());
}

TEST_CASE("a link in place of the new file is not followed") {
  const Folder folder;
  const std::string target = folder.path() + "/victim";
  std::ofstream(target) << "kept";
  std::filesystem::create_symlink(target, folder.file() + ".new");
  CHECK_FALSE(save_ceiling_state(folder.path(), state_of({30})).ok());
  std::stringstream text;
  text << std::ifstream(target).rdbuf();
  CHECK(text.str() == "kept");
}

TEST_CASE("a confirmed measurement becomes a result") {
  ceiling::Measurement measurement;
  measurement.verdict = ceiling::Verdict::kConfirmed;
  measurement.winner = ceiling::MeasuredCell{"dot_prefetch", 4, 20e9, 18e9, true, {}};
  measurement.working_set = kGiB;
  measurement.cache_inflated = true;
  const ConfirmedResult confirmed = confirmed_result(measurement, WallTime::from_ns(5));
  CHECK(confirmed.ceiling == 20e9);
  CHECK(confirmed.median == 18e9);
  CHECK(confirmed.kernel == "dot_prefetch");
  CHECK(confirmed.threads == 4);
  CHECK(confirmed.cache_inflated);
}
