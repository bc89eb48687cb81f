// Goal: what the kernel lets through and what files hold arrives with its stamp; what cannot be read is one clear line.

#include "collectors/tap/packet_source.h"
#include "collectors/tap/capture_filter.h"
#include "collectors/tap/link_layer.h"
#include "collectors/tap/pcap_handle.h"
#include "tests/collectors/tap/recording.h"
#include "tests/support/catch.h"

#include <unistd.h>

#include <filesystem>

namespace rooflined::tap {

namespace {

namespace fs = std::filesystem;
using test::Wire;
using test::Wrapping;

struct Collected final : PacketSink {
  void on_packet(const Packet& packet) override {
    stamps_ns.push_back(packet.captured_at.ns());
    sizes.push_back(packet.bytes.size());
    wire_lengths.push_back(packet.wire_length);
    link_type = packet.link_type;
  }
  std::vector<std::int64_t> stamps_ns;
  std::vector<std::size_t> sizes;
  std::vector<std::uint32_t> wire_lengths;
  int link_type = -1;
};

// Reads to the end, or to the error.
std::string read_all(PacketSource& source, PacketSink& sink) {
  while (true) {
    const auto outcome = source.read(sink, std::chrono::milliseconds(0));
    if (!outcome) return outcome.error().message();
    if (*outcome == ReadOutcome::kFinished) return "finished";
  }
}

class TemporaryFile {
 public:
  explicit TemporaryFile(const char* name)
      : path_(fs::temp_directory_path() / ("rooflined-" + std::to_string(::getpid()) + "-" + name)) {}
  ~TemporaryFile() { fs::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

// Whether a packet passes the filter, by libpcap's own interpreter.
class Filter {
 public:
  Filter(const Watch& watch, int link_type) : Filter(capture_filter(watch, link_type), link_type) {}
  Filter(std::span<const std::uint16_t> ports, int link_type)
      : Filter(Watch{.ports = {ports.begin(), ports.end()}}, link_type) {}
  Filter(const std::string& text, int link_type) : handle_(pcap_open_dead(link_type, 262144)) {
    REQUIRE(pcap_compile(handle_.get(), &program_, text.c_str(), 1, PCAP_NETMASK_UNKNOWN) == 0);
  }
  ~Filter() { pcap_freecode(&program_); }
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;

  bool passes(const Wire& bytes) const {
    pcap_pkthdr header{};
    header.caplen = static_cast<bpf_u_int32>(bytes.size());
    header.len = header.caplen;
    return pcap_offline_filter(&program_, &header, reinterpret_cast<const u_char*>(bytes.data())) != 0;
  }
  std::size_t instructions() const { return program_.bf_len; }

 private:
  PcapHandle handle_;
  bpf_program program_{};
};

const std::vector<Wrapping> kWrappings = {
    {},
    {.vlan_types = {0x8100}},
    {.ipv4_options = 12},
    {.vlan_types = {0x8100}, .ipv4_options = 12},
    {.link_type = link_type::kLinuxCooked},
    {.link_type = link_type::kLinuxCooked2},
    {.link_type = link_type::kLinuxCooked2, .vlan_types = {0x8100}},
    {.link_type = link_type::kLinuxCooked2, .vlan_types = {0x8100}, .ipv4_options = 12},
    {.link_type = link_type::kRawIp},
    {.link_type = link_type::kNull},
};

}  // namespace

TEST_CASE("the capture filter passes the ports in every wrapping, and nothing else", "[capture_filter]") {
  const std::uint16_t ports[] = {8080, 11434};
  for (const Wrapping& wrapping : kWrappings) {
    const Filter filter(ports, wrapping.link_type);
    for (const bool version6 : {false, true}) {
      if (version6 && wrapping.link_type == link_type::kNull) continue;  // its family field says IPv4 here
      INFO("link type " << wrapping.link_type << ", tags " << wrapping.vlan_types.size() << ", options "
                        << wrapping.ipv4_options << (version6 ? ", IPv6" : ", IPv4"));
      const auto packet = [&](std::uint16_t from, std::uint16_t to) {
        const auto endpoint = [&](std::uint16_t port) {
          return version6 ? test::ipv6(0xfd00, 1, port) : test::ipv4(10, 0, 0, 1, port);
        };
        return test::tcp_packet({endpoint(from), endpoint(to), 1, 1, tcp_flag::kAck, 1, "payload"}, wrapping);
      };
      CHECK(filter.passes(packet(40000, 8080)));
      CHECK(filter.passes(packet(8080, 40000)));
      CHECK(filter.passes(packet(40000, 11434)));
      CHECK_FALSE(filter.passes(packet(40000, 22)));
      CHECK_FALSE(filter.passes(packet(22, 40000)));
    }
  }
}

TEST_CASE("the doorbell's filter passes payload to the ports in every wrapping", "[capture_filter]") {
  const std::uint16_t ports[] = {8080, 11434};
  for (Wrapping wrapping : kWrappings) {
    const Filter filter(doorbell_filter(ports, wrapping.link_type), wrapping.link_type);
    for (const bool version6 : {false, true}) {
      if (version6 && wrapping.link_type == link_type::kNull) continue;  // its family field says IPv4 here
      for (const std::size_t tcp_options : {0U, 12U}) {
        wrapping.tcp_options = tcp_options;
        INFO("link type " << wrapping.link_type << ", tags " << wrapping.vlan_types.size() << ", IP options "
                          << wrapping.ipv4_options << ", TCP options " << tcp_options
                          << (version6 ? ", IPv6" : ", IPv4"));
        const auto packet = [&](std::uint16_t from, std::uint16_t to, std::string_view payload) {
          const auto endpoint = [&](std::uint16_t port) {
            return version6 ? test::ipv6(0xfd00, 1, port) : test::ipv4(10, 0, 0, 1, port);
          };
          return test::tcp_packet({endpoint(from), endpoint(to), 1, 1, tcp_flag::kAck, 1, payload}, wrapping);
        };
        CHECK(filter.passes(packet(40000, 8080, "P")));
        CHECK(filter.passes(packet(40000, 11434, "POST /v1/chat/completions HTTP/1.1\r\n")));
        CHECK_FALSE(filter.passes(packet(8080, 40000, "an answer")));
        CHECK_FALSE(filter.passes(packet(40000, 22, "other traffic")));
        // Behind a tag the length is not compared; the doorbell looks again.
        if (wrapping.vlan_types.empty()) CHECK_FALSE(filter.passes(packet(40000, 8080, "")));
        wrapping.length_zero = true;
        CHECK(filter.passes(packet(40000, 8080, "a segment over 64 KB")));
        wrapping.length_zero = false;
      }
    }
  }
}

TEST_CASE("the capture filter passes what has no fixed place for its ports", "[capture_filter]") {
  const std::uint16_t ports[] = {8080};
  const test::TcpFields fields{test::ipv6(0xfd00, 1, 40000), test::ipv6(0xfd00, 2, 8080), 1, 1, tcp_flag::kAck, 1, "x"};
  for (const int type : {link_type::kEthernet, link_type::kLinuxCooked2, link_type::kRawIp}) {
    Wire ip = test::ip_part(fields, {});
    ip[6] = std::byte{0};
    const Wire hop_by_hop{std::byte{6}, {}, {}, {}, {}, {}, {}, {}};
    ip.insert(ip.begin() + 40, hop_by_hop.begin(), hop_by_hop.end());
    CHECK(Filter(ports, type).passes(test::frame(ip, 0x86dd, {.link_type = type})));
    CHECK(Filter(doorbell_filter(ports, type), type).passes(test::frame(ip, 0x86dd, {.link_type = type})));
  }
  CHECK(Filter(ports, link_type::kEthernet).passes(test::tcp_packet(fields, {.vlan_types = {0x88a8, 0x8100}})));
}

TEST_CASE("of what goes over loopback the capture filter passes one copy", "[capture_filter]") {
  const std::uint16_t ports[] = {8080};
  const Filter filter(ports, link_type::kLinuxCooked2);
  const auto packet = [](std::uint32_t interface, std::uint8_t packet_type) {
    return test::tcp_packet(
        {test::ipv4(127, 0, 0, 1, 40000), test::ipv4(127, 0, 0, 1, 8080)},
        {.link_type = link_type::kLinuxCooked2, .interface_index = interface, .packet_type = packet_type});
  };
  CHECK(filter.passes(packet(1, 0)));
  CHECK_FALSE(filter.passes(packet(1, 4)));
  CHECK(filter.passes(packet(2, 0)));
  CHECK(filter.passes(packet(2, 4)));
}

TEST_CASE("servers that are left out do not pass, their neighbours do", "[capture_filter]") {
  const Endpoint left_out = test::ipv4(10, 0, 0, 1, 8080);
  const Endpoint left_out6 = test::ipv6(0xfd00, 1, 8080);
  const Watch watch{.ports = {8080, 8000}, .left_out = {left_out, left_out6}};
  for (const int type : {link_type::kEthernet, link_type::kLinuxCooked2, link_type::kRawIp}) {
    const Filter filter(watch, type);
    const auto passes = [&](const Endpoint& from, const Endpoint& to) {
      return filter.passes(test::tcp_packet({from, to, 1, 1, tcp_flag::kAck, 1, "x"}, {.link_type = type}));
    };
    const Endpoint client = test::ipv4(10, 0, 0, 9, 40000);
    CHECK_FALSE(passes(client, left_out));
    CHECK_FALSE(passes(left_out, client));
    CHECK(passes(client, test::ipv4(10, 0, 0, 1, 8000)));
    CHECK(passes(client, test::ipv4(10, 0, 0, 2, 8080)));
    CHECK(passes(test::ipv4(10, 0, 0, 1, 40000), test::ipv4(10, 0, 0, 2, 8080)));  // as a client of another
    CHECK_FALSE(passes(test::ipv6(0xfd00, 9, 40000), left_out6));
    CHECK_FALSE(passes(left_out6, test::ipv6(0xfd00, 9, 40000)));
    CHECK(passes(test::ipv6(0xfd00, 9, 40000), test::ipv6(0xfd00, 2, 8080)));
  }
}

TEST_CASE("the filter leaves the same flows out as the connection table, in both directions", "[capture_filter]") {
  for (const unsigned one_in : {2U, 8U, 64U}) {
    const Watch watch{.ports = {8080}, .left_out = {}, .one_in = one_in};
    for (const int type : {link_type::kEthernet, link_type::kLinuxCooked2}) {
      const Filter filter(watch, type);
      unsigned passed = 0;
      for (std::uint16_t port = 32768; port < 32768 + 512; ++port) {
        const bool expected = in_share(port, 8080, one_in);
        passed += expected ? 1 : 0;
        for (const bool version6 : {false, true}) {
          const Endpoint client = version6 ? test::ipv6(0xfd00, 9, port) : test::ipv4(10, 0, 0, 9, port);
          const Endpoint server = version6 ? test::ipv6(0xfd00, 1, 8080) : test::ipv4(10, 0, 0, 1, 8080);
          const auto passes = [&](const Endpoint& from, const Endpoint& to, std::uint8_t flags) {
            return filter.passes(test::tcp_packet({from, to, 1, 1, flags, 1, ""}, {.link_type = type}));
          };
          CHECK(passes(client, server, tcp_flag::kAck) == expected);
          CHECK(passes(server, client, tcp_flag::kAck) == expected);
          CHECK(passes(client, server, tcp_flag::kSyn));
        }
      }
      CHECK(passed == 512 / one_in);
    }
  }
}

TEST_CASE("a filter for 64 ports fits into the kernel", "[capture_filter]") {
  std::vector<std::uint16_t> ports;
  for (int i = 0; i < 64; ++i) ports.push_back(static_cast<std::uint16_t>(8000 + 7 * i));
  for (const int type : {link_type::kEthernet, link_type::kLinuxCooked, link_type::kLinuxCooked2, link_type::kRawIp}) {
    Watch watch{.ports = ports, .left_out = std::vector<Endpoint>(16, test::ipv6(0xfd00, 1, 8080)), .one_in = 64};
    CHECK(Filter(watch, type).instructions() < 4096);  // BPF_MAXINSNS
  }
}

TEST_CASE("capture files of every kind arrive with their stamps", "[file_source]") {
  test::TcpConversation talk(test::ipv4(127, 0, 0, 1, 40000), test::ipv4(127, 0, 0, 1, 8080));
  talk.open(CaptureTime::from_ns(1'700'000'000'123'456'789));
  talk.packets[1].wire_length = 2000;
  const TemporaryFile file("stamps.pcap");
  for (const int type : {link_type::kEthernet, link_type::kRawIp, link_type::kLinuxCooked2}) {
    for (const bool nanoseconds : {true, false}) {
      test::write_pcap(file.path(), talk.packets, type, nanoseconds);
      auto source = open_file(file.path());
      REQUIRE(source);
      Collected collected;
      CHECK(read_all(**source, collected) == "finished");
      const std::int64_t stamp = nanoseconds ? 1'700'000'000'123'456'789 : 1'700'000'000'123'456'000;
      CHECK(collected.stamps_ns == std::vector<std::int64_t>(3, stamp));
      CHECK(collected.wire_lengths == std::vector<std::uint32_t>{54, 2000, 54});
      CHECK(collected.link_type == type);
      CHECK((*source)->stats().packets == 3);
      CHECK((*source)->stats().dropped == 0);
    }
  }
}

TEST_CASE("pcapng", "[file_source]") {
  auto source = open_file(std::string(ROOFLINED_TEST_DATA) + "/../captures/handshake.pcapng");
  REQUIRE(source);
  Collected collected;
  CHECK(read_all(**source, collected) == "finished");
  CHECK(collected.stamps_ns == std::vector<std::int64_t>(3, 1'700'000'000'123'456'789));
  CHECK(collected.sizes == std::vector<std::size_t>(3, 54));
}

TEST_CASE("files that cannot be read are one clear line", "[file_source]") {
  const TemporaryFile file("broken.pcap");
  test::TcpConversation talk(test::ipv4(127, 0, 0, 1, 40000), test::ipv4(127, 0, 0, 1, 8080));
  talk.open(CaptureTime::from_ns(1'000'000'000));
  const auto one_line = [](const std::string& text) { return text.find('\n') == std::string::npos && !text.empty(); };

  SECTION("missing") {
    const auto source = open_file(file.path());
    REQUIRE_FALSE(source);
    CHECK(source.error().code == ErrorCode::kNotFound);
    CHECK(source.error().message() == file.path() + ": No such file or directory");
  }
  SECTION("something else") {
    std::ofstream(file.path()) << "this is a text and no capture, certainly not";
    const auto source = open_file(file.path());
    REQUIRE_FALSE(source);
    CHECK(source.error().code == ErrorCode::kInvalid);
    CHECK(one_line(source.error().message()));
  }
  SECTION("empty") {
    std::ofstream(file.path()).flush();
    CHECK_FALSE(open_file(file.path()));
  }
  SECTION("a folder") {
    CHECK_FALSE(open_file(fs::temp_directory_path().string()));
  }
  SECTION("a link type that is not supported") {
    test::write_pcap(file.path(), talk.packets, 105);
    const auto source = open_file(file.path());
    REQUIRE_FALSE(source);
    CHECK(source.error().code == ErrorCode::kUnsupported);
    CHECK(source.error().message().find("IEEE802_11") != std::string::npos);
  }
  SECTION("cut: what came before it is good") {
    test::write_pcap(file.path(), talk.packets);
    fs::resize_file(file.path(), fs::file_size(file.path()) - 10);
    auto source = open_file(file.path());
    REQUIRE(source);
    Collected collected;
    const std::string end = read_all(**source, collected);
    CHECK(end.find("damaged") != std::string::npos);
    CHECK(one_line(end));
    CHECK(collected.sizes.size() == 2);
  }
}

}  // namespace rooflined::tap
