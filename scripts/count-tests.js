// Prints the closing line of .ci/run from vitest's JSON report, and fails where a test or a step failed.
// Usage: count-tests.js REPORT FAILED_STEPS
import { readFileSync } from 'node:fs';

const [, , report, failedSteps = '0'] = process.argv;
let passed = 0;
let failed = Number(failedSteps);
let skipped = 0;
try {
  const { numPassedTests, numFailedTests, numPendingTests, numTodoTests, numFailedTestSuites } = JSON.parse(
    readFileSync(report, 'utf8'),
  );
  passed = numPassedTests;
  skipped = numPendingTests + numTodoTests;
  // A file that cannot be loaded has no failed test, only a failed suite.
  failed += numFailedTests > 0 ? numFailedTests : numFailedTestSuites;
} catch (error) {
  console.error(`no test report: ${error.message}`);
  failed += 1;
}
console.log(`${passed} passed, ${failed} failed, ${skipped} skipped`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
