// compare.mjs BASE CHART: the kustomize base and the chart with its default values describe the same pod and the same rules.
import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { parseAllDocuments } from "yaml";

const [base, chart] = process.argv.slice(2).map((path) =>
  parseAllDocuments(readFileSync(path, "utf8")).map((document) => document.toJS()).filter(Boolean));
const find = (objects, kind) => objects.find((object) => object.kind === kind);

function pod(objects) {
  const spec = structuredClone(find(objects, "DaemonSet").spec.template.spec);
  delete spec.serviceAccountName;
  for (const container of [...spec.containers, ...spec.initContainers]) delete container.imagePullPolicy;
  for (const volume of spec.volumes) delete volume.configMap;
  return spec;
}

let failed = 0;
for (const [what, left, right] of [
  ["pod", pod(base), pod(chart)],
  ["rules", find(base, "PrometheusRule").spec, find(chart, "PrometheusRule").spec],
]) {
  if (isDeepStrictEqual(left, right)) continue;
  failed = 1;
  console.log(`the ${what} of the kustomize base and of the chart differ (base.yaml, chart.yaml)`);
}
process.exit(failed);
