// Not a unit test: it starts servers and qemu-img.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import type { AwsFault } from '../../../test/doubles/aws/aws-double.ts';
import { AwsError } from '../../../test/doubles/aws/model.ts';
import { allBlocks } from '../../../test/doubles/aws/snapshots.ts';
import { awsFixture, SECRET } from './aws-fixture.ts';
import { digestsOf, requestFor, writeDisk } from './disk.ts';

/** Makes the fixture's keys expire after some blocks. */
function expiring(onExpiry: () => void): AwsFault {
  let blocks = 0;
  return ({ operation, accessKeyId }) => {
    if (operation === 'PutSnapshotBlock' && blocks++ === 5) onExpiry();
    if (blocks <= 5 || accessKeyId !== 'AKIDEXAMPLE') return undefined;
    const reason = 'The security token included in the request is expired';
    if (operation === 'PutSnapshotBlock') return new AwsError('ExpiredTokenException', reason, 403);
    return new AwsError('RequestExpired', reason);
  };
}

test('AWS credentials that were renewed in their file are used once the old ones have expired', async (t) => {
  const { double, directory, session, open } = await awsFixture(t);
  const path = join(directory, 'disk.raw');
  await writeDisk(path, Object.fromEntries(Array.from({ length: 40 }, (_, index) => [index, 'a'])));
  const { credentialsFile = '' } = session;
  double.fault = expiring(() => {
    const keys = [
      'aws_access_key_id = AKIDRENEWED',
      `aws_secret_access_key = ${SECRET}`,
      'aws_session_token = t',
    ];
    writeFileSync(credentialsFile, ['[default]', ...keys, ''].join('\n'));
  });
  const provider = open();
  await provider.upload(requestFor(path));
  const [snapshot] = double.region().snapshots.all();
  assert.ok(snapshot);
  assert.deepEqual(allBlocks(snapshot), await digestsOf(path));
  const keys = double.requests.map(({ accessKeyId }) => accessKeyId);
  assert.equal(keys[0], 'AKIDEXAMPLE');
  assert.equal(keys.at(-1), 'AKIDRENEWED');
  assert.equal((await provider.list()).length, 1);
});

test('expired AWS credentials are named as the reason for a failure, which is not retried', async (t) => {
  const { double, directory, open } = await awsFixture(t);
  const path = join(directory, 'disk.raw');
  await writeDisk(path, Object.fromEntries(Array.from({ length: 40 }, (_, index) => [index, 'a'])));
  double.fault = expiring(() => {});
  await assert.rejects(open().upload(requestFor(path)), (error) => {
    assert.ok(error instanceof CloudError);
    assert.equal(error.code, 'auth-failed');
    assert.match(error.message, /is expired .*; check the credentials, and whether they have expired/);
    return true;
  });
  const blocks = double.requests.flatMap(({ operation, input }) =>
    operation === 'PutSnapshotBlock' ? [input.BlockIndex] : [],
  );
  assert.equal(new Set(blocks).size, blocks.length, 'each block was sent once');
});
