// Every case in data/cases gives what people who met such a stream found to be right: as a connection, and as packets;
// as captured, byte by byte, and cut once at each place.

#include "tests/support/stream_case.h"
#include "collectors/tap/tap.h"
#include "tests/support/catch.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace rooflined::tap {
namespace {

// What the expectations are about.
struct Seen final : ExchangeSink {
  struct OfExchange {
    LineTime began;
    std::optional<LineTime> first_token;
    std::map<std::uint32_t, std::vector<TokenEvent>> events;  // by choice, in order of time
    std::map<std::uint32_t, std::uint64_t> totals;
    std::optional<Outcome> outcome;
  };
  std::map<ExchangeId, OfExchange> exchanges;

  void on_begin(const ExchangeBegin& begin) override { exchanges[begin.exchange].began = begin.at; }
  void on_recognised(ExchangeId, ServerFamily, std::string_view) override {}
  void on_tokens(const TokenEvent& event) override {
    OfExchange& exchange = exchanges.at(event.exchange);
    if (!exchange.first_token) exchange.first_token = event.at;
    std::vector<TokenEvent>& events = exchange.events[event.choice];
    // Pieces of one segment have one time.
    if (!events.empty() && events.back().at == event.at) {
      events.back().tokens += event.tokens;
      events.back().frames += event.frames;
      events.back().characters += event.characters;
    } else {
      events.push_back(event);
    }
  }
  void on_prompt_tokens(ExchangeId, std::uint64_t, LineTime) override {}
  void on_response_id(ExchangeId, std::uint64_t, LineTime) override {}
  void on_client_window(ExchangeId, bool, LineTime) override {}
  void on_loss(ExchangeId, double, LineTime) override {}
  void on_end(const ExchangeEnd& end) override {
    OfExchange& exchange = exchanges.at(end.exchange);
    exchange.outcome = end.outcome;
    for (const SequenceTotal& total : end.sequences)
      if (total.tokens) exchange.totals[total.choice] = *total.tokens;
  }

  std::uint64_t tokens() const {
    std::uint64_t sum = 0;
    for (const auto& [id, exchange] : exchanges) {
      for (const auto& [choice, events] : exchange.events) {
        if (exchange.totals.contains(choice)) continue;
        for (const TokenEvent& event : events) sum += event.tokens;
      }
      for (const auto& [choice, total] : exchange.totals) sum += total;
    }
    return sum;
  }
  std::uint64_t text_events() const {
    std::uint64_t sum = 0;
    for (const auto& [id, exchange] : exchanges)
      for (const auto& [choice, events] : exchange.events)
        for (const TokenEvent& event : events) sum += event.characters != 0 ? event.frames : 0;
    return sum;
  }
};

// The outcome that each of the cases' own words stands for.
std::optional<Outcome> outcome_of(const std::string& finish) {
  if (finish == "error") return Outcome::kError;
  if (finish == "truncated" || finish == "aborted") return Outcome::kAborted;
  if (finish == "undecodable" || finish == "unsupported") return std::nullopt;
  return Outcome::kOk;
}

double ms_between(LineTime from, LineTime to) {
  return static_cast<double>(to.ns() - from.ns()) / 1e6;
}

// What is wrong, in words; empty where all is right.
std::string faults(const nlohmann::json& expect, const Seen& seen, const HttpCounters& counters) {
  std::string text;
  const auto equal = [&](const char* key, auto found) {
    if (expect.contains(key) && !expect[key].is_null() && expect[key] != nlohmann::json(found))
      text += fmt::format("{}: {} is not {}; ", key, nlohmann::json(found).dump(), expect[key].dump());
  };
  const auto bounded = [&](const char* key, bool good) {
    if (expect.contains(key) && !good) text += fmt::format("{} does not hold; ", key);
  };
  equal("requests", seen.exchanges.size());
  bounded("requests_min", seen.exchanges.size() >= expect.value("requests_min", std::uint64_t{0}));
  equal("events", counters.frames);
  equal("text_events", seen.text_events());
  equal("tokens", seen.tokens());
  bounded("tokens_min", seen.tokens() >= expect.value("tokens_min", std::uint64_t{0}));
  bounded("tokens_max", seen.tokens() <= expect.value("tokens_max", seen.tokens()));
  equal("active_requests_after", counters.exchanges_in_flight);
  if (expect.contains("unsupported_protocol")) {
    const bool tls = expect["unsupported_protocol"] == "tls";
    bounded("unsupported_protocol", counters.of(tls ? ParseError::kTls : ParseError::kHttp2) == 1);
  }
  if (expect.value("finish", "") == "undecodable") bounded("finish", counters.of(ParseError::kEncoded) == 1);
  if (seen.exchanges.empty()) return text;
  const Seen::OfExchange& first = seen.exchanges.begin()->second;
  const Seen::OfExchange& last = seen.exchanges.rbegin()->second;
  bounded("token_source", expect.value("token_source", "") != "usage" || !last.totals.empty());
  if (expect.contains("finish")) {
    if (const auto wanted = outcome_of(expect["finish"])) bounded("finish", last.outcome == wanted);
  }
  equal("sequences", std::max(first.events.size(), first.totals.size()));
  if (first.first_token) {
    equal("ttft_ms", ms_between(first.began, *first.first_token));
    equal("first_token_ms", ms_between(transcript_time(0), *first.first_token));
  }
  if (first.events.empty()) return text;
  std::vector<double> gaps;
  std::vector<std::uint32_t> counts;
  const std::vector<TokenEvent>& events = first.events.begin()->second;
  for (std::size_t i = 0; i < events.size(); ++i) {
    counts.push_back(events[i].tokens);
    if (i != 0) gaps.push_back(ms_between(events[i - 1].at, events[i].at));
  }
  equal("itl_ms", gaps);
  equal("per_event_tokens", counts);
  return text;
}

// `expect`, or one of its `either`.
std::string faults_of_case(const nlohmann::json& expect, const Seen& seen, const HttpCounters& counters) {
  std::string text = faults(expect, seen, counters);
  if (!expect.contains("either")) return text;
  std::string others;
  for (const nlohmann::json& choice : expect["either"]) {
    const std::string found = faults(choice, seen, counters);
    if (found.empty()) return text;
    others += found;
  }
  return text + others;
}

std::vector<StreamCase> all_cases() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(ROOFLINED_TEST_DATA "/cases"))
    paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  std::vector<StreamCase> cases;
  for (const std::string& path : paths) cases.push_back(read_stream_case(path));
  return cases;
}

