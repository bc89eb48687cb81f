#include "daemon/exposure.h"

#include "metrics/export/listen_socket.h"

#include <arpa/inet.h>
#include <fmt/format.h>

namespace rooflined::daemon {
namespace {

bool is_loopback(const std::string& host) {
  constexpr in_addr_t kLoopbackNetwork = 127;
  in_addr ipv4{};
  if (inet_pton(AF_INET, host.c_str(), &ipv4) == 1) return ntohl(ipv4.s_addr) >> 24 == kLoopbackNetwork;
  in6_addr ipv6{};
  if (inet_pton(AF_INET6, host.c_str(), &ipv6) == 1) {
    return IN6_IS_ADDR_LOOPBACK(&ipv6) || (IN6_IS_ADDR_V4MAPPED(&ipv6) && ipv6.s6_addr[12] == kLoopbackNetwork);
  }
  return host == "localhost";
}

}  // namespace

bool open_to_network(const std::string& listen) {
  const auto address = metrics_export::parse_listen_address(listen);
  return address.ok() && !is_loopback(address->host);
}

std::optional<std::string> exposure_of(const config::WebConfig& web) {
  if (!open_to_network(web.listen) || !web.basic_auth_users.empty()) return std::nullopt;
  return fmt::format("/metrics on {} is open to the network and asks for no password ([web] basic_auth_users{})",
                     web.listen, web.tls_certificate.empty() ? ", tls_certificate, tls_key" : "");
}

}  // namespace rooflined::daemon
