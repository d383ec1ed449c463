import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Admin } from '@nodepool-builder/gearman-node';
import { importedImageId } from '@nodepool-builder/image-builder/internal';
import { startBuilder } from '../fixtures/builder-process.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { createManagedSite, endAfter, type Settings } from '../fixtures/managed-site.ts';
import { startMosquitto } from '../fixtures/mosquitto.ts';
import { startNginx } from '../fixtures/nginx.ts';
import { undoAfter } from '../fixtures/undo-after.ts';
import { waitUntil } from '../fixtures/wait-until.ts';
import type { BuildRow } from '../fixtures/zuul/build-row.ts';
import { ZuulDouble } from '../fixtures/zuul/zuul-double.ts';

const SIZE = 64 * 1024;

/** Poll interval in seconds, which exceeds the test's duration. */
const LONG = 3600;

test('a fleet imports each Zuul build once, by polling or at an MQTT message, and not again after a restart', async (t) => {
  const [gearmand, zuul, artifacts, mosquitto] = await Promise.all([
    startGearmand(),
    ZuulDouble.start(),
    startNginx(),
    startMosquitto(),
  ]);
  const closes = [
    () => gearmand.stop(),
    () => zuul[Symbol.asyncDispose](),
    () => artifacts.stop(),
    () => mosquitto.stop(),
  ];
  for (const close of closes) undoAfter(t, close);
  const admin = new Admin({ host: '127.0.0.1', port: gearmand.port });
  undoAfter(t, () => admin.close());

  const image = (name: string, more: Settings): Settings => ({
    name,
    'api-url': zuul.url,
    project: 'opendev/system-config',
    pipelines: ['periodic'],
    job: `build-${name}`,
    artifacts: [{ format: 'raw', type: 'image-raw' }],
    formats: ['raw'],
    ...more,
  });
  const mqtt = { url: `mqtt://127.0.0.1:${mosquitto.port}`, topic: 'zuul/#' };
  const settings = {
    diskimages: [],
    providers: [],
    'zuul-images': [image('polled', { 'poll-interval': 1 }), image('woken', { 'poll-interval': LONG, mqtt })],
  };
  const hosts = await Promise.all([1, 2].map(() => createManagedSite(t, settings, gearmand.port)));
  const builders = await Promise.all(
    hosts.map(async ({ config }) => endAfter(t, await startBuilder(config))),
  );

  /** Ends a build that has returned an image. */
  const publish = async (name: string): Promise<BuildRow> => {
    const bytes = randomBytes(SIZE);
    const file = createHash('sha256').update(bytes).digest('hex');
    await writeFile(join(artifacts.directory, file), bytes);
    const artifact = {
      name: 'raw image',
      url: `${artifacts.url}/${file}`,
      metadata: { type: 'image-raw', sha256: file },
    };
    return zuul.table().add([artifact], { job: `build-${name}` });
  };
  const imported: string[] = [];
  const offered = async (name: string, { uuid, end }: BuildRow): Promise<void> => {
    const id = importedImageId({ image: name, uuid, endTime: end?.getTime() ?? 0 });
    await waitUntil(`image ${id}`, async () =>
      (await admin.status()).some((row) => row.name === `image-upload:${id}` && row.availableWorkers === 1),
    );
    imported.push(`${id}.raw`);
  };
  const looks = (name: string): number =>
    zuul.listings.filter(({ query }) => query.get('job_name') === `build-${name}`).length;

  for (let count = 1; count <= 2; count += 1) await offered('polled', await publish('polled'));

  // each host polls at its start and once it has subscribed
  await waitUntil('all hosts to subscribe', () => looks('woken') === 2 * hosts.length);
  const woken = await publish('woken');
  const builds = [{ job_name: 'build-woken', result: 'SUCCESS' }];
  await mosquitto.publish('zuul/example', JSON.stringify({ buildset: { builds } }));
  await offered('woken', woken);
  // a host that polls while the host with the image is down imports it again
  for (const builder of builders) {
    await builder.logged(
      new RegExp(`build ${woken.uuid} of woken, .*: (?:imported as|a builder already has it)`),
    );
  }

  await builders[0]?.end('SIGTERM');
  const last = await publish('polled');
  await offered('polled', last);
  const [host] = hosts;
  assert.ok(host !== undefined);
  const again = endAfter(t, await startBuilder(host.config));
  await again.logged(new RegExp(`build ${last.uuid} of polled, .*: a builder already has it`));

  const built = (await Promise.all(hosts.map((site) => site.built()))).flat();
  assert.deepEqual(built.toSorted(), imported.toSorted());
  const bytes = (await artifacts.finish()).reduce((sum, request) => sum + request.bytes, 0);
  assert.ok(bytes < (imported.length + 1) * SIZE, `${bytes} bytes were fetched`);
});
