import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { hostname } from 'node:os';
import { type TestContext, test } from 'node:test';
import { Admin, JobServer, type ServerAddress, Worker } from '@nodepool-builder/gearman-node';
import { freePort } from '../../../../scripts/free-port.ts';
import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { waitUntil } from '../../../../test/fixtures/wait-until.ts';
import {
  absencesIn,
  BuilderFleet,
  type FleetStatus,
  offersTheSame,
} from '../../src/gearman/builder-fleet.ts';
import { ImageGoneError } from '../../src/gearman/run-job.ts';

async function startServer(
  t: TestContext,
  port?: number,
): Promise<{ server: JobServer; address: ServerAddress }> {
  const server = new JobServer();
  t.after(() => server.close());
  return { server, address: await server.listen(port ?? (await freePort())) };
}

function fleetOf(t: TestContext, ...servers: readonly ServerAddress[]): [BuilderFleet, RecordingLogger] {
  const logger = new RecordingLogger();
  const fleet = new BuilderFleet(servers, logger);
  t.after(() => fleet.close());
  return [fleet, logger];
}

function workerFor(t: TestContext, address: ServerAddress, name: string): Worker {
  const worker = new Worker({ servers: [address] });
  t.after(() => worker.close());
  worker.add(name, () => name);
  return worker;
}

test('the fleet’s status has the functions of all servers, but none without a worker', async (t) => {
  const [one, other] = [await startServer(t), await startServer(t)];
  const worker = workerFor(t, one.address, 'image-build:debian');
  workerFor(t, other.address, 'image-upload:a');
  const [fleet] = fleetOf(t, one.address, other.address);
  await waitUntil('both', async () => {
    const { offered } = await fleet.status();
    return offered.builds.has('debian') && offered.uploads.has('a');
  });
  // A queued job keeps the function listed without a worker.
  worker.remove('image-build:debian');
  await waitUntil('its end', async () => !(await fleet.status()).offered.builds.has('debian'));
  void fleet.run('image-build:debian', {}, 'key', { time: 60, signal: t.signal }).catch(() => {});
  const { offered, isComplete } = await fleet.status();
  assert.deepEqual([...offered.builds, ...offered.uploads], ['a']);
  assert.equal(isComplete, true);
});

test('a build goes to a builder whose configuration pauses it only if no other builder offers it', async (t) => {
  const { address } = await startServer(t);
  workerFor(t, address, 'image-build-paused:debian');
  const [fleet] = fleetOf(t, address);
  const build = async (key: string): Promise<string> =>
    String(await fleet.run('image-build:debian', {}, key, { time: 60, signal: t.signal }));
  await waitUntil('the builder', async () => (await fleet.status()).offered.builds.has('debian'));
  assert.equal(await build('one'), 'image-build-paused:debian');
  workerFor(t, address, 'image-build:debian');
  await waitUntil('the other builder', async () => {
    await fleet.status();
    return (await build(randomUUID())) === 'image-build:debian';
  });
});

test('an unreachable job server causes one warning and an incomplete status', async (t) => {
  const [one, other] = [await startServer(t), await startServer(t)];
  workerFor(t, one.address, 'image-build:debian');
  const [fleet, logger] = fleetOf(t, one.address, other.address);
  await waitUntil('it', async () => (await fleet.status()).offered.builds.has('debian'));
  const port = other.server.address?.port ?? 0;
  await other.server.close();
  for (const _ of [1, 2]) {
    const { offered, isComplete } = await fleet.status();
    assert.deepEqual([...offered.builds], ['debian']);
    assert.equal(isComplete, false);
  }
  assert.equal(logger.lines.filter((line) => line.startsWith('warn job server')).length, 1);
  await startServer(t, port);
  assert.equal((await fleet.status()).isComplete, true);
  assert.match(logger.lines.at(-1) ?? '', /^info job server .* responds again$/);
});

test('concurrent callers share one request for the fleet’s status', async (t) => {
  const { address } = await startServer(t);
  const [fleet] = fleetOf(t, address);
  const [one, other] = await Promise.all([fleet.status(), fleet.status()]);
  assert.equal(one, other);
  assert.notEqual(await fleet.status(), one);
});

test('jobs are spread over the servers that offer the function', async (t) => {
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
      return (await probe.status()).offered.builds.has('debian');
    });
  }
  const [fleet] = fleetOf(t, ...addresses);
  await fleet.status();
  for (const unique of ['1', '2', '3', '4']) {
    await fleet.run('image-build:debian', {}, unique, { time: 60, signal: t.signal });
  }
  assert.deepEqual(seen.toSorted(), ['server 0', 'server 0', 'server 1', 'server 1']);
});

test('the fleet’s functions are sorted by verb, and functions of other workers are ignored', async (t) => {
  const { address } = await startServer(t);
  const worker = workerFor(t, address, 'image-build:debian');
  for (const name of ['image-upload:a:b', 'image-delete:a:b', 'image-build', ':x', 'reverse']) {
    worker.add(name, () => '');
  }
  await once(worker, 'connect'); // registered() waits for connected servers only
  await worker.registered();
  const [fleet] = fleetOf(t, address);
  const { offered } = await fleet.status();
  assert.deepEqual(offered, {
    builds: new Set(['debian']),
    uploads: new Set(['a:b']),
    deletes: new Set(['a:b']),
  });
});

