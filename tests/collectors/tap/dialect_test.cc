#include "collectors/tap/dialect_table.h"

#include "collectors/tap/http_buffer.h"
#include "collectors/tap/json_reader.h"

#include "tests/support/catch.h"

#include <fmt/format.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace rooflined::tap {

TEST_CASE("every dialect is in the table once, and has what it needs") {
  std::set<std::string_view> names;
  for (const Dialect* dialect : dialects()) {
    REQUIRE(dialect != nullptr);
    INFO(dialect->name);
    CHECK(names.insert(dialect->name).second);
    CHECK(dialect->read != nullptr);
    CHECK_FALSE(dialect->routes.empty());
    for (const DialectRoute& route : dialect->routes) CHECK(route.path_end.starts_with('/'));
  }
}

TEST_CASE("routes") {
  struct Row {
    std::string_view path;
    std::string_view dialect;
  };
  const std::vector<Row> rows = {
      {"/v1/chat/completions", "openai_chat"},
      {"/chat/completions", "openai_chat"},
      {"/api/v0/chat/completions", "openai_chat"},
      {"/v1/completions", "openai_completions"},
      {"/openai/v1/completions", "openai_completions"},
      {"/completion", "llamacpp_native"},
      {"/completions", "llamacpp_native"},
      {"/infill", "llamacpp_native"},
      {"/prefix/completion", "llamacpp_native"},
      {"/v1/chat/completions/control", ""},
      {"/v1/models", ""},
      {"/v1/embeddings", ""},
      {"/notinfill", ""},
      {"/v1/streams/lookup", ""},
      {"/", "tgi"},
      {"/v1", ""},
      {"/api/generate", "ollama"},
      {"/ollama/api/chat", "ollama"},
      {"/api/embed", ""},
      {"/api/embeddings", ""},
      {"/api/show", ""},
      {"/api/pull", ""},
      {"/v1/messages", "anthropic"},
      {"/v1/messages/count_tokens", ""},
      {"/v1/responses", "responses"},
      {"/v1/responses/resp_1/cancel", ""},
      {"/generate", "sglang_native"},
      {"/generate_stream", "tgi"},
      {"/health_generate", ""},
      {"/v2/models/m/generate", "triton"},
      {"/v2/models/m/versions/1/generate_stream", "triton"},
      {"/api/v1/chat", "lmstudio"},
      {"/api/v1/generate", "kobold"},
      {"/api/extra/generate/stream", "kobold"},
      {"/api/extra/generate/check", ""},
      {"/api/extra/tokencount", ""},
      {"/v1/rerank", ""},
      {"/tokenize", ""},
      {"", ""},
  };
  for (const Row& row : rows) {
    INFO(row.path);
    const Dialect* dialect = dialect_of_route(row.path).dialect;
    CHECK((dialect == nullptr ? std::string_view{} : dialect->name) == row.dialect);
  }
}

TEST_CASE("a frame of unknown origin is known by its shape") {
  struct Row {
    std::string_view frame;
    Reading reading;
    std::string_view dialect;
  };
  const std::vector<Row> rows = {
      {R"({"choices":[{"delta":{"content":"a"}}]})", Reading::kOwn, "openai_chat"},
      {R"({"choices":[{"message":{"content":"a"}}]})", Reading::kOwn, "openai_chat"},
      {R"({"choices":[{"text":"a"}]})", Reading::kOwn, "openai_completions"},
      {R"({"object":"text_completion","choices":[]})", Reading::kOwn, "openai_completions"},
      {R"({"content":"a","stop":false})", Reading::kOwn, "llamacpp_native"},
      {R"({"content":"a","tokens_predicted":1})", Reading::kOwn, "llamacpp_native"},
      {R"({"choices":[],"usage":{"completion_tokens":3}})", Reading::kNeutral, ""},
      {R"({"error":{"message":"x"}})", Reading::kNeutral, ""},
      {R"({"content":"a"})", Reading::kUnknown, ""},
      {R"({"choices":1})", Reading::kUnknown, ""},
      {R"({"status":"ok"})", Reading::kUnknown, ""},
      {R"({})", Reading::kUnknown, ""},
      {R"([1])", Reading::kNoJson, ""},
      {R"(hello)", Reading::kNoJson, ""},
      {R"({"choices":[{"delta")", Reading::kNoJson, ""},
      {R"("unclosed)", Reading::kNoJson, ""},
  };
  DialectReader reader;
  for (const Row& row : rows) {
    INFO(row.frame);
    const Dialect* dialect = nullptr;
    CHECK(static_cast<int>(reader.read_frame(row.frame, 0, dialect)) == static_cast<int>(row.reading));
    CHECK((dialect == nullptr ? std::string_view{} : dialect->name) == row.dialect);
  }
}

TEST_CASE("what was read before a frame breaks off is kept") {
  DialectReader reader;
  const Dialect* dialect = nullptr;
  REQUIRE(reader.read_frame(R"({"choices":[{"index":2,"delta":{"content":"abc"}}],"usage":nonsense,"x":{]})", 0,
                            dialect) == Reading::kOwn);
  REQUIRE(reader.facts().choices.size() == 1);
  CHECK(reader.facts().choices[0].index == 2);
  CHECK(reader.facts().choices[0].characters == 3);
}

