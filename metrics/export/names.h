// How the enumerated values of a snapshot are called in labels and in JSON, by index.

#pragma once

#include <array>
#include <string_view>

namespace rooflined::metrics_export {

inline constexpr std::array<std::string_view, 3> kOutcomeNames = {"ok", "aborted", "error"};  // Outcome
inline constexpr std::array<std::string_view, 3> kTokenSourceNames = {"exact_live", "exact_final", "estimated"};
inline constexpr std::array<std::string_view, 6> kDeployCauseNames = {"restart",  "version", "model",
                                                                      "settings", "marked",  "machine"};
inline constexpr std::array<std::string_view, 4> kMeasurementNames = {"adopted", "unstable", "suspect", "aborted"};

}  // namespace rooflined::metrics_export
