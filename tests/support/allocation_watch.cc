#include "tests/support/allocation_watch.h"

#include <malloc.h>
#include <algorithm>
#include <cstdlib>
#include <new>

namespace rooflined::test {
namespace {

Allocations seen;

}  // namespace

void watch_allocations() {
  seen = {};
}
Allocations allocations() {
  return seen;
}

static void* allocate(std::size_t size) noexcept {
  if (size > seen.largest) seen.largest = size;
  seen.total += size;
  void* const memory = std::malloc(size == 0 ? 1 : size);
  seen.live += static_cast<std::ptrdiff_t>(malloc_usable_size(memory));
  seen.peak = std::max(seen.peak, seen.live);
  return memory;
}
static void release(void* memory) noexcept {
  seen.live -= static_cast<std::ptrdiff_t>(malloc_usable_size(memory));
  std::free(memory);
}
static void* allocate_or_throw(std::size_t size) {
  if (void* memory = allocate(size)) return memory;
  throw std::bad_alloc();
}

}  // namespace rooflined::test

void* operator new(std::size_t size) {
  return rooflined::test::allocate_or_throw(size);
}
void* operator new[](std::size_t size) {
  return rooflined::test::allocate_or_throw(size);
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return rooflined::test::allocate(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return rooflined::test::allocate(size);
}
void operator delete(void* memory) noexcept {
  rooflined::test::release(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  rooflined::test::release(memory);
}
void operator delete[](void* memory) noexcept {
  rooflined::test::release(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  rooflined::test::release(memory);
}
