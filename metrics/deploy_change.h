// What a deploy did to an engine, at like batch and context, and how sure that is: deploy-change.md, steps 2 to 5.
//
//   in:   the slices of the generation before, and those of the new one
//   out:  after over before, with the bounds that hold the true ratio in 99 of 100 cases
//
// Pure functions; a few thousand operations a call.

#pragma once

#include "metrics/deploy_slices.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace rooflined {

inline constexpr std::size_t kDeploySlicesMax = 2000;  // kept of a generation
inline constexpr std::size_t kDeployBeforeMin = 60;
inline constexpr std::size_t kDeployAfterMin = 12;

enum class ChangeOf : std::uint8_t {
  kRate,  // bytes per second of a pass: MBU, whatever the ceiling
  kItl,
};

struct DeployChange {
  double ratio = 1;
  double low = 1;
  double high = 1;
  std::size_t slices = 0;  // after, at work that was there before, too
};

// Absent with too few slices on either side, or where nothing can be said within a factor of a hundred.
// Requires: both sides in the order of time.
std::optional<DeployChange> deploy_change(std::span<const DeploySlice> before, std::span<const DeploySlice> after,
                                          ChangeOf what);

}  // namespace rooflined
