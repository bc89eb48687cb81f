// The dialects: how a family of servers writes its frames. One file for each, one line in dialect_table.cc.
//
// A dialect is a pure function from the JSON of one frame to FrameFacts. The route of a request names the dialect
// first; the shape of what comes back corrects it, and decides alone where no request was seen.

#pragma once

#include "collectors/tap/dialect_facts.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace rooflined::tap {

// How well a frame's shape fits a dialect.
enum class Shape : std::uint8_t {
  kForeign,  // of another dialect, or of none
  kNeutral,  // fits, and would fit others too (an error, totals alone)
  kOwn,      // of this dialect
};

// Wraps the JSON library's object, so that only dialects and the reader include it.
class JsonFrame;

struct DialectRoute {
  // The end of a path, beginning with a slash; the longest that fits a request's path wins.
  std::string_view path_end;
  bool streamed = false;  // where the request does not say
  // What must stand somewhere in front of that end.
  std::string_view path_part = {};
};

struct Dialect {
  std::string_view name;
  std::span<const DialectRoute> routes;
  // Whose dialect it is, as long as nothing else on the wire says more.
  ServerFamily family = ServerFamily::kUnknown;
  // No frame says that the stream is over: the end of the body does.
  bool ends_with_body = false;
  // A request without a prompt only loads a model (or drops it): no exchange unless tokens come of it.
  bool loads_without_prompt = false;
  Shape (*read)(JsonFrame& frame, FrameFacts& facts) = nullptr;
};

std::span<const Dialect* const> dialects();

struct RouteFit {
  const Dialect* dialect = nullptr;  // nullptr: no generation route
  bool streamed = false;             // as in DialectRoute
};

// `path` is a request's, without its query.
RouteFit dialect_of_route(std::string_view path);

enum class Reading : std::uint8_t {
  kOwn,      // understood
  kNeutral,  // understood, and no proof of an inference server
  kUnknown,  // JSON of no dialect
  kNoJson,   //
};

// Reads frames and request bodies; one for all connections. Thread: one.
class DialectReader {
 public:
  DialectReader();
  ~DialectReader();
  DialectReader(const DialectReader&) = delete;
  DialectReader& operator=(const DialectReader&) = delete;

  // Fills facts() by `dialect`, or by the first other that owns the frame: `dialect` is changed to that one.
  // `readable_after` as in JsonReader::open().
  Reading read_frame(std::string_view text, std::size_t readable_after, const Dialect*& dialect);
  // The same for a frame that read_frame() found damaged: what its other fields say about tokens, if that can be read.
  // Otherwise kNoJson.
  Reading read_damaged(std::string_view text, const Dialect*& dialect);
  // Whether the last text broke off or is broken somewhere, and no token was read before that place.
  bool damaged() const noexcept { return damaged_; }
  // The same for a whole answer, which may be an array of such objects.
  Reading read_document(std::string_view text, std::size_t readable_after, const Dialect*& dialect);
  // Whether the next texts' response ids are wanted: one of a response is enough.
  void want_response_id(bool wanted) noexcept { facts_.wants_response_id = wanted; }
  const FrameFacts& facts() const noexcept { return facts_; }
  // Whether the last text had to be cleaned of broken bytes.
  bool cleaned() const noexcept { return cleaned_; }

  // nullopt: the body is no JSON object. `streamed`: as in DialectRoute.
  std::optional<RequestFacts> read_request(std::string_view text, std::size_t readable_after, bool streamed);
  // The same of a body that breaks off: the fields in front of that place.
  std::optional<RequestFacts> read_request_start(std::string_view text, bool streamed);

 private:
  struct Json;
  void place_text();
  Reading try_dialects(const Dialect*& dialect);
  Reading read_mended(std::string_view start, std::string_view text, std::string_view end, const Dialect*& dialect);

  std::unique_ptr<Json> json_;
  FrameFacts facts_;
  bool cleaned_ = false;
  bool damaged_ = false;
};

}  // namespace rooflined::tap
