#include "daemon/twins.h"

#include <algorithm>
#include <utility>

namespace rooflined::daemon {
namespace {

// Issue and contract: equal text on both hops within 50 ms. An equal id bears more: a proxy may gather what it sends.
constexpr Duration kLagMax = std::chrono::milliseconds(50);
constexpr Duration kLagOfEqualIdsMax = std::chrono::seconds(1);
// Between hops that proved to be proxy and engine: a busy machine keeps the proxy waiting for its CPU (3 of 16 streams
// through llama.cpp's router came over 50 ms late there).
constexpr Duration kLagOfKnownMax = std::chrono::milliseconds(250);
// A proxy passes a request on at once, unless it has to count its tokens or to start the engine first.
constexpr Duration kForwardMax = std::chrono::milliseconds(250);
// A hole in one hop's stream is waited for this long (StreamAssembler::Limits), and the other hop's text with it.
constexpr Duration kPatience = std::chrono::milliseconds(50);
constexpr Duration kPatienceOfTwins = std::chrono::milliseconds(300);

constexpr std::size_t kCommonOfStrangers = 8;
constexpr std::size_t kCommonOfBusyStrangers = 16;
// A known proxy may answer from somewhere else, too, while others ask the engine: of 150 such streams two marks agreed
// by chance in 10 within 50 ms and in 15 within 250 ms, these many in 1 and in none.
constexpr std::size_t kCommonOfKnown = 4;
constexpr std::size_t kCommonOfKnownLate = 8;
// "A few" matches: one or two may be chance.
constexpr double kProbablesMin = 3;
constexpr double kKnownMin = 2.5;  // three, the first two a little older

constexpr Duration kReviewEvery = std::chrono::milliseconds(10);
constexpr Duration kEndedKept = std::chrono::milliseconds(400);
constexpr Duration kHeldMax = std::chrono::seconds(10);
constexpr std::size_t kHeldEventsMax = 256;
constexpr std::size_t kCandidatesMax = 64;
constexpr std::size_t kServersMax = 1024;
constexpr std::size_t kPairsMax = 256;
// The last twenty verdicts or so of a pair decide.
constexpr double kPairDecay = 0.95;

template <typename T>
bool has(const std::vector<T>& list, const T& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

template <typename... Fs>
struct Overloaded : Fs... {
  using Fs::operator()...;
};
template <typename... Fs>
Overloaded(Fs...) -> Overloaded<Fs...>;

}  // namespace

Twins::Exchange* Twins::find(ExchangeId id) {
  const auto found = exchanges_.find(id);
  return found == exchanges_.end() ? nullptr : &found->second;
}

bool Twins::others_are_busy(const Endpoint& server) const {
  return open_.size() > (open_.contains(server) ? 1U : 0U);
}

void Twins::on_begin(const ExchangeBegin& begin) {
  ++open_[begin.server];
  Exchange& exchange = exchanges_[begin.exchange];
  exchange.begin = begin;
  exchange.watched = others_are_busy(begin.server);
  next_.on_begin(begin);
}

void Twins::on_recognised(ExchangeId id, ServerFamily family, std::string_view version) {
  const Exchange* exchange = find(id);
  if (exchange == nullptr || exchange->state != State::kProxied) next_.on_recognised(id, family, version);
}

void Twins::on_response_id(ExchangeId id, std::uint64_t hash, LineTime at) {
  Exchange* exchange = find(id);
  if (exchange == nullptr || exchange->state == State::kProxied) return;
  const auto last = response_id_last_.find(exchange->begin.server);
  const bool repeated = last != response_id_last_.end() && last->second == hash;
  if (!repeated) exchange->response_id = hash;
  if (last != response_id_last_.end() || response_id_last_.size() < kServersMax) {
    response_id_last_[exchange->begin.server] = hash;
  }
  next_.on_response_id(id, hash, at);
}

void Twins::on_tokens(const TokenEvent& event) {
  Exchange* exchange = find(event.exchange);
  if (exchange == nullptr) return;
  if (exchange->watched || exchange->state == State::kHeld) exchange->trail.add(event.characters, event.at);
  if (exchange->state == State::kSilent) {
    suspect(*exchange, event.at);
    if (exchange->state == State::kHeld && !exchange->watched) exchange->trail.add(event.characters, event.at);
  }
  if (exchange->state == State::kProxied) {
    next_.on_proxied_tokens(exchange->begin.server, event.tokens);
    return;
  }
  if (passes(*exchange, event, event.at)) next_.on_tokens(event);
}

void Twins::on_prompt_tokens(ExchangeId id, std::uint64_t tokens, LineTime at) {
  Exchange* exchange = find(id);
  if (exchange != nullptr && passes(*exchange, PromptTokens{id, tokens, at}, at)) {
    next_.on_prompt_tokens(id, tokens, at);
  }
}

void Twins::on_client_window(ExchangeId id, bool closed, LineTime at) {
  Exchange* exchange = find(id);
  if (exchange != nullptr && passes(*exchange, WindowChange{id, closed, at}, at)) {
    next_.on_client_window(id, closed, at);
  }
}

void Twins::on_loss(ExchangeId id, double tokens, LineTime at) {
  Exchange* exchange = find(id);
  if (exchange == nullptr) return;
  exchange->lossy = true;
  if (passes(*exchange, Loss{id, tokens, at}, at)) next_.on_loss(id, tokens, at);
}

void Twins::on_end(const ExchangeEnd& end) {
  Exchange* exchange = find(end.exchange);
  if (exchange == nullptr) return;
  const auto open = open_.find(exchange->begin.server);
  if (open != open_.end() && --open->second == 0) open_.erase(open);
  exchange->trail.ended = true;
  exchange->ended_at = end.at;
  ended_.push_back(end.exchange);
  const bool held = exchange->state == State::kHeld;
  if (held) exchange->held.emplace_back(End{end, {end.sequences.begin(), end.sequences.end()}});
  if (!held && exchange->state != State::kProxied) next_.on_end(end);
  // The review forgets it, once nothing can want it as its twin any more.
  if (!exchange->watched && !held && open_.empty()) {
    ended_.pop_back();
    exchanges_.erase(end.exchange);
  }
}

// Requires: the event is no end.
bool Twins::passes(Exchange& exchange, Event event, LineTime at) {
  if (exchange.state == State::kProxied) return false;
  if (exchange.state != State::kHeld) return true;
  exchange.held.push_back(std::move(event));
  decide(exchange, exchange.held.size() >= kHeldEventsMax, at);
  return false;
}

// The first token: who was asked after this exchange and has answered before it, on another server?
void Twins::suspect(Exchange& exchange, LineTime at) {
  exchange.state = State::kFree;
  const ExchangeBegin& begin = exchange.begin;
  if (!others_are_busy(begin.server) && ended_.empty()) return;
  for (const auto& [id, other] : exchanges_) {
    if (other.begin.server == begin.server || exchange.candidates.size() >= kCandidatesMax) continue;
    const bool both_late = begin.joined_late && other.begin.joined_late;
    const bool same_id = exchange.response_id && exchange.response_id == other.response_id;
    const bool later = id > begin.exchange && other.watched && !begin.joined_late && !other.begin.joined_late;
    if (!later && !(both_late && same_id && other.state != State::kSilent)) continue;
    if (has(other.claimed_by, begin.server)) continue;
    exchange.candidates.push_back(id);
    if (!has(exchange.suspected, other.begin.server)) exchange.suspected.push_back(other.begin.server);
  }
  if (exchange.candidates.empty()) {
    if (begin.joined_late) return;
    for (const auto& [server, count] : open_) {
      if (server != begin.server) note({begin.server, server}, false);
    }
    return;
  }
  // The order of a hash table is not the same on all machines.
  std::sort(exchange.candidates.begin(), exchange.candidates.end());
  exchange.state = State::kHeld;
  exchange.held_since = at;
  undecided_.push_back(begin.exchange);
}

// No other exchange runs on its server.
bool Twins::alone(const Exchange& exchange) const {
  const auto open = open_.find(exchange.begin.server);
  const std::size_t count = open == open_.end() ? 0 : open->second;
  return count <= (exchange.trail.ended ? 0U : 1U);
}

Twins::Verdict Twins::judge(const Exchange& outer, const Exchange& inner, LineTime now) const {
  const bool known = is_known({outer.begin.server, inner.begin.server});
  const bool same_id = outer.response_id && outer.response_id == inner.response_id;
  if (same_id && (outer.begin.joined_late || outer.lossy || inner.lossy)) return Verdict::kTwin;
  if (known && (outer.lossy || inner.lossy)) return Verdict::kTwin;
  if (!known && !same_id && inner.begin.at - outer.begin.at > kForwardMax) return Verdict::kRefuted;
  if (known && !same_id) return judge_known(outer, inner, now);
  const TwinEvidence evidence = compare_trails(outer.trail, inner.trail, now, same_id ? kLagOfEqualIdsMax : kLagMax,
                                               same_id ? kPatienceOfTwins : kPatience);
  if (evidence.refuted) return Verdict::kRefuted;
  if (!evidence.agrees()) return Verdict::kOpen;
  if (same_id) return Verdict::kTwin;
  return judge_by_text(outer, inner, evidence);
}

// Text alone, of servers that proved to be proxy and engine.
Twins::Verdict Twins::judge_known(const Exchange& outer, const Exchange& inner, LineTime now) {
  const TwinEvidence soon = compare_trails(outer.trail, inner.trail, now, kLagMax, kPatienceOfTwins);
  if (soon.agrees() && (soon.common >= kCommonOfKnown || soon.complete)) return Verdict::kTwin;
  const TwinEvidence late = compare_trails(outer.trail, inner.trail, now, kLagOfKnownMax, kPatienceOfTwins);
  if (late.refuted) return Verdict::kRefuted;
  return late.agrees() && (late.common >= kCommonOfKnownLate || late.complete) ? Verdict::kTwin : Verdict::kOpen;
}

// Two servers that nothing is known of, and text alone. Requires: it agrees.
Twins::Verdict Twins::judge_by_text(const Exchange& outer, const Exchange& inner, const TwinEvidence& evidence) const {
  const bool both_alone = alone(outer) && alone(inner);
  const bool much = evidence.common >= (both_alone ? kCommonOfStrangers : kCommonOfBusyStrangers);
  if (!much && !evidence.complete) return Verdict::kOpen;
  const bool ids_differ = outer.response_id && inner.response_id;
  if (ids_differ || !plausible({outer.begin.server, inner.begin.server}, 1)) return Verdict::kProbable;
  return both_alone || (much && evidence.complete) ? Verdict::kTwin : Verdict::kProbable;
}

void Twins::decide(Exchange& exchange, bool last, LineTime now) {
  exchange.probable_twin = 0;
  for (auto candidate = exchange.candidates.begin(); candidate != exchange.candidates.end();) {
    Exchange* inner = find(*candidate);
    const bool taken = inner == nullptr || has(inner->claimed_by, exchange.begin.server);
    const Verdict verdict = taken ? Verdict::kRefuted : judge(exchange, *inner, now);
    if (verdict == Verdict::kTwin) {
      set_proxied(exchange, *inner);
      return;
    }
    if (verdict == Verdict::kProbable && exchange.probable_twin == 0) exchange.probable_twin = *candidate;
    candidate = verdict == Verdict::kRefuted ? exchange.candidates.erase(candidate) : std::next(candidate);
  }
  if (exchange.probable_twin != 0) {
    const Exchange* inner = find(exchange.probable_twin);
    if (settle_probable({exchange.begin.server, inner->begin.server})) return;
  }
  if (exchange.candidates.empty() || last) release(exchange);
}

// Several streams of a pair that agree at the same time are no chance.
bool Twins::settle_probable(const PairKey& key) {
  std::vector<std::pair<ExchangeId, ExchangeId>> agreeing;
  for (const ExchangeId id : undecided_) {
    const Exchange* outer = find(id);
    if (outer == nullptr || outer->state != State::kHeld || outer->probable_twin == 0) continue;
    const Exchange* inner = find(outer->probable_twin);
    if (inner == nullptr || outer->begin.server != key.first || inner->begin.server != key.second) continue;
    agreeing.emplace_back(id, outer->probable_twin);
  }
  const auto count = static_cast<double>(agreeing.size());
  if (twins_of(key) + count < kProbablesMin || !plausible(key, count)) return false;
  for (const auto& [outer, inner] : agreeing) set_proxied(*find(outer), *find(inner));
  return true;
}

void Twins::set_proxied(Exchange& exchange, Exchange& inner) {
  const Endpoint& proxy = exchange.begin.server;
  exchange.state = State::kProxied;
  inner.claimed_by.push_back(proxy);
  note({proxy, inner.begin.server}, true);
  next_.on_proxied(exchange.begin.exchange, proxy, inner.begin.server);
  for (const Event& event : exchange.held) {
    if (const auto* tokens = std::get_if<TokenEvent>(&event)) next_.on_proxied_tokens(proxy, tokens->tokens);
  }
  exchange.held = {};
  exchange.candidates = {};
}

void Twins::release(Exchange& exchange) {
  exchange.state = State::kFree;
  if (exchange.probable_twin == 0) {
    for (const Endpoint& inner : exchange.suspected) note({exchange.begin.server, inner}, false);
  }
  exchange.candidates = {};
  const std::vector<Event> held = std::move(exchange.held);
  exchange.held = {};
  for (const Event& event : held) tell(event);
}

void Twins::tell(const Event& event) {
  std::visit(Overloaded{
                 [this](const TokenEvent& one) { next_.on_tokens(one); },
                 [this](const PromptTokens& one) { next_.on_prompt_tokens(one.exchange, one.tokens, one.at); },
                 [this](const WindowChange& one) { next_.on_client_window(one.exchange, one.closed, one.at); },
                 [this](const Loss& one) { next_.on_loss(one.exchange, one.tokens, one.at); },
                 [this](const End& one) {
                   ExchangeEnd end = one.end;
                   end.sequences = one.sequences;
                   next_.on_end(end);
                 },
             },
             event);
}

void Twins::note(const PairKey& key, bool twin) {
  auto pair = pairs_.find(key);
  if (pair == pairs_.end()) {
    if (pairs_.size() >= kPairsMax) return;
    pair = pairs_.emplace(key, Pair()).first;
  }
  pair->second.twins *= kPairDecay;
  pair->second.singles *= kPairDecay;
  (twin ? pair->second.twins : pair->second.singles) += 1;
}

double Twins::twins_of(const PairKey& key) const {
  const auto pair = pairs_.find(key);
  return pair == pairs_.end() ? 0 : pair->second.twins;
}

// Whether `twins` more would be in keeping with what was seen of the pair so far.
bool Twins::plausible(const PairKey& key, double twins) const {
  const auto pair = pairs_.find(key);
  const double singles = pair == pairs_.end() ? 0 : pair->second.singles;
  return twins_of(key) + twins > 3 * (singles + twins_of({key.second, key.first}));
}

bool Twins::is_known(const PairKey& key) const {
  return twins_of(key) > kKnownMin && plausible(key, 0);
}

void Twins::review(LineTime now) {
  review_due_ = now + kReviewEvery;
  if (!undecided_.empty()) {
    const std::vector<ExchangeId> waiting = undecided_;
    for (const ExchangeId id : waiting) {
      Exchange* exchange = find(id);
      if (exchange == nullptr || exchange->state != State::kHeld) continue;
      const bool over = exchange->trail.ended && now - exchange->ended_at > kPatienceOfTwins;
      decide(*exchange, over || now - exchange->held_since > kHeldMax, now);
    }
    std::erase_if(undecided_, [this](ExchangeId id) {
      const Exchange* exchange = find(id);
      return exchange == nullptr || exchange->state != State::kHeld;
    });
    note_held_back();
  }
  if (!ended_.empty()) forget_ended(now);
}

void Twins::note_held_back() {
  held_back_.clear();
  for (const ExchangeId id : undecided_) {
    const Exchange& exchange = exchanges_.at(id);
    const auto place = held_back_.emplace(exchange.begin.server, exchange.held_since).first;
    place->second = std::min(place->second, exchange.held_since);
  }
}

void Twins::forget_ended(LineTime now) {
  std::erase_if(ended_, [&](ExchangeId id) {
    const Exchange* exchange = find(id);
    if (exchange != nullptr && now - exchange->ended_at <= kEndedKept) return false;
    exchanges_.erase(id);
    return true;
  });
}

void Twins::finish() {
  const std::vector<ExchangeId> waiting = std::exchange(undecided_, {});
  for (const ExchangeId id : waiting) {
    Exchange* exchange = find(id);
    if (exchange != nullptr && exchange->state == State::kHeld) decide(*exchange, true, exchange->ended_at);
  }
}

}  // namespace rooflined::daemon
