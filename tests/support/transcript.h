// Transcripts: both sides of one connection, timed and readable, and the events that must come of it.
//
//   # what this is about
//   joined-late                      the handshake was not seen
//   >>> 12.5                         what follows went from client to server at 12.5 ms
//   POST /v1/completions HTTP/1.1\r\n
//   <<< 90                           and this from server to client
//   HTTP/1.1 200 OK\r\n
//   @repeat 1000 x                   1000 times the rest of the line
//   gap < 100 160                    160 bytes from the server are missing, as was declared at 100 ms (">": from the
//   client) end fin-server 200               also: fin-client, reset-client, reset-server, evicted expect begin 1 @12.5
//   streamed …         what the recorder prints, see below
//
// The line ends of the file are not part of the bytes: \r \n \t \\ and \xNN are written out.

#pragma once

#include "collectors/tap/connection.h"
#include "collectors/tap/exchange_factory.h"
#include "metrics/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace rooflined::tap {

struct TranscriptStep {
  enum class Kind { kBytes, kGap, kEnd };
  Kind kind = Kind::kBytes;
  Direction direction = Direction::kToServer;
  LineTime at;
  std::string bytes;
  std::uint64_t missing = 0;
  std::string end;
};

struct Transcript {
  std::string name;
  bool joined_late = false;
  std::vector<TranscriptStep> steps;
  std::vector<std::string> expected;
};

inline LineTime transcript_time(double milliseconds) {
  return LineTime::from_ns(static_cast<std::int64_t>(std::llround(milliseconds * 1e6)));
}

inline std::string transcript_unescape(std::string_view line) {
  std::string bytes;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\\' || i + 1 == line.size()) {
      bytes.push_back(line[i]);
      continue;
    }
    switch (line[++i]) {
      case 'r':
        bytes.push_back('\r');
        break;
      case 'n':
        bytes.push_back('\n');
        break;
      case 't':
        bytes.push_back('\t');
        break;
      case 'x':
        bytes.push_back(static_cast<char>(std::stoi(std::string(line.substr(i + 1, 2)), nullptr, 16)));
        i += 2;
        break;
      default:
        bytes.push_back(line[i]);
    }
  }
  return bytes;
}

inline Transcript read_transcript(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("no transcript " + path);
  Transcript transcript;
  transcript.name = path.substr(path.rfind('/') + 1);
  bool expecting = false;
  for (std::string line; std::getline(file, line);) {
    if (expecting) {
      if (!line.empty() && line[0] != '#') transcript.expected.push_back(line);
    } else if (line.starts_with(">>> ") || line.starts_with("<<< ")) {
      TranscriptStep& step = transcript.steps.emplace_back();
      step.direction = line[0] == '>' ? Direction::kToServer : Direction::kToClient;
      step.at = transcript_time(std::stod(line.substr(4)));
    } else if (line.starts_with("gap ")) {
      TranscriptStep& step = transcript.steps.emplace_back();
      step.kind = TranscriptStep::Kind::kGap;
      step.direction = line[4] == '>' ? Direction::kToServer : Direction::kToClient;
      std::size_t used = 0;
      step.at = transcript_time(std::stod(line.substr(6), &used));
      step.missing = std::stoull(line.substr(6 + used));
    } else if (line.starts_with("end ")) {
      TranscriptStep& step = transcript.steps.emplace_back();
      step.kind = TranscriptStep::Kind::kEnd;
      const std::size_t space = line.find(' ', 4);
      step.end = line.substr(4, space - 4);
      step.at = transcript_time(std::stod(line.substr(space)));
    } else if (line.starts_with("@repeat ")) {
      std::size_t used = 0;
      const std::size_t times = std::stoull(line.substr(8), &used);
      const std::string piece = transcript_unescape(line.substr(9 + used));
      for (std::size_t i = 0; i < times; ++i) transcript.steps.back().bytes += piece;
    } else if (line == "joined-late") {
      transcript.joined_late = true;
    } else if (line == "expect") {
      expecting = true;
    } else if (!transcript.steps.empty() && transcript.steps.back().kind == TranscriptStep::Kind::kBytes) {
      transcript.steps.back().bytes += transcript_unescape(line);
    } else if (!line.empty() && line[0] != '#') {
      throw std::runtime_error(path + ": what is this line? " + line);
    }
  }
  return transcript;
}

