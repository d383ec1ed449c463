import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { parametersOf } from '../../src/attestation/site-attestation.ts';
import { changedInputs } from '../../src/commands/changed-inputs.ts';
import type { RebuiltImage } from '../../src/commands/rebuild-report.ts';
import { type RecordedDiskImage, recordedDiskImage } from '../../src/commands/recorded-inputs.ts';
import { type LoadedConfiguration, loadConfiguration } from '../../src/configuration/load.ts';

type Facts = Parameters<typeof recordedDiskImage>[0];

/** Loads a configuration with these disk images. */
async function load(t: TestContext, diskimages: string): Promise<LoadedConfiguration> {
  const directory = mkdtempSync(join(tmpdir(), 'recorded-inputs-'));
  t.after(() => rmSync(directory, { recursive: true }));
  const file = join(directory, 'nodepool.yaml');
  writeFileSync(file, `images-dir: /i\nelements-dir: ${directory}\ndiskimages:${diskimages}\n`);
  return await loadConfiguration(file, { place: { env: {}, cwd: directory, home: directory } });
}

/** Facts of a build of the first disk image of a configuration. */
function factsOf(
  { configuration }: LoadedConfiguration,
  more: Readonly<Record<string, unknown>> = {},
): Facts {
  const [diskimage] = configuration.diskimages;
  assert.ok(diskimage);
  return {
    kind: 'build',
    buildType: '',
    builderId: '',
    builderVersions: { 'nodepool-builder': '0.0.1' },
    imageName: diskimage.name,
    parameters: { ...parametersOf(diskimage), environment: diskimage.envVars, ...more },
    materials: [],
    subjects: [],
  };
}

function recordedOf(facts: Facts, { configuration, plugins }: LoadedConfiguration): RecordedDiskImage {
  return recordedDiskImage(facts, { configuration, modules: plugins.modules });
}

function inputsOf(facts: Facts, diskimage: RecordedDiskImage): RebuiltImage['inputs'] {
  const environment = diskimage.envVars as Readonly<Record<string, string>>;
  return changedInputs(facts, {
    diskimage,
    materials: [],
    environment,
    restored: new Set(),
    reasons: new Map(),
  });
}

const DEBIAN = `
  - name: debian
    elements: [vm, mine]
    release: bookworm
    env-vars: {COLOUR: red}
    options: {a: 1, token: t, nested: {api-key: k}}
    build-timeout: 100`;

test('recorded settings, variables, release and options count; limits are those of today', async (t) => {
  const then = await load(t, DEBIAN);
  const facts = factsOf(then);
  assert.deepEqual(facts.parameters.options, { a: 1, token: '***', nested: { 'api-key': '***' } });
  const now = await load(
    t,
    DEBIAN.replace('[vm, mine]', '[vm]')
      .replace('bookworm', 'trixie')
      .replace('{COLOUR: red}', '{COLOUR: blue, MORE: x}')
      .replace('a: 1', 'a: 2')
      .replace('timeout: 100', 'timeout: 200'),
  );
  const diskimage = recordedOf(facts, now);
  assert.deepEqual(diskimage.settings, { elements: ['vm', 'mine'] });
  assert.equal(diskimage.release, 'bookworm');
  assert.deepEqual(diskimage.envVars, { COLOUR: 'red' });
  assert.deepEqual(diskimage.options, { a: 1, token: 't', nested: { 'api-key': 'k' } });
  assert.equal(diskimage.buildTimeout, 200);
  assert.equal(diskimage.elementsDir, then.configuration['elements-dir']);
  assert.equal(diskimage.digest, then.configuration.diskimages[0]?.digest);
  assert.deepEqual(inputsOf(facts, diskimage), []);
});

test('an earlier release did not record release and options: they are those of today', async (t) => {
  const then = await load(t, DEBIAN);
  const { options: _, release: __, 'elements-dir': ___, ...earlier } = factsOf(then).parameters;
  const facts = { ...factsOf(then), parameters: earlier };
  const same = recordedOf(facts, await load(t, DEBIAN.replace('red', 'blue')));
  assert.deepEqual([same.release, inputsOf(facts, same)], ['bookworm', []]);
  const other = recordedOf(facts, await load(t, DEBIAN.replace('bookworm', 'trixie')));
  assert.equal(other.release, 'trixie');
  assert.deepEqual(
    inputsOf(facts, other).map(({ name }) => name),
    ['configuration-digest'],
  );
});

test('the recorded builder counts although the disk image has another one today', async (t) => {
  const facts = factsOf(await load(t, DEBIAN));
  const now = await load(t, "\n  - {name: debian, builder: command, command: [cp, /a, '{output.raw}']}");
  const { builder, settings } = recordedOf(facts, now);
  assert.deepEqual([builder, settings], ['dib', { elements: ['vm', 'mine'] }]);
});

function onInstance(steps: string): string {
  const block = `{base-image: /base.qcow2, private-key: /key, steps: ${steps}}`;
  return `\n  - {name: vm, builder: on-instance, on-instance: ${block}}`;
}

test('settings of a module that completes them are taken back', async (t) => {
  const then = await load(t, onInstance('[first, {name: two, run: second}]'));
  const facts = factsOf(then);
  const diskimage = recordedOf(facts, await load(t, onInstance('[other]')));
  assert.deepEqual(diskimage.settings, then.configuration.diskimages[0]?.settings);
  assert.deepEqual(inputsOf(facts, diskimage), []);
});

test('a disk image that is gone is built if the statement has everything', async (t) => {
  const plain = DEBIAN.replace(', token: t, nested: {api-key: k}', '');
  const then = await load(t, plain);
  const now = await load(t, '\n  - {name: other}');
  const diskimage = recordedOf(factsOf(then), now);
  assert.equal(diskimage.digest, then.configuration.diskimages[0]?.digest);
  const { release: _, options: __, ...earlier } = factsOf(then).parameters;
  assert.throws(
    () => recordedOf({ ...factsOf(then), parameters: earlier }, now),
    /^CommandError: disk image "debian" is not in .*yaml, and its attestation does not have all of its settings; add/,
  );
  assert.throws(
    () => recordedOf(factsOf(then, { environment: { TOKEN: '***' } }), now),
    /masks the secret TOKEN; add/,
  );
});

test('settings of another version that do not fit are refused', async (t) => {
  const now = await load(t, DEBIAN);
  for (const [more, message] of [
    [
      { settings: { elements: 5 } },
      /cannot be used: settings\.elements is not a list or a string; nodepool-builder 0\.0\.1 recorded them: compare with that version$/,
    ],
    [{ settings: { 'new-key': 'x' } }, /settings has the unknown key "new-key"/],
    [{ settings: 'x' }, /parameters\.settings is not an object/],
    [{ environment: { A: 1 } }, /parameters\.environment\.A is not a string/],
    [
      { builder: 'command', settings: { command: ['cp'] } },
      /settings\.command does not tell the formats that it writes/,
    ],
    [{ builder: 'on-instance', settings: { provider: 5 } }, /settings\.on-instance\.base-image is missing/],
    [
      { builder: 'mine' },
      /^CommandError: disk image "debian" had the unknown builder "mine"; add its plugin$/,
    ],
  ] as const) {
    assert.throws(() => recordedOf(factsOf(now, more), now), message);
  }
});
