// The page itself: asks for the state every two seconds and changes what has changed, so that focus, selection and opened
// details stay. The daemon's answers are data: they become text and numbers, never markup.

const POLL_MS = 2000, ANSWER_MS = 5000, SPAN = 600, SLOW_AFTER_MS = 6000;

const $ = (id) => document.getElementById(id);
const dash = "–";
const number = (value, digits) => value === undefined || value === null ? dash : value.toFixed(digits);
const gigabytes = (rate) => `${(rate / 1e9).toFixed(rate < 1e11 ? 1 : 0)} GB/s`;
const milliseconds = (seconds) => `${(seconds * 1e3).toFixed(seconds < 0.01 ? 2 : 1)} ms`;
const rate = (value) => `${value.toFixed(value < 100 ? 1 : 0)} tokens/s`;
const moment = (at) => new Date(at * 1000).toLocaleString([], {month: "short", day: "numeric", hour: "2-digit", minute: "2-digit"});
const clock = (at) => new Date(at * 1000).toLocaleTimeString();

function short(value) {
  for (const [unit, size] of [["M", 1e6], ["k", 1e3]]) if (value >= size) return `${value / size}${unit}`;
  return String(Number(value.toPrecision(1)));
}

function age(seconds) {
  for (const [unit, size] of [["day", 86400], ["hour", 3600], ["minute", 60]]) {
    const count = Math.floor(seconds / size);
    if (count >= 1) return `${count} ${unit}${count > 1 ? "s" : ""}`;
  }
  return "less than a minute";
}

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

function say(node, words) {
  if (node.textContent !== words) node.textContent = words;
}

function rows(table, head, body) {
  const words = JSON.stringify([head, body]);
  if (table.dataset.words === words) return;
  table.dataset.words = words;
  table.replaceChildren(
    element("thead", {}, element("tr", {}, ...head.map((cell) => element("th", {scope: "col"}, cell)))),
    element("tbody", {}, ...body.map((row) => element("tr", {}, ...row.map((cell, index) => index === 0 ? element("th", {scope: "row"}, cell) : element("td", {}, cell))))));
}

const minutes = new Map();  // target → [[at, tokens/s, ITL, MBU], …]
const cards = new Map();    // target → nodes of its card
let droppedAtFirst = null, answeredAt = 0, awaySince = null, drawnWidth = 0, latest = null, asking = false, timer = 0;

function remember(state) {
  for (const target of state.targets) {
    if (target.retired) continue;
    const points = minutes.get(target.target) ?? [];
    if (target.live) points.push([state.taken_at, target.live.tokens_per_second, target.live.itl_seconds?.mean ?? null, target.live.mbu_ratio ?? null]);
    minutes.set(target.target, points.filter((point) => state.taken_at - point[0] <= SPAN && point[0] <= state.taken_at));
  }
  for (const name of minutes.keys()) if (!state.targets.some((target) => target.target === name)) minutes.delete(name);
}

function newCard() {
  const stat = (name) => { const dd = element("dd"); return [element("div", {}, element("dt", {}, name), dd), dd]; };
  const card = {title: element("h3"), about: element("p", {class: "soft"}), mbu: element("span", {class: "mbu"}), bound: element("p", {class: "soft"}),
    fill: element("div"), figures: element("dl"), charts: element("div", {class: "charts"}), change: element("p", {class: "soft"})};
  card.meter = element("div", {class: "meter", role: "meter", "aria-label": "MBU", "aria-valuemin": "0", "aria-valuemax": "100"}, card.fill);
  for (const [key, name] of [["rate", "tokens/s"], ["itl", "ITL"], ["batch", "batch"], ["context", "context"]]) {
    const [box, value] = stat(name);
    card[key] = value;
    card.figures.append(box);
  }
  card.root = element("article", {}, card.title, card.about, card.mbu, card.meter, card.bound, card.figures, card.charts, card.change);
  return card;
}

// The live ten seconds where something was decoded in them, else the first window that saw any.
// The newest figures of that kind, the live window's where it has them.
function windowOf(target, has) {
  return [target.live, ...(target.windows ?? [])].find((window) => window && has(window));
}

