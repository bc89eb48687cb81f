// A new key and a certificate signed by it, as PEM files in a temporary folder that goes with the object.

#pragma once

#include "tests/support/temporary_folder.h"

#include <string>

namespace rooflined {

class SelfSigned {
 public:
  SelfSigned();

  std::string certificate_path() const { return folder_.path() + "/certificate.pem"; }
  std::string key_path() const { return folder_.path() + "/key.pem"; }

 private:
  TemporaryFolder folder_;
};

}  // namespace rooflined
