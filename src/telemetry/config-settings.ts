/**
 * The shape of the configuration: what may be given, what comes out, and every limit and default in one
 * place. No number of an example is a default here: what is unset stays unset, except where this file says
 * otherwise.
 */

import type { RetryBudgetOptions } from '../core/create-retry-budget.ts';
import type { LowSuccessFloor } from '../core/retry-budget.ts';
import type { EmptyBehaviour, RetryBudgetModel, RetryBudgetUnit } from '../core/terms.ts';

/** What the product may do. Each mode includes the one before. */
export const MODES = ['observe', 'propagate', 'enforce'] as const;
export type Mode = (typeof MODES)[number];

/** `edge` = the outermost trusted component, where budgets of the outside come in. */
export const ENTRY_ROLES = ['edge', 'internal'] as const;
export type EntryRole = (typeof ENTRY_ROLES)[number];

/** Headers of other systems, which their receivers act upon. Written from mode `propagate` on. */
export const FOREIGN_HEADERS = [
  'x-request-timeout-ms',
  'grpc-timeout',
  'x-envoy-expected-rq-timeout-ms',
  'connect-timeout-ms',
] as const;
export type ForeignHeader = (typeof FOREIGN_HEADERS)[number];

/** Largest duration, ms: up to here every whole number is exact in a double. */
export const MAX_MS = 2 ** 53;
/** Largest value of a label cap. It bounds the series of one process together with the other labels. */
export const MAX_LABEL_CAP = 500;
/** Longest name of an operation, dependency, caller or policy version, in characters. */
export const MAX_NAME_LENGTH = 128;
/** Most entries of one list or named group: a bound on start-up work, not on what is useful. */
export const MAX_ENTRIES = 500;
/** Most histogram bounds. Each one is a series for every label combination. */
export const MAX_BUCKETS = 40;

/** Every default that is not "unset". */
export const DEFAULTS = Object.freeze({
  mode: 'observe',
  role: 'internal',
  reserveMs: 0,
  deadlineToleranceMs: 10,
  labels: Object.freeze({ operations: 50, dependencies: 20, callers: 8 }),
} as const);

export type Switch = 'on' | 'off' | boolean;

/** Given settings, as the constructor takes them. The file has the same keys in snake_case. */
export interface ConfigOptions {
  readonly disabled?: boolean | undefined;
  readonly mode?: Mode | undefined;
  readonly entry?:
    | {
        readonly mode?: Mode | undefined;
        readonly role?: EntryRole | undefined;
        readonly trust?: string | readonly string[] | undefined;
        readonly defaultMs?: number | undefined;
        readonly ceilingMs?: number | undefined;
        readonly floorMs?: number | undefined;
      }
    | undefined;
  readonly calls?: { readonly mode?: Mode | undefined } | undefined;
  readonly reserveMs?: number | undefined;
  readonly propagation?:
    | { readonly header?: Switch | undefined; readonly hosts?: readonly string[] | undefined }
    | undefined;
  readonly deadlineToleranceMs?: number | undefined;
  readonly operations?: Readonly<Record<string, OperationOptions>> | undefined;
  readonly routes?: readonly RouteOptions[] | undefined;
  readonly dependencies?: Readonly<Record<string, DependencyOptions>> | undefined;
  readonly retryBudgets?: Readonly<Record<string, RetryBudgetDefinition>> | undefined;
  readonly degradedModes?: Readonly<Record<string, DegradedModeDefinition>> | undefined;
  readonly callers?: readonly string[] | undefined;
  readonly labels?: Partial<LabelCaps> | undefined;
  readonly bucketsS?: readonly number[] | undefined;
  readonly policyVersion?: string | undefined;
}

export interface OperationOptions {
  readonly defaultMs?: number | undefined;
  readonly ceilingMs?: number | undefined;
  readonly reserveMs?: number | undefined;
  readonly typicalMs?: number | undefined;
}

export interface RouteOptions {
  readonly method?: string | undefined;
  readonly path: string;
  readonly operation: string;
}

export interface DependencyOptions {
  readonly match?: readonly string[] | undefined;
  readonly mode?: Mode | undefined;
  readonly capMs?: number | undefined;
  readonly reserveMs?: number | undefined;
  readonly minimumMs?: number | undefined;
  readonly latencyMs?: number | undefined;
  readonly typicalMs?: number | undefined;
  readonly headers?: readonly ForeignHeader[] | undefined;
  readonly header?: Switch | undefined;
}

/** One retry budget as it is given; which keys are allowed and which are needed depends on the model. */
export interface RetryBudgetDefinition {
  readonly dependencies?: readonly string[] | undefined;
  readonly model: RetryBudgetModel;
  readonly ratio?: number | undefined;
  readonly reservePerSecond?: number | undefined;
  readonly ttlMs?: number | undefined;
  readonly feed?: 'original' | 'success' | undefined;
  readonly maxTokens?: number | undefined;
  readonly tokenRatio?: number | undefined;
  readonly percent?: number | undefined;
  readonly minimum?: number | undefined;
  readonly capacity?: number | undefined;
  readonly successAmount?: number | undefined;
  readonly attemptCost?: number | undefined;
  readonly unit?: Exclude<RetryBudgetUnit, 'concurrent_attempts'> | undefined;
  readonly floor?: LowSuccessFloor | undefined;
  readonly onEmpty?: EmptyBehaviour | undefined;
  readonly policyVersion?: string | undefined;
}

