// Not a unit test: it starts a broker.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { CheckResult } from '@nodepool-builder/image-builder';
import { startDeadServer } from '../../../test/fixtures/dead-server.ts';
import { startMosquitto } from '../../../test/fixtures/mosquitto.ts';
import { temporaryDirectory } from '../../../test/fixtures/scratch-directory.ts';
import { undoAfter } from '../../../test/fixtures/undo-after.ts';
import { qcowArtifact } from '../../../test/fixtures/zuul/build-table.ts';
import { QUERY, startZuul } from '../../../test/fixtures/zuul/start-zuul.ts';
import { diagnoseZuul } from '../src/diagnose-zuul.ts';
import type { ZuulSettings } from '../src/zuul-settings.ts';

function settingsOf(apiUrl: string, more: Partial<ZuulSettings> = {}): ZuulSettings {
  return {
    ...QUERY,
    'api-url': apiUrl,
    artifacts: [{ format: 'qcow2', type: 'image-qcow' }],
    'poll-interval': 60,
    'require-sha256': false,
    pause: false,
    'build-timeout': 60,
    ...more,
  };
}

async function diagnose(settings: ZuulSettings): Promise<readonly CheckResult[]> {
  return await Array.fromAsync(diagnoseZuul('noble', settings, new AbortController().signal));
}

describe('the diagnosis of a Zuul', () => {
  test('the diagnosis of Zuul finds the API, the tenant and the newest build', async (t) => {
    const zuul = await startZuul(t);
    const missing = await diagnose(settingsOf(zuul.url));
    assert.deepEqual(
      missing.map(({ status }) => status),
      ['ok', 'warning'],
    );
    const { uuid } = zuul.table().add([qcowArtifact('1')]);
    const [api, builds] = await diagnose(settingsOf(zuul.url));
    assert.equal(api?.message, `Zuul API ${zuul.url} responds, and knows the tenant`);
    assert.equal(builds?.status, 'ok');
    assert.ok(builds.message.includes(uuid));
  });

  test('the diagnosis of Zuul warns if the newest build did not return the image', async (t) => {
    const zuul = await startZuul(t);
    zuul.table().add([qcowArtifact('1', { image_name: 'jammy' })]);
    const [, builds] = await diagnose(settingsOf(zuul.url, { 'image-name': 'noble' }));
    assert.equal(builds?.status, 'warning');
    assert.match(builds.message, /has the image_name "noble" that image-name requires: they have "jammy"$/);
  });

  test('the diagnosis of Zuul names an unknown tenant or an unreachable API at once', async (t) => {
    const zuul = await startZuul(t);
    const [unknown] = await diagnose(settingsOf(`${zuul.url}t/nobody`));
    assert.partialDeepStrictEqual(unknown, {
      status: 'problem',
      remedy: 'the tenant does not exist; correct its name in api-url'.split('; ')[1] ?? '',
    });
    const dead = await startDeadServer(t);
    const [down] = await diagnose(settingsOf(dead.url));
    assert.equal(down?.status, 'problem');
    assert.match(down.message, /no response/);
    assert.equal(dead.connections(), 1, 'without retries');
  });

  test('the diagnosis of Zuul subscribes to the broker, and warns if that is not possible', async (t) => {
    const zuul = await startZuul(t);
    const user = { name: 'builder@example.com', password: 's3cret-of-mqtt' };
    const broker = await startMosquitto({ user });
    undoAfter(t, () => broker.stop());
    const file = join(temporaryDirectory(t), 'password');
    await writeFile(file, user.password);
    const url = `mqtt://${encodeURIComponent(user.name)}@127.0.0.1:${broker.port}`;
    const mqtt = { url, topic: 'zuul/#', 'password-file': file };
    const result = async (): Promise<CheckResult | undefined> =>
      (await diagnose(settingsOf(zuul.url, { mqtt }))).at(-1);
    assert.deepEqual(await result(), {
      subject: `MQTT broker 127.0.0.1:${broker.port}`,
      status: 'ok',
      message: 'this builder may subscribe to zuul/#',
    });
    await writeFile(file, 'wrong-password');
    const refused = await result();
    assert.equal(refused?.status, 'warning');
    assert.match(refused.message, /not authori[sz]ed/i);
    assert.doesNotMatch(JSON.stringify(refused), /wrong-password/);
    await broker.kill();
    assert.match((await result())?.message ?? '', /ECONNREFUSED/);
  });
});
