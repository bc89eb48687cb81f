#include "collectors/model/catalogue.h"

#include "collectors/model/hf_model.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace rooflined::model {
namespace {

struct Published {
  std::string_view names;  // each with a space behind it
  std::string_view config;
};

constexpr auto kPublished = std::to_array<Published>({
#include "collectors/model/catalogue_table.inc"
});

// What publishers add to a name without changing the shape.
constexpr std::array<std::string_view, 8> kSuffixes = {"-instruct", "-it",   "-chat",     "-hf",
                                                       "-base",     "-2507", "-thinking", "-pt"};

std::string plain_name(std::string_view hub_name) {
  std::string name(hub_name.substr(hub_name.rfind('/') + 1));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view suffix : kSuffixes) {
      if (!name.ends_with(suffix)) continue;
      name.resize(name.size() - suffix.size());
      again = true;
    }
  }
  return name;
}

}  // namespace

std::optional<ModelFile> catalogue_model(std::string_view hub_name) {
  const std::string name = plain_name(hub_name);
  if (name.empty() || name.find(' ') != std::string::npos) return std::nullopt;
  for (const Published& published : kPublished) {
    const std::size_t at = published.names.find(name + ' ');
    if (at == std::string_view::npos || (at > 0 && published.names[at - 1] != ' ')) continue;
    Result<ModelFile> model = describe_config(published.config, name);
    if (!model) return std::nullopt;
    model->name = name;
    return std::move(*model);
  }
  return std::nullopt;
}

}  // namespace rooflined::model
