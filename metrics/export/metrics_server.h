// The HTTP endpoint: listens, and serves the newest snapshot from a thread of its own.
//
// Bounds: http_loop.h. start() and stop() may be called from any thread, one after the other or at once; neither
// throws. A failed start() says what and why in one line, and leaves nothing running.

#pragma once

#include "metrics/base/result.h"
#include "metrics/export/http_loop.h"
#include "metrics/export/scrape.h"

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace rooflined::metrics_export {

class MetricsServer {
 public:
  struct Options {
    std::string listen = "127.0.0.1:10074";  // "ADDRESS:PORT", "[IPV6]:PORT", ":PORT"; port 0: any free one
    std::string version;
    std::string tls_certificate;  // PEM files, both or none; given: TLS only
    std::string tls_key;
    std::map<std::string, std::string> basic_auth_users;  // user → bcrypt hash; given: no access without
    std::string proc_root = "/proc";
    HttpLimits limits;
  };

  // Requires: `source` may be called from another thread until stop() has returned.
  MetricsServer(Options options, SnapshotSource source);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

  // Binds and serves; ok when it serves already.
  Status start();
  void stop();

  // Where it listens since the last start(): "127.0.0.1:10074", and the port alone.
  std::string address() const;
  std::uint16_t port() const;

 private:
  Options options_;
  SnapshotSource source_;
  mutable std::mutex mutex_;
  std::unique_ptr<HttpLoop> loop_;
  std::thread thread_;
  std::string address_;
  std::uint16_t port_ = 0;
};

}  // namespace rooflined::metrics_export
