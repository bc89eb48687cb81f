#include "tests/simulator/frame_maker.h"

#include "metrics/base/result.h"

#include <utility>

namespace rooflined::simulator {

FrameMaker::FrameMaker(const Dialect& dialect, const FrameOptions& options, std::uint64_t seed)
    : dialect_(dialect), options_(options), random_(seed) {
  ROOFLINED_CHECK(options.stream_interval >= 1 && options.merge >= 0 && options.merge <= 1);
}

std::vector<std::string> FrameMaker::take(const Emission& emission, Response& response, StreamState& state) {
  response.prefill_seconds = emission.prefill_seconds;
  response.decode_seconds = emission.decode_seconds;
  if (options_.tell_drafts) {
    response.drafted = emission.drafted;
    response.accepted = emission.accepted;
  }
  std::vector<std::string> writes;
  if (response.request.stream) {
    const bool due =
        emission.finished || state.sent == 0 || emission.generated - state.sent >= options_.stream_interval;
    if (due) {
      response.finished = emission.finished;
      writes = frames(emission.generated, response, state);
    }
    if (emission.finished) writes.push_back(dialect_.end_write(response));
  }
  response.generated = emission.generated;
  if (writes.empty()) return writes;
  if (!emission.finished && options_.merge > 0 && std::bernoulli_distribution(options_.merge)(random_)) {
    for (const std::string& write : writes) state.held += write;
    return {};
  }
  writes.front() = std::exchange(state.held, {}) + writes.front();
  return writes;
}

std::vector<std::string> FrameMaker::frames(std::uint64_t generated, Response& response, StreamState& state) const {
  const std::uint64_t fresh = generated - std::exchange(state.sent, generated);
  if (options_.stream_interval > 1 || dialect_.pass_is_frame()) {
    response.generated = generated;
    return dialect_.token_writes(response, fresh);
  }
  std::vector<std::string> writes;
  const bool finished = response.finished;
  for (response.generated = generated - fresh + 1; response.generated <= generated; ++response.generated) {
    response.finished = finished && response.generated == generated;
    for (std::string& write : dialect_.token_writes(response, 1)) writes.push_back(std::move(write));
  }
  response.generated = generated;
  return writes;
}

}  // namespace rooflined::simulator
