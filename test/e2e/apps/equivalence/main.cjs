const http = require('node:http');
const { join } = require('node:path');
const express = require('express');
const pg = require('pg');

// Loads the builtin undici, as every ES module does that imports node:http, ours among them. The first undici to be
// loaded is the one that `fetch` uses until a dispatcher is set.
void http.WebSocket;

/** Other versions, under their own names in folders of their own. */
function other(name) {
  return require(join(process.env.PACKAGES, name, 'index.cjs'));
}

const undici = { 6: other('undici6'), 7: other('undici7'), 8: other('undici8') };
require('./service.mjs').start({ http, express, express4: other('express4'), pg, undici });
