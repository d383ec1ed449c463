// Only in test:all: it has many faults of a registry.
import assert from 'node:assert/strict';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { foreignTo, imageProviderContract } from '@nodepool-builder/image-builder/testing';
import type { Fault } from '../../../test/doubles/oci/registry-double.ts';
import { requestFor, writeDisk } from './disk.ts';
import { PASSWORD, USER } from './docker-registry.ts';
import { doubleFixture } from './double-fixture.ts';

imageProviderContract('OciProvider with a token service, short tokens and short lists', async (t) => {
  const { open } = await doubleFixture(t, { usesOfToken: 3, pageSize: 1 });
  return { provider: open(), foreign: foreignTo(open({ name: 'other' })) };
});

const BUSY = { status: 503, headers: { 'retry-after': '0' } };
const TOO_MANY = { status: 429, headers: { 'retry-after': '0' } };

const OPERATIONS = [
  'GET manifests',
  'GET tags',
  'POST blobs/uploads',
  'PATCH blobs/uploads',
  'PUT blobs/uploads',
  'HEAD blobs',
  'PUT manifests',
];

const FAULTS: readonly (readonly [string, Fault])[] = [
  ['is rejected with 503', BUSY],
  ['is rejected with 429', TOO_MANY],
  ['is dropped', 'dropped'],
  ['succeeds without a response', 'lost'],
];

for (const operation of OPERATIONS) {
  for (const [title, fault] of FAULTS) {
    test(`an upload succeeds although each second ${operation} ${title}`, async (t) => {
      const { double, directory, open } = await doubleFixture(t);
      const path = join(directory, 'disk.qcow2');
      await writeDisk(path, 5);
      let seen = 0;
      double.fault = (request) => {
        if (request.operation !== operation) return undefined;
        seen += 1;
        return seen % 2 === 1 ? fault : undefined;
      };
      const provider = open();
      await provider.upload(await requestFor(path));
      assert.equal((await provider.list()).length, 1);
      assert.equal(double.state.manifests.size, 1);
      assert.ok(seen > 0);
      assert.deepEqual(await provider.listPartialUploads(), []);
    });
  }
}

test('only the missing bytes are sent after a chunk that broke off', async (t) => {
  const { double, directory, open } = await doubleFixture(t);
  const path = join(directory, 'disk.qcow2');
  await writeDisk(path, 5);
  const bytes: number[] = [];
  double.fault = ({ operation, bytes: length }) => {
    if (operation !== 'PATCH blobs/uploads') return undefined;
    bytes.push(length);
    return bytes.length === 2 ? { cut: 400_000 } : undefined;
  };
  await open().upload(await requestFor(path));
  assert.deepEqual(bytes.slice(0, 3), [2 ** 20, 2 ** 20, 2 ** 20 - 400_000]);
});

test('chunks have the length that the registry requires', async (t) => {
  const { double, directory, open } = await doubleFixture(t, { minChunkSize: 3_000_000 });
  const path = join(directory, 'disk.qcow2');
  await writeDisk(path, 9);
  await open().upload(await requestFor(path));
  const chunks = double.requests.filter(({ operation }) => operation === 'PATCH blobs/uploads');
  assert.deepEqual(
    chunks.slice(0, 2).map(({ bytes }) => bytes),
    [3_000_000, 3_000_000],
  );
});

test('an upload that the registry loses repeatedly fails, and nothing is left', async (t) => {
  const { double, directory, open } = await doubleFixture(t, { losesBrokenChunks: true });
  const path = join(directory, 'disk.qcow2');
  await writeDisk(path, 5);
  double.fault = ({ operation }) => (operation === 'PATCH blobs/uploads' ? { cut: 10 } : undefined);
  const provider = open();
  const failed = { code: 'service-unavailable', retriable: true };
  await assert.rejects(provider.upload(await requestFor(path)), failed);
  double.fault = () => undefined;
  assert.deepEqual(await provider.list(), []);
  assert.deepEqual(await provider.listPartialUploads(), []);
});

const ERRORS: readonly (readonly [number, string, string, string])[] = [
  [403, 'DENIED', 'requested access to the resource is denied', 'forbidden'],
  [403, 'DENIED', 'adding 10 GiB will exceed the configured upper limit of the quota', 'quota-exceeded'],
  [400, 'MANIFEST_INVALID', 'manifest invalid', 'bad-request'],
];

for (const [status, code, message, expected] of ERRORS) {
  test(`the registry’s ${status} ${code} with "${message}" is the error ${expected}`, async (t) => {
    const { double, directory, open } = await doubleFixture(t);
    const path = join(directory, 'disk.qcow2');
    await writeDisk(path, 1);
    const body = JSON.stringify({ errors: [{ code, message }] });
    double.fault = ({ operation }) => (operation === 'PUT manifests' ? { status, body } : undefined);
    const provider = open();
    await assert.rejects(provider.upload(await requestFor(path)), (error: Error & { code?: string }) => {
      assert.equal(error.code, expected);
      assert.ok(
        error.message.includes(`provider ci: PUT manifest debian-debian-0000000001: ${message} (${code})`),
      );
      return true;
    });
    double.fault = () => undefined;
    assert.deepEqual(await provider.listPartialUploads(), []);
    assert.equal(double.state.uploads.size, 0);
  });
}

test('the error for a registry without deletions says what to do', async (t) => {
  const { directory, open } = await doubleFixture(t, { permitsDeletion: false });
  const path = join(directory, 'disk.qcow2');
  await writeDisk(path, 1);
  const provider = open();
  const { externalId } = await provider.upload(await requestFor(path));
  await assert.rejects(provider.delete(externalId), /the registry forbids deletions; permit them/);
});

test('docker’s refresh tokens and helpers are also credentials', async (t) => {
  const user = { name: USER, password: PASSWORD, refreshToken: 'a-refresh-token' };
  const { double, directory, open } = await doubleFixture(t, { user });
  const file = join(directory, 'other.json');
  const provider = open({ 'auth-file': file });
  await writeFile(file, JSON.stringify({ auths: { [double.host]: { identitytoken: 'a-refresh-token' } } }));
  assert.deepEqual(await provider.list(), []);

  const helper = join(directory, 'docker-credential-test');
  await writeFile(
    helper,
    `#!/bin/sh\n[ "$1 $(cat)" = "get ${double.host}" ] && echo '${JSON.stringify({ Username: USER, Secret: PASSWORD })}'\n`,
  );
  await chmod(helper, 0o755);
  const path = process.env.PATH;
  process.env.PATH = `${directory}:${path}`;
  t.after(() => {
    process.env.PATH = path;
  });
  await writeFile(file, JSON.stringify({ credHelpers: { [double.host]: 'test' } }));
  assert.deepEqual(await open({ 'auth-file': file }).list(), []);
  await writeFile(file, JSON.stringify({ credHelpers: { [double.host]: 'missing' } }));
  await assert.rejects(open({ 'auth-file': file }).list(), /docker-credential-missing: it is not installed/);
});
