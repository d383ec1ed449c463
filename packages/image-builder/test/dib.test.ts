import assert from 'node:assert/strict';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { RepositoryFixture } from '../../../test/fixtures/repository-fixture.ts';
import { withCode } from '../../../test/fixtures/with-code.ts';
import { OWN_ELEMENTS } from '../src/dib-elements.ts';
import { DibBuilder } from '../src/index.ts';
import { imageBuilderContract } from '../src/testing/image-builder-contract.ts';
import { assertNoOrphans } from './host-orphans.ts';
import { MINI_OS, MINI_OS_ELEMENTS } from './mini-os.ts';

imageBuilderContract(
  'DibBuilder with the real disk-image-create',
  ({ name, formats }) => new DibBuilder({ ...MINI_OS, name, formats }, MINI_OS_ELEMENTS),
  ['qcow2', 'raw'],
);

test('a failed element is reported with its exit code, and leaves no file', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const builder = new DibBuilder(MINI_OS, { elements: 'mini-fail' });
  await assert.rejects(
    builder.build({ imageId: 'mini-1', repository: fixture.repository }),
    withCode(
      'command-failed',
      /^"disk-image-create" ended with exit code 42 in install\.d\/60-mini-fail, saying: mini-fail: as asked; see /,
    ),
  );
  assert.deepEqual(await readdir(fixture.directory), ['.nodepool-builder']);
  await assertNoOrphans(fixture.directory);
});

/** Replaces disk-image-create: prints its arguments, and creates the file that `-o` names. */
const STAND_IN = `#!/bin/sh
echo "arguments: $*"
echo "release $DIB_RELEASE, colour $COLOUR, temporary files in $TMPDIR and $TMP_DIR"
while [ "$1" != -o ]; do shift; done
echo content > "$2.qcow2"
mkdir "$2.d"
echo packages > "$2.d/dib-manifest"
`;

test('a dib-cmd gets the same arguments, and its files next to the image are kept', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const command = join(fixture.outside, 'my-image-create');
  await writeFile(command, STAND_IN, { mode: 0o755 });
  const lines: string[] = [];
  const builder = new DibBuilder(
    {
      name: 'debian',
      formats: [],
      release: 'bookworm',
      envVars: { COLOUR: 'blue' },
      publicVariables: ['COLOUR'],
    },
    { elements: 'debian-minimal vm', 'dib-cmd': command },
  );
  await builder.build({
    imageId: 'debian-1',
    repository: fixture.repository,
    onLine: (line) => lines.push(line),
  });
  const log = lines.join('\n');
  const stage = `${fixture.directory}/.nodepool-builder/staging/stage-\\w+`;
  assert.match(
    log,
    new RegExp(`^arguments: -x -t qcow2 --no-tmpfs .* -o ${stage}/debian-1 debian-minimal vm$`, 'm'),
  );
  assert.match(
    log,
    new RegExp(`^release bookworm, colour blue, temporary files in ${stage}/tmp and ${stage}/tmp$`, 'm'),
  );
  assert.equal(await readFile(fixture.path('debian-1.d/dib-manifest'), 'utf8'), 'packages\n');
});

for (const { title, elements, envVars, path } of [
  {
    title: 'an element of this package that a disk image names is found after elements-dir',
    elements: ['debian-minimal', 'debian-fixes'],
    envVars: {},
    path: `/srv/elements:${OWN_ELEMENTS}`,
  },
  {
    title: 'an element of this package that a disk image names is found after the ELEMENTS_PATH in env-vars',
    elements: 'debian-minimal debian-fixes',
    envVars: { ELEMENTS_PATH: '/opt/elements' },
    path: `/opt/elements:${OWN_ELEMENTS}`,
  },
  {
    title: 'the ELEMENTS_PATH is elements-dir for a disk image that names no element of this package',
    elements: ['debian-minimal'],
    envVars: {},
    path: '/srv/elements',
  },
]) {
  test(title, async (t) => {
    const { repository, outside } = await RepositoryFixture.open(t);
    const command = join(outside, 'my-image-create');
    await writeFile(command, '#!/bin/sh\necho "elements: $ELEMENTS_PATH"\n', { mode: 0o755 });
    const lines: string[] = [];
    const builder = new DibBuilder(
      { name: 'debian', formats: [], elementsDir: '/srv/elements', envVars },
      { elements, 'dib-cmd': command },
    );
    const job = { imageId: 'debian-1', repository, onLine: (line: string) => lines.push(line) };
    await assert.rejects(builder.build(job), withCode('image-missing'));
    assert.ok(lines.includes(`elements: ${path}`), lines.join('\n'));
  });
}

