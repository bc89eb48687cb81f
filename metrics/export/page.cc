#include "metrics/export/page.h"

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#include <array>

namespace rooflined::metrics_export {

namespace {

// What stands between <name> and </name>, as a source expression of a policy.
std::string hash_source(std::string_view html, std::string_view name) {
  const std::string open = fmt::format("<{}>", name);
  const std::size_t begin = html.find(open) + open.size();
  const std::string_view element = html.substr(begin, html.find(fmt::format("</{}>", name), begin) - begin);
  const std::string bytes(element);
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  std::array<unsigned char, 4 * ((SHA256_DIGEST_LENGTH + 2) / 3) + 1> base64{};
  EVP_EncodeBlock(base64.data(), digest.data(), static_cast<int>(digest.size()));
  std::string source = "'sha256-";
  for (const unsigned char c : base64) {
    if (c != 0) source.push_back(static_cast<char>(c));
  }
  return source + "'";
}

}  // namespace

std::string page_policy(std::string_view html) {
  return fmt::format(
      "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src data:; base-uri 'none'; "
      "form-action 'none'; frame-ancestors 'none'",
      hash_source(html, "script"), hash_source(html, "style"));
}

}  // namespace rooflined::metrics_export
