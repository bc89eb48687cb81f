// The HostNetwork of this machine.

#include "collectors/tap/local_host.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <system_error>

namespace rooflined::tap {

namespace {

namespace fs = std::filesystem;

constexpr Address kIpv4Prefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool is_ipv4(const Address& address) {
  return std::equal(address.begin(), address.begin() + 12, kIpv4Prefix.begin());
}

// A VLAN on a bond on a card is three deep.
constexpr int kStackDepthMax = 4;

bool is_card_by_name(const fs::path& class_net, const std::string& name, int depth) {
  std::error_code error;
  const fs::path folder = class_net / name;
  if (fs::exists(folder / "device", error)) return true;
  // A bridge has its ports as lower devices, a card among them perhaps: what goes over the card is seen there.
  if (depth == 0 || fs::exists(folder / "bridge", error)) return false;
  constexpr std::string_view kLower = "lower_";
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string file = entry->path().filename().string();
    if (file.starts_with(kLower) && is_card_by_name(class_net, file.substr(kLower.size()), depth - 1)) return true;
  }
  return false;
}

class Socket {
 public:
  explicit Socket(int descriptor) : descriptor_(descriptor) {}
  ~Socket() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

struct RouteRequest {
  nlmsghdr header;
  rtmsg route;
  rtattr attribute;
  std::array<std::uint8_t, 16> destination;
};

// RTA_OIF of an RTM_NEWROUTE answer.
std::optional<std::uint32_t> output_interface(const char* reply, std::size_t size) {
  nlmsghdr header{};
  if (size < sizeof header) return std::nullopt;
  std::memcpy(&header, reply, sizeof header);
  const std::size_t end = std::min<std::size_t>(size, header.nlmsg_len);
  if (header.nlmsg_type != RTM_NEWROUTE) return std::nullopt;
  for (std::size_t at = NLMSG_SPACE(sizeof(rtmsg)); at + sizeof(rtattr) <= end;) {
    rtattr attribute{};
    std::memcpy(&attribute, reply + at, sizeof attribute);
    if (attribute.rta_len < sizeof attribute || at + attribute.rta_len > end) return std::nullopt;
    std::uint32_t value = 0;
    if (attribute.rta_type == RTA_OIF && attribute.rta_len == RTA_LENGTH(sizeof value)) {
      std::memcpy(&value, reply + at + sizeof attribute, sizeof value);
      return value;
    }
    at += RTA_ALIGN(attribute.rta_len);
  }
  return std::nullopt;
}

class SystemHostNetwork final : public HostNetwork {
 public:
  explicit SystemHostNetwork(const fs::path& sys_root) : class_net_(sys_root / "class" / "net") {}

  std::vector<Address> addresses() override {
    std::vector<Address> found;
    ifaddrs* first = nullptr;
    if (::getifaddrs(&first) != 0) return found;
    for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
      if (entry->ifa_addr == nullptr) continue;
      Address address = kIpv4Prefix;
      if (entry->ifa_addr->sa_family == AF_INET) {
        sockaddr_in raw{};
        std::memcpy(&raw, entry->ifa_addr, sizeof raw);
        std::memcpy(address.data() + 12, &raw.sin_addr, 4);
      } else if (entry->ifa_addr->sa_family == AF_INET6) {
        sockaddr_in6 raw{};
        std::memcpy(&raw, entry->ifa_addr, sizeof raw);
        std::memcpy(address.data(), &raw.sin6_addr, 16);
      } else {
        continue;
      }
      found.push_back(address);
    }
    ::freeifaddrs(first);
    return found;
  }

  std::optional<bool> is_card(std::uint32_t interface_index) override {
    std::array<char, IF_NAMESIZE> name{};
    if (::if_indextoname(interface_index, name.data()) == nullptr) return std::nullopt;
    return is_card_by_name(class_net_, name.data(), kStackDepthMax);
  }

  std::optional<std::uint32_t> route(const Address& address) override {
    const Socket socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
    if (socket.get() < 0) return std::nullopt;
    // The kernel answers within the call to send(); the limit is for the case that it does not answer at all.
    const timeval patience{0, 100'000};
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);

    const std::size_t bytes = is_ipv4(address) ? 4 : 16;
    RouteRequest request{};
    request.header.nlmsg_len = static_cast<std::uint32_t>(NLMSG_LENGTH(sizeof(rtmsg)) + RTA_LENGTH(bytes));
    request.header.nlmsg_type = RTM_GETROUTE;
    request.header.nlmsg_flags = NLM_F_REQUEST;
    request.route.rtm_family = bytes == 4 ? AF_INET : AF_INET6;
    request.route.rtm_dst_len = static_cast<unsigned char>(bytes * 8);
    request.attribute.rta_type = RTA_DST;
    request.attribute.rta_len = static_cast<unsigned short>(RTA_LENGTH(bytes));
    std::memcpy(request.destination.data(), address.data() + 16 - bytes, bytes);
    if (::send(socket.get(), &request, request.header.nlmsg_len, 0) < 0) return std::nullopt;

    std::array<char, 4096> reply{};
    const ssize_t size = ::recv(socket.get(), reply.data(), reply.size(), 0);
    if (size <= 0) return std::nullopt;
    return output_interface(reply.data(), static_cast<std::size_t>(size));
  }

 private:
  fs::path class_net_;
};

}  // namespace

std::unique_ptr<HostNetwork> system_host_network(const fs::path& sys_root) {
  return std::make_unique<SystemHostNetwork>(sys_root);
}

std::uint32_t interface_index(const char* name) {
  return std::string_view(name) == "any" ? 0 : ::if_nametoindex(name);
}

}  // namespace rooflined::tap
