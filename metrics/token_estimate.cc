#include "metrics/token_estimate.h"

#include <algorithm>
#include <cmath>

namespace rooflined {
namespace {

// Weight of a new observation once there are sixteen: the last thirty or so decide.
constexpr double kRateMin = 1.0 / 16;
// Before any total is known: no token of ordinary text is that long, so a stream whose frames are carries several in
// each.
constexpr double kCharactersPerFrameMax = 12;

double rate(std::uint64_t observations) {
  return std::max(kRateMin, 1.0 / static_cast<double>(observations));
}

}  // namespace

void CharacterRatio::learn(double characters, double tokens) {
  ++state_.learned;
  state_.characters_per_token += rate(state_.learned) * (characters / tokens - state_.characters_per_token);
}

AnswerEstimate::AnswerEstimate(const State& state)
    : ratio_(state.ratio),
      error_of_frames_(state.error_of_frames),
      error_of_text_(state.error_of_text),
      learned_(state.learned) {}

void AnswerEstimate::learn(double frames, double characters, double tokens) {
  if (tokens <= 0 || frames <= 0) return;
  ++learned_;
  error_of_frames_ += rate(learned_) * (std::fabs(frames / tokens - 1) - error_of_frames_);
  if (characters <= 0) return;
  const double text = ratio_.tokens(characters);
  ratio_.learn(characters, tokens);
  // The guess of the very first one was not learned, and says nothing.
  if (ratio_.learned() > 1) {
    error_of_text_ += rate(ratio_.learned() - 1) * (std::fabs(text / tokens - 1) - error_of_text_);
  }
}

bool AnswerEstimate::by_text(double frames, double characters) const {
  if (characters <= 0) return false;
  if (ratio_.learned() < 2) return characters > kCharactersPerFrameMax * frames;
  return error_of_text_ < error_of_frames_;
}

std::optional<double> AnswerEstimate::error() const {
  if (learned_ == 0) return std::nullopt;
  return ratio_.learned() < 2 ? error_of_frames_ : std::min(error_of_text_, error_of_frames_);
}

}  // namespace rooflined
