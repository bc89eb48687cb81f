// What is remembered of the targets across restarts of the daemon: for each its generations, the slices that later ones
// are compared with, and what it taught of the length of tokens.
//
//   file:  deploys.json in the state directory {version, targets[{family, model, port, place, boot_id, socket, …}]};
//          files without `learned` are of an earlier build and load, too
//
// Slices are one text for each generation, "index,log batch,log context,log itl,log rate;…", in ten-thousandths: 2,000
// of them are 60 kB. Nothing here throws; a target that is broken costs itself, a file that is broken is an error.
// Bounded by kFileBytesMax and by what DeployState holds. Threads: any.

#pragma once

#include "collectors/server/deploy_history.h"
#include "metrics/base/result.h"
#include "metrics/token_estimate.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rooflined::daemon {

struct DeployKey {
  std::string family;
  std::string model;
  std::uint16_t port = 0;
  std::uint32_t place = 0;  // among several that run at the same time with all this alike

  friend auto operator<=>(const DeployKey&, const DeployKey&) = default;
};

struct KeptDeploys {
  DeployKey key;
  // Of the instance that ran last: the machine's start and the inode of its socket, where known.
  std::string boot_id;
  std::uint64_t socket = 0;
  server::DeployState state;
  LearnedTokens learned{};
};

std::string deploy_state_path(const std::string& directory);

// What was wrong with the file is one log line; a missing one is none.
std::vector<KeptDeploys> load_deploys(const std::string& directory);
Status save_deploys(const std::string& directory, const std::vector<KeptDeploys>& deploys);

// The text of the file; separate for tests and the fuzz target.
std::string deploy_state_text(const std::vector<KeptDeploys>& deploys);
Result<std::vector<KeptDeploys>> parse_deploy_state(std::string_view text);

}  // namespace rooflined::daemon
