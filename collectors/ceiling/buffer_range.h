// What the probe's buffer holds, how it is given back, and how the workers of a NUMA node share their part of it: piece
// by piece, whoever is free the next one.
//
// Threads: take_piece() from any worker; the rest is set before they begin.

#pragma once

#include "metrics/base/units.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace rooflined::ceiling {

// Ranges are cut at multiples of this: eight streams of whole pages.
inline constexpr std::size_t kUnitWords = 8 * 4096 / sizeof(std::uint64_t);
inline constexpr Bytes kUnitBytes = kUnitWords * sizeof(std::uint64_t);
// What a worker takes at a time. The streams of a kernel run side by side within a piece: one huge page holds them all.
inline constexpr std::size_t kPieceUnits = kMiB / kUnitBytes;
// In small working sets pieces are smaller, so that every worker of a range has about this many in a pass.
inline constexpr std::size_t kPiecesPerWorker = 8;

// The part of the buffer that lies on one node, and how far its workers are with it.
struct alignas(128) Range {
  int node = 0;
  std::uint64_t* words = nullptr;
  std::size_t units = 0;
  std::size_t piece_units = 1;
  std::atomic<std::uint64_t> taken{0};  // pieces, over all passes

  std::uint64_t pieces() const { return (units + piece_units - 1) / piece_units; }
};

struct Piece {
  std::uint64_t* words = nullptr;
  std::size_t count = 0;
};

// splitmix64 of the word's place: no two pages are alike, so none can be merged or be the zero page.
inline std::uint64_t random_word(std::uint64_t place) {
  std::uint64_t z = (place + 1) * 0x9e3779b97f4a7c15U;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
  z = (z ^ z >> 27) * 0x94d049bb133111ebU;
  return z ^ z >> 31;
}

// Piece by piece, each a system call: at the end of one the kernel lets others have the CPU, while within one, or
// within the end of a process, they may wait for the next tick (4 ms; with 0.5 GB in one piece, a request came 3 ms
// late).
inline void give_back(std::uint64_t* buffer, Bytes bytes) {
  constexpr Bytes kPiece = 4 * kMiB;
  for (char* begin = reinterpret_cast<char*>(buffer); bytes > 0;) {
    const Bytes piece = std::min(bytes, kPiece - reinterpret_cast<std::uintptr_t>(begin) % kPiece);
    ::munmap(begin, piece);
    begin += piece;
    bytes -= piece;
  }
}

// The next piece that nobody has; empty when `passes` are over.
inline Piece take_piece(Range& range, std::uint64_t passes) {
  const std::uint64_t pieces = range.pieces();
  const std::uint64_t ticket = range.taken.fetch_add(1, std::memory_order_relaxed);
  if (ticket >= pieces * passes) return {};
  const std::size_t first = ticket % pieces * range.piece_units;
  const std::size_t units = std::min(range.piece_units, range.units - first);
  return {range.words + first * kUnitWords, units * kUnitWords};
}

}  // namespace rooflined::ceiling
