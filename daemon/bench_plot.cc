#include "daemon/bench_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

namespace rooflined::daemon {
namespace {

constexpr double kWidth = 900;
constexpr double kHeight = 600;
constexpr double kLeft = 80;
constexpr double kRight = 870;
constexpr double kTop = 74;
constexpr double kBottom = 515;
constexpr double kLineHeight = 16;
constexpr double kCharWidth = 6.9;  // of 12 px sans-serif, on the wide side
constexpr std::size_t kLabelMax = 36;

struct Point {
  double x = 0;  // models of this size that 1 GB holds
  double y = 0;  // tokens/s
  const BenchModel* model = nullptr;
};

struct Box {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;

  bool overlaps(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// 1, 2 or 5 times a power of ten, so that about six of them reach `high`.
double tick_step(double high) {
  const double raw = high / 6;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  for (const double times : {1.0, 2.0, 5.0}) {
    if (raw <= times * power) return times * power;
  }
  return 10 * power;
}

class Plot {
 public:
  Plot(const BenchInput& input, const BenchAnalysis& analysis, std::vector<Point> points)
      : input_(input), analysis_(analysis), points_(std::move(points)) {
    for (const Point& point : points_) {
      x_max_ = std::max(x_max_, point.x);
      y_max_ = std::max(y_max_, point.y);
    }
    x_max_ *= 1.12;
    y_max_ *= 1.15;
  }

  std::string draw() {
    frame();
    if (input_.ceiling) line(*input_.ceiling, "#b3541e", "stroke-dasharray=\"7 5\"", "ceiling");
    if (analysis_.fit) line(analysis_.fit->bandwidth, "#1f5fa8", "", "fit");
    for (const Point& point : points_) marker(point);
    labels();
    return out_ + "</svg>\n";
  }

 private:
  double at_x(double x) const { return kLeft + x / x_max_ * (kRight - kLeft); }
  double at_y(double y) const { return kBottom - y / y_max_ * (kBottom - kTop); }

  void text(double x, double y, std::string_view anchor, std::string_view style, std::string_view words) {
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" {}>{}</text>\n", x, y, anchor, style,
                        escaped(words));
  }

  void frame() {
    out_ += fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
        "font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n<rect width=\"{0}\" height=\"{1}\" "
        "fill=\"#fff\"/>\n",
        kWidth, kHeight);
    text(kLeft, 26, "start", "font-size=\"17\" font-weight=\"bold\"", "Decode speed against the bytes of a token");
    text(kLeft, 47, "start", "fill=\"#555\"", summary());
    const double x_step = tick_step(x_max_);
    for (double x = 0; x <= x_max_; x += x_step) {
      out_ += fmt::format("<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#e4e4e4\"/>\n", at_x(x),
                          kTop, kBottom);
      text(at_x(x), kBottom + 18, "middle", "", fmt::format("{:g}", x));
      if (x > 0)
        text(at_x(x), kBottom + 34, "middle", "fill=\"#777\" font-size=\"11\"", fmt::format("{:.4g} MB", 1e3 / x));
    }
    const double y_step = tick_step(y_max_);
    for (double y = 0; y <= y_max_; y += y_step) {
      out_ += fmt::format("<line x1=\"{1}\" x2=\"{2}\" y1=\"{0:.1f}\" y2=\"{0:.1f}\" stroke=\"#e4e4e4\"/>\n", at_y(y),
                          kLeft, kRight);
      text(kLeft - 8, at_y(y) + 4, "end", "", fmt::format("{:g}", y));
    }
    out_ += fmt::format("<path d=\"M{0} {1}V{2}H{3}\" fill=\"none\" stroke=\"#444\"/>\n", kLeft, kTop, kBottom, kRight);
    text((kLeft + kRight) / 2, kBottom + 60, "middle", "", "1 / GB that a token reads (below: MB that a token reads)");
    out_ +=
        fmt::format("<text transform=\"translate(22 {}) rotate(-90)\" text-anchor=\"middle\">decode, tokens/s</text>\n",
                    (kTop + kBottom) / 2);
  }

  std::string summary() const {
    std::string words;
    if (analysis_.fit) {
      words = fmt::format("fit {:.2f} GB/s over {} models", analysis_.fit->bandwidth * 1e-9, analysis_.fit->points);
      if (analysis_.fit->r_squared) words += fmt::format(", R² {:.3f}", *analysis_.fit->r_squared);
    }
    if (input_.ceiling) {
      words += fmt::format("{}ceiling {:.2f} GB/s ({})", words.empty() ? "" : "; ", *input_.ceiling * 1e-9,
                           input_.ceiling_source == CeilingSource::kMeasured ? "measured" : "given");
    }
    return words;
  }

