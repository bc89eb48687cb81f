// In real time, with steps of a millisecond: who gets which frames, and that nobody waits for ever. No time is
// asserted.

#include "tests/simulator/paced_engine.h"

#include "tests/support/catch.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace rooflined::simulator {
namespace {

EngineOptions millisecond_steps() {
  EngineOptions options;
  options.geometry.dense_bytes = 1e6;
  options.bandwidth = 1e9;
  return options;
}

Response response_of(std::uint64_t id, std::uint64_t output_tokens, bool stream = true) {
  Response response;
  response.request = {Route::kCompletions, stream, false, 1, output_tokens};
  response.id = id;
  return response;
}

TEST_CASE("every sequence gets its frames, at the same time as others") {
  const auto dialect = make_dialect("openai");
  PacedEngine engine(millisecond_steps(), *dialect);
  std::atomic<int> writes = 0;
  std::atomic<int> done = 0;
  std::vector<std::thread> clients;
  for (std::uint64_t id = 1; id <= 8; ++id) {
    clients.emplace_back([&, id] {
      Response response = response_of(id, 10, id % 2 == 0);
      const ServeOutcome outcome = engine.serve(response, [&](std::string_view) {
        ++writes;
        return true;
      });
      if (outcome == ServeOutcome::kDone && response.generated == 10) ++done;
    });
  }
  for (std::thread& client : clients) client.join();
  CHECK(done == 8);
  CHECK(writes == 4 * 11);  // ten tokens and the end of each streamed one
  const Truth truth = engine.report().truth;
  CHECK(truth.output_tokens == 80);
  CHECK(truth.sequences_finished == 8);
}

TEST_CASE("a failed write frees the place") {
  const auto dialect = make_dialect("openai");
  EngineOptions options = millisecond_steps();
  options.batch_max = 1;
  PacedEngine engine(options, *dialect);
  Response lost = response_of(1, 100000);
  int writes = 0;
  CHECK(engine.serve(lost, [&](std::string_view) { return ++writes < 3; }) == ServeOutcome::kLost);
  CHECK(writes == 3);
  Response next = response_of(2, 2);
  CHECK(engine.serve(next, [](std::string_view) { return true; }) == ServeOutcome::kDone);
  CHECK(engine.report().truth.sequences_cancelled == 1);
}

TEST_CASE("too many waiting are refused") {
  const auto dialect = make_dialect("openai");
  EngineOptions options = millisecond_steps();
  options.sequences_waiting_max = 0;
  PacedEngine engine(options, *dialect);
  Response response = response_of(1, 1);
  CHECK(engine.serve(response, [](std::string_view) { return true; }) == ServeOutcome::kRefused);
}

TEST_CASE("stop ends what runs and refuses what comes") {
  const auto dialect = make_dialect("openai");
  PacedEngine engine(millisecond_steps(), *dialect);
  Response response = response_of(1, 100000);
  std::atomic<bool> begun = false;
  std::thread client([&] {
    const ServeOutcome outcome = engine.serve(response, [&](std::string_view) {
      begun = true;
      begun.notify_all();
      return true;
    });
    CHECK(outcome == ServeOutcome::kStopped);
  });
  begun.wait(false);
  engine.stop();
  client.join();
  Response late = response_of(2, 1);
  CHECK(engine.serve(late, [](std::string_view) { return true; }) == ServeOutcome::kStopped);
}

}  // namespace
}  // namespace rooflined::simulator