function deployWords(target) {
  const deploy = lastDeploy(target);
  if (!deploy) return "";
  const changes = [["MBU", deploy.mbu_change], ["ITL", deploy.itl_change]].filter(([, change]) => change).map(([name, change]) => `${name} ${changeWords(change)}`);
  return `Last deploy: ${moment(deploy.timestamp)} (${deploy.cause})${changes.length ? `: ${changes.join(", ")}` : deploy.ended ? "" : "; not yet enough decode to compare"}.`;
}

function drawCard(card, target, colour, now, width) {
  const window = windowOf(target, (one) => one.itl_seconds), mbu = window?.mbu_ratio;
  say(card.title, target.target);
  say(card.about, [target.model, `${target.server}${target.version ? ` ${target.version}` : ""}`, target.memory === "gpu" ? "GPU" : "RAM",
    target.role === "proxy" ? `passes on to ${target.engine || "another target"}` : "", target.up ? "" : "gone"].filter(Boolean).join(" · "));
  card.root.setAttribute("aria-label", target.target);
  const words = mbu === undefined ? "" : mbuWords(mbu, target.caveats ?? []);
  if (mbu === undefined) say(card.mbu, target.up ? (window ? "MBU unknown" : "idle") : "gone");
  else if (card.mbu.dataset.words !== words + window.window) {
    card.mbu.replaceChildren(words, element("small", {}, ` MBU, last ${window.window}`));
    card.mbu.dataset.words = words + window.window;
  }
  if (mbu === undefined) delete card.mbu.dataset.words;
  card.meter.hidden = mbu === undefined;
  if (mbu !== undefined) {
    card.meter.setAttribute("aria-valuenow", String(Math.round(Math.min(1, mbu) * 100)));
    card.meter.setAttribute("aria-valuetext", words);
    card.fill.style.width = `${Math.min(1, mbu) * 100}%`;
  }
  say(card.bound, target.bandwidth === undefined ? "" : `of ${gigabytes(target.bandwidth)}${window?.tokens_per_second_bound === undefined || mbu > 1 ? "" : `, which would allow ${rate(window.tokens_per_second_bound)}`}`);
  say(card.rate, number(window?.tokens_per_second, window?.tokens_per_second < 100 ? 1 : 0));
  say(card.itl, window?.itl_seconds ? milliseconds(window.itl_seconds.mean) : dash);
  say(card.batch, number(window?.batch_size, 2));
  say(card.context, number(window?.context_tokens, 0));
  const points = minutes.get(target.target) ?? [], marks = (target.deploys ?? []).map((deploy) => deploy.timestamp).filter((at) => at !== undefined);
  const chart = (index, name, format, end) => timeline({points: points.map((point) => [point[0], index === 3 && point[3] !== null ? Math.min(1, point[3]) : point[index]]),
    marks, now, span: SPAN, width, style: `s${colour}`, name, format, end});
  card.charts.hidden = points.length === 0;
  card.charts.replaceChildren(chart(3, "MBU", percent, 1), chart(1, "tokens/s", rate), chart(2, "ITL", milliseconds),
    element("div", {class: "soft spread", "aria-hidden": "true"}, element("span", {}, "10 min ago"), element("span", {}, "now")));
  say(card.change, deployWords(target));
}

function drawTargets(state) {
  const shown = state.targets.filter((target) => !target.retired);
  for (const [name, card] of cards) {
    if (shown.some((target) => target.target === name)) continue;
    card.root.remove();
    cards.delete(name);
  }
  const container = $("targets");
  shown.forEach((target, index) => {
    if (!cards.has(target.target)) cards.set(target.target, newCard());
    const card = cards.get(target.target);
    if (container.children[index] !== card.root) container.insertBefore(card.root, container.children[index] ?? null);
  });
  const width = Math.max(160, (shown.length ? cards.get(shown[0].target).charts.clientWidth : 0) || 280);
  shown.forEach((target, index) => drawCard(cards.get(target.target), target, index % 8, state.taken_at, width));
  const ratios = state.node_ratios.filter((ratio) => ratio.window === state.node_ratios[0].window);
  say($("node"), shown.length === 0 ? "No inference server was seen yet. A target appears with its first streamed response on a watched port."
    : ratios.map((ratio) => `${ratio.memory === "gpu" ? "GPU" : "RAM"}: ${percent(ratio.ratio)} of the bandwidth over the last ${ratio.window}, by the wall clock`).join(" · "));
}

