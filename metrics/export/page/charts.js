// Plain SVG charts. Every function returns nodes; texts go in as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

function svg(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function picture(width, height, label, ...children) {
  return svg("svg", {viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": label}, ...children);
}

const text = (x, y, anchor, words, style = "") => svg("text", {x, y, "text-anchor": anchor, class: style}, words);
const fixed = (value) => value.toFixed(1);

// 1, 2 or 5 times a power of ten, at or above.
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].find((step) => step * power >= value * 0.9999) * power;
}

// A path through points of time, interrupted where one is missing or 20 s pass without any.
function curve(points, x, y) {
  let path = "", last = null;
  for (const [at, value] of points) {
    if (value === null || value === undefined) { last = null; continue; }
    path += `${last !== null && at - last < 20 ? "L" : "M"}${fixed(x(at))} ${fixed(y(value))}`;
    // A lone point would be an invisible path.
    if (last === null) path += "h0.1";
    last = at;
  }
  return path;
}

// The last `span` seconds of one figure; `marks` are the times of deploys. `end` is the end of the scale, where it is given.
function timeline({points, marks, now, span, width, style, name, format, end}) {
  const height = 56, top = 14, values = points.map((point) => point[1]).filter((value) => value !== null && value !== undefined);
  const most = end ?? roundUp(Math.max(...values, 1e-6));
  const x = (at) => width * (1 - (now - at) / span), y = (value) => top + (height - top) * (1 - value / most);
  const inside = marks.filter((at) => at <= now && now - at < span);
  const label = values.length === 0 ? `${name}: no decode in the last minutes`
    : `${name} over the last ten minutes: now ${format(values[values.length - 1])}, from ${format(Math.min(...values))} to ${format(Math.max(...values))}`
      + (inside.length ? `; ${inside.length} deploy${inside.length > 1 ? "s" : ""}` : "");
  return picture(width, height, label,
    svg("path", {class: "grid", d: `M0 ${top}H${width}M0 ${height}H${width}`}),
    text(0, 10, "start", name), text(width, 10, "end", values.length ? format(most) : ""),
    ...inside.map((at) => svg("path", {class: "deploy", d: `M${fixed(x(at))} ${top}V${height}`})),
    svg("path", {class: `curve ${style}`, d: curve(points, x, y)}));
}

// Log-log: tokens per gigabyte against tokens per second, a roof for each bandwidth.
function roofline({points, roofs, width, name}) {
  const height = Math.round(Math.min(340, Math.max(240, width * 0.55))), left = 46, bottom = height - 34, right = width - 10, top = 12;
  const decades = (values) => [Math.floor(Math.log10(Math.min(...values) / 1.6)), Math.ceil(Math.log10(Math.max(...values) * 1.6))];
  const [x0, x1] = decades(points.map((point) => point.intensity));
  const fastest = Math.max(...roofs);
  const [y0, y1] = decades([...points.map((point) => point.rate), ...points.map((point) => point.intensity * fastest / 1e9)]);
  const x = (value) => left + (right - left) * (Math.log10(value) - x0) / (x1 - x0);
  const y = (value) => bottom - (bottom - top) * (Math.log10(value) - y0) / (y1 - y0);
  const marks = [];
  for (let power = x0; power <= x1; power++) {
    marks.push(svg("path", {class: "grid", d: `M${fixed(x(10 ** power))} ${top}V${bottom}`}), text(x(10 ** power), bottom + 15, power === x1 ? "end" : "middle", short(10 ** power)));
  }
  for (let power = y0; power <= y1; power++) {
    marks.push(svg("path", {class: "grid", d: `M${left} ${fixed(y(10 ** power))}H${right}`}), text(left - 5, y(10 ** power) + 4, "end", short(10 ** power)));
  }
  const lines = roofs.map((roof) => {
    // Clipped to the frame by hand: the line from corner to corner in log space.
    const from = Math.max(10 ** x0, 10 ** y0 * 1e9 / roof), to = Math.min(10 ** x1, 10 ** y1 * 1e9 / roof);
    return svg("path", {class: "roof", d: `M${fixed(x(from))} ${fixed(y(from * roof / 1e9))}L${fixed(x(to))} ${fixed(y(to * roof / 1e9))}`});
  });
  const taken = [];
  const dots = points.flatMap((point) => {
    const px = x(point.intensity), py = y(point.rate);
    const name = point.target.length > 24 ? `${point.target.slice(0, 23)}…` : point.target, length = name.length * 6.6, flip = px + 9 + length > right;
    const dot = svg("circle", {cx: fixed(px), cy: fixed(py), r: 5, class: `f${point.colour}`}, svg("title", {}, point.words));
    const box = {from: flip ? px - length - 9 : px + 9, y: py, length};
    if (taken.some((other) => Math.abs(other.y - box.y) < 13 && box.from < other.from + other.length && other.from < box.from + box.length)) return [dot];
    taken.push(box);
    return [dot, text(px + (flip ? -9 : 9), py + 4, flip ? "end" : "start", name, "name")];
  });
  return picture(width, height, `Roofline of the targets on ${name}: ${points.map((point) => point.words).join("; ")}`,
    ...marks, ...lines, ...dots, text((left + right) / 2, height - 3, "middle", "tokens per GB read"),
    svg("text", {x: -(top + bottom) / 2, y: 11, transform: "rotate(-90)", "text-anchor": "middle"}, "tokens/s while decoding"));
}

// Results of measurements over time, and the one that is adopted.
function resultChart(results, adopted, width) {
  const height = 150, left = 46, bottom = height - 20, top = 10;
  const rates = results.map((result) => result.bytes_per_second), most = Math.max(...rates, adopted), least = Math.min(...rates, adopted);
  const high = most + (most - least || most * 0.1) * 0.25, low = Math.max(0, least - (most - least || most * 0.1) * 0.25);
  const y = (rate) => bottom - (bottom - top) * (rate - low) / (high - low);
  const first = results[0].measured_at, last = results[results.length - 1].measured_at;
  const x = (at) => last === first ? (left + width) / 2 : left + 10 + (width - left - 20) * (at - first) / (last - first);
  return picture(width, height, `${results.length} results from ${gigabytes(Math.min(...rates))} to ${gigabytes(Math.max(...rates))}; adopted ${gigabytes(adopted)}`,
    svg("path", {class: "grid", d: `M${left} ${top}V${bottom}H${width}`}),
    text(left - 5, y(most) + 4, "end", (most / 1e9).toFixed(1)), text(left - 5, y(least) + 4, "end", most === least ? "" : (least / 1e9).toFixed(1)),
    svg("path", {class: "adopted", d: `M${left} ${fixed(y(adopted))}H${width}`}), text(width, y(adopted) - 5, "end", "adopted"),
    ...results.map((result) => svg("circle", {cx: fixed(x(result.measured_at)), cy: fixed(y(result.bytes_per_second)), r: 4.5, class: "f0"},
      svg("title", {}, `${gigabytes(result.bytes_per_second)}, ${result.kernel}, ${result.threads} threads, ${moment(result.measured_at)}`))),
    text(left, height - 5, "start", moment(first)), text(width, height - 5, "end", last === first ? "" : moment(last)));
}

// One row for each cell: its repetitions as dots, its median as a tick.
function sampleChart(cells, width) {
  const row = 22, left = Math.min(150, width * 0.42), height = cells.length * row + 20;
  const most = roundUp(Math.max(...cells.map((cell) => cell.best)));
  const x = (rate) => left + (width - left - 8) * rate / most;
  return picture(width, height, cells.map((cell) => `${cell.name}: best ${gigabytes(cell.best)}, median ${gigabytes(cell.median)}, ${cell.stable ? "stable" : "not stable"}`).join("; "),
    ...cells.flatMap((cell, index) => {
      const y = index * row + 12;
      return [svg("path", {class: "grid", d: `M${left} ${y}H${width - 8}`}), text(left - 6, y + 4, "end", cell.name, cell.confirmation ? "name" : ""),
        ...cell.samples.map((rate) => svg("circle", {cx: fixed(x(rate)), cy: y, r: 3, class: cell.stable ? "f2" : "f1"})),
        svg("path", {class: "roof", d: `M${fixed(x(cell.median))} ${y - 7}v14`})];
    }),
    text(left, height - 3, "start", "0"), text(width - 8, height - 3, "end", gigabytes(most)));
}
