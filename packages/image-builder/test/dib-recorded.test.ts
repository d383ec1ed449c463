import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, readdir, readFile, realpath, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { temporaryDirectory } from '../../../test/fixtures/temporary-directory.ts';
import { SourceRepositories } from '../src/build/source-repository.ts';
import { restoreDibInputs } from '../src/dib-recorded.ts';
import type { Material } from '../src/index.ts';
import type { RestoredInputs } from '../src/modules.ts';

/** A git repository with `elements/one` and `elements/two`, each with the file `version`. */
class Repository {
  readonly top: string;
  readonly elements: string;

  constructor(top: string) {
    this.top = top;
    this.elements = join(top, 'elements');
  }

  git(...args: readonly string[]): string {
    return execFileSync('git', ['-C', this.top, '-c', 'user.name=n', '-c', 'user.email=e', ...args], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH, HOME: '/nonexistent' },
    }).trim();
  }

  /** Commits a version of both elements. @returns the commit */
  async commit(version: string): Promise<string> {
    for (const element of ['one', 'two']) {
      await mkdir(join(this.elements, element), { recursive: true });
      await writeFile(join(this.elements, element, 'version'), version);
    }
    this.git('add', '.');
    this.git('commit', '-q', '-m', version);
    return this.git('rev-parse', 'HEAD');
  }

  material(element: string, gitCommit: string, more: Partial<Material> = {}): Material {
    const annotations = { directory: join(this.elements, element), isModified: false };
    return { name: `element ${element}`, digest: { gitCommit }, annotations, ...more };
  }
}

interface Fixture {
  readonly repository: Repository;
  readonly first: string;
  readonly second: string;
  readonly restore: (
    materials: readonly Material[],
    envVars?: Readonly<Record<string, string>>,
  ) => Promise<RestoredInputs>;
  /** File `version` of an element that a restored build finds first. */
  readonly versionOf: (restored: RestoredInputs, element: string) => Promise<string>;
}

async function setUp(t: TestContext): Promise<Fixture> {
  const directory = await temporaryDirectory(t);
  const repository = new Repository(join(directory, 'site'));
  await mkdir(repository.top);
  repository.git('init', '-q');
  const first = await repository.commit('first');
  const second = await repository.commit('second');
  let count = 0;
  return {
    repository,
    first,
    second,
    restore: async (materials, envVars = {}) => {
      const target = join(directory, `restored-${count++}`);
      await mkdir(target);
      return await restoreDibInputs(
        materials,
        { name: 'debian', formats: [], elementsDir: repository.elements, envVars },
        { directory: target, environment: {}, signal: new AbortController().signal },
      );
    },
    versionOf: async ({ variables }, element) => {
      for (const path of variables.ELEMENTS_PATH?.split(':') ?? []) {
        const version = await readFile(join(path, element, 'version'), 'utf8').catch(() => undefined);
        if (version !== undefined) return version;
      }
      return assert.fail(`${element} is not in ${variables.ELEMENTS_PATH}`);
    },
  };
}

test('an element has the recorded commit and its address, and the repository stays as it was', async (t) => {
  const { repository, first, restore, versionOf } = await setUp(t);
  repository.git('remote', 'add', 'origin', 'https://example.invalid/other');
  await writeFile(join(repository.elements, 'two/version'), 'modified');
  const before = [repository.git('status', '--porcelain'), await readdir(join(repository.top, '.git'))];
  const uri = `git+https://example.invalid/site@${first}`;
  const materials = ['one', 'two'].map((name) => repository.material(name, first, { uri }));
  const restored = await restore(materials);
  assert.deepEqual([...restored.reasons], []);
  assert.equal(await versionOf(restored, 'one'), 'first');
  assert.equal(await versionOf(restored, 'two'), 'first');
  assert.match(restored.variables.ELEMENTS_PATH ?? '', new RegExp(`/elements:${repository.elements}$`));
  const link = join(restored.variables.ELEMENTS_PATH?.split(':')[0] ?? '', 'one');
  assert.match(await realpath(link), /\/one$/, 'diskimage-builder names an element by its real path');
  const found = await new SourceRepositories(async () => undefined, new AbortController().signal).find(link);
  assert.deepEqual([found?.commit, found?.uri, found?.isModified(link)], [first, uri, false]);
  const after = [repository.git('status', '--porcelain'), await readdir(join(repository.top, '.git'))];
  assert.deepEqual(after, before);
});

test('a commit that the host no longer has comes from its address', async (t) => {
  const { repository, first, restore, versionOf } = await setUp(t);
  const remote = `${repository.top}-remote`;
  await rename(repository.top, remote);
  const uri = `git+file://${remote}@${first}`;
  const restored = await restore([repository.material('one', first, { uri })]);
  assert.deepEqual([...restored.reasons], []);
  assert.equal(await versionOf(restored, 'one'), 'first');
});

