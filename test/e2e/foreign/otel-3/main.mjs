// A service that starts its SDK itself, in its main script.
import './sdk.mjs';

await import('../../apps/service.mjs');
