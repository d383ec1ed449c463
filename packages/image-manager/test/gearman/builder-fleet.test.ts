import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { JobServer, type ServerAddress, Worker } from '@nodepool-builder/gearman-node';
import { waitUntil } from '../../../../test/fixtures/wait-until.ts';
import { RecordingLogger } from '../../../image-builder/test/recording-logger.ts';
import { BuilderFleet } from '../../src/gearman/builder-fleet.ts';

async function startServer(t: TestContext, port = 0): Promise<{ server: JobServer; address: ServerAddress }> {
  const server = new JobServer();
  t.after(() => server.close());
  return { server, address: await server.listen(port) };
}

function fleetOf(t: TestContext, ...servers: readonly ServerAddress[]): [BuilderFleet, RecordingLogger] {
  const logger = new RecordingLogger();
  const fleet = new BuilderFleet({ servers, logger });
  t.after(() => fleet.close());
  return [fleet, logger];
}

function workerFor(t: TestContext, address: ServerAddress, name: string): Worker {
  const worker = new Worker({ servers: [address] });
  t.after(() => worker.close());
  worker.add(name, () => name);
  return worker;
}

test('what builders offer anywhere is offered; what has no worker any more is not', async (t) => {
  const [one, other] = [await startServer(t), await startServer(t)];
  const worker = workerFor(t, one.address, 'image-build:debian');
  workerFor(t, other.address, 'image-upload:a');
  const [fleet] = fleetOf(t, one.address, other.address);
  await waitUntil('both', async () => {
    const { offered } = await fleet.observe();
    return offered.builds.has('debian') && offered.uploads.has('a');
  });
  // A job in its queue keeps a function known without a worker.
  worker.remove('image-build:debian');
  await waitUntil('its end', async () => !(await fleet.observe()).offered.builds.has('debian'));
  void fleet.run('image-build:debian', {}, 'key', { time: 60, signal: t.signal }).catch(() => {});
  const { offered, isComplete } = await fleet.observe();
  assert.deepEqual([...offered.builds, ...offered.uploads], ['a']);
  assert.equal(isComplete, true);
});

test('a server that is away is warned of once, and makes the answer incomplete', async (t) => {
  const [one, other] = [await startServer(t), await startServer(t)];
  workerFor(t, one.address, 'image-build:debian');
  const [fleet, logger] = fleetOf(t, one.address, other.address);
  await waitUntil('it', async () => (await fleet.observe()).offered.builds.has('debian'));
  const port = other.server.address?.port ?? 0;
  await other.server.close();
  for (const _ of [1, 2]) {
    const { offered, isComplete } = await fleet.observe();
    assert.deepEqual([...offered.builds], ['debian']);
    assert.equal(isComplete, false);
  }
  assert.equal(logger.lines.filter((line) => line.startsWith('warn job server')).length, 1);
  await startServer(t, port);
  assert.equal((await fleet.observe()).isComplete, true);
  assert.match(logger.lines.at(-1) ?? '', /^info job server .* answers again$/);
});

test('who asks while it is being found out gets the same answer', async (t) => {
  const { address } = await startServer(t);
  const [fleet] = fleetOf(t, address);
  const [one, other] = await Promise.all([fleet.observe(), fleet.observe()]);
  assert.equal(one, other);
  assert.notEqual(await fleet.observe(), one);
});

test('of servers that all offer a function none gets all the jobs', async (t) => {
  const seen: string[] = [];
  const addresses = [(await startServer(t)).address, (await startServer(t)).address];
  for (const [index, address] of addresses.entries()) {
    const worker = new Worker({ servers: [address] });
    t.after(() => worker.close());
    worker.add('image-build:debian', () => {
      seen.push(`server ${index}`);
      return '';
    });
    await waitUntil('its connection', async () => {
      await worker.registered();
      const [probe] = fleetOf(t, address);
      return (await probe.observe()).offered.builds.has('debian');
    });
  }
  const [fleet] = fleetOf(t, ...addresses);
  await fleet.observe();
  for (const unique of ['1', '2', '3', '4']) {
    await fleet.run('image-build:debian', {}, unique, { time: 60, signal: t.signal });
  }
  assert.deepEqual(seen.toSorted(), ['server 0', 'server 0', 'server 1', 'server 1']);
});
