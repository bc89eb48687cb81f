// What is remembered of the ceiling: of this machine only, whole or not at all, whoever else writes and whatever
// happens.

#include "daemon/ceiling_state.h"

#include "metrics/base/log.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_folder.h"

#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

using namespace rooflined;
using namespace rooflined::daemon;
using ceiling::ConfirmedResult;

namespace {

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
  for (const double rate : rates) state.history.restore(result(rate));
  return state;
}

Status save(const std::string& directory, const CeilingState& state) {
  return update_ceiling_state(directory, state, [&](CeilingState& held) { held = state; }).saved;
}

ceiling::Measurement measurement(double gigabytes_per_second) {
  ceiling::Measurement measured;
  const double rate = gigabytes_per_second * 1e9;
  measured.verdict = ceiling::Verdict::kConfirmed;
  measured.winner = ceiling::MeasuredCell{"dot_prefetch", 4, rate, 0.9 * rate, true, {rate, 0.9 * rate}};
  measured.working_set = kGiB;
  measured.cells = {{"linear", 1, rate / 2, rate / 3, false, {rate / 2, rate / 3}}, *measured.winner};
  return measured;
}

}  // namespace

TEST_CASE("a saved state comes back") {
  const TemporaryFolder folder;
  const CeilingState state = state_of({30, 32, 31});
  REQUIRE(save(folder.path(), state).ok());
  REQUIRE(save(folder.path(), state).ok());  // over the old one
  const CeilingState loaded = load_ceiling_state(folder.path(), kMachine);
  REQUIRE(loaded.history.results().size() == 3);
  CHECK(loaded.history.adopted()->ceiling == 31e9);
  CHECK(loaded.history.adopted()->median == Approx(27.9e9));
  CHECK(loaded.history.adopted()->kernel == "linear");
  CHECK(loaded.history.adopted()->threads == 2);
  CHECK(loaded.history.adopted()->measured_at.ns() == 1'700'000'000'000'000'000);
  CHECK(loaded.history.adopted()->median_to_best() == Approx(0.9));
  struct stat status {};
  REQUIRE(::stat(ceiling_state_path(folder.path()).c_str(), &status) == 0);
  CHECK((status.st_mode & 0222) == 0200);
  CHECK_FALSE(std::filesystem::exists(ceiling_state_path(folder.path()) + ".new"));
}

TEST_CASE("another machine, or nothing there, starts afresh") {
  const TemporaryFolder folder;
  CHECK(load_ceiling_state(folder.path(), kMachine).history.empty());
  CHECK(load_ceiling_state(folder.path() + "/none", kMachine).history.empty());
  REQUIRE(save(folder.path(), state_of({30})).ok());
  auto other = kMachine;
  other.memory_bytes /= 2;
  const CeilingState fresh = load_ceiling_state(folder.path(), other);
  CHECK(fresh.history.empty());
  CHECK(fresh.identity.memory_bytes == other.memory_bytes);
}

TEST_CASE("a broken file starts afresh, whatever is wrong with it") {
  // A line for each of the files below would hide a real fault in the output.
  log::set_sink([](log::Level, std::string_view) {});
  const TemporaryFolder folder;
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
                                    std::string(2000000, ' '),
                                    with("\"version\": 1", "\"version\": 2"),
                                    with("\"version\": 1", "\"version\": \"1\""),
                                    with("\"results\"", "\"result\""),
                                    with("\"threads\": 2", "\"threads\": {}"),
                                    with("\"cpu_model\"", "\"model\"")};
  for (std::size_t end = 0; end + 2 < good.size(); end += 7) texts.push_back(good.substr(0, end));
  for (const std::string& text : texts) {
    folder.write("ceiling.json", text);
    INFO(text.substr(0, 80));
    CHECK(load_ceiling_state(folder.path(), kMachine).history.empty());
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
  CHECK(parsed->history.results().size() == ceiling::kResultsKept);
}

TEST_CASE("where nothing can be saved the old file stays, and the fault is named") {
  const TemporaryFolder folder;
  REQUIRE(save(folder.path(), state_of({30})).ok());
  const std::string before = folder.read("ceiling.json");
  std::filesystem::create_directory(ceiling_state_path(folder.path()) + ".new");
  const Status status = save(folder.path(), state_of({31}));
  REQUIRE_FALSE(status.ok());
  CHECK(status.error().code == ErrorCode::kIo);
  CHECK(folder.read("ceiling.json") == before);
  CHECK_FALSE(save(folder.path() + "/none", state_of({31})).ok());
}

TEST_CASE("what a killed program left in place of the new file is not followed, and not in the way") {
  const TemporaryFolder folder;
  folder.write("victim", "kept");
  std::filesystem::create_symlink(folder.path() + "/victim", ceiling_state_path(folder.path()) + ".new");
  CHECK(save(folder.path(), state_of({30})).ok());
  CHECK(folder.read("victim") == "kept");
  CHECK(load_ceiling_state(folder.path(), kMachine).history.results().size() == 1);
}

TEST_CASE("a file of an earlier build loads") {
  const TemporaryFolder folder;
  std::filesystem::copy(ROOFLINED_TEST_DATA "/ceiling_version_1.json", ceiling_state_path(folder.path()));
  const CeilingState state = load_ceiling_state(folder.path(), {"Some CPU", "6.1.0", 64 * kGiB, 32 * kMiB});
  REQUIRE(state.history.results().size() == 3);
  CHECK(state.history.adopted()->ceiling == 31e9);
  CHECK(state.history.suspects().empty());
  CHECK_FALSE(state.last);
}

