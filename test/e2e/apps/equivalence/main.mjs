import http from 'node:http';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import express from 'express';
import pg from 'pg';
import { start } from './service.mjs';

/** Other versions, under their own names in folders of their own. */
async function other(name) {
  const { all } = await import(pathToFileURL(join(process.env.PACKAGES, name, 'index.mjs')).href);
  return all;
}

const [express4, undici6, undici7, undici8] = await Promise.all(
  ['express4', 'undici6', 'undici7', 'undici8'].map(other),
);
const undici = { 6: undici6, 7: undici7, 8: undici8 };
await start({ http, express, express4: express4.default, pg, undici });
