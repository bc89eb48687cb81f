#include "collectors/tap/packet_source.h"
#include "collectors/tap/pcap_handle.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace rooflined::tap {

namespace {

// Between two looks of the caller at whether it should stop.
constexpr int kPacketsPerRead = 4096;

class FileSource final : public PacketSource {
 public:
  FileSource(PcapHandle handle, std::string path) : handle_(std::move(handle)), path_(std::move(path)) {}

  Result<ReadOutcome> read(PacketSink& sink, std::chrono::milliseconds) override {
    const int packets = dispatch_file(handle_.get(), kPacketsPerRead, sink);
    if (packets < 0) return Error{ErrorCode::kTruncated, path_, std::string("damaged: ") + pcap_geterr(handle_.get())};
    stats_.packets += static_cast<std::uint64_t>(packets);
    return packets == 0 ? ReadOutcome::kFinished : ReadOutcome::kPackets;
  }

  CaptureStats stats() override { return stats_; }

 private:
  PcapHandle handle_;
  std::string path_;
  CaptureStats stats_;
};

}  // namespace

Result<std::unique_ptr<PacketSource>> open_file(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) {
    const int error = errno;
    const ErrorCode code = error == ENOENT   ? ErrorCode::kNotFound
                           : error == EACCES ? ErrorCode::kDenied
                                             : ErrorCode::kIo;
    return Error{code, path, std::strerror(error)};
  }
  // libpcap reads packet by packet: with the C library's 4 KB, a tenth of the time went into system calls.
  constexpr std::size_t kReadAtOnce = 256 * 1024;
  std::setvbuf(file, nullptr, _IOFBF, kReadAtOnce);
  char message[PCAP_ERRBUF_SIZE] = {};
  // Owns the file from here on, unless it fails.
  PcapHandle handle(pcap_fopen_offline_with_tstamp_precision(file, PCAP_TSTAMP_PRECISION_NANO, message));
  if (handle == nullptr) {
    std::fclose(file);
    return Error{ErrorCode::kInvalid, path, std::string("not a capture file: ") + message};
  }
  if (Status known = check_link_type(handle.get(), path); !known) return known.error();
  return std::unique_ptr<PacketSource>(std::make_unique<FileSource>(std::move(handle), path));
}

}  // namespace rooflined::tap
