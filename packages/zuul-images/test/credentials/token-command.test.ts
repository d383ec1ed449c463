import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { describe, test } from 'node:test';
import { waitUntil } from '../../../../test/fixtures/wait-until.ts';
import { temporaryDirectory } from '../../../image-builder/test/temporary-directory.ts';
import { createCredentials } from '../../src/credentials/create-credentials.ts';
import type { ZuulCredentials } from '../../src/credentials/credentials.ts';
import { signToken } from '../../src/credentials/json-web-token.ts';
import { ON } from '../api/api-fixture.ts';
import { ManualClock } from '../api/manual-clock.ts';
import { zuulFailure } from '../api/zuul-failure.ts';

const CLOCK = new ManualClock();

function credentialsOf(script: string, ...args: readonly string[]): ZuulCredentials {
  return createCredentials(
    { type: 'token-command', command: ['sh', '-c', script, 'sh', ...args] },
    { clock: CLOCK },
  );
}

/** Expires in ten minutes. */
function token(subject: string, now: number): string {
  const seconds = Math.floor(now / 1000);
  return signToken({ iss: 'i', aud: 'a', sub: subject, iat: seconds, exp: seconds + 600 }, 'k');
}

describe('a token from a command', () => {
  test('is what it writes to its standard output, kept until it expires', async (t) => {
    const directory = await temporaryDirectory(t);
    const clock = new ManualClock();
    const script = 'echo warning >&2; echo run >> "$1/runs"; cat "$1/token"';
    const credentials = createCredentials(
      { type: 'token-command', command: ['sh', '-c', script, 'sh', directory] },
      { clock },
    );
    const first = token('first', clock.now());
    await writeFile(`${directory}/token`, `Bearer ${first}\n`);
    assert.deepEqual(await Promise.all([credentials.token(ON), credentials.token(ON)]), [first, first]);
    assert.equal(await readFile(`${directory}/runs`, 'utf8'), 'run\n');
    clock.pass(580_000);
    const second = token('second', clock.now());
    await writeFile(`${directory}/token`, second);
    assert.equal(await credentials.token(ON), second);
    assert.equal(await credentials.token(ON), second);
    assert.equal(await readFile(`${directory}/runs`, 'utf8'), 'run\nrun\n');
  });

  test('that does not tell when it expires is kept until it is rejected', async (t) => {
    const directory = await temporaryDirectory(t);
    const credentials = credentialsOf('echo run >> "$1/runs"; wc -l < "$1/runs"', directory);
    assert.equal(await credentials.token(ON), '1');
    credentials.reject('another');
    assert.equal(await credentials.token(ON), '1');
    credentials.reject('1');
    assert.equal(await credentials.token(ON), '2');
  });

  const faults: readonly (readonly [script: string, words: string])[] = [
    ['echo secret; echo secret >&2; exit 3', 'ended with 3'],
    ['kill -TERM $$', 'was ended by SIGTERM'],
    ['true', 'gives no token'],
    ['echo my secret', 'no bearer token'],
    ['yes secret', 'more than 65536 bytes'],
  ];
  for (const [script, words] of faults) {
    test(`of "${script}" is none`, async () => {
      const failed = credentialsOf(script).token(ON);
      await assert.rejects(failed, zuulFailure('credentials-unusable', 'the command "sh"', words));
    });
  }

  test('of a command that is not there is none', async () => {
    const credentials = createCredentials({ type: 'token-command', command: ['no-such-command', 'secret'] });
    await assert.rejects(
      credentials.token(ON),
      zuulFailure('credentials-unusable', '"no-such-command"', 'ENOENT'),
    );
  });

  test('need not be waited for: the command is ended', async (t) => {
    const directory = await temporaryDirectory(t);
    const controller = new AbortController();
    const reason = new Error('enough');
    const credentials = credentialsOf(
      'echo $$ > "$1/pid.new"; mv "$1/pid.new" "$1/pid"; sleep 60',
      directory,
    );
    const given = assert.rejects(credentials.token(controller.signal), reason);
    const pid = await waitUntil('the command to run', () =>
      readFile(`${directory}/pid`, 'utf8').catch(() => undefined),
    );
    controller.abort(reason);
    await given;
    assert.throws(() => process.kill(Number(pid), 0), { code: 'ESRCH' });
  });
});
