// Reads what a generation request says about its prompt and its answer. The field names of all dialects are read alike:
// none of them means something else elsewhere.

#pragma once

#include "collectors/tap/dialect_facts.h"

namespace rooflined::tap {

class JsonFrame;

RequestFacts read_request_body(JsonFrame& frame, bool streamed);

}  // namespace rooflined::tap
