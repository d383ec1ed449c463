import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withCode } from '../../../test/fixtures/with-code.ts';
import { dibArguments, dibProgress, dibVariables } from '../src/dib.ts';
import type { ImageFormat } from '../src/index.ts';

function argumentsFor(
  formats: readonly ImageFormat[],
  elements: string | readonly string[] = 'debian vm',
): string[] {
  return dibArguments({ elements }, formats, '/images/debian-1');
}

test('diskimage-builder’s arguments equal nodepool’s', () => {
  assert.deepEqual(argumentsFor(['qcow2']), [
    '-x',
    '-t',
    'qcow2',
    '--no-tmpfs',
    '--qemu-img-options',
    'compat=0.10',
    '-o',
    '/images/debian-1',
    'debian',
    'vm',
  ]);
});

const TYPES: readonly (readonly [formats: readonly ImageFormat[], types: string, hasOptions: boolean])[] = [
  [['qcow2', 'raw', 'vhd'], 'qcow2,raw,vhd', true],
  [['raw'], 'raw', false],
  // The options for qcow2 would also apply to these formats, and qemu-img would reject them.
  [['qcow2', 'vmdk'], 'qcow2,vmdk', false],
  [['vhdx', 'vdi', 'vpc', 'qcow2'], 'vhdx,vdi,vpc,qcow2', false],
  [['qcow2', 'squashfs', 'tgz'], 'squashfs,qcow2,tgz', true],
];

for (const [formats, types, hasOptions] of TYPES) {
  test(`the formats ${formats.join(', ')} become the diskimage-builder types ${types}`, () => {
    const args = argumentsFor(formats);
    assert.equal(args[args.indexOf('-t') + 1], types);
    assert.equal(args.includes('--qemu-img-options'), hasOptions);
  });
}

const OPTIONS: readonly (readonly [
  options: string,
  formats: readonly ImageFormat[],
  expected: readonly string[],
])[] = [
  ['compat=1.1,cluster_size=2M', ['qcow2'], ['--qemu-img-options', 'compat=1.1,cluster_size=2M']],
  ['subformat=streamOptimized', ['vmdk'], ['--qemu-img-options', 'subformat=streamOptimized']],
  ['', ['qcow2'], []],
];

for (const [qemuImgOptions, formats, expected] of OPTIONS) {
  test(`the options "${qemuImgOptions}" for ${formats.join(', ')} replace nodepool’s`, () => {
    const args = dibArguments({ 'qemu-img-options': qemuImgOptions }, formats, '/images/debian-1');
    assert.deepEqual(args.slice(args.indexOf('--no-tmpfs') + 1, args.indexOf('-o')), expected);
  });
}

/** Returns the arguments after the image's path. */
function elementsOf(elements?: string | readonly string[]): string[] {
  return dibArguments({ ...(elements !== undefined && { elements }) }, ['raw'], 'image').slice(6);
}

test('the elements of a disk image are a list, words in a string, or none', () => {
  assert.deepEqual(elementsOf(['one two', 'three']), ['one two', 'three']);
  assert.deepEqual(elementsOf(`'one two' three`), ['one two', 'three']);
  assert.deepEqual(elementsOf(), []);
});

test('elements with an open quote are rejected', () => {
  assert.throws(() => argumentsFor(['raw'], `debian 'vm`), withCode('invalid-configuration'));
});

test('an image without settings has an empty release, and settings become variables', () => {
  const diskimage = { name: 'debian', formats: [] };
  const variables = { DIB_RELEASE: '', DIB_IMAGE_NAME: 'debian', DIB_IMAGE_FILENAME: '/images/debian-1' };
  assert.deepEqual(dibVariables(diskimage, '/images/debian-1'), variables);
  const full = { ...diskimage, release: 12, elementsDir: '/etc/elements', scriptDir: '/etc/scripts' };
  assert.deepEqual(dibVariables(full, '/images/debian-1'), {
    ...variables,
    DIB_RELEASE: '12',
    ELEMENTS_PATH: '/etc/elements',
    NODEPOOL_SCRIPTDIR: '/etc/scripts',
  });
});

/** Lines of disk-image-create 3.13, in the order in which they appear. */
const LINES = [
  '2026-11-21 12:00:01.100 | dib-run-parts Running /tmp/dib_build.X/hooks/root.d/10-mini-os',
  '2026-11-21 12:00:02.100 | dib-run-parts Running /tmp/dib_build.X/hooks/extra-data.d/01-copy',
  'dib-run-parts Running /tmp/in_target.d/pre-install.d/00-x',
  'dib-run-parts Running /tmp/in_target.d/install.d/50-mini-mark',
  'dib-run-parts Running /tmp/in_target.d/post-install.d/00-x',
  'dib-run-parts Running /tmp/dib_build.X/hooks/cleanup.d/01-x',
  '2026-11-21 12:00:05.100 | Converting image using qemu-img convert',
  '2026-11-21 12:00:06.100 | Image file /images/debian-1.qcow2 created...',
  '2026-11-21 12:00:07.100 | Build completed successfully',
];

test('a diskimage-builder build’s progress grows over its lines', () => {
  const progressOf = dibProgress();
  const seen = LINES.map((line) => progressOf(line)?.done);
  assert.ok(seen.every((done) => done !== undefined));
  assert.deepEqual(
    seen,
    seen.toSorted((one = 0, other = 0) => one - other),
  );
  assert.equal(seen.at(-1), 100);
});

test('a diskimage-builder build’s progress grows within a named stage, and does not reach the next stage', () => {
  const progressOf = dibProgress();
  progressOf(LINES[0] ?? '');
  const seen = Array.from({ length: 600 }, (_, index) => progressOf(`I: Retrieving package ${index}`));
  assert.deepEqual(new Set(seen.map((progress) => progress?.phase)), new Set(['root.d']));
  const [first = 0, half = 0, last = 0] = [0, 300, 599].map((index) => seen[index]?.done);
  assert.ok(
    2 < first && first < 3 && 15 < half && half < 18 && half + 2 < last && last < 30,
    `${first} ${half} ${last}`,
  );
  const { done = 0 } = progressOf(LINES[0] ?? '') ?? {};
  assert.ok(done > last, 'the next script of the stage does not reset it');
  assert.deepEqual(progressOf(LINES[3] ?? ''), { phase: 'install.d', done: 35 });
});

test('a diskimage-builder build’s lines before the first stage report no progress', () => {
  for (const line of [
    '',
    'Setting up libc6',
    'dib-run-parts Sourcing environment file',
    'echo Build completed successfully',
    '+ echo dib-run-parts Running hooks/root.d',
  ]) {
    assert.equal(dibProgress()(line), undefined, line);
  }
});
