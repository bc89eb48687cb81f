#include "daemon/hub_cache.h"

#include "collectors/model/hf_folder.h"
#include "metrics/base/file_start.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <vector>

namespace rooflined::daemon {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kNameBytesMax = 200;
constexpr std::size_t kTextBytesMax = 128 * 1024;
constexpr std::size_t kHomesMax = 256;

// One owner and one name, of the characters that the hub allows: nothing that leads out of a folder.
bool is_hub_name(std::string_view name) {
  const std::size_t slash = name.find('/');
  if (slash == 0 || slash == std::string_view::npos || slash + 1 == name.size() || name.size() > kNameBytesMax)
    return false;
  return name.front() != '.' && std::count(name.begin(), name.end(), '/') == 1 &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
                  c == '.' || c == '/';
         });
}

// The start of a file that another process shapes; empty for a pipe or a device, which could make us wait.
std::string read_start(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return {};
  return read_file_start(path, kTextBytesMax);
}

// Caches that the process was told of, as paths that it would use.
std::vector<std::string> told_caches(const std::string& environment_path) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kVariables = {
      {{"HF_HUB_CACHE=", ""},
       {"HUGGINGFACE_HUB_CACHE=", ""},
       {"HF_HOME=", "/hub"},
       {"HOME=", "/.cache/huggingface/hub"}}};
  const std::string text = read_start(environment_path);
  std::vector<std::string> caches;
  for (const auto& [variable, below] : kVariables) {
    for (std::size_t at = 0; at < text.size(); at = std::min(text.find('\0', at), text.size()) + 1) {
      const std::string_view one = std::string_view(text).substr(at, text.find('\0', at) - at);
      if (one.starts_with(variable) && one.size() > variable.size() && one[variable.size()] == '/') {
        caches.push_back(std::string(one.substr(variable.size())) + std::string(below));
      }
    }
  }
  return caches;
}

// Of each user's home, as passwd(5) has it or as a folder of /home, and of the usual containers.
std::vector<std::string> usual_caches(const std::string& root) {
  constexpr std::string_view kBelowHome = "/.cache/huggingface/hub";
  constexpr int kHomeField = 5;
  std::vector<std::string> caches = {"/data", "/var/lib/huggingface/hub"};
  std::istringstream users(read_start(root + "/etc/passwd"));
  for (std::string line; caches.size() < kHomesMax && std::getline(users, line);) {
    std::istringstream fields(line);
    std::string home;
    for (int field = 0; field <= kHomeField; ++field) std::getline(fields, home, ':');
    if (home.starts_with('/')) caches.push_back(home + std::string(kBelowHome));
  }
  std::error_code error;
  for (fs::directory_iterator it(root + "/home", error), end; !error && it != end && caches.size() < kHomesMax;
       it.increment(error)) {
    caches.push_back("/home/" + it->path().filename().string() + std::string(kBelowHome));
  }
  return caches;
}

}  // namespace

std::optional<std::string> find_in_hub_cache(std::string_view name, const Endpoint& endpoint,
                                             const server::ProcessOptions& options) {
  if (!is_hub_name(name)) return std::nullopt;
  std::string folder = "/models--" + std::string(name);
  folder.replace(folder.find('/', 1), 1, "--");
  const auto look = [&folder](const std::string& root,
                              const std::vector<std::string>& caches) -> std::optional<std::string> {
    for (const std::string& cache : caches) {
      std::string snapshot = model::snapshot_folder(root + cache + folder);
      std::error_code error;
      if (fs::is_regular_file(snapshot + "/config.json", error)) return snapshot;
    }
    return std::nullopt;
  };
  if (const Result<std::int64_t> process = server::find_listener(endpoint, options)) {
    const std::string links = fmt::format("{}/{}", options.proc, *process);
    const std::string root = links + "/root";
    if (auto found = look(root, told_caches(links + "/environ"))) return found;
    if (auto found = look(root, usual_caches(root))) return found;
  }
  return look(options.root, usual_caches(options.root));
}

}  // namespace rooflined::daemon
