import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { describe, test } from 'node:test';
import type { Clock } from '@nodepool-builder/image-builder/plugin';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';
import { waitUntil } from '../../../../test/fixtures/wait-until.ts';
import { signToken } from '../../src/credentials/json-web-token.ts';
import { createCredentials, type ZuulCredentials } from '../../src/credentials/zuul-credentials.ts';
import { ON } from '../api/api-fixture.ts';
import { ManualClock } from '../api/manual-clock.ts';
import { zuulFailure } from '../api/zuul-failure.ts';
import { tokenAfterRefusal, tokenOf } from './token-fixture.ts';

function credentialsOf(command: readonly string[], clock: Clock = new ManualClock()): ZuulCredentials {
  const credentials = createCredentials({ 'token-command': command }, { clock });
  assert.ok(credentials !== undefined);
  return credentials;
}

function scriptOf(script: string, ...args: readonly string[]): ZuulCredentials {
  return credentialsOf(['sh', '-c', script, 'sh', ...args]);
}

/** Token that expires in ten minutes. */
function token(subject: string, now: number): string {
  const seconds = Math.floor(now / 1000);
  return signToken({ iss: 'i', aud: 'a', sub: subject, iat: seconds, exp: seconds + 600 }, 'k');
}

describe('a token from a command', () => {
  test('a token-command’s standard output is the token, reused until it expires', async (t) => {
    const directory = await temporaryDirectory(t);
    const clock = new ManualClock();
    const script = 'echo warning >&2; echo run >> "$1/runs"; cat "$1/token"';
    const credentials = credentialsOf(['sh', '-c', script, 'sh', directory], clock);
    const first = token('first', clock.now());
    await writeFile(`${directory}/token`, `Bearer ${first}\n`);
    assert.deepEqual(await Promise.all([tokenOf(credentials, ON), tokenOf(credentials, ON)]), [first, first]);
    assert.equal(await readFile(`${directory}/runs`, 'utf8'), 'run\n');
    clock.pass(580_000);
    const second = token('second', clock.now());
    await writeFile(`${directory}/token`, second);
    assert.equal(await tokenOf(credentials, ON), second);
    assert.equal(await tokenOf(credentials, ON), second);
    assert.equal(await readFile(`${directory}/runs`, 'utf8'), 'run\nrun\n');
  });

  test('a token-command’s token without an expiry is reused until it is rejected', async (t) => {
    const directory = await temporaryDirectory(t);
    const credentials = scriptOf('echo run >> "$1/runs"; wc -l < "$1/runs"', directory);
    assert.equal(await tokenOf(credentials, ON), '1');
    assert.equal(await tokenOf(credentials, ON), '1');
    assert.equal(await tokenAfterRefusal(credentials, ON), '2');
  });

  const faults: readonly (readonly [script: string, words: string])[] = [
    ['echo secret; echo secret >&2; exit 3', 'exited with 3'],
    ['kill -TERM $$', 'was killed by SIGTERM'],
    ['true', 'contains no token'],
    ['echo my secret', 'other text than a bearer token'],
    ['yes secret', 'more than 65536 bytes'],
  ];
  for (const [script, words] of faults) {
    test(`a token-command that runs "${script}" causes an error`, async () => {
      const failed = tokenOf(scriptOf(script), ON);
      await assert.rejects(failed, zuulFailure('credentials-unusable', 'command "sh" of auth', words));
    });
  }

  test('a token-command that does not exist causes an error', async () => {
    const credentials = credentialsOf(['no-such-command', 'secret']);
    await assert.rejects(
      tokenOf(credentials, ON),
      zuulFailure('credentials-unusable', '"no-such-command"', 'is not installed'),
    );
  });

  test('a token-command is killed when the signal aborts', async (t) => {
    const directory = await temporaryDirectory(t);
    const controller = new AbortController();
    const reason = new Error('enough');
    const credentials = scriptOf('echo $$ > "$1/pid.new"; mv "$1/pid.new" "$1/pid"; sleep 60', directory);
    const given = assert.rejects(tokenOf(credentials, controller.signal), reason);
    const pid = await waitUntil('the command to run', () =>
      readFile(`${directory}/pid`, 'utf8').catch(() => undefined),
    );
    controller.abort(reason);
    await given;
    assert.throws(() => process.kill(Number(pid), 0), { code: 'ESRCH' });
  });
});
