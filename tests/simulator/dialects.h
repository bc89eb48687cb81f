// The makers that make_dialect() chooses from, one a dialect file.

#pragma once

#include "tests/simulator/dialect.h"

#include <memory>

namespace rooflined::simulator {

std::unique_ptr<Dialect> make_openai_dialect();
std::unique_ptr<Dialect> make_llama_cpp_dialect();

}  // namespace rooflined::simulator
