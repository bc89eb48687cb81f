// Gathers what `rooflined doctor` looks at: the settings, this host, the running daemon's own state, and the servers'
// answers about their models. Loads and changes nothing. Threads: one; blocks for a few seconds at most.

#pragma once

#include "daemon/doctor.h"

#include <nlohmann/json.hpp>

#include <string>

namespace rooflined::daemon {

struct DoctorOptions {
  std::string settings_path = "/etc/rooflined/rooflined.toml";
  bool settings_named = false;
  std::string root = "/";          // of /proc and /sys, so that tests bring their own
  std::string user = "rooflined";  // that the daemon runs as
};

struct GatheredFacts {
  nlohmann::json state;
  DoctorFacts facts;  // its `state` points into the above
};

void gather(const DoctorOptions& options, GatheredFacts& into);

// Whether a user may read a file: the mode bits on the way to it, as that user's groups meet them. Access lists are not
// looked at. The answer's `group`: joining it would do.
struct ReadCheck {
  bool readable = false;
  std::string group;
};
ReadCheck readable_by(const std::string& user, const std::string& path);

}  // namespace rooflined::daemon