test('a missing disk-image-create is reported as not installed', async (t) => {
  const { repository } = await RepositoryFixture.open(t);
  const builder = new DibBuilder(MINI_OS, { 'dib-cmd': 'no-such-image-create' });
  await assert.rejects(
    builder.build({ imageId: 'mini-1', repository }),
    withCode('command-not-found', /"no-such-image-create" is not installed/),
  );
});

test('a secret reaches disk-image-create, but neither the log nor the error', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  const command = join(fixture.outside, 'my-image-create');
  const kept = join(fixture.outside, 'kept');
  const script = [
    '#!/bin/bash -x',
    `printf %s "$TOKEN" > ${kept}`,
    'curl_with() { false; }',
    'curl_with $TOKEN',
  ];
  await writeFile(command, `${script.join('\n')} || exit 1\n`, { mode: 0o755 });
  const lines: string[] = [];
  const envVars = { TOKEN: 'correct-horse' };
  const builder = new DibBuilder(
    { name: 'debian', formats: [], envVars, secrets: ['correct-horse'] },
    { 'dib-cmd': command },
  );
  const { repository } = fixture;
  const built = builder.build({ imageId: 'debian-1', repository, onLine: (line) => lines.push(line) });
  await assert.rejects(built, (error) => {
    assert.ok(!inspect(error, { depth: Number.POSITIVE_INFINITY }).includes('correct-horse'));
    return withCode('command-failed', /saying: .*curl_with \*\*\*/)(error);
  });
  assert.equal(await readFile(kept, 'utf8'), 'correct-horse');
  const log = await readFile(join(repository.logDirectory, 'debian-1.log'), 'utf8');
  assert.match(log, /^\+ curl_with \*\*\*$/m);
  assert.ok(!`${log}${lines.join('\n')}${fixture.logger.lines.join('\n')}`.includes('correct-horse'));
});

test('a secret does not reach the error with the decisive line, even where a long line is cut', async (t) => {
  const { repository, outside } = await RepositoryFixture.open(t);
  const command = join(outside, 'my-image-create');
  const output = `E: Failed to fetch http://ci:$TOKEN@mirror/ ${'x'.repeat(440)}http://ci:$TOKEN@mirror/`;
  await writeFile(command, `#!/bin/sh\necho "${output}"\nexit 100\n`, { mode: 0o755 });
  const builder = new DibBuilder(
    { name: 'debian', formats: [], envVars: { TOKEN: 'correct-horse' }, secrets: ['correct-horse'] },
    { 'dib-cmd': command },
  );
  await assert.rejects(builder.build({ imageId: 'debian-1', repository }), (error: Error) => {
    assert.ok(!inspect(error, { depth: Number.POSITIVE_INFINITY }).includes('correct'));
    return withCode('command-failed', /saying: E: Failed to fetch http:\/\/ci:\*\*\*@mirror\/ x+/)(error);
  });
});

for (const [what, diskimage, settings] of [
  ['elements', MINI_OS, { elements: `mini-os 'vm` }],
  ['envVars', { ...MINI_OS, envVars: { DIB_JOURNAL_SIZE: 4 } }, MINI_OS_ELEMENTS],
] as const) {
  test(`invalid ${what} of a disk image are rejected`, async (t) => {
    const { repository } = await RepositoryFixture.open(t);
    const builder = new DibBuilder(diskimage, settings);
    await assert.rejects(builder.build({ imageId: 'mini-1', repository }), withCode('invalid-configuration'));
  });
}

test('the build log names this process’s variables that the build does not get', async (t) => {
  const fixture = await RepositoryFixture.open(t);
  process.env.OS_PASSWORD_OF_TEST = 'correct-horse';
  t.after(() => {
    delete process.env.OS_PASSWORD_OF_TEST;
  });
  const lines: string[] = [];
  const builder = new DibBuilder({ name: 'mini', formats: ['raw'] }, { 'dib-cmd': 'true' });
  const job = { imageId: 'mini-1', repository: fixture.repository };
  await assert.rejects(
    builder.build({ ...job, onLine: (line) => lines.push(line) }),
    withCode('image-missing'),
  );
  const log = lines.join('\n');
  assert.match(log, /^# variables that this build does not get: .*\bOS_PASSWORD_OF_TEST\b/m);
  assert.doesNotMatch(log, /correct-horse/);
});
