// Serves HTTP to any number of clients from one thread, none of which can hold it up.
//
//   in:   a listening socket, and a handler that answers a complete request at once
//   out:  responses, written as fast as each client takes them
//
// Every socket is non-blocking: a request is answered only when its head is there, and a response waits in memory until
// it is taken. Bounds, all in Limits: number of connections (the one that waits longest goes first), bytes of a request
// head, bytes of all waiting responses, and a time for each phase. Each limit that is reached is counted.

#pragma once

#include "metrics/export/channel.h"
#include "metrics/export/http_engine.h"
#include "metrics/export/owned_fd.h"
#include "metrics/export/scrape.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace rooflined::metrics_export {

struct HttpLimits {
  std::size_t connections_max = 128;
  std::size_t request_bytes_max = 16 * 1024;
  std::size_t waiting_bytes_max = 8 * 1024 * 1024;
  std::chrono::milliseconds request_time_max{5000};    // from the connection or the first byte to the end of the head
  std::chrono::milliseconds response_time_max{10000};  // to take a response
  std::chrono::milliseconds idle_time_max{90000};      // between requests: longer than the usual scrape interval
};

class HttpLoop {
 public:
  HttpLoop(const HttpLimits& limits, OwnedFd listener, std::unique_ptr<ChannelFactory> channels, HttpHandler handler);
  ~HttpLoop();
  HttpLoop(const HttpLoop&) = delete;
  HttpLoop& operator=(const HttpLoop&) = delete;

  // False where the kernel gave no descriptor for stop().
  bool valid() const { return wake_.valid(); }
  // Serves until stop(); called once, by the thread that is to do the work.
  void run();
  // From any thread; run() returns soon.
  void stop();
  // From any thread.
  WebCounters counters() const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Connection;

  int wait(Clock::time_point now);
  void accept_new(Clock::time_point now);
  void make_room();
  void advance(Connection& connection, Clock::time_point now);
  void write_some(Connection& connection, Clock::time_point now);
  void read_some(Connection& connection, Clock::time_point now);
  void drain(Connection& connection);
  void answer(Connection& connection, std::size_t head_size, Clock::time_point now);
  void send(Connection& connection, HttpReply reply, Clock::time_point now);
  void bound_waiting_bytes(const Connection& newest);
  void expire(Clock::time_point now);

  HttpLimits limits_;
  OwnedFd listener_;
  OwnedFd wake_;
  std::unique_ptr<ChannelFactory> channels_;
  HttpEngine engine_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::atomic<bool> stopping_ = false;
  bool accept_paused_ = false;  // out of descriptors: tried again with the next turn
  std::atomic<std::uint64_t> dropped_timeout_ = 0;
  std::atomic<std::uint64_t> dropped_limit_ = 0;
  std::atomic<std::uint64_t> dropped_too_large_ = 0;
};

}  // namespace rooflined::metrics_export
