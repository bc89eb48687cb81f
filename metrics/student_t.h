// Quantiles of Student's t distribution, for degrees of freedom that need not be whole.

#pragma once

namespace rooflined {

// The value below which a share `p` lies. Requires: 0.5 ≤ p < 1, degrees > 0. Within 1e-8 of the true one, relatively;
// infinity where it is above 1e12 (degrees of freedom near 0).
double student_t_quantile(double p, double degrees);

}  // namespace rooflined
