#include "tests/simulator/frame_maker.h"

#include "tests/simulator/answer_reader.h"
#include "tests/support/catch.h"

#include <numeric>
#include <string>
#include <vector>

namespace rooflined::simulator {
namespace {

Response response_of(std::uint64_t output_tokens) {
  Response response;
  response.request = {Route::kCompletions, true, true, 5, output_tokens};
  return response;
}

// The writes of one response whose passes bear so many tokens each.
std::vector<std::vector<std::string>> writes_of(FrameMaker& maker, const std::vector<std::uint64_t>& passes) {
  Response response = response_of(std::accumulate(passes.begin(), passes.end(), std::uint64_t{0}));
  StreamState state;
  std::vector<std::vector<std::string>> writes;
  std::uint64_t generated = 0;
  for (const std::uint64_t tokens : passes) {
    generated += tokens;
    writes.push_back(
        maker.take({1, generated, tokens, 0, 0, generated == response.request.output_tokens, 0, 0}, response, state));
  }
  return writes;
}

std::vector<std::size_t> sizes(const std::vector<std::vector<std::string>>& writes) {
  std::vector<std::size_t> counts;
  for (const auto& of_pass : writes) counts.push_back(of_pass.size());
  return counts;
}

TEST_CASE("tokens of one pass come in frames of their own, or in one") {
  const auto bursts = make_dialect("llama.cpp");
  const auto frames = make_dialect("vllm");
  FrameMaker one_each(*bursts, {}, 1);
  FrameMaker together(*frames, {}, 1);
  CHECK(sizes(writes_of(one_each, {1, 3, 2})) == std::vector<std::size_t>{1, 3, 3});
  CHECK(sizes(writes_of(together, {1, 3, 2})) == std::vector<std::size_t>{1, 1, 2});
}

TEST_CASE("with a stream interval the first token leaves alone, then so many at a time, the rest at the end") {
  const auto dialect = make_dialect("openai");
  FrameOptions options;
  options.stream_interval = 3;
  FrameMaker maker(*dialect, options, 1);
  const auto writes = writes_of(maker, {1, 1, 1, 1, 1, 1});
  CHECK(sizes(writes) == std::vector<std::size_t>{1, 0, 0, 1, 0, 2});
}

TEST_CASE("a merged frame leaves in the next one's segment, and none is lost") {
  const auto dialect = make_dialect("openai");
  FrameOptions options;
  options.merge = 0.5;
  FrameMaker maker(*dialect, options, 1);
  const auto writes = writes_of(maker, std::vector<std::uint64_t>(100, 1));
  AnswerReader answer(true);
  std::size_t segments = 0;
  for (const auto& of_pass : writes) {
    for (const std::string& write : of_pass) {
      answer.read(write);
      ++segments;
    }
  }
  CHECK(answer.tokens() == 100);
  CHECK(answer.finish());
  CHECK(segments > 20);
  CHECK(segments < 80);
}

}  // namespace
}  // namespace rooflined::simulator