// From the bound, which is of the passes whose bytes are known, as MBU is: a rate of all the window's time is absent where
// the model became known within it.
function pointOf(target, index) {
  const window = windowOf(target, (one) => one.mbu_ratio && one.tokens_per_second_bound);
  if (!window || !target.bandwidth) return null;
  const intensity = window.tokens_per_second_bound / target.bandwidth * 1e9;
  const achieved = window.mbu_ratio * window.tokens_per_second_bound;
  return {target: target.target, memory: target.memory, roof: target.bandwidth, colour: index % 8, intensity, rate: achieved, mbu: window.mbu_ratio,
    words: `${target.target}: ${number(intensity, 2)} tokens per GB, ${rate(achieved)} while decoding, MBU ${mbuWords(window.mbu_ratio, target.caveats ?? [])}`};
}

// RAM and GPU never on one scale.
function drawRooflines(state) {
  const points = state.targets.filter((target) => !target.retired).map(pointOf).filter(Boolean);
  $("roofs").hidden = points.length === 0;
  if (points.length === 0) return;
  const memories = [...new Set(points.map((point) => point.memory))].sort().reverse();
  const container = $("rooflines");
  while (container.children.length > memories.length) container.lastChild.remove();
  while (container.children.length < memories.length) container.append(element("article", {}, element("h3"), element("div")));
  memories.forEach((memory, index) => {
    const [title, place] = container.children[index].children, own = points.filter((point) => point.memory === memory);
    const roofs = [...new Set(own.map((point) => point.roof))], name = memory === "gpu" ? "GPU" : "RAM";
    say(title, `${name}, ${roofs.map(gigabytes).join(" and ")}`);
    place.replaceChildren(roofline({points: own, roofs, width: Math.max(260, place.clientWidth || 320), name}));
  });
  rows($("roof-table"), ["target", "memory", "tokens per GB", "tokens/s while decoding", "the bandwidth allows", "MBU"], points.map((point) =>
    [point.target, point.memory.toUpperCase(), number(point.intensity, 3), number(point.rate, 1), number(point.intensity * point.roof / 1e9, 1), point.mbu > 1 ? "≥ ceiling" : percent(point.mbu)]));
}

function ceilingWords(state) {
  const ceiling = state.ceiling;
  if (!ceiling) return "None is adopted yet.";
  const how = ceiling.source === "measured" ? `measured ${age(ceiling.age_seconds)} ago with ${ceiling.kernel} on ${ceiling.threads} threads`
    : ceiling.source === "observed" ? "the highest decode rate seen" : "from the settings";
  const spread = ceiling.median_to_best === undefined ? "" : `; its median is at ${percent(ceiling.median_to_best)} of its best`;
  return `${gigabytes(ceiling.bytes_per_second)}, ${how}${spread}${ceiling.stale ? "; stale" : ""}${ceiling.suspect ? "; waiting for a second result that agrees" : ""}.`;
}

function drawCeiling(state) {
  say($("ceiling"), ceilingWords(state));
  const results = state.ceiling?.results ?? [];
  $("results").hidden = results.length === 0;
  if (results.length) {
    const place = $("results").lastElementChild;
    place.replaceChildren(resultChart(results, state.ceiling.bytes_per_second, Math.max(260, place.clientWidth)));
  }
  const last = state.ceiling_last;
  $("samples").hidden = $("cells").hidden = !last || last.cells.length === 0;
  if ($("samples").hidden) return;
  const named = (cell) => ({...cell, name: `${cell.kernel} × ${cell.threads}`});
  const confirmation = last.confirmation ? [{...named(last.confirmation), name: `${last.confirmation.kernel} × ${last.confirmation.threads} again`, confirmation: true}] : [];
  const cells = [...confirmation, ...last.cells.map(named).sort((a, b) => b.median - a.median)];
  const [, about, place] = $("samples").children;
  say(about, `${moment(last.measured_at)}: ${last.verdict}, over ${(last.working_set_bytes / 2 ** 20).toFixed(0)} MiB. Kernel × threads; the tick is the median.${last.warnings.length ? ` ${last.warnings.join("; ")}.` : ""}`);
  place.replaceChildren(sampleChart(cells, Math.max(260, place.clientWidth)));
  rows($("cells").querySelector("table"), ["cell", "best", "median", "stable", "repetitions, GB/s"], cells.map((cell) =>
    [cell.name, gigabytes(cell.best), gigabytes(cell.median), cell.stable ? "yes" : "no", cell.samples.map((sample) => (sample / 1e9).toFixed(1)).join(" ")]));
}

