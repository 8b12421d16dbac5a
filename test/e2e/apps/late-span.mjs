// What OpenTelemetry says of a span that is written to after its end.
import { trace } from '@opentelemetry/api';

const span = trace.getTracer('late').startSpan('late');
span.end();
span.setAttribute('too', 'late');
