#include "tests/simulator/capture_file.h"

#include <pcap/pcap.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace rooflined::simulator {
namespace {

constexpr int kSnapLength = 262144;

struct PcapClose {
  void operator()(pcap_t* handle) const { pcap_close(handle); }
};
struct DumperClose {
  void operator()(pcap_dumper_t* dumper) const { pcap_dump_close(dumper); }
};

}  // namespace

struct CaptureFile::Handles {
  std::unique_ptr<pcap_t, PcapClose> pcap;
  std::unique_ptr<pcap_dumper_t, DumperClose> dumper;  // closed first
};

Result<std::unique_ptr<CaptureFile>> CaptureFile::create(const std::string& path) {
  auto handles = std::make_unique<Handles>();
  handles->pcap.reset(pcap_open_dead_with_tstamp_precision(DLT_EN10MB, kSnapLength, PCAP_TSTAMP_PRECISION_NANO));
  if (!handles->pcap) return Error{ErrorCode::kIo, path, "no memory"};
  handles->dumper.reset(pcap_dump_open(handles->pcap.get(), path.c_str()));
  if (!handles->dumper) return Error{ErrorCode::kIo, "", pcap_geterr(handles->pcap.get())};
  return std::unique_ptr<CaptureFile>(new CaptureFile(path, std::move(handles)));
}

CaptureFile::CaptureFile(std::string path, std::unique_ptr<Handles> handles)
    : path_(std::move(path)), handles_(std::move(handles)) {}

CaptureFile::~CaptureFile() = default;

void CaptureFile::write(const test::TimedPacket& packet) {
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  pcap_pkthdr header{};
  header.ts.tv_sec = packet.at.ns() / kNsPerSecond;
  header.ts.tv_usec = packet.at.ns() % kNsPerSecond;  // nanoseconds, by the precision asked for
  header.caplen = header.len = static_cast<bpf_u_int32>(packet.bytes.size());
  pcap_dump(reinterpret_cast<u_char*>(handles_->dumper.get()), &header,
            reinterpret_cast<const u_char*>(packet.bytes.data()));
  ++packets_;
}

bool CaptureFile::finish() {
  return pcap_dump_flush(handles_->dumper.get()) == 0 && std::ferror(pcap_dump_file(handles_->dumper.get())) == 0;
}

CapturedConnection::CapturedConnection(CaptureFile& file, const Endpoint& client, const Endpoint& server)
    : file_(file), talk_(client, server) {}

void CapturedConnection::open(CaptureTime at) {
  talk_.open(at);
  flush();
}

void CapturedConnection::from_client(CaptureTime at, std::string_view bytes) {
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kPayloadMax))) {
    talk_.from_client(at, bytes.substr(0, kPayloadMax));
  }
  flush();
}

void CapturedConnection::from_server(CaptureTime at, std::string_view bytes) {
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kPayloadMax))) {
    talk_.from_server(at, bytes.substr(0, kPayloadMax));
    unacknowledged_ += std::min(bytes.size(), kPayloadMax);
    if (unacknowledged_ < kUnacknowledgedMax) continue;
    talk_.from_client(at, {});
    unacknowledged_ = 0;
  }
  flush();
}

void CapturedConnection::close(CaptureTime at) {
  talk_.close(at);
  flush();
}

void CapturedConnection::reset(CaptureTime at) {
  talk_.from_client(at, {}, tap::tcp_flag::kReset | tap::tcp_flag::kAck);
  flush();
}

void CapturedConnection::refuse(CaptureTime at) {
  talk_.from_client(at, {}, tap::tcp_flag::kSyn);
  talk_.from_server(at, {}, tap::tcp_flag::kReset | tap::tcp_flag::kAck);
  flush();
}

void CapturedConnection::flush() {
  for (const test::TimedPacket& packet : talk_.packets) file_.write(packet);
  talk_.packets.clear();
}

}  // namespace rooflined::simulator
