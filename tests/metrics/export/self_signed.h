// A new key and a certificate signed by it, as PEM files in a temporary folder that goes with the object.

#pragma once

#include <string>

namespace rooflined {

class SelfSigned {
 public:
  SelfSigned();
  ~SelfSigned();
  SelfSigned(const SelfSigned&) = delete;
  SelfSigned& operator=(const SelfSigned&) = delete;

  std::string certificate_path() const { return folder_ + "/certificate.pem"; }
  std::string key_path() const { return folder_ + "/key.pem"; }

 private:
  std::string folder_;
};

}  // namespace rooflined
