import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseCommandLine } from '../../../scripts/fresh-machine/command-line.ts';

test('fresh-machine without a command runs the README’s commands, in their order', async () => {
  const readme = await readFile(join(import.meta.dirname, '../../../README.md'), 'utf8');
  const [, block = ''] = /```sh\n(npm run [^`]*)```/.exec(readme) ?? [];
  const commands = Array.from(block.matchAll(/^(npm .*?) +#/gm), ([, command = '']) => command.split(' '));
  assert.ok(commands.length > 1);
  assert.deepEqual(parseCommandLine([]), { user: false, commands });
  assert.deepEqual(parseCommandLine(['--user']), { user: true, commands });
});

test('options after fresh-machine’s command belong to the command', () => {
  const command = ['npm', 'test', '--', '--node', '22', '--user'];
  assert.deepEqual(parseCommandLine(command), { user: false, commands: [command] });
  assert.deepEqual(parseCommandLine(['--user', ...command]), { user: true, commands: [command] });
});

test('fresh-machine’s option --suite names the machine’s Debian, before or after --user', () => {
  const expected = { user: true, suite: 'trixie', commands: [['npm', 'test']] };
  assert.deepEqual(parseCommandLine(['--suite', 'trixie', '--user', 'npm', 'test']), expected);
  assert.deepEqual(parseCommandLine(['--user', '--suite', 'trixie', 'npm', 'test']), expected);
  assert.throws(() => parseCommandLine(['--suite', '--user']), /usage: .* \[--suite NAME\]/);
});

test('an unknown option of fresh-machine prints an error and the usage', () => {
  assert.throws(
    () => parseCommandLine(['--root', 'npm']),
    /no option "--root npm"; usage: npm run fresh-machine/,
  );
});
