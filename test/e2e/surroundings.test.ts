import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdir, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { builderCommand } from '../fixtures/builder-process.ts';
import type { Outcome } from '../fixtures/command-outcome.ts';
import { temporaryDirectory } from '../fixtures/scratch-directory.ts';

/** Creates a directory with a configuration and an image file. */
async function place(t: TestContext): Promise<string> {
  const directory = temporaryDirectory(t);
  for (const name of ['images', 'pool', 'out', 'home']) await mkdir(join(directory, name));
  const configuration = {
    'images-dir': 'images',
    diskimages: [{ name: 'docs', builder: 'command', command: ['truncate', '-s', '1M', '{output.raw}'] }],
    providers: [
      { name: 'pool', type: 'directory', directory: 'pool', images: [{ name: 'docs', diskimage: 'docs' }] },
    ],
  };
  await writeFile(join(directory, 'nodepool.yaml'), JSON.stringify(configuration));
  await writeFile(join(directory, 'disk.raw'), '');
  await truncate(join(directory, 'disk.raw'), 2 ** 20);
  return directory;
}

/** Runs a shell script whose "$@" is nodepool-builder. */
async function runScript(
  script: string,
  cwd: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<Outcome> {
  const [command, args] = builderCommand();
  const env = { ...process.env, USER: undefined, LOGNAME: undefined, ...environment };
  return await new Promise((resolve) => {
    execFile('sh', ['-c', script, 'sh', command, ...args], { cwd, env }, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), stdout, stderr }),
    );
  });
}

/** Runs the program in a namespace where its user id is not in passwd. */
const UNKNOWN_USER = 'unshare --user --map-user=12345';

test('a user without HOME and without an entry in passwd can validate, build and upload', async (t) => {
  const directory = await place(t);
  for (const HOME of [undefined, '']) {
    for (const line of [
      'validate -c nodepool.yaml',
      `build docs -c nodepool.yaml --output ${HOME === undefined ? 'out/1' : 'out/2'}`,
      'upload disk.raw --provider directory:pool --name uploaded',
      'upload disk.raw --provider pool --name docs -c nodepool.yaml',
    ]) {
      const { code, stderr } = await runScript(`${UNKNOWN_USER} "$@" ${line}`, directory, { HOME });
      assert.equal(code, 0, `${line}: ${stderr}`);
    }
    const missing = await runScript(
      `${UNKNOWN_USER} "$@" upload disk.raw --provider cloud --name a`,
      directory,
      {
        HOME,
      },
    );
    assert.match(
      missing.stderr,
      /^nodepool-builder: .*no clouds\.yaml exists in .*, \/\.config\/openstack, .*\n$/,
    );
  }
});

for (const [title, HOME] of [
  ['relative', 'home'],
  ['missing', '/nonexistent'],
] as const) {
  test(`the command validate works with a ${title} home directory`, async (t) => {
    const { code, stderr } = await runScript('"$@" validate -c nodepool.yaml', await place(t), { HOME });
    assert.equal(code, 0, stderr);
  });
}

test('a command in a working directory that has been removed ends with one line of error', async (t) => {
  const directory = await place(t);
  const remove = `mkdir gone; cd gone; rmdir ../gone`;
  for (const line of [
    `validate -c ${directory}/nodepool.yaml`,
    `build docs -c ${directory}/nodepool.yaml --output ${directory}/out`,
    '-d -c nodepool.yaml',
    'gearmand -p 0',
  ]) {
    const { code, stdout, stderr } = await runScript(`${remove}; "$@" ${line}`, directory, {});
    assert.deepEqual({ code, stdout }, { code: 1, stdout: '' }, line);
    assert.match(
      stderr,
      /^nodepool-builder: the working directory has been removed; change to another one\n$/,
    );
  }
  assert.equal((await runScript(`${remove}; "$@" --help`, directory, {})).code, 0);
});

test('the error for a missing directory for temporary files names it in one line', async (t) => {
  const directory = await place(t);
  const line = 'build docs -c nodepool.yaml --output out';
  const { code, stderr } = await runScript(`"$@" ${line}`, directory, { TMPDIR: '/nonexistent' });
  assert.equal(code, 1);
  assert.match(stderr, /^(?:build of docs: .*\n)*nodepool-builder: .*\/nonexistent.*\n$/);
});

test('a working directory that cannot be read does not affect absolute paths', async (t) => {
  const directory = await place(t);
  await chmod(join(directory, 'home'), 0);
  const line = `validate -c ${directory}/nodepool.yaml`;
  const { code, stderr } = await runScript(`cd home; ${UNKNOWN_USER} "$@" ${line}`, directory, {});
  assert.equal(code, 0, stderr);
});
