const http = require('node:http');
const express = require('express');
const express4 = require('express4');
const pg = require('pg');
const undici = { 6: require('undici6'), 7: require('undici7'), 8: require('undici8') };

require('./service.mjs').start({ http, express, express4, pg, undici });
