#include "tests/simulator/answer_reader.h"

#include "tests/support/catch.h"

#include <string>

namespace rooflined::simulator {
namespace {

TEST_CASE("frames may be cut anywhere and end in CRLF") {
  const std::string stream =
      ": ping\n\ndata: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\r\n\r\n"
      "data:{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: "
      "{\"choices\":[{\"delta\":{\"reasoning\":\"b\"}}]}\n\n"
      "data: {\"choices\":[],\"usage\":{\"completion_tokens\":4,\"prompt_tokens\":2}}\n\ndata: [DONE]\n\n";
  for (std::size_t cut = 0; cut <= stream.size(); ++cut) {
    AnswerReader answer(true);
    const std::uint64_t tokens = answer.read(stream.substr(0, cut)) + answer.read(stream.substr(cut));
    REQUIRE(tokens == 2);
    REQUIRE(answer.total_tokens() == 4U);
    REQUIRE(answer.finish());
  }
}

TEST_CASE("a stream without its end, with an error or with rubbish is incomplete") {
  const char* const stream = GENERATE("", "data: {\"choices\":[]}\n\n", "data: {\"error\":{}}\n\ndata: [DONE]\n\n",
                                      "data: rubbish\n\ndata: [DONE]\n\n", "data: 5\n\ndata: [DONE]\n\n");
  CAPTURE(stream);
  AnswerReader answer(true);
  answer.read(stream);
  CHECK_FALSE(answer.finish());
}

TEST_CASE("what does not end is given up on") {
  AnswerReader answer(true);
  const std::string piece(1 << 20, 'x');
  for (int i = 0; i < 20; ++i) answer.read(piece);
  CHECK_FALSE(answer.finish());
}

}  // namespace
}  // namespace rooflined::simulator