function drawFindings(state) {
  droppedAtFirst = Math.min(droppedAtFirst ?? state.capture.dropped_packets, state.capture.dropped_packets);
  const found = findings(state, state.capture.dropped_packets - droppedAtFirst), list = $("findings"), words = JSON.stringify(found);
  say($("fine"), found.length ? "" : state.targets.length ? "Nothing." : "Nothing; waiting for traffic.");
  if (list.dataset.words === words) return;
  list.dataset.words = words;
  list.replaceChildren(...found.map((one) => {
    const names = one.where.length > 4 ? [...one.where.slice(0, 3), `${one.where.length - 3} more`] : one.where;
    return element("li", one.act ? {class: "act"} : {}, element("strong", {}, names.length ? `${names.join(", ")}: ` : "This node: "), `${one.what}. `, one.todo);
  }));
}

function draw(state) {
  drawFindings(state);
  drawTargets(state);
  drawRooflines(state);
  drawCeiling(state);
  say($("version"), `· version ${state.version}`);
}

async function ask(path) {
  const answer = await fetch(path, {signal: AbortSignal.timeout(ANSWER_MS), cache: "no-store"});
  if (!answer.ok) throw new Error(answer.status === 503 ? "it is starting" : `it answers with status ${answer.status}`);
  return answer.json();
}

async function loadHistory() {
  const answer = await ask("/api/v1/history");
  minutes.clear();
  for (const [name, points] of Object.entries(answer.targets)) minutes.set(name, points);
}

function goAway(error) {
  if (awaySince === null) awaySince = Date.now();
  if (answeredAt !== 0 && Date.now() - answeredAt < SLOW_AFTER_MS) return;
  const why = error instanceof TypeError || error.name === "TimeoutError" ? "nothing answers" : error.message;
  document.body.classList.add("away");
  say($("live"), "not live");
  $("away").hidden = false;
  say($("away"), `The daemon does not answer (${why}). ${latest ? `What is below is of ${clock(latest.taken_at)}. ` : ""}This page goes on by itself when it is back; “systemctl status rooflined” on the node tells more.`);
}

function comeBack() {
  answeredAt = Date.now();
  awaySince = null;
  document.body.classList.remove("away");
  say($("live"), "live");
  $("away").hidden = true;
}

// The state, or null where the daemon is not there. After an outage what was missed comes with the history.
async function answered() {
  try {
    if (latest === null || awaySince !== null) await loadHistory();
    const state = await ask("/api/v1/state");
    for (const target of state.targets) if (target.further) target.target += ` ${target.model}`;  // a card of its own
    comeBack();
    return state;
  } catch (error) {
    goAway(error);
    return null;
  }
}

async function poll() {
  if (asking) return;
  asking = true;
  clearTimeout(timer);
  const state = await answered();
  asking = false;
  // A page that nobody sees asks nothing.
  if (!document.hidden) timer = setTimeout(poll, POLL_MS);
  if (state === null) return;
  latest = state;
  remember(state);
  draw(state);
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  awaySince = Date.now();
  poll();
});

new ResizeObserver(() => {
  if (latest === null || drawnWidth === document.body.clientWidth) return;
  drawnWidth = document.body.clientWidth;
  draw(latest);
}).observe(document.body);

say($("host"), location.host);
poll();
