#include "daemon/hub_cache.h"

#include "collectors/model/hf_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <vector>

namespace rooflined::daemon {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kNameBytesMax = 200;
constexpr std::size_t kEnvironmentBytesMax = 128 * 1024;
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

// Caches that the process was told of, as paths that it would use.
std::vector<std::string> told_caches(const std::string& environment_path) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kVariables = {
      {{"HF_HUB_CACHE=", ""},
       {"HUGGINGFACE_HUB_CACHE=", ""},
       {"HF_HOME=", "/hub"},
       {"HOME=", "/.cache/huggingface/hub"}}};
  std::ifstream file(environment_path, std::ios::binary);
  std::string text;
  for (std::istreambuf_iterator<char> it(file), end; it != end && text.size() < kEnvironmentBytesMax; ++it) text += *it;
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

// Of root, of each home, and of the usual containers.
std::vector<std::string> usual_caches(const std::string& root) {
  std::vector<std::string> caches = {"/root/.cache/huggingface/hub", "/data", "/var/lib/huggingface/hub"};
  std::error_code error;
  for (fs::directory_iterator it(root + "/home", error), end; !error && it != end && caches.size() < kHomesMax;
       it.increment(error)) {
    caches.push_back("/home/" + it->path().filename().string() + "/.cache/huggingface/hub");
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
