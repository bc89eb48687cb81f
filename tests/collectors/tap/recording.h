// Test doubles for the two ends of the TCP stage: a handler that writes down what it is told, and its factory.

#pragma once

#include "collectors/tap/connection.h"
#include "tests/support/packets.h"

#include <memory>
#include <string>
#include <vector>

namespace rooflined::test {

inline LineTime line_ms(std::int64_t ms) {
  return LineTime::from_ns(ms * 1'000'000);
}
inline CaptureTime capture_ms(std::int64_t ms) {
  return CaptureTime::from_ns(ms * 1'000'000);
}
inline std::int64_t to_ms(LineTime at) {
  return at.ns() / 1'000'000;
}

inline std::string name_of(tap::GapCause cause) {
  switch (cause) {
    case tap::GapCause::kHoleTooOld:
      return "old";
    case tap::GapCause::kBufferFull:
      return "full";
    case tap::GapCause::kStreamClosed:
      return "closed";
    case tap::GapCause::kTruncated:
      return "truncated";
  }
  return "?";
}

inline std::string name_of(tap::CloseCause cause) {
  switch (cause) {
    case tap::CloseCause::kFinished:
      return "finished";
    case tap::CloseCause::kResetByClient:
      return "reset by client";
    case tap::CloseCause::kResetByServer:
      return "reset by server";
    case tap::CloseCause::kReplaced:
      return "replaced";
    case tap::CloseCause::kIdle:
      return "idle";
    case tap::CloseCause::kEvicted:
      return "evicted";
    case tap::CloseCause::kEndOfCapture:
      return "end of capture";
  }
  return "?";
}

// What one connection was told. It outlives the handler.
struct Record {
  tap::ConnectionInfo info;
  std::string to_server;
  std::string to_client;
  std::vector<std::string> events;  // in order, with times in ms: "up 5 hello", "down gap 3 old", "close 9 finished"
  std::uint64_t bytes_missing = 0;
  bool closed = false;
  bool lost_interest = false;
};

class RecordingFactory final : public tap::ConnectionFactory {
 public:
  std::unique_ptr<tap::ConnectionHandler> open(const tap::ConnectionInfo& info) override {
    records.push_back(std::make_shared<Record>());
    records.back()->info = info;
    return std::make_unique<Handler>(records.back(), lose_interest);
  }

  // Shared with the handlers, which the connection table destroys before the test looks.
  std::vector<std::shared_ptr<Record>> records;
  bool lose_interest = false;

 private:
  class Handler final : public tap::ConnectionHandler {
   public:
    Handler(std::shared_ptr<Record> record, bool lose_interest)
        : record_(std::move(record)), lose_interest_(lose_interest) {}

    void on_bytes(tap::Direction direction, std::span<const std::byte> bytes, LineTime at) override {
      const std::string text = as_text(bytes);
      (direction == tap::Direction::kToServer ? record_->to_server : record_->to_client) += text;
      record_->events.push_back(way(direction) + std::to_string(to_ms(at)) + " " + text);
    }
    void on_gap(tap::Direction direction, const tap::Gap& gap) override {
      record_->bytes_missing += gap.bytes_missing;
      record_->events.push_back(way(direction) + "gap " + std::to_string(gap.bytes_missing) + " " + name_of(gap.cause));
    }
    void on_client_window(bool closed, LineTime at) override {
      record_->events.push_back("window " + std::string(closed ? "closed " : "open ") + std::to_string(to_ms(at)));
    }
    void on_half_close(tap::Direction direction, LineTime at) override {
      record_->events.push_back(way(direction) + "end " + std::to_string(to_ms(at)));
    }
    void on_close(tap::CloseCause cause, LineTime at) override {
      record_->closed = true;
      record_->events.push_back("close " + std::to_string(to_ms(at)) + " " + name_of(cause));
    }
    bool lost_interest() const override { return lose_interest_; }

   private:
    static std::string way(tap::Direction direction) {
      return direction == tap::Direction::kToServer ? "up " : "down ";
    }
    std::shared_ptr<Record> record_;
    bool lose_interest_;
  };
};

}  // namespace rooflined::test
