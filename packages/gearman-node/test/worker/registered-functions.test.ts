import assert from 'node:assert/strict';
import { test } from 'node:test';
import { assign, expect, held, scripted } from '../fixtures/scripted-worker.ts';

test('a worker that adds a function while asleep grabs, as no server wakes it for waiting jobs', async (t) => {
  const { server, worker } = await scripted(t, { f: () => {} });
  await expect(server, ['CAN_DO', 'f'], ['GRAB_JOB_UNIQ']);
  server.send('NO_JOB');
  await expect(server, ['PRE_SLEEP']);
  worker.add('g', () => {});
  await expect(server, ['CAN_DO', 'g'], ['GRAB_JOB_UNIQ']);
});

test('CANT_DO waits until no job of its function is running, and other functions do not wait', async (t) => {
  const { handler, started, end } = held();
  const { server, worker } = await scripted(t, { f: handler, g: () => {} });
  await expect(server, ['CAN_DO', 'f'], ['CAN_DO', 'g'], ['GRAB_JOB_UNIQ']);
  assign(server, 'f');
  await started;
  worker.setFunctions({ h: () => {} });
  await expect(server, ['CAN_DO', 'h'], ['CANT_DO', 'g']);
  end('done');
  await expect(server, ['WORK_COMPLETE', 'H:x:1', 'done'], ['CANT_DO', 'f'], ['GRAB_JOB_UNIQ']);
});

test('CANT_DO waits for the response to a grab, and a job in that response still runs', async (t) => {
  const { server, worker } = await scripted(t, { f: () => 'after all', g: () => {} });
  await expect(server, ['CAN_DO', 'f'], ['CAN_DO', 'g'], ['GRAB_JOB_UNIQ']);
  worker.remove('f');
  worker.add('h', () => {});
  await expect(server, ['CAN_DO', 'h']);
  assign(server, 'f');
  await expect(server, ['WORK_COMPLETE', 'H:x:1', 'after all'], ['CANT_DO', 'f'], ['GRAB_JOB_UNIQ']);
});

test('CANT_DO is sent at once while the worker is asleep', async (t) => {
  const { server, worker } = await scripted(t, { f: () => {}, g: () => {} });
  await expect(server, ['CAN_DO', 'f'], ['CAN_DO', 'g'], ['GRAB_JOB_UNIQ']);
  server.send('NO_JOB');
  await expect(server, ['PRE_SLEEP']);
  worker.remove('f');
  await expect(server, ['CANT_DO', 'f']);
});

test('a connected worker sends no packet for a function that is removed and added again in time', async (t) => {
  const { server, worker } = await scripted(t, { f: () => 'old' });
  await expect(server, ['CAN_DO', 'f'], ['GRAB_JOB_UNIQ']);
  worker.remove('f');
  worker.add('f', () => 'new');
  assign(server, 'f');
  await expect(server, ['WORK_COMPLETE', 'H:x:1', 'new'], ['GRAB_JOB_UNIQ']);
});

test('a worker removes many functions with one RESET_ABILITIES and CAN_DO for the rest', async (t) => {
  const many = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`f${index}`, () => {}]));
  const { server, worker } = await scripted(t, { ...many, stays: () => {} });
  await server.until('GRAB_JOB_UNIQ');
  server.send('NO_JOB');
  await expect(server, ['PRE_SLEEP']);
  worker.setFunctions({ stays: () => {} });
  await expect(server, ['RESET_ABILITIES'], ['CAN_DO', 'stays']);
});

test('a worker registers thousands of functions in batches, each of which the server confirms, and then grabs', async (t) => {
  const names = Array.from({ length: 2500 }, (_, index) => `f${index}`);
  const { server } = await scripted(t, new Map(names.map((name) => [name, () => {}])));
  for (const batch of [names.slice(0, 1000), names.slice(1000, 2000)]) {
    const packets = await server.until('ECHO_REQ');
    assert.deepEqual(
      packets.slice(0, -1),
      batch.map((name) => ['CAN_DO', name]),
    );
    server.send('ECHO_RES', packets.at(-1)?.[1] ?? '');
  }
  await expect(server, ...names.slice(2000).map((name) => ['CAN_DO', name]), ['GRAB_JOB_UNIQ']);
});

test('functions that are removed one by one count as one large removal', async (t) => {
  const names = Array.from({ length: 900 }, (_, index) => `f${index}`);
  const { server, worker } = await scripted(t, new Map(names.map((name) => [name, () => {}])));
  const registered = await server.until('GRAB_JOB_UNIQ');
  assert.deepEqual(
    registered.slice(0, -1),
    names.map((name) => ['CAN_DO', name]),
  );
  server.send('NO_JOB');
  await expect(server, ['PRE_SLEEP']);
  for (const name of names) worker.remove(name);
  worker.add('g', () => {});
  const changed = await server.until('GRAB_JOB_UNIQ');
  assert.deepEqual(changed.slice(0, -1), [['CAN_DO', 'g'], ['RESET_ABILITIES'], ['CAN_DO', 'g']]);
});

test('functions that are removed while others are registered again are removed together afterwards', async (t) => {
  const names = Array.from({ length: 500 }, (_, index) => `f${index}`);
  const { server, worker } = await scripted(t, new Map(names.map((name) => [name, () => {}])));
  await server.until('GRAB_JOB_UNIQ');
  server.send('NO_JOB');
  await expect(server, ['PRE_SLEEP']);
  for (const removed of [names.slice(0, 130), names.slice(130, 260), names.slice(260, 390)]) {
    for (const name of removed) worker.remove(name);
    await Promise.resolve(); // stays within the turn of the event loop in which the first CAN_DO waits
  }
  const rest = (from: number): string[][] => names.slice(from).map((name) => ['CAN_DO', name]);
  await expect(server, ['RESET_ABILITIES'], ...rest(130), ['RESET_ABILITIES'], ...rest(390));
});

test('functions that are removed before the server has confirmed CANT_DO are removed together', async (t) => {
  const names = Array.from({ length: 500 }, (_, index) => `f${index}`);
  const { server, worker } = await scripted(t, new Map(names.map((name) => [name, () => {}])));
  await server.until('GRAB_JOB_UNIQ');
  server.send('NO_JOB');
  await expect(server, ['PRE_SLEEP']);
  worker.remove('f0');
  await expect(server, ['CANT_DO', 'f0'], ['ECHO_REQ', '1']);
  for (const name of names.slice(1, 200)) {
    worker.remove(name);
    await new Promise(setImmediate);
  }
  server.send('ECHO_RES', '1');
  await expect(server, ['RESET_ABILITIES'], ...names.slice(200).map((name) => ['CAN_DO', name]));
});

test('a worker with a running job removes functions in batches, each of which the server confirms', async (t) => {
  const { handler, started, end } = held();
  const names = Array.from({ length: 300 }, (_, index) => `f${index}`);
  const { server, worker } = await scripted(t, new Map([...names, 'runs'].map((name) => [name, handler])));
  await server.until('GRAB_JOB_UNIQ');
  assign(server, 'runs');
  await started;
  worker.setFunctions({ runs: handler });
  for (const part of [names.slice(0, 128), names.slice(128, 256)]) {
    const packets = await server.until('ECHO_REQ');
    assert.deepEqual(
      packets.slice(0, -1),
      part.map((name) => ['CANT_DO', name]),
    );
    server.send('ECHO_RES', packets.at(-1)?.[1] ?? '');
  }
  await expect(server, ...names.slice(256).map((name) => ['CANT_DO', name]));
  end('done');
  await expect(server, ['WORK_COMPLETE', 'H:x:1', 'done']);
});
