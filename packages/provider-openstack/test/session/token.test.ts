import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type Token, TokenKeeper } from '../../src/session/token.ts';
import { ManualClock } from '../fixtures/manual-clock.ts';

const SIGNAL = new AbortController().signal;

/** Creates a keeper of tokens with a lifetime of an hour, and counts the issued tokens. */
function hourlyTokens(): { keeper: TokenKeeper; clock: ManualClock; issued: () => number } {
  const clock = new ManualClock();
  let count = 0;
  const issue = async (): Promise<Token> => {
    count += 1;
    return { id: `t${count}`, expiresAt: clock.now() + 3_600_000, catalog: [], projectId: undefined };
  };
  return { keeper: new TokenKeeper(issue, clock), clock, issued: () => count };
}

describe('the token of a session', () => {
  it('a session’s token is requested once for all callers', async () => {
    const { keeper, issued } = hourlyTokens();
    const tokens = await Promise.all([1, 2, 3].map(() => keeper.current(SIGNAL)));
    assert.deepEqual(
      tokens.map(({ id }) => id),
      ['t1', 't1', 't1'],
    );
    assert.equal(issued(), 1);
  });

  it('a session’s token is renewed when less than 120 seconds are left', async () => {
    const { keeper, clock } = hourlyTokens();
    await keeper.current(SIGNAL);
    clock.pass(3_480_000);
    assert.equal((await keeper.current(SIGNAL)).id, 't1');
    clock.pass(1);
    assert.equal((await keeper.current(SIGNAL)).id, 't2');
  });

  it('a session’s token is renewed once after several callers got a 401', async () => {
    const { keeper, issued } = hourlyTokens();
    const first = await keeper.current(SIGNAL);
    keeper.reject(first);
    const second = await keeper.current(SIGNAL);
    keeper.reject(first);
    assert.equal(await keeper.current(SIGNAL), second);
    assert.equal(issued(), 2);
  });

  it('a session’s token is returned to the other callers after one aborts', async () => {
    const answer = Promise.withResolvers<Token>();
    const keeper = new TokenKeeper(() => answer.promise, new ManualClock());
    const leaving = new AbortController();
    const [left, stays] = [keeper.current(leaving.signal), keeper.current(SIGNAL)];
    const reason = new Error('enough');
    leaving.abort(reason);
    await assert.rejects(left, reason);
    answer.resolve({ id: 't', expiresAt: 0, catalog: [], projectId: undefined });
    assert.equal((await stays).id, 't');
  });

  it('a session’s token is requested again after a failure', async () => {
    let tries = 0;
    const issue = async (): Promise<Token> => {
      tries += 1;
      if (tries === 1) throw new Error('down');
      return { id: 't', expiresAt: 0, catalog: [], projectId: undefined };
    };
    const keeper = new TokenKeeper(issue, new ManualClock());
    await assert.rejects(keeper.current(SIGNAL), /down/);
    assert.equal((await keeper.current(SIGNAL)).id, 't');
  });
});
