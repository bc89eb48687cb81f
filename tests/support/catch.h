// Catch2 of Debian 12 (2.13) and of Debian 13 (3.7) by one include.

#pragma once

#ifdef ROOFLINED_CATCH2_V3
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
