// Only in test:all: it needs man.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { createProgram } from '../../packages/nodepool-builder/src/commands/main.ts';
import { EXIT_CODES } from '../../packages/nodepool-builder/src/terms/exit-codes.ts';
import { manPage } from '../../scripts/docs/man-page.ts';
import { ROOT, readPage } from './markdown.ts';

const PACKAGE = 'packages/nodepool-builder';
const PAGE = `${PACKAGE}/man/nodepool-builder.1`;

const run = promisify(execFile);
const env = { ...process.env, MANWIDTH: '100', MANPAGER: 'cat', LC_ALL: 'C.UTF-8', MAN_KEEP_FORMATTING: '' };

describe('nodepool-builder(1)', () => {
  it('the man page is up to date (npm run docs)', async () => {
    assert.equal(await readPage(PAGE), manPage(await createProgram(), EXIT_CODES));
  });

  it('the man page is listed in package.json as an array, as npm links no page given as a string', async () => {
    const { man, files } = JSON.parse(await readPage(`${PACKAGE}/package.json`));
    assert.deepEqual(man, [PAGE.slice(`${PACKAGE}/`.length)]);
    assert.ok(files.includes('man') && existsSync(`${ROOT}/${PAGE}`));
  });

  it('the man page has no errors that groff and man report', async () => {
    const groff = ['-ww', '-K', 'utf8', '-man', '-Tutf8', '-z', PAGE];
    assert.deepEqual(await run('groff', groff, { cwd: ROOT }), { stdout: '', stderr: '' });
    const { stderr } = await run('man', ['--warnings', '-E', 'UTF-8', '-l', '-Z', PAGE], { cwd: ROOT, env });
    assert.equal(stderr, '');
  });

  it('the man page explains each command with its operands, options and examples', async () => {
    const { stdout } = await run('man', ['-l', PAGE], { cwd: ROOT, env });
    const lines = stdout.split('\n');
    const program = await createProgram();
    const help = program.createHelp();
    for (const command of help.visibleCommands(program).filter((one) => one.name() !== 'help')) {
      const start = lines.indexOf(`   ${command.name()} ${command.usage()}`);
      assert.notEqual(start, -1, command.name());
      const length = lines.slice(start + 1).findIndex((line) => /^(?: {3})?\S/.test(line));
      const section = lines.slice(start, start + 1 + length).join('\n');
      const flags = help.visibleOptions(command).map((option) => option.flags);
      for (const flag of flags.filter((one) => !one.includes('--help'))) {
        assert.ok(section.includes(`       ${flag}`), `${command.name()} ${flag}`);
      }
      for (const operand of command.registeredArguments)
        assert.match(section, new RegExp(`^ {7}${operand.name()}(?: |$)`, 'm'));
      assert.match(section, /\$ nodepool-builder /);
    }
    for (const { code } of Object.values(EXIT_CODES)) assert.match(stdout, new RegExp(`^ {7}${code} `, 'm'));
  });
});
