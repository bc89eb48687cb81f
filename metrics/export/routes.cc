#include "metrics/export/routes.h"

#include "metrics/export/page.h"
#include "metrics/export/state_json.h"

#include <arpa/inet.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

namespace rooflined::metrics_export {

namespace {

HttpResponse plain(int status, std::string text) {
  HttpResponse response;
  response.status = status;
  response.body = std::move(text);
  return response;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lower;
}

bool is_ip_literal(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  return ::inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
}

// The name in a Host header: without port, without brackets, without the root's dot.
std::string host_name(std::string_view header) {
  if (header.starts_with('[')) {
    const std::size_t end = header.find(']');
    return end == std::string_view::npos ? std::string() : std::string(header.substr(1, end - 1));
  }
  std::string name = lower_case(header.substr(0, header.find(':')));
  if (name.ends_with('.')) name.pop_back();
  return name;
}

bool needs_known_host(const std::string& path) {
  return path == "/" || path.starts_with("/api/");
}

}  // namespace

Routes::Routes(const Options& options, SnapshotSource source, std::function<WebCounters()> web_counters,
               std::function<MonotonicTime()> now)
    : version_(options.version),
      page_policy_(page_policy(page_html())),
      proc_root_(options.proc_root),
      source_(std::move(source)),
      web_counters_(std::move(web_counters)),
      now_(std::move(now)),
      auth_(options.basic_auth_users) {
  host_names_.insert("localhost");
  if (!options.listen_host.empty()) host_names_.insert(lower_case(options.listen_host));
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0') {
    const std::string own = lower_case(name.data());
    host_names_.insert(own);
    host_names_.insert(own.substr(0, own.find('.')));
  }
}

bool Routes::host_allowed(std::string_view host) const {
  const std::string name = host_name(host);
  return !name.empty() && (host_names_.contains(name) || is_ip_literal(name));
}

HttpResponse Routes::answer(const HttpRequest& request) {
  switch (auth_.check(request.authorization, now_())) {
    case BasicAuth::Verdict::kAllowed:
      break;
    case BasicAuth::Verdict::kDenied: {
      HttpResponse response = plain(401, "authentication required\n");
      response.headers.emplace_back("WWW-Authenticate", "Basic realm=\"rooflined\", charset=\"UTF-8\"");
      return response;
    }
    case BasicAuth::Verdict::kBusy: {
      HttpResponse response = plain(503, "another password was checked a moment ago: try again\n");
      response.headers.emplace_back("Retry-After", "1");
      return response;
    }
  }
  HttpResponse response = route(request);
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  response.headers.emplace_back("Cache-Control", "no-store");
  response.headers.emplace_back("Vary", "Accept-Encoding");
  return response;
}

HttpResponse Routes::route(const HttpRequest& request) const {
  static const std::set<std::string> kPaths = {"/",       "/metrics",      "/healthz",
                                               "/readyz", "/api/v1/state", "/api/v1/history"};
  if (!kPaths.contains(request.path)) {
    return plain(404, "not found; there are /, /metrics, /healthz, /readyz, /api/v1/state and /api/v1/history\n");
  }
  if (request.method != "GET" && request.method != "HEAD") {
    HttpResponse response = plain(405, "only GET and HEAD\n");
    response.headers.emplace_back("Allow", "GET, HEAD");
    return response;
  }
  if (needs_known_host(request.path) && !host_allowed(request.host)) {
    return plain(403, "unknown Host: use the address, localhost or this host's own name\n");
  }
  if (request.path == "/metrics") return metrics();
  if (request.path == "/healthz") return plain(200, "ok\n");
  if (request.path == "/readyz") return ready();
  HttpResponse response;
  if (request.path == "/") {
    response.content_type = "text/html; charset=utf-8";
    response.headers.emplace_back("Content-Security-Policy", page_policy_);
    response.headers.emplace_back("Referrer-Policy", "no-referrer");
    response.body = page_html();
    return response;
  }
  const auto snapshot = source_();
  if (snapshot == nullptr) return plain(503, "no snapshot yet\n");
  response.content_type = "application/json";
  response.body = request.path == "/api/v1/history" ? history_json(*snapshot) : state_json(*snapshot, version_);
  return response;
}

HttpResponse Routes::metrics() const {
  const auto snapshot = source_();
  HttpResponse response;
  response.content_type = kPrometheusContentType;
  response.body =
      prometheus_text(metric_families(snapshot.get(), {version_, read_process_stats(proc_root_), web_counters_()}));
  if (response.body.empty()) return plain(500, "the metrics could not be written\n");
  return response;
}

HttpResponse Routes::ready() const {
  const auto snapshot = source_();
  if (snapshot == nullptr) return plain(503, "no snapshot yet\n");
  if (!capture_is_up(*snapshot)) return plain(503, "the capture is down\n");
  return plain(200, "ready\n");
}

}  // namespace rooflined::metrics_export