// Writes down what an ExchangeSink is told, in one form whatever the segmentation: token events of one sequence at one
// time are one, and the order within one time is fixed.
//
//   begin 1 @0 streamed late characters=2 prompt=3
//   recognised 1 llama.cpp b4748-c392e5094
//   prompt 1 5
//   tokens 1/0 @100 2 in 1 exact_live
//   loss 1
//   end 1 @140 ok 0:9@130 draft=5/3
class ExchangeRecorder final : public ExchangeSink {
 public:
  struct Sum {
    std::uint64_t requests = 0;
    std::uint64_t ended = 0;
    std::uint64_t tokens = 0;  // by the totals where there are any
  };

  // The line time of what is being fed: the calls without a time are filed under it.
  void set_now(LineTime now) { now_ = now; }

  void on_begin(const ExchangeBegin& begin) override {
    ++sum_.requests;
    std::string text = fmt::format("begin {} @{}", begin.exchange, milliseconds(begin.at));
    if (begin.streamed) text += " streamed";
    if (begin.joined_late) text += " late";
    if (begin.prompt_characters != 0) text += fmt::format(" characters={}", begin.prompt_characters);
    if (begin.prompt_tokens) text += fmt::format(" prompt={}", *begin.prompt_tokens);
    if (begin.prompts != 1) text += fmt::format(" prompts={}", begin.prompts);
    add(0, begin.exchange, begin.at, text);
  }
  void on_recognised(ExchangeId exchange, ServerFamily family, std::string_view version) override {
    add(1, exchange, now_,
        fmt::format("recognised {} {}{}{}", exchange, family_name(family), version.empty() ? "" : " ", version));
  }
  void on_prompt_tokens(ExchangeId exchange, std::uint64_t tokens, LineTime at) override {
    add(2, exchange, at, fmt::format("prompt {} {}", exchange, tokens));
  }
  void on_tokens(const TokenEvent& event) override {
    counted_.emplace_back(event.exchange, event.choice, event.tokens);
    for (TokenEvent& known : tokens_) {
      if (known.exchange != event.exchange || known.choice != event.choice || known.at != event.at) continue;
      known.tokens += event.tokens;
      known.frames += event.frames;
      known.source = std::max(known.source, event.source);
      return;
    }
    tokens_.push_back(event);
  }
  void on_response_id(ExchangeId, std::uint64_t, LineTime) override {}
  void on_client_window(ExchangeId exchange, bool closed, LineTime at) override {
    add(4, exchange, at, fmt::format("window {} {}", exchange, closed ? "closed" : "open"));
  }
  void on_loss(ExchangeId exchange, double, LineTime at) override {
    add(4, exchange, at, fmt::format("loss {}", exchange));
  }
  void on_end(const ExchangeEnd& end) override {
    ++sum_.ended;
    static constexpr const char* kOutcomes[] = {"ok", "aborted", "error"};
    std::string text =
        fmt::format("end {} @{} {}", end.exchange, milliseconds(end.at), kOutcomes[static_cast<int>(end.outcome)]);
    for (const SequenceTotal& total : end.sequences) {
      text += fmt::format(" {}:{}", total.choice, total.tokens ? std::to_string(*total.tokens) : "?");
      if (total.finished_at) text += fmt::format("@{}", milliseconds(*total.finished_at));
      std::uint64_t counted = 0;
      for (const auto& [exchange, choice, tokens] : counted_) {
        if (exchange == end.exchange && choice == total.choice) counted += tokens;
      }
      sum_.tokens += total.tokens.value_or(counted);
    }
    if (end.draft_tokens) text += fmt::format(" draft={}/{}", *end.draft_tokens, end.draft_tokens_accepted.value_or(0));
    add(5, end.exchange, end.at, text);
  }

