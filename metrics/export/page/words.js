// What is wrong now, in words: a list of {act, what, where, todo}, made from a state and nothing else.
// act: somebody should do something; otherwise a reason to read a figure with care.
"use strict";

const CAVEATS = {
  ceiling_stale: ["the ceiling is older than max_age", "Let the node idle for a minute, or run “rooflined membw --adopt” in a drain."],
  ceiling_observed: ["the ceiling is the highest decode rate seen, not a measurement",
    "Good for this node’s own trend, not for comparing nodes. “rooflined membw --adopt” in a drain measures one."],
  cache_assisted: ["the model is partly served from cache", "MBU against the memory’s ceiling says little for a model this small."],
  numa_bound: ["the engine is pinned to a part of the memory", "MBU is of those nodes’ bandwidth where they were measured."],
  offload: ["part of the model may be on a GPU, so MBU is absent",
    "Set device = \"cpu\", or \"gpu\" with rated_bytes_per_second, in its [[target]]."],
  geometry_partial: ["the bytes of the KV cache are unknown", "Set kv_bytes_per_token, or model, in its [[target]]; MBU reads low until then."],
  converted: ["the engine converts the weights when it loads them", "Set weight_bits in its [[target]] where the engine’s format is known."],
  speculation: ["the engine speculates; its draft model’s own reads are not counted", "Set draft_model in its [[target]]."],
  parallelism: ["experts or context are spread over several processes or hosts", "Bytes are those of the whole model: compare this target with itself only."],
  estimated_tokens: ["over 5 % of the tokens are estimates", "Let clients ask for usage totals (stream_options.include_usage), or the server report them."],
  merged_frames: ["several tokens often come in one frame", "Means hold; latency quantiles are smoothed."],
  lossy: ["the capture lost packets", "Narrow [capture] interface and ports, or give the daemon more CPU."],
  sampled: ["only a part of the connections is watched, so MBU is absent", "Raise [limits] cpu, or narrow [capture] ports."],
};
const CAVEATS_TO_ACT_ON = new Set(["ceiling_stale", "offload", "lossy", "sampled"]);
const BLOCKS = {
  capture: "the capture is down", requests: "requests are in flight", cpu: "others use the CPUs", load: "too many tasks run",
  pressure: "tasks wait for CPU or memory", memory: "too little memory is free", contended: "others use the memory’s bandwidth",
};

const percent = (ratio) => `${(ratio * 100).toFixed(ratio < 0.0995 ? 1 : 0)} %`;

function mbuWords(mbu, caveats) {
  const cached = caveats.includes("cache_assisted");
  if (mbu > 1) return cached ? "partly served from cache" : "at or above the measured ceiling";
  return percent(mbu);
}

// The running deploy, where one was seen: the first generation only says what ran when the target was found.
const lastDeploy = (target) => (target.deploys ?? []).filter((deploy) => deploy.timestamp !== undefined).at(-1);

// "0.81 of before (0.78 to 0.84)"
const changeWords = (change) => `${change.ratio.toFixed(2)} of before (${change.low.toFixed(2)} to ${change.high.toFixed(2)})`;

// The alerts of deploy/prometheus, as a person reads them.
function deployFinding(target) {
  const deploy = lastDeploy(target);
  if (!deploy || deploy.ended || deploy.withheld) return null;
  const mbu = deploy.mbu_change, itl = deploy.itl_change;
  if (mbu && mbu.high < 0.95 && !(itl && itl.high < 1)) {
    return [`since its last deploy MBU is at ${changeWords(mbu)}, at like batch and context`,
      "Compare build, options and model file; roll back if users wait longer, or end the comparison with “rooflined mark-deploy --accept”."];
  }
  if (itl && itl.low > 1.05) {
    return [`since its last deploy users wait longer for a token: ITL is at ${changeWords(itl)}`,
      "MBU held, so more bytes are read for each token: look at quantisation, KV cache type and model."];
  }
  return null;
}

function captureFindings(state, lost) {
  const found = [];
  for (const collector of state.collectors) {
    if (!collector.up) {
      found.push({act: true, where: "", what: collector.name === "tap" ? "the capture is down: nothing is seen" : `the collector ${collector.name} fails`,
        todo: "The daemon tries again by itself; its log says why it failed (journalctl -u rooflined)."});
    }
  }
  if (lost > 0) found.push({act: true, where: "", what: `the kernel dropped ${lost} packets while this page was open`, todo: CAVEATS.lossy[1]});
  for (const [reason, name] of [["tls", "TLS"], ["http2", "HTTP/2"]]) {
    if (state.capture.parse_errors[reason] > 0) {
      found.push({act: true, where: "", what: `a watched port speaks ${name}, which cannot be read`,
        todo: "Name in [capture] ports the port where the engine itself answers plain HTTP/1.1."});
    }
  }
  return found;
}

function ceilingFindings(state) {
  if (!state.targets.some((target) => target.up && target.memory === "ram" && target.role === "engine")) return [];
  if (!state.ceiling) {
    const blocked = Object.keys(state.idle_blocked).filter((reason) => state.idle_blocked[reason]).map((reason) => BLOCKS[reason] ?? reason);
    return [{act: true, where: "", what: `no ceiling is adopted yet, so MBU is absent${blocked.length ? `; the node is not idle: ${blocked.join(", ")}` : ""}`,
      todo: "Five quiet seconds are enough for a first measurement; or run “rooflined membw --adopt”."}];
  }
  const found = [];
  if (state.ceiling.suspect) {
    found.push({act: false, where: "", what: "the last measurement of the ceiling is far from the adopted one, or the only one",
      todo: "A later one decides. If results stay low, look for other load on the memory, a lower clock, or a missing module."});
  }
  if (state.ceiling.stable === false) {
    found.push({act: false, where: "", what: "the last measurement of the ceiling was not stable", todo: "Something else used the memory; it is measured again."});
  }
  return found;
}

function targetFindings(target) {
  const found = [];
  const add = (act, what, todo) => found.push({act, where: target.target, what, todo});
  if (!target.up) {
    if (target.configured) add(true, "the server is gone: nothing listens on its port", "Start it again, or take its [[target]] out of the settings.");
    return found;
  }
  if (target.role !== "engine") return found;
  const deploy = deployFinding(target);
  if (deploy) add(true, ...deploy);
  if (!target.geometry) add(true, "the shape of its model is unknown, so bytes and MBU are absent", "Name the model file in its [[target]] (model = …).");
  if (target.memory === "gpu" && target.bandwidth === undefined) {
    add(true, "the bandwidth of its GPU is unknown, so MBU is absent", "Set gpus and rated_bytes_per_second in its [[target]].");
  }
  for (const reason of target.caveats ?? []) {
    const [what, todo] = CAVEATS[reason] ?? [reason, ""];
    add(CAVEATS_TO_ACT_ON.has(reason), what, todo);
  }
  return found;
}

// The same finding about several targets is one line.
function findings(state, lost) {
  const merged = new Map();
  const targets = state.targets.filter((target) => !target.retired);
  for (const found of [...captureFindings(state, lost), ...ceilingFindings(state), ...targets.flatMap(targetFindings)]) {
    const same = merged.get(found.what);
    if (same) same.where.push(found.where);
    else merged.set(found.what, {...found, where: found.where ? [found.where] : []});
  }
  return [...merged.values()].sort((a, b) => Number(b.act) - Number(a.act));
}
