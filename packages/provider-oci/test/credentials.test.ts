// Not a unit test: it starts credential helpers.
import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { authFiles, type Credentials, findCredentials } from '../src/credentials.ts';
import { parseRepository, type RepositoryName } from '../src/oci-settings.ts';

const SECRET = 'hunter2-of-the-registry';

interface Files {
  /** Finds the credentials for a repository in a file. */
  readonly find: (file: unknown, repository?: string) => Promise<Credentials | undefined>;
  /** Installs `docker-credential-<name>`. */
  readonly helper: (name: string, script: string) => Promise<void>;
}

async function files(t: TestContext): Promise<Files> {
  const directory = await mkdtemp(join(tmpdir(), 'oci-'));
  t.after(() => rm(directory, { recursive: true }));
  const programs = join(directory, 'bin');
  await mkdir(programs);
  const { PATH: before = '' } = process.env;
  process.env.PATH = `${programs}${delimiter}${before}`;
  t.after(() => {
    process.env.PATH = before;
  });
  return {
    async find(file, repository = 'registry.example.com/ci/images') {
      const path = join(directory, 'config.json');
      await writeFile(path, typeof file === 'string' ? file : JSON.stringify(file));
      return await findCredentials([path], parseRepository(repository) as RepositoryName, 'provider ci');
    },
    async helper(name, script) {
      const path = join(programs, `docker-credential-${name}`);
      await writeFile(path, `#!/bin/sh\n${script}\n`);
      await chmod(path, 0o755);
    },
  };
}

function authOf(text: string): { readonly auth: string } {
  return { auth: Buffer.from(text).toString('base64') };
}

test('passwords and identity tokens from docker and podman are found', async (t) => {
  const { find } = await files(t);
  const known = { username: 'a', password: 'b:c' };
  const auth = authOf('a:b:c');
  for (const key of ['registry.example.com', 'https://registry.example.com/v1/', 'registry.example.com/ci']) {
    assert.deepEqual(await find({ auths: { [key]: auth } }), known, key);
  }
  assert.equal(await find({ auths: { 'registry.example.com/other': auth } }), undefined);
  assert.equal(await find({ auths: { 'registry.example.com': authOf('no colon') } }), undefined);
  assert.equal(await find({}), undefined);
  assert.deepEqual(
    await find({ auths: { 'https://index.docker.io/v1/': auth } }, 'docker.io/ci/images'),
    known,
  );
  const both = { 'registry.example.com': authOf('x:y'), 'registry.example.com/ci/images': auth };
  assert.deepEqual(await find({ auths: both }), known);
  assert.deepEqual(await find({ auths: { 'registry.example.com': { ...auth, identitytoken: 'i' } } }), {
    identityToken: 'i',
  });
});

test('a name and password in a docker configuration work in place of auth, and other registries’ entries may be anything', async (t) => {
  const { find } = await files(t);
  const own = { username: 'u', password: 'p:q' };
  const others = { 'null.example.com': null, 'odd.example.com': 7, 'list.example.com': [{ auth: 1 }] };
  assert.deepEqual(await find({ auths: { ...others, 'registry.example.com': own } }), own);
  assert.deepEqual(await find({ auths: { 'registry.example.com': { ...own, auth: '', email: null } } }), own);
  const auth = { ...authOf('a:b'), username: 'u', password: 'p' };
  assert.deepEqual(await find({ auths: { 'registry.example.com': auth } }), { username: 'a', password: 'b' });
  const entry = { auths: { ...others, 'registry.example.com': { ...own, identitytoken: null } } };
  const foreign = {
    credHelpers: { 'odd.example.com': null, 'other.example.com': 'nonexistent' },
    HttpHeaders: 1,
  };
  for (const credsStore of ['', null])
    assert.deepEqual(await find({ ...entry, ...foreign, credsStore }), own);
  for (const nothing of [
    { auths: null },
    { auths: { 'registry.example.com': null } },
    { credHelpers: null },
  ]) {
    assert.equal(await find(nothing), undefined);
  }
});

