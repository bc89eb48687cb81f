// rooflined-sim serve --pcap: the run of a server under load as a capture file, and the truth about it.

#include "tests/simulator/capture_run.h"
#include "tests/simulator/commands.h"
#include "tests/simulator/truth_json.h"

#include <fmt/format.h>

namespace rooflined::simulator {

int write_capture(const CaptureRunOptions& options, const std::string& path) {
  auto file = CaptureFile::create(path);
  if (!file) {
    fmt::print(stderr, "rooflined-sim: --pcap {}\n", file.error().message());
    return 2;
  }
  CaptureRun run(options, **file);
  const CaptureResult result = run.run();
  if (!(*file)->finish()) {
    fmt::print(stderr, "rooflined-sim: --pcap {}: cannot write all of it\n", path);
    return 1;
  }
  fmt::print("{}\n", truth_json(result, options.server, (*file)->packets()));
  return result.truth.sequences_finished > 0 ? 0 : 1;
}

}  // namespace rooflined::simulator
