/** The file that Prometheus loads. */
import { Document } from 'yaml';
import { alerts } from './alerts.ts';
import { formatDuration } from './duration.ts';
import type { RuleOptions } from './options.ts';
import { recordingRules } from './records.ts';
import type { Alert, Dashboard } from './rule.ts';
import { createVocabulary } from './vocabulary.ts';

/** For routes, silences and inhibitions: every alert of ours has it. */
export const COMPONENT = 'time-budget';

/** Labels that a dashboard has a variable for, beside the service's. */
const DASHBOARD_VARIABLES: Readonly<Record<Dashboard, readonly string[]>> = {
  overview: ['operation', 'caller'],
  path: ['operation', 'dependency', 'caller'],
  dependencies: ['dependency', 'caller'],
  retries: ['operation', 'dependency'],
  waste: ['operation', 'dependency'],
  queues: ['dependency'],
};

/** `command` stands in the first line, so that the file can be made again. */
export function rulesFile(options: RuleOptions, command: string): string {
  const words = createVocabulary(options);
  const document = new Document({
    groups: [
      {
        name: COMPONENT,
        interval: formatDuration(options.numbers.evaluationInterval * options.scale),
        // One group: alerts read the records of the same run.
        rules: [
          ...recordingRules(words),
          ...alerts(words)
            .filter(({ name }) => !options.without.has(name))
            .map((alert) => alertRule(alert, options)),
        ],
      },
    ],
  });
  document.commentBefore = ` Made by \`${command}\`; do not edit.`;
  return document.toString({ lineWidth: 0 });
}

function alertRule(alert: Alert, options: RuleOptions) {
  const { numbers, scale } = options;
  const duration = (name: keyof typeof numbers) => formatDuration(numbers[name] * scale);
  return {
    alert: alert.name,
    expr: alert.expr,
    ...(alert.for === undefined ? {} : { for: duration(alert.for) }),
    ...(alert.keepFiringFor === undefined ? {} : { keep_firing_for: duration(alert.keepFiringFor) }),
    labels: {
      severity: options.severities.get(alert.name) ?? alert.severity,
      component: COMPONENT,
      ...alert.fixedLabels,
    },
    annotations: {
      summary: alert.summary,
      description: alert.description,
      runbook_url: `${options.runbookUrl}${alert.name.toLowerCase()}`,
      dashboard_url: dashboardUrl(alert, options),
    },
  };
}

/** The dashboard with the variables of this alert filled in. Operations have spaces and slashes. */
function dashboardUrl(alert: Alert, { dashboardUrl: base, jobLabel, keepLabels }: RuleOptions): string {
  const labels = alert.labels.filter((label) => DASHBOARD_VARIABLES[alert.dashboard].includes(label));
  const variables = [
    // The dashboards call it job whatever its label.
    `var-job={{ $labels.${jobLabel} | urlquery }}`,
    ...[...keepLabels, ...labels].map((label) => `var-${label}={{ $labels.${label} | urlquery }}`),
  ];
  return `${base}/d/time-budget-${alert.dashboard}?${variables.join('&')}`;
}
