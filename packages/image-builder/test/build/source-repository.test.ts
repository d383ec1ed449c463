import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmod, mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { gitUri, repositoryFinder, type SourceRepository } from '../../src/build/source-repository.ts';

interface Fixture {
  readonly top: string;
  readonly git: (...args: string[]) => string;
}

/** Creates a repository with the elements `one` and `two`. */
async function setUp(t: TestContext): Promise<Fixture> {
  const top = await temporaryDirectory(t);
  const env = { PATH: process.env.PATH, HOME: top, GIT_CONFIG_NOSYSTEM: '1' };
  const git = (...args: string[]): string =>
    execFileSync('git', ['-c', 'user.name=n', '-c', 'user.email=e', ...args], {
      cwd: top,
      env,
      encoding: 'utf8',
    });
  git('init', '-q');
  for (const element of ['one', 'two']) {
    await mkdir(join(top, element));
    await writeFile(join(top, element, 'element-deps'), '');
  }
  git('add', '.');
  git('commit', '-q', '-m', 'elements');
  return { top, git };
}

function find(path: string): Promise<SourceRepository | undefined> {
  return repositoryFinder(async () => undefined, new AbortController().signal)(path);
}

test('a path in a repository has its commit and address', async (t) => {
  const { top, git } = await setUp(t);
  const commit = git('rev-parse', 'HEAD').trim();
  assert.deepEqual((await find(top))?.uri, undefined);
  git('remote', 'add', 'origin', 'https://me:secret@git.example.org/elements');
  const repository = await find(join(top, 'one'));
  assert.equal(repository?.commit, commit);
  assert.equal(repository.uri, `git+https://git.example.org/elements@${commit}`);
});

test('a path is modified if a file in it changed or is new', async (t) => {
  const { top } = await setUp(t);
  const [one, two, three] = ['one', 'two', 'three'].map((name) => join(top, name)) as [
    string,
    string,
    string,
  ];
  assert.equal((await find(one))?.isModified(one), false);
  await writeFile(join(one, 'element-deps'), 'two');
  await mkdir(join(three, 'install.d'), { recursive: true });
  await writeFile(join(three, 'install.d', '50-new'), '');
  const repository = await find(one);
  assert.ok(repository);
  assert.deepEqual([one, two, three, join(three, 'install.d'), top].map(repository.isModified), [
    true,
    false,
    true,
    true,
    true,
  ]);
});

test('a path through a symbolic link is modified if its target is', async (t) => {
  const { top } = await setUp(t);
  const link = join(await temporaryDirectory(t), 'link');
  await symlink(join(top, 'one'), link);
  assert.equal((await find(link))?.isModified(link), false);
  await writeFile(join(top, 'one/element-deps'), 'two');
  assert.equal((await find(link))?.isModified(link), true);
});

test('a Git repository’s configuration runs no program', async (t) => {
  const { top, git } = await setUp(t);
  const program = join(top, '.git', 'evil');
  await writeFile(program, `#!/bin/sh\ntouch ${top}/.git/ran\n`);
  await chmod(program, 0o755);
  git('config', 'core.fsmonitor', program);
  git('config', 'core.hooksPath', join(top, '.git'));
  assert.ok(await find(top));
  assert.ok(!(await readdir(join(top, '.git'))).includes('ran'));
});

test('a Git repository of another user is read', { skip: process.geteuid?.() !== 0 }, async (t) => {
  const { top } = await setUp(t);
  execFileSync('chown', ['-R', '12345', top]);
  assert.ok(await find(top));
});

test('a path without a Git repository, or in a damaged one, has no source repository', async (t) => {
  const { top } = await setUp(t);
  const [plain, damaged] = [await temporaryDirectory(t), await temporaryDirectory(t)];
  await writeFile(join(damaged, '.git'), 'gitdir: nowhere');
  for (const path of [plain, damaged, join(top, 'missing')]) assert.equal(await find(path), undefined);
});

test('a source repository’s address has the form that SLSA requires', () => {
  for (const [url, uri] of [
    ['https://opendev.org/zuul/nodepool', 'git+https://opendev.org/zuul/nodepool@abc'],
    ['git@git.example.org:a/b.git', 'git+ssh://git@git.example.org/a/b.git@abc'],
    ['ssh://git:pw@git.example.org:29418/a', 'git+ssh://git@git.example.org:29418/a@abc'],
    ['/srv/git/elements', 'git+file:///srv/git/elements@abc'],
  ] as const) {
    assert.equal(gitUri(url, 'abc'), uri);
  }
});
