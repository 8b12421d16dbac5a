#!/usr/bin/env bash
# Brings the real programs that the tests run, each in the one version they were written for:
#   .tools/bin/otelcol                the OpenTelemetry Collector, from collector/build
#   .tools/bin/prometheus, promtool   Prometheus 3
#   .tools/bin/victoria-metrics       VictoriaMetrics
#   .tools/bin/compose-check          the parser of docker compose, from test/deploy/compose-check
#   .tools/bin/grafana-check          the schema of Grafana's dashboards, from test/dashboards/grafana-check
#   amtool, prometheus-alertmanager   Debian's
#   rabbitmq-server                   Debian's
# What is there already is left alone. What cannot be had is said in one line, and its tests are skipped. The exit code
# is 0 either way. Usage: scripts/real-parts.sh [otelcol] [promtool] [prometheus] [victoria-metrics] [compose-check]
# [grafana-check] [alertmanager]; without arguments, all.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

PROMETHEUS_VERSION=3.16.0
# Prometheus 3.x is the Go module v0.3x.
PROMETHEUS_MODULE=github.com/prometheus/prometheus@v0.316.0
VICTORIA_METRICS_VERSION=1.151.0
VICTORIA_METRICS_MODULE=github.com/VictoriaMetrics/VictoriaMetrics
bin="$PWD/.tools/bin"
log="$PWD/.tools/log"
mkdir -p "$bin" "$log"

folder() {
  case $1 in
    otelcol) echo collector/build ;;
    compose-check) echo test/deploy/compose-check ;;
    grafana-check) echo test/dashboards/grafana-check ;;
  esac
}

# No version says what these were built from: it is written down beside them.
sources() {
  (cd "$(folder "$1")" && cat go.mod go.sum ./*.go) | cksum
}

is_there() {
  case $1 in
    otelcol | compose-check | grafana-check) [ -x "$bin/$1" ] && [ "$(cat "$bin/$1.sources" 2>/dev/null)" = "$(sources "$1")" ] ;;
    victoria-metrics) [ -x "$bin/$1" ] && "$bin/$1" --version | grep -q "v$VICTORIA_METRICS_VERSION$" ;;
    *) [ -x "$bin/$1" ] && "$bin/$1" --version 2>&1 | grep -q "version $PROMETHEUS_VERSION " ;;
  esac
}

# Small programs: no symbols, and no service discovery of clouds, which doubles the time to compile.
build_own() {
  (cd "$(folder "$1")" && go build -trimpath -buildvcs=false -tags remove_all_sd -ldflags '-s -w' -o "$bin/$1" .) &&
    sources "$1" >"$bin/$1.sources"
}

build_victoria_metrics() {
  GOBIN="$bin" go install -trimpath \
    -ldflags "-s -w -X $VICTORIA_METRICS_MODULE/lib/buildinfo.Version=v$VICTORIA_METRICS_VERSION" \
    "$VICTORIA_METRICS_MODULE/app/victoria-metrics@v$VICTORIA_METRICS_VERSION"
}

build_prometheus() {
  GOBIN="$bin" go install -trimpath -tags remove_all_sd \
    -ldflags "-s -w -X github.com/prometheus/common/version.Version=$PROMETHEUS_VERSION" \
    "${PROMETHEUS_MODULE/@//cmd/$1@}"
}

build() {
  is_there "$1" && return
  command -v go >/dev/null || { echo "real parts: no Go here, so no $1: its tests will be skipped"; return; }
  local begun=$SECONDS
  if case $1 in
    otelcol | compose-check | grafana-check) build_own "$1" ;;
    victoria-metrics) build_victoria_metrics ;;
    *) build_prometheus "$1" ;;
  esac >"$log/$1" 2>&1; then
    echo "real parts: $1 built in $((SECONDS - begun)) s"
  else
    echo "real parts: $1 cannot be built ($(tail -n 1 "$log/$1")): its tests will be skipped"
  fi
}

# A part and its package of Debian. Nothing that it brings is started by the installation.
debian() {
  if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
    echo "real parts: no $1 here: its tests will be skipped"
  elif ! { apt-get update -qq &&
    RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2"; } >"$log/$1" 2>&1; then
    echo "real parts: $1 cannot be installed ($(tail -n 1 "$log/$1")): its tests will be skipped"
  fi
}

alertmanager() {
  command -v amtool >/dev/null && command -v prometheus-alertmanager >/dev/null && return
  debian alertmanager prometheus-alertmanager
}

rabbitmq() {
  [ -x /usr/lib/rabbitmq/bin/rabbitmq-server ] && return
  debian rabbitmq rabbitmq-server
}

for part in "${@:-all}"; do
  case $part in
    all) for each in promtool prometheus otelcol victoria-metrics compose-check grafana-check; do build "$each"; done; alertmanager; rabbitmq ;;
    otelcol | promtool | prometheus | victoria-metrics | compose-check | grafana-check) build "$part" ;;
    alertmanager | rabbitmq) "$part" ;;
    *) echo "real parts: no part is called $part" >&2; exit 1 ;;
  esac
done
exit 0
