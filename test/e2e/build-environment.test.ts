import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import type { BuilderProcess } from '../fixtures/builder-process.ts';
import { type CompatSite, createCompatSite } from '../fixtures/compat-site.ts';
import { startGearmand } from '../fixtures/gearmand.ts';
import { NodepoolClient } from '../fixtures/nodepool-client.ts';
import { undoAfter } from '../fixtures/undo-after.ts';

const SECRETS = {
  OS_PASSWORD: 'secret-of-openstack',
  PGPASSWORD: 'secret-of-postgresql',
  AWS_SECRET_ACCESS_KEY: 'secret-of-aws',
  GITHUB_TOKEN: 'secret-of-github',
  MYSTERY: 'secret-of-mystery',
};

const PASSED = { DIB_DEBUG_TRACE: '1', LC_MESSAGES: 'C', no_proxy: 'localhost', NODEPOOL_REGION: 'one' };

interface Programs {
  readonly site: CompatSite;
  readonly client: NodepoolClient;
  readonly builder: BuilderProcess;
}

/** A site whose disk image `checked` has a validation program and a hook, which print their environment. */
async function start(t: TestContext, configuration = ''): Promise<Programs> {
  const server = await startGearmand();
  undoAfter(t, () => server.stop());
  const site = await createCompatSite(server.port, {
    diskimages: `
  - {name: checked, elements: [vm], validate: {hook: ./program}}`,
    providers: `
  - {name: hooked, type: directory, directory: pool, image-type: raw, post-upload-hook: ./program, images: [{name: a, diskimage: checked}]}`,
  });
  undoAfter(t, () => site.remove());
  await writeFile(join(site.directory, 'program'), '#!/bin/sh\nenv\n', { mode: 0o755 });
  await writeFile(site.config, `${await readFile(site.config, 'utf8')}\n${configuration}\n`);
  const builder = await site.start({ ...SECRETS, ...PASSED });
  undoAfter(t, () => builder.end('SIGINT'));
  const client = await NodepoolClient.connect(server.port);
  undoAfter(t, () => client.close());
  assert.equal((await client.build('checked', '1')).end, 'WORK_COMPLETE');
  assert.equal((await client.upload('1', 'hooked', 'a')).end, 'WORK_COMPLETE');
  return { site, client, builder };
}

async function buildLog({ images }: CompatSite): Promise<string> {
  return await readFile(join(images, '.nodepool-builder/logs/1.log'), 'utf8');
}

it('secrets in the daemon’s environment reach neither builds nor validation programs nor hooks nor logs', async (t) => {
  const { site, builder } = await start(t);
  const environment = await site.dib.environment();
  for (const name of Object.keys(SECRETS)) assert.equal(environment.get(name), undefined, name);
  for (const [name, value] of Object.entries(PASSED)) assert.equal(environment.get(name), value, name);
  const log = await buildLog(site);
  const hookLines = builder.log.filter((line) => line.includes('nodepool.image.upload.hooked'));
  for (const text of [log, hookLines.join('\n')]) assert.match(text, /DIB_DEBUG_TRACE=1/);
  assert.match(log, /^# variables that this build does not get: .*\bMYSTERY, .*\bPGPASSWORD\b/m);
  assert.doesNotMatch(log + builder.log.join('\n'), /secret-of|PGPASSWORD=|MYSTERY=/);
});

it('the setting build-environment passes variables on, and logs show only public ones’ values', async (t) => {
  const { site, builder } = await start(
    t,
    'build-environment: [MYSTERY, AWS_*, GITHUB_TOKEN]\npublic-variables: [GITHUB_TOKEN]',
  );
  const environment = await site.dib.environment();
  assert.equal(environment.get('MYSTERY'), SECRETS.MYSTERY);
  assert.equal(environment.get('AWS_SECRET_ACCESS_KEY'), SECRETS.AWS_SECRET_ACCESS_KEY);
  assert.equal(environment.get('OS_PASSWORD'), undefined);
  for (const text of [await buildLog(site), builder.log.join('\n')]) {
    assert.match(text, /GITHUB_TOKEN=secret-of-github/);
    assert.match(text, /MYSTERY=\*\*\*/);
    assert.match(text, /AWS_SECRET_ACCESS_KEY=\*\*\*/);
    assert.doesNotMatch(text, /secret-of-(?!github)/);
  }
});

it("the setting build-environment: ['*'] passes all variables, as the Python builder did", async (t) => {
  const { site } = await start(t, "build-environment: ['*']");
  const environment = await site.dib.environment();
  for (const [name, value] of Object.entries(SECRETS)) assert.equal(environment.get(name), value, name);
});