TEST_CASE("suspects, cache probes, memory nodes and the last measurement with every sample come back") {
  const TemporaryFolder folder;
  CeilingState state = state_of({30, 31});
  state.take(measurement(80), WallTime::from_ns(1'700'000'001'000'000'000));
  CHECK(state.take_cache_probe(300 * kMiB, measurement(60), WallTime::from_ns(7)) == ceiling::Outcome::kAdopted);
  ConfirmedResult with_nodes = result(32);
  with_nodes.nodes = {{0, 16e9, 15e9, true}, {1, 17e9, 15e9, true}};
  state.history.restore(with_nodes);
  REQUIRE(save(folder.path(), state).ok());
  const CeilingState loaded = load_ceiling_state(folder.path(), kMachine);
  REQUIRE(loaded.history.suspects().size() == 1);
  CHECK(loaded.history.suspects()[0].ceiling == 80e9);
  CHECK(loaded.history.newest_is_suspect());
  REQUIRE(loaded.history.nodes().size() == 2);
  CHECK(loaded.history.nodes()[1].best == 17e9);
  REQUIRE(loaded.cache_probes.find(300 * kMiB) != nullptr);
  CHECK(loaded.cache_probes.find(300 * kMiB)->ceiling == 60e9);
  REQUIRE(loaded.last);
  CHECK(loaded.last->measured_at.ns() == 1'700'000'001'000'000'000);
  REQUIRE(loaded.last->measurement.cells.size() == 2);
  CHECK(loaded.last->measurement.cells[0].samples == std::vector<double>{40e9, 80e9 / 3});
  CHECK(ceiling_state_text(loaded) == ceiling_state_text(state));
}

TEST_CASE("what was observed comes back, and what cannot be is left out") {
  const TemporaryFolder folder;
  CeilingState state = state_of({});
  state.observed = {std::chrono::hours(7), 21e9};
  REQUIRE(save(folder.path(), state).ok());
  const auto observed = load_ceiling_state(folder.path(), kMachine).observed;
  REQUIRE(observed);
  CHECK(observed->without_idle == Duration(std::chrono::hours(7)));
  CHECK(observed->highest == 21e9);
  const std::string text = ceiling_state_text(state);
  for (const auto& [from, to] : std::vector<std::pair<std::string, std::string>>{
           {"25200.0", "-1"}, {"25200.0", "1e300"}, {"21000000000.0", "0"}, {"21000000000.0", "1e300"}}) {
    std::string impossible = text;
    impossible.replace(impossible.find(from), from.size(), to);
    const auto parsed = parse_ceiling_state(impossible);
    REQUIRE(parsed.ok());
    CHECK_FALSE(parsed->observed);
  }
}

TEST_CASE("a last measurement that cannot be read costs only itself") {
  CeilingState state = state_of({30});
  state.take(measurement(31), WallTime::from_ns(5));
  std::string text = ceiling_state_text(state);
  text.replace(text.find("\"verdict\""), 9, "\"virdict\"");
  const auto parsed = parse_ceiling_state(text);
  REQUIRE(parsed.ok());
  CHECK(parsed->history.results().size() == 2);
  CHECK_FALSE(parsed->last);
}

TEST_CASE("what a measurement means") {
  CeilingState state = state_of({30, 30, 30});
  CHECK(state.take(measurement(31), WallTime::from_ns(5)) == ceiling::Outcome::kAdopted);
  CHECK(state.take(measurement(14), WallTime::from_ns(6)) == ceiling::Outcome::kSuspect);
  ceiling::Measurement unstable = measurement(31);
  unstable.verdict = ceiling::Verdict::kContended;
  CHECK(state.take(unstable, WallTime::from_ns(7)) == ceiling::Outcome::kUnstable);
  CHECK(state.last->measured_at.ns() == 7);
  CHECK(state.history.results().size() == 4);
  CHECK(state.take_cache_probe(kMiB, unstable, WallTime::from_ns(8)) == ceiling::Outcome::kUnstable);
  CHECK(state.cache_probes.all().empty());
  // What fits into the caches is no ceiling, and is what a small model is compared with.
  ceiling::Measurement resident = measurement(60);
  resident.verdict = ceiling::Verdict::kCacheResident;
  CHECK(state.take(resident, WallTime::from_ns(9)) == ceiling::Outcome::kUnstable);
  CHECK(state.take_cache_probe(kMiB, resident, WallTime::from_ns(9)) == ceiling::Outcome::kAdopted);
}

TEST_CASE("the age is of the newest result; a future one has none that could be told") {
  const CeilingState state = state_of({30});
  const WallTime then = state.history.adopted()->measured_at;
  CHECK(state.age(then + std::chrono::hours(2)) == Duration(std::chrono::hours(2)));
  CHECK(state.age(then - std::chrono::minutes(5)) == Duration(0));
  CHECK(*state.age(then - std::chrono::hours(2)) > std::chrono::hours(24 * 300));
  CHECK_FALSE(CeilingState().age(then));
}

TEST_CASE("a confirmed measurement becomes a result") {
  ceiling::Measurement measured = measurement(20);
  measured.cache_inflated = true;
  measured.nodes = {{0, 9e9, 8e9, true}, {1, 9e9, 5e9, false}};
  const ConfirmedResult confirmed = confirmed_result(measured, WallTime::from_ns(5));
  CHECK(confirmed.ceiling == 20e9);
  CHECK(confirmed.median == 18e9);
  CHECK(confirmed.kernel == "dot_prefetch");
  CHECK(confirmed.threads == 4);
  CHECK(confirmed.cache_inflated);
  CHECK(confirmed.nodes.size() == 1);  // of an unstable node nothing is known
}
