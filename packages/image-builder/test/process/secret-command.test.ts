// Not a unit test: it runs a command.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { test } from 'node:test';
import { waitUntil } from '../../../../test/fixtures/wait-until.ts';
import { runSecretCommand } from '../../src/process/secret-command.ts';

test('a secret command that hangs is killed with its children', async () => {
  const { output, reason } = await runSecretCommand(['sh', '-c', 'sleep 1000 & echo $!; wait'], {
    timeLimit: 200,
  });
  assert.equal(reason, 'took longer than 0.2 s');
  await waitUntil('the end of the child', () => !existsSync(`/proc/${output.toString().trim()}`));
});
