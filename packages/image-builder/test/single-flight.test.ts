import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import type { OperationOptions, Progress } from '../src/index.ts';
import { SingleFlight } from '../src/single-flight.ts';

/** Starts work that a test ends, or that fails with the reason when it is aborted. */
function controlledWork() {
  const { promise, resolve } = Promise.withResolvers<string>();
  const flights: Required<OperationOptions>[] = [];
  const work = async (options: Required<OperationOptions>): Promise<string> => {
    flights.push(options);
    const aborted = once(options.signal, 'abort').then(() => Promise.reject<string>(options.signal.reason));
    return await Promise.race([promise, aborted]);
  };
  return { work, flights, finish: resolve };
}

test('concurrent callers of a single flight share one run and its progress', async () => {
  const { work, flights, finish } = controlledWork();
  const flight = new SingleFlight<string>();
  const seen: [string, Progress][] = [];
  const results = ['one', 'two'].map((who) =>
    flight.run('key', work, { onProgress: (progress) => seen.push([who, progress]) }),
  );
  flights[0]?.onProgress({ done: 1, total: 2 });
  finish('result');
  assert.deepEqual(await Promise.all(results), ['result', 'result']);
  assert.equal(flights.length, 1);
  assert.deepEqual(seen, [
    ['one', { done: 1, total: 2 }],
    ['two', { done: 1, total: 2 }],
  ]);
});

test('other keys and later calls of a single flight start another run', async () => {
  const flight = new SingleFlight<string>();
  let runs = 0;
  const work = async (): Promise<string> => {
    runs += 1;
    return 'result';
  };
  await Promise.all([flight.run('one', work), flight.run('two', work)]);
  await flight.run('one', work);
  assert.equal(runs, 3);
  assert.ok(!flight.has('one'));
});

test('aborting a single flight detaches one caller, and the others get their result', async () => {
  const { work, flights, finish } = controlledWork();
  const flight = new SingleFlight<string>();
  const abort = new AbortController();
  const leaving = flight.run('key', work, { signal: abort.signal });
  const staying = flight.run('key', work);
  abort.abort(new Error('leave'));
  await assert.rejects(leaving, /leave/);
  assert.equal(flights[0]?.signal.aborted, false);
  finish('result');
  assert.equal(await staying, 'result');
});

test('a single flight’s run is aborted when the last caller aborts', async () => {
  const { work, flights } = controlledWork();
  const flight = new SingleFlight<string>();
  const aborts = [new AbortController(), new AbortController()];
  const results = aborts.map(({ signal }) => flight.run('key', work, { signal }));
  for (const abort of aborts) abort.abort(new Error('leave'));
  for (const { status } of await Promise.allSettled(results)) assert.equal(status, 'rejected');
  assert.equal(flights[0]?.signal.aborted, true);
});

test('a call during the end of a single flight’s aborted run starts a new run', async () => {
  const flight = new SingleFlight<string>();
  const abort = new AbortController();
  const ending = Promise.withResolvers<string>();
  const first = flight.run('key', () => ending.promise, { signal: abort.signal });
  abort.abort();
  const second = flight.run('key', async () => 'new');
  ending.reject(new Error('ended'));
  await assert.rejects(first, /ended/);
  assert.equal(await second, 'new');
});

test('a call that aborts while a single flight’s aborted run ends starts no run', async () => {
  const flight = new SingleFlight<string>();
  const aborts = [new AbortController(), new AbortController()] as const;
  const ending = Promise.withResolvers<string>();
  const first = flight.run('key', () => ending.promise, { signal: aborts[0].signal });
  aborts[0].abort();
  const second = flight.run('key', () => assert.fail('it began'), { signal: aborts[1].signal });
  aborts[1].abort(new Error('cancelled'));
  ending.reject(new Error('ended'));
  await assert.rejects(first, /ended/);
  await assert.rejects(second, /cancelled/);
});

test('a single flight with an aborted signal starts no run', async () => {
  const flight = new SingleFlight<string>();
  const run = flight.run('key', () => assert.fail('it began'), { signal: AbortSignal.abort() });
  await assert.rejects(run, { name: 'AbortError' });
});

test('a single flight’s runs with all or some keys can be aborted', async () => {
  const flight = new SingleFlight<string>();
  const [one, two] = [controlledWork(), controlledWork()];
  const results = [flight.run('a 1', one.work), flight.run('b 1', two.work)];
  const outcome = Promise.allSettled(results);
  await flight.abort(new Error('stop'), (key) => key.startsWith('a '));
  assert.ok(!flight.has('a 1'));
  assert.ok(flight.has('b 1'));
  await flight.abort(new Error('stop'));
  assert.deepEqual(
    (await outcome).map(({ status }) => status),
    ['rejected', 'rejected'],
  );
});
