// A service that starts its SDK itself, in its main script.
require('./sdk.cjs');
require('../../apps/service.cjs');
