import http from 'node:http';
import express from 'express';
import express4 from 'express4';
import pg from 'pg';
import * as undici6 from 'undici6';
import * as undici7 from 'undici7';
import * as undici8 from 'undici8';
import { start } from './service.mjs';

await start({ http, express, express4, pg, undici: { 6: undici6, 7: undici7, 8: undici8 } });
