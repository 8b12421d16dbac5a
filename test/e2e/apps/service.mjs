// An Express service as an ES module: one call per order. It knows nothing of any telemetry.
import express from 'express';

const app = express();
app.get('/orders/:id', async (request, response) => {
  const answer = await fetch(`${process.env.STOCK_URL}/items/${request.params.id}`);
  response.json({ id: request.params.id, stock: await answer.text() });
});
const server = app.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
