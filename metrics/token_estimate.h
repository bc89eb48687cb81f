// How many tokens text is, where nothing on the wire says so: learned from what did say so, per engine and model.
//
// Two guesses at an answer's tokens: its frames (exact where each frame carries one token) and its text. Whichever was
// closer to the totals that were reported is in use. Constant memory. Not thread-safe.

#pragma once

#include <cstdint>
#include <optional>

namespace rooflined {

// Characters of text per token.
class CharacterRatio {
 public:
  struct State {
    // English text in the vocabularies of 2023 to 2026 has about four characters a token.
    double characters_per_token = 4.0;
    std::uint64_t learned = 0;  // texts
  };

  CharacterRatio() = default;
  explicit CharacterRatio(const State& state) : state_(state) {}
  const State& state() const { return state_; }

  // `characters` of text were `tokens` > 0: the mean of the first sixteen, then the last thirty or so decide.
  void learn(double characters, double tokens);
  double tokens(double characters) const { return characters / state_.characters_per_token; }
  std::uint64_t learned() const { return state_.learned; }

 private:
  State state_;
};

class AnswerEstimate {
 public:
  struct State {
    CharacterRatio::State ratio;
    double error_of_frames = 0;
    double error_of_text = 0;
    std::uint64_t learned = 0;  // totals
  };

  AnswerEstimate() = default;
  explicit AnswerEstimate(const State& state);
  State state() const { return {ratio_.state(), error_of_frames_, error_of_text_, learned_}; }
  std::uint64_t learned() const { return learned_; }

  // A sequence of which `frames` and `characters` were seen turned out to have `tokens` > 0.
  void learn(double frames, double characters, double tokens);
  // True where the text tells more than the frames; `frames` and `characters` of the sequence so far.
  bool by_text(double frames, double characters) const;
  double tokens_of_text(double characters) const { return ratio_.tokens(characters); }
  // Mean relative error of the guess in use, against the totals of late; empty before the first.
  std::optional<double> error() const;

 private:
  CharacterRatio ratio_;
  double error_of_frames_ = 0;
  double error_of_text_ = 0;
  std::uint64_t learned_ = 0;
};

// What an engine with its model has taught: kept across a restart of the daemon.
struct LearnedTokens {
  CharacterRatio::State prompts;
  AnswerEstimate::State answers;

  bool empty() const { return prompts.learned == 0 && answers.learned == 0; }
};

}  // namespace rooflined
