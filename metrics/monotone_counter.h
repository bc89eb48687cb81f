// A counter that takes additions at once and never goes back: a reduction becomes a debt that its next increments pay.

#pragma once

namespace rooflined {

class MonotoneCounter {
 public:
  void add(double amount) {
    balance_ += amount;
    if (balance_ > shown_) shown_ = balance_;
  }

  // What Prometheus sees.
  double value() const { return shown_; }
  // With the debt subtracted: what a finished replay prints.
  double settled() const { return balance_; }

 private:
  double shown_ = 0;
  double balance_ = 0;
};

}  // namespace rooflined
