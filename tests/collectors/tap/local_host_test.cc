// Goal: only servers of this host are local. The network is a table: 1 is lo, 2 a card, 3 a bridge, 4 a veth pair.

#include "collectors/tap/local_host.h"

#include "tests/collectors/tap/recording.h"
#include "tests/support/catch.h"

#include <unistd.h>

#include <filesystem>

namespace rooflined::tap {

namespace {

using test::line_ms;

constexpr std::uint32_t kCard = 2;
constexpr std::uint32_t kBridge = 3;
constexpr std::uint32_t kVeth = 4;

class FakeNetwork final : public HostNetwork {
 public:
  std::vector<Address> addresses() override {
    ++asked;
    return own;
  }
  std::optional<bool> is_card(std::uint32_t index) override {
    if (index > kVeth) return std::nullopt;
    return index == kCard;
  }
  std::optional<std::uint32_t> route(const Address& address) override {
    const auto found = routes.find(address);
    return found == routes.end() ? std::nullopt : std::optional(found->second);
  }

  std::vector<Address> own = {test::ipv4(192, 168, 0, 9, 0).address};
  std::map<Address, std::uint32_t> routes;
  int asked = 0;
};

TcpSegment seen_on(std::uint32_t interface, Passage passage) {
  TcpSegment segment;
  segment.interface_index = interface;
  segment.passage = passage;
  return segment;
}

}  // namespace

TEST_CASE("whose server it is", "[local_host]") {
  const Address own = test::ipv4(192, 168, 0, 9, 0).address;
  const Address loopback = test::ipv4(127, 0, 0, 5, 0).address;
  const Address loopback6 = test::ipv6(0, 1, 0).address;
  const Address container = test::ipv4(172, 17, 0, 2, 0).address;
  const Address elsewhere = test::ipv4(10, 9, 8, 7, 0).address;
  const Address unrouted = test::ipv4(10, 0, 0, 1, 0).address;

  struct Case {
    const char* name;
    Address server;
    std::uint32_t interface;
    Passage passage;
    bool to_server;
    Locality expected;
  };
  const Case cases[] = {
      {"own address over the card", own, kCard, Passage::kIncoming, true, Locality::kOwnAddress},
      {"own address, its answer", own, kCard, Passage::kOutgoing, false, Locality::kOwnAddress},
      {"loopback", loopback, 1, Passage::kIncoming, true, Locality::kOwnAddress},
      {"loopback, IPv6", loopback6, 1, Passage::kIncoming, true, Locality::kOwnAddress},
      {"remote server, request going out", elsewhere, kCard, Passage::kOutgoing, true, Locality::kRemote},
      {"remote server, answer coming in", elsewhere, kCard, Passage::kIncoming, false, Locality::kRemote},
      {"remote server of a container, on its veth pair", elsewhere, kVeth, Passage::kIncoming, true, Locality::kRemote},
      {"container, by its bridge", container, kBridge, Passage::kOutgoing, true, Locality::kReached},
      {"container, by its veth pair", container, kVeth, Passage::kIncoming, false, Locality::kReached},
      {"container, request still on the card", container, kCard, Passage::kIncoming, true, Locality::kUnclear},
      {"container, answer already on the card", container, kCard, Passage::kOutgoing, false, Locality::kUnclear},
      {"card, way unknown", container, kCard, Passage::kUnknown, true, Locality::kRemote},
      {"veth pair, no route known", unrouted, kVeth, Passage::kIncoming, true, Locality::kReached},
      {"interface unknown, route to a bridge", container, 0, Passage::kIncoming, true, Locality::kReached},
      {"interface unknown, route to a card", elsewhere, 0, Passage::kIncoming, true, Locality::kRemote},
      {"nothing known", unrouted, 0, Passage::kIncoming, true, Locality::kRemote},
      {"interface gone", unrouted, 99, Passage::kIncoming, true, Locality::kRemote},
  };
  for (const Case& row : cases) {
    INFO(row.name);
    FakeNetwork network;
    network.routes = {{container, kBridge}, {elsewhere, kCard}};
    LocalHost local(network, 0);
    CHECK(local.judge(row.server, seen_on(row.interface, row.passage), row.to_server, line_ms(0)) == row.expected);
  }
}

TEST_CASE("a capture of one interface knows where its packets are from", "[local_host]") {
  FakeNetwork network;
  const Address container = test::ipv4(172, 17, 0, 2, 0).address;
  CHECK(LocalHost(network, kVeth).judge(container, seen_on(0, Passage::kUnknown), true, line_ms(0)) ==
        Locality::kReached);
  CHECK(LocalHost(network, kCard).judge(container, seen_on(0, Passage::kUnknown), true, line_ms(0)) ==
        Locality::kRemote);
}

TEST_CASE("an address that appears later is found, and the host is not asked for each packet", "[local_host]") {
  FakeNetwork network;
  LocalHost local(network, 0);
  const Address added = test::ipv4(192, 168, 5, 5, 0).address;
  const auto judge = [&](std::int64_t ms) {
    return local.judge(added, seen_on(kCard, Passage::kIncoming), true, line_ms(ms));
  };
  CHECK(judge(0) == Locality::kUnclear);
  network.own.push_back(added);
  for (int i = 0; i < 100; ++i) CHECK(judge(500) == Locality::kUnclear);
  CHECK(network.asked == 1);
  CHECK(judge(1000) == Locality::kOwnAddress);
  CHECK(network.asked == 2);
  network.own.clear();
  CHECK(judge(60'000) == Locality::kOwnAddress);
  CHECK(judge(61'000) == Locality::kUnclear);  // and one that went away is forgotten within a minute
}

TEST_CASE("cards are told by what stands under /sys", "[local_host]") {
  // Interface 1 is lo on every Linux; the tree says what kind of thing it is.
  namespace fs = std::filesystem;
  const fs::path root = fs::temp_directory_path() / ("rooflined-local-host-" + std::to_string(::getpid()));
  const fs::path lo = root / "class" / "net" / "lo";
  const auto is_card = [&] { return system_host_network(root)->is_card(1); };
  fs::create_directories(lo);
  CHECK(is_card() == false);
  SECTION("a device behind it") {
    fs::create_directories(lo / "device");
    CHECK(is_card() == true);
  }
  SECTION("a VLAN on a bond on a card") {
    fs::create_directories(lo / "lower_bond0");
    fs::create_directories(root / "class" / "net" / "bond0" / "lower_eth0");
    fs::create_directories(root / "class" / "net" / "eth0" / "device");
    CHECK(is_card() == true);
    SECTION("but not a bridge with a card in it") {
      fs::create_directories(lo / "bridge");
      CHECK(is_card() == false);
    }
  }
  SECTION("devices that name each other") {
    fs::create_directories(lo / "lower_lo");
    CHECK(is_card() == false);
  }
  fs::remove_all(root);
  CHECK(system_host_network()->is_card(0x7fffffff) == std::nullopt);
}

}  // namespace rooflined::tap
