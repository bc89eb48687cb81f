// A LedgerSink that keeps and sums what it is told.

#pragma once

#include "metrics/decode_ledger.h"

#include <map>
#include <vector>

namespace rooflined::test {

inline LineTime at_ms(double ms) {
  return LineTime::from_ns(static_cast<std::int64_t>(ms * 1e6));
}

class LedgerLog final : public LedgerSink {
 public:
  double output_tokens = 0;
  double decode_tokens = 0;
  double passes = 0;
  double busy_seconds = 0;
  double sequence_seconds = 0;
  double overlap_seconds = 0;
  double bytes = 0;
  double kv_bytes = 0;
  double context = 0;
  std::map<TokenSource, double> sources;
  std::map<DecodeExit, int> exits;
  int late_inputs = 0;
  std::vector<IntervalRecord> intervals;
  std::vector<IntervalRecord> corrections;
  std::vector<ClosedSequence> closed;

  void on_first_tokens(LineTime, double tokens) override { output_tokens += tokens; }
  void on_interval(const IntervalRecord& record) override {
    intervals.push_back(record);
    add(record);
  }
  void on_correction(const IntervalRecord& record) override {
    corrections.push_back(record);
    add(record);
  }
  void on_source(TokenSource source, double tokens, LineTime, LineTime) override { sources[source] += tokens; }
  void on_closed(const ClosedSequence& sequence) override { closed.push_back(sequence); }
  void on_exit(DecodeExit exit) override { ++exits[exit]; }
  void on_late_input() override { ++late_inputs; }

 private:
  void add(const IntervalRecord& record) {
    output_tokens += record.tokens;
    decode_tokens += record.tokens;
    passes += record.passes;
    busy_seconds += record.busy_seconds;
    sequence_seconds += record.sequence_seconds;
    overlap_seconds += record.overlap_seconds;
    bytes += record.bytes();
    kv_bytes += record.kv_bytes;
    context += record.context_sum;
  }
};

}  // namespace rooflined::test
