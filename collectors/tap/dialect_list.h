// Names every dialect once. A new one adds its line here and in dialect_table.cc.

#pragma once

namespace rooflined::tap {

struct Dialect;

extern const Dialect kOpenAiChatDialect;
extern const Dialect kOpenAiCompletionsDialect;
extern const Dialect kLlamaCppNativeDialect;
extern const Dialect kOllamaDialect;
extern const Dialect kAnthropicDialect;
extern const Dialect kResponsesDialect;
extern const Dialect kSglangNativeDialect;
extern const Dialect kTgiDialect;
extern const Dialect kKoboldDialect;
extern const Dialect kLmStudioDialect;
extern const Dialect kTritonDialect;

}  // namespace rooflined::tap
