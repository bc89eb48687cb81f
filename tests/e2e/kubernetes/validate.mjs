// Validates Kubernetes objects (YAML on standard input) against the published schemas, as the npm packages
// kubernetes-models carry them. Prints one line for each object; exits with 1 when one is not valid, or of an unknown kind.
import { readFileSync } from "node:fs";
import { parseAllDocuments } from "yaml";

let failed = 0;
let seen = 0;
for (const document of parseAllDocuments(readFileSync(0, "utf8"))) {
  const object = document.toJS();
  if (!object) continue;
  seen += 1;
  const library = object.apiVersion.startsWith("monitoring.coreos.com/") ? "@kubernetes-models/prometheus-operator" : "kubernetes-models";
  const name = `${object.kind} ${object.metadata.name}`;
  try {
    const classes = await import(`${library}/${object.apiVersion}`);
    new classes[object.kind](object).validate();
    console.log(`valid: ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`not valid: ${name}: ${error.message}`);
  }
}
if (seen === 0) console.log("nothing to validate");
process.exit(failed || seen === 0 ? 1 : 0);
