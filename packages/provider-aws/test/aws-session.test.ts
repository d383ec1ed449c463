// Not a unit test: it starts a server.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { test } from 'node:test';
import { AwsSession } from '../src/aws-session.ts';
import { awsFixture } from './aws-fixture.ts';

test('a request to an AWS server that has fallen silent ends with an error that names the request', async (t) => {
  const { session } = await awsFixture(t);
  let connections = 0;
  const silent = createServer(() => {
    connections += 1;
  }).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  t.after(() => silent.close());
  const endpoint = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const opened = new AwsSession({ ...session, name: 'aws', endpoint, attempts: 2, socketTimeout: 50 });
  t.after(() => opened.close());
  const region = await opened.open();
  await assert.rejects(
    region.ec2(t.signal).describeImages({ Owners: ['self'] }),
    /^CloudError: provider aws: DescribeImages in us-east-1: .*/,
  );
  assert.equal(connections, 2);
});

test('a list from AWS contains all its pages', async (t) => {
  const { session } = await awsFixture(t);
  const opened = new AwsSession({ ...session, name: 'aws' });
  t.after(() => opened.close());
  const region = await opened.open();
  const pages = [{ items: [1, 2], NextToken: 'a' }, { items: [], NextToken: 'b' }, { items: [3] }];
  const asked: unknown[] = [];
  const found = await region.list(
    'DescribeImages',
    async (page) => {
      asked.push(page);
      return pages[asked.length - 1] ?? {};
    },
    ({ items }: { items?: number[]; NextToken?: string }) => items,
  );
  assert.deepEqual(found, [1, 2, 3]);
  assert.deepEqual(asked, [{}, { NextToken: 'a' }, { NextToken: 'b' }]);
});
