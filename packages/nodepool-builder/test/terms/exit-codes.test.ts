import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ImageError } from '@nodepool-builder/image-builder';
import { CloudError } from '@nodepool-builder/image-builder/plugin';
import { exitCodeTable } from '../../../../scripts/docs/exit-code-table.ts';
import { readPage } from '../../../../test/docs/markdown.ts';
import { createProgram } from '../../src/commands/main.ts';
import { CommandError, failing } from '../../src/terms/command-error.ts';
import { EXIT_CODES, exitReasonOf } from '../../src/terms/exit-codes.ts';

describe('the table of exit codes', () => {
  it('the exit codes keep their numbers, as scripts rely on them', () => {
    const codes = Object.entries(EXIT_CODES).map(([reason, { code }]) => [reason, code]);
    assert.deepEqual(Object.fromEntries(codes), {
      success: 0,
      failed: 1,
      usage: 2,
      'not-found': 3,
      refused: 4,
      unreachable: 5,
      cancelled: 6,
      unproven: 7,
      refuted: 8,
    });
  });

  it('the exit codes are in the documents (npm run docs)', async () => {
    assert.ok((await readPage('docs/command-line.md')).includes(`\n${exitCodeTable(EXIT_CODES)}\n`));
  });

  it('the exit codes are in --help', async () => {
    let help = '';
    const program = (await createProgram()).configureOutput({ writeOut: (text) => (help += text) });
    await assert.rejects(program.parseAsync(['--help'], { from: 'user' }), /outputHelp/);
    for (const { code, meaning } of Object.values(EXIT_CODES)) {
      assert.ok(help.includes(`\n  ${code}  ${meaning}\n`), meaning);
    }
  });
});

describe('the reason of an error', () => {
  const cases: readonly (readonly [error: unknown, reason: string])[] = [
    [new CloudError('connection-failed', 'the cloud does not respond'), 'unreachable'],
    [new CloudError('forbidden', 'the cloud refused'), 'refused'],
    [new ImageError('image-not-found', 'no such image'), 'not-found'],
    [new ImageError('build-aborted', 'the build was stopped'), 'cancelled'],
    [new ImageError('command-failed', 'it ended with exit code 1'), 'failed'],
    [Object.assign(new Error('no file'), { code: 'toString' }), 'failed'],
    [new Error('an internal error'), 'failed'],
    [undefined, 'failed'],
  ];
  for (const [error, reason] of cases) {
    it(`the exit reason for ${String(error)} is ${reason}`, () => {
      assert.equal(exitReasonOf(error), reason);
    });
  }

  it('a command exits with the code of its cause, unless it has its own', () => {
    const missing = Object.assign(new Error('ENOENT'), { code: 'ENOENT' });
    const refused = new CloudError('auth-failed', 'the cloud refused');
    assert.throws(() => failing('cannot ask', 'correct it')(refused), { exitReason: 'refused' });
    assert.throws(() => failing('cannot write', 'name another')(missing), { exitReason: 'failed' });
    assert.throws(() => failing('cannot read', 'name another', 'not-found')(missing), {
      exitReason: 'not-found',
    });
    assert.equal(new CommandError('it failed').exitReason, 'failed');
  });
});
