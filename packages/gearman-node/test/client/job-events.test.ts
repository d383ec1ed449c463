import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { type JobEvent, JobEvents } from '../../src/client/job-events.ts';
import { GearmanError } from '../../src/errors.ts';

function recorded() {
  const pause = mock.fn();
  const resume = mock.fn();
  return { events: new JobEvents({ pause, resume }), pause, resume };
}

async function readAll(events: AsyncIterable<JobEvent>): Promise<JobEvent[]> {
  const all: JobEvent[] = [];
  for await (const event of events) all.push(event);
  return all;
}

const piece = (bytes = 1): JobEvent => ({ type: 'data', data: Buffer.alloc(bytes) });
const HALF = 512 * 1024;

test('a loop over a job’s events reads earlier ones in order, up to the end', async () => {
  const { events } = recorded();
  const all: JobEvent[] = [
    { type: 'status', numerator: 1, denominator: 2 },
    { type: 'data', data: Buffer.from('d') },
    { type: 'warning', data: Buffer.from('w') },
  ];
  for (const event of all) events.push(event);
  events.end();
  assert.deepEqual(await readAll(events), all);
});

test('a loop over a job’s events waits for new ones and for the end', async () => {
  const { events } = recorded();
  const reading = readAll(events);
  for (let count = 0; count < 3; count += 1) {
    await new Promise(setImmediate);
    events.push(piece());
  }
  await new Promise(setImmediate);
  events.end();
  assert.equal((await reading).length, 3);
});

test('a job’s error follows its last event', async () => {
  const { events } = recorded();
  events.push(piece());
  events.end(new GearmanError('job-timeout', 'm'));
  assert.equal((await events.next()).done, false);
  await assert.rejects(events.next(), { code: 'job-timeout' });
});

test('a caller that reads events slowly pauses the connection until it has caught up', async () => {
  const { events, pause, resume } = recorded();
  const loop = events[Symbol.asyncIterator]();
  for (let count = 0; count < 3; count += 1) events.push(piece(HALF));
  assert.deepEqual([pause.mock.callCount(), resume.mock.callCount()], [1, 0]);
  await loop.next();
  await loop.next();
  assert.equal(resume.mock.callCount(), 0);
  await loop.next();
  assert.equal(resume.mock.callCount(), 1);
});

test('the connection resumes when the job ends and when the loop over its events is left', async () => {
  for (const leave of [async (events: JobEvents) => events.end(), (events: JobEvents) => events.return()]) {
    const { events, pause, resume } = recorded();
    events[Symbol.asyncIterator]();
    for (let count = 0; count < 3; count += 1) events.push(piece(HALF));
    await leave(events);
    assert.deepEqual([pause.mock.callCount(), resume.mock.callCount()], [1, 1]);
  }
});

test('events over the limit before the first loop are dropped, and a later loop throws', async () => {
  const { events, pause } = recorded();
  for (let count = 0; count < 10; count += 1) events.push(piece(HALF));
  events.end();
  assert.equal(pause.mock.callCount(), 0, 'the connection is not paused');
  await assert.rejects(readAll(events), { code: 'events-dropped' });
});

test('a job keeps no events after the loop over them was left', async () => {
  const { events } = recorded();
  events.push(piece());
  for await (const event of events) {
    assert.equal(event.type, 'data');
    break;
  }
  events.push(piece());
  assert.deepEqual(await events.next(), { done: true, value: undefined });
});

test('concurrent readers share a job’s events in order, and all of them end', async () => {
  const { events } = recorded();
  const waiting = Array.from({ length: 4 }, () => events.next());
  const statuses = [1, 2].map((numerator): JobEvent => ({ type: 'status', numerator, denominator: 2 }));
  for (const status of statuses) events.push(status);
  assert.deepEqual(
    (await Promise.all(waiting.slice(0, 2))).map(({ value }) => value),
    statuses,
  );
  events.end();
  for (const { done } of await Promise.all(waiting.slice(2))) assert.equal(done, true);

  const failing = recorded().events;
  const both = [failing.next(), failing.next()];
  failing.end(new GearmanError('job-timeout', 'm'));
  for (const next of both) await assert.rejects(next, { code: 'job-timeout' });
});
