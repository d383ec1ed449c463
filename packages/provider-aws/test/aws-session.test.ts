// Not a unit test: it starts a server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AwsSession } from '../src/aws-session.ts';
import { awsFixture } from './aws-fixture.ts';

interface Timeouts {
  /** Milliseconds. */
  readonly socketTimeout?: number;
}

test('a request to an AWS server that has fallen silent ends', async (t) => {
  const { session } = await awsFixture(t);
  const opened = new AwsSession({ ...session, name: 'aws' });
  t.after(() => opened.close());
  const region = await opened.open();
  await region.call('DescribeImages', t.signal, (options) =>
    region.ec2.describeImages({ Owners: ['self'] }, options),
  );
  const handler: unknown = region.ec2.config.requestHandler;
  const { socketTimeout } = (handler as { httpHandlerConfigs(): Timeouts }).httpHandlerConfigs();
  assert.equal(socketTimeout, 120_000);
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
    t.signal,
    async (page) => {
      asked.push(page);
      return pages[asked.length - 1] ?? {};
    },
    ({ items }: { items?: number[]; NextToken?: string }) => items,
  );
  assert.deepEqual(found, [1, 2, 3]);
  assert.deepEqual(asked, [{}, { NextToken: 'a' }, { NextToken: 'b' }]);
});