test('a commit that is nowhere leaves the element as it is, with the reason', async (t) => {
  const { repository, restore, versionOf } = await setUp(t);
  const gone = 'a'.repeat(40);
  const uri = `git+file://${repository.top}@${gone}`;
  const restored = await restore([
    repository.material('one', gone, { uri }),
    repository.material('two', gone),
  ]);
  assert.equal(await versionOf(restored, 'one'), 'second');
  assert.deepEqual(Object.fromEntries(restored.reasons), {
    'element one': `commit aaaaaaaaaaaa cannot be had: ${repository.top} does not have it; file://${repository.top} no longer has it`,
    'element two': `commit aaaaaaaaaaaa cannot be had: ${repository.top} does not have it`,
  });
  const elsewhere = await restore([
    repository.material('one', gone, { uri: `git+file:///nowhere@${gone}` }),
    repository.material('two', gone, { uri: `git+ext::touch /tmp/x@${gone}` }),
  ]);
  assert.match(elsewhere.reasons.get('element one') ?? '', /file:\/\/\/nowhere: fatal: /);
});

test('an element that differed from its commit is used as it is', async (t) => {
  const { repository, first, restore, versionOf } = await setUp(t);
  const annotations = { directory: join(repository.elements, 'one'), isModified: true };
  const restored = await restore([repository.material('one', first, { annotations })]);
  assert.equal(await versionOf(restored, 'one'), 'second');
  assert.deepEqual([...restored.reasons], [['element one', 'its directory differed from its commit']]);
});

test('an element is found although its directory is gone, or it is the whole repository', async (t) => {
  const { repository, first, restore, versionOf } = await setUp(t);
  await rm(join(repository.elements, 'one'), { recursive: true });
  assert.equal(await versionOf(await restore([repository.material('one', first)]), 'one'), 'first');
  const whole = new Repository(join(repository.top, '..', 'whole'));
  await mkdir(whole.top);
  whole.git('init', '-q');
  await writeFile(join(whole.top, 'version'), 'whole');
  whole.git('add', '.');
  whole.git('commit', '-q', '-m', 'whole');
  const material = {
    name: 'element whole',
    digest: { gitCommit: whole.git('rev-parse', 'HEAD') },
    annotations: { directory: whole.top, isModified: false },
  };
  await writeFile(join(whole.top, 'version'), 'changed');
  const restored = await restore([material]);
  assert.equal(await versionOf(restored, 'whole'), 'whole');
  const path = join(restored.variables.ELEMENTS_PATH?.split(':')[0] ?? '', 'whole');
  assert.match(await realpath(path), /\/whole$/);
});

test('no program of the repository runs, and a file that needs a filter is refused', async (t) => {
  const { repository, first, restore } = await setUp(t);
  const program = join(repository.top, '.git/evil');
  await writeFile(program, `#!/bin/sh\ntouch ${repository.top}/.git/ran\ncat\n`, { mode: 0o755 });
  for (const name of ['core.fsmonitor', 'filter.lfs.smudge', 'filter.x.smudge', 'core.sshCommand']) {
    repository.git('config', name, program);
  }
  await mkdir(join(repository.top, '.git/hooks'), { recursive: true });
  await rename(program, join(repository.top, '.git/hooks/post-checkout'));
  assert.equal((await restore([repository.material('one', first)])).reasons.size, 0);
  assert.ok(!(await readdir(join(repository.top, '.git'))).includes('ran'));
  await writeFile(join(repository.top, '.gitattributes'), '* filter=lfs\n');
  repository.git('config', '--unset', 'filter.lfs.smudge');
  repository.git('config', '--unset', 'core.fsmonitor');
  const third = await repository.commit('third');
  const { reasons } = await restore([repository.material('one', third)]);
  assert.match(reasons.get('element one') ?? '', /files of it need a filter: lfs or git-crypt$/);
});

function fetched(name: string, url: string, gitCommit: string): Material {
  return { name: `repository ${name}`, uri: `git+${url}@${gitCommit}`, digest: { gitCommit } };
}

test('repositories get the recorded commit, unless it is certainly gone', async (t) => {
  const { repository, first, restore } = await setUp(t);
  const gone = 'a'.repeat(40);
  const url = `file://${repository.top}`;
  const { variables, reasons } = await restore(
    [
      fetched('a-b.c', url, first),
      fetched('gone', url, gone),
      fetched('offline', 'file:///nowhere', gone),
      fetched('pinned', url, first),
      fetched('branch', url, first),
    ],
    { DIB_REPOREF_pinned: first, DIB_REPOREF_branch: 'main' },
  );
  const { ELEMENTS_PATH: _, ...references } = variables;
  assert.deepEqual(references, {
    DIB_REPOREF_a_b_c: first,
    DIB_REPOREF_offline: gone,
    DIB_REPOREF_branch: first,
  });
  assert.deepEqual([...reasons], [['repository gone', `${url} no longer has it`]]);
});

test('names that are paths are left out', async (t) => {
  const { repository, first, restore } = await setUp(t);
  const materials = ['../x', 'a/b', '..', ''].map((name) => ({
    ...repository.material('one', first),
    name: `element ${name}`,
  }));
  const { variables } = await restore(materials);
  assert.deepEqual(await readdir(variables.ELEMENTS_PATH?.split(':')[0] ?? ''), []);
});
