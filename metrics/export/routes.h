// What each path of the endpoint answers: /metrics, /healthz, /readyz, /api/v1/state, /api/v1/history and a page for
// people on /.
//
// The page and the API answer only to a Host that cannot be a stranger's domain name pointed at this address (DNS
// rebinding). Thread rule: one thread at a time; the snapshot comes through SnapshotSource.

#pragma once

#include "metrics/export/basic_auth.h"
#include "metrics/export/http_engine.h"
#include "metrics/export/scrape.h"

#include <functional>
#include <set>
#include <string>

namespace rooflined::metrics_export {

class Routes {
 public:
  struct Options {
    std::string version;
    std::string proc_root = "/proc";
    std::string listen_host;  // accepted as a Host, beside localhost, IP literals and the host's own name
    std::map<std::string, std::string> basic_auth_users;
  };

  Routes(const Options& options, SnapshotSource source, std::function<WebCounters()> web_counters,
         std::function<MonotonicTime()> now);

  HttpResponse answer(const HttpRequest& request);

  // Exposed for its table of tests. `host` is the header's value, a port included.
  bool host_allowed(std::string_view host) const;

 private:
  HttpResponse route(const HttpRequest& request) const;
  HttpResponse metrics() const;
  HttpResponse ready() const;

  std::string version_;
  std::string page_policy_;
  std::string proc_root_;
  std::set<std::string> host_names_;
  SnapshotSource source_;
  std::function<WebCounters()> web_counters_;
  std::function<MonotonicTime()> now_;
  BasicAuth auth_;
};

}  // namespace rooflined::metrics_export
