#include "tests/support/allocation_watch.h"

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

static void* allocate(std::size_t size) {
  if (size > seen.largest) seen.largest = size;
  seen.total += size;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}

}  // namespace rooflined::test

void* operator new(std::size_t size) {
  return rooflined::test::allocate(size);
}
void* operator new[](std::size_t size) {
  return rooflined::test::allocate(size);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
