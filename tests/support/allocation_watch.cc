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

static void* allocate(std::size_t size) noexcept {
  if (size > seen.largest) seen.largest = size;
  seen.total += size;
  return std::malloc(size == 0 ? 1 : size);
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
