import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CloudError } from '../../src/cloud-error.ts';
import { type IssuedToken, TokenKeeper } from '../../src/http/token-keeper.ts';

const SIGNAL = new AbortController().signal;

const HOUR = 3_600_000;

/** Creates a keeper of tokens with a lifetime of an hour, a clock, and a count of the issued tokens. */
function hourlyTokens(): {
  readonly keeper: TokenKeeper<IssuedToken>;
  readonly pass: (milliseconds: number) => void;
  readonly issued: () => number;
} {
  let [now, count] = [0, 0];
  const issue = async (): Promise<IssuedToken> => {
    count += 1;
    return { value: `t${count}`, expiresAt: now + HOUR };
  };
  const keeper = new TokenKeeper(issue, 120_000, { now: () => now, sleep: async () => {} });
  return { keeper, pass: (milliseconds) => (now += milliseconds), issued: () => count };
}

async function refuse(): Promise<never> {
  throw new CloudError('auth-failed', 'refused', { status: 401 });
}

test('a token is requested once for all callers', async () => {
  const { keeper, issued } = hourlyTokens();
  const tokens = await Promise.all([1, 2, 3].map(() => keeper.current(SIGNAL)));
  assert.deepEqual(
    tokens.map(({ value }) => value),
    ['t1', 't1', 't1'],
  );
  assert.equal(issued(), 1);
});

test('a token is renewed when less than its min lifetime is left', async () => {
  const { keeper, pass } = hourlyTokens();
  await keeper.current(SIGNAL);
  pass(HOUR - 120_000);
  assert.equal((await keeper.current(SIGNAL)).value, 't1');
  pass(1);
  assert.equal((await keeper.current(SIGNAL)).value, 't2');
});

test('a token is renewed once after several requests with it got a 401', async () => {
  const { keeper, issued } = hourlyTokens();
  const request = async ({ value }: IssuedToken): Promise<string> =>
    value === 't1' ? await refuse() : value;
  const results = await Promise.all([1, 2, 3].map(() => keeper.run(SIGNAL, request)));
  assert.deepEqual(results, ['t2', 't2', 't2']);
  assert.equal(issued(), 2);
});

test('a request is sent twice at most, and once if the next token is the same', async () => {
  const { keeper, issued } = hourlyTokens();
  await assert.rejects(keeper.run(SIGNAL, refuse), /refused/);
  assert.equal(issued(), 2);
  let requests = 0;
  const same = new TokenKeeper(async () => ({ value: 't' }), 0, { now: () => 0, sleep: async () => {} });
  await assert.rejects(
    same.run(SIGNAL, async () => {
      requests += 1;
      return await refuse();
    }),
    /refused/,
  );
  assert.equal(requests, 1);
});

test('a token is returned to the other callers after one aborts', async () => {
  const reply = Promise.withResolvers<IssuedToken>();
  const keeper = new TokenKeeper(() => reply.promise, 0, { now: () => 0, sleep: async () => {} });
  const leaving = new AbortController();
  const [left, stays] = [keeper.current(leaving.signal), keeper.current(SIGNAL)];
  const reason = new Error('enough');
  leaving.abort(reason);
  await assert.rejects(left, reason);
  reply.resolve({ value: 't' });
  assert.equal((await stays).value, 't');
});

test('a token is requested again after a failure', async () => {
  let tries = 0;
  const issue = async (): Promise<IssuedToken> => {
    tries += 1;
    if (tries === 1) throw new Error('down');
    return { value: 't' };
  };
  const keeper = new TokenKeeper(issue, 0, { now: () => 0, sleep: async () => {} });
  await assert.rejects(keeper.current(SIGNAL), /down/);
  assert.equal((await keeper.current(SIGNAL)).value, 't');
});
