#include "metrics/deploy_change.h"

#include "metrics/student_t.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

namespace rooflined {
namespace {

constexpr std::size_t kColumns = 3;  // log B, log c, log² B
using Columns = std::array<double, kColumns>;

constexpr double kConfidence = 0.995;
constexpr double kAutocorrelationMax = 0.97;
// Starting anew changes an engine a little by itself: where its memory lies, which huge pages it got.
constexpr double kRestartSpread = 0.02;

Columns columns_of(const DeploySlice& slice) {
  const double log_batch = slice.log_batch;
  return {log_batch, slice.log_context, log_batch * log_batch};
}

double value_of(const DeploySlice& slice, ChangeOf what) {
  return what == ChangeOf::kRate ? slice.log_rate : slice.log_itl;
}

// Least squares on orthogonalised columns, so that one without a spread of its own (a constant batch) drops out.
class Fit {
 public:
  Fit(const std::vector<DeploySlice>& slices, ChangeOf what) : count_(static_cast<double>(slices.size())) {
    std::vector<Columns> rows;
    rows.reserve(slices.size());
    for (const DeploySlice& slice : slices) {
      rows.push_back(columns_of(slice));
      mean_value_ += value_of(slice, what) / count_;
      for (std::size_t j = 0; j < kColumns; ++j) mean_[j] += rows.back()[j] / count_;
    }
    for (Columns& row : rows) {
      for (std::size_t j = 0; j < kColumns; ++j) row[j] -= mean_[j];
    }
    for (std::size_t j = 0; j < kColumns; ++j) orthogonalise(rows, j);
    for (std::size_t j = 0; j < kColumns; ++j) {
      if (!used_[j]) continue;
      ++columns_used_;
      for (std::size_t i = 0; i < rows.size(); ++i) {
        slope_[j] += rows[i][j] * (value_of(slices[i], what) - mean_value_) / square_[j];
      }
    }
  }

  Columns coordinates(const DeploySlice& slice) const {
    Columns row = columns_of(slice);
    for (std::size_t j = 0; j < kColumns; ++j) {
      row[j] -= mean_[j];
      for (std::size_t i = 0; i < j; ++i) row[j] -= projection_[j][i] * row[i];
    }
    for (std::size_t j = 0; j < kColumns; ++j) row[j] = used_[j] ? row[j] : 0;
    return row;
  }
  double predict(const Columns& coordinates) const {
    double value = mean_value_;
    for (std::size_t j = 0; j < kColumns; ++j) value += slope_[j] * coordinates[j];
    return value;
  }
  // The variance of a prediction there, over that of a residual: 1/n in the middle of the data, more beside it.
  double leverage(const Columns& coordinates) const {
    double sum = 1 / count_;
    for (std::size_t j = 0; j < kColumns; ++j) {
      if (used_[j]) sum += coordinates[j] * coordinates[j] / square_[j];
    }
    return sum;
  }
  double parameters() const { return 1 + static_cast<double>(columns_used_); }

 private:
  void orthogonalise(std::vector<Columns>& rows, std::size_t j) {
    constexpr double kSpreadMin = 1e-3;  // of a logarithm: less is rounding
    for (std::size_t i = 0; i < j; ++i) {
      if (!used_[i]) continue;
      double product = 0;
      for (const Columns& row : rows) product += row[i] * row[j];
      projection_[j][i] = product / square_[i];
      for (Columns& row : rows) row[j] -= projection_[j][i] * row[i];
    }
    for (const Columns& row : rows) square_[j] += row[j] * row[j];
    used_[j] = square_[j] > count_ * kSpreadMin * kSpreadMin;
  }

