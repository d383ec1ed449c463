import assert from 'node:assert/strict';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { ImageError } from '@nodepool-builder/image-builder';
import { RecordingLogger } from '../../../../../test/fixtures/recording-logger.ts';
import { undoAfter } from '../../../../../test/fixtures/undo-after.ts';
import { type JobEvent, Statistics, statsdAddress } from '../../../src/daemon/jobs/statistics.ts';
import { CancelledError } from '../../../src/protocol/job-reply.ts';

interface Listener {
  readonly statistics: Statistics;
  /** Returns the next packets, in any order. */
  readonly packets: (count: number) => Promise<string[]>;
}

async function listener(t: TestContext): Promise<Listener> {
  const socket: Socket = createSocket('udp4');
  const received: string[] = [];
  socket.on('message', (message) => received.push(String(message)));
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const address = { STATSD_HOST: '127.0.0.1', STATSD_PORT: String(socket.address().port) };
  const statistics = new Statistics(address, new RecordingLogger());
  undoAfter(t, async () => {
    await statistics[Symbol.asyncDispose]();
    socket.close();
  });
  return {
    statistics,
    packets: async (count) => {
      while (received.length < count) await once(socket, 'message');
      return received.splice(0).toSorted();
    },
  };
}

/** Ignores all messages. */
function onProgress(): void {}

const UPLOAD = { diskimage: 'debian', provider: 'cloud', imageName: 'debian' };

it('a build’s metrics equal the Python builder’s', async (t) => {
  const { statistics, packets } = await listener(t);
  const directory = await mkdtemp(join(tmpdir(), 'statsd-'));
  undoAfter(t, () => rm(directory, { recursive: true }));
  const path = join(directory, '1.qcow2');
  await writeFile(path, Buffer.alloc(70_000, 1));
  await statistics.built('debian', 22.9, [{ format: 'qcow2', path, size: 70_000 }]);
  assert.deepEqual(await packets(3), [
    `nodepool.dib_image_build.debian.qcow2.size:${(await stat(path)).blocks * 512}|g`,
    'nodepool.dib_image_build.debian:1|c',
    'nodepool.dib_image_build.debian:22.000000|ms',
  ]);
});

it('an upload’s and a request’s metrics equal the Python builder’s', async (t) => {
  const { statistics, packets } = await listener(t);
  const { signal } = new AbortController();
  await statistics.upload(UPLOAD, { signal, onProgress }, async () => 'id');
  statistics.task('cloud', 'ImageCreate', 7.2);
  const duration = /^nodepool\.image_update\.debian\.cloud:\d+\.000000\|ms$/;
  const { durations, others } = Object.groupBy(await packets(4), (packet) =>
    duration.test(packet) ? 'durations' : 'others',
  );
  assert.equal(durations?.length, 1);
  assert.deepEqual(others, [
    'nodepool.image_update.debian.cloud:1|c',
    'nodepool.task.cloud.ImageCreate:1|c',
    'nodepool.task.cloud.ImageCreate:7.000000|ms',
  ]);
});

const failure = (code: 'command-failed' | 'build-timeout' | 'disk-full', cause?: unknown): ImageError =>
  new ImageError(code, 'the reason', { cause });

for (const [what, error, code] of [
  ['a build that succeeded', undefined, 0],
  ['a command that failed', failure('command-failed', { exitCode: 3 }), 3],
  ['a build that took too long', failure('build-timeout'), 124],
  ['a full disk', failure('disk-full'), 1],
  ['an internal error', new TypeError('x'), 1],
] as const) {
  it(`the metric status.rc for ${what} is ${code}`, async (t) => {
    const { statistics, packets } = await listener(t);
    statistics.buildEnded('debian', 22.9, new AbortController().signal, error);
    const [duration = '', lastBuild = '', rc = ''] = await packets(3);
    assert.equal(duration, 'nodepool.dib_image_build.debian.status.duration:22|g');
    assert.match(lastBuild, /^nodepool\.dib_image_build\.debian\.status\.last_build:\d{10}\|g$/);
    assert.equal(rc, `nodepool.dib_image_build.debian.status.rc:${code}|g`);
  });
}

it('an upload emits an event for each part of its bytes, again after a new start, and for its end', async () => {
  const events: JobEvent[] = [];
  const statistics = new Statistics({}, new RecordingLogger(), (event) => events.push(event));
  const { signal } = new AbortController();
  await statistics.upload(UPLOAD, { signal, onProgress }, async (report) => {
    for (const done of [0, 25, 25, 50, 10, 100]) report({ done, total: 100, size: 1000 });
  });
  assert.deepEqual(
    events.flatMap((event) => (event.kind === 'sent' ? [event.bytes] : [])),
    [250, 250, 100, 900],
  );
  const { kind, ...end } = events.at(-1) ?? assert.fail();
  assert.equal(kind, 'upload-ended');
  assert.deepEqual({ ...end, seconds: 0 }, { ...UPLOAD, result: 'success', size: 1000, seconds: 0 });
});

for (const [what, reason, error, result] of [
  ['fails', undefined, new Error('503'), 'failure'],
  ['is cancelled', new CancelledError('me'), new Error('aborted'), 'cancelled'],
  ['is interrupted by the stop of the builder', new Error('stop'), new Error('aborted'), 'interrupted'],
] as const) {
  it(`an upload or build that ${what} has the result ${result}`, async () => {
    const events: JobEvent[] = [];
    const statistics = new Statistics({}, new RecordingLogger(), (event) => events.push(event));
    const { signal } = reason === undefined ? new AbortController() : { signal: AbortSignal.abort(reason) };
    const work = (): Promise<void> => Promise.reject(error);
    await assert.rejects(statistics.upload(UPLOAD, { signal, onProgress }, work), error);
    statistics.buildEnded('debian', 1000, signal, error);
    assert.deepEqual(
      events.flatMap((event) => ('result' in event ? [event.result] : [])),
      [result, result],
    );
  });
}

it('either STATSD_HOST or STATSD_PORT turns metrics on', () => {
  assert.equal(statsdAddress({}), undefined);
  assert.equal(statsdAddress({ STATSD_HOST: '' }), undefined);
  assert.deepEqual(statsdAddress({ STATSD_HOST: 'graphite' }), { host: 'graphite', port: 8125 });
  assert.deepEqual(statsdAddress({ STATSD_PORT: '9125' }), { host: 'localhost', port: 9125 });
});
