#include "collectors/tap/frame_memo.h"

#include "collectors/tap/dialect_table.h"
#include "tests/support/catch.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>

namespace rooflined::tap {
namespace {

class Bench {
 public:
  // As an exchange does: known frames by the memo, the others by the reader. What it says, as text.
  std::string read(const std::string& frame) {
    if (const ChoiceFacts* known = memo_.read(frame)) {
      ++by_memo;
      return describe(*known);
    }
    const std::string text = by_reader(frame);
    memo_.learn(frame, reader_.facts());
    return text;
  }

  std::string by_reader(const std::string& frame) {
    reader_.read_frame(frame, 0, dialect_);
    std::string text;
    for (const ChoiceFacts& choice : reader_.facts().choices) text += describe(choice);
    return text;
  }

  std::size_t kept() const { return budget_.held; }
  FrameMemo& memo() { return memo_; }
  int by_memo = 0;

 private:
  static std::string describe(const ChoiceFacts& choice) {
    return fmt::format(
        "{} text={} empty={} reasoning={} role={} finished={} characters={} ids={} logprobs={} count={}; ",
        choice.index, choice.has_text, choice.empty_text, choice.reasoning, choice.role, choice.finished,
        choice.characters, choice.ids, choice.logprobs, choice.cumulative.value_or(0));
  }

  TextBudget budget_;
  FrameMemo memo_{budget_};
  DialectReader reader_;
  const Dialect* dialect_ = nullptr;
};

std::string chat(std::string_view text, std::string_view more = "") {
  return fmt::format(
      R"({{"id":"chatcmpl-word12345678","object":"chat.completion.chunk","model":"word","choices":[{{"index":0,"delta":{{"content":"{}"}},"finish_reason":null}}]{}}})",
      text, more);
}

}  // namespace

TEST_CASE("a frame that differs in its text alone is known, and says what the reader would say") {
  Bench bench;
  bench.read(chat("word"));  // which stands in the id and the name of the model, too
  for (const char* text : {"a", " two words", "{}[],:"}) {
    INFO(text);
    CHECK(bench.read(chat(text)) == bench.by_reader(chat(text)));
  }
  CHECK(bench.by_memo == 3);
}

TEST_CASE("every dialect's frames say the same with the memo as without") {
  const char* const kFrames[] = {
      R"({"content":"%","stop":false,"id_slot":0})",
      R"({"model":"m","message":{"role":"assistant","content":"%"},"done":false})",
      R"({"model":"m","message":{"role":"assistant","content":"","thinking":"%"},"done":false})",
      R"({"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"%"}})",
      R"({"type":"response.output_text.delta","item_id":"msg_1","delta":"%"})",
      R"({"type":"message.delta","content":"%"})",
      R"({"token":"%","finish_reason":null})",
      R"({"model_name":"m","text_output":"%"})",
      R"({"text":"%","meta_info":{"id":"a","completion_tokens":3}})",
      R"({"object":"text_completion","choices":[{"index":1,"text":"%","logprobs":null}]})",
      R"({"choices":[{"index":0,"delta":{"reasoning":"%","reasoning_content":"%"}}]})",
      R"({"choices":[{"index":0,"delta":{"tool_calls":[{"function":{"arguments":"%"}}]}}]})",
      R"({"choices":[{"index":0,"text":"%","logprobs":{"tokens":["x"]}}]})",
      R"({"index":1,"token":{"id":3,"text":"%","special":false}})",
  };
  for (const std::string pattern : kFrames) {
    Bench bench;
    for (const std::string text : {"some", "other", "", "x", "\\n", "\\\"", "caf\xC3\xA9", "back"}) {
      std::string frame;
      for (const char c : pattern) frame += c == '%' ? text : std::string(1, c);
      INFO(frame);
      CHECK(bench.read(frame) == Bench().by_reader(frame));
    }
  }
}

TEST_CASE("whatever else a frame says, the reader reads it") {
  Bench bench;
  bench.read(chat("word"));
  for (const std::string& frame : {chat(""), chat("\\u00e9"), chat("\\\""), chat("a\",\"x\":\"b"), chat("caf\xC3\xA9"),
                                   chat("a\x01"), chat("a", R"(,"usage":{"prompt_tokens":3,"completion_tokens":9})"),
                                   chat("a").substr(1), std::string("[DONE]")}) {
    INFO(frame);
    CHECK(bench.memo().read(frame) == nullptr);
  }
}

TEST_CASE("a response whose frames never repeat is given up, and nothing is kept of it") {
  Bench bench;
  for (int i = 0; i < 20; ++i) bench.read(chat("word", fmt::format(R"(,"created":{})", i)));
  CHECK(bench.by_memo == 0);
  CHECK(bench.kept() == 0);
  bench.read(chat("word"));
  bench.read(chat("word"));
  CHECK(bench.by_memo == 0);
}

}  // namespace rooflined::tap