  double count_;
  double mean_value_ = 0;
  Columns mean_{};
  Columns square_{};
  Columns slope_{};
  std::array<Columns, kColumns> projection_{};
  std::array<bool, kColumns> used_{};
  std::size_t columns_used_ = 0;
};

// Work of one kind: an octave of the batch by an octave of the context.
using Cell = std::pair<int, int>;

Cell cell_of(const DeploySlice& slice) {
  constexpr double kLn2 = 0.6931471805599453;
  return {static_cast<int>(std::floor(slice.log_batch / kLn2)), static_cast<int>(std::floor(slice.log_context / kLn2))};
}

std::vector<DeploySlice> usable(std::span<const DeploySlice> slices, ChangeOf what) {
  std::vector<DeploySlice> kept;
  for (const DeploySlice& slice : slices) {
    if (what == ChangeOf::kItl || slice.bytes_known) kept.push_back(slice);
  }
  if (kept.size() > kDeploySlicesMax) kept.erase(kept.begin(), kept.end() - kDeploySlicesMax);
  return kept;
}

std::vector<DeploySlice> at_like_work(std::span<const DeploySlice> before, const std::vector<DeploySlice>& after) {
  constexpr int kCellMin = 3;
  std::map<Cell, int> cells;
  for (const DeploySlice& slice : before) ++cells[cell_of(slice)];
  std::vector<DeploySlice> alike;
  for (const DeploySlice& slice : after) {
    const auto cell = cells.find(cell_of(slice));
    if (cell != cells.end() && cell->second >= kCellMin) alike.push_back(slice);
  }
  return alike;
}

// Of residuals one slice apart, freed of its bias towards 0. Slices with a pause between them say nothing of it, but
// where all are like that they are all there is.
double autocorrelation(const std::vector<DeploySlice>& slices, const std::vector<double>& residuals) {
  constexpr double kPairsMin = 30;
  double square = 0;
  for (const double residual : residuals) square += residual * residual;
  const auto count = static_cast<double>(residuals.size());
  const double variance = square / count;
  constexpr double kRounding = 1e-12;  // squared: slices are kept as floats
  if (variance < kRounding) return 0;
  double adjacent = 0;
  double adjacent_pairs = 0;
  double any = 0;
  for (std::size_t i = 1; i < residuals.size(); ++i) {
    const double product = residuals[i - 1] * residuals[i];
    any += product;
    if (slices[i].index - slices[i - 1].index != 1) continue;
    adjacent += product;
    ++adjacent_pairs;
  }
  const bool enough = adjacent_pairs >= kPairsMin;
  const double pairs = enough ? adjacent_pairs : count - 1;
  const double found = (enough ? adjacent : any) / pairs / variance;
  // With an estimated mean the expectation is ρ − (1 + 4ρ)/n (Kendall 1954).
  return std::clamp((pairs * found + 1) / (pairs - 4), 0.0, kAutocorrelationMax);
}

double effective(double count, double autocorrelation) {
  return std::max(1.0, count * (1 - autocorrelation) / (1 + autocorrelation));
}

}  // namespace

std::optional<DeployChange> deploy_change(std::span<const DeploySlice> all_before,
                                          std::span<const DeploySlice> all_after, ChangeOf what) {
  const std::vector<DeploySlice> before = usable(all_before, what);
  if (before.size() < kDeployBeforeMin) return std::nullopt;
  const std::vector<DeploySlice> after = at_like_work(before, usable(all_after, what));
  if (after.size() < kDeployAfterMin) return std::nullopt;
  const Fit fit(before, what);

  std::vector<double> residuals;
  double square_before = 0;
  for (const DeploySlice& slice : before) {
    residuals.push_back(value_of(slice, what) - fit.predict(fit.coordinates(slice)));
    square_before += residuals.back() * residuals.back();
  }
  const auto count_before = static_cast<double>(before.size());
  const auto count_after = static_cast<double>(after.size());
  double mean = 0;
  double square_after = 0;
  Columns middle{};
  for (const DeploySlice& slice : after) {
    const Columns coordinates = fit.coordinates(slice);
    const double residual = value_of(slice, what) - fit.predict(coordinates);
    mean += residual / count_after;
    square_after += residual * residual;
    for (std::size_t j = 0; j < kColumns; ++j) middle[j] += coordinates[j] / count_after;
  }
  const double variance = std::max(square_before / (count_before - fit.parameters()),
                                   (square_after - count_after * mean * mean) / (count_after - 1));

  const double correlated = autocorrelation(before, residuals);
  const double effective_before = effective(count_before, correlated);
  const double effective_after = effective(count_after, correlated);
  // The regression itself is less sure away from the middle of what was before; there it is 1 / effective_before.
  const double spread = fit.leverage(middle) * count_before / effective_before + 1 / effective_after;
  const double quantile = effective_before > 1 ? student_t_quantile(kConfidence, effective_before - 1) : INFINITY;
  const double half_width = std::hypot(quantile * std::sqrt(std::max(0.0, variance) * spread), kRestartSpread);
  constexpr double kHalfWidthMax = 4.605170185988092;  // ln 100
  if (!(half_width < kHalfWidthMax)) return std::nullopt;
  return DeployChange{std::exp(mean), std::exp(mean - half_width), std::exp(mean + half_width), after.size()};
}

}  // namespace rooflined
