// Every transcript in data/ gives the events that it names: played as captured, byte by byte, and cut once at each
// place. With pieces missing at random it must still come to an end.

#include "tests/support/transcript.h"

#include "tests/support/catch.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace rooflined::tap {
namespace {

std::vector<Transcript> all_transcripts() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(ROOFLINED_TEST_DATA)) {
    if (entry.path().extension() == ".transcript") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Transcript> transcripts;
  for (const std::string& path : paths) transcripts.push_back(read_transcript(path));
  return transcripts;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::size_t bytes_of(const Transcript& transcript) {
  std::size_t bytes = 0;
  for (const TranscriptStep& step : transcript.steps) bytes += step.bytes.size();
  return bytes;
}

template <typename Pieces>
std::string events(const Transcript& transcript, Pieces pieces) {
  ExchangeRecorder recorder;
  const HttpCounters counters = play_transcript(transcript, recorder, pieces);
  std::vector<std::string> lines = recorder.lines();
  for (const std::string& line : error_lines(counters)) lines.push_back(line);
  return joined(lines);
}

std::vector<std::size_t> whole(const TranscriptStep& step) {
  return {step.bytes.size()};
}
std::vector<std::size_t> single_bytes(const TranscriptStep& step) {
  return std::vector<std::size_t>(step.bytes.size(), 1);
}

// Of more than this, only some places are cut.
constexpr std::size_t kSmall = 8 * 1024;

}  // namespace

TEST_CASE("transcripts give their events") {
  const auto transcripts = all_transcripts();
  REQUIRE(transcripts.size() > 100);
  for (const Transcript& transcript : transcripts) {
    INFO(transcript.name);
    CHECK(events(transcript, whole) == joined(transcript.expected));
  }
}

TEST_CASE("transcripts give the same events byte by byte") {
  for (const Transcript& transcript : all_transcripts()) {
    INFO(transcript.name);
    CHECK(events(transcript, single_bytes) == joined(transcript.expected));
  }
}

TEST_CASE("transcripts give the same events cut once at every place") {
  for (const Transcript& transcript : all_transcripts()) {
    const std::size_t bytes = bytes_of(transcript);
    const std::size_t stride = bytes <= kSmall ? 1 : bytes / 16;
    const std::string expected = joined(transcript.expected);
    for (std::size_t cut = 0; cut < bytes; cut += stride) {
      std::size_t before = 0;
      const auto cut_there = [&](const TranscriptStep& step) {
        const std::size_t start = before;
        before += step.bytes.size();
        if (cut <= start || cut >= before) return std::vector<std::size_t>{step.bytes.size()};
        return std::vector<std::size_t>{cut - start, before - cut};
      };
      const std::string found = events(transcript, cut_there);
      if (found == expected) continue;
      INFO(transcript.name << " cut at " << cut);
      CHECK(found == expected);
    }
  }
}

TEST_CASE("transcripts with pieces missing come to an end") {
  for (const Transcript& transcript : all_transcripts()) {
    for (unsigned seed = 0; seed < 40; ++seed) {
      INFO(transcript.name << " seed " << seed);
      std::mt19937 random(seed);
      Transcript damaged = transcript;
      damaged.steps.clear();
      for (const TranscriptStep& step : transcript.steps) {
        const bool hit = step.kind == TranscriptStep::Kind::kBytes && random() % 3 == 0 && !step.bytes.empty();
        if (!hit) {
          damaged.steps.push_back(step);
          continue;
        }
        const std::size_t from = random() % step.bytes.size();
        const std::size_t missing = 1 + random() % (step.bytes.size() - from);
        TranscriptStep piece = step;
        piece.bytes = step.bytes.substr(0, from);
        damaged.steps.push_back(piece);
        TranscriptStep gap = step;
        gap.kind = TranscriptStep::Kind::kGap;
        // As the TCP stage reports it: late, and sometimes more than one segment's worth.
        gap.at = step.at + std::chrono::milliseconds(200);
        gap.missing = missing;
        damaged.steps.push_back(gap);
        piece.bytes = step.bytes.substr(from + missing);
        damaged.steps.push_back(piece);
      }
      ExchangeRecorder recorder;
      const HttpCounters counters = play_transcript(damaged, recorder);
      CHECK(recorder.sum().requests == recorder.sum().ended);
      CHECK(counters.exchanges_in_flight == 0);
    }
  }
}

// What people who met these streams in the field found to be right, told apart from the events above.
TEST_CASE("streams from bug reports") {
  struct Case {
    const char* name;
    std::uint64_t requests;
    std::uint64_t tokens;
    const char* outcome;  // of the last exchange
  };
  const std::vector<Case> cases = {
      {"json_split_across_chunks", 1, 2, "ok"},
      {"chunk_header_split", 1, 2, "ok"},
      {"crlf", 1, 2, "ok"},
      {"comments_keepalive", 1, 2, "ok"},
      {"no_space_after_colon", 1, 2, "ok"},
      {"usage_final_empty_choices", 1, 9, "ok"},
      {"usage_cumulative_every_chunk", 1, 7, "ok"},
      {"hidden_tokens_empty_delta_growing_usage", 1, 7, "ok"},
      {"error_nonstandard_field", 1, 0, "error"},
      {"no_finish_reason_fin", 1, 3, "aborted"},
      {"n2_choices", 1, 7, "ok"},
      {"reasoning_both_names", 1, 5, "ok"},
      {"text_completion_and_logprobs", 1, 4, "ok"},
      {"gzip_stream", 1, 2, "ok"},
      {"http10_until_close", 1, 4, "ok"},
      {"pipelined", 2, 4, "ok"},
      {"chunk_ext_and_trailers", 2, 3, "ok"},
      {"client_abort_rst", 1, 4, "aborted"},
      {"tls_on_port", 0, 0, ""},
      {"llamacpp_native", 1, 3, "ok"},
      {"capture_starts_mid_stream", 2, 4, "ok"},
      {"large_single_event", 1, 2, "ok"},
  };
  for (const Case& row : cases) {
    INFO(row.name);
    const Transcript transcript = read_transcript(std::string(ROOFLINED_TEST_DATA) + "/" + row.name + ".transcript");
    ExchangeRecorder recorder;
    play_transcript(transcript, recorder);
    CHECK(recorder.sum().requests == row.requests);
    CHECK(recorder.sum().tokens == row.tokens);
    if (row.requests == 0) continue;
    CHECK(recorder.lines().back().find(std::string(" ") + row.outcome) != std::string::npos);
  }
}

}  // namespace rooflined::tap