test('a credential helper that is switched off for a registry leaves its entry in the file', async (t) => {
  const { find } = await files(t);
  const file = { auths: { 'registry.example.com': authOf('a:b') }, credsStore: 'nonexistent' };
  const own = { 'registry.example.com': '' };
  assert.deepEqual(await find({ ...file, credHelpers: own }), { username: 'a', password: 'b' });
});

test('a credentials entry for a registry that cannot be read causes an error without its content', async (t) => {
  const { find } = await files(t);
  const found = find({ auths: { 'registry.example.com': { auth: [SECRET] } } });
  await assert.rejects(found, (error: Error) => {
    assert.match(
      error.message,
      /config\.json: "registry\.example\.com": it cannot be read: auth is not a string;/,
    );
    assert.doesNotMatch(error.message, /hunter2/);
    return true;
  });
});

test('credential helpers get the registry’s name on their standard input', async (t) => {
  const { find, helper } = await files(t);
  await helper('plain', `read server; echo "{\\"Username\\":\\"of-$server\\",\\"Secret\\":\\"${SECRET}\\"}"`);
  await helper('token', 'echo \'{"Username":"<token>","Secret":"refresh"}\'');
  await helper('empty', 'echo "credentials not found in native keychain"; exit 1');
  const expected = { username: 'of-registry.example.com', password: SECRET };
  assert.deepEqual(await find({ credsStore: 'plain' }), expected);
  assert.deepEqual(
    await find({ credsStore: 'empty', credHelpers: { 'registry.example.com': 'plain' } }),
    expected,
  );
  assert.deepEqual(await find({ credsStore: 'token' }), { identityToken: 'refresh' });
  const auths = { 'registry.example.com': authOf('a:b') };
  assert.deepEqual(await find({ credsStore: 'empty', auths }), { username: 'a', password: 'b' });
});

test('errors of credential files and helpers name them, and no secret', async (t) => {
  const { find, helper } = await files(t);
  await helper('broken', `echo '${SECRET}'`);
  await helper('failing', `echo '${SECRET}'; echo '${SECRET}' >&2; exit 3`);
  const cases: readonly (readonly [file: unknown, reason: RegExp])[] = [
    [
      `{"auths": {"registry.example.com": {"auth": "${SECRET}"}}`,
      /config\.json: it cannot be read: it is not JSON/,
    ],
    [{ auths: SECRET }, /it cannot be read: auths is not an object/],
    [{ credsStore: 'broken' }, /docker-credential-broken: its output cannot be read: it is not JSON/],
    [{ credsStore: 'failing' }, /docker-credential-failing: it exited with 3/],
    [{ credsStore: 'missing' }, /docker-credential-missing: it is not installed/],
    [{ credsStore: '../evil' }, /is not a valid program name/],
  ];
  for (const [file, message] of cases) {
    await assert.rejects(find(file), (error) => {
      assert.ok(error instanceof Error);
      assert.match(error.message, message);
      assert.equal((error as { code?: string }).code, 'auth-failed');
      assert.ok(!`${error.stack} ${JSON.stringify(error)} ${String(error.cause)}`.includes(SECRET));
      return true;
    });
  }
});

test('podman’s credential files are read before docker’s', () => {
  const home = '/home/ci';
  assert.deepEqual(authFiles('/a/b.json', { env: {}, home }), ['/a/b.json']);
  assert.deepEqual(authFiles(undefined, { env: { REGISTRY_AUTH_FILE: '/r' }, home }), ['/r']);
  const env = { XDG_RUNTIME_DIR: '/run/user/1', DOCKER_CONFIG: '/docker' };
  assert.deepEqual(authFiles(undefined, { env, home }), [
    '/run/user/1/containers/auth.json',
    '/home/ci/.config/containers/auth.json',
    '/docker/config.json',
  ]);
});
