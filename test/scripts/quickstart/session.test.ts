// Not a unit test: it runs programs in a terminal.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { COLUMNS, runInTerminal } from '../../../scripts/quickstart/terminal.ts';
import { ROOT } from '../../docs/markdown.ts';

const LONG = 'upload 0000000003-6kyjdrzi of debian-0000000001-6kyjdrzi to local-raw: '.repeat(2).trim();

const PROGRAM = `
import { setTimeout } from 'node:timers/promises';
import { Session } from ${JSON.stringify(join(ROOT, 'scripts/quickstart/session.ts'))};
await Session.run({ name: 'test', data: '/nowhere', progressIn: () => undefined }, async (session) => {
  session.step('First');
  session.tell('${LONG}');
  session.goesOn('${LONG}');
  await setTimeout(2_500);
  session.success('it works');
  session.step('Last');
});`;

const COMMAND = [process.execPath, ...process.execArgv.filter((argument) => !argument.startsWith('--test'))];

/** Returns the program's lines that stay on screen. */
const LINES = [
  '',
  '==> First',
  '    upload 0000000003-6kyjdrzi of debian-0000000001-6kyjdrzi to local-raw: upload',
  '      0000000003-6kyjdrzi of debian-0000000001-6kyjdrzi to local-raw:',
  '    it works',
  '',
  '==> Last',
];

function commandLine(): string[] {
  return [...COMMAND, '--input-type=module', '--eval', PROGRAM];
}

test('the quickstart’s lines on a terminal fit it, have colours, and replace repeated progress', async () => {
  const seen = await runInTerminal(commandLine(), {});
  assert.deepEqual(seen.lines, LINES);
  assert.match(seen.widest, /^ {4}0:0[12] {2}upload /);
  assert.equal(seen.widest.length, COLUMNS - 1);
  assert.ok(seen.isStyled);
  assert.equal(seen.status, 0);
});

test('NO_COLOR removes the quickstart’s colours', async () => {
  const seen = await runInTerminal(commandLine(), { NO_COLOR: '1' });
  assert.deepEqual([seen.lines, seen.isStyled], [LINES, false]);
});

test('a pipe gets the quickstart’s lines without escape sequences', () => {
  const [file = '', ...args] = commandLine();
  const { FORCE_COLOR: _, NODE_TEST_CONTEXT: _context, ...environment } = process.env;
  const { stdout } = spawnSync(file, args, { encoding: 'utf8', env: environment });
  assert.deepEqual(stdout.split('\n').slice(0, -1), LINES);
});