  // From the origin to where it leaves the frame. Its name sits on its end.
  void line(BytesPerSecond bandwidth, std::string_view colour, std::string_view style, std::string_view name) {
    const double slope = bandwidth * 1e-9;
    const double x = std::min(x_max_, y_max_ / slope);
    out_ += fmt::format(
        "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"1.8\" {}/>\n",
        at_x(0), at_y(0), at_x(x), at_y(slope * x), colour, style);
    // No label on the line, as far as there is room beside it.
    for (double share = 0; share <= 1; share += 0.01) {
      const double along = share * x;
      taken_.push_back({at_x(along) - 2, at_y(slope * along) - 2, at_x(along) + 2, at_y(slope * along) + 2});
    }
    const bool over_the_top = x < x_max_;
    const Box box = over_the_top ? Box{at_x(x) - 64, kTop - 17, at_x(x), kTop - 3}
                                 : Box{kRight - 48, at_y(slope * x) - 18, kRight - 2, at_y(slope * x) - 4};
    text(box.right, box.bottom - 2, "end", fmt::format("fill=\"{}\" font-weight=\"bold\"", colour), name);
    taken_.push_back(box);
  }

  // A circle; a diamond for a mixture of experts; a hollow triangle for what ran on a GPU.
  void marker(const Point& point) {
    const double x = at_x(point.x);
    const double y = at_y(point.y);
    if (point.model->moe) {
      out_ += fmt::format("<path d=\"M{:.1f} {:.1f}l7 7l-7 7l-7 -7z\" fill=\"#8a3ab9\" stroke=\"#fff\"/>\n", x, y - 7);
    } else if (point.model->offloaded) {
      out_ += fmt::format("<path d=\"M{:.1f} {:.1f}l7 12h-14z\" fill=\"#fff\" stroke=\"#555\"/>\n", x, y - 7);
    } else {
      out_ += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" fill=\"#1f5fa8\" stroke=\"#fff\"/>\n", x, y);
    }
    taken_.push_back({x - 7, y - 7, x + 7, y + 7});
  }

  bool is_free(const Box& box) const {
    if (box.left < kLeft || box.right > kWidth || box.top < kTop - 10 || box.bottom > kBottom) return false;
    return std::none_of(taken_.begin(), taken_.end(), [&box](const Box& other) { return box.overlaps(other); });
  }

  // The nearest free place: right below first, where the lines are not; then farther, right and left.
  Box place(double x, double y, double width) const {
    for (int away = 0; away < 20; ++away) {
      for (const int sign : {1, -1}) {
        const double top = y - kLineHeight / 2 + sign * away * kLineHeight / 2;
        for (const double left : {x + 10, x - 10 - width}) {
          const Box box{left, top, left + width, top + kLineHeight};
          if (is_free(box)) return box;
        }
      }
    }
    return {x + 10, y - kLineHeight / 2, x + 10 + width, y + kLineHeight / 2};
  }

  void labels() {
    for (const Point& point : points_) {
      std::string name = point.model->name;
      if (name.size() > kLabelMax) name = name.substr(0, kLabelMax - 3) + "...";
      if (point.model->moe) name += " (MoE)";
      if (point.model->offloaded) name += " (GPU)";
      const double x = at_x(point.x);
      const double y = at_y(point.y);
      const Box box = place(x, y, kCharWidth * static_cast<double>(name.size()));
      const bool right = box.left > x;
      const double middle = (box.top + box.bottom) / 2;
      if (std::fabs(middle - y) > kLineHeight) {
        out_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#aaa\"/>\n", x, y,
                            right ? box.left - 2 : box.right + 2, middle);
      }
      text(right ? box.left : box.right, box.bottom - 4, right ? "start" : "end",
           "stroke=\"#fff\" stroke-width=\"3\" paint-order=\"stroke\"", name);
      taken_.push_back(box);
    }
  }

  const BenchInput& input_;
  const BenchAnalysis& analysis_;
  std::vector<Point> points_;
  double x_max_ = 0;
  double y_max_ = 0;
  std::vector<Box> taken_;
  std::string out_;
};

}  // namespace

std::string bench_plot(const BenchInput& input, const BenchAnalysis& analysis) {
  std::vector<Point> points;
  for (const ModelFigures& figures : analysis.models) {
    if (figures.bytes) points.push_back({1e9 / *figures.bytes, figures.decode, &input.models[figures.model]});
  }
  if (points.empty()) return "";
  return Plot(input, analysis, std::move(points)).draw();
}

}  // namespace rooflined::daemon
