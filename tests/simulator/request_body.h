// The body of a generation request, as a client writes it.

#pragma once

#include "tests/simulator/request.h"

#include <cstdint>
#include <string>

namespace rooflined::simulator {

// `number` chooses the words of the prompt.
std::string request_body(const GenerationRequest& request, std::uint64_t number);

}  // namespace rooflined::simulator
