// The models of a target: several engines behind one port, and what a server served before.
//
// Which engine an exchange is of is known by the model's name in its request, of which there is a hash: it is compared
// with those of the names that the server lists, so that nothing that a client invents is ever shown.

#include "daemon/targets.h"

#include "metrics/base/log.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace rooflined::daemon {

std::size_t Targets::in_flight(const Target& target) {
  std::size_t sum = target.books->exchanges_in_flight();
  for (const ModelBooks& one : target.further) sum += one.books->exchanges_in_flight();
  return sum;
}

// A server with one model answers with that, whatever it is called.
std::string Targets::model_of(const Target& target, std::uint64_t name) {
  if (target.engines.size() == 1) return target.engines.front().model;
  for (const EngineFacts& engine : target.engines) {
    if (std::find(engine.names.begin(), engine.names.end(), name) != engine.names.end()) return engine.model;
  }
  return kUnknownModel;
}

std::shared_ptr<const Geometry> Targets::geometry_of(const Target& target, const std::string& model) {
  const auto engine = std::find_if(target.engines.begin(), target.engines.end(),
                                   [&](const EngineFacts& one) { return one.model == model; });
  return engine == target.engines.end() ? nullptr : engine->geometry;
}

// Books that may hold streams of several engines. Where it did not say what it lists, two names may be one model's.
bool Targets::is_mixed(const Target& target, const std::string& model) {
  if (target.answers == 0) return target.mixed && target.family == ServerFamily::kOllama;
  return target.engines.size() > 1 && (model == kUnknownModel || model == kOtherModels);
}

EngineBooks& Targets::books_for(Target& target, const ExchangeBegin& begin) {
  if (target.engines.empty() && begin.model != 0) {
    if (target.first_model == 0) target.first_model = begin.model;
    target.mixed = target.mixed || target.first_model != begin.model;
  }
  // What a proxy passes on counts behind it, and the rest is of no engine.
  if (target.engines.empty() || target.is_proxy()) return *target.books;
  const std::string model = model_of(target, begin.model);
  return model == target.model ? *target.books : further_books(target, model, begin.at);
}

EngineBooks& Targets::further_books(Target& target, const std::string& model, LineTime now) {
  const auto find = [&target](const std::string& name) {
    return std::find_if(target.further.begin(), target.further.end(),
                        [&](const ModelBooks& one) { return one.model == name; });
  };
  auto found = find(model);
  const bool full = target.further.size() + 1 >= options_.models_max;
  const std::string& name = found == target.further.end() && full ? kOtherModels : model;
  if (name == kOtherModels) found = find(name);
  if (found == target.further.end()) {
    target.further.push_back(ModelBooks{name, now, new_books(target, now)});
    found = std::prev(target.further.end());
    found->books->set_geometry(geometry_of(target, name));
  }
  found->used = now;
  return *found->books;
}

// Requires: the server was asked. Its first books are those of the one model that was asked for until now.
void Targets::learn_engines(Target& target, const std::vector<EngineFacts>& engines) {
  const LineTime now = std::max(now_, target.began);
  if (engines.empty()) {
    // Another kind of server in its place.
    for (ModelBooks& one : target.further) target.retired.push_back(ModelBooks{one.model, now, std::move(one.books)});
    target.further.clear();
  }
  const bool first = target.engines.empty();
  target.engines = engines;
  if (engines.empty()) return;
  const bool listed = std::any_of(engines.begin(), engines.end(),
                                  [&target](const EngineFacts& one) { return one.model == target.model; });
  if (first && target.model != kUnknownModel && !listed) {
    retire(target);
    target.model = kUnknownModel;
  } else if (first && (!target.mixed || engines.size() == 1)) {
    target.model = listed ? target.model : model_of(target, target.first_model);
  }
  const auto tell = [&target](const std::string& model, EngineBooks& books) {
    if (auto geometry = geometry_of(target, model)) books.set_geometry(std::move(geometry));
  };
  tell(target.model, *target.books);
  for (const ModelBooks& one : target.further) tell(one.model, *one.books);
}

// Requires: it has one engine.
void Targets::learn_model(Target& target, const std::string& model) {
  if (model.empty()) return;
  if (target.model != kUnknownModel && target.model != model) {
    log::info("target {}: model {} instead of {}", target.name, model, target.model);
    retire(target);
  }
  target.model = model;
}

// A model has answered that was not loaded, or not there, when the server was asked.
void Targets::ask_for_model(Target& target, const EngineBooks& books) {
  constexpr Duration kFirstPause = std::chrono::seconds(10);
  constexpr Duration kLastPause = std::chrono::hours(1);
  if (target.engines.empty() || books.geometry() != nullptr || target.is_proxy() || now_ < target.ask_at) return;
  target.ask_pause = std::clamp(2 * target.ask_pause, kFirstPause, kLastPause);
  target.ask_at = now_ + target.ask_pause;
  if (on_found_) on_found_(Found{target.endpoint, target.family});
}

// Another model on the same port: books of its own, so that no count moves from one label to another.
void Targets::retire(Target& target) {
  constexpr std::size_t kRetiredMax = 8;
  const LineTime now = std::max(now_, target.began);
  target.retired.push_back(ModelBooks{target.model, now, std::move(target.books)});
  target.books = new_books(target, now);
  const bool drained = target.retired.front().books->exchanges_in_flight() == 0;
  if (target.retired.size() > kRetiredMax && drained) target.retired.erase(target.retired.begin());
}

void Targets::forget_unused(Target& target, LineTime now) {
  const auto over = [&](const ModelBooks& one) {
    return now - one.used > options_.forget_after && one.books->exchanges_in_flight() == 0;
  };
  std::erase_if(target.retired, over);
  std::erase_if(target.further, over);
}

}  // namespace rooflined::daemon
