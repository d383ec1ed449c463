// Only in test:all: it kills a builder at each step.
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, test } from 'node:test';
import { RepositoryFixture } from '../../../test/fixtures/repository-fixture.ts';
import { processesWith, untilGone } from '../../../test/fixtures/running-process.ts';
import { waitUntil } from '../../../test/fixtures/wait-until.ts';
import { mountsBelow } from '../src/cleanup/mounts.ts';
import { checksumsOf } from '../src/hashed-reader.ts';
import type { Image } from '../src/index.ts';
import { assertNoOrphans, mountsOfBuilds, orphansBelow } from './host-orphans.ts';
import { makeImage, ScriptedBuilder } from './scripted-builder.ts';

/** More steps than any operation has. */
const MANY = 100;

function startVictim(
  { directory }: RepositoryFixture,
  args: readonly string[],
  env: NodeJS.ProcessEnv = {},
): ChildProcess {
  const victim = join(import.meta.dirname, 'crash-victim.ts');
  return spawn(process.execPath, [...process.execArgv, victim, directory, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

/** Returns the formats of an image with complete files. A crash can leave a converted file without checksums. */
async function formatsOf(image: Image | undefined): Promise<string[]> {
  for (const { path, format, checksums } of image?.files ?? []) {
    if (format === 'qcow2' && checksums === undefined) execFileSync('qemu-img', ['check', '-q', path]);
    else assert.deepEqual(await checksumsOf(path), checksums, `${path} is not complete`);
  }
  return image?.files.map(({ format }) => format) ?? [];
}

/** Checks that no work is left over, and that only the image exists. */
async function assertInOrder({ directory, repository }: RepositoryFixture): Promise<void> {
  for (const name of ['staging', 'trash', 'deletes']) {
    assert.deepEqual(await readdir(join(directory, '.nodepool-builder', name)), [], name);
  }
  const files = (repository.get('a')?.files ?? []).map(({ format }) => `a.${format}`);
  const rest = files.length > 0 ? ['a.d', ...files] : [];
  assert.deepEqual((await readdir(directory)).toSorted(), ['.nodepool-builder', ...rest].toSorted());
  // The repository may just be recording the checksums of a converted file.
  const [manifests, expected] = [
    join(directory, '.nodepool-builder', 'manifests'),
    files.length > 0 ? 'a.json' : '',
  ];
  await waitUntil(
    `only ${expected} in ${manifests}`,
    async () => String(await readdir(manifests)) === expected,
  );
}

interface Operation {
  readonly name: string;
  /** States before and after the operation. Nothing in between may be observed. */
  readonly outcomes: readonly (readonly string[])[];
  /** Repeats the operation, as when a job server reassigns the job. */
  readonly again: (fixture: RepositoryFixture) => Promise<unknown>;
}

const OPERATIONS: readonly Operation[] = [
  {
    name: 'build',
    outcomes: [[], ['raw', 'tar']],
    again: ({ repository }) =>
      new ScriptedBuilder(makeImage, { formats: ['raw', 'tar'] }).build({ imageId: 'a', repository }),
  },
  {
    name: 'convert',
    outcomes: [
      ['raw', 'tar'],
      ['qcow2', 'raw', 'tar'],
    ],
    again: ({ repository }) => repository.file('a', ['qcow2']),
  },
  { name: 'delete', outcomes: [['raw', 'tar'], []], again: ({ repository }) => repository.delete('a') },
];

describe('SIGKILL at each step', () => {
  for (const { name, outcomes, again } of OPERATIONS) {
    test(`SIGKILL at each step of a ${name} leaves the complete result or none, and the repeated job succeeds`, async (t) => {
      const fixture = await RepositoryFixture.create(t);
      const left = new Set<string>();
      for (let step = 1; step < MANY; step += 1) {
        await rm(fixture.directory, { recursive: true });
        await mkdir(fixture.directory);
        const [code, signal] = await once(startVictim(fixture, [name, `${step}`]), 'exit');
        if (code === 0) break;
        assert.equal(signal, 'SIGKILL', `the victim failed with ${code}`);
        const repository = await fixture.open();
        const formats = (await formatsOf(repository.get('a'))).join();
        assert.ok(
          outcomes.some((outcome) => outcome.join() === formats),
          `killed before step ${step}, it left ${formats}`,
        );
        left.add(formats);
        await assertInOrder(fixture);
        await again(fixture);
        const image = repository.get('a');
        assert.deepEqual(await formatsOf(image), outcomes[1], `step ${step}`);
        assert.ok(image?.files.every(({ checksums }) => checksums) ?? true, `step ${step}: no checksums`);
        await fixture.close();
      }
      assert.equal(left.size, 2, 'it was killed before the point of no return, and after it');
    });
  }
});

for (const variable of [undefined, 'TMPDIR']) {
  const place = variable === undefined ? '' : ` below ${variable} of the environment`;
  test(`SIGKILL of a real build undoes its processes, mounts and loop devices${place} before it removes a file`, async (t) => {
    const fixture = await RepositoryFixture.create(t);
    const { directory, outside } = fixture;
    const victim = startVictim(
      fixture,
      ['build-mini-hang'],
      variable === undefined ? {} : { [variable]: outside },
    );
    assert.ok(victim.stdout);
    for await (const line of createInterface(victim.stdout)) {
      if (line.includes('mini-hang: waiting in finalise.d')) break;
    }
    const used = variable === undefined ? directory : outside;
    const mounts = await mountsOfBuilds(directory, used);
    assert.ok(
      mounts.some((path) => path.endsWith('/dev')),
      'the host’s /dev is mounted in the chroot',
    );
    victim.kill('SIGKILL');
    await once(victim, 'exit');
    assert.ok((await orphansBelow(used)).loops.length > 0);
    await fixture.open();
    for (const each of [directory, outside]) await assertNoOrphans(each);
    assert.deepEqual(await readdir(outside), []);
    await assertInOrder(fixture);
    assert.match(fixture.logger.lines.join('\n'), /cleaned up after an interrupted build/);
  });
}

test('the cleanup after SIGKILL also ends a process with another session, environment and directory', async (t) => {
  const fixture = await RepositoryFixture.create(t);
  const seconds = `600.${process.pid}`;
  const victim = startVictim(fixture, ['build-mini-escape'], {
    MINI_ESCAPE_MOUNT: fixture.outside,
    MINI_ESCAPE_SECONDS: seconds,
  });
  assert.ok(victim.stdout);
  for await (const line of createInterface(victim.stdout)) {
    if (line.includes('mini-hang: waiting in install.d')) break;
  }
  const escaped = await waitUntil('the escaped process', async () => (await processesWith(seconds))[0]);
  victim.kill('SIGKILL');
  await once(victim, 'exit');
  await untilGone(escaped);
  assert.deepEqual(await mountsBelow([fixture.outside]), []);
  await fixture.open();
  await assertNoOrphans(fixture.directory);
});

test('SIGKILL during a boot test ends the machine, and the image is not published', async (t) => {
  const fixture = await RepositoryFixture.create(t);
  const victim = startVictim(fixture, ['build-hanging-boot']);
  assert.ok(victim.stdout);
  for await (const line of createInterface(victim.stdout)) {
    if (line.endsWith('hanging')) break;
  }
  victim.kill('SIGKILL');
  await once(victim, 'exit');
  await fixture.open();
  await assertNoOrphans(fixture.directory);
  await assertInOrder(fixture);
});
