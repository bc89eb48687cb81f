// An inference engine reduced to its arithmetic: continuous batching under a bandwidth roofline.
//
//   in:   sequences (prompt and output length), and the request to plan the next step
//   out:  how long that step takes, and which sequences bear a token at its end
//
// A step takes (W(B) + Σ KV(c)) / (bandwidth × efficiency) + prefill of the newly admitted + overhead (design.md §7). A
// sequence that is prefilled in a step is not in that step's B or Σ KV: it bears its first token at the step's end and
// is in decode from the next step on. The engine keeps its own truth, which a daemon that watches the wire is held
// against.
//
// No clock and no I/O: whoever drives it (a paced server, a test, a capture writer) decides what the seconds mean.
// Bounds: sequences_waiting_max. Thread rule: one thread.

#pragma once

#include "metrics/geometry.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

namespace rooflined::simulator {

enum class Routing : std::uint8_t {
  kExpected,  // the expected number of distinct experts: the very formula of the daemon
  kRandom,    // experts drawn uniformly for each token and layer
};

struct EngineOptions {
  Geometry geometry;
  BytesPerSecond bandwidth = 0;
  double efficiency = 1;                 // share of the bandwidth that a decode pass reaches, in (0, 1]
  std::size_t batch_max = 256;           // sequences in prefill or decode at a time
  double prefill_tokens_per_second = 0;  // 0: prefill is free
  double overhead_seconds = 0;           // of each step
  Routing routing = Routing::kExpected;
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

// Sums since the start. Decode only, as in the daemon's books: a step without a sequence in decode adds no busy time.
struct Truth {
  std::uint64_t decode_passes = 0;
  std::uint64_t prefill_steps = 0;
  double dense_bytes = 0;
  double expert_bytes = 0;
  double kv_bytes = 0;
  double busy_seconds = 0;           // steps with at least one sequence in decode
  double busy_prefill_seconds = 0;   // the part of busy_seconds spent on prefill
  double busy_overhead_seconds = 0;  // the part of busy_seconds spent on overhead
  double sequence_seconds = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t output_tokens = 0;
  std::uint64_t decode_tokens = 0;
  double context_tokens = 0;  // Σ context over decode tokens
  std::uint64_t sequences_finished = 0;
  std::uint64_t sequences_cancelled = 0;

  double bytes() const { return dense_bytes + expert_bytes + kv_bytes; }
};

class Engine {
 public:
  // Requires: bandwidth > 0, efficiency in (0, 1], batch_max ≥ 1, prefill rate and overhead ≥ 0, acceptance in [0, 1].
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
    bool prefilling = true;
  };

  double decode_seconds();
  double expert_bytes(std::size_t batch);
  double drawn_expert_bytes(std::size_t batch);
  std::size_t draw_distinct(const ExpertGroup& group, std::size_t batch);
  std::uint64_t admit();
  std::uint64_t tokens_of_pass(Running& sequence);
  void bear(Running& sequence, double seconds);

  EngineOptions options_;
  std::deque<Running> waiting_;
  std::vector<Running> running_;  // in decode first, this step's newcomers last
  Step step_;
  Truth truth_;
  std::mt19937_64 random_;
  std::vector<std::uint8_t> expert_read_;    // by any token of the layer in this step
  std::vector<std::uint64_t> expert_drawn_;  // number of the draw in which the token took this expert
  std::uint64_t draw_ = 0;
};

}  // namespace rooflined::simulator
