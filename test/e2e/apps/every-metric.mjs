// A process with one series more in every metric of the catalogue, under labels that nothing else has.
import http from 'node:http';
import { activeRuntime } from '../../../dist/instrumentation/process/runtime.js';

for (const family of Object.values(activeRuntime().hooks.recorder.families)) {
  const { type, labels } = family.definition;
  const series = family.cell(...labels.map((label) => `a "${label}"`));
  if (type === 'histogram') series.record(0.7);
  else series.value = 2;
}
const server = http.createServer((_request, response) => response.end());
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