template <typename Pieces>
std::string faults_as_connection(const StreamCase& stream_case, Pieces pieces) {
  Seen seen;
  const HttpCounters counters = play_transcript(stream_case.transcript, seen, pieces);
  return faults_of_case(stream_case.expect, seen, counters);
}

template <typename Pieces>
std::string faults_as_packets(const StreamCase& stream_case, Pieces pieces) {
  Seen seen;
  ExchangeFactory factory(seen);
  Tap tap(Tap::Options{{8000}, {}}, factory, nullptr);
  const auto client = test::ipv4(10, 0, 0, 2, 40000);
  const auto server = test::ipv4(10, 0, 0, 1, 8000);
  LineTime first;
  for (const test::TimedPacket& packet : packets_of(stream_case.transcript, client, server, pieces)) {
    tap.on_packet(packet.view(link_type::kEthernet));
  }
  // A connection that stays open must have told all it has to tell by its bytes alone.
  HttpCounters counters = factory.counters();
  tap.finish();
  counters.exchanges_in_flight = factory.counters().exchanges_in_flight;
  // The cases' times begin with their first segment; the handshake lies 1 ms before it.
  const std::int64_t start = tap.first_time()->ns() + 1'000'000;
  for (auto& [id, exchange] : seen.exchanges) {
    exchange.began = LineTime::from_ns(exchange.began.ns() - start);
    if (exchange.first_token) exchange.first_token = LineTime::from_ns(exchange.first_token->ns() - start);
  }
  return faults_of_case(stream_case.expect, seen, counters);
}

std::vector<std::size_t> whole(const TranscriptStep& step) {
  return {step.bytes.size()};
}
std::vector<std::size_t> single_bytes(const TranscriptStep& step) {
  return std::vector<std::size_t>(step.bytes.size(), 1);
}

// Of longer cases only some places are cut.
constexpr std::size_t kSmall = 8 * 1024;

}  // namespace

TEST_CASE("cases from the field give what is right") {
  const std::vector<StreamCase> cases = all_cases();
  REQUIRE(cases.size() >= 24);
  for (const StreamCase& stream_case : cases) {
    INFO(stream_case.transcript.name);
    CHECK(faults_as_connection(stream_case, whole) == "");
    CHECK(faults_as_packets(stream_case, whole) == "");
    CHECK(faults_as_connection(stream_case, single_bytes) == "");
    CHECK(faults_as_packets(stream_case, single_bytes) == "");
  }
}

TEST_CASE("cases from the field give the same cut once at every place") {
  for (const StreamCase& stream_case : all_cases()) {
    std::size_t bytes = 0;
    for (const TranscriptStep& step : stream_case.transcript.steps) bytes += step.bytes.size();
    const std::size_t stride = bytes <= kSmall ? 1 : bytes / 16;
    for (std::size_t cut = 0; cut < bytes; cut += stride) {
      std::size_t before = 0;
      const auto cut_there = [&](const TranscriptStep& step) {
        const std::size_t start = std::exchange(before, before + step.bytes.size());
        if (cut <= start || cut >= before) return std::vector<std::size_t>{step.bytes.size()};
        return std::vector<std::size_t>{cut - start, before - cut};
      };
      const std::string connection = faults_as_connection(stream_case, cut_there);
      before = 0;
      const std::string packets = faults_as_packets(stream_case, cut_there);
      if (connection.empty() && packets.empty()) continue;
      INFO(stream_case.transcript.name << " cut at " << cut);
      CHECK(connection + packets == "");
    }
  }
}

}  // namespace rooflined::tap
