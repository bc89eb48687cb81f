#include "metrics/export/basic_auth.h"

#include <crypt.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <chrono>
#include <memory>
#include <vector>

namespace rooflined::metrics_export {

namespace {

constexpr std::size_t kCredentialsMax = 1024;
constexpr Duration kAllowedFor = std::chrono::minutes(10);
constexpr Duration kCheckSpacing = std::chrono::seconds(1);

// "user:password" out of "Basic dXNlcjpwYXNzd29yZA==".
std::optional<std::string> decode_credentials(std::string_view authorization) {
  constexpr std::string_view kScheme = "Basic ";
  if (authorization.size() < kScheme.size()) return std::nullopt;
  for (std::size_t i = 0; i < kScheme.size(); ++i) {
    if ((authorization[i] | 0x20) != (kScheme[i] | 0x20)) return std::nullopt;
  }
  const std::string_view text = authorization.substr(kScheme.size());
  if (text.empty() || text.size() > kCredentialsMax || text.size() % 4 != 0) return std::nullopt;
  std::vector<unsigned char> bytes(text.size());
  const int decoded =
      EVP_DecodeBlock(bytes.data(), reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (decoded < 0) return std::nullopt;
  // EVP_DecodeBlock counts the padding as bytes.
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string credentials(bytes.begin(), bytes.begin() + decoded - static_cast<std::ptrdiff_t>(padding));
  OPENSSL_cleanse(bytes.data(), bytes.size());
  if (credentials.find(':') == std::string::npos || credentials.find('\0') != std::string::npos) return std::nullopt;
  return credentials;
}

bool bcrypt_matches(const std::string& password, const std::string& hash) {
  const auto data = std::make_unique<crypt_data>();  // 32 KiB, too much for a stack
  const char* result = ::crypt_r(password.c_str(), hash.c_str(), data.get());
  const bool matches = result != nullptr && std::string_view(result).size() == hash.size() &&
                       CRYPTO_memcmp(result, hash.data(), hash.size()) == 0;
  OPENSSL_cleanse(data.get(), sizeof(crypt_data));
  return matches;
}

}  // namespace

BasicAuth::BasicAuth(std::map<std::string, std::string> users) : users_(std::move(users)) {
  RAND_bytes(key_.data(), static_cast<int>(key_.size()));
}

std::optional<BasicAuth::Digest> BasicAuth::digest_of(std::string_view credentials) const {
  Digest digest{};
  unsigned size = 0;
  if (HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()),
           reinterpret_cast<const unsigned char*>(credentials.data()), credentials.size(), digest.data(),
           &size) == nullptr) {
    return std::nullopt;
  }
  return digest;
}

BasicAuth::Verdict BasicAuth::check(std::string_view authorization, MonotonicTime now) {
  if (users_.empty()) return Verdict::kAllowed;
  const auto credentials = decode_credentials(authorization);
  if (!credentials) return Verdict::kDenied;
  const std::string user = credentials->substr(0, credentials->find(':'));
  const auto digest = digest_of(*credentials);
  const auto remembered = allowed_.find(user);
  if (digest && remembered != allowed_.end() && now < remembered->second.second &&
      CRYPTO_memcmp(digest->data(), remembered->second.first.data(), digest->size()) == 0) {
    return Verdict::kAllowed;
  }
  if (now < next_check_) return Verdict::kBusy;
  next_check_ = now + kCheckSpacing;
  const auto known = users_.find(user);
  const std::string& hash = known != users_.end() ? known->second : users_.begin()->second;
  const bool matches = bcrypt_matches(credentials->substr(user.size() + 1), hash);
  if (!matches || known == users_.end()) return Verdict::kDenied;
  if (digest) allowed_[user] = {*digest, now + kAllowedFor};
  return Verdict::kAllowed;
}

}  // namespace rooflined::metrics_export
