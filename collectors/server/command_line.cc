#include "collectors/server/command_line.h"

#include "metrics/base/file_start.h"
#include "metrics/base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>

namespace rooflined::server {
namespace {

constexpr std::size_t kTextBytesMax = 128 * 1024;

std::string_view next_word(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find('\0'));
  text.remove_prefix(std::min(word.size() + 1, text.size()));
  return word;
}

// The value of the last option of these names: "--name value" and "--name=value".
std::string_view option(std::string_view command_line, std::initializer_list<std::string_view> names) {
  std::string_view found;
  while (!command_line.empty()) {
    const std::string_view word = next_word(command_line);
    for (const std::string_view name : names) {
      if (word == name) found = command_line.substr(0, command_line.find('\0'));
      if (word.starts_with(name) && word.size() > name.size() && word[name.size()] == '=') {
        found = word.substr(name.size() + 1);
      }
    }
  }
  return found;
}

std::string_view variable(std::string_view environment, std::string_view name) {
  while (!environment.empty()) {
    const std::string_view word = next_word(environment);
    if (word.starts_with(name) && word.size() > name.size() && word[name.size()] == '=') {
      return word.substr(name.size() + 1);
    }
  }
  return {};
}

std::string_view first_of(std::string_view a, std::string_view b) {
  return a.empty() ? b : a;
}

}  // namespace

std::string cache_type_of(std::string_view command_line, std::string_view environment) {
  constexpr std::size_t kNameBytesMax = 32;
  constexpr std::string_view kDefault = "f16";                                                   // llama.cpp's
  const std::string_view both = option(command_line, {"--kv-cache-dtype", "--kv_cache_dtype"});  // vLLM, SGLang
  if (!both.empty()) return both == "auto" ? std::string() : to_label(both, kNameBytesMax);
  const std::string_view key =
      first_of(option(command_line, {"--cache-type-k", "-ctk"}), variable(environment, "LLAMA_ARG_CACHE_TYPE_K"));
  const std::string_view value =
      first_of(option(command_line, {"--cache-type-v", "-ctv"}), variable(environment, "LLAMA_ARG_CACHE_TYPE_V"));
  if (key.empty() && value.empty()) return {};
  return fmt::format("{},{}", to_label(first_of(key, kDefault), kNameBytesMax),
                     to_label(first_of(value, kDefault), kNameBytesMax));
}

std::string cache_type_of_listener(const Endpoint& endpoint, const ProcessOptions& options) {
  const Result<std::int64_t> process = find_listener(endpoint, options);
  if (!process) return {};
  const std::string folder = fmt::format("{}/{}", options.proc, *process);
  return cache_type_of(read_file_start(folder + "/cmdline", kTextBytesMax),
                       read_file_start(folder + "/environ", kTextBytesMax));
}

}  // namespace rooflined::server
