// The same service as a CommonJS module, with node:http for the call.
const http = require('node:http');
const express = require('express');

const app = express();
app.get('/orders/:id', (request, response) => {
  http.get(`${process.env.STOCK_URL}/items/${request.params.id}`, (answer) => {
    let stock = '';
    answer.setEncoding('utf8').on('data', (text) => {
      stock += text;
    });
    answer.on('end', () => response.json({ id: request.params.id, stock }));
  });
});
const server = app.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
