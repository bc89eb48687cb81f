// HTTP basic authentication against bcrypt hashes, as the Prometheus exporters have it.
//
// A bcrypt check is made to be slow, so credentials that were right are remembered (as a keyed hash) for ten minutes,
// and others are checked at most once a second: a scrape costs nothing, and a guesser cannot take CPU from the
// inference server. An unknown user costs as much as a wrong password. Thread rule: one thread at a time. Holds no
// clock.

#pragma once

#include "metrics/base/time.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace rooflined::metrics_export {

class BasicAuth {
 public:
  enum class Verdict { kAllowed, kDenied, kBusy };

  // User → bcrypt hash ("$2y$10$…"). Empty: everybody is allowed.
  explicit BasicAuth(std::map<std::string, std::string> users);

  // `authorization` is the header's value.
  Verdict check(std::string_view authorization, MonotonicTime now);

 private:
  using Digest = std::array<unsigned char, 32>;

  std::optional<Digest> digest_of(std::string_view credentials) const;

  std::map<std::string, std::string> users_;
  std::array<unsigned char, 32> key_{};
  std::map<std::string, std::pair<Digest, MonotonicTime>> allowed_;  // by user: one entry each, with its end
  MonotonicTime next_check_ = MonotonicTime::min();
};

}  // namespace rooflined::metrics_export
