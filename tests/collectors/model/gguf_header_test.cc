// The header parser: limits, types, truncation at every byte, and what it costs in memory.

#include "collectors/model/gguf_header.h"
#include "tests/support/allocation_watch.h"
#include "tests/support/catch.h"
#include "tests/support/containing.h"
#include "tests/support/gguf_writer.h"

#include <string>
#include <vector>

using namespace rooflined;
using namespace rooflined::model;
using rooflined::test::allocations;
using rooflined::test::containing;
using rooflined::test::GgufWriter;
using rooflined::test::watch_allocations;

namespace {

Result<GgufHeader> parse(const std::string& bytes, const GgufLimits& limits = {}) {
  MemorySource source(std::as_bytes(std::span<const char>(bytes)));
  return read_gguf_header(source, "m.gguf", limits);
}

std::string refusal(const std::string& bytes, const GgufLimits& limits = {}) {
  const Result<GgufHeader> header = parse(bytes, limits);
  return header ? "read" : header.error().detail;
}

GgufWriter small() {
  GgufWriter file;
  file.text("general.architecture", "llama").u32("llama.block_count", 1).flag("x.flag", true).f32("x.float", 0.5F);
  file.texts("tokenizer.ggml.tokens", {"a", "", "bc"}).u32s("x.per_layer", {1, 2, 3}).i32("x.negative", -1);
  file.tensor("token_embd.weight", {64, 32}, "Q8_0").tensor("blk.0.attn_q.weight", {64, 64}, "Q4_0");
  return file;
}

// The fixed part of a header, and whatever follows it.
std::string with_counts(std::uint64_t tensors, std::uint64_t keys, const std::string& rest, std::uint32_t version = 3) {
  std::string bytes = "GGUF";
  bytes.append(reinterpret_cast<const char*>(&version), 4);
  bytes.append(reinterpret_cast<const char*>(&tensors), 8);
  bytes.append(reinterpret_cast<const char*>(&keys), 8);
  return bytes + rest;
}

}  // namespace

TEST_CASE("metadata and tensor table") {
  const Result<GgufHeader> header = parse(small().header());
  REQUIRE(header.ok());
  CHECK(header->version == 3);
  CHECK(header->metadata.text("general.architecture") == "llama");
  CHECK(header->metadata.number("llama.block_count") == 1U);
  CHECK(header->metadata.layer_number("x.per_layer", 2) == 3U);
  CHECK_FALSE(header->metadata.layer_number("x.per_layer", 3).has_value());
  CHECK(header->metadata.layer_number("llama.block_count", 7) == 1U);
  CHECK_FALSE(header->metadata.number("x.negative").has_value());
  CHECK_FALSE(header->metadata.number("x.float").has_value());
  CHECK(header->metadata.has("tokenizer.ggml.tokens"));
  REQUIRE(header->tensors.size() == 2);
  CHECK(header->tensors[0].bytes == 64 * 32 / 32 * 34);
  CHECK(header->tensors[1].bytes == 64 * 64 / 32 * 18);
  CHECK(header->data_offset == small().header().size());
  CHECK(header->data_bytes == 2176 + 2304);
}

TEST_CASE("a header cut at any byte is truncated, never read") {
  std::string bytes = small().header();
  while (bytes.back() == '\0' && bytes.size() % 32 != 1) bytes.pop_back();  // the padding is no part of it
  const std::size_t needed = bytes.size() - 32;                             // the last record may end in zeros
  for (std::size_t size = 0; size < needed; ++size) {
    INFO(size);
    CHECK(refusal(bytes.substr(0, size)) == containing("truncated"));
  }
}

TEST_CASE("every type of the format has its bytes, removed ones are refused by name") {
  for (const GgmlType& type : ggml_types()) {
    if (type.removed()) continue;
    INFO(type.name);
    GgufWriter file;
    file.tensor("t", {256, 3}, type.name);
    const Result<GgufHeader> header = parse(file.header());
    REQUIRE(header.ok());
    CHECK(header->tensors[0].bytes == 768 / type.block_elements * type.block_bytes);
  }
  GgufWriter file;
  file.tensor("t", {256}, "F32");
  std::string bytes = file.header();
  const std::size_t at = 24 + 8 + 1 + 4 + 8;  // the type follows name and dimensions
  bytes[at] = 33;
  CHECK(refusal(bytes) == "tensor t: type 33 (Q4_0_8_8) was removed from the format");
  bytes[at] = 99;
  CHECK(refusal(bytes) == "tensor t: unknown type 99");
}

TEST_CASE("limits and defects have names") {
  CHECK(refusal(with_counts(0, 0, "", 1)) == containing("version 1"));
  CHECK(refusal(with_counts(0, 0, "", 4)) == containing("version 4"));
  CHECK(refusal(with_counts(1'000'000, 0, "")) == containing("at most 100000"));
  CHECK(refusal(with_counts(0, 1'000'000, "")) == containing("at most 4096"));
  CHECK(refusal(with_counts(1000, 0, "")) == containing("truncated"));
  GgufLimits tight;
  tight.array_elements_walked_max = 2;
  CHECK(refusal(small().header(), tight) == containing("3 array elements"));
  tight = {};
  tight.tensor_name_bytes_max = 8;
  CHECK(refusal(small().header(), tight) == containing("a tensor's name of 17 bytes"));

  GgufWriter odd;
  odd.tensor("t", {48}, "Q8_0");
  CHECK(refusal(odd.header()) == containing("blocks of 32"));
  GgufWriter big;
  big.tensor("t", {1ULL << 40, 1ULL << 40}, "F32");
  CHECK(refusal(big.header()) == containing("overflows"));
  for (const std::uint32_t alignment : {0U, 24U, 131'072U}) {
    GgufWriter file;
    file.u32("general.alignment", alignment);
    CHECK(refusal(file.header()) == containing("power of two"));
  }
  GgufWriter misaligned = small();
  misaligned.u32("general.alignment", 4096);
  CHECK(refusal(misaligned.header()) == containing("multiple of the alignment"));
}

TEST_CASE("a vocabulary of 150,000 entries is walked and not kept") {
  GgufWriter file = small();
  file.texts("v.tokens", std::vector<std::string>(150'000, "a token of some length"));
  file.f32s("v.scores", std::vector<float>(150'000));
  const std::string bytes = file.header();
  watch_allocations();
  const Result<GgufHeader> header = parse(bytes);
  CHECK(allocations().largest <= 64 * kKiB);
  CHECK(allocations().total < 256 * kKiB);
  REQUIRE(header.ok());
  CHECK(header->tensors.size() == 2);
}

TEST_CASE("declared lengths allocate nothing") {
  std::string nested = with_counts(0, 1, "");
  const auto append = [&](auto value) { nested.append(reinterpret_cast<const char*>(&value), sizeof(value)); };
  append(std::uint64_t{1});
  nested += "k";
  append(std::uint32_t{9});
  for (int depth = 0; depth < 100; ++depth) {
    append(std::uint32_t{9});
    append(std::uint64_t{1});
  }
  std::string huge_text = with_counts(0, 1, "");
  const std::uint64_t length = ~0ULL;
  huge_text.append(reinterpret_cast<const char*>(&length), 8).append(64, 'x');
  watch_allocations();
  CHECK(refusal(nested) == containing("nested array"));
  CHECK(refusal(huge_text) == containing("truncated"));
  CHECK(refusal(with_counts(~0ULL, ~0ULL, "")) == containing("at most"));
  CHECK(allocations().largest <= 64 * kKiB);
}
