// An Express service whose handlers outlive clients that leave.
import { setTimeout as sleep } from 'node:timers/promises';
import express from 'express';

const app = express();
app.use((_request, _response, next) => setTimeout(next, 5));
app.get('/slow', async (_request, response) => {
  console.log('started');
  const answer = await fetch(`${process.env.NEXT_URL}/slow`);
  await answer.text();
  await sleep(20);
  response.send('late');
  console.log('handler is over');
});
const server = app.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
