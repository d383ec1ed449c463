// Not a unit test: it emits the signals that end a test runner.
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { runService, type Service, type ServiceSite } from '../../src/commands/service.ts';
import { Modules } from '../../src/configuration/modules.ts';
import { defaultLogSettings } from '../../src/logging/read-log-settings.ts';

async function run(t: TestContext, start: (site: ServiceSite, config: string) => Promise<Service>) {
  const config = join(temporaryDirectory(t), 'nodepool.yaml');
  await writeFile(config, 'images-dir: before\n');
  const options = { config, defaultLog: defaultLogSettings('error'), loggerName: 'service' };
  const site = { ...options, stopMessage: 'stopping', modules: Modules.builtIn };
  await runService(site, (started) => start(started, config));
}

it('a service that gets SIGHUP while it starts reloads the configuration once it runs', async (t) => {
  const reloaded = Promise.withResolvers<string>();
  const events: string[] = [];
  await run(t, async ({ configuration }, config) => {
    events.push(`start with ${configuration['images-dir'].replace(/.*\//, '')}`);
    await writeFile(config, 'images-dir: after\n');
    process.emit('SIGHUP', 'SIGHUP');
    void reloaded.promise.then(() => process.emit('SIGTERM', 'SIGTERM'));
    return {
      reload: ({ 'images-dir': imagesDir }) => {
        events.push(`reload ${imagesDir.replace(/.*\//, '')}`);
        reloaded.resolve(imagesDir);
      },
      status: () => 'running',
      close: async () => void events.push('close'),
    };
  });
  assert.deepEqual(events, ['start with before', 'reload after', 'close']);
});

it('a service that fails to start is not reloaded', async (t) => {
  const before = process.listenerCount('SIGHUP');
  const failed = run(t, async () => {
    process.emit('SIGHUP', 'SIGHUP');
    throw new Error('no start');
  });
  await assert.rejects(failed, /^Error: no start$/);
  assert.equal(process.listenerCount('SIGHUP'), before + 1); // the listener that has no effect
});