  std::vector<std::string> lines() const {
    std::vector<Entry> entries = entries_;
    static constexpr const char* kSources[] = {"exact_live", "exact_final", "estimated"};
    for (const TokenEvent& event : tokens_) {
      entries.push_back(
          {event.at.ns(), event.exchange, 3, static_cast<std::int64_t>(event.choice),
           fmt::format("tokens {}/{} @{} {} in {} {}", event.exchange, event.choice, milliseconds(event.at),
                       event.tokens, event.frames, kSources[static_cast<int>(event.source)])});
    }
    std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      return std::tie(a.at, a.exchange, a.rank, a.choice) < std::tie(b.at, b.exchange, b.rank, b.choice);
    });
    std::vector<std::string> lines;
    for (const Entry& entry : entries) lines.push_back(entry.text);
    return lines;
  }
  const Sum& sum() const { return sum_; }

 private:
  struct Entry {
    std::int64_t at;
    ExchangeId exchange;
    int rank;
    std::int64_t choice;
    std::string text;
  };

  static std::string milliseconds(LineTime at) { return fmt::format("{}", static_cast<double>(at.ns()) / 1e6); }
  void add(int rank, ExchangeId exchange, LineTime at, std::string text) {
    entries_.push_back({at.ns(), exchange, rank, 0, std::move(text)});
  }

  LineTime now_;
  Sum sum_;
  std::vector<Entry> entries_;
  std::vector<TokenEvent> tokens_;
  std::vector<std::tuple<ExchangeId, std::uint32_t, std::uint32_t>> counted_;
};

// Plays a transcript into a fresh factory. `pieces(step)` cuts the bytes of a step: it returns the lengths of its
// pieces.
// `on_time(time)` is called before each step.
template <typename Pieces, typename OnTime>
HttpCounters play_transcript(const Transcript& transcript, ExchangeSink& sink, Pieces pieces, OnTime on_time) {
  ExchangeFactory factory(sink);
  ConnectionInfo info;
  info.server.port = 8000;
  info.joined_late = transcript.joined_late;
  const auto handler = factory.open(info);
  LineTime last;
  CloseCause cause = CloseCause::kEndOfCapture;
  for (const TranscriptStep& step : transcript.steps) {
    last = std::max(last, step.at);
    on_time(last);
    if (handler->lost_interest()) continue;
    if (step.kind == TranscriptStep::Kind::kGap) {
      handler->on_gap(step.direction, {step.missing, GapCause::kHoleTooOld, step.at});
    } else if (step.kind == TranscriptStep::Kind::kEnd) {
      if (step.end == "fin-server") handler->on_half_close(Direction::kToClient, step.at);
      if (step.end == "fin-client") handler->on_half_close(Direction::kToServer, step.at);
      if (step.end == "reset-server") cause = CloseCause::kResetByServer;
      if (step.end == "reset-client") cause = CloseCause::kResetByClient;
      if (step.end == "evicted") cause = CloseCause::kEvicted;
    } else {
      std::size_t from = 0;
      for (const std::size_t length : pieces(step)) {
        if (length == 0 || handler->lost_interest()) continue;
        // A copy of exactly that size, so that a sanitizer sees a read past its end.
        const std::vector<char> piece(step.bytes.begin() + static_cast<std::ptrdiff_t>(from),
                                      step.bytes.begin() + static_cast<std::ptrdiff_t>(from + length));
        handler->on_bytes(step.direction, std::as_bytes(std::span<const char>(piece)), step.at);
        from += length;
      }
    }
  }
  handler->on_close(cause, last);
  return factory.counters();
}

template <typename Pieces>
HttpCounters play_transcript(const Transcript& transcript, ExchangeSink& sink, Pieces pieces) {
  return play_transcript(transcript, sink, pieces, [](LineTime) {});
}

template <typename Pieces>
HttpCounters play_transcript(const Transcript& transcript, ExchangeRecorder& recorder, Pieces pieces) {
  return play_transcript(transcript, static_cast<ExchangeSink&>(recorder), pieces,
                         [&](LineTime now) { recorder.set_now(now); });
}

inline HttpCounters play_transcript(const Transcript& transcript, ExchangeRecorder& recorder) {
  return play_transcript(transcript, recorder,
                         [](const TranscriptStep& step) { return std::vector<std::size_t>{step.bytes.size()}; });
}

// The errors that were counted, in the recorder's style.
inline std::vector<std::string> error_lines(const HttpCounters& counters) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < counters.parse_errors.size(); ++i) {
    const auto error = static_cast<ParseError>(i);
    if (counters.of(error) != 0)
      lines.push_back(fmt::format("errors {} {}", parse_error_name(error), counters.of(error)));
  }
  return lines;
}

}  // namespace rooflined::tap