/** One degraded mode as it is given. */
export interface DegradedModeDefinition {
  /** Left out: it is thrown by hand. */
  readonly trigger?:
    | {
        /** As Prometheus has it: a gauge as it is, a counter per second, a histogram by its mean. */
        readonly metric: string;
        /** `label=value`, all of which must hold; the series that are left are added up. */
        readonly labels?: readonly string[] | undefined;
        readonly enterAt: number;
        readonly exitAt: number;
        readonly windowMs?: number | undefined;
      }
    | undefined;
  readonly leastMs?: number | undefined;
  /** Operations that must never give a degraded answer. */
  readonly nonDegradable?: readonly string[] | undefined;
}

export interface DegradedTrigger {
  readonly metric: string;
  readonly labels: readonly (readonly [key: string, value: string])[];
  readonly enterAt: number;
  readonly exitAt: number;
  readonly windowMs: number | undefined;
}

export interface DegradedModeSettings {
  readonly name: string;
  readonly trigger: DegradedTrigger | undefined;
  readonly leastMs: number | undefined;
  readonly nonDegradable: readonly string[];
}

/** A retry budget and the dependencies whose repeats it pays for. */
export interface RetryBudgetSettings {
  readonly name: string;
  readonly dependencies: readonly string[];
  readonly options: RetryBudgetOptions;
}

/** How many distinct values a label may have; one more, `other`, takes the rest. */
export interface LabelCaps {
  readonly operations: number;
  readonly dependencies: number;
  readonly callers: number;
}

/** What holds for the requests of one operation, with the entry's values where it has none of its own. */
export interface OperationSettings {
  readonly defaultMs: number | undefined;
  readonly ceilingMs: number | undefined;
  readonly floorMs: number | undefined;
  readonly reserveMs: number;
  readonly typicalMs: number | undefined;
}

/** What holds for the calls to one dependency. A missing term is `undefined`, never 0. */
export interface DependencySettings {
  readonly name: string;
  readonly match: readonly string[];
  readonly mode: Mode;
  readonly capMs: number | undefined;
  /** Its own reserve only; `Config.reserveMsFor` has the one in force. */
  readonly reserveMs: number | undefined;
  readonly minimumMs: number | undefined;
  readonly latencyMs: number | undefined;
  readonly typicalMs: number | undefined;
  readonly headers: readonly ForeignHeader[];
  /** Its own switch only; `Config.sendsOwnHeader` has the answer in force. */
  readonly header: boolean | undefined;
}

export type Trust = 'all' | 'none' | readonly string[];

/** The effective settings: plain data, frozen, the input of the policy's hash. */
export interface Settings {
  readonly disabled: boolean;
  readonly mode: Mode;
  readonly entry: {
    readonly mode: Mode;
    readonly role: EntryRole;
    readonly trust: Trust;
    readonly defaultMs: number | undefined;
    readonly ceilingMs: number | undefined;
    readonly floorMs: number | undefined;
  };
  readonly calls: { readonly mode: Mode };
  readonly reserveMs: number;
  /** `hosts` undefined = every host. */
  readonly propagation: { readonly header: boolean; readonly hosts: readonly string[] | undefined };
  readonly deadlineToleranceMs: number;
  readonly operations: Readonly<Record<string, OperationSettings>>;
  readonly routes: readonly RouteOptions[];
  readonly dependencies: Readonly<Record<string, DependencySettings>>;
  readonly retryBudgets: Readonly<Record<string, RetryBudgetSettings>>;
  readonly degradedModes: Readonly<Record<string, DegradedModeSettings>>;
  /** Empty = learn from trusted senders, up to `labels.callers`. */
  readonly callers: readonly string[];
  readonly labels: LabelCaps;
  readonly bucketsS: readonly number[] | undefined;
}

/** One frozen object: the settings and the lookups compiled from them. Nothing in it throws. */
export interface Config extends Settings {
  /** Shown in `policy_info`: as given, else a short hash of the effective settings. */
  readonly policyVersion: string;
  /**
   * The dependency that a host belongs to: `host:port` before `host` before the longest `*.suffix`.
   * Names that are no hosts, such as `postgresql/orders`, are looked up without a port.
   */
  dependencyFor(host: string, port: number | undefined): DependencySettings | undefined;
  /** Never undefined: an operation without settings of its own has the entry's. */
  operationSettings(name: string | undefined): OperationSettings;
  /** The first route that matches; a query string is not looked at. */
  operationForPath(method: string, path: string): string | undefined;
  /** Whether the peer of the socket may set more than a wish. Unknown peers only under `all`. */
  isTrusted(remoteAddress: string | undefined): boolean;
  /** Whether our own `time-budget` header goes to this host. */
  sendsOwnHeader(host: string, port: number | undefined): boolean;
  /** ms kept back: the dependency's own, else the operation's, else the service's. */
  reserveMsFor(operation: string | undefined, dependency: DependencySettings | undefined): number;
}

export type ConfigResult =
  | { readonly ok: true; readonly config: Config }
  | { readonly ok: false; readonly problems: readonly string[] };
