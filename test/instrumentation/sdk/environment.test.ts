import { describe, expect, test } from 'vitest';
import { readSdkSettings } from '../../../instrumentation/sdk/environment.ts';

test('without a variable: a page for Prometheus, and no traces', () => {
  expect(readSdkSettings({})).toEqual({
    disabled: false,
    traces: false,
    metrics: ['prometheus'],
    protocol: 'http/protobuf',
    host: 'localhost',
    port: 9464,
    intervalMs: 60_000,
    timeoutMs: 30_000,
    problems: [],
  });
  expect(readSdkSettings({ OTEL_METRICS_EXPORTER: '', OTEL_EXPORTER_PROMETHEUS_PORT: ' ' })).toEqual(
    readSdkSettings({}),
  );
});

describe('traces', () => {
  test.each([
    [{ OTEL_TRACES_EXPORTER: 'otlp' }, true],
    [{ OTEL_TRACES_EXPORTER: 'console' }, true],
    [{ OTEL_TRACES_EXPORTER: 'none' }, false],
    [{ OTEL_TRACES_EXPORTER: ' None ', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }, false],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }, true],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://collector:4318/v1/traces' }, true],
    // Where metrics go says nothing about traces.
    [{ OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://collector:4318/v1/metrics' }, false],
    [{ OTEL_CONFIG_FILE: '/etc/otel.yaml' }, true],
    [{ OTEL_CONFIG_FILE: ' ' }, false],
  ])('%j: %s', (env, traces) => {
    expect(readSdkSettings(env).traces).toBe(traces);
  });
});

describe('metrics', () => {
  test.each([
    ['otlp', ['otlp']],
    ['prometheus,otlp', ['prometheus', 'otlp']],
    [' Console , prometheus, console', ['console', 'prometheus']],
    ['none', []],
    ['otlp,none', []],
    [',', ['prometheus']],
  ])('%j', (OTEL_METRICS_EXPORTER, metrics) => {
    expect(readSdkSettings({ OTEL_METRICS_EXPORTER })).toMatchObject({ metrics, problems: [] });
  });

  test('an unknown exporter is told, and the others are used', () => {
    expect(readSdkSettings({ OTEL_METRICS_EXPORTER: 'otlp,statsd' })).toMatchObject({
      metrics: ['otlp'],
      problems: ['OTEL_METRICS_EXPORTER: "statsd" is none of prometheus, otlp, console, none'],
    });
  });

  test('the protocol of metrics wins over the general one; an unknown one is told', () => {
    const both = { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: 'http/json' };
    expect(readSdkSettings(both).protocol).toBe('http/json');
    expect(readSdkSettings({ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }).protocol).toBe('grpc');
    expect(readSdkSettings({ OTEL_EXPORTER_OTLP_PROTOCOL: 'soap' })).toMatchObject({
      protocol: 'http/protobuf',
      problems: [
        'OTEL_EXPORTER_OTLP_PROTOCOL: "soap" is none of http/protobuf, http/json, grpc; http/protobuf is used',
      ],
    });
  });
});

describe('numbers', () => {
  test.each([
    ['OTEL_EXPORTER_PROMETHEUS_PORT', '1', 'port', 1],
    ['OTEL_EXPORTER_PROMETHEUS_PORT', '65535', 'port', 65_535],
    ['OTEL_METRIC_EXPORT_INTERVAL', '1', 'intervalMs', 1],
    ['OTEL_METRIC_EXPORT_INTERVAL', '2147483647', 'intervalMs', 2_147_483_647],
    ['OTEL_METRIC_EXPORT_TIMEOUT', '500', 'timeoutMs', 500],
  ])('%s=%s', (name, text, key, value) => {
    expect(readSdkSettings({ [name]: text })).toMatchObject({ [key]: value, problems: [] });
  });

  test.each([
    ['OTEL_EXPORTER_PROMETHEUS_PORT', '0', 'port', 9464, '65535'],
    ['OTEL_EXPORTER_PROMETHEUS_PORT', '65536', 'port', 9464, '65535'],
    ['OTEL_EXPORTER_PROMETHEUS_PORT', '-1', 'port', 9464, '65535'],
    ['OTEL_EXPORTER_PROMETHEUS_PORT', '9e3', 'port', 9464, '65535'],
    ['OTEL_METRIC_EXPORT_INTERVAL', '2147483648', 'intervalMs', 60_000, '2147483647'],
    ['OTEL_METRIC_EXPORT_INTERVAL', '1.5', 'intervalMs', 60_000, '2147483647'],
  ])('%s=%s is told and the default used', (name, text, key, value, most) => {
    expect(readSdkSettings({ [name]: text })).toMatchObject({
      [key]: value,
      problems: [`${name}: "${text}" is not a whole number from 1 to ${most}; the default is used`],
    });
  });

  test('no export is given longer than the interval', () => {
    expect(readSdkSettings({ OTEL_METRIC_EXPORT_INTERVAL: '1000' })).toMatchObject({
      intervalMs: 1000,
      timeoutMs: 1000,
    });
  });
});

test('OTEL_SDK_DISABLED', () => {
  expect(readSdkSettings({ OTEL_SDK_DISABLED: 'True' }).disabled).toBe(true);
  expect(readSdkSettings({ OTEL_SDK_DISABLED: 'yes' }).disabled).toBe(false);
});
