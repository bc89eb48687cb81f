// Runs a fuzz target over the files and folders that are named, once each: what libFuzzer does with a corpus, for
// compilers that have no libFuzzer. Every file is also cut at each of 64 places, so that the corpus covers truncation
// by itself.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::size_t runs = 0;

void run_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<std::uint8_t> bytes(text.begin(), text.end());
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  ++runs;
  constexpr std::size_t kCuts = 64;
  for (std::size_t cut = 0; cut < kCuts; ++cut) {
    // A copy of exactly that size, so that a sanitizer sees a read past the end.
    const std::vector<std::uint8_t> piece(bytes.begin(),
                                          bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() * cut / kCuts));
    LLVMFuzzerTestOneInput(piece.data(), piece.size());
    ++runs;
  }
}

}  // namespace

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  for (int i = 1; i < argc; ++i) {
    if (fs::is_directory(argv[i])) {
      for (const auto& entry : fs::recursive_directory_iterator(argv[i])) {
        if (entry.is_regular_file()) run_file(entry.path());
      }
    } else {
      run_file(argv[i]);
    }
  }
  std::printf("%zu inputs\n", runs);
  return runs == 0 ? 1 : 0;
}
