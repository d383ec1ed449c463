import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/scratch-directory.ts';
import { type LoadedConfiguration, loadConfiguration } from '../../src/configuration/load.ts';
import { ConfigurationError, formatDiagnostic } from '../../src/yaml/diagnostic.ts';

async function load(t: TestContext, ...entries: readonly object[]): Promise<LoadedConfiguration> {
  const file = join(temporaryDirectory(t), 'nodepool.yaml');
  await writeFile(file, JSON.stringify({ 'images-dir': '.', notifications: entries }));
  return await loadConfiguration(file);
}

async function faultOf(t: TestContext, ...entries: readonly object[]): Promise<string> {
  const error = await load(t, ...entries).catch((reason: unknown) => reason);
  assert.ok(error instanceof ConfigurationError, JSON.stringify(error));
  return error.diagnostics.map((diagnostic) => formatDiagnostic('', diagnostic)).join('\n');
}

const WEB = { name: 'web', url: 'https://example.com/a-secret' };

describe('notifications', () => {
  it('notifications have defaults, and absolute paths', async (t) => {
    const { configuration } = await load(
      t,
      { ...WEB, 'secret-file': '/dev/null' },
      { name: 'c', command: ['bin/a'] },
    );
    const [web, command] = configuration.notifications;
    assert.deepEqual(web, { ...WEB, 'secret-file': '/dev/null', 'max-age': 172_800 });
    assert.equal(command?.command?.[0], join(configuration.file, '../bin/a'));
  });

  it('notifications are rejected without exactly one receiver, and with a name that is taken', async (t) => {
    assert.match(await faultOf(t, { name: 'a' }), /has no receiver; set one of url, command/);
    assert.match(await faultOf(t, { ...WEB, command: ['a'] }), /has url and command; set one of/);
    assert.match(await faultOf(t, WEB, WEB), /"web" is used by another entry/);
    assert.match(
      await faultOf(t, { name: 'a', command: ['a'], 'secret-file': '/x' }),
      /a command receives no request/,
    );
  });

  it('notifications are rejected with unknown events and with an invalid URL, which stays secret', async (t) => {
    assert.match(await faultOf(t, { ...WEB, events: ['build-broken'] }), /build-failed/);
    const fault = await faultOf(t, { name: 'a', url: 'ftp://example.com/hunter2' });
    assert.match(fault, /url is not an HTTP URL/);
    assert.doesNotMatch(fault, /hunter2/);
  });

  it('notifications cause a warning for a file that cannot be read', async (t) => {
    const { warnings } = await load(t, { ...WEB, 'secret-file': '/nonexistent' });
    assert.match(warnings[0]?.reason ?? '', /secret-file cannot be read: ENOENT/);
  });
});
