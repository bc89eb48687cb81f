// Every kernel of every instruction set of this machine against a scalar reference, on sizes around every step.

#include "collectors/ceiling/kernels.h"

#include "tests/support/catch.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

using namespace rooflined::ceiling;

namespace {

std::vector<std::uint64_t> random_words(std::size_t count) {
  std::vector<std::uint64_t> words(count);
  std::uint64_t x = 88172645463325252U;
  for (auto& word : words) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    word = x;
  }
  return words;
}

std::uint64_t reference_sum(const std::uint64_t* base, std::size_t streams, std::size_t stride, std::size_t count) {
  std::uint64_t total = 0;
  for (std::size_t s = 0; s < streams; ++s) {
    for (std::size_t i = 0; i < count; ++i) total += base[s * stride + i];
  }
  return total;
}

std::uint64_t reference_dot(const std::uint64_t* base, std::size_t stride, std::size_t count) {
  std::uint32_t total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t x = base[i], y = base[stride + i];
    total += static_cast<std::uint32_t>(x) * static_cast<std::uint32_t>(y);
    total += static_cast<std::uint32_t>(x >> 32) * static_cast<std::uint32_t>(y >> 32);
  }
  return total;
}

}  // namespace

TEST_CASE("the table of kernels is sound") {
  std::set<std::string> names;
  for (const Kernel& kernel : kKernels) {
    CHECK(names.insert(std::string(kernel.name)).second);
    CHECK(kernel.bytes_read + kernel.bytes_written == 8 * kernel.streams);
    CHECK(kernel.counts == (kernel.bytes_written == 0));
  }
  CHECK(kKernels[kCopyKernel].name == "copy");
}

TEST_CASE("kernels agree with a scalar reference") {
  // Around zero, one vector, and one, two and three steps of the largest unroll (16 vectors of 8 words), and odd ones.
  const std::vector<std::size_t> counts = {0,  1,  2,   3,   7,   8,   9,   15,  16,  17,  31,  33,   63,   64,
                                           65, 97, 127, 128, 129, 191, 255, 256, 257, 384, 511, 1000, 1021, 4099};
  const std::size_t stride = 4104;
  const auto original = random_words(8 * stride + 8);
  REQUIRE_FALSE(instruction_sets().empty());
  for (const std::string& set : instruction_sets()) {
    const KernelFunctions* const functions = kernel_functions_for(set);
    REQUIRE(functions != nullptr);
    for (std::size_t k = 0; k < kKernels.size(); ++k) {
      const Kernel& kernel = kKernels[k];
      for (const std::size_t count : counts) {
        for (const std::size_t shift : {0U, 1U, 5U}) {  // words off the alignment
          auto words = original;
          const std::uint64_t* const base = original.data() + shift;
          const std::uint64_t got = (*functions)[k](words.data() + shift, stride, count);
          INFO(set << " " << kernel.name << " count " << count << " shift " << shift);
          if (kernel.name == "copy") {
            REQUIRE(got == reference_sum(base, 1, stride, count));
            auto expected = original;
            std::copy(base, base + count, expected.begin() + static_cast<std::ptrdiff_t>(shift + stride));
            REQUIRE(words == expected);
          } else {
            const bool is_dot = kernel.name.starts_with("dot");
            REQUIRE(got ==
                    (is_dot ? reference_dot(base, stride, count) : reference_sum(base, kernel.streams, stride, count)));
            REQUIRE(words == original);
          }
        }
      }
    }
  }
}

TEST_CASE("an instruction set that is not there has no kernels") {
  CHECK(kernel_functions_for("MMX") == nullptr);
}
