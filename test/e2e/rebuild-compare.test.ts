import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { appendFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { runInProcess } from '../fixtures/command-in-process.ts';
import { createSite, type Site } from '../fixtures/site.ts';
import { writeKeys } from '../fixtures/site-key.ts';
import { undoAfter } from '../fixtures/undo-after.ts';

/** In place of disk-image-create: a file system with the element `tree`, and a file with some variables. */
const STAND_IN = `#!/bin/sh
set -e
while [ "$1" != -o ]; do shift; done
echo "2026-05-01 00:00:00.000 | Expanded element dependencies to: tree"
cp -rL "\${ELEMENTS_PATH%%:*}/tree" "$TMP_DIR/files"
echo "$DIB_RELEASE $COLOUR $API_TOKEN" > "$TMP_DIR/files/variables"
touch -d @0 "$TMP_DIR/files" "$TMP_DIR/files"/*
truncate --size=512K "$2.raw"
mke2fs -q -t ext2 -d "$TMP_DIR/files" "$2.raw"
`;

/** In place of a script of a site: a file system with one file, and a list of packages next to it. */
const SCRIPT = `truncate --size=512K "$1"
mkdir root; touch -d @0 root/one
mke2fs -q -t ext2 -d root "$1"
printf 'deb\\tcurl\\t8.0\\n' > "\${1%raw}packages"
`;

interface Report {
  readonly state: string;
  readonly inputs: readonly {
    readonly name: string;
    readonly recorded: string | null;
    readonly now: string | null;
    readonly reason: string | null;
  }[];
  readonly packages: { readonly changed: readonly string[]; readonly reason: string | null };
  readonly contents: Readonly<Record<'added' | 'changed', readonly string[]>>;
}

interface Fixture {
  readonly site: Site;
  /** Directory of elements, in the git repository above it. */
  readonly elements: string;
  readonly git: (...args: readonly string[]) => string;
  /** Writes the configuration; `SITE` becomes the directory of the site. */
  readonly configure: (diskimages: string) => Promise<void>;
  readonly build: (name: string) => Promise<void>;
  /** Builds `NAME-1` a second time. */
  readonly compare: (name: string, code: number) => Promise<Report>;
}

/** A site that signs, with the element `tree` in a git repository. */
async function setUp(t: TestContext): Promise<Fixture> {
  const site = await createSite(1);
  undoAfter(t, () => site.remove());
  await writeKeys(site.directory);
  const path = (name: string): string => join(site.directory, name);
  await writeFile(path('stand-in'), STAND_IN, { mode: 0o755 });
  await writeFile(path('make.sh'), SCRIPT);
  const elements = path('site/elements');
  await mkdir(join(elements, 'tree'), { recursive: true });
  await writeFile(join(elements, 'tree/file'), 'first');
  const git = (...args: readonly string[]): string =>
    execFileSync('git', ['-C', path('site'), '-c', 'user.name=n', '-c', 'user.email=e', ...args], {
      encoding: 'utf8',
      env: { PATH: process.env.PATH, HOME: '/nonexistent' },
    }).trim();
  git('init', '-q');
  git('add', '.');
  git('commit', '-q', '-m', 'first');
  const attestation =
    'attestation: {key: attestation.pem, public-key: attestation.pub}\npublic-variables: [COLOUR]\n';
  const configure = async (diskimages: string): Promise<void> => {
    await site.configure(diskimages.replaceAll('SITE', site.directory));
    const text = await readFile(site.config, 'utf8');
    await writeFile(site.config, text.replace(/^elements-dir: .*$/m, `elements-dir: ${elements}`));
    await appendFile(site.config, attestation);
  };
  await configure(DISKIMAGES);
  const run = async (...args: readonly string[]): ReturnType<typeof runInProcess> =>
    await runInProcess(...args, '-c', site.config);
  return {
    site,
    elements,
    git,
    configure,
    build: async (name) => {
      const args = [name, '--image-id', `${name}-1`, '--format', 'raw', '--output', site.images];
      const { code, stderr } = await run('build', ...args);
      assert.equal(code, 0, stderr);
    },
    compare: async (name, expected) => {
      const args = [`${name}-1`, '--compare', '--json', '--output', path('rebuild')];
      const { code, stdout, stderr } = await run('rebuild', ...args);
      assert.equal(code, expected, stderr + stdout);
      assert.deepEqual(await readdir(path('rebuild')), [`${name}-1.log`]);
      return JSON.parse(stdout) as Report;
    },
  };
}

const DISKIMAGES = `
  - name: debian
    elements: [tree]
    dib-cmd: SITE/stand-in
    release: bookworm
    env-vars: {COLOUR: red, API_TOKEN: some-secret}
  - {name: docs, builder: command, command: [sh, SITE/make.sh, '{output.raw}']}`;

function nameOf({ name }: Report['inputs'][number]): string {
  return name;
}

it('the second build has the recorded commit, settings and variables', async (t) => {
  const { elements, git, configure, build, compare } = await setUp(t);
  await build('debian');
  await writeFile(join(elements, 'tree/file'), 'second');
  await writeFile(join(elements, 'tree/new-file'), '');
  git('add', '.');
  git('commit', '-q', '-m', 'second');
  await configure(
    DISKIMAGES.replace('[tree]', '[tree, vm]')
      .replace('bookworm', 'trixie')
      .replace('COLOUR: red', 'COLOUR: blue, SIZE: large'),
  );
  const before = [git('status', '--porcelain'), git('worktree', 'list'), git('for-each-ref')];
  const { state, inputs, packages, contents } = await compare('debian', 0);
  assert.match(packages.reason ?? '', /debian-1 attests no bill of materials: its build left no list/);
  assert.deepEqual(inputs, []);
  assert.deepEqual([contents.added, contents.changed], [[], []]);
  assert.match(state, /^(?:identical|same-contents)$/);
  assert.deepEqual([git('status', '--porcelain'), git('worktree', 'list'), git('for-each-ref')], before);
});

it('a commit that is gone is named with the reason, and the build has the directory of today', async (t) => {
  const { site, elements, git, build, compare } = await setUp(t);
  await build('debian');
  const commit = git('rev-parse', 'HEAD');
  await rm(join(site.directory, 'site/.git'), { recursive: true });
  await writeFile(join(elements, 'tree/file'), 'second');
  git('init', '-q');
  git('add', '.');
  git('commit', '-q', '-m', 'rewritten');
  const { state, inputs, contents } = await compare('debian', 9);
  assert.equal(state, 'different');
  assert.deepEqual(inputs, [
    {
      name: 'element tree',
      recorded: commit,
      now: git('rev-parse', 'HEAD'),
      reason: `commit ${commit.slice(0, 12)} cannot be had: ${join(site.directory, 'site')} does not have it`,
    },
  ]);
  assert.deepEqual(contents.changed.length, 1);
});

it('names inputs, files, packages and paths inside the disk that differ', async (t) => {
  const { site, build, compare } = await setUp(t);
  const script = join(site.directory, 'make.sh');
  await build('docs');
  await writeFile(script, SCRIPT.replace('root/one', 'root/one root/new-file').replace('8.0', '9.0'));
  const { state, inputs, packages, contents } = await compare('docs', 9);
  assert.equal(state, 'different');
  assert.deepEqual(inputs.map(nameOf), [`file ${script}`]);
  assert.deepEqual(packages, { added: [], removed: [], changed: ['curl 8.0 → 9.0'], reason: null });
  assert.deepEqual(contents.added, ['/new-file']);
});

it('on a terminal, each section says that nothing differs', async (t) => {
  const { site, build } = await setUp(t);
  await build('docs');
  const images = await readdir(site.images);
  const output = join(site.directory, 'rebuild');
  const args = ['docs-1', '--compare', '-c', site.config, '--output', output];
  const { code, stdout, stderr } = await runInProcess('rebuild', ...args);
  assert.equal(code, 0, stderr + stdout);
  assert.match(stdout, /^inputs: all inputs are as recorded\nfiles:/);
  assert.match(stdout, /\npackages: all packages are the same\n/);
  assert.match(stdout, /\ncontents: all files inside the disk are the same\n/);
  assert.deepEqual(await readdir(site.images), images);
});

it('a disk image that the configuration no longer has is built, unless a secret is missing', async (t) => {
  const { site, configure, build, compare } = await setUp(t);
  await build('debian');
  await build('docs');
  await configure('\n  - {name: other, elements: [tree]}');
  assert.deepEqual((await compare('docs', 0)).inputs, []);
  const args = ['debian-1', '--compare', '-c', site.config, '--output', join(site.directory, 'rebuild')];
  const { code, stdout, stderr } = await runInProcess('rebuild', ...args);
  assert.deepEqual([code, stdout], [3, '']);
  assert.match(
    stderr,
    /disk image "debian" is not in .*nodepool\.yaml, and its attestation masks the secret API_TOKEN; add the/,
  );
});

it('refuses an image of which nothing is proven, and options without --compare', async (t) => {
  const { site, build } = await setUp(t);
  await build('debian');
  await rm(join(site.images, 'debian-1.d'), { recursive: true });
  const unproven = await runInProcess('rebuild', 'debian-1', '--compare', '-c', site.config);
  assert.equal(unproven.code, 7);
  assert.match(unproven.stderr, /nothing proves how image debian-1 was built/);
  const unused = await runInProcess('rebuild', 'debian', '--json', '-c', site.config);
  assert.equal(unused.code, 2);
  assert.match(unused.stderr, /--json needs --compare/);
});
