#include "collectors/model/catalogue.h"

#include "collectors/model/gguf_model.h"
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
  std::string name(hub_name);
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

// With the owner, or without one.
const Published* find_published(std::string_view name) {
  if (name.empty() || name.find(' ') != std::string_view::npos) return nullptr;
  const std::string word = std::string(name) + ' ';
  const bool owned = name.find('/') != std::string_view::npos;
  for (const Published& published : kPublished) {
    for (std::size_t at = published.names.find(word); at != std::string_view::npos;
         at = published.names.find(word, at + 1)) {
      const char before = at == 0 ? ' ' : published.names[at - 1];
      if (before == ' ' || (before == '/' && !owned)) return &published;
    }
  }
  return nullptr;
}

}  // namespace

// The whole name first: another owner's model of that last part may have another shape, and be listed as well.
std::optional<ModelFile> catalogue_model(std::string_view hub_name) {
  const std::string name = plain_name(hub_name);
  const std::string last = name.substr(name.rfind('/') + 1);
  const Published* published = find_published(name);
  if (published == nullptr) published = find_published(last);
  if (published == nullptr) return std::nullopt;
  Result<ModelFile> model = describe_config(published->config, last);
  if (!model) return std::nullopt;
  model->name = last;
  return std::move(*model);
}

std::optional<ModelFile> catalogue_model_of_file(std::string_view file_name) {
  constexpr std::string_view kSuffix = ".gguf";
  std::string name = plain_name(file_name.substr(file_name.rfind('/') + 1));
  if (name.ends_with(kSuffix)) name.resize(name.size() - kSuffix.size());
  if (const std::string label = plain_name(label_of_file_name(name)); !label.empty()) {
    name.resize(name.rfind(label));
    while (!name.empty() && (name.back() == '-' || name.back() == '.' || name.back() == '_')) name.pop_back();
    if (name.ends_with("-ud")) name.resize(name.size() - 3);  // one publisher's mixtures
  }
  return catalogue_model(name);
}

}  // namespace rooflined::model
