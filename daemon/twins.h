// One stream, one target: finds exchanges that the capture shows on two hops (NAT before and after, docker-proxy, a
// proxy in front of the engine, Ollama and its child), and lets only the hop nearest to the engine count.
//
//   in:   exchange events, as the tap tells them; line time
//   out:  the same events, but for those of an outer hop: on_proxied() instead
//
// The outer hop is asked first and answers last, so its first token comes when the inner hop's is known. Where an
// exchange may be an outer hop's, its tokens are held back until that is decided, most often for a few of them; with
// one server on the host nothing is ever held. Held events are told with their own times, however late: held_back()
// says to where the books may go meanwhile. What decides: equal response ids, or the same text at the same time
// (twin_evidence.h). A pair of servers that proved to be proxy and engine needs less evidence from then on, and more
// again where streams of the one have no twin at the other while that is busy, too, or where it seems to go both ways:
// two engines that write the same text in step.
//
// Bounds: exchanges as the tap's; events held per exchange; pairs. Threads: one.

#pragma once

#include "daemon/twin_evidence.h"
#include "metrics/exchange.h"

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace rooflined::daemon {

class ProxySink : public ExchangeSink {
 public:
  // The exchange at `proxy` is the twin of one at `engine`: no more is told of it.
  virtual void on_proxied(ExchangeId exchange, const Endpoint& proxy, const Endpoint& engine) = 0;
  // Tokens of such an exchange.
  virtual void on_proxied_tokens(const Endpoint& proxy, std::uint64_t tokens) = 0;
};

class Twins final : public ExchangeSink {
 public:
  // Requires: `next` outlives this.
  explicit Twins(ProxySink& next) : next_(next) {}

  void on_begin(const ExchangeBegin& begin) override;
  void on_recognised(ExchangeId exchange, ServerFamily family, std::string_view version) override;
  void on_tokens(const TokenEvent& event) override;
  void on_prompt_tokens(ExchangeId exchange, std::uint64_t tokens, LineTime at) override;
  void on_response_id(ExchangeId exchange, std::uint64_t hash, LineTime at) override;
  void on_client_window(ExchangeId exchange, bool closed, LineTime at) override;
  void on_loss(ExchangeId exchange, double tokens, LineTime at) override;
  void on_end(const ExchangeEnd& end) override;

  // Decides what has waited long enough.
  void advance_to(LineTime now) {
    if (now >= review_due_) review(now);
  }
  // The end of a capture: decides everything.
  void finish();

  // Servers of which events are held, and the time of the earliest. As of the last review: one that came since then is
  // younger than what the books wait for anyway.
  const std::map<Endpoint, LineTime>& held_back() const { return held_back_; }

 private:
  struct PromptTokens {
    ExchangeId exchange;
    std::uint64_t tokens;
    LineTime at;
  };
  struct WindowChange {
    ExchangeId exchange;
    bool closed;
    LineTime at;
  };
  struct Loss {
    ExchangeId exchange;
    double tokens;
    LineTime at;
  };
  struct End {
    ExchangeEnd end;
    std::vector<SequenceTotal> sequences;
  };
  using Event = std::variant<TokenEvent, PromptTokens, WindowChange, Loss, End>;

  enum class State : std::uint8_t {
    kSilent,   // no token yet
    kHeld,     // may be a twin
    kFree,     // told as it comes
    kProxied,  // a twin
  };
  struct Exchange {
    ExchangeBegin begin;
    State state = State::kSilent;
    bool watched = false;  // several servers were busy: it may be somebody's twin
    std::optional<std::uint64_t> response_id;
    TextTrail trail;
    LineTime ended_at;
    LineTime held_since;
    std::vector<Event> held;
    std::vector<ExchangeId> candidates;
    std::vector<Endpoint> suspected;   // the servers of all its candidates so far
    std::vector<Endpoint> claimed_by;  // outer hops that have it as their twin
    ExchangeId probable_twin = 0;      // agrees, and that is not enough alone
    bool lossy = false;
  };

  // How often two servers turned out to be one behind the other, and how often not while both were busy. Older verdicts
  // weigh less.
  struct Pair {
    double twins = 0;
    double singles = 0;
  };
  using PairKey = std::pair<Endpoint, Endpoint>;  // outer, inner

  enum class Verdict : std::uint8_t { kOpen, kProbable, kTwin, kRefuted };

  Exchange* find(ExchangeId id);
  bool others_are_busy(const Endpoint& server) const;
  // Whether the event is to be told now.
  bool passes(Exchange& exchange, Event event, LineTime at);
  void suspect(Exchange& exchange, LineTime at);
  Verdict judge(const Exchange& outer, const Exchange& inner, LineTime now) const;
  static Verdict judge_known(const Exchange& outer, const Exchange& inner, LineTime now);
  Verdict judge_by_text(const Exchange& outer, const Exchange& inner, const TwinEvidence& evidence) const;
  bool alone(const Exchange& exchange) const;
  void decide(Exchange& exchange, bool last, LineTime now);
  bool settle_probable(const PairKey& key);
  void set_proxied(Exchange& exchange, Exchange& inner);
  void release(Exchange& exchange);
  void tell(const Event& event);
  void note(const PairKey& key, bool twin);
  bool is_known(const PairKey& key) const;
  double twins_of(const PairKey& key) const;
  bool plausible(const PairKey& key, double twins) const;
  void review(LineTime now);
  void note_held_back();
  void forget_ended(LineTime now);

  ProxySink& next_;
  std::unordered_map<ExchangeId, Exchange> exchanges_;
  std::map<Endpoint, std::size_t> open_;                // exchanges of each server that have not ended
  std::map<Endpoint, std::uint64_t> response_id_last_;  // a server that gives the same id twice gives none
  std::map<PairKey, Pair> pairs_;
  std::vector<ExchangeId> undecided_;  // kHeld
  std::map<Endpoint, LineTime> held_back_;
  std::vector<ExchangeId> ended_;  // kept for a while, oldest first: a twin may end later
  LineTime review_due_ = LineTime::min();
};

}  // namespace rooflined::daemon
