#include "daemon/scrape_source.h"

#include <fmt/format.h>
#include <httplib.h>

namespace rooflined::daemon {
namespace {

constexpr int kSecondsMax = 10;

}  // namespace

Result<std::string> fetch_scrape(const std::string& url) {
  const std::size_t path_at = url.find('/', url.find("//") + 2);
  const std::string base = url.substr(0, path_at);
  const std::string path = path_at == std::string::npos || path_at + 1 == url.size() ? "/metrics" : url.substr(path_at);
  httplib::Client client(base);
  if (!client.is_valid()) return Error{ErrorCode::kInvalid, url, "not a URL (http://127.0.0.1:10074/metrics is one)"};
  client.set_connection_timeout(kSecondsMax);
  client.set_read_timeout(kSecondsMax);
  std::string body;
  int status = 0;
  const auto result = client.Get(
      path,
      [&status](const httplib::Response& response) {
        status = response.status;
        return status == 200;
      },
      [&body](const char* data, std::size_t size) {
        if (body.size() + size > kScrapeBytesMax) return false;
        body.append(data, size);
        return true;
      });
  if (status != 0 && status != 200) return Error{ErrorCode::kIo, url, fmt::format("HTTP status {}, not 200", status)};
  if (!result) return Error{ErrorCode::kIo, url, httplib::to_string(result.error())};
  return body;
}

}  // namespace rooflined::daemon