test('a queued job is cancelled if its image is gone, and stays in the queue after another abort', async (t) => {
  const { address } = await startServer(t);
  const [fleet] = fleetOf(t, address);
  const admin = new Admin(address);
  t.after(() => admin.close());
  const jobs = async (): Promise<number> => {
    const states = await admin.status();
    return states.reduce((sum, { total }) => sum + total, 0);
  };
  const [gone, stopped] = [new AbortController(), new AbortController()];
  const runs = Object.entries({ gone, stopped }).map(([unique, { signal }]) =>
    fleet.run('image-upload:a', {}, unique, { time: 60, signal }),
  );
  await waitUntil('both in the queue', async () => (await jobs()) === 2);
  stopped.abort(new Error('the manager is being stopped'));
  gone.abort(new ImageGoneError('no builder has offered image a for 1800 s'));
  await Promise.all(runs.map((run) => assert.rejects(run)));
  assert.equal(await jobs(), 1);
});

/** Starts a builder whose upload of image `a` never ends by itself. Returns who stopped it, as reported to it. */
async function endlessUpload(
  t: TestContext,
  address: ServerAddress,
  offersCancel: boolean,
): Promise<unknown[]> {
  const stopped: unknown[] = [];
  const worker = new Worker({ servers: [address], concurrency: 2 });
  t.after(() => worker.close({ signal: AbortSignal.abort() }));
  const end = Promise.withResolvers<never>();
  end.promise.catch(() => {});
  worker.add('image-upload:a', async (job) => {
    job.signal.addEventListener('abort', () => end.reject(job.signal.reason));
    job.sendStatus(0, 100);
    return await end.promise;
  });
  if (offersCancel) {
    worker.add('image-cancel:a', ({ payload }) => {
      stopped.push(JSON.parse(payload.toString()));
      end.reject(new Error('stopped'));
      return '';
    });
  }
  await worker.registered();
  return stopped;
}

test('a job at its time limit is stopped at its builder with the reason', async (t) => {
  const { address } = await startServer(t);
  const stopped = await endlessUpload(t, address, true);
  const [fleet] = fleetOf(t, address);
  const uploading = fleet.run('image-upload:a', {}, 'upload-1', { time: 0.1, signal: t.signal });
  await assert.rejects(uploading, { code: 'job-timeout' });
  const by = `image-manager@${hostname()}, because it took longer than 0.1 s`;
  assert.deepEqual(stopped, [{ by, 'upload-id': 'upload-1' }]);
});

test('a job whose image is gone is stopped at its builder with the reason', async (t) => {
  const { address } = await startServer(t);
  const stopped = await endlessUpload(t, address, true);
  const [fleet] = fleetOf(t, address);
  const gone = new AbortController();
  const uploading = fleet.run('image-upload:a', {}, 'upload-1', { time: 60, signal: gone.signal });
  const admin = new Admin(address);
  t.after(() => admin.close());
  await waitUntil('the upload', async () => (await admin.status()).some(({ running }) => running === 1));
  gone.abort(new ImageGoneError('no builder offers image a'));
  await assert.rejects(uploading);
  const by = `image-manager@${hostname()}, as no builder offers image a`;
  assert.deepEqual(stopped, [{ by, 'upload-id': 'upload-1' }]);
});

test('a job’s time limit does not wait for a builder that cannot stop the job', async (t) => {
  const { address } = await startServer(t);
  await endlessUpload(t, address, false);
  const [fleet, logger] = fleetOf(t, address);
  const begun = performance.now();
  const uploading = fleet.run('image-upload:a', {}, 'upload-1', { time: 0.1, signal: t.signal });
  await assert.rejects(uploading, { code: 'job-timeout' });
  assert.ok(performance.now() - begun < 8000);
  assert.deepEqual(logger.lines, []);
});

const statusOf = (...uploads: readonly string[]): FleetStatus => ({
  offered: { builds: new Set(), uploads: new Set(uploads), deletes: new Set() },
  isComplete: true,
  copied: new Set(),
});

/** Returns the absences after these polls, the first of them at 1000 ms. */
function absencesAfter(...polls: readonly (readonly [status: FleetStatus, expected: readonly string[]])[]) {
  let since: ReadonlyMap<string, number> = new Map();
  for (const [index, [status, expected]] of polls.entries()) {
    since = absencesIn(status, expected, since, (index + 1) * 1000);
  }
  return [...since];
}

test('an image is absent from the first poll without it until a builder offers it again', () => {
  const both = ['a', 'b'];
  const polls = [
    [statusOf('a'), both],
    [statusOf(), both],
    [statusOf('b'), both],
    [statusOf(), both],
  ] as const;
  assert.deepEqual(absencesAfter(...polls.slice(0, 2)), [
    ['a', 2000],
    ['b', 1000],
  ]);
  assert.deepEqual(absencesAfter(...polls.slice(0, 3)), [['a', 2000]]);
  assert.deepEqual(absencesAfter(...polls), [
    ['a', 2000],
    ['b', 4000],
  ]);
});

test('an image that is no longer expected is not absent', () => {
  const polls = [
    [statusOf(), ['a']],
    [statusOf(), []],
    [statusOf(), ['a']],
  ] as const;
  assert.deepEqual(absencesAfter(...polls.slice(0, 2)), []);
  assert.deepEqual(absencesAfter(...polls), [['a', 3000]]);
});

test('no absence starts or ends while a job server does not respond', () => {
  const incomplete = { ...statusOf('b'), isComplete: false };
  assert.deepEqual(absencesAfter([statusOf('a'), ['a', 'b']], [incomplete, ['a', 'b']]), [['b', 1000]]);
});

test('statuses differ if their builders offer other functions', () => {
  const { offered } = statusOf('a');
  assert.equal(offersTheSame(offered, statusOf('a').offered), true);
  assert.equal(offersTheSame(offered, statusOf('b').offered), false);
  assert.equal(offersTheSame(offered, { ...offered, deletes: new Set(['a']) }), false);
});