TEST_CASE("a frame is told from the others' by its shape in every dialect") {
  struct Row {
    std::string_view frame;
    std::string_view dialect;
  };
  const std::vector<Row> rows = {
      {R"({"model":"m","message":{"role":"assistant","content":"a"},"done":false})", "ollama"},
      {R"({"model":"m","response":"a","done":false})", "ollama"},
      {R"({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}})", "anthropic"},
      {R"({"type":"response.output_text.delta","delta":"a"})", "responses"},
      {R"({"text":"a","meta_info":{"completion_tokens":1}})", "sglang_native"},
      {R"({"token":{"id":1,"text":"a"},"generated_text":null})", "tgi"},
      {R"({"token":"a","finish_reason":null})", "kobold"},
      {R"({"results":[{"text":"a"}]})", "kobold"},
      {R"({"type":"message.delta","content":"a"})", "lmstudio"},
      {R"({"model_name":"m","text_output":"a"})", "triton"},
  };
  DialectReader reader;
  for (const Row& row : rows) {
    for (const Dialect* named : dialects()) {
      INFO(row.frame << " as " << named->name);
      const Dialect* dialect = named;
      CHECK(reader.read_frame(row.frame, 0, dialect) == Reading::kOwn);
      CHECK(dialect->name == row.dialect);
    }
  }
}

// Trap: a frame is thrown away for a byte that has nothing to do with its tokens.
TEST_CASE("one bad byte elsewhere in a frame loses no token") {
  struct Row {
    std::string_view route;
    std::string_view before;
    std::string_view token;
    std::string_view after;
  };
  const std::vector<Row> rows = {
      {"/v1/chat/completions", R"({"id":"chatcmpl-123","object":"chat.completion.chunk","created":17,"model":"m")",
       R"(,"choices":[{"index":0,"delta":{"content":"a"})", R"(,"logprobs":null,"finish_reason":null}],"usage":null})"},
      {"/v1/completions", R"({"id":"cmpl-123","object":"text_completion","created":17,"model":"m")",
       R"(,"choices":[{"index":0,"text":"a")", R"(,"logprobs":null,"finish_reason":null}],"usage":null})"},
      {"/api/chat", R"({"model":"m","created_at":"2026-01-01T00:00:00Z")",
       R"(,"message":{"role":"assistant","content":"a"},"done":false)", R"(,"x":1})"},
      {"/v1/responses", R"({"sequence_number":7,"item_id":"msg_1","output_index":0)",
       R"(,"type":"response.output_text.delta","delta":"a")", R"(,"logprobs":[]})"},
  };
  for (const Row& row : rows) {
    const std::string whole = std::string(row.before) + std::string(row.token) + std::string(row.after);
    for (std::size_t at = 1; at < whole.size(); ++at) {
      if (at >= row.before.size() && at < row.before.size() + row.token.size()) continue;
      for (const char bad : {'\xff', '\x01', '"', '}', '\\', 'x'}) {
        std::string frame = whole;
        frame[at] = bad;
        DialectReader reader;
        const Dialect* dialect = dialect_of_route(row.route).dialect;
        Reading reading = reader.read_frame(frame, 0, dialect);
        if (reader.damaged()) reading = reader.read_damaged(frame, dialect);
        const bool found =
            reading == Reading::kOwn && reader.facts().choices.size() == 1 && reader.facts().choices[0].characters == 1;
        if (found) continue;
        INFO(frame);
        CHECK(found);
      }
    }
  }
}

// Trap 46: ids that several answers share.
TEST_CASE("only an id that can be unique identifies a response") {
  const auto id_of = [](std::string_view id) {
    DialectReader reader;
    const Dialect* dialect = nullptr;
    reader.read_frame(fmt::format(R"({{"id":"{}","choices":[{{"text":"a"}}]}})", id), 0, dialect);
    return reader.facts().response_id;
  };
  for (const std::string_view shared : {"", "koboldcpp", "chatcmpl-998", "cmpl-0", "1", "chatcmpl-A1"}) {
    INFO(shared);
    CHECK_FALSE(id_of(shared));
  }
  for (const std::string_view unique : {"chatcmpl-blldDN8AIN8D4Yi4", "cmpl-6b1f6f0c-1c1a-4a41-a1d2-3f8a0f4f9d11",
                                        "aabbccdd00112233aabbccdd00112233", "msg_01abcdef"}) {
    INFO(unique);
    CHECK(id_of(unique));
  }
  CHECK(id_of("chatcmpl-blldDN8AIN8D4Yi4") != id_of("chatcmpl-blldDN8AIN8D4Yi5"));
}

TEST_CASE("choices beyond the bound are left out") {
  std::string frame = R"({"choices":[)";
  for (int i = 0; i < 500; ++i) frame += (i == 0 ? "" : ",") + std::string(R"({"text":"a"})");
  frame += "]}";
  DialectReader reader;
  const Dialect* dialect = nullptr;
  REQUIRE(reader.read_frame(frame, 0, dialect) == Reading::kOwn);
  CHECK(reader.facts().choices.size() == FrameFacts::kChoicesMax);
}

TEST_CASE("raw strings count their characters") {
  CHECK(json_characters("") == 0);
  CHECK(json_characters("abc") == 3);
  CHECK(json_characters("a\xc3\xa9\xe4\xb8\xad") == 3);
  CHECK(json_characters(R"(\n\"\\)") == 3);
  CHECK(json_characters(R"(\u00e9x)") == 2);
  CHECK(json_characters(R"(\ud83d\ude00!)") == 2);
  CHECK(json_characters(R"(\u12)") == 1);
  CHECK(json_characters("\\") == 1);
}

TEST_CASE("a text buffer keeps to its bound and forgets") {
  TextBudget budget;
  TextBuffer buffer(budget);
  CHECK(buffer.append("hello", 8));
  CHECK_FALSE(buffer.append("world", 8));
  CHECK(buffer.view() == "hello");
  buffer.keep_last(2);
  CHECK(buffer.view() == "lo");
  const char* block = buffer.view().data();
  buffer.clear();
  CHECK(std::string_view(block, 5) == std::string_view("\0\0\0\0\0", 5));
}

}  // namespace rooflined::tap
