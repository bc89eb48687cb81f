// An inference engine reduced to its arithmetic: continuous batching under a bandwidth roofline.
//
//   in:   sequences (prompt and output length), and the request to plan the next step
//   out:  how long that step takes, and which sequences bear a token at its end
//
// A step takes (W(B) + Σ KV(c)) / (bandwidth × efficiency) + prefill of the newly admitted + overhead (design.md §7). A
// sequence that is prefilled in a step is not in that step's B or Σ KV: it bears its first token at the end of the step
// that completes its prompt and is in decode from the next step on. The engine keeps its own truth, which a daemon that
// watches the wire is held against.
//
// No clock and no I/O: whoever drives it (a paced server, a test, a capture writer) decides what the seconds mean.
// Bounds: sequences_waiting_max. Thread rule: one thread.

#pragma once

#include "metrics/geometry.h"
#include "tests/simulator/expert_router.h"
#include "tests/simulator/step_jitter.h"
#include "tests/simulator/truth.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

namespace rooflined::simulator {

struct EngineOptions {
  Geometry geometry;
  BytesPerSecond bandwidth = 0;
  double efficiency = 1;                 // share of the bandwidth that a decode pass reaches, in (0, 1]
  std::size_t batch_max = 256;           // sequences in prefill or decode at a time
  double prefill_tokens_per_second = 0;  // 0: prefill is free
  std::uint64_t prefill_chunk = 0;       // prompt tokens of one step at most; 0: whole prompts
  double overhead_seconds = 0;           // of each step
  Routing routing = Routing::kExpected;
  double routing_skew = 1;  // of Routing::kSkewed
  JitterOptions jitter;
  double preemption = 0;  // probability of each step with several sequences in decode that one loses its place
  // Speculative decoding: a pass verifies so many drafts of each sequence, and yields those that are accepted before
  // the first one that is not, and one token more.
  std::size_t draft_tokens = 0;
  double acceptance = 0;  // of each draft, in [0, 1]
  std::uint64_t seed = 1;
  std::size_t sequences_waiting_max = 65536;
};

using SequenceId = std::uint64_t;

struct SequenceRequest {
  SequenceId id = 0;
  std::uint64_t prompt_tokens = 1;
  std::uint64_t output_tokens = 1;  // at least 1
  std::uint64_t cached_tokens = 0;  // of the prompt, less than all: no prefill is needed for them
};

// What one sequence bears at the end of a step.
struct Emission {
  SequenceId id = 0;
  std::uint64_t generated = 0;  // output tokens so far, these included
  std::uint64_t tokens = 1;     // borne by this step: more than one where drafts were accepted
  std::uint64_t drafted = 0;    // drafts of the sequence so far, and those of them that were accepted
  std::uint64_t accepted = 0;
  bool finished = false;
  double prefill_seconds = 0;  // how long its prefill step took
  double decode_seconds = 0;   // from its first token to this one
};

struct Step {
  double seconds = 0;
  std::size_t decoding = 0;  // B
  std::size_t prefilled = 0;
  std::vector<Emission> emissions;
};

class Engine {
 public:
  // Requires: bandwidth > 0, efficiency in (0, 1], batch_max ≥ 1, prefill rate and overhead ≥ 0, shares in [0, 1].
  explicit Engine(EngineOptions options);

  // False where sequences_waiting_max are waiting already.
  bool submit(const SequenceRequest& request);
  // Takes a running sequence's place away, cache and all: it waits for its turn, is prefilled again, what it generated
  // included, and goes on. Unknown ids are ignored.
  void preempt(SequenceId id);
  // Frees the sequence's place, whether it waits or runs. Unknown ids are ignored.
  void cancel(SequenceId id);

  bool idle() const noexcept { return waiting_.empty() && running_.empty(); }
  std::size_t running() const noexcept { return running_.size(); }
  std::size_t waiting() const noexcept { return waiting_.size(); }

  // Plans one step and books it. The emissions belong to its end, `seconds` later. The result is valid until the next
  // call. Requires: !idle().
  const Step& step();
  // From the next step on. Sequences and truth stay; jitter and routing begin anew.
  void reconfigure(EngineOptions options);
  // The next steps take up to twice as long, less and less, until `seconds` have passed: caches are cold.
  void warm_up(double seconds) { warm_up_left_ = warm_up_ = seconds; }
  // The last step took longer than planned (the machine was suspended, or too slow).
  void stall(double seconds);

  const Truth& truth() const noexcept { return truth_; }
  const EngineOptions& options() const noexcept { return options_; }

 private:
  struct Running {
    SequenceRequest request;
    std::uint64_t generated = 0;
    std::uint64_t drafted = 0;
    std::uint64_t accepted = 0;
    double prefill_seconds = 0;
    double decode_seconds = 0;
    std::uint64_t prefill_left = 0;
    bool prefilling = true;
  };

  void book_busy(double seconds);
  void preempt_at_random();
  double decode_seconds();
  std::uint64_t admit();
  std::uint64_t prefill(std::uint64_t tokens_max);
  double slowness(double seconds);
  std::uint64_t tokens_of_pass(Running& sequence);
  void bear(Running& sequence, double seconds);

  EngineOptions options_;
  std::deque<Running> waiting_;
  std::vector<Running> running_;  // in decode first, those in prefill last
  std::size_t decoding_ = 0;      // how many those are
  Step step_;
  Truth truth_;
  std::mt19937_64 random_;
  ExpertRouter router_;
  StepJitter jitter_;
  double warm_up_ = 0;
  double warm_up_left_ = 0;
};

}  // namespace rooflined::simulator
