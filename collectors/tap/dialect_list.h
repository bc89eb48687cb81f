// Names every dialect once. A new one adds its line here and in dialect_table.cc.

#pragma once

namespace rooflined::tap {

struct Dialect;

extern const Dialect kOpenAiChatDialect;
extern const Dialect kOpenAiCompletionsDialect;
extern const Dialect kLlamaCppNativeDialect;

}  // namespace rooflined::tap
